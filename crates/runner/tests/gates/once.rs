//! What is asked and taken once: the answers of named conditions, and the rate and delay of a map.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidewheel_core::policy::{self, Failure, Kind, Matcher, Policy};
use tidewheel_core::workflow::{Workflow, WorkflowBuilder, cond, condition, map, rule};
use tidewheel_runner::{Options, run_until_satisfied};
use tokio::time::Instant;

use crate::world::HOMES;

/// A condition that counts its calls, and rules that refer to it.
fn asked(
    rules: usize,
    test: impl Fn(u32) -> Result<bool, Failure> + Send + Sync + 'static,
) -> (WorkflowBuilder, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let look = move |_: &i64| test(count.fetch_add(1, Ordering::SeqCst));
    let builder = Workflow::new("asked").add(condition("big", look));
    let add = |builder: WorkflowBuilder, index: usize| {
        builder.add(rule(format!("rule{index}")).when_all(cond("big")).then(|x: i64| x))
    };
    ((0..rules).fold(builder, add), calls)
}

#[tokio::test(start_paused = true)]
async fn a_named_condition_is_asked_once_per_fact_whatever_policies_act() {
    let matchers: [fn() -> Matcher; 4] = [
        policy::default,
        || policy::kind(Kind::Rule),
        || policy::kind(Kind::Condition),
        || policy::pattern("7$"),
    ];
    for home in HOMES {
        for matcher in matchers {
            let (builder, calls) = asked(50, |_| Ok(true));
            let workflow = builder.policy(matcher(), Policy::new().max_retries(1)).build().unwrap();
            let runs = home.run(&workflow, 0..3).await;
            assert_eq!(calls.load(Ordering::SeqCst), 3, "{home:?} {}: once for each input", matcher());
            for run in &runs {
                assert!(
                    (0..50).all(|index| !run.results::<i64>(&format!("rule{index}")).unwrap().is_empty())
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_failed_is_asked_again_by_the_next_attempt_and_once() {
    for home in HOMES {
        let (builder, calls) = asked(50, |call| if call == 0 { Err(Failure::new("no")) } else { Ok(true) });
        let workflow = builder.policy(policy::default(), Policy::new().max_retries(1)).build().unwrap();
        let runs = home.run(&workflow, 0..1).await;
        assert_eq!(calls.load(Ordering::SeqCst), 2, "{home:?}");
        assert!(!runs[0].has_failed(), "{home:?}");
        assert_eq!(runs[0].results::<i64>("rule49").unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_map_waits_and_takes_from_its_rate_for_its_items_and_not_for_taking_the_list_apart() {
    for matcher in [policy::default(), policy::kind(Kind::Map)] {
        let policy = Policy::new().delay("1s").rate_limit(2, "1h");
        let workflow = Workflow::new("mapped")
            .add(map("double", |x: i64| x * 2))
            .policy(matcher, policy)
            .build()
            .unwrap();
        let mut run = workflow.run("first");
        let began = Instant::now();
        run.plan(vec![1_i64, 2]);
        run_until_satisfied(&mut run, Options::new()).await.unwrap();
        assert_eq!(run.results::<i64>("double").unwrap(), [2, 4]);
        assert_eq!(began.elapsed().as_secs(), 1, "one delay, and two of two tokens");
    }
}
