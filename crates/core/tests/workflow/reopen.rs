//! Work that failed gets another chance, and the run comes to where it would have come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tidewheel_core::event::{Absence, Hold};
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::Failure;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::{Workflow, accumulator, condition, map, reduce, rule, step};
use tidewheel_core::{Outcome, ReopenError, Runnable};

use crate::driven::{Driven, failing, skipping, undoing, well};
use crate::{double, inc};

fn built(builder: tidewheel_core::workflow::WorkflowBuilder) -> Workflow {
    builder.build().unwrap()
}

fn up_to(n: i64) -> Vec<i64> {
    (0..n).collect()
}

fn sum(total: i64, x: i64) -> i64 {
    total + x
}

fn went_on(component: &str) -> Result<(), ReopenError> {
    Err(ReopenError::WentOn { component: component.to_owned() })
}

/// Fails what has one of these inputs, of one component.
fn failing_on(name: &'static str, inputs: &'static [i64]) -> impl Fn(Runnable) -> tidewheel_core::Executed {
    move |runnable| {
        let is_it = runnable.node().name == Some(name)
            && runnable.input().get::<i64>().is_ok_and(|input| inputs.contains(&input));
        if is_it { runnable.executed(Outcome::Failed(Failure::new("broken"))) } else { runnable.execute() }
    }
}

#[test]
fn a_step_that_failed_is_run_again_and_what_comes_after_it_follows() {
    let chain = [step("a", inc), step("b", double), step("c", inc)];
    let mut driven = Driven::ran(&built(Workflow::new("w").pipeline(chain)), 1, failing(&["b"]));
    assert_eq!(driven.run.absence("c", 0), Some(Absence::UpstreamFailed));
    driven.reopen("b").unwrap();
    assert_eq!(driven.run.absence("c", 0), None);
    assert!(driven.run.failures().is_empty() && driven.run.is_runnable());
    driven.finish(well);
    assert_eq!(driven.values("c"), [5]);
    assert_eq!(driven.ran, ["a(1)", "b(2)", "b(2)", "c(4)"], "only what failed is run again");
}

#[test]
fn work_can_fail_and_be_given_a_chance_as_often_as_somebody_wants() {
    let chain = [step("a", inc), step("b", double)];
    let mut driven = Driven::ran(&built(Workflow::new("w").pipeline(chain)), 1, failing(&["a"]));
    let id = driven.failed("a")[0];
    for _ in 0..3 {
        driven.reopen("a").unwrap();
        assert_eq!(
            driven.run.reopen(id, None).map(|_| ()),
            Err(ReopenError::NotFailed),
            "it has one already"
        );
        driven.finish(failing(&["a"]));
        assert_eq!(driven.failed("a"), [id], "it is the same piece of work");
        assert_eq!(driven.run.failures().len(), 1);
    }
    driven.reopen("a").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("b"), [4]);
}

#[test]
fn all_attempts_are_there_again() {
    let workflow = built(Workflow::new("w").add(step("a", inc)));
    let mut driven = Driven::ran(&workflow, 1, |runnable| {
        runnable.with_attempt(4).executed(Outcome::Failed(Failure::new("broken")))
    });
    assert_eq!(driven.run.failures()[0].attempts, 5);
    driven.reopen("a").unwrap();
    assert_eq!(driven.prepare()[0].attempt(), 0);
}

#[test]
fn the_work_and_the_condition_of_a_rule_are_tried_again() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_broken);
    let asks = move |x: i64| if seen.load(Ordering::SeqCst) { Err("broken".to_owned()) } else { Ok(x > 0) };
    let builder =
        Workflow::new("w").add(rule("r").when(asks).then(double)).add(step("after", inc).after("r"));
    let mut driven = Driven::ran(&built(builder), 4, well);
    assert_eq!(driven.run.absence("after", 0), Some(Absence::UpstreamFailed));
    is_broken.store(false, Ordering::SeqCst);
    driven.reopen("r").unwrap();
    driven.finish(failing(&["r"]));
    assert_eq!(driven.run.absence("after", 0), Some(Absence::UpstreamFailed), "now its work failed");
    driven.reopen("r").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("after"), [9]);
}

#[test]
fn a_condition_that_failed_is_looked_at_again() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_broken);
    let asks = move |x: i64| if seen.load(Ordering::SeqCst) { Err("broken".to_owned()) } else { Ok(x > 0) };
    let builder = Workflow::new("w")
        .add(condition("gate", asks))
        .add(step("in", inc).after("gate"))
        .add(step("beside", double))
        .add(step("both", sum).after(["in", "beside"]));
    let workflow = built(builder);
    let mut driven = Driven::ran(&workflow, 4, well);
    is_broken.store(false, Ordering::SeqCst);
    driven.reopen("gate").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("both"), [13]);
    let mut driven = Driven::of(&workflow);
    driven.plan(-1);
    driven.finish(well);
    assert!(driven.run.failed_works().is_empty(), "that it is not true is no failure");
}

#[test]
fn a_join_waits_again_for_the_one_parent_that_failed() {
    let builder = Workflow::new("w")
        .add(step("a", inc))
        .add(step("b", double))
        .add(step("both", sum).after(["a", "b"]))
        .add(step("after", inc).after("both"));
    let mut driven = Driven::ran(&built(builder), 5, failing(&["b"]));
    driven.reopen("b").unwrap();
    driven.finish(failing(&["both"]));
    assert_eq!(driven.run.absence("both", 0), Some(Absence::Failed));
    driven.reopen("both").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("after"), [17]);
    assert_eq!(driven.ran.iter().filter(|ran| ran.starts_with("join")).count(), 1);
}

#[test]
fn a_join_of_two_that_failed_waits_for_both_in_any_order() {
    for names in [["a", "b"], ["b", "a"]] {
        let builder = Workflow::new("w")
            .add(step("a", inc))
            .add(step("b", double))
            .add(step("both", sum).after(["a", "b"]));
        let mut driven = Driven::ran(&built(builder), 5, failing(&["a", "b"]));
        driven.reopen(names[0]).unwrap();
        driven.finish(well);
        assert_eq!(driven.run.absence("both", 0), Some(Absence::UpstreamFailed), "the other one is missing");
        driven.reopen(names[1]).unwrap();
        driven.finish(well);
        assert_eq!(driven.values("both"), [16]);
    }
}

#[test]
fn a_join_without_a_skipped_part_says_so_until_that_part_comes() {
    let builder = Workflow::new("w")
        .add(step("a", inc))
        .add(step("b", double))
        .add(step("both", sum).after(["a", "b"]));
    let mut driven = Driven::of(&built(builder));
    driven.plan(5);
    for runnable in driven.prepare() {
        let failure = Failure::new("broken");
        let is_a = runnable.node().name == Some("a");
        let outcome = if is_a { Outcome::Skipped(failure) } else { Outcome::Failed(failure) };
        driven.apply(runnable.executed(outcome));
    }
    assert_eq!(driven.run.absence("both", 0), Some(Absence::UpstreamFailed));
    driven.reopen("b").unwrap();
    driven.finish(well);
    assert_eq!(driven.run.absence("both", 0), Some(Absence::UpstreamSkipped), "what is left is less grave");
    driven.reopen("a").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("both"), [16]);
}

fn mapped() -> Workflow {
    let builder = Workflow::new("w")
        .add(step("list", up_to))
        .add(map("item", inc).after("list"))
        .add(reduce("sum", 0_i64, sum).after("item"))
        .add(step("after", double).after("sum"));
    built(builder)
}

#[test]
fn a_reduce_waits_again_for_the_items_that_failed() {
    let mut driven = Driven::ran(&mapped(), 4, failing_on("item", &[1, 3]));
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::UpstreamFailed));
    let ids = driven.failed("item");
    assert_eq!(ids.len(), 2);
    driven.run.reopen(ids[1], None).unwrap();
    driven.keep();
    driven.finish(well);
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::UpstreamFailed), "one item is missing");
    driven.reopen("item").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("item"), [1, 2, 3, 4]);
    assert_eq!((driven.values("sum"), driven.values("after")), (vec![json!(10)], vec![json!(20)]));
}

#[test]
fn a_reduce_and_a_list_that_could_not_be_taken_apart_are_tried_again() {
    let mut driven = Driven::ran(&mapped(), 4, failing(&["sum"]));
    driven.reopen("sum").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("after"), [20]);

    let mut driven = Driven::ran(&mapped(), 4, |runnable| {
        let is_list = runnable.input().get::<Vec<i64>>().is_ok_and(|list| list.len() == 4);
        if is_list { runnable.executed(Outcome::Failed(Failure::new("broken"))) } else { runnable.execute() }
    });
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::UpstreamFailed));
    let id = driven.run.failed_works()[0];
    driven.run.reopen(id, None).unwrap();
    driven.keep();
    driven.finish(well);
    assert_eq!(driven.values("after"), [20]);
}

#[test]
fn a_list_that_did_not_come_is_taken_apart_when_it_comes() {
    let mut driven = Driven::ran(&mapped(), 3, failing(&["list"]));
    driven.reopen("list").unwrap();
    driven.finish(failing(&["list"]));
    driven.reopen("list").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("after"), [12]);
}

#[test]
fn maps_inside_of_maps_are_awaited_item_by_item() {
    let builder = Workflow::new("w")
        .add(step("outer_list", up_to))
        .add(map("outer", up_to).after("outer_list"))
        .add(map("inner", inc).after("outer"))
        .add(reduce("inner_sum", 0_i64, sum).after("inner"))
        .add(reduce("outer_sum", 0_i64, sum).after("inner_sum"))
        .add(step("after", inc).after("outer_sum"));
    let workflow = built(builder);
    let whole = Driven::ran(&workflow, 4, well);
    for name in ["inner", "outer", "inner_sum", "outer_sum", "outer_list"] {
        let mut driven = Driven::ran(&workflow, 4, failing(&[name]));
        assert!(driven.values("after").is_empty());
        driven.reopen(name).unwrap();
        driven.finish(well);
        assert_eq!(driven.values("after"), whole.values("after"), "{name}");
        assert!(driven.run.failures().is_empty());
    }
}

#[test]
fn a_reduce_that_went_on_without_an_item_is_not_made_twice() {
    let mut driven = Driven::ran(&mapped(), 4, skipping(&["item"]));
    assert_eq!(driven.values("sum"), [0], "what is skipped does not stop a reduce");
    let before = driven.log.len();
    assert_eq!(driven.reopen("item"), went_on("sum"));
    assert_eq!(driven.log.len(), before);

    let mut driven = Driven::of(&mapped());
    driven.plan(4);
    driven.finish(|runnable| match runnable.node().name {
        Some("item") => runnable.executed(Outcome::Skipped(Failure::new("broken"))),
        Some("sum") => runnable.executed(Outcome::Failed(Failure::new("broken"))),
        _ => runnable.execute(),
    });
    assert_eq!(driven.reopen("item"), went_on("sum"), "it failed by itself, without the items");
    driven.reopen("sum").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("sum"), [0]);
}

#[test]
fn only_what_failed_can_be_given_a_chance() {
    let chain = [step("a", inc), step("b", double)];
    let mut driven = Driven::of(&built(Workflow::new("w").pipeline(chain)));
    driven.plan(1);
    let pending = driven.run.next_runnables()[0].1;
    let refused = |driven: &mut Driven, id: RunnableId| driven.run.reopen(id, None).map(|_| ()).unwrap_err();
    assert_eq!(refused(&mut driven, pending), ReopenError::NotFailed, "it has not begun");
    driven.finish(well);
    let error = refused(&mut driven, pending);
    assert_eq!(error.to_string(), "there is no such work that failed or waits for a person");
    assert!(driven.run.last_events().is_empty() && !driven.run.is_runnable());
}

#[test]
fn what_was_undone_gets_no_other_chance() {
    let chain = [step("a", inc), step("b", double)];
    let mut driven = Driven::ran(&built(Workflow::new("w").pipeline(chain)), 1, failing(&["b"]));
    driven.plan(2);
    for work in driven.prepare() {
        driven.end(work, well);
    }
    let work = driven.prepare().remove(0);
    let id = work.id();
    driven.end(work, undoing("b"));
    assert_eq!(driven.run.failures().len(), 2);
    assert_eq!(driven.run.failed_works().len(), 1, "the other one was undone");
    let error = driven.run.reopen(id, None).map(|_| ()).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error),
        ("what its input caused was undone", ReopenError::Undone)
    );
    driven.reopen("b").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("b"), [4]);
}

fn totals() -> Workflow {
    built(Workflow::new("w").add(step("a", inc)).add(accumulator("total", 0_i64, sum).after("a")))
}

#[test]
fn a_state_takes_what_comes_late_after_what_came_before() {
    let mut driven = Driven::of(&totals());
    for input in [10, 20, 30] {
        driven.plan(input);
    }
    driven.finish(failing_on("a", &[10]));
    assert_eq!(driven.run.result::<i64>("total").unwrap(), Some(52));
    driven.reopen("a").unwrap();
    driven.finish(failing_on("a", &[10]));
    driven.reopen("a").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("total").len(), 4, "the first value and one for each input");
    assert_eq!(driven.ran.last().unwrap(), "total(11)");
    assert_eq!(
        driven.run.result::<i64>("total").unwrap(),
        Some(63),
        "the state as it is, not that of the last input"
    );
    let stored = driven.run.facts_len();
    assert_eq!(driven.run.value_for("total", 2, stored).unwrap().get::<i64>().unwrap(), 63);
    driven.plan(40);
    driven.finish(well);
    assert_eq!(driven.run.result::<i64>("total").unwrap(), Some(104), "and it goes on in order");
}

#[test]
fn a_state_that_still_waits_for_an_input_takes_it_in_its_turn() {
    let mut driven = Driven::of(&totals());
    for input in [10, 20, 30] {
        driven.plan(input);
    }
    // The second input fails before the first one had its turn.
    let mut works = driven.prepare();
    let first = works.remove(0);
    for work in works {
        driven.end(work, failing_on("a", &[20]));
    }
    driven.reopen("a").unwrap();
    driven.end(first, well);
    driven.finish(well);
    let turns: Vec<&String> = driven.ran.iter().filter(|ran| ran.starts_with("total")).collect();
    assert_eq!(turns, ["total(11)", "total(21)", "total(31)"]);
}

#[test]
fn a_turn_that_failed_is_had_again_late() {
    let mut driven = Driven::of(&totals());
    for input in [10, 20] {
        driven.plan(input);
    }
    driven.finish(failing_on("total", &[11]));
    assert_eq!(driven.values("total"), [0, 21]);
    for _ in 0..2 {
        driven.reopen("total").unwrap();
        driven.finish(failing(&["total"]));
        assert_eq!(driven.failed("total").len(), 1);
    }
    driven.reopen("total").unwrap();
    driven.plan(30);
    driven.finish(well);
    assert_eq!(driven.run.result::<i64>("total").unwrap(), Some(63));
    assert!(driven.run.failures().is_empty());
}

#[test]
fn a_turn_that_waits_for_a_person_goes_on_and_others_have_theirs() {
    for by_id in [true, false] {
        let mut driven = Driven::of(&totals());
        driven.plan(10);
        driven.plan(20);
        for work in driven.prepare() {
            driven.end(work, well);
        }
        let turn = driven.prepare().remove(0);
        driven.run.hold(&turn.ticket(), Hold::Pause, None, None, Timestamp::from_millis(1));
        driven.keep();
        assert!(driven.run.only_waits());
        if by_id {
            driven.run.reopen(turn.id(), None).unwrap();
        } else {
            driven.run.reopen_paused(None);
        }
        driven.keep();
        assert_eq!(driven.run.open_len(), 1);
        driven.finish(well);
        assert_eq!(driven.run.result::<i64>("total").unwrap(), Some(32));
    }
}

#[test]
fn items_that_come_late_have_their_turns_at_a_state_inside_of_the_map() {
    let builder = Workflow::new("w")
        .add(step("list", up_to))
        .add(map("item", inc).after("list"))
        .add(accumulator("total", 0_i64, sum).after("item"))
        .add(reduce("sum", 0_i64, sum).after("total"));
    let workflow = built(builder);
    let mut driven = Driven::of(&workflow);
    for input in [3, 2] {
        driven.plan(input);
    }
    driven.finish(failing_on("list", &[3]));
    assert_eq!(driven.values("sum"), [4], "1 and 3");
    driven.reopen("list").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("sum"), [19, 4], "4, 6 and 9 come later");
    driven.plan(1);
    driven.finish(well);
    assert_eq!(driven.values("sum"), [19, 4, 10]);
}

#[test]
fn items_that_come_while_a_later_turn_is_under_way_have_theirs_after_it() {
    let builder = Workflow::new("w")
        .add(step("list", up_to))
        .add(map("item", inc).after("list"))
        .add(accumulator("total", 0_i64, sum).after("item"));
    let mut driven = Driven::of(&built(builder));
    driven.plan(2);
    driven.finish(failing(&["list"]));
    driven.plan(1);
    for _ in 0..3 {
        for work in driven.prepare() {
            driven.end(work, well);
        }
    }
    let turn = driven.prepare().remove(0);
    assert_eq!(turn.node().name, Some("total"));
    driven.reopen("list").unwrap();
    for _ in 0..3 {
        for work in driven.prepare() {
            driven.end(work, well);
        }
    }
    driven.end(turn, well);
    driven.finish(well);
    let turns: Vec<&String> = driven.ran.iter().filter(|ran| ran.starts_with("total")).collect();
    assert_eq!(turns, ["total(1)", "total(1)", "total(2)"]);
}

#[test]
fn states_after_states_take_what_comes_late_each_once() {
    let builder = Workflow::new("w")
        .add(step("a", inc))
        .add(accumulator("one", 0_i64, sum).after("a"))
        .add(accumulator("two", 0_i64, sum).after("one"));
    let mut driven = Driven::of(&built(builder));
    for input in [1, 10] {
        driven.plan(input);
    }
    driven.finish(failing_on("a", &[1]));
    assert_eq!(driven.run.result::<i64>("two").unwrap(), Some(11));
    driven.reopen("a").unwrap();
    driven.finish(well);
    let last = driven.ran.iter().filter(|ran| ran.starts_with("two")).collect::<Vec<_>>();
    assert_eq!(last, ["two(11)", "two(13)"]);
}

#[test]
fn what_waits_for_a_person_and_was_given_back_does_not_wait_for_one() {
    let mut driven = Driven::of(&built(Workflow::new("w").add(step("a", inc))));
    driven.plan(1);
    let work = driven.prepare().remove(0);
    driven.run.hold(&work.ticket(), Hold::Pause, None, None, Timestamp::from_millis(1));
    driven.keep();
    driven.run.give_back(&work.ticket());
    driven.keep();
    assert!(driven.run.reopen_paused(None).is_empty());
    driven.finish(well);
    assert_eq!(driven.values("a"), [2]);
}
