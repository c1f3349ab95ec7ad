//! Looks at the world and says what there is. Nothing is judged, written or started here; git is only asked.

mod folder;
mod trees;
mod whole;
mod written;

pub(crate) use whole::{Wanted, probe};
