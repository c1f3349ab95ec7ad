//! What flows: values of any type, typed in memory and JSON only when they are stored, and their identities.

mod id;
mod value;

pub use id::{FactId, NodeId, RunId, RunnableId};
pub use value::{Payload, Value, ValueError};
