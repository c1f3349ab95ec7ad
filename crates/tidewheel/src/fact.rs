//! Values of any type, and the identities of facts, components and work.
//!
//! A value keeps its type between one piece of work and the next, and is JSON only where it is stored.
//!
//! ```
//! use tidewheel::fact::{Payload, Value, ValueError};
//!
//! /// Takes a value to a store and back.
//! fn stored<T: Payload>(value: T) -> Result<T, ValueError> {
//!     Value::stored(Value::new(value).to_text()?).get()
//! }
//!
//! assert_eq!(stored(vec![1, 2, 3])?, [1, 2, 3]);
//! assert!(Value::new("three").get::<u32>().is_err());
//! # Ok::<(), ValueError>(())
//! ```
//!
//! An identity is made of what a thing comes from, so equal causes have equal ids in every process.
//!
//! ```
//! use tidewheel::fact::{FactId, NodeId, RunId, RunnableId};
//! use tidewheel::prelude::*;
//!
//! let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
//! let node: NodeId = workflow.signature().nodes["inc"];
//! assert_eq!(NodeId::parse(&node.to_string()), Some(node));
//!
//! let ids = |id: RunId| -> (RunnableId, FactId) {
//!     let mut run = workflow.run(id);
//!     run.plan(1_i64);
//!     let work = run.prepare().remove(0);
//!     let id = work.id();
//!     run.apply(work.execute());
//!     (id, run.productions()[0].id)
//! };
//! assert_eq!(ids(RunId::new("run-1")), ids(RunId::new("run-1")));
//! assert_ne!(ids(RunId::new("run-1")), ids(RunId::new("run-2")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_core::fact::{FactId, NodeId, Payload, RunId, RunnableId, Value, ValueError};
