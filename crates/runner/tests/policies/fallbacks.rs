//! What helps after the last attempt, and what it means when nothing does.

use serde_json::json;
use tidewheel_core::decide::ReasonCode;
use tidewheel_core::event::Absence;
use tidewheel_core::policy::{self, Failure, OnFailure, Policy, Recovery};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Component, condition, map, reduce, step};
use tidewheel_runner::{Options, SyncWork, execute_with_policies, react_until_satisfied};

use crate::world::{Calls, built, flaky, flaky_sync, governed, react, rules};

const EVERYWHERE: [SyncWork; 2] = [SyncWork::Threads, SyncWork::Inline];

fn after(name: &str) -> Component {
    step("after", |x: i64| x * 10).after(name)
}

#[tokio::test(start_paused = true)]
async fn g5_a_value_is_the_result_and_flows_on() {
    for place in EVERYWHERE {
        let (calls, asked) = (Calls::default(), Calls::default());
        let counted = asked.clone();
        let policy = Policy::new().max_retries(2).fallback(move |node, input, failure| {
            counted.one_more();
            assert_eq!(node.name, Some("flaky"));
            assert_eq!(input.get::<i64>().unwrap(), 1);
            assert_eq!(failure.code, Some(503.into()));
            Recovery::value(42_i64)
        });
        let workflow =
            governed([flaky_sync("flaky", &calls, 9), after("flaky")], policy::name("flaky"), policy);
        let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
        assert_eq!((calls.count(), asked.count()), (3, 1), "once, after one and two attempts");
        assert_eq!(run.result::<i64>("flaky").unwrap(), Some(42));
        assert_eq!(run.result::<i64>("after").unwrap(), Some(420));
        assert!(run.failures().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn g5_the_work_is_run_once_more_with_overrides() {
    for place in EVERYWHERE {
        for (model, value, calls_wanted) in [("small", Some(7), 2), ("broken", None, 2)] {
            let calls = Calls::default();
            let counted = calls.clone();
            let ask = step("ask", move |context: Context, x: i64| {
                counted.one_more();
                match context.overridden("model").and_then(serde_json::Value::as_str) {
                    Some("small") => Ok(x + 6),
                    Some(_) | None => Err(Failure::new("too large")),
                }
            });
            let policy = Policy::new().fallback(move |_, _, _| Recovery::retry_with([("model", model)]));
            let workflow = governed([ask, after("ask")], policy::name("ask"), policy);
            let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
            assert_eq!(calls.count(), calls_wanted, "{model}");
            assert_eq!(run.result::<i64>("ask").unwrap(), value);
            assert_eq!(run.result::<i64>("after").unwrap(), value.map(|value| value * 10));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g5_overrides_may_be_written_as_data() {
    let ask = step("ask", |context: Context, x: i64| match context.overridden("add") {
        Some(add) => Ok(x + add.as_i64().unwrap()),
        None => Err(Failure::new("no")),
    });
    let overrides = json!({"add": 5}).as_object().unwrap().clone();
    let workflow = governed([ask], policy::default(), Policy::new().fallback_overrides(overrides));
    assert_eq!(react(&workflow, Options::new()).await.0.result::<i64>("ask").unwrap(), Some(6));
}

#[tokio::test(start_paused = true)]
async fn g5_other_work_runs_once_and_without_retries() {
    for place in EVERYWHERE {
        for (helps, is_async) in [(true, true), (true, false), (false, true), (false, false)] {
            let (calls, other) = (Calls::default(), Calls::default());
            let counted = other.clone();
            let policy = Policy::new().max_retries(2).fallback(move |_, _, _| {
                let counted = counted.clone();
                let answer = move |x: i64| {
                    counted.one_more();
                    if helps { Ok(x + 99) } else { Err(Failure::new("nor this")) }
                };
                if is_async {
                    Recovery::run(move |x: i64| std::future::ready(answer(x)))
                } else {
                    Recovery::run(answer)
                }
            });
            let workflow =
                governed([flaky("flaky", &calls, 9), after("flaky")], policy::name("flaky"), policy);
            let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
            assert_eq!((calls.count(), other.count()), (3, 1));
            assert_eq!(run.result::<i64>("flaky").unwrap(), helps.then_some(100));
            assert_eq!(run.result::<i64>("after").unwrap(), helps.then_some(1_000));
            if !helps {
                let failures = run.failures();
                assert_eq!(failures[0].failure.message, "busy; its fallback failed, too: nor this");
                assert_eq!(failures[0].failure.code, Some(503.into()), "the failure is that of the work");
                assert_eq!(failures[0].attempts, 3, "the fallback is no attempt");
                assert_eq!(failures[0].reason, Some(ReasonCode::MaxRetriesReached));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g13_whatever_panics_has_failed() {
    for place in EVERYWHERE {
        for (name, policy) in [
            ("the fallback", Policy::new().fallback(|_, _, _| panic!("in the fallback"))),
            (
                "what it runs",
                Policy::new()
                    .fallback(|_, _, _| Recovery::run(|_: i64| -> i64 { panic!("in the fallback") })),
            ),
            (
                "what it runs later",
                Policy::new().fallback(|_, _, _| {
                    Recovery::run(|x: i64| async move {
                        tokio::task::yield_now().await;
                        assert!(x < 0, "in the fallback");
                        x
                    })
                }),
            ),
        ] {
            let bad = step("bad", |_: i64| -> i64 { std::panic::panic_any(7_u8) });
            let workflow = governed(
                [bad, after("bad"), step("good", |x: i64| x)],
                policy::name("bad"),
                policy.max_retries(1),
            );
            let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
            let failures = run.failures();
            assert_eq!(failures.len(), 1, "{name}");
            assert!(failures[0].failure.message.ends_with("in the fallback"), "{name} {:?}", failures[0]);
            assert_eq!(failures[0].failure.code, Some("panic".into()));
            assert_eq!(failures[0].attempts, 2);
            assert_eq!(run.absence("after", 0), Some(Absence::UpstreamFailed));
            assert_eq!(run.result::<i64>("good").unwrap(), Some(1), "all else goes on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_value_of_another_type_fails_what_comes_after_and_nothing_else() {
    let calls = Calls::default();
    let policy = Policy::new().fallback_value("a word");
    let workflow = governed([flaky("flaky", &calls, 9), after("flaky")], policy::name("flaky"), policy);
    let (run, _) = react(&workflow, Options::new()).await;
    assert_eq!(run.result::<String>("flaky").unwrap().as_deref(), Some("a word"));
    assert_eq!(run.failures()[0].component, Some("after"));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_helps_conditions_reduces_and_maps_too() {
    let workflow = built([
        condition("is_open", |_: i64| -> Result<bool, Failure> { Err(Failure::new("who knows")) }),
        step("gated", |x: i64| x).after("is_open"),
        step("list", |x: i64| vec![x, x]),
        map("each", |x: i64| x).after("list"),
        reduce("sum", 0_i64, |_: i64, _: i64| -> i64 { panic!("no sum") }).after("each"),
    ]);
    let options = Options::new().policies(
        tidewheel_core::policy::Rules::new([
            (policy::name("is_open"), Policy::new().fallback_value(true)),
            (policy::name("sum"), Policy::new().fallback_value(-1)),
        ])
        .unwrap(),
        policy::Overlay::Merge,
    );
    let (run, _) = react(&workflow, options).await;
    assert_eq!(run.result::<i64>("gated").unwrap(), Some(1));
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(-1));
}

#[tokio::test(start_paused = true)]
async fn g6_what_failed_or_was_skipped_runs_nothing_after_it() {
    for place in EVERYWHERE {
        for (on_failure, own, downstream) in [
            (OnFailure::Halt, Absence::Failed, Absence::UpstreamFailed),
            (OnFailure::Skip, Absence::Skipped, Absence::UpstreamSkipped),
        ] {
            let (calls, later) = (Calls::default(), Calls::default());
            let policy = Policy::new().on_failure(on_failure);
            let workflow = governed(
                [
                    flaky("flaky", &calls, 9),
                    flaky("later", &later, 0).after("flaky"),
                    step("good", |x: i64| x),
                ],
                policy::name("flaky"),
                policy,
            );
            let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
            assert_eq!((calls.count(), later.count()), (1, 0));
            assert_eq!(run.failures()[0].skipped, on_failure == OnFailure::Skip);
            assert_eq!(run.absence("flaky", 0), Some(own));
            assert_eq!(run.absence("later", 0), Some(downstream));
            assert_eq!(run.result::<i64>("good").unwrap(), Some(1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g6_a_fallback_that_fails_leaves_it_to_on_failure() {
    for (on_failure, skipped) in
        [(OnFailure::Skip, true), (OnFailure::Halt, false), (OnFailure::Fallback, false)]
    {
        let calls = Calls::default();
        let policy = Policy::new().on_failure(on_failure).fallback(|_, _, _| {
            Recovery::run(|_: i64| -> Result<i64, Failure> { Err(Failure::new("nor this")) })
        });
        let workflow = governed([flaky("flaky", &calls, 9)], policy::default(), policy);
        let (run, _) = react(&workflow, Options::new()).await;
        assert_eq!(run.failures()[0].skipped, skipped);
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_that_are_run_together_keep_their_order_and_their_policies() {
    let (calls, other) = (Calls::default(), Calls::default());
    let workflow = built([flaky("flaky", &calls, 1), flaky("other", &other, 1), step("good", |x: i64| x)]);
    let mut run = workflow.run("r");
    run.plan(1_i64);
    let runnables = run.prepare();
    let names: Vec<_> = runnables.iter().map(|runnable| runnable.node().name.unwrap().to_owned()).collect();
    assert_eq!(names, ["flaky", "other", "good"]);
    let rules = rules(policy::name("flaky"), Policy::new().max_retries(1));
    for executed in execute_with_policies(runnables, &rules).await.unwrap() {
        run.apply(executed);
    }
    assert_eq!(run.result::<i64>("flaky").unwrap(), Some(2));
    assert_eq!(run.failures().len(), 1);
    assert_eq!(run.failures()[0].component, Some("other"));
    assert_eq!(run.result::<i64>("good").unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_retried_item_of_a_map_keeps_its_place() {
    let calls = Calls::default();
    let counted = calls.clone();
    let item = move |x: i64| if x == 2 && counted.one_more() < 2 { Err(Failure::new("busy")) } else { Ok(x) };
    let workflow = governed(
        [
            map("each", item),
            reduce("all", Vec::new(), |mut all: Vec<i64>, x: i64| {
                all.push(x);
                all
            })
            .after("each"),
        ],
        policy::name("each"),
        Policy::new().max_retries(2),
    );
    let mut run = workflow.run("r");
    react_until_satisfied(&mut run, vec![1_i64, 2, 3], Options::new()).await.unwrap();
    assert_eq!(run.result::<Vec<i64>>("all").unwrap(), Some(vec![1, 2, 3]));
}
