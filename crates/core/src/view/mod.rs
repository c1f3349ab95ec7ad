//! Views as data: what people look at, before anybody draws it.

mod graph;
mod rehearsal;
mod story;

pub use graph::{EdgeView, GraphView, NodeView};
pub use rehearsal::{Attempt, Rehearsal, Script, rehearse};
pub use story::{AbsenceLine, AttemptLine, FactLine, InputLine, Story, WorkLine, WorkState};
