//! An order is checked by three services at once, and a decision is made of what they say.
//!
//! `cargo run --example order_fulfillment`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod orders;

use std::error::Error;

use orders::{Fulfillment, order, order_fulfillment};
use tidewheel::prelude::*;
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workflow = order_fulfillment()?;
    for customer in ["ada", "mallory", "nobody"] {
        let mut run = workflow.run(customer);
        let start = Instant::now();
        react_until_satisfied(&mut run, order(customer, &["tea", "cup"]), ReactOptions::new()).await?;
        println!("{customer}, after {} ms:", start.elapsed().as_millis());
        match run.result::<Fulfillment>("decide_fulfillment")? {
            Some(decided) => println!("  {decided:?}"),
            None => println!("  no decision: {:?}", run.absence("decide_fulfillment", 0)),
        }
        for failed in run.failures() {
            println!("  {} failed: {}", failed.component.unwrap_or_default(), failed.failure.message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use orders::{Inventory, Shipping};

    async fn fulfilled(customer: &str, items: &[&str]) -> Run {
        let mut run = order_fulfillment().unwrap().run("test");
        react_until_satisfied(&mut run, order(customer, items), ReactOptions::new()).await.unwrap();
        assert!(!run.is_runnable());
        run
    }

    fn approved(run: &Run) -> Option<bool> {
        let decided: Option<Fulfillment> = run.result("decide_fulfillment").unwrap();
        decided.map(|decided| decided.approved)
    }

    #[tokio::test(start_paused = true)]
    async fn the_three_services_are_asked_at_once() {
        let start = Instant::now();
        let run = fulfilled("ada", &["tea"]).await;
        assert_eq!(start.elapsed(), Duration::from_millis(300));
        assert_eq!(run.result("check_inventory").unwrap(), Some(Inventory { in_stock: true }));
        assert_eq!(run.result("estimate_shipping").unwrap(), Some(Shipping { days: 3, cost_cents: 599 }));
        let decided = Fulfillment { approved: true, shipping_days: 3, shipping_cost_cents: 599 };
        assert_eq!(run.result("decide_fulfillment").unwrap(), Some(decided));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_risky_or_not_there_is_not_approved() {
        assert_eq!(approved(&fulfilled("mallory", &["tea"]).await), Some(false));
        assert_eq!(approved(&fulfilled("ada", &["unicorn"]).await), Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_is_not_valid_asks_nobody() {
        let start = Instant::now();
        let run = fulfilled("ada", &[]).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(run.productions().is_empty() && run.failures().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_screening_there_is_no_decision_and_the_reason_is_known() {
        let run = fulfilled("nobody", &["tea"]).await;
        assert_eq!(approved(&run), None);
        assert_eq!(run.absence("decide_fulfillment", 0), Some(Absence::UpstreamFailed));
        let failures = run.failures();
        assert_eq!(failures[0].component, Some("screen_fraud"));
        assert_eq!(failures[0].failure.code, Some(503.into()));
    }

    #[tokio::test(start_paused = true)]
    async fn orders_in_flight_at_once_do_not_mix() {
        let mut run = order_fulfillment().unwrap().run("test");
        for (customer, item) in [("ada", "tea"), ("mallory", "tea"), ("ada", "unicorn"), ("ada", "cup")] {
            run.plan(order(customer, &[item]));
        }
        let start = Instant::now();
        run_until_satisfied(&mut run, ReactOptions::new()).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(300));
        let decided: Vec<Fulfillment> = run.results("decide_fulfillment").unwrap();
        let approved: Vec<bool> = decided.iter().map(|decided| decided.approved).collect();
        assert_eq!(approved, [true, false, false, true]);
    }
}
