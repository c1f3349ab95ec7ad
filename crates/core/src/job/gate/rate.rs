//! The gate of a rate: so many starts in any window, over all jobs that share the limit.

use std::collections::BTreeMap;

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::schedule::WaitKind;
use crate::job::shared::Shared;
use crate::job::status::JobStatus;
use crate::policy::Slot;
use crate::time::Timestamp;

/// The rates that are full in this pass, so that they are asked once.
#[derive(Default)]
pub(in crate::job) struct Rates<'a> {
    full: BTreeMap<&'a str, Timestamp>,
}

impl<'a> Rates<'a> {
    /// Says whether a job may start now, and counts the start if so. It is the last gate that says no.
    pub(in crate::job) fn judge(&mut self, job: usize, view: &View<'a>, shared: &mut Shared) -> Verdict {
        let limits = view.jobs[job].schedule.limits.as_deref();
        let Some(limit) = limits.and_then(|limits| limits.rate.as_ref()) else { return Verdict::Open };
        let name = limit.name.as_deref().unwrap_or_default();
        let until = match self.full.get(name) {
            Some(until) => *until,
            None => {
                let slot = shared.rate(name, |rate| {
                    let slot = rate.take(limit, view.now);
                    (slot, slot == Slot::Now)
                });
                match slot {
                    Slot::Now => return Verdict::Open,
                    Slot::At(until) => {
                        self.full.insert(name, until);
                        until
                    }
                    // Nobody keeps places for later here; whoever does elsewhere is asked again soon.
                    Slot::Later => view.now.saturating_add(limit.window),
                }
            }
        };
        let detail = format!("waiting for rate limit `{name}`");
        Wait::new(JobStatus::Queued, WaitKind::Schedule, detail).until(until).ready()
    }
}
