//! An order and what becomes of it: it is checked, three services look at it, and a decision is made.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;
use tokio::time::sleep;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) customer: String,
    pub(crate) items: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inventory {
    pub(crate) in_stock: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Screening {
    pub(crate) risk: Risk,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Risk {
    Low,
    High,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shipping {
    pub(crate) days: u32,
    pub(crate) cost_cents: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fulfillment {
    pub(crate) approved: bool,
    pub(crate) shipping_days: u32,
    pub(crate) shipping_cost_cents: u32,
}

/// Asks the warehouse.
async fn check_inventory(order: Order) -> Inventory {
    sleep(Duration::from_millis(200)).await;
    Inventory { in_stock: !order.items.contains(&"unicorn".to_owned()) }
}

/// Asks a service that is not always there.
async fn screen_fraud(order: Order) -> Result<Screening, Failure> {
    sleep(Duration::from_millis(300)).await;
    match order.customer.as_str() {
        "nobody" => Err(Failure::new("the screening service is down").code(503)),
        "mallory" => Ok(Screening { risk: Risk::High }),
        _ => Ok(Screening { risk: Risk::Low }),
    }
}

/// Asks the carrier.
async fn estimate_shipping(_: Order) -> Shipping {
    sleep(Duration::from_millis(150)).await;
    Shipping { days: 3, cost_cents: 599 }
}

fn decide_fulfillment(inventory: Inventory, screening: Screening, shipping: Shipping) -> Fulfillment {
    Fulfillment {
        approved: inventory.in_stock && screening.risk == Risk::Low,
        shipping_days: shipping.days,
        shipping_cost_cents: shipping.cost_cents,
    }
}

pub(crate) fn order_fulfillment() -> Result<Workflow, BuildErrors> {
    Workflow::new("order_fulfillment")
        .add(
            rule("validate_order")
                .when(|order: &Order| !order.items.is_empty() && !order.customer.is_empty())
                .then(|order: Order| order),
        )
        .add(step("check_inventory", check_inventory).after("validate_order"))
        .add(step("screen_fraud", screen_fraud).after("validate_order"))
        .add(step("estimate_shipping", estimate_shipping).after("validate_order"))
        .add(step("decide_fulfillment", decide_fulfillment).after([
            "check_inventory",
            "screen_fraud",
            "estimate_shipping",
        ]))
        .build()
}

pub(crate) fn order(customer: &str, items: &[&str]) -> Order {
    Order { customer: customer.to_owned(), items: items.iter().map(|item| (*item).to_owned()).collect() }
}
