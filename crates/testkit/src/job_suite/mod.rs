//! What every keeper of jobs promises, as cases that run for each backend; no case knows which backend it meets.

pub mod artifact;
mod cases;
pub mod enqueue;
pub mod history;
pub mod lock;
mod oracle;
pub mod record;
mod world;

pub use oracle::{Expected, expected};
pub use world::{World, custom, job, job_id, manifest, member, run_id};
