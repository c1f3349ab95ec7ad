//! Tidewheel: an embedded, durable workflow scheduler whose policies live outside the graph and whose
//! every decision says why.
//!
//! This crate is what a Rust program adds: re-exports of the crates below it, a [`prelude`], and nothing of
//! its own. What is here today is the decision engine and the policy model; workflows and the durable runner
//! build on them.
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
//! use tidewheel::prelude::*;
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

pub mod prelude;
#[cfg(doctest)]
mod readme;

pub use tidewheel_core::{Location, Problem, Problems, decide, fact, policy, time, view};
