//! Processes of jobs: whatever they do, their output is kept, their end is seen, and nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod world;

mod cost;
mod ends;
mod escapes;
mod handed_over;
mod leftovers;
mod logs;
mod operations;
mod recovery;
mod waits;
