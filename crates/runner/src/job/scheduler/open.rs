//! The scheduler itself: what it was told, and what it needs for every turn.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tidewheel_core::job::{JobId, JobStatus, LogExtent, Record};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Files, JobStore as _, JobStoreError};

use super::error::SchedulerError;
use super::options::Options;
use crate::job::identity::is_token_of;
use crate::job::launch::Launched;
use crate::job::log::LogFile;

/// Schedules the jobs of one directory.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) options: Options,
    pub(super) store: Files,
    pub(super) launched: Launched,
    /// The job that this process supervises, and the lock that it was handed.
    pub(super) supervised: OnceLock<(JobId, File)>,
}

impl Scheduler {
    /// Opens a data directory, which is made if it is not there.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn open(options: Options) -> Result<Self, SchedulerError> {
        let store = Files::open(&options.data)?.telling_of_waits(options.tell_of_wait);
        Ok(Self { options, store, launched: Launched::default(), supervised: OnceLock::new() })
    }

    /// Returns the keeper of its jobs.
    #[must_use]
    pub const fn store(&self) -> &Files {
        &self.store
    }

    /// Returns what it was told.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the present: jobs live longer than any process, so that theirs is the time on the wall.
    pub(super) fn now(&self) -> Timestamp {
        if let Some(now) = self.options.now {
            return now;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns a record that has to be there.
    pub(super) fn store_record(&self, id: &JobId) -> Result<Record, SchedulerError> {
        self.store.record(id)?.ok_or_else(|| SchedulerError::NoJob(id.clone()))
    }

    /// Takes the run lock of a job, if nobody holds it. This process may hold it itself, if it has just supervised the
    /// job: then the next supervisor gets the same.
    pub(super) fn take_lock_of(&self, id: &JobId) -> Result<Option<File>, SchedulerError> {
        match self.supervised.get() {
            // Somebody may have taken its lock away: then it is not the one that others look at.
            Some((_, lock)) if self.supervises(id) => {
                let lock = lock.try_clone();
                let path = self.directory_of(id).join("run.lock");
                let lock = lock.map_err(|source| JobStoreError::Io { verb: "hand over", path, source })?;
                Ok(Some(lock))
            }
            Some(_) | None => Ok(self.store.take_run_lock(id)?),
        }
    }

    /// Tells whether this process is, for everybody else, the supervisor of a job.
    pub(super) fn supervises(&self, id: &JobId) -> bool {
        let own = self.supervised.get().filter(|(supervised, _)| supervised == id);
        own.is_some_and(|(_, lock)| is_at(lock, &self.directory_of(id)))
    }

    /// Lends the slot of a running job as long as the value lives. `token` is what the processes of the job have; one of
    /// another directory lends nothing here.
    #[must_use]
    pub fn lend_slot(&self, id: &JobId, token: &OsStr) -> Option<File> {
        if !is_token_of(token.as_bytes(), id, &self.options.data) {
            return None;
        }
        let is_running = self.store_record(id).is_ok_and(|record| record.status == JobStatus::Running);
        self.store.lend_slot(id).ok().filter(|_| is_running)
    }

    /// Returns the directory of a job.
    pub(super) fn directory_of(&self, id: &JobId) -> PathBuf {
        self.options.data.join("jobs").join(id.as_str())
    }

    /// Returns how much was written to the logs of a job since they were emptied.
    pub(super) fn log_sizes(&self, id: &JobId) -> (u64, u64) {
        let size = |name| {
            let path = self.directory_of(id).join(name);
            // Before the first attempt there is nothing, and nothing needs to be opened.
            let is_begun = path.symlink_metadata().is_ok_and(|file| file.len() > 0);
            if is_begun { LogFile::extent(&path).map_or(0, LogExtent::end) } else { 0 }
        };
        (size("stdout.log"), size("stderr.log"))
    }
}

/// Tells whether a run lock is still the one in the directory of its job.
fn is_at(lock: &File, directory: &Path) -> bool {
    let found = directory.join("run.lock").symlink_metadata();
    let held = lock.metadata();
    found.is_ok_and(|found| held.is_ok_and(|held| (held.dev(), held.ino()) == (found.dev(), found.ino())))
}
