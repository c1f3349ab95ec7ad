//! Accumulators and state machines.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidewheel_core::event::Event;
use tidewheel_core::fact::Value;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, accumulator, map, rule, state_machine, step};

use crate::{inc, produced, ran};

fn counter() -> Workflow {
    Workflow::new("w").add(accumulator("counter", 0_i64, |sum: i64, x: i64| sum + x)).build().unwrap()
}

#[test]
fn e1_the_initial_state_and_each_next_one_are_produced() {
    assert_eq!(produced(&ran(&counter(), 5_i64)), [json!(0), json!(5)]);
}

#[test]
fn e3_equal_inputs_accumulate() {
    let workflow = counter();
    let mut run = workflow.run("r");
    for _ in 0..3 {
        run.react_until_satisfied(1_i64).unwrap();
    }
    assert_eq!(produced(&run), [json!(0), json!(1), json!(2), json!(3)]);
}

#[test]
fn e7_a_failing_reducer_leaves_the_state_as_it_was() {
    let workflow = Workflow::new("w")
        .add(accumulator(
            "counter",
            0_i64,
            |sum: i64, x: i64| if x < 0 { panic!("negative") } else { sum + x },
        ))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in [1_i64, -1, 2] {
        run.plan(input);
    }
    run.run_until_satisfied().unwrap();
    assert_eq!(run.result::<i64>("counter").unwrap(), Some(3));
    assert_eq!(run.failures().len(), 1);
}

#[test]
fn inputs_in_flight_all_count_in_the_order_of_the_inputs() {
    let workflow = Workflow::new("w")
        .add(step("inc", inc))
        .add(rule("odd").when(|x: &i64| x % 2 == 1).then(|x: i64| x).after("inc"))
        .add(
            accumulator("seen", Vec::<i64>::new(), |mut seen: Vec<i64>, x: i64| {
                seen.push(x);
                seen
            })
            .after("odd"),
        )
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in 0_i64..6 {
        run.plan(input);
    }
    while run.is_runnable() {
        for runnable in run.prepare().into_iter().rev() {
            let executed = runnable.execute();
            run.apply(executed);
        }
    }
    assert_eq!(run.result::<Vec<i64>>("seen").unwrap().unwrap(), [1, 3, 5]);
}

#[test]
fn items_of_maps_count_in_their_order_over_all_inputs() {
    let workflow = Workflow::new("w")
        .add(map("item", inc))
        .add(
            accumulator("seen", Vec::<i64>::new(), |mut seen: Vec<i64>, x: i64| {
                seen.push(x);
                seen
            })
            .after("item"),
        )
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in [vec![1_i64, 2], vec![], vec![3]] {
        run.plan(input);
    }
    while run.is_runnable() {
        for runnable in run.prepare().into_iter().rev() {
            let executed = runnable.execute();
            run.apply(executed);
        }
    }
    let longest = run.results::<Vec<i64>>("seen").unwrap().into_iter().max_by_key(Vec::len).unwrap();
    assert_eq!(longest, [2, 3, 4]);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Lock {
    code: String,
    locked: bool,
}

#[test]
fn e9_a_state_machine_reacts_to_its_state() {
    let workflow = Workflow::new("w")
        .add(
            state_machine(
                "lock",
                Lock { code: "secret".to_owned(), locked: true },
                |lock: Lock, attempt: String| Lock { locked: lock.locked && attempt != lock.code, ..lock },
            )
            .reactor(
                "granted",
                |lock: &Lock| !lock.locked,
                |_: Lock| "access_granted".to_owned(),
            ),
        )
        .build()
        .unwrap();
    let wrong = ran(&workflow, "guess".to_owned());
    assert!(wrong.result::<Lock>("lock").unwrap().unwrap().locked);
    assert_eq!(wrong.result::<String>("lock.granted").unwrap(), None);
    let right = ran(&workflow, "secret".to_owned());
    assert!(!right.result::<Lock>("lock").unwrap().unwrap().locked);
    assert_eq!(right.result::<String>("lock.granted").unwrap().unwrap(), "access_granted");
}

#[test]
fn a_signal_goes_to_one_component_and_keeps_nobody_waiting() {
    let workflow = Workflow::new("approval")
        .add(step("order", |x: i64| x * 10))
        .add(accumulator("total", 0_i64, |sum: i64, x: i64| sum + x).after("order"))
        .add(step("approve", |name: String| format!("by {name}")))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    let mut log: Vec<Event> = run.plan(1_i64).to_vec();
    log.extend_from_slice(run.plan_signal("approve", Value::new("ada"), None).unwrap());
    log.extend_from_slice(run.plan(2_i64));
    run.run_until_satisfied().unwrap();
    assert_eq!(run.results::<i64>("total").unwrap(), [0, 10, 30], "the state did not wait for the signal");
    assert_eq!(run.result::<String>("approve").unwrap().unwrap(), "by ada");
    assert_eq!(run.last_input(), Some(2));
    let error = run.plan_signal("total", Value::new(1), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`total` comes after other components, and a signal goes to one that takes the input"
    );
    assert!(run.plan_signal("nobody", Value::new(1), None).is_err());
    let lines: Vec<String> = log.iter().map(|event| event.to_json(&workflow).unwrap()).collect();
    let mut again = Run::replay_json(&workflow, "r", lines.iter().map(String::as_str)).unwrap();
    again.run_until_satisfied().unwrap();
    assert_eq!(again.results::<i64>("total").unwrap(), [0, 10, 30]);
}
