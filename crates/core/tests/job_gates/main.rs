//! Jobs: their gates, and what follows starts, ends, rewinds, approvals and cancellations. Nothing here has a disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod after;
mod approvals;
mod artifacts;
mod cancels;
mod collecting;
mod cost;
mod explaining;
mod finishing;
mod lifecycle;
mod limits;
mod lives;
mod locks;
mod loops;
mod oracle;
mod repository;
mod retries;
mod unknown_fields;
mod world;
