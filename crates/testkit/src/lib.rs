//! What the tests of Tidewheel share; never a normal dependency of anything, and no place for product code.

mod alloc;
mod lower;
mod oracle;
mod random;
mod smaller;
mod spec;

pub use alloc::{CountingAllocator, allocations_in};
pub use lower::{built, lowered, lowered_components};
pub use oracle::{Cell, Expected, Place, Why, expected};
pub use random::{Case, Dice};
pub use spec::{Ask, Calc, Datum, Fault, Fold, How, Kind, MEND, Part, SKIP, Shape, Spec, Test, Trouble};
