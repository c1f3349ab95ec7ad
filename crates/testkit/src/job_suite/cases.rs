//! The list of the cases: each becomes a test of its own for each backend.

/// Expands to one test for each case of the suite. `$world` is a function that makes an empty
/// [`World`](crate::job_suite::World).
#[macro_export]
macro_rules! job_suite {
    ($world:path) => {
        $crate::job_suite! { @each $world;
            record {
                a_record_comes_back_with_what_nobody_knows,
                what_is_not_there_is_none,
                outcome_and_events_come_back,
                what_a_supervisor_writes_is_seen,
                a_rewound_job_has_no_outcome_and_nobody_asks_it_to_end,
                a_removed_job_is_gone,
                shared_states_and_due_times_come_back,
                one_job_that_cannot_be_written_does_not_stop_the_others,
                a_run_is_removed_as_a_whole_or_not_at_all,
            }
            enqueue {
                a_run_is_there_as_a_whole,
                jobs_of_a_run_without_a_manifest_are_not_there,
                a_run_that_cannot_be_written_leaves_nothing,
                a_large_run_is_there_as_a_whole,
            }
            artifact {
                c_38_a_marker_is_there_for_its_artifact_only,
                hostile_names_of_artifacts_stay_apart,
                c_39_a_payload_is_not_readiness,
                c_40_the_payload_of_the_newest_marker_counts,
            }
            lock {
                there_is_one_turn_at_a_time,
                whoever_waits_for_the_turn_gets_it,
                a_run_lock_is_held_until_its_last_copy_is_closed,
            }
            history {
                what_is_over_and_needed_by_nobody_is_not_active,
                what_was_read_ahead_is_brought_up_to_date,
                what_a_job_is_after_comes_along,
                producers_come_along,
                producers_of_other_runs_do_not_come_along_where_the_own_run_has_one,
                the_jobs_of_a_run_stay_together,
                history_can_be_removed,
            }
        }
    };
    (@each $world:path; $($module:ident { $($case:ident,)* })*) => {
        $(
            mod $module {
                $(
                    #[test]
                    fn $case() {
                        $crate::job_suite::$module::$case($world());
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
            ("record", include_str!("record.rs")),
            ("enqueue", include_str!("enqueue.rs")),
            ("artifact", include_str!("artifact.rs")),
            ("lock", include_str!("lock.rs")),
            ("history", include_str!("history.rs")),
        ] {
            let (_, listed) = list.split_once(&format!("            {module} {{\n")).unwrap();
            let (listed, _) = listed.split_once('}').unwrap();
            let cases: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix("pub fn ")?.split_once('('))
                .map(|(name, _)| name)
                .collect();
            let listed: Vec<&str> = listed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
            assert_eq!(cases, listed[..cases.len().min(listed.len())], "{module}");
            assert_eq!(listed[cases.len()..].concat(), "", "{module}");
        }
    }
}
