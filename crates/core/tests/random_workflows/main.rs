//! Random workflows against a slow and plain evaluator: whatever the order of the work, and whatever part of
//! the log is replayed, a run must come to what the evaluator says.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod agreement;
mod compare;
mod compose;
mod drive;
mod identity;
mod orders;
mod reopening;
mod replays;
mod search;
mod trouble;
mod undoing;
