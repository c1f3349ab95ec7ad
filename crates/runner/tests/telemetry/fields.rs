//! What a policy says about what is told of its work, in memory and in a runner.

use std::sync::Arc;

use tidewheel_core::policy::{self, LogLevel, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::telemetry::TARGET;
use tidewheel_runner::{DriveOptions, Options, Runner, RunnerOptions, drive, react_until_satisfied};
use tidewheel_testkit::{Capture, Heard};
use tracing::Level;

/// Runs a step under a policy, in memory, in a runner and by hand, and returns what was told of it in each.
async fn heard_of(name: &str, policy: Policy) -> [Vec<Heard>; 3] {
    let capture = Capture::everywhere(TARGET);
    let [memory, durable, by_hand] = ["memory", "durable", "by-hand"].map(|home| format!("{name}-{home}"));
    let work = || -> Workflow {
        let builder = Workflow::new("w").add(step("s", |x: i64| x));
        builder.policy(policy::default(), policy.clone()).build().unwrap()
    };
    react_until_satisfied(&mut work().run(memory.as_str()), 1_i64, Options::new()).await.unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.run(durable.as_str(), &work(), 1_i64).await.unwrap().result::<i64>("s").await.unwrap();
    // The policy that is given counts, not the one that the run has.
    let mut run = Workflow::new("w").add(step("s", |x: i64| x)).build().unwrap().run(by_hand.as_str());
    run.plan(1_i64);
    let policy = Arc::new(policy.resolved().unwrap());
    drop(drive(run.prepare().remove(0), policy, DriveOptions::new()).await.unwrap());
    [memory, durable, by_hand].map(|run| capture.of_run(&run))
}

const TOLD: [&str; 3] = ["tidewheel.execute", "tidewheel.execute.start", "tidewheel.execute.stop"];

#[tokio::test]
async fn a_level_is_that_of_all_that_is_told_of_the_work() {
    for (written, level) in
        [(None, Level::DEBUG), (Some(LogLevel::Error), Level::ERROR), (Some(LogLevel::Trace), Level::TRACE)]
    {
        let policy = written.map_or_else(Policy::new, |level| Policy::new().log_level(level));
        for heard in heard_of(level.as_str(), policy).await {
            assert_eq!(heard.iter().map(|heard| heard.name).collect::<Vec<_>>(), TOLD);
            assert!(heard.iter().all(|heard| heard.level == level), "{heard:?}");
        }
    }
    assert_eq!(heard_of("off", Policy::new().log_level(LogLevel::Off)).await, [vec![], vec![], vec![]]);
}

#[tokio::test]
async fn a_prefix_stands_in_front_of_every_name() {
    for heard in heard_of("prefix", Policy::new().telemetry_prefix("shop")).await {
        let names: Vec<_> = heard.iter().filter_map(|heard| heard.get("name")).collect();
        assert_eq!(names, TOLD.map(|name| format!("shop.{name}")));
        assert!(heard.iter().all(|heard| heard.get("prefix") == Some("shop")));
    }
    for heard in heard_of("plain", Policy::new()).await {
        assert!(heard.iter().all(|heard| heard.get("prefix").is_none() && heard.get("name").is_none()));
    }
}

#[tokio::test]
async fn metadata_is_carried_along() {
    for heard in heard_of("metadata", Policy::new().metadata("team", "ops").metadata("tier", 2)).await {
        assert_eq!(heard.len(), TOLD.len());
        assert!(heard.iter().all(|heard| heard.get("metadata") == Some(r#"{"team":"ops","tier":2}"#)));
    }
}
