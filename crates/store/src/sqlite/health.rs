//! What was found damaged since a store was opened, by name, for all of its threads.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::sqlite::fault::is_damage;
use crate::store::StoreError;

/// More than these say nothing new; the rest is counted.
const MOST_KEPT: usize = 100;

/// The damage that the threads of a store have met.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    kept: Vec<String>,
    known: BTreeSet<u64>,
    others: usize,
}

impl Health {
    /// Notes damage. The same sentence counts once.
    pub(crate) fn note(&self, what: impl Into<String>) {
        let what = what.into();
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = blake3::hash(what.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        if found.others > MOST_KEPT || !found.known.insert(u64::from_le_bytes(bytes)) {
            return;
        }
        tracing::error!(what, "the store is damaged");
        if found.kept.len() < MOST_KEPT {
            found.kept.push(what);
        } else {
            found.others += 1;
        }
    }

    /// Notes what an error says, if it is about damage.
    pub(crate) fn note_error(&self, error: &StoreError) {
        match error {
            StoreError::Damaged { .. } => self.note(error.to_string()),
            StoreError::DamagedRow { what } => self.note(what.clone()),
            StoreError::Other(said) if is_damage(error) => {
                self.note(format!("SQLite says of the database: {said}"));
            }
            StoreError::Other(_)
            | StoreError::Unavailable { .. }
            | StoreError::Newer { .. }
            | StoreError::Broken
            | StoreError::Moved { .. }
            | StoreError::Closed => {}
        }
    }

    /// Returns what was noted, in that order.
    pub(crate) fn found(&self) -> Vec<String> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = found.kept.clone();
        if found.others > 0 {
            all.push("and more: `tidewheel doctor --store` names all of it".to_owned());
        }
        all
    }
}
