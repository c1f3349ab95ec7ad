//! A task that owns a run: it takes inputs at any time, applies each result as it arrives and starts what that
//! wakes. Nobody waits for a batch.

use tidewheel::fact::{Payload, Value};
use tidewheel::run::Run;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// What a scheduler can be asked.
enum Message {
    Run(Value),
    Look(Box<dyn FnOnce(&Run) + Send>),
}

/// A handle of the task.
pub(crate) struct Scheduler {
    messages: mpsc::UnboundedSender<Message>,
    task: JoinHandle<Run>,
}

impl Scheduler {
    /// Starts the task.
    pub(crate) fn start(run: Run) -> Self {
        let (messages, inbox) = mpsc::unbounded_channel();
        Self { messages, task: tokio::spawn(serve(run, inbox)) }
    }

    /// Gives the run an input and does not wait for what comes of it.
    pub(crate) fn run<T: Payload>(&self, input: T) {
        self.send(Message::Run(Value::new(input)));
    }

    /// Looks at the run as it is now.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Run) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        // Whoever asked may have gone, and then nobody wants the answer.
        self.send(Message::Look(Box::new(|run| drop(answer.send(look(run))))));
        answered.await.ok()
    }

    /// Lets the run come to its end and returns it.
    pub(crate) async fn stop(self) -> Result<Run, JoinError> {
        drop(self.messages);
        self.task.await
    }

    fn send(&self, message: Message) {
        // It fails only when the task is gone, and then there is nobody to tell.
        drop(self.messages.send(message));
    }
}

/// Serves messages and results as they come, until there will be no more of either.
async fn serve(mut run: Run, mut inbox: mpsc::UnboundedReceiver<Message>) -> Run {
    let mut tasks = JoinSet::new();
    loop {
        for runnable in run.prepare() {
            tasks.spawn(runnable.execute_async());
        }
        tokio::select! {
            Some(message) = inbox.recv() => match message {
                Message::Run(input) => { run.plan_value(input); }
                Message::Look(look) => look(&run),
            },
            Some(ended) = tasks.join_next() => if let Ok(executed) = ended {
                run.apply(executed);
            },
            else => return run,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::orders::{Fulfillment, order, order_fulfillment};

    /// Returns the components that have produced something.
    async fn produced(scheduler: &Scheduler) -> Vec<String> {
        let names = |run: &Run| {
            run.productions().iter().filter_map(|fact| fact.producer.map(str::to_owned)).collect::<Vec<_>>()
        };
        scheduler.look(names).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_result_is_applied_as_it_arrives() {
        let scheduler = Scheduler::start(order_fulfillment().unwrap().run("test"));
        let start = Instant::now();
        scheduler.run(order("ada", &["tea"]));
        let mut seen = Vec::new();
        for at in [149, 151, 201, 301] {
            sleep(Duration::from_millis(at) - start.elapsed()).await;
            seen.push(produced(&scheduler).await);
        }
        assert_eq!(seen[0], ["validate_order"]);
        assert_eq!(seen[1], ["validate_order", "estimate_shipping"]);
        assert_eq!(seen[2], ["validate_order", "check_inventory", "estimate_shipping"]);
        assert_eq!(seen[3].last().unwrap(), "decide_fulfillment");
    }

    #[tokio::test(start_paused = true)]
    async fn an_input_that_comes_later_waits_for_nobody() {
        let scheduler = Scheduler::start(order_fulfillment().unwrap().run("test"));
        let start = Instant::now();
        scheduler.run(order("ada", &["tea"]));
        sleep(Duration::from_millis(100)).await;
        scheduler.run(order("mallory", &["tea"]));
        let run = scheduler.stop().await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(100 + 300));
        let decided: Vec<Fulfillment> = run.results("decide_fulfillment").unwrap();
        let approved: Vec<bool> = decided.iter().map(|decided| decided.approved).collect();
        assert_eq!(approved, [true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_its_branch_and_not_the_scheduler() {
        let scheduler = Scheduler::start(order_fulfillment().unwrap().run("test"));
        scheduler.run(order("nobody", &["tea"]));
        scheduler.run(order("ada", &["tea"]));
        let run = scheduler.stop().await.unwrap();
        assert!(!run.is_runnable());
        assert_eq!(run.failures()[0].component, Some("screen_fraud"));
        assert_eq!(run.results::<Fulfillment>("decide_fulfillment").unwrap().len(), 1);
    }
}
