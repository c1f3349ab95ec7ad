//! Options of a start: a run that exists keeps those that it was started with.

use tidewheel_core::policy::{self, Overlay, Policy, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::work::RunContext;
use tidewheel_runner::{Checkpoints, RunnerOptions, StartError, StartOptions};

use crate::world::{Watched, numbers};

fn rules(retries: u32) -> Rules {
    Rules::new([(policy::default(), Policy::new().max_retries(retries))]).expect("sound")
}

/// They were accepted, and had no effect.
#[tokio::test(start_paused = true)]
async fn other_options_for_a_run_that_exists_are_refused_by_name_and_the_same_are_fine() {
    let store = Watched::new();
    let runner = store.runner(RunnerOptions::new()).await;
    let options = |retries: u32, seconds: u64, cycles: u32, key: &str| {
        StartOptions::new()
            .policies(rules(retries), Overlay::Merge)
            .deadline(Span::from_secs(seconds))
            .checkpoints(Checkpoints::EveryN(cycles))
            .context(RunContext::new().global("key", key))
    };
    let first = options(1, 2, 3, "a");
    runner.start_with("first", &numbers(), &first).await.unwrap();
    runner.start_with("first", &numbers(), &first).await.unwrap();
    runner.start("first", &numbers()).await.unwrap();
    for (other, expected) in [
        (options(9, 2, 3, "a"), vec!["policies"]),
        (options(1, 9, 3, "a"), vec!["deadline"]),
        (options(1, 2, 9, "a"), vec!["checkpoints"]),
        (options(1, 2, 3, "z"), vec!["context"]),
        (options(9, 9, 9, "z"), vec!["policies", "deadline", "checkpoints", "context"]),
    ] {
        let error = runner.start_with("first", &numbers(), &other).await.unwrap_err();
        let StartError::OtherOptions { run, options } = &error else { panic!("{error:?}") };
        assert_eq!((run.as_str(), options), ("first", &expected));
        let again = runner.run_with("first", &numbers(), 1_i64, &other).await;
        assert!(matches!(again, Err(StartError::OtherOptions { .. })), "{again:?}");
    }
    runner.shutdown().await;
    // The next process may bring other values from outside, which are never stored, and nothing else.
    let runner = store.runner(RunnerOptions::new()).await;
    let error = runner.start_with("first", &numbers(), &options(1, 9, 3, "z")).await.unwrap_err();
    assert!(error.to_string().contains("other deadline"), "{error}");
    let run = runner.start_with("first", &numbers(), &options(1, 2, 3, "z")).await.unwrap();
    run.input(1_i64).await.unwrap();
    assert_eq!(run.result::<i64>("sum").await.unwrap(), 6);
}
