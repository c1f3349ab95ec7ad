//! The worker of the demo, a process of its own: it runs an order on a database and says line by line what
//! happens. Whoever started it may kill it at any moment.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidewheel_core::fact::{Payload, RunId};
use tidewheel_core::policy::{Backoff, CircuitBreaker, Failure, NodeInfo, Policy, name};
use tidewheel_core::time::Span;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{BuildErrors, Workflow, map, reduce, rule, step};
use tidewheel_runner::{Hooks, Runner, RunnerOptions};

use crate::exit::Exit;
use crate::store::with_causes;

/// Runs the order of the demo; the demo starts this by itself
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The database
    database: PathBuf,
    /// The step that does not come to its end
    #[arg(long)]
    hang_in: Option<String>,
}

/// What a worker says, one line of JSON each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// A step was called.
    Called {
        /// Its name.
        step: String,
        /// The piece of work: the same over attempts and restarts.
        work: String,
        /// Which attempt.
        attempt: u32,
    },
    /// The result of a step is stored.
    Stored {
        /// Its name.
        step: String,
    },
    /// This came of the order.
    Result(Value),
}

/// The run.
pub(crate) const RUN: &str = "order-123";

/// The steps in the order in which they are shown.
pub(crate) const STEPS: [&str; 6] =
    ["validate_order", "check_inventory", "print_label", "book_carrier", "screen_fraud", "decide"];

/// The books of the order; each gets a label.
pub(crate) const BOOKS: [&str; 6] = ["Emma", "Middlemarch", "Moby-Dick", "Orlando", "Ulysses", "Walden"];

/// How often the two services fail before they answer.
const FAILURES: u32 = 2;

/// Runs the order to its end, if nobody kills the process before.
pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Whoever started this holds the other end: when that process is gone, nobody wants the order any more.
    // Without a thread for it, the order is done all the same.
    drop(std::thread::Builder::new().spawn(|| {
        drop(io::stdin().lock().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    }));
    let runtime = crate::runtime::current_thread();
    let ran = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(work(arguments)));
    match ran {
        Ok(()) => Exit::Succeeded,
        Err(error) => {
            // The demo shows it.
            drop(writeln!(io::stderr(), "{}", with_causes(error.as_ref())));
            Exit::Failed
        }
    }
}

async fn work(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let options = RunnerOptions::new().hooks(Loud);
    let runner = Runner::open_with(&arguments.database, options).await?;
    let run = runner.start(RUN, &workflow(arguments.hang_in.as_deref())?).await?;
    let books = BOOKS.map(str::to_owned).to_vec();
    run.input_keyed("order", Order { customer: "alice".to_owned(), books }).await?;
    let result: Value = run.result("decide").await?;
    say(&Word::Result(result));
    runner.shutdown().await;
    Ok(())
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    customer: String,
    books: Vec<String>,
}

/// Returns the workflow of the order. The services that it asks are functions, and two of them fail at first.
pub(crate) fn workflow(hang_in: Option<&str>) -> Result<Workflow, BuildErrors> {
    let [validate_order, check_inventory, print_label, book_carrier, screen_fraud, decide] = STEPS;
    let is_in_stock = |_: &Context, order: Order| Ok(order.books.len() <= 10);
    let label = |_: &Context, book: String| Ok(format!("{book} to alice"));
    let carrier = |context: &Context, _: Order| up(context, "no answer", "Tuesday".to_owned());
    let trusts = |context: &Context, order: Order| up(context, "overloaded", order.customer != "mallory");
    Workflow::new("order_fulfillment")
        .add(
            rule(validate_order)
                .when(|order: &Order| !order.books.is_empty())
                .then(loud(hang_in, |_, order: Order| Ok(order))),
        )
        .add(step(check_inventory, loud(hang_in, is_in_stock)).after(validate_order))
        .add(step("list_books", |order: Order| order.books).after(validate_order))
        .add(map(print_label, loud(hang_in, label)).after("list_books"))
        .add(reduce("count_labels", 0, |count: usize, _: String| count + 1).after(print_label))
        .add(step(book_carrier, loud(hang_in, carrier)).after(validate_order))
        .add(step(screen_fraud, loud(hang_in, trusts)).after(validate_order))
        .add(
            step(
                decide,
                loud(hang_in, |_, (in_stock, labels, day, trusted): (bool, usize, String, bool)| {
                    Ok(json!({"ship": in_stock && trusted, "labels": labels, "day": day}))
                }),
            )
            .after([check_inventory, "count_labels", book_carrier, screen_fraud]),
        )
        .policy(name(print_label), Policy::new().rate_limit(3, "1s"))
        .policy(name(book_carrier), retrying("50ms").circuit_breaker(breaker()))
        .policy(name(screen_fraud), retrying("100ms"))
        .build()
}

fn retrying(base_delay: &str) -> Policy {
    Policy::new().max_retries(4).backoff(Backoff::exponential()).base_delay(base_delay)
}

/// Two failures in a row, and nobody asks the carrier for a while.
fn breaker() -> CircuitBreaker {
    let breaker = CircuitBreaker::new("carrier");
    CircuitBreaker { failure_threshold: FAILURES, reset_timeout: Span::from_millis(800), ..breaker }
}

/// Returns the answer of a service that fails at first.
fn up<T>(context: &Context, complaint: &str, answer: T) -> Result<T, Failure> {
    if context.attempt() < FAILURES { Err(Failure::new(complaint).code(503)) } else { Ok(answer) }
}

/// Makes work that says that it was called, and that may not come to its end.
fn loud<I: Payload, O: Payload>(
    hang_in: Option<&str>,
    function: impl Fn(&Context, I) -> Result<O, Failure> + Clone + Send + Sync + 'static,
) -> impl Fn(Context, I) -> Result<O, Failure> + Clone + Send + Sync + 'static {
    let hang_in = hang_in.map(str::to_owned);
    move |context: Context, input: I| {
        let step = context.node().unwrap_or_default().to_owned();
        let hangs = hang_in.as_deref() == Some(&step) && context.attempt() == FAILURES;
        say(&Word::Called { step, work: context.runnable_id().to_string(), attempt: context.attempt() });
        if hangs {
            loop {
                std::thread::park();
            }
        }
        function(&context, input)
    }
}

/// Says what is stored.
struct Loud;

impl Hooks for Loud {
    fn completed(&self, _: &RunId, node: &NodeInfo<'_>) {
        if let Some(step) = node.name {
            say(&Word::Stored { step: step.to_owned() });
        }
    }
}

/// Says something to whoever started this. If nobody listens, there is nothing to do about it.
fn say(word: &Word) {
    let line = serde_json::to_string(word).expect("invariant: a word has no key that is not a string");
    let mut stream = io::stdout().lock();
    drop(writeln!(stream, "{line}").and_then(|()| stream.flush()));
}
