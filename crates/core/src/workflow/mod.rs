//! Workflows: what people write, checked as a whole and lowered to a graph that is immutable and shared.

mod arrange;
mod assign;
mod build;
mod check;
mod component;
mod error;
mod extras;
mod graph;
mod lower;
mod parents;
mod ports;
mod rule;

pub(crate) use assign::Assigned;
pub use build::WorkflowBuilder;
pub use component::{Component, accumulator, compensation, condition, map, reduce, state_machine, step};
pub use error::{BuildError, BuildErrors};
pub use extras::{ContextKey, Meta};
pub use graph::Workflow;
pub(crate) use graph::{Check, Edge, Graph, Node, NodeIx, Op};
pub use parents::IntoParents;
pub use ports::PortChecks;
pub(crate) use rule::Look;
pub use rule::{Fold, IntoReducer, Reducer, RuleBuilder, Test, all, any, cond, not, rule, test};
