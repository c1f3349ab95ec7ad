//! What flows: values of any type, typed in memory and JSON only when they are stored.

mod value;

pub use value::{Value, ValueError};
