//! Retry budgets: who shares them, what is left, and what comes back.

use tidewheel_core::decide::ReasonCode;
use tidewheel_core::policy::{self, Failure, Policy};
use tidewheel_core::workflow::step;
use tidewheel_runner::{Runner, RunnerOptions};

use crate::world::{HOMES, Starts, governed, named, start, timed};

#[tokio::test(start_paused = true)]
async fn without_a_token_there_is_no_retry() {
    for home in HOMES {
        let starts = Starts::new();
        let policy = Policy::new().max_retries(9).retry_budget("b", 2, "1h");
        let workflow = governed([starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..1).await;
        let failures = runs[0].failures();
        assert_eq!(starts.count(), 3, "{home:?}");
        assert_eq!((failures[0].attempts, failures[0].reason), (3, Some(ReasonCode::RetryBudgetExhausted)));
    }
}

#[tokio::test(start_paused = true)]
async fn all_work_takes_its_retries_from_the_same_budget() {
    for home in HOMES {
        let starts = Starts::new();
        let policy = Policy::new().max_retries(1).retry_budget("b", 3, "1h");
        let workflow = governed([starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..5).await;
        assert_eq!(starts.count(), 5 + 3, "{home:?}");
        let reasons = runs.iter().flat_map(|run| run.failures().into_iter().map(|failed| failed.reason));
        let empty = reasons.filter(|reason| *reason == Some(ReasonCode::RetryBudgetExhausted)).count();
        assert_eq!(empty, 2, "{home:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn workflows_share_a_budget_by_its_name() {
    let starts = Starts::new();
    let workflow = |name: &str, budget: &str| {
        let policy = Policy::new().max_retries(9).retry_budget(budget, 2, "1h");
        named(name, [starts.failing("s", 0, |_| true)], vec![(policy::default(), policy)])
    };
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    for (workflow, calls) in [(workflow("a", "b"), 3), (workflow("b", "b"), 1), (workflow("c", "other"), 3)] {
        let before = starts.count();
        let run = start(&runner, workflow.name(), &workflow, 1).await;
        timed(run.wait()).await.unwrap();
        assert_eq!(starts.count() - before, calls, "{}", workflow.name());
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_for_a_retry_that_is_not_made_comes_back() {
    for home in HOMES {
        // What is not retryable takes nothing, however often it fails.
        let starts = Starts::new();
        let policy = Policy::new().max_retries(3).retry_budget("b", 1, "1h");
        let useless = step("useless", |_: i64| async { Err::<i64, _>(Failure::new("no").non_retryable()) });
        let workflow = governed(
            [useless, starts.failing("s", 0, |_| true)],
            vec![(policy::name("s"), policy.clone().delay("1s")), (policy::default(), policy)],
        );
        home.run(&workflow, 0..1).await;
        assert_eq!(starts.count(), 2, "{home:?}: the one token is there");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_come_back_one_by_one() {
    for home in HOMES {
        let starts = Starts::new();
        // An attempt every ten seconds, a token every fifteen.
        let policy = Policy::new().max_retries(9).retry_budget("b", 1, "15s");
        let workflow = governed([starts.failing("s", 10_000, |_| true)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..1).await;
        assert_eq!(starts.times(), [0, 10_000], "{home:?}: at 20 s the token of 10 s is not back");
        assert_eq!(runs[0].failures()[0].reason, Some(ReasonCode::RetryBudgetExhausted));

        let starts = Starts::new();
        let policy = Policy::new().max_retries(4).retry_budget("b", 1, "10s");
        let workflow = governed([starts.failing("s", 10_000, |_| true)], vec![(policy::default(), policy)]);
        let runs = home.run(&workflow, 0..1).await;
        assert_eq!(starts.count(), 5, "{home:?}: each token is back in time");
        assert_eq!(runs[0].failures()[0].reason, Some(ReasonCode::MaxRetriesReached));
    }
}
