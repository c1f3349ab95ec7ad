//! Tidewheel: an embedded, durable workflow scheduler whose policies live outside the graph and whose
//! every decision says why.
//!
//! This crate is what a Rust program adds: re-exports of the crates below it, a [`prelude`], and nothing of
//! its own.
//!
//! # A durable workflow
//!
//! A [`Runner`] keeps runs in a SQLite file. The same program started again goes on where it was killed.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tidewheel::prelude::*;
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Order {
//!     customer: String,
//!     items: Vec<String>,
//! }
//!
//! /// Asks a service that is not always there.
//! async fn screen_fraud(order: Order) -> Result<bool, Failure> {
//!     if order.customer.is_empty() { Err(Failure::new("who is it?").code(503)) } else { Ok(true) }
//! }
//!
//! async fn fulfil(order: Order) -> Result<String, Box<dyn std::error::Error>> {
//!     let workflow = Workflow::new("order_fulfillment")
//!         .add(rule("validate_order").when(|o: &Order| !o.items.is_empty()).then(|o: Order| o))
//!         .add(step("check_inventory", |o: Order| o.items.len() < 10).after("validate_order"))
//!         .add(step("screen_fraud", screen_fraud).after("validate_order"))
//!         .add(step("estimate_shipping", |o: Order| 2 + o.items.len()).after("validate_order"))
//!         .add(
//!             step("decide", |in_stock: bool, trusted: bool, days: usize| {
//!                 if in_stock && trusted { format!("there in {days} days") } else { "rejected".to_owned() }
//!             })
//!             .after(["check_inventory", "screen_fraud", "estimate_shipping"]),
//!         )
//!         .policy(name("screen_fraud"), Policy::new().max_retries(3).backoff(Backoff::exponential()).timeout("10s"))
//!         .policy(default(), Policy::new().timeout("30s"))
//!         .build()?; // every mistake at once, each with its component
//!
//!     let runner = Runner::open("orders.db").await?;           // SQLite, created if missing
//!     let run = runner.start("order-123", &workflow).await?;   // the same id again is the same run
//!     run.input_keyed("order", order).await?;                  // the same key twice is one input
//!     let decision: String = run.result("decide").await?;      // survives kill -9 in between
//!     runner.shutdown().await;
//!     Ok(decision)
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     let folder = tempfile::tempdir()?;
//! #     std::env::set_current_dir(&folder)?;
//! #     let order = Order { customer: "ada".to_owned(), items: vec!["lamp".to_owned()] };
//! #     assert_eq!(fulfil(order.clone()).await?, "there in 3 days");
//! #     assert_eq!(fulfil(order).await?, "there in 3 days");
//! #     let runner = Runner::open("orders.db").await?;
//! #     assert_eq!(runner.list(Filter::default()).await?.rows.len(), 1);
//! #     Ok(())
//! # }
//! ```
//!
//! # A workflow in memory
//!
//! A workflow says what comes after what. Its components are ordinary functions, sync or async, and what is
//! wrong with it is said when it is built. A [`Run`](run::Run) holds the facts. Policies act here, too, and
//! nothing is stored.
//!
//! ```
//! use tidewheel::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workflow = Workflow::new("order")
//!     .add(rule("valid").when(|items: &Vec<String>| !items.is_empty()).then(|items: Vec<String>| items))
//!     .add(step("price", |items: Vec<String>| async move { 5 * items.len() }).after("valid"))
//!     .add(step("shipping", |items: Vec<String>| if items.len() > 2 { 0 } else { 4 }).after("valid"))
//!     .add(step("total", |price: usize, shipping: usize| price + shipping).after(["price", "shipping"]))
//!     .build()?;
//!
//! let mut run = workflow.run("order-1");
//! let items = vec!["tea".to_owned(), "cup".to_owned()];
//! react_until_satisfied(&mut run, items, ReactOptions::new()).await?; // price and shipping in parallel
//! assert_eq!(run.result::<usize>("total")?, Some(14));
//! # Ok(())
//! # }
//! ```
//!
//! # A program as a step
//!
//! A [`command`] runs a program of the system: JSON to its stdin, its result from stdout, and its whole process
//! group is ended when its time is over.
//!
//! ```
//! use tidewheel::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workflow = Workflow::new("bytes")
//!     .add(command("count", ["wc", "-c"]))
//!     .add(step("double", |bytes: u64| 2 * bytes).after("count"))
//!     .policy(name("count"), Policy::new().timeout("10s").max_retries(2).retryable_errors([75]))
//!     .build()?;
//!
//! let mut run = workflow.run("bytes-1");
//! react_until_satisfied(&mut run, vec![1, 2, 3], ReactOptions::new()).await?; // a line with [1,2,3]
//! assert_eq!(run.result::<u64>("double")?, Some(16));
//! # Ok(())
//! # }
//! ```
//!
//! # A loop by hand
//!
//! The engine says what can run and takes results back; where and when work runs is up to whoever drives it.
//!
//! ```
//! use tidewheel::prelude::*;
//!
//! let workflow = Workflow::new("numbers")
//!     .add(map("double", |x: i64| x * 2))
//!     .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("double"))
//!     .build()?;
//!
//! let mut run = workflow.run("by-hand");
//! run.plan(vec![1_i64, 2, 3]);
//! while run.is_runnable() {
//!     for runnable in run.prepare() {
//!         let executed = runnable.execute(); // on another thread, in a task, on another day
//!         run.apply(executed);
//!     }
//! }
//! assert_eq!(run.result::<i64>("sum")?, Some(12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A policy
//!
//! A policy says how a piece of work is run. It is written apart from the work, so that the same graph can
//! run under other policies elsewhere.
//!
//! ```
//! use tidewheel::prelude::*;
//!
//! let rules = Rules::new([
//!     (name("screen_fraud"), Policy::new().max_retries(3).backoff(Backoff::exponential()).timeout("10s")),
//!     (pattern("^llm_"), Policy::llm().jitter(Jitter::Full)),
//!     (default(), Policy::new().timeout("30s")),
//! ])?;
//!
//! let resolution = rules.resolve(&NodeInfo::step("llm_classify"));
//! assert_eq!(resolution.rule, Some(1)); // the first match wins
//! assert_eq!(resolution.policy.max_retries, 3);
//! # Ok::<(), tidewheel::Problems>(())
//! ```
//!
//! # A decision
//!
//! One pure function decides every retry: the same inputs give the same bytes, today and in a replay next
//! year.
//!
//! ```
//! use tidewheel::decide::{Action, ReasonCode, RetryPolicy, Situation, decide};
//! use tidewheel::policy::JitterSeed;
//! use tidewheel::prelude::*;
//!
//! let policy = RetryPolicy::from(&Policy::llm().jitter(Jitter::Full).resolved()?);
//! let failed = Situation::failed(2, Timestamp::from_millis(10_000), JitterSeed::new("run-1", "fetch"));
//! let decision = decide(&policy, &failed);
//! assert_eq!(decision.action, Action::RetryAt(Timestamp::from_millis(11_170)));
//! assert_eq!(decision.reason, ReasonCode::RetryScheduled);
//! # Ok::<(), tidewheel::Problems>(())
//! ```
//!
//! # A rehearsal
//!
//! What would a policy do to work that fails twice? Ask before you deploy it.
//!
//! ```
//! use tidewheel::policy::JitterSeed;
//! use tidewheel::prelude::*;
//! use tidewheel::view::{Script, rehearse};
//!
//! let script = Script {
//!     failures: 2,
//!     attempt_takes: Span::from_millis(100),
//!     seed: JitterSeed::new("run-1", "fetch"),
//! };
//! let rehearsal = rehearse(&Policy::io().resolved()?, &script);
//! assert!(rehearsal.succeeded);
//! assert_eq!(rehearsal.total_ms, 100 + 500 + 100 + 1_000 + 100);
//! # Ok::<(), tidewheel::Problems>(())
//! ```

pub mod decide;
pub mod driver;
pub mod event;
pub mod fact;
#[cfg(doctest)]
mod guides;
pub mod policy;
pub mod prelude;
pub mod process;
#[cfg(doctest)]
mod readme;
pub mod run;
pub mod store;
pub mod telemetry;
pub mod time;
pub mod view;
pub mod work;
pub mod workflow;

pub use tidewheel_core::{Location, Problem, Problems};
pub use tidewheel_runner::react::Options as ReactOptions;
pub use tidewheel_runner::{
    AskError, Checkpoints, Command, CommandError, CommandOutcome, Control, DriveOptions, Executor, Hooks,
    InputError, ResultError, RunEvent, RunHandle, Runner, RunnerOptions, Sent, StartError, StartOptions,
    SyncWork, command, drive, execute_with_policies, react_until_satisfied, run_until_satisfied,
};
