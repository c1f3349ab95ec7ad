//! Work: ordinary functions and closures, sync or async, as values that a workflow can hold and anyone can
//! run.

mod cancel;
mod context;
mod handler;
mod outcome;
mod token;
mod types;
mod user_code;

pub use cancel::Cancellation;
pub use context::{Context, ContextParts, RunContext, Signals};
pub(crate) use handler::split_list;
pub use handler::{IntoWork, Running, Work};
pub use outcome::{Fallible, IntoOutcome, Plain};
pub use token::{Token, TokenError};
pub use types::PortType;
pub use user_code::{CaughtFuture, call_user};
