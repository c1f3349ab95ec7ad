//! Rules that look at support tickets: conditions have names, are asked once per ticket, and are combined.
//!
//! `cargo run --example rules_classifier`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ticket {
    text: String,
    customer_since: u32,
    is_paying: bool,
}

fn mentions(words: &'static [&'static str]) -> impl Fn(&Ticket) -> bool + Send + Sync {
    move |ticket| {
        let text = ticket.text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

fn label(label: &'static str) -> impl Fn(&Ticket) -> String + Send + Sync {
    move |_| label.to_owned()
}

fn workflow() -> Result<Workflow, BuildErrors> {
    Workflow::new("rules_classifier")
        .add(condition("about_money", mentions(&["invoice", "refund", "charge"])))
        .add(condition("about_outage", mentions(&["down", "error 5", "outage"])))
        .add(condition("loyal", |ticket: &Ticket| ticket.customer_since < 2020))
        .add(rule("billing").when_all(cond("about_money")).then(label("billing")))
        .add(rule("incident").when_all(cond("about_outage")).then(label("incident")))
        .add(
            rule("urgent")
                .when_all(all([
                    test(|ticket: &Ticket| ticket.is_paying),
                    any([cond("about_outage"), all([cond("about_money"), cond("loyal")])]),
                ]))
                .then(label("urgent")),
        )
        .add(
            rule("general")
                .when_all(not(any([cond("about_money"), cond("about_outage")])))
                .then(label("general")),
        )
        .build()
}

/// Returns the labels in the order of the rules.
fn labels(workflow: &Workflow, ticket: Ticket) -> Result<Vec<String>, Box<dyn Error>> {
    let mut run = workflow.run("ticket");
    run.react_until_satisfied(ticket)?;
    Ok(run.productions().iter().map(|fact| fact.value.get()).collect::<Result<_, _>>()?)
}

fn ticket(text: &str, customer_since: u32, is_paying: bool) -> Ticket {
    Ticket { text: text.to_owned(), customer_since, is_paying }
}

fn main() -> Result<(), Box<dyn Error>> {
    let workflow = workflow()?;
    for ticket in [
        ticket("Your site is down!", 2024, true),
        ticket("I want a refund for my last invoice.", 2016, true),
        ticket("I want a refund.", 2024, false),
        ticket("How do I change my picture?", 2024, false),
    ] {
        println!("{:<40} {}", ticket.text.clone(), labels(&workflow, ticket)?.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ticket_gets_the_labels_of_the_rules_that_are_true() {
        let workflow = workflow().unwrap();
        for (ticket, expected) in [
            (ticket("It is down", 2024, true), &["incident", "urgent"][..]),
            (ticket("It is down", 2024, false), &["incident"]),
            (ticket("A refund, please", 2016, true), &["billing", "urgent"]),
            (ticket("A refund, please", 2024, true), &["billing"]),
            (ticket("The invoice gave error 500", 2024, true), &["billing", "incident", "urgent"]),
            (ticket("Hello", 2016, true), &["general"]),
        ] {
            assert_eq!(labels(&workflow, ticket.clone()).unwrap(), expected, "{ticket:?}");
        }
    }
}
