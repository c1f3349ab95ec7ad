//! The gate of slots: so many jobs run at once in all, and so many under one limit. Running jobs are counted, nothing
//! else is kept.

use std::collections::BTreeMap;

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::brief::Brief;
use crate::job::schedule::WaitKind;
use crate::job::status::JobStatus;
use crate::policy::ConcurrencyLimit;

/// The slots that are taken.
pub(in crate::job) struct Slots<'a> {
    capacity: u32,
    running: u32,
    by_name: BTreeMap<&'a str, u32>,
}

impl<'a> Slots<'a> {
    pub(in crate::job) fn new(view: &View<'a>, capacity: u32) -> Self {
        let mut this = Self { capacity, running: 0, by_name: BTreeMap::new() };
        for job in view.jobs.iter().filter(|job| job.holds_locks()) {
            this.take(job);
        }
        this
    }

    /// Says whether there is a slot for a job.
    pub(in crate::job) fn judge(&self, job: usize, view: &View<'_>) -> Verdict {
        // The details name no count that changes from pass to pass: each change would be written.
        let wait = |detail| Wait::new(JobStatus::Queued, WaitKind::Capacity, detail).ready();
        if self.running >= self.capacity && !is_external(view.jobs[job]) {
            return wait(match self.capacity {
                1 => "waiting for the one slot".to_owned(),
                slots => format!("waiting for one of {slots} slots"),
            });
        }
        if let Some(limit) = limit_of(view.jobs[job])
            && self.by_name.get(name_of(limit)).is_some_and(|taken| *taken >= limit.limit)
        {
            return wait(format!("waiting for one of {} slots of `{}`", limit.limit, name_of(limit)));
        }
        Verdict::Open
    }

    /// Gives a job its slot.
    pub(in crate::job) fn take(&mut self, job: &'a Brief) {
        self.running += u32::from(!is_external(job));
        if let Some(limit) = limit_of(job) {
            *self.by_name.entry(name_of(limit)).or_default() += 1;
        }
    }
}

/// Returns whether the work of a job is done elsewhere: it takes no slot of this machine, and counts under its own limit.
fn is_external(job: &Brief) -> bool {
    job.schedule.limits.as_deref().is_some_and(|limits| limits.external)
}

fn limit_of(job: &Brief) -> Option<&ConcurrencyLimit> {
    job.schedule.limits.as_ref()?.concurrency.as_ref()
}

fn name_of(limit: &ConcurrencyLimit) -> &str {
    limit.name.as_deref().unwrap_or_default()
}
