//! Functions and types of the user that panic: each is a named problem, or the failure of its own work, and nothing else.

use serde::{Deserialize, Serialize};
use tidewheel_core::policy::{self, Failure, NodeInfo, Overlay, Policy, Rules};
use tidewheel_core::workflow::{Workflow, accumulator, condition, map, reduce, rule, step};

/// A predicate that answers for all nodes but one.
fn sore_for(name: &'static str) -> policy::Matcher {
    policy::predicate(move |node: &NodeInfo<'_>| {
        assert!(node.name != Some(name), "no answer");
        false
    })
}

#[test]
fn a_predicate_that_panics_is_a_named_problem_of_the_build() {
    let errors = Workflow::new("w")
        .add(step("good", |x: i64| x))
        .add(step("bad", |x: i64| x))
        .policy(policy::name("x"), Policy::new())
        .policy(sore_for("bad"), Policy::new().max_retries(2))
        .build()
        .unwrap_err();
    let text = errors.to_string();
    assert!(text.contains("policies[1].match.predicate: panicked for `bad`: no answer"), "{text}");
}

#[test]
fn a_predicate_that_panics_is_a_named_problem_of_policies_on_a_built_workflow() {
    let plain =
        Workflow::new("w").add(step("good", |x: i64| x)).add(step("bad", |x: i64| x)).build().unwrap();
    let policy = || Policy::new().max_retries(2);
    let named = plain.with_policies([(policy::name("good"), policy())]).unwrap();
    let attempts = [
        (0, plain.with_policies([(sore_for("bad"), policy())])),
        (0, named.prepend_policy(sore_for("bad"), policy())),
        (1, named.append_policy(sore_for("bad"), policy())),
    ];
    for (index, attempt) in attempts {
        let text = attempt.unwrap_err().to_string();
        let place = format!("policies[{index}].match.predicate: panicked for `bad`: no answer");
        assert!(text.contains(&place), "{text}");
    }
}

/// Panics when it is dropped, wherever that is.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the destructor of what a function captured");
    }
}

#[test]
fn a_destructor_of_what_functions_captured_may_panic_and_ends_there() {
    let sore = || -> Box<dyn Fn() + Send + Sync> {
        let bomb = Bomb;
        Box::new(move || {
            std::hint::black_box(&bomb);
        })
    };
    let matcher = |bomb: Box<dyn Fn() + Send + Sync>| {
        policy::predicate(move |_: &NodeInfo<'_>| {
            bomb();
            false
        })
    };
    drop(matcher(sore()));
    let (in_error, in_fallback, in_key, in_undo) = (sore(), sore(), sore(), sore());
    let policy = Policy::new()
        .retryable_errors([policy::ErrorMatcher::predicate(move |_: &Failure| {
            in_error();
            true
        })])
        .fallback(move |_, _, _| {
            in_fallback();
            policy::Recovery::value(1_i64)
        })
        .idempotency_key(move |_, _| {
            in_key();
            String::new()
        })
        .compensation(move |_, _| {
            in_undo();
            Ok(())
        });
    drop(policy);
    let (in_step, in_later, in_condition, in_state) = (sore(), sore(), sore(), sore());
    let (before, after) = (sore(), sore());
    let workflow = Workflow::new("w")
        .add(step("step", move |x: i64| {
            in_step();
            x
        }))
        .add(step("later", move |x: i64| {
            in_later();
            async move { x }
        }))
        .add(condition("condition", move |_: &i64| {
            in_condition();
            true
        }))
        .add(accumulator("state", 0, move |sum: i64, x: i64| {
            in_state();
            sum + x
        }))
        .add(
            step("hooked", |x: i64| x)
                .hook_before(move |_, _| {
                    before();
                    Ok(())
                })
                .hook_after(move |_, _, _| {
                    after();
                    Ok(())
                }),
        )
        .policy(matcher(sore()), Policy::new())
        .build();
    drop(workflow.map(|workflow| workflow.run("r")));
}

#[test]
fn a_predicate_that_panics_is_the_problem_of_a_resolution_and_matches_nothing() {
    let rules = Rules::new([(sore_for("bad"), Policy::new().max_retries(2))]).unwrap();
    let bad = rules.resolve(&NodeInfo::step("bad"));
    assert_eq!(bad.rule, Some(0));
    assert!(bad.problem.unwrap().to_string().contains("panicked for `bad`"));
    assert!(rules.resolve(&NodeInfo::step("good")).problem.is_none());
    assert!(!sore_for("bad").matches(&NodeInfo::step("bad")));
}

#[test]
fn runtime_rules_whose_predicate_panics_fail_the_work_of_that_node_alone() {
    let workflow = Workflow::new("w")
        .add(step("good", |x: i64| x + 1))
        .add(step("bad", |x: i64| x + 1))
        .add(condition("asked", |x: &i64| *x > 0))
        .build()
        .unwrap();
    for sore in ["bad", "asked"] {
        let rules = Rules::new([(sore_for(sore), Policy::new())]).unwrap();
        let mut run = workflow.run("r").with_policies(rules, Overlay::Merge);
        assert_eq!(run.policy_problems().count(), 1);
        run.react_until_satisfied(1_i64).unwrap();
        let failed: Vec<(Option<&str>, &Failure)> =
            run.failures().into_iter().map(|failed| (failed.component, failed.failure)).collect();
        let [(Some(name), failure)] = failed[..] else { panic!("{failed:?}") };
        assert_eq!(name, sore);
        assert_eq!(failure.code, Some("policy_panicked".into()));
        assert!(failure.message.contains("policies[0].match.predicate"), "{}", failure.message);
        assert_eq!(run.result::<i64>("good").unwrap(), Some(2));
    }
}

#[test]
fn a_matcher_of_errors_that_panics_retries_nothing() {
    let sore = policy::ErrorMatcher::predicate(|_: &Failure| panic!("no answer"));
    let policy = || Policy::new().max_retries(1);
    for policy in [policy().retryable_errors([sore.clone()]), policy().non_retryable_errors([sore])] {
        let resolved = policy.resolved().unwrap();
        assert!(!resolved.retries(&Failure::new("x")));
        assert_eq!(resolved.try_retries(&Failure::new("x")).unwrap_err().message, "no answer");
    }
}

/// Panics when it is cloned, if its number is one.
#[derive(Debug, Serialize, Deserialize)]
struct Sore(u8);

impl Clone for Sore {
    fn clone(&self) -> Self {
        assert!(self.0 != 1, "cloned");
        Self(self.0)
    }
}

/// Panics when it is dropped, if its number is two.
impl Drop for Sore {
    fn drop(&mut self) {
        assert!(self.0 != 2, "dropped");
    }
}

/// An error whose `Display` panics.
#[derive(Debug)]
struct Mute;

impl std::fmt::Display for Mute {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("nothing to say");
    }
}

impl std::error::Error for Mute {}

#[test]
fn each_part_of_a_workflow_that_panics_fails_by_itself_and_its_neighbours_go_on() {
    let workflow = Workflow::new("w")
        .add(step("step", |_: i64| -> i64 { panic!("step") }))
        .add(step("mute", |_: i64| -> Result<i64, Mute> { Err(Mute) }))
        .add(condition("condition", |_: &i64| -> bool { panic!("condition") }))
        .add(rule("rule").when(|_: &i64| -> bool { panic!("rule") }).then(|x: i64| x))
        .add(step("before", |x: i64| x).hook_before(|_, _| panic!("before")))
        .add(step("after", |x: i64| x).hook_after(|_, _, _| panic!("after")))
        .add(step("items", |x: i64| vec![x, x]))
        .add(map("map", |_: i64| -> i64 { panic!("map") }).after("items"))
        .add(reduce("reduce", 0, |_: i64, _: i64| -> i64 { panic!("reduce") }).after("items"))
        .add(accumulator("accumulator", 0, |_: i64, _: i64| -> i64 { panic!("accumulator") }))
        .add(step("sore", |_: i64| Sore(1)))
        .add(step("reader", |sore: Sore| sore.0).after("sore"))
        .add(step("wet", |_: i64| Sore(2)))
        .add(step("later", |_: i64| async { Sore(2) }))
        .add(step("good", |x: i64| x + 1))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(1_i64).unwrap();
    assert_eq!(run.result::<i64>("good").unwrap(), Some(2));
    let mut failed: Vec<String> = run
        .failures()
        .into_iter()
        .map(|failed| format!("{}: {}", failed.component.unwrap_or("?"), failed.failure.message))
        .collect();
    failed.sort();
    failed.dedup();
    let expected = [
        "accumulator: accumulator",
        "after: after",
        "before: before",
        "condition: condition",
        "map: map",
        "mute: nothing to say",
        "reader: cloned",
        "reduce: reduce",
        "rule: rule",
        "step: step",
    ];
    assert_eq!(failed, expected);
    assert!(run.failures().iter().all(|failed| failed.failure.code == Some("panic".into())));
    assert!(run.result::<Sore>("sore").is_err(), "a clone that panics is an error of the caller");
    drop(run);
}
