//! Views as data: what people look at, before anybody draws it.

mod graph;
mod rehearsal;

pub use graph::{EdgeView, GraphView, NodeView};
pub use rehearsal::{Attempt, Rehearsal, Script, rehearse};
