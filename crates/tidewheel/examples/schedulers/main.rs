//! Schedulers by hand, from a loop to a task that reacts to each result and one that keeps waits and a log itself,
//! and the one that is there for many runs at once; the guide explains them.
//!
//! `cargo run --example schedulers`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod event_driven;
mod gated;
#[path = "../order_fulfillment/orders.rs"]
mod orders;
mod parallel;
mod serial;
mod supervised;
mod with_policies;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use event_driven::Scheduler;
use orders::{Fulfillment, order, order_fulfillment};
use supervised::Orders;
use tidewheel::prelude::*;
use tidewheel::store::RealClock;
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
    show("event-driven", &run)?;

    let rules = Rules::new([(name("screen_fraud"), Policy::new().max_retries(1).timeout("250ms"))])?;
    let mut run = workflow.run("with-policies");
    run.plan(order("ada", &["tea", "cup"]));
    with_policies::run_to_end(&mut run, &rules).await?;
    show("with rules", &run)?;
    for failed in run.failures() {
        println!(
            "  {} failed {} times: {}",
            failed.component.unwrap_or_default(),
            failed.attempts,
            failed.failure
        );
    }

    let polite = Workflow::new("polite")
        .add(map("call", |x: u32| async move { x * x }))
        .policy(name("call"), Policy::new().rate_limit(2, "300ms"))
        .build()?;
    let mut scheduler = gated::Scheduler::new(&polite, Vec::new(), Arc::new(RealClock::new()))?;
    scheduler.input(vec![1_u32, 2, 3, 4]);
    scheduler.run_to_end().await;
    println!(
        "gated        at {:>4} ms: {:?}",
        start.elapsed().as_millis(),
        scheduler.results::<u32>("call")?
    );

    let folder = tempfile::tempdir()?;
    let runner = Runner::open(folder.path().join("orders.db")).await?;
    let orders = Orders::new(runner.clone(), workflow)?;
    for (id, customer) in [("order-1", "ada"), ("order-2", "mallory"), ("order-3", "nobody")] {
        orders.start(id).await?;
        orders.run(id, order(customer, &["tea", "cup"])).await?;
    }
    orders.stop("order-1").await?;
    for id in ["order-1", "order-2", "order-3"] {
        let run = orders.resume(id).await?;
        let status = run.wait().await?;
        let decided = orders.results(id).await?;
        println!("supervised   at {:>4} ms: {id} is {status}: {decided:?}", start.elapsed().as_millis());
    }
    runner.shutdown().await;
    Ok(())
}
