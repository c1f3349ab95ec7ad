//! Whoever listens to warnings only hears what is given up, wherever it ran, and nothing of what went well.

use std::sync::Arc;

use tidewheel_core::policy::{self, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::telemetry::TARGET;
use tidewheel_runner::{Options, react_until_satisfied};
use tidewheel_testkit::{Capture, VirtualClock};
use tokio::sync::Semaphore;
use tracing::Level;

#[tokio::test]
async fn what_is_given_up_is_heard_by_whoever_listens_to_warnings_only() {
    let capture = Capture::everywhere_from(TARGET, Level::WARN);
    let entered = Arc::new(Semaphore::new(0));
    let (here, there) = (Arc::clone(&entered), Arc::clone(&entered));
    let on_a_thread = step("on_a_thread", move |context: Context, x: i64| {
        here.add_permits(1);
        while !context.cancellation().is_cancelled() {
            std::thread::yield_now();
        }
        x
    });
    let in_a_task = step("in_a_task", move |x: i64| {
        there.add_permits(1);
        async move {
            std::future::pending::<()>().await;
            x
        }
    });
    let workflow = Workflow::new("w")
        .add(on_a_thread)
        .add(in_a_task)
        .add(step("fine", |x: i64| x))
        .policy(policy::default(), Policy::new().timeout("1s"))
        .build()
        .unwrap();
    let clock = VirtualClock::default();
    let options = Options::new().clock(Arc::new(clock.clone()));
    let mut run = workflow.run("r");
    let moving = async {
        // The time of an attempt counts from before it is called.
        entered.acquire_many(2).await.unwrap().forget();
        clock.advance(Span::from_secs(1));
    };
    let (driven, ()) = tokio::join!(react_until_satisfied(&mut run, 1_i64, options), moving);
    driven.unwrap();
    let heard = capture.all();
    let mut told: Vec<(&str, &str)> =
        heard.iter().map(|heard| (heard.name, heard.get("node").unwrap())).collect();
    told.sort_unstable();
    let name = "tidewheel.execute.timeout";
    assert_eq!(told, [(name, "in_a_task"), (name, "on_a_thread")]);
}
