//! The durable runner and the end of its process: whatever is killed, stopped or beside it, nothing is lost and
//! nothing is done twice in the log.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod limited;
mod other;
mod proof;
mod work;

mod aborts;
mod broken;
mod busy;
mod crews;
mod failpoints;
mod kills;
mod limited_kills;
mod queued;
mod twins;
