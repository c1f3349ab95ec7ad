//! The worker of the demo, a process of its own: it runs an order on a database and says line by line what
//! happens. Whoever started it may kill it at any moment.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidewheel_core::fact::{Payload, RunId};
use tidewheel_core::policy::NodeInfo;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{BuildErrors, Workflow, rule, step};
use tidewheel_runner::{Hooks, Runner, RunnerOptions};

use crate::exit::Exit;

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

/// The steps in the order in which they are shown.
pub(crate) const STEPS: [&str; 5] =
    ["validate_order", "check_inventory", "estimate_shipping", "screen_fraud", "decide"];

/// Runs the order to its end, if nobody kills the process before.
pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Whoever started this holds the other end: when that process is gone, nobody wants the order any more.
    std::thread::spawn(|| {
        drop(io::stdin().lock().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
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
    let run = runner.start("order-123", &workflow(arguments.hang_in.as_deref())?).await?;
    run.input_keyed("order", Order { items: 2, customer: "alice".to_owned() }).await?;
    let result: Value = run.result("decide").await?;
    say(&Word::Result(result));
    runner.shutdown().await;
    Ok(())
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    items: u32,
    customer: String,
}

fn workflow(hang_in: Option<&str>) -> Result<Workflow, BuildErrors> {
    let [validate_order, check_inventory, estimate_shipping, screen_fraud, decide] = STEPS;
    let checks = [check_inventory, screen_fraud, estimate_shipping];
    let trusts = |order: Order| order.customer != "mallory";
    Workflow::new("order_fulfillment")
        .add(
            rule(validate_order)
                .when(|order: &Order| order.items > 0)
                .then(loud(hang_in, |order: Order| order)),
        )
        .add(step(check_inventory, loud(hang_in, |order: Order| order.items <= 10)).after(validate_order))
        .add(step(screen_fraud, loud(hang_in, trusts)).after(validate_order))
        .add(step(estimate_shipping, loud(hang_in, |order: Order| 2 + order.items)).after(validate_order))
        .add(
            step(
                decide,
                loud(hang_in, |(in_stock, trusted, days): (bool, bool, u32)| {
                    json!({"ship": in_stock && trusted, "days": days})
                }),
            )
            .after(checks),
        )
        .build()
}

/// Makes work that says that it was called, and that may not come to its end.
fn loud<I: Payload, O: Payload>(
    hang_in: Option<&str>,
    function: impl Fn(I) -> O + Clone + Send + Sync + 'static,
) -> impl Fn(Context, I) -> O + Clone + Send + Sync + 'static {
    let hang_in = hang_in.map(str::to_owned);
    move |context: Context, input: I| {
        let step = context.node().unwrap_or_default().to_owned();
        let hangs = hang_in.as_deref() == Some(&step);
        say(&Word::Called { step, work: context.runnable_id().to_string(), attempt: context.attempt() });
        if hangs {
            loop {
                std::thread::park();
            }
        }
        function(input)
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

fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
