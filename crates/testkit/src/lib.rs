//! What the tests of Tidewheel share; never a normal dependency of anything, and no place for product code.

mod alloc;

pub use alloc::{CountingAllocator, allocations_in};
