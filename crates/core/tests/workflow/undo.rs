//! What an input caused is undone, the last first, when something of it fails that asks for it.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tidewheel_core::event::{Absence, Event, Hold, Undo};
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Failure, Policy, kind, name};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::{
    Workflow, WorkflowBuilder, accumulator, compensation, map, reduce, rule, step,
};
use tidewheel_core::{Outcome, Runnable};

use crate::driven::{Driven, failing, undoing, well};
use crate::{double, inc};

const NOW: Timestamp = Timestamp::from_millis(1);

/// Adds a component `undo` and lets it undo these.
fn undone(builder: WorkflowBuilder, names: &[&str]) -> Workflow {
    let builder = builder.add(compensation("undo", |value: serde_json::Value| value));
    let rule = |builder: WorkflowBuilder, of: &&str| {
        builder.policy(name(*of), Policy::new().compensation_node("undo"))
    };
    names.iter().fold(builder, rule).build().unwrap()
}

fn chain(undoable: &[&str]) -> Workflow {
    let steps = [step("a", inc), step("b", double), step("c", inc), step("d", inc)];
    undone(Workflow::new("w").pipeline(steps), undoable)
}

/// What was undone, in order.
fn undos(driven: &Driven) -> Vec<&str> {
    driven.ran.iter().map(String::as_str).filter(|ran| ran.starts_with("undo")).collect()
}

fn is_ended(event: &Event) -> bool {
    matches!(event, Event::UndoEnded { .. })
}

#[test]
fn what_was_done_is_undone_the_last_first() {
    let driven = Driven::ran(&chain(&["a", "b", "c"]), 1, undoing("d"));
    assert_eq!(driven.ran, ["a(1)", "b(2)", "c(4)", "d(5)", "undo(5)", "undo(4)", "undo(2)"]);
    assert!(matches!(driven.log.last(), Some(Event::UndoEnded { input: 0 })));
    assert_eq!(driven.run.open_len(), 0);
    assert_eq!(driven.values("c"), [5], "the facts stay what they were");
    assert!(driven.values("undo").is_empty(), "to undo produces nothing");
    assert_eq!(driven.run.failures().len(), 1);
}

#[test]
fn what_cannot_be_undone_stays_and_nothing_to_undo_ends_at_once() {
    let driven = Driven::ran(&chain(&["b"]), 1, undoing("d"));
    assert_eq!(undos(&driven), ["undo(4)"]);
    let driven = Driven::ran(&chain(&["d"]), 1, undoing("d"));
    assert!(undos(&driven).is_empty(), "what failed was not done");
    assert_eq!(driven.count(is_ended), 1);
}

#[test]
fn a_failure_that_does_not_ask_for_it_undoes_nothing() {
    let driven = Driven::ran(&chain(&["a", "b", "c"]), 1, failing(&["d"]));
    assert!(undos(&driven).is_empty());
    assert_eq!(driven.count(|event| matches!(event, Event::UndoBegun { .. })), 0);
}

#[test]
fn what_work_said_is_undone_where_it_was_said() {
    let mut driven = Driven::of(&chain(&["a", "b", "c"]));
    driven.plan(1);
    for said in ["first", "second", "third"] {
        let work = driven.prepare().remove(0);
        let value = |text: &str| Value::new(format!("{said} {text}"));
        // The second time it says something else.
        for text in ["draft", "word"] {
            driven.run.register_undo(&work.ticket(), "undo", value(text)).unwrap();
            driven.keep();
        }
        driven.end(work, well);
    }
    driven.finish(undoing("d"));
    let words = [
        "undo(5)",
        "undo(\"third word\")",
        "undo(4)",
        "undo(\"second word\")",
        "undo(2)",
        "undo(\"first word\")",
    ];
    assert_eq!(undos(&driven), words);
}

#[test]
fn what_the_failed_work_itself_said_is_undone_first() {
    let mut driven = Driven::of(&chain(&["a"]));
    driven.plan(1);
    let work = driven.prepare().remove(0);
    driven.end(work, well);
    let work = driven.prepare().remove(0);
    driven.run.register_undo(&work.ticket(), "undo", Value::new("half of b")).unwrap();
    driven.keep();
    driven.end(work, undoing("b"));
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(\"half of b\")", "undo(2)"]);
}

#[test]
fn only_a_compensation_can_be_registered_and_only_while_work_is_under_way() {
    let mut driven = Driven::of(&chain(&[]));
    driven.plan(1);
    let work = driven.prepare().remove(0);
    let ticket = work.ticket();
    for stranger in ["b", "nobody"] {
        let failure = driven.run.register_undo(&ticket, stranger, Value::new(1)).map(|_| ()).unwrap_err();
        let message = format!("`{stranger}` is no component of the workflow that undoes something");
        assert_eq!(failure.message, message);
    }
    driven.end(work, well);
    assert!(driven.run.register_undo(&ticket, "undo", Value::new(1)).unwrap().is_empty(), "it is over");
    driven.finish(undoing("d"));
    assert!(undos(&driven).is_empty());
}

#[test]
fn of_several_inputs_only_the_one_that_failed_is_undone() {
    let mut driven = Driven::of(&chain(&["a", "b", "c"]));
    for input in [1, 10, 100] {
        driven.plan(input);
    }
    driven.finish(|runnable| {
        let is_second = runnable.input().get::<i64>().is_ok_and(|input| input == 23);
        if is_second { undoing("d")(runnable) } else { runnable.execute() }
    });
    assert_eq!(undos(&driven), ["undo(23)", "undo(22)", "undo(11)"]);
    assert_eq!(driven.values("d"), [6, 204], "the others go on");
    driven.plan(3);
    driven.finish(well);
    assert_eq!(driven.values("d"), [6, 204, 10]);
}

#[test]
fn what_is_under_way_comes_to_its_end_and_what_has_not_begun_never_begins() {
    let builder = Workflow::new("w")
        .add(step("bad", inc))
        .add(step("slow", double))
        .add(step("after", inc).after("slow"))
        .add(step("both", |a: i64, b: i64| a + b).after(["bad", "slow"]));
    let mut driven = Driven::of(&undone(builder, &["slow", "after", "both"]));
    driven.plan(5);
    let mut works = driven.prepare();
    driven.end(works.remove(0), undoing("bad"));
    assert!(driven.prepare().is_empty(), "nothing is undone while something is under way");
    driven.end(works.remove(0), well);
    driven.finish(well);
    assert_eq!(driven.ran, ["bad(5)", "slow(5)", "undo(10)"]);
    assert_eq!(driven.run.absence("after", 0), Some(Absence::UpstreamFailed));
}

#[test]
fn what_is_ready_or_waits_does_not_begin_and_what_is_outside_is_waited_for() {
    let steps = ["bad", "ready", "waiting", "outside"].map(|name| step(name, inc));
    let builder = steps.into_iter().fold(Workflow::new("w"), WorkflowBuilder::add);
    let mut driven = Driven::of(&undone(builder, &["ready", "waiting", "outside"]));
    driven.plan(5);
    let works = driven.prepare();
    let [bad, ready, waiting, outside]: [Runnable; 4] = works.try_into().unwrap();
    driven.run.give_back(&ready.ticket());
    driven.keep();
    driven.run.hold(&waiting.ticket(), Hold::RateLimit, None, Some(Timestamp::from_millis(9)), NOW);
    driven.keep();
    driven.run.hold(&outside.ticket(), Hold::External, None, None, NOW);
    driven.keep();
    driven.end(bad, undoing("bad"));
    assert_eq!((driven.run.open_len(), driven.run.next_due()), (1, None));
    driven.apply(outside.execute());
    driven.finish(well);
    assert_eq!(driven.ran, ["bad(5)", "undo(6)"]);
    let skipped = driven.run.failures().iter().filter(|failed| failed.skipped).count();
    assert_eq!(skipped, 2, "they say why they did not begin");
}

#[test]
fn rules_items_and_reduces_are_undone_each_by_itself() {
    let builder = Workflow::new("w")
        .add(rule("list").when(|n: &i64| *n > 0).then(|n: i64| (0..n).collect::<Vec<i64>>()))
        .add(map("item", inc).after("list"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(step("bad", |a: i64, b: i64| a + b).after(["sum", "sum"]));
    let driven = Driven::ran(&undone(builder, &["list", "item", "sum"]), 3, undoing("bad"));
    assert_eq!(undos(&driven), ["undo(6)", "undo(3)", "undo(2)", "undo(1)", "undo([0,1,2])"]);
}

#[test]
fn a_state_lets_the_turn_of_what_is_undone_pass_and_states_after_it_do_not_wait() {
    let sum = |total: i64, x: i64| total + x;
    let builder = Workflow::new("w")
        .add(step("a", inc))
        .add(step("bad", inc))
        .add(accumulator("one", 0_i64, sum).after("a"))
        .add(accumulator("two", 0_i64, sum).after("one"));
    let mut driven = Driven::of(&undone(builder, &["a"]));
    for input in [1, 10, 100] {
        driven.plan(input);
    }
    let mut works = driven.prepare();
    let slow = works.remove(0);
    // The second one is undone while it waits for the turn of the first.
    for work in works {
        let is_second = work.input().get::<i64>().is_ok_and(|input| input == 10);
        driven.end(work, |work| if is_second { undoing("bad")(work) } else { work.execute() });
    }
    driven.end(slow, well);
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(11)"]);
    assert_eq!(driven.run.absence("two", 1), Some(Absence::UpstreamFailed));
    assert_eq!(driven.values("one"), [0, 2, 103]);
    assert_eq!(driven.values("two"), [0, 2, 105], "the third input has its turns");
}

#[test]
fn what_comes_late_to_a_state_and_is_undone_holds_nobody_up() {
    let sum = |total: i64, x: i64| total + x;
    let builder = Workflow::new("w")
        .add(step("a", inc))
        .add(step("bad", inc))
        .add(accumulator("total", 0_i64, sum).after("a"));
    let mut driven = Driven::of(&undone(builder, &["a"]));
    driven.plan(1);
    driven.finish(failing(&["a", "bad"]));
    driven.reopen("a").unwrap();
    driven.reopen("bad").unwrap();
    let mut works = driven.prepare();
    driven.end(works.remove(1), undoing("bad"));
    driven.end(works.remove(0), well);
    driven.plan(10);
    driven.finish(well);
    assert_eq!(driven.values("total"), [0, 11]);
    assert_eq!(undos(&driven), ["undo(2)"]);
}

#[test]
fn a_list_of_what_is_undone_is_not_taken_apart() {
    let sum = |total: i64, x: i64| total + x;
    let builder = Workflow::new("w")
        .add(step("bad", inc))
        .add(step("list", |n: i64| (0..n).collect::<Vec<i64>>()))
        .add(map("item", inc).after("list"))
        .add(accumulator("total", 0_i64, sum).after("item"))
        .add(reduce("sum", 0_i64, sum).after("total"));
    let mut driven = Driven::of(&undone(builder, &["list"]));
    driven.plan(3);
    let mut works = driven.prepare();
    driven.end(works.remove(0), undoing("bad"));
    driven.end(works.remove(0), well);
    driven.plan(2);
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo([0,1,2])"]);
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::UpstreamFailed));
    assert_eq!(driven.values("sum"), [4], "the other input has its turns: 1 and 3");
}

#[test]
fn a_compensation_that_waits_for_a_person_goes_on_by_its_id() {
    let mut driven = Driven::of(&chain(&["a", "b"]));
    driven.plan(1);
    for _ in 0..3 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("c"));
    }
    let work = driven.prepare().remove(0);
    driven.run.hold(&work.ticket(), Hold::Pause, None, None, NOW);
    driven.keep();
    assert!(driven.run.only_waits());
    driven.run.reopen(work.id(), None).unwrap();
    driven.keep();
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(4)", "undo(2)"]);
}

#[test]
fn what_undoes_something_is_not_undone_itself() {
    let mut driven = Driven::of(&chain(&["a", "b"]));
    driven.plan(1);
    for _ in 0..3 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("c"));
    }
    let work = driven.prepare().remove(0);
    assert!(driven.run.register_undo(&work.ticket(), "undo", Value::new(7)).unwrap().is_empty());
    driven.end(work, well);
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(4)", "undo(2)"]);
}

#[test]
fn a_compensation_that_fails_does_not_stop_the_others_and_begins_no_other_undo() {
    let driven = Driven::ran(&chain(&["a", "b", "c"]), 1, |runnable| {
        let is_undo = runnable.node().name == Some("undo");
        let is_middle = is_undo && runnable.input().get::<i64>().is_ok_and(|input| input == 4);
        if is_middle {
            runnable.executed(Outcome::Failed(Failure::new("stuck"))).and_undo()
        } else {
            undoing("d")(runnable)
        }
    });
    assert_eq!(undos(&driven), ["undo(5)", "undo(4)", "undo(2)"]);
    assert_eq!(driven.count(|event| matches!(event, Event::UndoBegun { .. })), 1);
    assert_eq!(driven.count(is_ended), 1);
    let failed: Vec<_> = driven.run.failures().iter().map(|failed| failed.component).collect();
    assert!(failed.contains(&Some("undo")), "it is told: {failed:?}");
    assert!(driven.run.failed_works().is_empty(), "and is not tried again by hand");
}

#[test]
fn a_compensation_is_tried_again_under_its_policy() {
    let mut driven = Driven::of(&chain(&["a", "b"]));
    driven.plan(1);
    for _ in 0..3 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("c"));
    }
    let work = driven.prepare().remove(0);
    let failed = crate::waits::failed_attempt(&work);
    let due = failed.due();
    driven.run.fail_attempt(&work.ticket(), failed);
    driven.keep();
    assert!(driven.prepare().is_empty(), "the next one waits for it");
    assert_eq!(driven.run.next_due(), Some(due));
    let again = driven.run.prepare_retry(&work.ticket(), due).unwrap();
    driven.keep();
    assert_eq!((again.attempt(), again.id()), (1, work.id()));
    driven.end(again, well);
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(4)", "undo(2)"]);
}

#[test]
fn a_function_of_the_policy_undoes_without_a_component_and_without_the_hooks_of_the_work() {
    let undone = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&undone);
    let undo = Policy::new().compensation(move |node, value| {
        let name = node.name.unwrap_or_default().to_owned();
        seen.lock().unwrap().push((name, value.get::<i64>().unwrap()));
        Ok(())
    });
    let hooked = step("b", double)
        .hook_after(|_, _, output| output.get::<i64>().map(|_| ()).map_err(|error| Failure::of(&error)));
    let workflow = Workflow::new("w")
        .pipeline([step("a", inc), hooked, step("c", inc)])
        .policy(kind(tidewheel_core::policy::Kind::Step), undo)
        .build()
        .unwrap();
    let mut driven = Driven::of(&workflow);
    driven.plan(1);
    for _ in 0..3 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("c"));
    }
    driven.finish(well);
    assert_eq!(*undone.lock().unwrap(), [("b".to_owned(), 4), ("a".to_owned(), 2)]);
    assert_eq!(driven.run.failures().len(), 1);
}

#[test]
fn work_is_not_done_again_where_the_function_that_undoes_it_is_not_known_any_more() {
    let steps = || Workflow::new("w").pipeline([step("a", inc), step("b", inc)]);
    let undo = Policy::new().compensation(|_, _| Ok(()));
    let mut driven = Driven::of(&steps().policy(name("a"), undo).build().unwrap());
    driven.plan(1);
    for _ in 0..2 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("b"));
    }
    let mut other = Run::replay(&steps().build().unwrap(), "r", &driven.log).unwrap();
    let executed = other.prepare().remove(0).execute();
    let Outcome::Failed(failure) = executed.outcome() else { panic!("{executed:?}") };
    assert_eq!(failure.message, "nothing is known any more that undoes it");
    other.apply(executed);
    assert!(!other.is_runnable());
}

#[test]
fn a_second_failure_that_asks_for_it_changes_nothing() {
    let builder = Workflow::new("w").add(step("a", inc)).add(step("bad", inc)).add(step("worse", inc));
    let mut driven = Driven::of(&undone(builder, &["a"]));
    driven.plan(1);
    for work in driven.prepare() {
        let name = work.node().name.unwrap().to_owned();
        driven.end(work, |work| if name == "a" { work.execute() } else { undoing(&name)(work) });
    }
    driven.finish(well);
    assert_eq!(undos(&driven), ["undo(2)"]);
    assert_eq!(driven.count(is_ended), 1);
}

#[test]
fn what_was_forgotten_is_not_in_the_way_of_an_undo() {
    let workflow = chain(&["a"]);
    let mut run = workflow.run("r");
    for input in 0..5 {
        run.plan(input);
    }
    let before = run.prepare();
    run.purge_memory();
    run.plan(1_i64);
    while run.is_runnable() {
        for runnable in run.prepare() {
            run.apply(undoing("b")(runnable));
        }
    }
    assert!(before.into_iter().all(|runnable| run.apply(runnable.execute()).is_empty()));
    assert_eq!(run.results::<i64>("a").unwrap(), [2]);
}

#[test]
fn a_run_that_is_cancelled_while_it_undoes_is_over() {
    let mut driven = Driven::of(&chain(&["a", "b", "c"]));
    driven.plan(1);
    for _ in 0..4 {
        let work = driven.prepare().remove(0);
        driven.end(work, undoing("d"));
    }
    driven.run.cancel_all(&Failure::new("stop"), None);
    driven.keep();
    driven.finish(well);
    assert!(undos(&driven).is_empty() && !driven.run.is_runnable());
    assert!(driven.log.last().is_some_and(is_ended), "it does not look for ever as if it were being undone");
    assert_eq!(driven.log.iter().filter(|event| is_ended(event)).count(), 1);
}

#[test]
fn events_of_an_undo_that_do_not_follow_are_errors() {
    let workflow = chain(&["a", "b", "c"]);
    let mut driven = Driven::of(&workflow);
    driven.plan(1);
    driven.plan(2);
    let replays = |driven: &Driven, event: Event| {
        let log: Vec<Event> = driven.log.iter().cloned().chain([event]).collect();
        let error = Run::replay(&workflow, "r", &log).err().map(|error| error.index);
        assert!(error.is_none_or(|index| index == driven.log.len()));
        error.is_none()
    };
    let activated = |act: u32, undo: Undo| Event::UndoActivated { act, node: 0, undo, lineage: 0 };
    assert!(!replays(&driven, Event::UndoEnded { input: 0 }), "nothing is undone");
    assert!(!replays(&driven, activated(2, Undo::Fact(0))));
    assert!(!replays(&driven, Event::UndoBegun { input: 2, at: None }), "there is no such input");
    assert!(!replays(&driven, Event::UndoRegistered { act: 9, node: 0, value: Value::new(1) }));
    assert!(!replays(&driven, Event::RunnableReopened { act: 0, at: None }));
    driven.log.push(Event::UndoBegun { input: 0, at: None });
    assert!(!replays(&driven, Event::UndoBegun { input: 0, at: None }), "it has begun");
    assert!(!replays(&driven, Event::UndoEnded { input: 0 }), "something is under way");
    driven.log.push(Event::ActivationConsumed { act: 0 });
    assert!(!replays(&driven, activated(1, Undo::Fact(0))), "the place is taken");
    assert!(!replays(&driven, activated(2, Undo::Fact(1))), "of another input");
    assert!(
        !replays(&driven, activated(2, Undo::Fact(7)))
            && !replays(&driven, activated(2, Undo::Registered(0)))
    );
    assert!(replays(&driven, activated(2, Undo::Fact(0))));
    assert!(replays(&driven, Event::UndoEnded { input: 0 }));
    driven.log.push(Event::UndoEnded { input: 0 });
    assert!(!replays(&driven, Event::UndoEnded { input: 0 }), "it is over");
    assert!(!replays(&driven, activated(2, Undo::Fact(0))));
}

#[test]
fn events_of_chances_holds_and_undos_are_lines_that_can_be_read() {
    let workflow = chain(&["a"]);
    let at = Some(NOW);
    let events = [
        (Event::RunnableReopened { act: 3, at }, json!({"runnable_reopened": {"act": 3, "at": NOW}})),
        (Event::UndoBegun { input: 1, at: None }, json!({"undo_begun": {"input": 1}})),
        (Event::UndoEnded { input: 1 }, json!({"undo_ended": {"input": 1}})),
    ];
    for (event, line) in events {
        let written = event.to_json(&workflow).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), line);
    }
    let holds = [
        Hold::Admission,
        Hold::Delay,
        Hold::Schedule,
        Hold::RateLimit,
        Hold::ConcurrencyLimit,
        Hold::CircuitBreaker,
        Hold::Duplicate,
        Hold::External,
        Hold::Pause,
    ];
    let held = holds.into_iter().flat_map(|why| {
        [
            Event::RunnableHeld { act: 1, why, on: None, until: None, at: None },
            Event::RunnableHeld { act: 1, why, on: Some("it".to_owned()), until: at, at },
        ]
    });
    let events = held.chain([
        Event::UndoRegistered { act: 2, node: 1, value: Value::new(vec![1, 2]) },
        Event::UndoActivated { act: 2, node: 1, undo: Undo::Fact(3), lineage: 4 },
        Event::UndoActivated { act: 2, node: 1, undo: Undo::Registered(3), lineage: 4 },
    ]);
    for event in events {
        let written = event.to_json(&workflow).unwrap();
        let read = Event::from_json(&written, &workflow).unwrap();
        assert_eq!(read.to_json(&workflow).unwrap(), written);
    }
    for line in [
        r#"{"undo_registered":{"act":0,"node":"stranger","value":1}}"#,
        r#"{"undo_activated":{"act":0,"node":"stranger","undo":{"fact":0},"lineage":0}}"#,
        r#"{"undo_activated":{"act":0,"node":"a","undo":{"other":0},"lineage":0}}"#,
        r#"{"runnable_held":{"act":0,"why":"boredom"}}"#,
        r#"{"runnable_reopened":{}}"#,
    ] {
        assert!(Event::from_json(line, &workflow).is_err(), "{line}");
    }
}
