//! A policy around one piece of work, for schedulers of your own.
//!
//! [`drive`] and [`execute_with_policies`] do all of it: attempts, waits, timeouts, fallbacks.
//!
//! ```
//! use tidewheel::driver::{DriveOptions, check_policy, check_rules, drive, execute_with_policies};
//! use tidewheel::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workflow = Workflow::new("pages")
//!     .add(map("fetch", |context: Context, page: u32| match context.attempt() {
//!         0 => Err(Failure::new("busy").code(503)),
//!         _ => Ok(10 * page),
//!     }))
//!     .policy(name("fetch"), Policy::new().max_retries(2).backoff(Backoff::exponential()))
//!     .build()?;
//! check_rules(workflow.rules())?; // what cannot act here is refused by its name
//! let mut run = workflow.run("run-1");
//! run.plan(vec![1_u32, 2, 3]);
//!
//! // One piece under its policy.
//! let first = run.prepare().remove(0);
//! let policy = first.policy().clone();
//! check_policy(&policy)?;
//! run.apply(drive(first, policy, DriveOptions::new()).await?);
//!
//! // And all others beside each other.
//! run.release_all();
//! while run.is_runnable() {
//!     for executed in execute_with_policies(run.prepare(), workflow.rules()).await? {
//!         run.apply(executed);
//!     }
//! }
//! assert!(run.failures().is_empty(), "{:?}", run.failures());
//! assert_eq!(run.results::<u32>("fetch")?, [10, 20, 30]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Course`] knows no clock and runs nothing: told what happened, it says what follows.
//!
//! ```
//! use tidewheel::driver::{Bound, Course, Known, Turn, Until};
//! use tidewheel::prelude::*;
//! use tidewheel::run::Outcome;
//!
//! let workflow = Workflow::new("one")
//!     .add(step("ask", |x: u32| x))
//!     .policy(name("ask"), Policy::new().max_retries(1).base_delay("1s").backoff(Backoff::Fixed).timeout("5s"))
//!     .build()?;
//! let mut run = workflow.run("run-1");
//! run.plan(1_u32);
//! let runnable = run.prepare().remove(0);
//! let noon = Timestamp::parse("2026-03-01T12:00:00Z")?;
//! let mut course = Course::new(&runnable, runnable.policy().clone(), None, noon);
//!
//! let Turn::Run { runnable, until: Some(until) } = course.begin(runnable, noon) else {
//!     return Err("it should begin".into());
//! };
//! let Until { at, bound, .. } = until;
//! assert_eq!((at, bound), (noon.saturating_add(Span::from_secs(5)), Bound::Timeout(Span::from_secs(5))));
//!
//! let failure = Outcome::Failed(Failure::new("nobody there"));
//! let Turn::Retry(failed) = course.end(*runnable, failure, Known::default(), noon) else {
//!     return Err("it should be tried again".into());
//! };
//! assert_eq!(failed.due(), noon.saturating_add(Span::from_secs(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_runner::driver::{
    Bound, Course, DriveOptions, Known, Turn, Until, check_policy, check_rules, drive, execute_with_policies,
};
