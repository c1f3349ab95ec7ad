//! Takes away what is old and needed by nobody.

use std::collections::BTreeSet;

use tidewheel_core::job::{Attic, Collected, collect, marks_of};
use tidewheel_store::jobs::JobStore as _;

use super::Scheduler;
use super::error::SchedulerError;
use crate::job::worktree;

impl Scheduler {
    /// Removes jobs that ended so many days ago and that no open job needs, with their runs, markers and payloads. What
    /// could not be removed is said in the second list.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn gc(&self, days: u32, removes: Removes) -> Result<(Collected, Vec<String>), SchedulerError> {
        let mut pass = self.pass()?;
        let all = pass.turn.all()?;
        let manifests: BTreeSet<_> = self.store.runs()?;
        let collected = collect(&Attic {
            jobs: &all.briefs,
            unreadable: &all.unreadable,
            manifests: &manifests,
            days,
            now: pass.now,
        });
        if removes == Removes::Nothing {
            return Ok((collected, Vec::new()));
        }
        for run in &collected.runs {
            if let Ok(Some(manifest)) = self.store.manifest(run) {
                pass.batch.unmarked.extend(marks_of(&manifest));
            }
        }
        pass.batch.unmarked.extend(collected.unmarks.iter().cloned());
        pass.batch.removed.clone_from(&collected.jobs);
        pass.batch.removed_runs.clone_from(&collected.runs);
        for id in &collected.jobs {
            let key =
                all.briefs[id].schedule.limits.as_deref().and_then(|limits| limits.idempotency_key.clone());
            if let Some(key) = key {
                pass.forget_key(&key, id)?;
            }
            pass.jobs.briefs.remove(id);
        }
        let mut ticked = pass.conclude()?;
        let gone = collected.jobs.iter().filter(|id| !self.directory_of(id).exists());
        ticked.errors.extend(worktree::clean_all_of(gone, &self.options.root, &self.options.data));
        Ok((collected, ticked.errors))
    }
}

/// Whether anything is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removes {
    /// What is old.
    Old,
    /// Nothing: it is only said what would be.
    Nothing,
}
