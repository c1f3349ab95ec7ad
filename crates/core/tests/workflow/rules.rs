//! Rules and conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tidewheel_core::event::Event;
use tidewheel_core::policy::{Policy, name};
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, all, any, cond, condition, not, rule, step, test};

use crate::{double, produced, produced_set, ran};

#[test]
fn b1_a_rule_fires_when_its_condition_is_true() {
    let big = |limit: i64| {
        Workflow::new("w")
            .add(rule("big").when(move |x: &i64| *x > limit).then(|x: i64| x * 10))
            .build()
            .unwrap()
    };
    assert_eq!(produced(&ran(&big(5), 10_i64)), [json!(100)]);
    let silent = ran(&big(100), 50_i64);
    assert!(produced(&silent).is_empty() && !silent.is_runnable());
}

#[test]
fn b2_planning_looks_at_conditions_and_runs_no_reaction() {
    let workflow = Workflow::new("w")
        .add(rule("double_positive").when(|x: &i64| *x > 0).then(double))
        .add(rule("triple_negative").when(|x: &i64| *x < 0).then(|x: i64| x * 3))
        .add(rule("half_even").when(|x: &i64| x % 2 == 0).then(|x: i64| x / 2))
        .build()
        .unwrap();
    for (input, matches) in [(2_i64, 2), (-3, 1), (4, 2)] {
        let mut run = workflow.run("r");
        run.plan(input);
        assert_eq!(run.next_runnables().len(), matches, "{input}");
        assert!(run.productions().is_empty());
    }
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Order {
    customer: Customer,
    total: i64,
    items: Vec<String>,
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Customer {
    id: String,
    tier: String,
}

#[test]
fn b5_a_rule_looks_deep_into_its_fact() {
    let workflow = Workflow::new("w")
        .add(
            rule("premium")
                .when(|order: &Order| order.customer.tier == "premium" && order.total >= 100)
                .then(|order: Order| {
                    ("premium_order".to_owned(), order.customer.id, order.total, order.items.len())
                }),
        )
        .build()
        .unwrap();
    let order = |tier: &str| Order {
        customer: Customer { id: "C123".to_owned(), tier: tier.to_owned() },
        total: 100,
        items: vec!["a".to_owned(); 3],
    };
    assert_eq!(produced(&ran(&workflow, order("premium"))), [json!(["premium_order", "C123", 100, 3])]);
    assert!(produced(&ran(&workflow, order("basic"))).is_empty());
}

#[test]
fn b6_a_rule_about_another_type_is_not_satisfied_and_no_error() {
    let workflow = Workflow::new("w")
        .add(rule("string").when(|_: &String| true).then(|text: String| ("string", text.to_uppercase()).1))
        .add(rule("integer").when(|_: &i64| true).then(double))
        .build()
        .unwrap();
    let text = ran(&workflow, "hello".to_owned());
    assert_eq!(produced(&text), [json!("HELLO")]);
    assert!(text.failures().is_empty());
    assert_eq!(produced(&ran(&workflow, 5_i64)), [json!(10)]);
}

#[test]
fn b8_a_fact_of_another_shape_does_not_satisfy_and_is_no_error() {
    let workflow = Workflow::new("w")
        .add(rule("order").when(|order: &Order| order.total > 0).then(|order: Order| order.total))
        .add(condition("gate", |order: &Order| order.total > 0))
        .add(step("behind", |order: Order| order.total).after("gate"))
        .build()
        .unwrap();
    let whole = json!({"customer": {"id": "C1", "tier": "basic"}, "total": 7, "items": []});
    let without_items = json!({"customer": {"id": "C1", "tier": "basic"}, "total": 7});
    let deep_inside = json!({"customer": {"id": 1, "tier": "basic"}, "total": 7, "items": []});
    assert_eq!(produced_set(&ran(&workflow, whole)), [7, 7], "the shape counts, not the Rust type");
    for stranger in [without_items, deep_inside, json!(7), json!(null), json!([])] {
        let run = ran(&workflow, stranger.clone());
        assert!(produced(&run).is_empty(), "{stranger}");
        assert!(run.failures().is_empty(), "{stranger}");
        assert!(!run.is_runnable(), "{stranger}");
    }
}

fn is_even(x: i64) -> bool {
    x % 2 == 0
}

#[test]
fn b9_a_condition_is_any_expression_and_takes_outer_values_by_value() {
    let small = [2_i64, 3, 4];
    let mut limit = 10;
    let in_one = Workflow::new("w")
        .add(
            rule("r")
                .when(move |x: &i64| (small.contains(x) || *x > limit) && is_even(*x) && *x != 4)
                .then(double),
        )
        .build()
        .unwrap();
    let in_parts = Workflow::new("w")
        .add(condition("even", is_even))
        .add(
            rule("r")
                .when_all(all([
                    any([test(move |x: &i64| small.contains(x)), test(move |x: &i64| *x > limit)]),
                    cond("even"),
                    not(test(|x: &i64| *x == 4)),
                ]))
                .then(double),
        )
        .build()
        .unwrap();
    limit += 90;
    for workflow in [in_one, in_parts] {
        for (input, fires) in [(2_i64, true), (3, false), (4, false), (6, false), (11, false), (12, true)] {
            let run = ran(&workflow, input);
            assert_eq!(run.productions_of("r").unwrap().len(), usize::from(fires), "{input}, now {limit}");
        }
    }
}

#[test]
fn b9_another_captured_value_is_another_node_by_its_version() {
    // What a closure captured cannot be looked at in Rust, so whoever changes it says so with a version.
    let with = |limit: u32| {
        let big = rule("big").when(move |x: &u32| *x > limit).then(|x: u32| x).version(limit);
        Workflow::new("w").add(big).build().unwrap()
    };
    assert_eq!(with(5).signature(), with(5).signature());
    assert_ne!(with(5).signature().nodes["big"], with(6).signature().nodes["big"]);
}

#[test]
fn b10_named_and_inline_conditions_together() {
    let workflow = Workflow::new("w")
        .add(condition("ham", |x: &i64| *x > 10))
        .add(rule("r").when_all(all([cond("ham"), test(|x: &i64| *x >= 2)])).then(|x: i64| x))
        .build()
        .unwrap();
    assert_eq!(produced_set(&ran(&workflow, 15_i64)), [15]);
    assert!(produced_set(&ran(&workflow, 5_i64)).is_empty());
}

#[test]
fn b11_or_fires_once_even_when_both_are_true() {
    let workflow = Workflow::new("w")
        .add(condition("ham", |x: &i64| *x > 10))
        .add(rule("r").when_all(any([cond("ham"), test(|x: &i64| *x % 5 == 0)])).then(|x: i64| x))
        .add(rule("n").when_all(not(cond("ham"))).then(|x: i64| -x))
        .build()
        .unwrap();
    assert_eq!(produced_set(&ran(&workflow, 15_i64)), [15]);
    assert_eq!(produced_set(&ran(&workflow, 5_i64)), [-5, 5]);
    assert_eq!(produced_set(&ran(&workflow, 7_i64)), [-7]);
}

#[test]
fn b14_a_condition_that_is_not_there_is_named() {
    let errors = Workflow::new("w").add(rule("r").when_all(cond("ham")).then(double)).build().unwrap_err();
    assert_eq!(
        errors.to_string(),
        "r: refers to the condition `ham`, which is no condition (add condition(\"ham\", …))"
    );
    let incomplete = Workflow::new("w").add(rule("r").then(double)).build().unwrap_err();
    assert_eq!(incomplete.to_string(), "r: has no when (a step runs for every fact: write step(\"r\", …))");
}

#[test]
fn b15_a_condition_is_a_gate() {
    let workflow = Workflow::new("w")
        .add(step("double", double))
        .add(condition("gt5", |x: &i64| *x > 5).after("double"))
        .add(step("add100", |x: i64| x + 100).after("gt5"))
        .build()
        .unwrap();
    assert_eq!(produced_set(&ran(&workflow, 10_i64)), [20, 120]);
    assert_eq!(produced_set(&ran(&workflow, 2_i64)), [4]);
}

#[test]
fn b16_what_a_condition_says_is_an_event() {
    let workflow = Workflow::new("w").add(condition("gt5", |x: &i64| *x > 5)).build().unwrap();
    let names = |input: i64| -> Vec<&'static str> {
        let mut run = workflow.run("r");
        let events = run.plan(input);
        let name = |event: &Event| match event {
            Event::FactProduced { .. } => "fact",
            Event::RunnableActivated { .. } => "activated",
            Event::ConditionSatisfied { .. } => "satisfied",
            Event::ActivationConsumed { .. } => "consumed",
            _ => "other",
        };
        events.iter().map(name).collect()
    };
    assert_eq!(names(10), ["fact", "activated", "satisfied", "consumed"]);
    assert_eq!(names(1), ["fact", "activated", "consumed"]);
}

#[test]
fn b20_each_condition_is_evaluated_once_per_fact() {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut builder = Workflow::new("w");
    let counted = Arc::clone(&calls);
    builder = builder.add(condition("shared", move |x: &i64| {
        counted.fetch_add(1, Ordering::Relaxed);
        *x > 0
    }));
    for index in 0..50 {
        builder = builder.add(rule(format!("r{index}")).when_all(cond("shared")).then(double));
    }
    let run = ran(&builder.build().unwrap(), 1_i64);
    assert_eq!(run.productions().len(), 50);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn b21_a_condition_that_panics_fails_alone() {
    let workflow = Workflow::new("w")
        .add(rule("bad").when(|_: &i64| -> bool { panic!("boom") }).then(double))
        .add(rule("good").when(|_: &i64| true).then(double))
        .build()
        .unwrap();
    let run = ran(&workflow, 2_i64);
    assert_eq!(produced_set(&run), [4]);
    assert_eq!(run.failures()[0].component, Some("bad"));
}

#[test]
fn a_condition_that_is_async_or_under_a_policy_is_handed_out_like_a_step() {
    let later = Workflow::new("w")
        .add(rule("later").when(|x: i64| async move { x > 5 }).then(double))
        .build()
        .unwrap();
    let guarded = Workflow::new("w")
        .add(condition("big", |x: &i64| *x > 5))
        .add(rule("guarded").when_all(not(not(cond("big")))).then(double))
        .policy(name("guarded"), Policy::fast_fail())
        .build()
        .unwrap();
    for workflow in [later, guarded] {
        let mut run = workflow.run("r");
        run.plan(10_i64);
        let mut handed_out = run.prepare();
        assert_eq!(handed_out.len(), 1, "the condition");
        assert_eq!(
            handed_out[0].is_async(),
            handed_out[0].node().name == Some("later"),
            "the test, not the reaction"
        );
        let executed = handed_out.remove(0).execute();
        run.apply(executed);
        assert!(run.productions().is_empty(), "only the condition was looked at");
        finish(&mut run);
        assert_eq!(produced_set(&run), [20]);
        let mut small = workflow.run("small");
        small.plan(1_i64);
        finish(&mut small);
        assert!(produced_set(&small).is_empty());
    }
}

/// Runs what is left without policies, piece by piece.
fn finish(run: &mut Run) {
    while run.is_runnable() {
        for runnable in run.prepare() {
            run.apply(runnable.execute());
        }
    }
}

#[test]
fn b22_a_rule_under_a_step_sees_what_the_step_gives() {
    let workflow = Workflow::new("w")
        .add(condition("big", |x: &i64| *x > 20))
        .add(step("double", double))
        .add(
            rule("r")
                .when_all(all([cond("big"), test(|x: &i64| *x >= 2)]))
                .then(|x: i64| x + 1)
                .after("double"),
        )
        .build()
        .unwrap();
    assert_eq!(produced_set(&ran(&workflow, 15_i64)), [30, 31]);
}
