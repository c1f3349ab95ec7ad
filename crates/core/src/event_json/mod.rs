//! Events as JSON, one line each: what a log keeps. Nodes are written by name, or by id where they have none.

mod form;
mod read;
mod write;

pub(crate) use form::{AbsenceForm, Form, PhaseForm, UndoForm};
pub use read::EventError;
pub(crate) use read::{failed, record};
