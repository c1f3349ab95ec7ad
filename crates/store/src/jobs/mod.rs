//! Keeps jobs: their records, runs, outcomes, markers and locks. Files now; the trait is what another keeper needs.

mod batch;
mod error;
mod files;
mod needs;
mod store;

pub use batch::{Batch, Marker, Payload};
pub use error::JobStoreError;
pub use files::{Checkup, Files, Glance, History, Holder, IndexState, Kept, Obstacle, Survey, Trouble};
pub use store::{Due, JobStore, Jobs, Turn};
