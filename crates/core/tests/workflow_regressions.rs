//! What once went wrong in workflows: each test would have caught it.

use tidewheel_core::Outcome;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::fact::Value;
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, WorkflowBuilder, cond, condition, map, reduce, rule, step};

fn inc(x: i64) -> i64 {
    x + 1
}

fn a_and_b() -> WorkflowBuilder {
    Workflow::new("w").add(step("a", inc)).add(step("b", |x: i64| x * 2))
}

#[test]
fn no_component_is_dropped_when_a_rule_refers_to_a_condition_after_it() {
    let built = Workflow::new("w")
        .add(rule("r").when_all(cond("c")).then(|x: i64| x * 10))
        .add(condition("c", |x: &i64| *x > 1).after("r"))
        .add(step("s", inc).after("c"))
        .build();
    if let Ok(workflow) = built {
        assert_eq!(workflow.components().count(), 3);
    }
}

#[test]
fn a_condition_of_several_arguments_sees_its_parents() {
    let workflow = a_and_b()
        .add(condition("less", |a: i64, b: i64| a < b).after(["a", "b"]))
        .add(step("s", |pair: (i64, i64)| pair.0).after("less"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(5_i64).unwrap();
    assert_eq!(run.result::<i64>("s").unwrap(), Some(6));
}

#[test]
fn a_rule_of_several_arguments_sees_its_parents() {
    let workflow = a_and_b()
        .add(rule("r").when(|a: i64, b: i64| a < b).then(|a: i64, b: i64| a + b).after(["a", "b"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(5_i64).unwrap();
    assert_eq!(run.result::<i64>("r").unwrap(), Some(16));
}

#[test]
fn a_when_of_another_arity_is_refused() {
    let built = a_and_b().add(rule("r").when(|_: i64, _: i64| true).then(inc).after("a")).build();
    assert!(built.is_err());
}

#[test]
fn a_log_that_dispatches_what_is_over_is_refused() {
    let workflow = Workflow::new("w").add(step("a", inc)).build().unwrap();
    let mut run = workflow.run("r");
    let mut log = run.plan(1_i64).to_vec();
    let runnable = run.prepare().remove(0);
    let dispatched = run.last_events().to_vec();
    log.extend(dispatched.clone());
    log.extend_from_slice(run.apply(runnable.execute()));
    log.extend(dispatched);
    if let Ok(mut run) = Run::replay(&workflow, "r", &log) {
        let work = run.pending_runnables();
        work.into_iter().for_each(|id| assert!(run.release(id).len() <= 1));
        let again = run.prepare().remove(0).execute();
        run.apply(again);
    }
}

#[test]
fn a_fallback_for_a_list_is_taken_apart() {
    let workflow = Workflow::new("w")
        .add(map("m", inc))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("m"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan("no list".to_owned());
    while run.is_runnable() {
        for runnable in run.prepare() {
            let mut executed = runnable.execute();
            if matches!(executed.outcome(), Outcome::Failed(failure) if failure.message.contains("no list of"))
            {
                executed = executed.with_outcome(Outcome::Completed(Value::new(vec![1_i64, 2])));
            }
            run.apply(executed);
        }
    }
    assert_eq!((run.result::<i64>("sum").unwrap(), run.absence("sum", 0)), (Some(5), None));
}

#[test]
fn a_result_from_before_a_purge_changes_nothing() {
    let workflow = Workflow::new("w").add(step("a", inc)).build().unwrap();
    let mut run = workflow.run("r");
    run.plan(1_i64);
    let old = run.prepare().remove(0);
    run.purge_memory();
    run.plan(100_i64);
    let new = run.prepare().remove(0);
    run.apply(old.execute());
    run.apply(new.execute());
    assert_eq!(run.results::<i64>("a").unwrap(), [101]);
}

#[test]
fn a_skipped_condition_is_told_as_skipped() {
    let workflow = Workflow::new("w")
        .add(rule("r").when(|_: i64| async { true }).then(inc))
        .add(step("other", inc))
        .add(step("sum", |a: i64, b: i64| a + b).after(["r", "other"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(1_i64);
    let mut skipped = Vec::new();
    while run.is_runnable() {
        for runnable in run.prepare() {
            let is_rule = runnable.node().name == Some("r");
            let executed = runnable.execute();
            let executed =
                if is_rule { executed.with_outcome(Outcome::Skipped(Failure::new("no"))) } else { executed };
            let events = run.apply(executed);
            skipped.extend(
                events.iter().filter(|event| matches!(event, Event::RunnableSkipped { .. })).cloned(),
            );
        }
    }
    assert_eq!((skipped.len(), run.absence("r", 0)), (1, Some(Absence::Skipped)));
}

#[test]
fn a_map_takes_several_parents_as_a_list() {
    let workflow = a_and_b().add(map("m", |x: i64| x + 100).after(["a", "b"])).build().unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(5_i64).unwrap();
    assert_eq!(run.results::<i64>("m").unwrap(), [106, 110]);
}
