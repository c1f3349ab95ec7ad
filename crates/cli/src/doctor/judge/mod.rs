//! What the facts mean: data in, findings out. Nothing is looked at here.

mod directory;
mod jobs;
mod records;
mod store;
mod surroundings;
mod whole;
mod worktrees;

pub(crate) use whole::{judge, some};
