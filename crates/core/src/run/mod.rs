//! A run: the facts of a workflow and what is pending. It changes by events alone: `Run::absorb` is the only
//! place that changes anything.

mod absorb;
mod row;
mod state;

pub(crate) use row::{ActRow, FactRow, FanRow, FoldRow, Item, JoinRow, RegisteredRow, Status};
pub use state::Run;
pub(crate) use state::index;
