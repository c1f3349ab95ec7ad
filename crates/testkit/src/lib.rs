//! What the tests of Tidewheel share; never a normal dependency of anything, and no place for product code.

mod alloc;
mod capture;
mod faulty_store;
pub mod figure;
pub mod job_suite;
mod lower;
mod oracle;
pub mod power_loss;
mod random;
mod smaller;
mod spec;
pub mod store_suite;
mod virtual_clock;

pub use alloc::{CountingAllocator, allocations_in, bytes_held_by};
pub use capture::{Capture, Heard};
pub use faulty_store::{Call, FaultyStore, Outage, When};
pub use lower::{built, lowered, lowered_components};
pub use oracle::{Cell, Expected, Place, Why, expected, expected_since};
pub use random::{Case, Dice};
pub use spec::{Ask, Calc, Datum, Fault, Fold, How, Kind, MEND, Part, SKIP, Shape, Spec, Test, Trouble};
pub use virtual_clock::VirtualClock;
