//! Work that ends elsewhere, that waits for people, that is the same as other work, or that is undone: what holds of
//! it here, in other runners, and after the end of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod world;

mod at_once;
mod checkpoints;
mod dead_letters;
mod elsewhere;
mod keys;
mod outside;
mod pauses;
mod retries;
mod undoing;
