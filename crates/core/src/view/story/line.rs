//! The lines of a story that are of no piece of work: inputs, facts, and what will not come. They tell nothing by
//! themselves.

use serde::Serialize;

use crate::time::Timestamp;

/// An input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InputLine {
    /// Its value.
    pub value: serde_json::Value,
    /// When it was accepted.
    pub at: Option<Timestamp>,
    /// Its key.
    pub key: Option<String>,
    /// The one component that it was for.
    pub to: Option<String>,
    /// Whether what it caused is undone, and how far that is.
    pub undo: UndoState,
}

/// Whether what an input caused is undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoState {
    /// It is not.
    #[default]
    None,
    /// It is being undone.
    Begun {
        /// Since when, if somebody knows the time.
        at: Option<Timestamp>,
    },
    /// All that can be undone was, or the run was cancelled before.
    Ended,
}

/// Something that was produced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactLine {
    /// Who produced it.
    pub node: String,
    /// The input that caused it, counted from zero.
    pub input: u32,
    /// Its place in the maps around it, outermost first.
    pub items: Vec<u32>,
    /// The value.
    pub value: serde_json::Value,
    /// When it was stored, if the story was told with times.
    pub at: Option<Timestamp>,
}

/// Something that will not come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsenceLine {
    /// Of whom.
    pub node: String,
    /// For which input.
    pub input: u32,
    /// Why: `unsatisfied`, `failed`, `skipped`, `upstream_failed`, `upstream_skipped`.
    pub why: &'static str,
}
