//! What happened to a run: every change is an event, and a run is made of its events again.
//!
//! ```
//! use tidewheel::event::{Absence, Event, Phase};
//! use tidewheel::prelude::*;
//!
//! let workflow = Workflow::new("numbers")
//!     .add(rule("half").when(|x: &i64| x % 2 == 0).then(|x: i64| x / 2))
//!     .add(step("inc", |x: i64| if x < 100 { Ok(x + 1) } else { Err("too much".to_owned()) }))
//!     .add(step("both", |half: i64, inc: i64| half + inc).after(["half", "inc"]))
//!     .build()?;
//! let mut run = workflow.run("run-1");
//! let mut log: Vec<Event> = run.plan(20_i64).to_vec();
//! let woken = |event: &&Event| matches!(event, Event::RunnableActivated { phase: Phase::Work, .. });
//! assert_eq!(log.iter().filter(woken).count(), 2);
//! let runnables = run.prepare();
//! log.extend_from_slice(run.last_events());
//! for runnable in runnables {
//!     log.extend_from_slice(run.apply(runnable.execute()));
//! }
//!
//! // As lines, in a file; and a run that knows all of it again.
//! let lines = log.iter().map(|event| event.to_json(&workflow)).collect::<Result<Vec<_>, _>>()?;
//! let mut again = Run::replay_json(&workflow, "run-1", lines.iter().map(String::as_str))?;
//! assert_eq!(again.result::<i64>("half")?, Some(10));
//!
//! // The same rules go on with it.
//! again.react_until_satisfied(120_i64)?;
//! assert_eq!(again.absence("both", 1), Some(Absence::UpstreamFailed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Work that may not begin yet is held, and an attempt that failed is kept with the decision about it:
//!
//! ```
//! use tidewheel::event::{Event, FailedAttempt, Hold};
//!
//! /// Says what a line of a log means for whoever waits.
//! fn note(event: &Event) -> Option<String> {
//!     match event {
//!         Event::RunnableHeld { why: Hold::External, .. } => Some("somebody has to answer".to_owned()),
//!         Event::RunnableHeld { why, .. } => Some(format!("waits for: {}", why.name())),
//!         Event::AttemptFailed { failed, .. } => {
//!             let FailedAttempt { failure, decided } = &**failed;
//!             Some(format!("{}, and so: {:?}", failure.message, decided.decision.reason))
//!         }
//!         _ => None,
//!     }
//! }
//! let held = Event::RunnableHeld { act: 0, why: Hold::Delay, on: None, until: None, at: None };
//! assert_eq!(note(&held).as_deref(), Some("waits for: delay"));
//! ```

pub use tidewheel_core::event::{
    Absence, ActIx, Arrival, Event, FactIx, FailedAttempt, Hold, LineageIx, Phase, Undo,
};
