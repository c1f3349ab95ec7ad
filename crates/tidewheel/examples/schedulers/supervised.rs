//! Many workflows by id: each step is isolated, runs are found by their id, stopped and resumed, and what they
//! came to is stored. All of that is a `Runner`; what is here only says it in the words of orders.

use tidewheel::prelude::*;

use crate::orders::{Fulfillment, Order};

/// Orders, each a run of one workflow.
#[derive(Clone)]
pub(crate) struct Orders {
    runner: Runner,
    workflow: Workflow,
}

impl Orders {
    /// Makes the workflow known: its runs that nobody drives are taken up again.
    pub(crate) fn new(runner: Runner, workflow: Workflow) -> Result<Self, StartError> {
        runner.register(&workflow)?;
        Ok(Self { runner, workflow })
    }

    /// Starts a run, or finds the one of that id.
    pub(crate) async fn start(&self, id: &str) -> Result<RunHandle, StartError> {
        self.runner.start(id, &self.workflow).await
    }

    /// Gives a run an order and does not wait for what comes of it.
    pub(crate) async fn run(&self, id: &str, order: Order) -> Result<(), InputError> {
        self.runner.get(id).await?.input(order).await
    }

    /// Returns what was decided so far.
    pub(crate) async fn results(&self, id: &str) -> Result<Vec<Fulfillment>, ResultError> {
        self.runner.get(id).await?.results("decide_fulfillment").await
    }

    /// Lets go of a run; one that is not there, or has nothing left to do, is fine. Work that is under way is done again
    /// after a resume.
    pub(crate) async fn stop(&self, id: &str) -> Result<(), CommandError> {
        match self.runner.stop(id).await {
            Ok(_) | Err(CommandError::NotFound { .. } | CommandError::NoEffect { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Goes on with a run.
    pub(crate) async fn resume(&self, id: &str) -> Result<RunHandle, CommandError> {
        self.runner.resume(id).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::orders::{order, order_fulfillment};

    async fn in_memory(workflow: Workflow) -> Orders {
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        Orders::new(runner, workflow).unwrap()
    }

    fn approved(decided: &[Fulfillment]) -> Vec<bool> {
        decided.iter().map(|decided| decided.approved).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_three_checks_take_as_long_as_the_slowest() {
        let orders = in_memory(order_fulfillment().unwrap()).await;
        let start = Instant::now();
        let run = orders.start("order-123").await.unwrap();
        orders.run("order-123", order("ada", &["tea"])).await.unwrap();
        let decided: Fulfillment = run.result("decide_fulfillment").await.unwrap();
        assert!(decided.approved);
        assert_eq!(start.elapsed(), Duration::from_millis(300));
    }

    #[tokio::test(start_paused = true)]
    async fn many_orders_run_at_once_and_are_found_by_their_id() {
        let orders = in_memory(order_fulfillment().unwrap()).await;
        let start = Instant::now();
        for id in 0..50 {
            let id = format!("order-{id}");
            orders.start(&id).await.unwrap();
            orders
                .run(&id, order(if id.ends_with('7') { "mallory" } else { "ada" }, &["tea"]))
                .await
                .unwrap();
        }
        for id in 0..50 {
            let run = orders.start(&format!("order-{id}")).await.unwrap();
            assert_eq!(run.wait().await.unwrap(), Status::Completed);
        }
        assert_eq!(start.elapsed(), Duration::from_millis(300));
        assert_eq!(approved(&orders.results("order-6").await.unwrap()), [true]);
        assert_eq!(approved(&orders.results("order-7").await.unwrap()), [false]);
        let nobody = orders.run("order-99", order("ada", &["tea"])).await.unwrap_err();
        assert!(matches!(nobody, InputError::Start(StartError::NotFound { .. })), "{nobody}");
        orders.stop("order-99").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_panics_takes_nothing_else_down() {
        let workflow = Workflow::new("jumpy")
            .add(step("jump", |height: i64| if height > 9 { panic!("too high") } else { height }))
            .add(step("walk", |height: i64| height + 1))
            .build()
            .unwrap();
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let (high, low) = (
            runner.run("high", &workflow, 10_i64).await.unwrap(),
            runner.run("low", &workflow, 1_i64).await.unwrap(),
        );
        let error = high.result::<i64>("jump").await.unwrap_err();
        assert_eq!(error.to_string(), "`jump` failed: [panic] too high");
        assert_eq!(high.result::<i64>("walk").await.unwrap(), 11, "the other branch goes on");
        assert_eq!(low.result::<i64>("jump").await.unwrap(), 1, "and so does the other run");
        high.input(2_i64).await.unwrap();
        assert_eq!(high.result::<i64>("jump").await.unwrap(), 2, "and the run takes another input");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_stopped_can_be_resumed() {
        let orders = in_memory(order_fulfillment().unwrap()).await;
        let run = orders.start("order-123").await.unwrap();
        orders.run("order-123", order("ada", &["tea"])).await.unwrap();
        sleep(Duration::from_millis(160)).await;
        orders.stop("order-123").await.unwrap();
        assert_eq!(run.status().await.unwrap(), Status::Stopped);
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(run.status().await.unwrap(), Status::Stopped);

        let start = Instant::now();
        let run = orders.resume("order-123").await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
        assert_eq!(start.elapsed(), Duration::from_millis(300), "the screening began again");
        assert_eq!(approved(&orders.results("order-123").await.unwrap()), [true]);
    }

    #[tokio::test]
    async fn orders_go_on_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.db");
        for is_first in [true, false] {
            // It does not wait for what is under way: the program ends in the middle.
            let options = RunnerOptions::new().shutdown_grace(Span::from_millis(0));
            let runner = Runner::open_with(&path, options).await.unwrap();
            let orders = Orders::new(runner.clone(), order_fulfillment().unwrap()).unwrap();
            let run = orders.start("order-123").await.unwrap();
            if is_first {
                orders.run("order-123", order("ada", &["tea"])).await.unwrap();
            } else {
                assert_eq!(run.wait().await.unwrap(), Status::Completed);
                assert_eq!(approved(&orders.results("order-123").await.unwrap()), [true]);
            }
            runner.shutdown().await;
        }
    }
}
