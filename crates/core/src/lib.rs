//! What happens, decided: everything in Tidewheel that is a pure function of its arguments.
//!
//! The crate reads no clock, disk, network or environment, starts nothing, draws no random number and
//! iterates no hash map. Time, randomness and the world come in as values, so equal arguments give equal
//! results in every process, for ever.
//!
//! The modules stand in the order in which data flows.

mod document;
mod json;

pub mod fact;
pub mod time;

pub mod policy;

pub mod work;

pub mod workflow;

pub mod run;

mod plan;

mod condition;
mod prepare;

mod verdict;

mod execute;
mod fold;

mod apply;

mod undo;

mod reopen;

mod compose;

pub mod event;
mod event_json;

mod replay;

mod react;

mod query;

pub use compose::ComposeError;
pub use event_json::EventError;
pub use execute::{Executed, Outcome, Runnable, RunnableRef, Ticket};
pub use plan::SignalError;
pub use prepare::{Prepared, Wait};
pub use query::{Fact, Failed, QueryError};
pub use reopen::ReopenError;
pub use replay::{Change, ReplayError, Signature};

pub mod decide;

pub mod job;

pub mod command;

pub mod schema;

pub mod view;

pub use document::{Location, Problem, Problems, nearest};
