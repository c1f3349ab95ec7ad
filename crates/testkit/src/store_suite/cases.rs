//! The list of the cases: each becomes a test of its own for each backend.

/// Expands to one test for each case of the suite. `$world` is an async function that makes an empty
/// [`World`](crate::store_suite::World).
///
/// The crate that calls it needs `tokio` with `macros` and `rt`.
#[macro_export]
macro_rules! store_suite {
    ($world:path) => {
        $crate::store_suite! { @each $world;
            append {
                a_new_run_gives_its_lease,
                a_run_is_created_once,
                a_run_is_created_by_an_owner_that_is_one,
                a_new_run_begins_at_zero,
                a_log_that_ends_elsewhere_is_a_conflict,
                another_fence_is_refused,
                an_unknown_run_is_not_found,
                each_part_of_a_call_is_taken_or_refused_by_itself,
                events_come_back_in_order,
                a_read_from_inside_a_batch_gives_the_whole_batch,
                all_of_a_write_happens_together,
                a_checkpoint_replaces_the_one_before,
                status_and_due_time_follow_the_last_write,
                a_run_may_be_created_and_released_at_once,
                the_right_to_write_lasts_until_somebody_else_claims,
                ids_may_be_any_text,
                any_json_comes_back_byte_for_byte,
                many_writers_do_not_disturb_each_other,
                of_two_writers_at_one_place_one_is_refused,
                a_deleted_run_is_gone_with_all_that_was_its,
                a_run_that_somebody_drives_is_not_deleted,
            }
            list {
                the_newest_come_first,
                pages_do_not_shift_while_runs_are_added,
                a_place_that_no_page_gave_is_an_error,
                a_list_keeps_to_its_filter,
                a_prefix_is_taken_literally,
                a_page_has_a_bound_of_its_own,
            }
            owner {
                every_owner_is_another,
                an_owner_that_is_late_loses_its_runs,
                a_late_owner_that_another_process_has_ended_is_told,
                a_late_owner_that_no_process_has_ended_stays_one,
                a_jump_of_the_clock_ends_no_owner,
                a_late_owner_with_a_shorter_lease_is_noticed,
                one_look_ends_no_owner,
                an_owner_that_renews_keeps_its_runs,
                a_lease_may_be_as_long_as_time,
                whoever_leaves_frees_its_runs,
                the_owners_that_are_there_are_listed_and_no_others,
                an_owner_that_renews_learns_whether_it_is_alone,
                an_owner_is_alerted_of_a_run_that_waits_for_somebody,
                an_owner_is_alerted_of_runs_that_were_given_back,
                an_alert_is_not_lost,
            }
            time {
                the_store_says_what_time_it_is,
                the_time_never_goes_back,
                a_clock_that_is_wrong_does_not_move_the_time_of_others,
                a_due_time_is_the_same_instant_for_every_process,
                clocks_that_disagree_take_nothing_from_either_process,
                whoever_was_suspended_finds_the_time_gone_by,
            }
            claim {
                a_run_is_claimed_by_its_id_whether_it_is_due_or_not,
                a_run_that_somebody_drives_is_not_claimed,
                an_owner_that_forgot_its_lease_gets_another_one,
                those_that_are_due_longest_come_first,
                equally_due_runs_come_in_the_order_of_their_creation,
                only_runs_of_known_workflows_are_claimed,
                each_claim_raises_the_fence,
                nothing_is_claimed_for_an_owner_that_is_gone,
                no_run_is_claimed_twice,
                a_released_run_waits_for_somebody_else,
                a_run_that_was_claimed_by_id_can_be_given_back,
            }
            command {
                nothing_is_asked_of_an_unknown_run,
                commands_come_in_order_to_whoever_drives_the_run,
                a_run_of_which_something_is_asked_is_due,
                the_owner_is_told_at_once,
                what_is_asked_of_a_run_of_nobody_wakes_everybody,
                handled_commands_vanish_with_the_write,
                what_is_not_handled_is_not_forgotten,
            }
            shared {
                a_shared_state_is_written_over_what_was_seen,
                a_shared_state_has_a_kind_and_a_name,
                no_write_to_a_shared_state_is_lost,
                shared_states_are_written_together_or_not_at_all,
                a_shared_state_that_is_named_twice_is_written_twice,
                a_shared_state_that_was_removed_is_gone,
                who_saw_a_shared_state_before_it_was_removed_cannot_write_over_the_next,
                shared_states_of_a_kind_come_in_pages_by_name,
            }
            dead_letter {
                what_was_put_aside_is_listed_oldest_first,
                a_write_that_is_refused_puts_nothing_aside,
                work_is_put_aside_once_and_the_last_time_counts,
                work_that_goes_on_is_put_aside_no_more,
                what_was_taken_away_is_gone,
                many_come_in_pages,
                a_deleted_run_takes_its_dead_letters_along,
            }
        }
    };
    (@each $world:path; $($module:ident { $($case:ident,)* })*) => {
        $(
            mod $module {
                $(
                    #[tokio::test]
                    async fn $case() {
                        $crate::store_suite::$module::$case($world().await).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is written and not listed would never run.
    #[test]
    fn every_case_is_listed() {
        let list = include_str!("cases.rs");
        for (module, text) in [
            ("append", include_str!("append.rs")),
            ("list", include_str!("list.rs")),
            ("owner", include_str!("owner.rs")),
            ("claim", include_str!("claim.rs")),
            ("command", include_str!("command.rs")),
            ("shared", include_str!("shared.rs")),
            ("dead_letter", include_str!("dead_letter.rs")),
        ] {
            let (_, listed) = list.split_once(&format!("            {module} {{\n")).unwrap();
            let (listed, _) = listed.split_once('}').unwrap();
            let cases: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn ")?.split_once('('))
                .map(|(name, _)| name)
                .collect();
            let listed: Vec<&str> = listed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
            assert_eq!(cases, listed[..cases.len().min(listed.len())], "{module}");
            assert_eq!(listed[cases.len()..].concat(), "", "{module}");
        }
    }
}
