//! What a keeper of jobs can do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use serde_json::Value;
use tidewheel_core::job::{Brief, JobEvent, JobId, JobOutcome, Manifest, NodeId, Record, RunId};
use tidewheel_core::time::Timestamp;

use super::batch::{Batch, Finished, Removal, Removed};
use super::error::JobStoreError;
use super::files::Survey;

/// Keeps jobs. Any number of processes may use one at once.
///
/// Whoever changes what is scheduled takes a [`Turn`]; there is one at a time. While a job is running its record
/// belongs to the process that holds its run lock, and nobody else writes it.
pub trait JobStore: Send + Sync {
    /// Waits for the turn of this process.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn turn(&self) -> Result<Box<dyn Turn + '_>, JobStoreError>;

    /// Takes the turn if nobody else has it.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn try_turn(&self) -> Result<Option<Box<dyn Turn + '_>>, JobStoreError>;

    /// Reads what the next turn of this process needs, while others may have theirs, so that it takes less time. What
    /// is changed past the keeper from here on may only be seen by the turn after it.
    fn look_ahead(&self);

    /// Reads a record; `None` if there is none. A record of a run without a manifest is none either.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn record(&self, id: &JobId) -> Result<Option<Record>, JobStoreError>;

    /// Reads what is kept of a run.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn manifest(&self, run: &RunId) -> Result<Option<Manifest>, JobStoreError>;

    /// Reads what is kept of a run, of its nodes only this one.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn manifest_with(&self, run: &RunId, node: &NodeId) -> Result<Option<Manifest>, JobStoreError>;

    /// Returns the runs that were enqueued to the end.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn runs(&self) -> Result<BTreeSet<RunId>, JobStoreError>;

    /// Reads the outcome of a job.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn outcome(&self, id: &JobId) -> Result<Option<JobOutcome>, JobStoreError>;

    /// Reads what happened to a job. A line that was cut off by a crash at the end is left out.
    ///
    /// # Errors
    /// It cannot be read.
    fn events(&self, id: &JobId) -> Result<Vec<JobEvent>, JobStoreError>;

    /// Looks at all jobs, without a turn and without writing anything.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn survey(&self) -> Result<Survey, JobStoreError>;

    /// Returns all jobs, without a turn and without writing anything.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn jobs(&self) -> Result<Jobs, JobStoreError> {
        Ok(self.survey()?.jobs())
    }

    /// Takes the run lock of a job if nobody holds it. It is free again when the last copy of the file is closed:
    /// the kernel sees to it when its holder dies.
    ///
    /// # Errors
    /// The job has no directory, or the lock cannot be opened.
    fn take_run_lock(&self, id: &JobId) -> Result<Option<File>, JobStoreError>;

    /// Tells whether somebody holds the run lock of a job, as far as can be seen without touching it.
    fn has_supervisor(&self, id: &JobId) -> bool;

    /// Writes who runs the attempt into the record. Only the holder of the run lock may.
    ///
    /// # Errors
    /// It cannot be written.
    fn write_process(&self, record: &Record) -> Result<(), JobStoreError>;

    /// Writes how an attempt ended, before the turn to put it on record has come. Only the holder of the run lock may.
    ///
    /// # Errors
    /// It cannot be written.
    fn write_ended(&self, ended: &JobOutcome) -> Result<(), JobStoreError>;

    /// Reads how an attempt ended whose end may not be on record yet: whoever asks compares the attempt.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn ended(&self, id: &JobId) -> Result<Option<JobOutcome>, JobStoreError>;

    /// Tells whether a marker of a custom artifact is there: of any of these jobs, or of any at all.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn has_marker(&self, type_id: &str, key: &str, of: Option<&[JobId]>) -> Result<bool, JobStoreError>;

    /// Reads the payload beside the newest marker of a custom artifact; `None` if that one has none.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn payload(&self, type_id: &str, key: &str, of: Option<&[JobId]>)
    -> Result<Option<Value>, JobStoreError>;

    /// Asks the supervisor of a job to end it. The request stays until the job is finalised or rewound.
    ///
    /// # Errors
    /// It cannot be written.
    fn ask_to_cancel(&self, id: &JobId, request: CancelRequest<'_>) -> Result<(), JobStoreError>;

    /// Returns whether a job is asked to end because its whole run is.
    ///
    /// # Errors
    /// The request is there, and cannot be read.
    fn is_asked_to_cancel_run(&self, id: &JobId) -> Result<bool, JobStoreError>;

    /// Tells whether somebody asked to end a job.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn is_asked_to_cancel(&self, id: &JobId) -> Result<bool, JobStoreError>;

    /// Returns when somebody has to look again.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn due(&self) -> Result<Due, JobStoreError>;
}

/// The right to change what is scheduled. Dropping it gives it back.
pub trait Turn {
    /// Returns what a pass of the scheduler needs: every active job, the jobs of their runs, the jobs that they are
    /// after, and the producers of what they need.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn active(&mut self) -> Result<Jobs, JobStoreError>;

    /// Returns every job, also those whose run was never finished being enqueued.
    ///
    /// # Errors
    /// The keeper cannot be used.
    fn all(&mut self) -> Result<Jobs, JobStoreError>;

    /// Returns the state of a limit that jobs share.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn shared(&mut self, name: &str) -> Result<Option<Value>, JobStoreError>;

    /// Writes. A batch with a manifest is written as a whole or not at all, the manifest last. Of another one, the
    /// jobs that could not be written are returned with their errors, and nothing of them was changed.
    ///
    /// # Errors
    /// Nothing was written.
    fn commit(&mut self, batch: Batch) -> Result<Vec<(JobId, JobStoreError)>, JobStoreError>;

    /// Removes runs and jobs, each as a whole or not at all, and returns what came of each, in order. It needs no room
    /// on the disk.
    ///
    /// # Errors
    /// The keeper cannot be used, or the disk failed: then some may be removed, each as a whole.
    fn remove(&mut self, removals: &[Removal]) -> Result<Vec<Removed>, JobStoreError>;

    /// Finishes removals that a process began and did not end, because it was killed or could not remove a file. It needs
    /// no room on the disk.
    ///
    /// # Errors
    /// The keeper cannot be used, or the disk failed.
    fn finish_removals(&mut self) -> Result<Finished, JobStoreError>;

    /// Writes when somebody has to look again, and wakes whoever waits for that.
    ///
    /// # Errors
    /// It cannot be written.
    fn set_due(&mut self, due: Due) -> Result<(), JobStoreError>;
}

/// Jobs by id, and those whose records cannot be read, with the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// What is known of each.
    pub briefs: BTreeMap<JobId, Brief>,
    /// What is wrong with the others. The name of a directory that is no id is shown as it is.
    pub unreadable: BTreeMap<String, String>,
    /// Jobs that were there and whose records are gone; only a turn that reads what is active says so.
    pub lost: BTreeSet<JobId>,
}

/// When somebody has to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The next instant at which a timer of a job is over.
    pub at: Option<Timestamp>,
    /// Whether a job waits for something in the world that nobody tells us of: a branch, a clean tree.
    pub watches: bool,
    /// Whether a job is running, whose supervisor could die.
    pub runs: bool,
}

/// Who wants a job to end, and what else ends with it.
#[derive(Clone, Copy, Debug)]
pub struct CancelRequest<'a> {
    /// The person.
    pub by: &'a str,
    /// When.
    pub at: Timestamp,
    /// Whether the whole run is to end: then no loop of the job goes back.
    pub is_of_run: bool,
}
