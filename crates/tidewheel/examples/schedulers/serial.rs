//! The simplest scheduler: a loop that runs one piece of work after the other.

use tidewheel::run::Run;

/// Runs until nothing is left to do.
pub(crate) async fn run_to_end(run: &mut Run) {
    while run.is_runnable() {
        for runnable in run.prepare() {
            let executed = runnable.execute_async().await;
            run.apply(executed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::orders::{Fulfillment, order, order_fulfillment};

    #[tokio::test(start_paused = true)]
    async fn the_three_checks_take_the_sum_of_their_times() {
        let mut run = order_fulfillment().unwrap().run("test");
        run.plan(order("ada", &["tea"]));
        let start = Instant::now();
        run_to_end(&mut run).await;
        assert_eq!(start.elapsed(), Duration::from_millis(200 + 300 + 150));
        let decided: Option<Fulfillment> = run.result("decide_fulfillment").unwrap();
        assert!(decided.unwrap().approved);
    }
}
