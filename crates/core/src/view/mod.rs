//! Views as data: what people look at, before anybody draws it.

mod rehearsal;

pub use rehearsal::{Attempt, Rehearsal, Script, rehearse};
