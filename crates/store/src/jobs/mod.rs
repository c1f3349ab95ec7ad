//! Keeps jobs: their records, runs, outcomes, markers and locks. Files now; the trait is what another keeper needs.

mod batch;
mod error;
mod files;
mod needs;
mod store;

pub use batch::{Batch, Finished, Marker, Payload, Removal, Removed};
pub use error::JobStoreError;
pub use files::{
    Access, Checkup, Files, Glance, History, Holder, IndexState, Kept, Obstacle, Survey, TellOfWait, Trouble,
    make_folders, open_regular, read_regular, split_data,
};
pub use store::{CancelRequest, Due, JobStore, Jobs, Turn};
