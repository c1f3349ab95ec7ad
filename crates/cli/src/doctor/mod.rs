//! Whether all is in order: `probe` looks and says what there is, `judge` says what it means, `repair` does what loses
//! nothing, `told` shows it.

mod facts;
mod finding;
mod judge;
mod probe;
mod repair;
mod told;

pub(crate) use finding::{Finding, Level};
pub(crate) use judge::judge;
pub(crate) use probe::{Wanted, probe};
pub(crate) use repair::repair;
pub(crate) use told::{json, text};
