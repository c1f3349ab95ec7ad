//! The store that is gone with the process.

mod keep;
mod state;

pub use keep::Memory;
