//! What flows: values of any type, typed in memory and JSON only when they are stored, and their identities.

mod checked;
mod content;
mod id;
mod succeeded;
mod value;

pub use id::{FactId, NodeId, RunId, RunnableId};
pub(crate) use succeeded::split_result;
pub(crate) use value::json_of;
pub use value::{Payload, Value, ValueError};
