//! Events and replay.

use serde_json::{Value, json};
use tidewheel_core::event::Event;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, rule, step};
use tidewheel_core::{Change, EventError};

use crate::{double, inc, produced};

fn everything() -> Workflow {
    Workflow::new("w")
        .add(step("list", |n: i64| (0..n).collect::<Vec<_>>()))
        .add(map("item", inc).after("list"))
        .add(rule("even").when(|x: &i64| x % 2 == 0).then(double).after("item"))
        .add(step("pair", |a: i64, b: i64| a * 10 + b).after(["item", "even"]))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("pair"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("sum"))
        .add(
            step("bad", |x: i64| if x > 10 { Err(format!("{x} is too much")) } else { Ok(x) }).after("total"),
        )
        .build()
        .unwrap()
}

/// Runs inputs to the end and keeps every event.
fn logged(workflow: &Workflow, inputs: &[i64]) -> (Run, Vec<Event>) {
    let mut run = workflow.run("r");
    let mut log = Vec::new();
    for input in inputs {
        log.extend_from_slice(run.plan(*input));
    }
    while run.is_runnable() {
        let runnables = run.prepare();
        log.extend_from_slice(run.last_events());
        for runnable in runnables {
            let executed = runnable.execute();
            log.extend_from_slice(run.apply(executed));
        }
    }
    (run, log)
}

#[test]
fn h1_events_of_a_chain_come_in_order() {
    let workflow = Workflow::new("w").pipeline([step("a", inc), step("b", inc)]).build().unwrap();
    let (_, log) = logged(&workflow, &[1]);
    let names: Vec<String> = log
        .iter()
        .map(|event| event.to_json(&workflow).unwrap())
        .map(|line| line.split('"').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "fact_produced",
            "runnable_activated",
            "runnable_dispatched",
            "fact_produced",
            "activation_consumed",
            "runnable_activated",
            "runnable_dispatched",
            "fact_produced",
            "activation_consumed",
        ]
    );
}

#[test]
fn h2_a_replayed_run_is_the_run_and_goes_on_like_it() {
    let workflow = everything();
    let (run, log) = logged(&workflow, &[3, 0, 5]);
    let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let mut replayed = Run::replay_json(&workflow, "r", lines.iter().map(String::as_str)).unwrap();
    assert_eq!(produced(&replayed), produced(&run));
    assert_eq!(replayed.is_runnable(), run.is_runnable());
    assert_eq!(replayed.failures().len(), run.failures().len());
    let mut live = run;
    live.react_until_satisfied(4_i64).unwrap();
    replayed.react_until_satisfied(4_i64).unwrap();
    assert_eq!(produced(&replayed), produced(&live), "a stored value works like the one it was");
}

#[test]
fn h4_no_events_give_an_empty_run() {
    let run = Run::replay(&everything(), "r", []).unwrap();
    assert!(run.reactions().is_empty() && !run.is_runnable());
}

#[test]
fn h7_what_is_no_event_is_an_error_and_no_panic() {
    let workflow = everything();
    for line in ["", "{}", "[]", "{\"fact_produced\":{}}", "{\"activation_consumed\":{\"act\":-1}}"] {
        assert!(matches!(Event::from_json(line, &workflow), Err(EventError::Malformed(_))), "{line}");
    }
    let stranger = r#"{"condition_satisfied":{"node":"stranger","fact":0}}"#;
    assert_eq!(
        Event::from_json(stranger, &workflow).unwrap_err().to_string(),
        "the event is about `stranger`, which the workflow does not have"
    );
    let (_, log) = logged(&workflow, &[3]);
    for skipped in 0..log.len() {
        // A log with a hole is an error or a run, never a panic.
        drop(Run::replay(&workflow, "r", log[..skipped].iter().chain(&log[skipped + 1..])));
    }
    let error = Run::replay(&workflow, "r", &log[1..]).unwrap_err();
    assert_eq!(error.index, 0);
}

#[test]
fn h9_what_came_from_a_fact_is_found() {
    let workflow = Workflow::new("branch")
        .add(step("inc", inc))
        .add(step("add2", |x: i64| x + 2).after("inc"))
        .add(step("add4", |x: i64| x + 4).after("inc"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(2_i64).unwrap();
    run.react_until_satisfied(2_i64).unwrap();
    let since = |run: &Run, fact: usize| -> Vec<Value> {
        let id = run.reactions()[fact].id;
        run.produced_since(id).iter().map(|fact| fact.value.to_json().unwrap()).collect()
    };
    assert_eq!(since(&run, 0), [json!(3), json!(5), json!(7)], "of the input, and of no other input");
    assert_eq!(since(&run, 1), [json!(5), json!(7)]);
    assert!(since(&run, 2).is_empty());
    let mut elsewhere = workflow.run("other");
    elsewhere.react_until_satisfied(2_i64).unwrap();
    assert!(run.produced_since(elsewhere.reactions()[1].id).is_empty(), "a fact of another run");
}

#[test]
fn h9_what_came_from_a_part_of_a_join_or_an_item_of_a_map_is_found() {
    let workflow = Workflow::new("w")
        .add(step("list", |n: i64| (1..=n).collect::<Vec<_>>()))
        .add(map("item", double).after("list"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(step("other", inc))
        .add(step("both", |a: i64, b: i64| a * b).after(["sum", "other"]))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(3_i64).unwrap();
    let since = |component: &str, place: usize| -> Vec<Value> {
        let id = run.productions_of(component).unwrap()[place].id;
        run.produced_since(id).iter().map(|fact| fact.value.to_json().unwrap()).collect()
    };
    let joined = [json!([12, 4]), json!(48)];
    assert_eq!(since("item", 1), [vec![json!(12)], joined.to_vec()].concat(), "the second item");
    assert_eq!(since("other", 0), joined, "the second part");
    assert_eq!(since("both", 0), [json!(null); 0]);
}

#[test]
fn k3_names_that_were_computed_survive_the_log() {
    let code = || {
        let names: Vec<String> =
            (0..5).map(|place| format!("step {} of \"{}\"", place, place * place)).collect();
        let mut builder = Workflow::new(format!("of {}", names.len()));
        for (place, name) in names.iter().enumerate() {
            let after: Vec<String> =
                place.checked_sub(1).map(|before| names[before].clone()).into_iter().collect();
            builder = builder.add(step(name.clone(), inc).after(after));
        }
        builder.build().unwrap()
    };
    let workflow = code();
    let (run, log) = logged(&workflow, &[1]);
    let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let stored = serde_json::to_string(&workflow.signature()).unwrap();

    let rebuilt = code();
    assert!(rebuilt.changes_since(&serde_json::from_str(&stored).unwrap()).is_empty());
    let replayed = Run::replay_json(&rebuilt, "r", lines.iter().map(String::as_str)).unwrap();
    let named = |run: &Run| -> Vec<(Option<String>, i64)> {
        let facts = run.reactions().into_iter();
        facts.map(|fact| (fact.producer.map(str::to_owned), fact.value.get().unwrap())).collect()
    };
    assert_eq!(named(&replayed), named(&run));
    assert_eq!(replayed.result::<i64>("step 4 of \"16\"").unwrap(), Some(6));
}

#[test]
fn k2_any_function_may_be_work_and_a_value_that_cannot_be_stored_is_an_error() {
    // What a closure captured need not be stored: after a restart it comes from the definition again. What
    // flows must be a serde type, which the compiler checks (see `step`); what serde cannot write is told.
    let captured = std::sync::Mutex::new(0);
    let counts = move |x: i64| {
        *captured.lock().unwrap() += 1;
        x
    };
    let workflow = Workflow::new("w")
        .pipeline([step("path", i64::abs), step("closure", counts), step("item", crate::double)])
        .build()
        .unwrap();
    let (run, _) = logged(&workflow, &[-4]);
    assert_eq!(run.result::<i64>("item").unwrap(), Some(8));

    let keyed = |x: i64| std::collections::BTreeMap::from([((x, x), x)]);
    let workflow = Workflow::new("w").add(step("keyed", keyed)).build().unwrap();
    let (run, log) = logged(&workflow, &[1]);
    assert_eq!(run.productions().len(), 1, "in memory nothing is written");
    let unwritten: Vec<String> = log
        .iter()
        .filter_map(|event| event.to_json(&workflow).err())
        .map(|error| error.to_string())
        .collect();
    assert_eq!(unwritten.len(), 1);
    assert!(unwritten[0].contains("BTreeMap<(i64, i64), i64>"), "{}", unwritten[0]);
}

#[test]
fn h14_a_failure_is_in_the_log_and_is_not_run_again() {
    let workflow = everything();
    let (run, log) = logged(&workflow, &[5]);
    assert_eq!(run.failures().len(), 1);
    let mut replayed = Run::replay(&workflow, "r", &log).unwrap();
    assert_eq!(replayed.failures()[0].failure, run.failures()[0].failure);
    assert!(replayed.prepare().is_empty());
}

#[test]
fn what_was_under_way_is_known_after_a_replay_and_can_be_offered_again() {
    let workflow = Workflow::new("w").add(step("a", inc)).build().unwrap();
    let mut run = workflow.run("r");
    let mut log = run.plan(1_i64).to_vec();
    let lost = run.prepare();
    log.extend_from_slice(run.last_events());
    drop(lost);
    let mut resumed = Run::replay(&workflow, "r", &log).unwrap();
    assert!(resumed.is_runnable() && resumed.prepare().is_empty());
    let pending = resumed.pending_runnables();
    assert_eq!(pending, run.pending_runnables());
    resumed.release(pending[0]);
    resumed.run_until_satisfied().unwrap();
    assert_eq!(resumed.result::<i64>("a").unwrap(), Some(2));
}

#[test]
fn a_piece_of_work_can_be_made_again_elsewhere_from_its_record() {
    let workflow = everything();
    let mut run = workflow.run("r");
    let mut log = run.plan(3_i64).to_vec();
    let record = serde_json::to_string(&run.prepare()[0].to_ref()).unwrap();
    log.extend_from_slice(run.last_events());

    let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let mut elsewhere = Run::replay_json(&workflow, "r", lines.iter().map(String::as_str)).unwrap();
    let again = elsewhere.prepare_again(&serde_json::from_str(&record).unwrap()).unwrap();
    let executed = again.execute();
    assert!(!elsewhere.apply(executed).is_empty());
    assert!(
        elsewhere.prepare_again(&serde_json::from_str(&record).unwrap()).is_none(),
        "it came back already"
    );
    assert!(workflow.run("other").prepare_again(&serde_json::from_str(&record).unwrap()).is_none());
}

#[test]
fn a_changed_definition_is_told_node_by_node() {
    let before = Workflow::new("w").add(step("a", inc)).add(step("b", inc).after("a")).add(step("c", inc));
    let after = Workflow::new("w").add(step("a", inc).version(2)).add(step("b", inc)).add(step("d", inc));
    let stored = before.build().unwrap().signature();
    let text = serde_json::to_string(&stored).unwrap();
    let changes = after.build().unwrap().changes_since(&serde_json::from_str(&text).unwrap());
    assert_eq!(
        changes,
        [
            Change::Removed("c".to_owned()),
            Change::Changed("a".to_owned()),
            Change::Changed("b".to_owned()),
            Change::Added("d".to_owned()),
        ]
    );
}
