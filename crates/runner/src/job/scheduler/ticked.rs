//! What a pass did, and what it could not do.

use std::collections::BTreeMap;

use tidewheel_core::job::JobId;

use super::error::{SchedulerError, chain};

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// The jobs that were started, in order.
    pub started: Vec<JobId>,
    /// The jobs whose records were changed otherwise.
    pub updated: Vec<JobId>,
    /// What could not be done; the rest was.
    pub errors: Vec<String>,
    /// What was in the way and is not any more, and what is passed over.
    pub warnings: Vec<String>,
    /// The jobs of which something could not be written; their records are as they were.
    pub unwritten: Vec<JobId>,
    /// Whether there was no room for some of them, of which there may be some later.
    pub lacks_room: bool,
    /// The jobs whose records cannot be read, and why; only a tick says so.
    pub unreadable: BTreeMap<String, String>,
}

impl Ticked {
    /// Returns the report of a pass that was given up after what it was about had been written.
    pub(super) fn failed(error: &SchedulerError) -> Self {
        Self { errors: vec![chain(error)], ..Self::default() }
    }

    /// Adds what another pass of the same command did.
    pub(super) fn add(&mut self, other: Self) {
        let Self { started, updated, errors, warnings, unwritten, lacks_room, unreadable } = other;
        self.started.extend(started);
        self.updated.extend(updated);
        self.updated.sort_unstable();
        self.updated.dedup();
        self.errors.extend(errors);
        self.warnings.extend(warnings);
        self.unwritten.extend(unwritten);
        self.lacks_room |= lacks_room;
        self.unreadable.extend(unreadable);
    }
}
