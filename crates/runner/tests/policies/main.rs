//! Policies as people meet them: what runs how often, when, and what comes of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod attempts;
mod events;
mod fallbacks;
mod given_up;
mod heartbeats;
mod matrix;
mod refused;
mod slots;
mod stress;
mod times;
mod world;
