//! The gate of locks: a job gets all its locks or none, and holds them only while it runs.
//!
//! Nobody starves. Jobs are asked in the order in which they start. One that does not get its locks keeps those after it
//! from sharing a key that is held and that it wants for itself, so that later shared locks do not overtake it for
//! ever. Keys that are free stay free for others until it has waited for [`PATIENCE`](super::delay::PATIENCE); from then
//! on it keeps all its keys. By then it has also risen above the priority of others (see [`super::delay`]), so that in the
//! end it is the first to be asked, and gets its locks when those who hold them end.
//!
//! Nobody waits while holding a lock, so there is no deadlock.

use std::collections::BTreeMap;

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::schedule::{Lock, LockMode, WaitKind};
use crate::job::status::JobStatus;

/// Who holds what, and what is kept for those who wait.
pub(in crate::job) struct Locks<'a> {
    keys: BTreeMap<&'a str, Key>,
}

#[derive(Clone, Copy, Default)]
struct Key {
    shared: u32,
    exclusive: bool,
    /// Somebody who comes first wants it for itself.
    is_kept_exclusive: bool,
    /// Somebody who comes first wants to share it.
    is_kept_shared: bool,
}

impl<'a> Locks<'a> {
    pub(in crate::job) fn new(view: &View<'a>) -> Self {
        let mut this = Self { keys: BTreeMap::new() };
        for job in view.jobs.iter().filter(|job| job.holds_locks()) {
            this.take(&job.schedule.locks);
        }
        this
    }

    /// Says whether a job may have all its locks now.
    pub(in crate::job) fn judge(&self, job: usize, view: &View<'_>) -> Verdict {
        let is_free = |lock: &Lock| {
            let key = self.keys.get(lock.key.as_str()).copied().unwrap_or_default();
            match lock.mode {
                LockMode::Shared => !key.exclusive && !key.is_kept_exclusive,
                LockMode::Exclusive => {
                    !key.exclusive && key.shared == 0 && !key.is_kept_exclusive && !key.is_kept_shared
                }
            }
        };
        if view.jobs[job].schedule.locks.iter().all(is_free) {
            Verdict::Open
        } else {
            Wait::new(JobStatus::WaitingOnLocks, WaitKind::Locks, "waiting on locks").ready()
        }
    }

    /// Gives a job all its locks.
    pub(in crate::job) fn take(&mut self, locks: &'a [Lock]) {
        for lock in locks {
            let key = self.keys.entry(&lock.key).or_default();
            match lock.mode {
                LockMode::Shared => key.shared += 1,
                LockMode::Exclusive => key.exclusive = true,
            }
        }
    }

    /// Keeps what a job wants that has to wait from those who come after it.
    pub(in crate::job) fn keep(&mut self, locks: &'a [Lock], has_waited_long: bool) {
        for lock in locks {
            let key = self.keys.entry(&lock.key).or_default();
            let is_held = key.exclusive || key.shared > 0;
            match lock.mode {
                LockMode::Shared => key.is_kept_shared |= has_waited_long,
                LockMode::Exclusive => key.is_kept_exclusive |= has_waited_long || is_held,
            }
        }
    }
}
