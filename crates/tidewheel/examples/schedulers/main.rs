//! Three schedulers by hand, from a loop to a task that reacts to each result; the guide explains them.
//!
//! `cargo run --example schedulers`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod event_driven;
#[path = "../order_fulfillment/orders.rs"]
mod orders;
mod parallel;
mod serial;

use std::error::Error;
use std::time::Duration;

use event_driven::Scheduler;
use orders::{Fulfillment, order, order_fulfillment};
use tidewheel::prelude::*;
use tokio::time::{Instant, sleep};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workflow = order_fulfillment()?;
    let start = Instant::now();
    let show = |scheduler: &str, run: &Run| -> Result<(), Box<dyn Error>> {
        let decided = run.result::<Fulfillment>("decide_fulfillment")?;
        println!("{scheduler:<12} at {:>4} ms: {decided:?}", start.elapsed().as_millis());
        Ok(())
    };

    let mut run = workflow.run("serial");
    run.plan(order("ada", &["tea", "cup"]));
    serial::run_to_end(&mut run).await;
    show("serial", &run)?;

    let mut run = workflow.run("parallel");
    run.plan(order("ada", &["tea", "cup"]));
    parallel::run_to_end(&mut run).await;
    show("parallel", &run)?;

    let scheduler = Scheduler::start(workflow.run("event-driven"));
    scheduler.run(order("ada", &["tea", "cup"]));
    sleep(Duration::from_millis(160)).await;
    let facts = scheduler.look(|run| run.productions().len()).await.unwrap_or_default();
    println!("event-driven at {:>4} ms: {facts} facts so far", start.elapsed().as_millis());
    scheduler.run(order("mallory", &["tea"]));
    let run = scheduler.stop().await?;
    show("event-driven", &run)
}
