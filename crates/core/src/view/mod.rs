//! Views as data: what people look at, before anybody draws it.

mod abridge;
mod explain;
mod graph;
pub mod jobs;
mod moment;
mod picture;
mod rehearsal;
mod spent;
mod steer;
mod story;

pub use abridge::{abridged_chain, abridged_list};
pub use explain::{explain, explain_holds};
pub use graph::{Edge, Graph, Node};
pub use moment::{absolute, between, long, moment, relative};
pub use rehearsal::{Attempt, Rehearsal, Script, rehearse};
pub use spent::{Spent, SpentRow};
pub use steer::steers;
pub use story::{
    AbsenceLine, AttemptLine, Doing, FactLine, InputLine, Story, Stretch, UndoState, WorkLine, WorkState,
};
