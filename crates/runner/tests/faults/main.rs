//! The durable runner and a store that fails: nothing is lost, nothing is done twice, and everybody is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "../crash/proof.rs"]
mod proof;
#[path = "../crash/work.rs"]
mod work;

mod asked;
mod calls;
mod damage;
mod outage;
