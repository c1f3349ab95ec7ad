//! The workflow of the demo: an order through five ordinary functions, then once more from its events alone.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidewheel_core::event::Event;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::{Workflow, rule, step};

/// What came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// What each component produced, in order.
    pub(crate) productions: Vec<Production>,
    /// How many events the run has.
    pub(crate) events: usize,
    /// Whether the run that was made from the events, as lines of JSON, has the same facts.
    pub(crate) replay_is_equal: bool,
}

/// One production.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Production {
    /// Who produced it; a join has no name.
    pub(crate) component: String,
    /// The value.
    pub(crate) value: Value,
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    items: u32,
    customer: String,
}

/// Runs the order through the workflow.
pub(crate) fn tell() -> Story {
    let workflow = Workflow::new("order_fulfillment")
        .add(rule("validate_order").when(|order: &Order| order.items > 0).then(|order: Order| order))
        .add(step("check_inventory", |order: Order| order.items <= 10).after("validate_order"))
        .add(step("screen_fraud", |order: Order| order.customer != "mallory").after("validate_order"))
        .add(step("estimate_shipping", |order: Order| 2 + order.items).after("validate_order"))
        .add(
            step(
                "decide",
                |in_stock: bool, trusted: bool, days: u32| json!({"ship": in_stock && trusted, "days": days}),
            )
            .after(["check_inventory", "screen_fraud", "estimate_shipping"]),
        )
        .build()
        .expect("invariant: the workflow of the demo is in order");

    let mut run = workflow.run("order-123");
    let mut events: Vec<Event> = run.plan(Order { items: 2, customer: "alice".to_owned() }).to_vec();
    while run.is_runnable() {
        let runnables = run.prepare();
        events.extend_from_slice(run.last_events());
        for runnable in runnables {
            let executed = runnable.execute();
            events.extend_from_slice(run.apply(executed));
        }
    }
    let lines: Vec<String> = events.iter().filter_map(|event| event.to_json(&workflow).ok()).collect();
    let replayed = Run::replay_json(&workflow, "order-123", lines.iter().map(String::as_str));
    let productions = productions(&run);
    Story {
        replay_is_equal: replayed.is_ok_and(|replayed| self::productions(&replayed) == productions),
        events: events.len(),
        productions,
    }
}

fn productions(run: &Run) -> Vec<Production> {
    let shown = run.productions().into_iter().map(|fact| Production {
        component: fact.producer.unwrap_or("(join)").to_owned(),
        value: fact.value.to_json().unwrap_or_default(),
    });
    shown.collect()
}
