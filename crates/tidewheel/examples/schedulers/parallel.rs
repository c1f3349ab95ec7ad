//! A loop that runs everything that is ready at once, and then waits for all of it.

use tidewheel::run::Run;
use tokio::task::JoinSet;

/// Runs until nothing is left to do.
pub(crate) async fn run_to_end(run: &mut Run) {
    while run.is_runnable() {
        let batch: JoinSet<_> = run.prepare().into_iter().map(|runnable| runnable.execute_async()).collect();
        for executed in batch.join_all().await {
            run.apply(executed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidewheel::prelude::*;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::orders::{Fulfillment, order, order_fulfillment};

    #[tokio::test(start_paused = true)]
    async fn the_three_checks_take_as_long_as_the_slowest() {
        let mut run = order_fulfillment().unwrap().run("test");
        run.plan(order("ada", &["tea"]));
        let start = Instant::now();
        run_to_end(&mut run).await;
        assert_eq!(start.elapsed(), Duration::from_millis(300));
        let decided: Option<Fulfillment> = run.result("decide_fulfillment").unwrap();
        assert!(decided.unwrap().approved);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_result_waits_for_the_slowest_of_its_batch() {
        let waits = |ms: u64| {
            move |x: i64| async move {
                sleep(Duration::from_millis(ms)).await;
                x
            }
        };
        let workflow = Workflow::new("uneven")
            .add(step("fast", waits(50)))
            .add(step("after_fast", waits(500)).after("fast"))
            .add(step("slow", waits(500)))
            .build()
            .unwrap();
        let mut run = workflow.run("test");
        run.plan(1_i64);
        let start = Instant::now();
        run_to_end(&mut run).await;
        assert_eq!(start.elapsed(), Duration::from_millis(500 + 500), "550 would do");

        let mut run = workflow.run("test");
        let start = Instant::now();
        react_until_satisfied(&mut run, 1_i64, ReactOptions::new()).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(50 + 500));
    }
}
