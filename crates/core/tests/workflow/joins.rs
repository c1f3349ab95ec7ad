//! Joins.

use serde_json::json;
use tidewheel_core::Outcome;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, rule, step};

use crate::{double, inc, produced, produced_set, ran};

fn sum_of_two() -> Workflow {
    Workflow::new("w")
        .add(step("a", inc))
        .add(step("b", double))
        .add(step("sum", |a: i64, b: i64| a + b).after(["a", "b"]))
        .build()
        .unwrap()
}

#[test]
fn c1_values_come_in_declared_order() {
    let run = ran(&sum_of_two(), 5_i64);
    assert_eq!(produced(&run), [json!(6), json!(10), json!([6, 10]), json!(16)]);
    let backwards = Workflow::new("w")
        .add(step("a", inc))
        .add(step("b", double))
        .add(step("difference", |b: i64, a: i64| b - a).after(("b", "a")))
        .build()
        .unwrap();
    assert_eq!(ran(&backwards, 5_i64).result::<i64>("difference").unwrap(), Some(4));
}

#[test]
fn c2_three_children_of_one_join() {
    let workflow = Workflow::new("w")
        .add(step("a", double))
        .add(step("b", |x: i64| x * 3))
        .add(step("pair", |a: i64, b: i64| (a, b)).after(["a", "b"]))
        .add(step("product", |pair: (i64, i64)| pair.0 * pair.1).after("pair"))
        .add(step("sum", |pair: (i64, i64)| pair.0 + pair.1).after("pair"))
        .add(step("difference", |pair: (i64, i64)| pair.1 - pair.0).after("pair"))
        .build()
        .unwrap();
    let run = ran(&workflow, 2_i64);
    let results = ["product", "sum", "difference"].map(|name| run.result::<i64>(name).unwrap().unwrap());
    assert_eq!(results, [24, 10, 2]);
}

#[test]
fn c2_three_children_with_a_join_each_are_pending_after_two_cycles() {
    // A join is a piece of work of its own here, so the first cycle runs the parents and the second the joins.
    let workflow = Workflow::new("w")
        .add(step("a", double))
        .add(step("b", |x: i64| x * 3))
        .add(step("product", |a: i64, b: i64| a * b).after(["a", "b"]))
        .add(step("sum", |a: i64, b: i64| a + b).after(["a", "b"]))
        .add(step("difference", |a: i64, b: i64| b - a).after(["a", "b"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(2_i64);
    run.react().unwrap().react().unwrap();
    let pending: Vec<_> = run.next_runnables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(pending, [Some("product"), Some("sum"), Some("difference")]);
    run.run_until_satisfied().unwrap();
    let results = ["product", "sum", "difference"].map(|name| run.result::<i64>(name).unwrap().unwrap());
    assert_eq!(results, [24, 10, 2]);
}

#[test]
fn c3_a_join_that_waits_is_not_queued_again_and_nothing_spins() {
    let workflow = sum_of_two();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let mut runnables = run.prepare();
    let (second, first) = (runnables.pop().unwrap(), runnables.pop().unwrap());
    let joined = |events: &[Event]| {
        let received = |event: &&Event| matches!(event, Event::JoinFactReceived { part: Ok(_), .. });
        let woken = |event: &&Event| matches!(event, Event::RunnableActivated { .. });
        (events.iter().filter(received).count(), events.iter().filter(woken).count())
    };

    let executed = first.execute();
    assert_eq!(joined(run.apply(executed)), (1, 0), "it came, and nothing was woken");
    let facts = run.facts_len();
    for _ in 0..100 {
        run.react().unwrap();
        assert!(run.last_events().is_empty(), "there is nothing to do");
    }
    assert_eq!(run.facts_len(), facts);
    assert_eq!(run.pending_runnables(), [second.id()], "the other parent is still out");
    assert!(run.is_runnable());

    let executed = second.execute();
    assert_eq!(joined(run.apply(executed)), (1, 1), "the last part wakes the join once");
    run.run_until_satisfied().unwrap();
    assert_eq!(run.results::<i64>("sum").unwrap(), [16]);
}

#[test]
fn c4_the_last_part_completes_the_join_whatever_its_order() {
    let workflow = sum_of_two();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let mut runnables = run.prepare();
    let second = runnables.pop().unwrap();
    let executed = second.execute();
    let events = run.apply(executed).to_vec();
    assert!(events.iter().any(|event| matches!(event, Event::JoinFactReceived { .. })));
    assert!(run.next_runnables().is_empty(), "nothing is queued again while the join waits");
    let executed = runnables.pop().unwrap().execute();
    run.apply(executed);
    run.run_until_satisfied().unwrap();
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(16));
}

#[test]
fn c7_inputs_one_after_the_other_do_not_mix() {
    let workflow = sum_of_two();
    let mut run = workflow.run("r");
    run.react_until_satisfied(10_i64).unwrap();
    run.react_until_satisfied(1_i64).unwrap();
    assert_eq!(run.results::<i64>("sum").unwrap(), [31, 4]);
}

#[test]
fn c9_a_parent_of_two_joins() {
    let workflow = Workflow::new("w")
        .add(step("generate", inc))
        .add(step("plan", double))
        .add(step("execute_tools", |x: i64| x * 10))
        .add(step("classify", |a: i64, b: i64, c: i64| a + b + c).after([
            "generate",
            "plan",
            "execute_tools",
        ]))
        .add(step("process", |a: i64, b: i64| a - b).after(["generate", "execute_tools"]))
        .build()
        .unwrap();
    let run = ran(&workflow, 1_i64);
    assert_eq!(run.result::<i64>("classify").unwrap(), Some(14));
    assert_eq!(run.result::<i64>("process").unwrap(), Some(-8));
}

#[test]
fn c11_a_join_tells_each_part_and_its_end() {
    let workflow = Workflow::new("w")
        .add(step("a", inc))
        .add(step("b", double))
        .add(step("c", |x: i64| x * 10))
        .add(step("sum", |a: i64, b: i64, c: i64| a + b + c).after(["a", "b", "c"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let mut told = Vec::new();
    while run.is_runnable() {
        for runnable in run.prepare().into_iter().rev() {
            let executed = runnable.execute();
            for event in run.apply(executed) {
                match event {
                    Event::JoinFactReceived { slot, part, .. } => {
                        assert!(part.is_ok());
                        told.push(format!("part {slot}"));
                    }
                    Event::JoinCompleted { .. } => told.push("completed".to_owned()),
                    Event::FactProduced { value, .. } => told.push(value.to_json().unwrap().to_string()),
                    _ => {}
                }
            }
        }
    }
    // Parts have no edges that would have to be labelled anew: each arrival is an event once and for all.
    assert_eq!(
        told,
        ["50", "part 2", "10", "part 1", "6", "part 0", "completed", "[6,10,50]", "66"],
        "in the order of arrival; the list in the order of the parents"
    );
}

#[test]
fn c12_inputs_in_flight_at_once_never_mix() {
    let workflow = Workflow::new("w")
        .add(step("twice", double))
        .add(step("thrice", |x: i64| x * 3))
        .add(step("pair", |a: i64, b: i64| (a, b)).after(["twice", "thrice"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in [10_i64, 1, 7, 7, 3] {
        run.plan(input);
    }
    // The worst order: everything backwards.
    while run.is_runnable() {
        let mut runnables = run.prepare();
        runnables.reverse();
        for runnable in runnables {
            let executed = runnable.execute();
            run.apply(executed);
        }
    }
    assert_eq!(run.results::<(i64, i64)>("pair").unwrap(), [(20, 30), (2, 3), (14, 21), (14, 21), (6, 9)]);
}

#[test]
fn c13_a_join_that_is_built_again_is_the_same_join() {
    let code = || {
        Workflow::new("w")
            .add(step("twice", double))
            .add(step("thrice", |x: i64| x * 3))
            .add(step("sum", |a: i64, b: i64| a + b).after(["twice", "thrice"]))
    };
    let (workflow, again) = (code().build().unwrap(), code().build().unwrap());
    assert_eq!(workflow.signature(), again.signature());
    assert_eq!(workflow.to_mermaid(), again.to_mermaid());

    let mut run = workflow.run("r");
    let mut log: Vec<Event> = run.plan(5_i64).to_vec();
    let mut halfway = 0;
    while run.is_runnable() {
        let runnables = run.prepare();
        log.extend_from_slice(run.last_events());
        for runnable in runnables {
            let executed = runnable.execute();
            log.extend_from_slice(run.apply(executed));
            // Once one part has come and the other has not.
            halfway = if halfway == 0 { log.len() } else { halfway };
        }
    }
    let expected = [json!(10), json!(15), json!([10, 15]), json!(25)];
    assert_eq!(produced(&run), expected);
    assert_eq!(produced(&ran(&again, 5_i64)), expected, "the same code");

    let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let replayed = Run::replay_json(&again, "r", lines.iter().map(String::as_str)).unwrap();
    assert_eq!(produced(&replayed), expected, "its log");
    let mut resumed = Run::replay_json(&again, "r", lines[..halfway].iter().map(String::as_str)).unwrap();
    for lost in resumed.pending_runnables() {
        resumed.release(lost);
    }
    resumed.run_until_satisfied().unwrap();
    assert_eq!(produced(&resumed), expected, "its log up to where the join waits");
    let ids = |run: &Run| run.reactions().iter().map(|fact| fact.id).collect::<Vec<_>>();
    assert_eq!(ids(&resumed), ids(&run));
}

#[test]
fn a_join_that_misses_a_part_is_told_why() {
    let workflow = Workflow::new("w")
        .add(step("a", inc))
        .add(rule("b").when(|x: &i64| *x > 100).then(double))
        .add(step("sum", |a: i64, b: i64| a + b).after(["a", "b"]))
        .build()
        .unwrap();
    let run = ran(&workflow, 5_i64);
    assert!(!run.is_runnable());
    assert_eq!(run.absence("sum", 0), None, "nobody waits for the sum");
    assert_eq!(produced_set(&run), [6]);

    let mut failing = sum_of_two().run("r");
    failing.plan(5_i64);
    for runnable in failing.prepare() {
        let executed = match runnable.node().name {
            Some("a") => runnable.executed(Outcome::Skipped(Failure::new("left out"))),
            _ => runnable.executed(Outcome::Failed(Failure::new("broken"))),
        };
        failing.apply(executed);
    }
    failing.run_until_satisfied().unwrap();
    assert!(!failing.is_runnable());
    assert_eq!(failing.absence("sum", 0), Some(Absence::UpstreamFailed), "the graver reason is told");
}
