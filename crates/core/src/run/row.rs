//! What a run remembers of each fact, activation, join, fold and state: rows of tables. They do nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::ReasonCode;
use crate::event::{Absence, ActIx, Arrival, FactIx, Hold, LineageIx, Phase};
use crate::fact::{FactId, Value};
use crate::policy::Failure;
use crate::time::Timestamp;
use crate::workflow::NodeIx;

#[derive(Clone, Debug)]
pub(crate) struct FactRow {
    pub(crate) id: FactId,
    pub(crate) value: Value,
    pub(crate) node: Option<NodeIx>,
    pub(crate) parent: Option<FactIx>,
    pub(crate) lineage: LineageIx,
    pub(crate) depth: u32,
    /// The fact before it that the same input caused.
    pub(crate) before: Option<FactIx>,
}

/// What an input caused: each thing knows the one before it, so that undoing it looks at nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CausedRow {
    /// The last fact.
    pub(crate) fact: Option<FactIx>,
    /// The last activation.
    pub(crate) act: Option<ActIx>,
    /// The last of what work said that would undo it.
    pub(crate) said: Option<u32>,
    /// Activations that are not over.
    pub(crate) open: u32,
}

/// An input, or the place of an item in a list of the parent's lineage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineageRow {
    pub(crate) parent: Option<LineageIx>,
    pub(crate) index: u32,
    pub(crate) input: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ActRow {
    pub(crate) node: NodeIx,
    pub(crate) fact: FactIx,
    pub(crate) lineage: LineageIx,
    pub(crate) phase: Phase,
    pub(crate) status: Status,
    /// The activation before it that the same input caused.
    pub(crate) before: Option<ActIx>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Dispatched,
    /// An attempt failed, and the next one is not due yet.
    Delayed,
    Over,
}

/// What is known of the attempts at a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tries {
    /// The attempt that is out, or comes next.
    pub(crate) attempt: u32,
    /// How often this attempt was handed out.
    pub(crate) dispatches: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) due: Option<Timestamp>,
    /// What it waits for, if that is not its next attempt.
    pub(crate) held: Option<Hold>,
    /// When it could have begun, had there been room for it.
    pub(crate) wanted_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(crate) struct JoinRow {
    pub(crate) parts: Vec<Option<Arrival>>,
    pub(crate) left: u32,
}

impl JoinRow {
    /// Returns why it has nothing, if something will not come.
    pub(crate) fn missed(&self) -> Option<Absence> {
        let missed = self.parts.iter().flatten().filter_map(|part| part.err());
        missed.fold(None, |graver, why| Some(why.graver(graver)))
    }

    /// Returns the parts that came.
    pub(crate) fn came(&self) -> impl Iterator<Item = FactIx> {
        self.parts.iter().flatten().filter_map(|part| part.ok())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FoldRow {
    /// The list.
    pub(crate) fact: FactIx,
    pub(crate) items: Vec<Item>,
    pub(crate) left: u32,
    /// How many items failed.
    pub(crate) failed: u32,
    /// How many items count, if the reducer halted before it had all.
    pub(crate) halted: Option<u32>,
}

impl FoldRow {
    /// Returns the items that are folded.
    pub(crate) fn came(&self) -> impl Iterator<Item = FactIx> {
        let count = self.halted.map_or(self.items.len(), |count| count as usize);
        self.items[..count].iter().filter_map(|item| match item {
            Item::Came(fact) => Some(*fact),
            Item::Awaited | Item::Absent | Item::Failed => None,
        })
    }
}

/// What is known of an item of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Nothing yet.
    Awaited,
    /// It is through.
    Came(FactIx),
    /// It will not come, and nothing went wrong.
    Absent,
    /// It will not come, because something failed.
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FanRow {
    pub(crate) first: LineageIx,
    pub(crate) count: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StateRow {
    /// The fact that holds the state; `None` before the first input.
    pub(crate) fact: Option<FactIx>,
    /// What waits for its turn.
    pub(crate) waiting: BTreeMap<LineageIx, Option<FactIx>>,
    /// The last lineage that had its turn.
    pub(crate) last: Option<LineageIx>,
    /// Whose turn is under way.
    pub(crate) turn: Option<LineageIx>,
    /// Lineages that missed their turn and come when they can.
    pub(crate) late: BTreeSet<LineageIx>,
}

/// What work said that would undo it.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredRow {
    pub(crate) act: ActIx,
    pub(crate) node: NodeIx,
    /// `None` if it said something else later.
    pub(crate) value: Option<Value>,
    /// How many facts there were.
    pub(crate) after: FactIx,
    /// What was said before it of what the same input caused.
    pub(crate) before: Option<u32>,
}

/// How far an input is undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndoRow {
    /// The last of what is left, by facts and by what was said; `None` before anything is undone.
    pub(crate) left: Option<(Option<FactIx>, Option<u32>)>,
    pub(crate) is_over: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FailureRow {
    pub(crate) failure: Failure,
    pub(crate) attempts: u32,
    pub(crate) skipped: bool,
    /// Why there was no further attempt, if somebody decided.
    pub(crate) reason: Option<ReasonCode>,
}
