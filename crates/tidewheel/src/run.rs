//! A run in memory: the facts, and what is pending.
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::run::{Executed, Fact, Failed, Outcome, Run, Runnable};
//!
//! let workflow = Workflow::new("numbers")
//!     .add(step("parse", |text: String| text.parse::<i64>()))
//!     .add(step("double", |x: i64| 2 * x).after("parse"))
//!     .build()?;
//!
//! /// The whole of a scheduler: what can run is taken out, run, and given back.
//! fn drive(run: &mut Run) {
//!     while run.is_runnable() {
//!         for runnable in run.prepare() {
//!             let runnable: Runnable = runnable;
//!             let executed: Executed = runnable.execute();
//!             if let Outcome::Failed(failure) = executed.outcome() {
//!                 assert!(!failure.message.is_empty());
//!             }
//!             run.apply(executed);
//!         }
//!     }
//! }
//!
//! let mut run: Run = workflow.run("run-1");
//! run.plan("21".to_owned());
//! run.plan("many".to_owned());
//! drive(&mut run);
//! assert_eq!(run.results::<i64>("double")?, [42]);
//!
//! let facts: Vec<Fact> = run.productions();
//! assert_eq!((facts[0].producer, facts[0].input), (Some("parse"), 0));
//! let failures: Vec<Failed> = run.failures();
//! assert_eq!((failures[0].component, failures[0].input), (Some("parse"), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Work may be done elsewhere: a [`RunnableRef`] says which it is, and a [`Ticket`] takes its outcome back. What waits
//! for a time is told apart from what can run:
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::run::{Outcome, Prepared, RunnableRef, Ticket, Wait};
//!
//! let workflow = Workflow::new("mail")
//!     .add(step("write", |to: String| format!("Dear {to}")))
//!     .add(step("send", |text: String| text.len()).after("write"))
//!     .policy(name("send"), Policy::new().delay("1h"))
//!     .build()?;
//! let mut run = workflow.run("run-1");
//! run.plan("Ada".to_owned());
//!
//! let noon = Timestamp::parse("2026-03-01T12:00:00Z")?;
//! let Prepared { mut runnables, held, .. } = run.prepare_admitted(noon, Some(noon));
//! assert!(held.is_empty());
//! let written = runnables.remove(0);
//! let record: RunnableRef = written.to_ref(); // goes to another process as JSON
//! assert_eq!(record.node.as_deref(), Some("write"));
//! let ticket: Ticket = written.ticket();
//! run.apply(ticket.executed(Outcome::Completed(Value::new("Dear Ada"))));
//!
//! let Prepared { runnables, held, .. } = run.prepare_admitted(noon, Some(noon));
//! assert!(runnables.is_empty());
//! let wait: &Wait = &held[0];
//! assert_eq!(wait.until, Some(noon.saturating_add(Span::from_secs(3_600))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What does not fit a run is refused, and nothing changes:
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::run::{Change, ComposeError, EventError, ReopenError, ReplayError, SignalError, Signature};
//!
//! let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
//! let mut run = workflow.run("run-1");
//! run.react_until_satisfied(1_i64)?;
//! let error: SignalError = run.plan_signal("dec", Value::new(1), None).unwrap_err();
//! assert_eq!(error.to_string(), "the workflow has no component `dec`");
//! let work = run.productions()[0].id;
//! let nothing_failed = run.failed_works();
//! assert!(nothing_failed.is_empty(), "{work} is there");
//! let error: ReopenError = run.reopen(Default::default(), None).unwrap_err();
//! assert_eq!(error, ReopenError::NotFailed);
//!
//! // A definition without what the run has.
//! let other = Workflow::new("numbers").add(step("dec", |x: i64| x - 1)).build()?;
//! let stored: Signature = workflow.signature();
//! let changes: Vec<Change> = other.changes_since(&stored);
//! assert!(!changes.is_empty());
//! let error: ComposeError = run.compose(&other).unwrap_err();
//! assert_eq!(error.changes.len(), changes.iter().filter(|change| !matches!(change, Change::Added { .. })).count());
//!
//! // A log of something else.
//! let ReplayError { index, source } = Run::replay_json(&workflow, "run-2", ["{}"]).unwrap_err();
//! assert!(index == 0 && matches!(source, EventError::Malformed(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Commands by status
//!
//! ```
//! use tidewheel::run::{Effect, RunCommand};
//! use tidewheel::store::Status;
//!
//! for command in RunCommand::ALL {
//!     let effect = command.effect_on_run(Status::Cancelled);
//!     assert_eq!(effect == Effect::AlreadySo, command.name() == "cancel");
//! }
//! assert_eq!(RunCommand::from_name("pause"), Some(RunCommand::Pause));
//! assert!(matches!(RunCommand::Pause.effect_on_run(Status::Completed), Effect::Refused(_)));
//! ```

pub use tidewheel_core::command::{Effect, RunCommand};
pub use tidewheel_core::run::Run;
pub use tidewheel_core::{
    Change, ComposeError, EventError, Executed, Fact, Failed, Outcome, Prepared, QueryError, ReopenError,
    ReplayError, Runnable, RunnableRef, SignalError, Signature, Ticket, Wait,
};
