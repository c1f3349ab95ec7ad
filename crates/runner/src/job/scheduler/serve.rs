//! Who looks again when a time has come: a daemon that stays, or a waker that ends when nothing is due.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Access, Due, JobStore as _, JobStoreError, open_regular};

use super::Scheduler;
use super::error::SchedulerError;
use super::options::Options;
use super::ticked::Ticked;
use crate::job::launch::launch_waker;
use crate::job::wait::Watch;

/// How long a server waits at least between two passes, unless somebody wakes it.
const SHORTEST: Duration = Duration::from_millis(10);

/// How long a server stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serve {
    /// Until it is ended.
    Always,
    /// Until nothing is due.
    UntilIdle,
}

impl Scheduler {
    /// Looks at every gate once more, and starts what may start.
    ///
    /// # Errors
    /// The directory cannot be used. What goes wrong with one job is in the result.
    pub fn tick(&self) -> Result<Ticked, SchedulerError> {
        let pass = self.pass()?;
        let mut unreadable = pass.jobs.unreadable.clone();
        unreadable.extend(pass.jobs.lost.iter().map(|id| (id.to_string(), "it is gone".to_owned())));
        Ok(Ticked { unreadable, ..pass.conclude()? })
    }

    /// Serves the times of jobs: retries, delays, limits, and what has to be looked at again and again. Each pass is
    /// told to `tell`.
    ///
    /// # Errors
    /// Another process serves the directory, or it cannot be used.
    pub fn serve(&self, serve: Serve, mut tell: impl FnMut(&Ticked)) -> Result<(), SchedulerError> {
        loop {
            let Some(lock) = self.take_daemon_lock()? else {
                return match serve {
                    Serve::Always => Err(SchedulerError::AlreadyServed),
                    Serve::UntilIdle => Ok(()),
                };
            };
            let watch = Watch::file(&self.options.data.join("jobs/index.due"));
            loop {
                tell(&self.tick()?);
                let due = self.store.due()?;
                if serve == Serve::UntilIdle && is_idle(due) {
                    break;
                }
                watch.wait(self.next_look(due, serve));
            }
            drop(lock);
            // Somebody may have left a time to us between the last look and the end of our lock.
            if is_idle(self.store.due()?) {
                return Ok(());
            }
        }
    }

    /// Starts a waker unless somebody serves the directory already.
    pub(super) fn see_that_somebody_wakes(&self) {
        match self.take_daemon_lock() {
            // It takes the lock itself; of two that race for it, one ends at once.
            Ok(Some(lock)) => drop(lock),
            Ok(None) | Err(_) => return,
        }
        let Options { binary, root, data, .. } = &self.options;
        if let Err(error) = launch_waker(binary, root, data, &self.launched) {
            tracing::warn!(%error, "no process waits for the next due time; `tidewheel tick` looks again");
        }
    }

    /// Returns when to look again.
    fn next_look(&self, due: Due, serve: Serve) -> Option<Instant> {
        let probe = Duration::from_millis(self.options.probe_interval.as_millis());
        let probes = due.watches || (due.runs && serve == Serve::Always);
        let timer = due.at.map(|at| wait_until(at, self.now()));
        let wait = timer.into_iter().chain(probes.then_some(probe)).min();
        // A time that is over was looked at by the pass just made; coming back to it at once would keep a core busy.
        wait.map(|wait| Instant::now() + wait.max(SHORTEST))
    }

    fn take_daemon_lock(&self) -> Result<Option<File>, SchedulerError> {
        let (data, name) = (&self.options.data, Path::new("jobs/daemon.lock"));
        let fail = |verb, source| JobStoreError::Io { verb, path: data.join(name), source };
        let file = open_regular(data, name, Access::Lock).map_err(|source| fail("open", source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(fail("lock", source).into()),
        }
    }
}

const fn is_idle(due: Due) -> bool {
    due.at.is_none() && !due.watches
}

fn wait_until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_nanos(at.as_nanos().saturating_sub(now.as_nanos()))
}
