//! An order is reserved, charged and shipped. Where it cannot be shipped, the money goes back and the shelf is free
//! again, in reverse order, each with retries of its own.
//!
//! `cargo run --example order_with_compensation`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;
use tokio::time::{Instant, sleep};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u32,
    to: String,
}

/// What a bank says of a payment, and needs to give it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Receipt {
    number: u32,
    order: Order,
}

/// The world outside: a warehouse, a bank and a carrier. Each writes down what it does, and when.
#[derive(Clone, Debug)]
struct World {
    began: Instant,
    diary: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        Self { began: Instant::now(), diary: Arc::default() }
    }

    /// Takes its time and writes down what happened.
    async fn does(&self, millis: u64, what: impl Into<String>) {
        sleep(Duration::from_millis(millis)).await;
        let line = format!("{:>5} ms  {}", self.began.elapsed().as_millis(), what.into());
        self.diary.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn diary(&self) -> Vec<String> {
        self.diary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn reserve(self, order: Order) -> Order {
        self.does(100, format!("reserved a {}", order.item)).await;
        order
    }

    async fn release(self, order: Order) {
        self.does(100, format!("released the {}", order.item)).await;
    }

    /// The receipt is known only here, so the work itself says how it is undone.
    async fn charge(self, context: Context, order: Order) -> Receipt {
        self.does(200, format!("charged {} cents", order.cents)).await;
        let receipt = Receipt { number: 7, order };
        context.register_compensation("refund", receipt.clone());
        receipt
    }

    /// The bank is busy at first.
    async fn refund(self, context: Context, receipt: Receipt) -> Result<(), Failure> {
        if context.attempt() == 0 {
            self.does(50, "the bank is busy").await;
            return Err(Failure::new("busy").code(503));
        }
        self.does(200, format!("refunded receipt {}", receipt.number)).await;
        Ok(())
    }

    async fn ship(self, receipt: Receipt) -> Result<String, Failure> {
        let Order { item, to, .. } = receipt.order;
        if to == "Mars" {
            self.does(300, "the carrier does not go there").await;
            return Err(Failure::new("no way to Mars").non_retryable());
        }
        self.does(300, format!("shipped to {to}")).await;
        Ok(format!("a {item} is on its way to {to}"))
    }
}

fn orders(world: &World) -> Result<Workflow, BuildErrors> {
    let (reserving, charging, shipping) = (world.clone(), world.clone(), world.clone());
    let (releasing, refunding) = (world.clone(), world.clone());
    Workflow::new("orders")
        .add(step("reserve", move |order: Order| reserving.clone().reserve(order)))
        .add(
            step("charge", move |context: Context, order: Order| charging.clone().charge(context, order))
                .after("reserve"),
        )
        .add(step("ship", move |receipt: Receipt| shipping.clone().ship(receipt)).after("charge"))
        // These take no input: they run when something is undone.
        .add(compensation("release", move |order: Order| releasing.clone().release(order)))
        .add(compensation("refund", move |context: Context, receipt: Receipt| {
            refunding.clone().refund(context, receipt)
        }))
        .policy(name("reserve"), Policy::new().compensation_node("release"))
        .policy(name("ship"), Policy::new().max_retries(2).on_failure(OnFailure::Compensate))
        .policy(name("refund"), Policy::new().max_retries(5).backoff(Backoff::Fixed).base_delay("1s"))
        .build()
}

fn order(to: &str) -> Order {
    Order { item: "lamp".to_owned(), cents: 1_900, to: to.to_owned() }
}

// The clock stands still while there is work and jumps where there is none, so it takes no time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    for to in ["Oslo", "Mars"] {
        let world = World::new();
        let runner = Runner::in_memory(RunnerOptions::new()).await?;
        let run = runner.run(format!("to-{to}"), &orders(&world)?, order(to)).await?;
        let status = run.wait().await?;
        println!("The order to {to} is {status}:");
        for line in world.diary() {
            println!("  {line}");
        }
        for failed in run.state().await?.failures() {
            println!("  {} failed: {}", failed.component.unwrap_or_default(), failed.failure);
        }
        runner.shutdown().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidewheel::store::{Memory, RealClock, Store};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_order_that_is_shipped_is_not_undone() {
        let world = World::new();
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let run = runner.run("order", &orders(&world).unwrap(), order("Oslo")).await.unwrap();
        let shipped: String = run.result("ship").await.unwrap();
        assert_eq!(shipped, "a lamp is on its way to Oslo");
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
        let expected =
            ["  100 ms  reserved a lamp", "  300 ms  charged 1900 cents", "  600 ms  shipped to Oslo"];
        assert_eq!(world.diary(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_cannot_be_shipped_is_undone_in_reverse_order_with_retries() {
        let world = World::new();
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let run = runner.run("order", &orders(&world).unwrap(), order("Mars")).await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        let expected = [
            "  100 ms  reserved a lamp",
            "  300 ms  charged 1900 cents",
            "  600 ms  the carrier does not go there",
            "  650 ms  the bank is busy",
            " 1850 ms  refunded receipt 7",
            " 1950 ms  released the lamp",
        ];
        assert_eq!(world.diary(), expected);
        let error = run.result::<String>("ship").await.unwrap_err();
        assert_eq!(error.to_string(), "`ship` failed: no way to Mars");
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_ends_while_it_undoes_goes_on_in_its_next_life() {
        let world = World::new();
        let clock = Arc::new(RealClock::new());
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let options = RunnerOptions::new().clock(clock);
        let runner = Runner::with_store(Arc::clone(&store), options.clone()).await.unwrap();
        runner.run("order", &orders(&world).unwrap(), order("Mars")).await.unwrap();
        while world.diary().len() < 4 {
            sleep(Duration::from_millis(1)).await;
        }
        drop(runner); // before the bank answers

        let runner = Runner::with_store(store, options).await.unwrap();
        runner.register(&orders(&world).unwrap()).unwrap();
        let run = runner.get("order").await.unwrap();
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        let undone: Vec<String> = world.diary()[3..].iter().map(|line| line[10..].to_owned()).collect();
        assert_eq!(undone, ["the bank is busy", "refunded receipt 7", "released the lamp"]);
    }
}
