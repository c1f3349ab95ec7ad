//! What work knows beside its input: values of other components, values from outside, hooks.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tidewheel_core::event::Event;
use tidewheel_core::policy::Failure;
use tidewheel_core::work::{Context, RunContext};
use tidewheel_core::workflow::{Meta, Workflow, accumulator, condition, rule, step};

use crate::{double, inc, produced, ran};

fn state_of(name: &str) -> Meta {
    Meta::StateOf(name.to_owned())
}

#[test]
fn b17_a_rule_reads_a_state_and_a_value_from_outside() {
    let workflow = Workflow::new("w")
        .add(accumulator("counter", 0_i64, |sum: i64, x: i64| sum + x))
        .add(
            rule("limit")
                .when(|context: Context, _: i64| {
                    context.state_of::<i64>("counter")
                        >= context.value("limit").and_then(serde_json::Value::as_i64)
                })
                .then(|context: Context, _: i64| ("triggered".to_owned(), context.state_of::<i64>("counter")))
                .reads(state_of("counter"))
                .needs("limit")
                .after("counter"),
        )
        .build()
        .unwrap();
    let mut run = workflow.run("r").with_context(RunContext::new().scoped("limit", "limit", 5));
    run.react_until_satisfied(3_i64).unwrap();
    assert!(run.productions_of("limit").unwrap().is_empty());
    run.react_until_satisfied(4_i64).unwrap();
    assert_eq!(run.result::<(String, i64)>("limit").unwrap(), Some(("triggered".to_owned(), 7)));
}

#[test]
fn b18_a_state_before_the_first_input_is_the_initial_one_and_a_missing_one_is_refused() {
    let workflow = Workflow::new("w")
        .add(step("gate", |_: i64| -> Result<i64, String> { Err("shut".to_owned()) }))
        .add(accumulator("counter", 7_i64, |sum: i64, x: i64| sum + x).after("gate"))
        .add(
            step("look", |context: Context, _: i64| context.state_of::<i64>("counter"))
                .reads(state_of("counter")),
        )
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, 1_i64).result::<Option<i64>>("look").unwrap(), Some(Some(7)));
    let errors = Workflow::new("w").add(step("look", inc).reads(state_of("nobody"))).build().unwrap_err();
    assert_eq!(errors.to_string(), "look: reads state_of(nobody), but there is no such component");
}

#[test]
fn b19_every_kind_of_value_of_another_component() {
    let name = || "inc".to_owned();
    let metas = [
        Meta::StepRan(name()),
        Meta::FactCount(name()),
        Meta::LatestValueOf(name()),
        Meta::AllValuesOf(name()),
    ];
    let mut look = step("look", |context: Context, _: i64| {
        json!({
            "ran": context.meta::<bool>(&Meta::StepRan("inc".to_owned())),
            "count": context.meta::<usize>(&Meta::FactCount("inc".to_owned())),
            "latest": context.meta::<i64>(&Meta::LatestValueOf("inc".to_owned())),
            "all": context.meta::<Vec<i64>>(&Meta::AllValuesOf("inc".to_owned())),
        })
    });
    for meta in metas {
        look = look.reads(meta);
    }
    let workflow = Workflow::new("w")
        .add(rule("inc").when(|x: &i64| *x > 0).then(inc))
        .add(step("pause", inc))
        .add(look.after("pause"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in [-1_i64, 1, 2] {
        run.react_until_satisfied(input).unwrap();
    }
    assert_eq!(
        run.results::<serde_json::Value>("look").unwrap(),
        [
            json!({"ran": false, "count": 0, "latest": null, "all": []}),
            json!({"ran": true, "count": 1, "latest": 2, "all": [2]}),
            json!({"ran": true, "count": 2, "latest": 3, "all": [2, 3]}),
        ]
    );
}

#[test]
fn b23_a_component_sees_its_own_value_over_the_global_one_over_its_default() {
    let look = |context: Context, _: i64| {
        ["api_key", "timeout", "model", "nobody"].map(|key| context.value(key).cloned()).to_vec()
    };
    let workflow = Workflow::new("w")
        .add(step("call", look).needs("api_key").needs_or("model", "small").needs_or("timeout", 1))
        .build()
        .unwrap();
    let context = RunContext::new()
        .global("timeout", 5_000)
        .global("api_key", "global")
        .scoped("call", "timeout", 30_000)
        .scoped("other", "api_key", "not mine");
    let mut run = workflow.run("r").with_context(context);
    run.react_until_satisfied(1_i64).unwrap();
    assert_eq!(produced(&run), [json!(["global", 30_000, "small", null])]);
}

#[test]
fn b24_what_is_needed_is_listed_and_checked() {
    let workflow = Workflow::new("w")
        .add(step("call_llm", inc).needs("api_key").needs_or("model", "gpt-4"))
        .build()
        .unwrap();
    let keys = workflow.context_keys();
    let written: Vec<_> =
        keys["call_llm"].iter().map(|key| (key.key.as_str(), key.default.clone())).collect();
    assert_eq!(written, [("api_key", None), ("model", Some(json!("gpt-4")))]);
    let missing = workflow.check_context(&RunContext::new()).unwrap_err();
    assert_eq!(missing, [("call_llm".to_owned(), "api_key".to_owned())]);
    assert!(workflow.check_context(&RunContext::new().global("api_key", "x")).is_ok());
}

#[test]
fn b25_values_from_outside_reach_no_fact_no_event_and_no_hash() {
    let workflow = Workflow::new("w").add(step("call", |_: Context, x: i64| x).needs("key")).build().unwrap();
    let logged = |secret: &str| -> Vec<String> {
        let mut run = workflow.run("r").with_context(RunContext::new().global("key", secret));
        let mut events: Vec<Event> = run.plan(1_i64).to_vec();
        for runnable in run.prepare() {
            events.extend_from_slice(run.last_events());
            let executed = runnable.execute();
            events.extend_from_slice(run.apply(executed));
        }
        assert!(!format!("{:?}", run.context()).contains(secret));
        let ids = run.reactions().into_iter().map(|fact| fact.id.to_string()).collect::<Vec<_>>();
        events.iter().map(|event| event.to_json(&workflow).unwrap()).chain(ids).collect()
    };
    assert_eq!(logged("first-secret"), logged("second-secret"));
    assert!(!logged("first-secret").concat().contains("secret"));
}

#[test]
fn k4_another_default_is_another_node() {
    let with = |default: &str| Workflow::new("w").add(step("a", inc).needs_or("k", default)).build().unwrap();
    assert_ne!(with("x").signature(), with("y").signature());
    assert_eq!(with("x").signature(), with("x").signature());
}

#[test]
fn hooks_see_input_and_output_in_the_order_of_attachment() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let seen = Arc::clone(&seen);
        move |value: i64| seen.lock().unwrap().push(format!("{text} {value}"))
    };
    let (first, second, third) = (note("first"), note("second"), note("third"));
    let workflow = Workflow::new("w")
        .add(
            step("double", double)
                .hook_before(move |_, input| {
                    first(input.get().map_err(|error| Failure::of(&error))?);
                    Ok(())
                })
                .hook_before(move |_, input| {
                    second(input.get().map_err(|error| Failure::of(&error))?);
                    Ok(())
                })
                .hook_after(move |node, _, output| {
                    assert_eq!(node.name, Some("double"));
                    third(output.get().map_err(|error| Failure::of(&error))?);
                    Ok(())
                }),
        )
        .build()
        .unwrap();
    ran(&workflow, 4_i64);
    assert_eq!(*seen.lock().unwrap(), ["first 4", "second 4", "third 8"]);
}

#[test]
fn hooks_of_a_condition_are_called_and_those_of_a_rule_belong_to_its_work() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = |name: &'static str| {
        let calls = Arc::clone(&calls);
        move |_: &tidewheel_core::policy::NodeInfo<'_>, _: &tidewheel_core::fact::Value| {
            calls.lock().unwrap().push(name);
            Ok(())
        }
    };
    let workflow = Workflow::new("w")
        .add(condition("gate", |x: &i64| *x > 0).hook_before(noted("gate")))
        .add(
            rule("r")
                .when(|x: i64| async move { x > 5 })
                .then(double)
                .after("gate")
                .hook_before(noted("rule")),
        )
        .build()
        .unwrap();
    ran(&workflow, 1_i64);
    assert_eq!(*calls.lock().unwrap(), ["gate"]);
    ran(&workflow, 10_i64);
    assert_eq!(*calls.lock().unwrap(), ["gate", "gate", "rule"]);
}

#[test]
fn a_hook_that_fails_or_panics_fails_its_work() {
    let before =
        Workflow::new("w").add(step("a", inc).hook_before(|_, _| Err(Failure::new("no")))).build().unwrap();
    let after = Workflow::new("w").add(step("a", inc).hook_after(|_, _, _| panic!("boom"))).build().unwrap();
    for (workflow, message) in [(before, "no"), (after, "boom")] {
        let run = ran(&workflow, 1_i64);
        assert!(run.productions().is_empty());
        assert_eq!(run.failures()[0].failure.message, message);
    }
}

#[test]
fn a_state_that_a_component_does_not_read_is_a_failure_that_says_what_to_write() {
    let workflow = Workflow::new("shop")
        .add(accumulator("sold", 0, |sold: i64, more: i64| sold + more))
        .add(step("look", |context: Context, _: i64| context.state_of::<i64>("sold").unwrap_or(0)))
        .build()
        .unwrap();
    let mut run = workflow.run("run-1");
    run.react_until_satisfied(5_i64).unwrap();
    let failures = run.failures();
    let message = &failures[0].failure.message;
    assert!(message.contains("`look`") && message.contains(".reads(Meta::StateOf(\"sold\"))"), "{message}");
    assert_eq!(Context::empty().state_of::<i64>("sold"), None, "by itself, as in a test");
}
