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

pub mod decide;

pub mod view;

pub use document::{Location, Problem, Problems};
