//! What a supervisor writes down for the operation that it runs, and what it looks up for it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tidewheel_core::job::{
    AfterPolicy, Artifact, Context, ContextError, JobId, JobStatus, Manifest, Metadata, Record, RunId,
    inherited,
};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{JobStore as _, JobStoreError};

use super::Scheduler;
use super::lost::attempt_of;
use crate::git::{Git, System};
use crate::job::operation::{AgentProgram, Around};
use crate::job::{LogFile, identity};

/// What is around one attempt.
#[derive(Debug)]
pub(super) struct Notes<'s> {
    scheduler: &'s Scheduler,
    id: JobId,
    run: Option<RunId>,
    attempt: u32,
}

impl<'s> Notes<'s> {
    pub(super) fn new(scheduler: &'s Scheduler, record: &Record) -> Self {
        Self { scheduler, id: record.id.clone(), run: record.run(), attempt: attempt_of(record) }
    }

    /// Returns the record, as long as it is this process's to write.
    pub(super) fn record(&self) -> io::Result<Record> {
        let record = self.scheduler.store_record(&self.id).map_err(io::Error::other)?;
        let is_own = record.status == JobStatus::Running && attempt_of(&record) == self.attempt;
        if is_own && self.scheduler.supervises(&self.id) {
            Ok(record)
        } else {
            Err(io::Error::other("another process has ended this attempt"))
        }
    }

    /// Writes the record.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        self.scheduler.store.write_process(record).map_err(io::Error::other)
    }

    fn add(&self, log: &str, line: &str) {
        let path = self.scheduler.directory_of(&self.id).join(log);
        if let Ok(mut log) = LogFile::open(&path, self.scheduler.options.log_limit) {
            log.write(format!("{}\n", self.scheduler.options.secrets.hide(line)).as_bytes());
            // It is said in the outcome, too.
            drop(log.finish());
        }
    }
}

impl Around for Notes<'_> {
    fn data(&self) -> &Path {
        &self.scheduler.options.data
    }

    fn now(&self) -> Timestamp {
        self.scheduler.now()
    }

    fn note(&self, values: &[(&str, Value)]) -> io::Result<()> {
        let mut record = self.record()?;
        for (name, value) in values {
            if value.is_null() {
                record.metadata.clear(name);
            } else {
                record.metadata.set(name, value.clone());
            }
        }
        self.write(&record)
    }

    fn noted(&self, name: &str) -> io::Result<Option<Value>> {
        Ok(self.record()?.metadata.get(name).cloned())
    }

    fn noted_in_run(&self, name: &str) -> io::Result<Vec<Value>> {
        let manifest = self.manifest().map_err(io::Error::other)?;
        let nodes = manifest.iter().flat_map(|manifest| manifest.nodes.values());
        // A record that cannot be read says nothing.
        let records = nodes.filter_map(|node| self.scheduler.store.record(&node.job_id).ok().flatten());
        Ok(records.filter_map(|record| record.metadata.get(name).cloned()).collect())
    }

    fn say(&self, line: &str) {
        self.add("stdout.log", line);
    }

    fn complain(&self, line: &str) {
        self.add("stderr.log", line);
    }

    fn manifest(&self) -> Result<Option<Manifest>, JobStoreError> {
        self.run.as_ref().map_or(Ok(None), |run| self.scheduler.store.manifest(run))
    }

    fn payload(&self, artifact: &Artifact) -> Result<Option<Value>, JobStoreError> {
        let Artifact::Custom { type_id, key } = artifact else { return Ok(None) };
        let manifest = self.manifest()?;
        let nodes = manifest.iter().flat_map(|manifest| manifest.nodes.values());
        let makers = nodes.filter(|node| node.produces.values().flatten().any(|made| made == artifact));
        let makers: Vec<JobId> = makers.map(|node| node.job_id.clone()).collect();
        let of = (!makers.is_empty()).then_some(makers.as_slice());
        self.scheduler.store.payload(type_id, key, of)
    }

    fn git(&self) -> Arc<dyn Git> {
        // Whoever finds this process dead ends what it has asked for, too, before somebody else begins.
        let token = identity::token(&self.id, self.attempt, &self.scheduler.options.data);
        Arc::new(System::default().known_by(identity::TOKEN, token))
    }

    fn agent(&self, name: &str) -> Option<&AgentProgram> {
        self.scheduler.options.agents.get(name)
    }
}

impl Scheduler {
    /// Returns where those before a job ran, if they left the root of the repository. Only what comes before it in its
    /// own run counts.
    pub(super) fn context_of(&self, record: &Record) -> Result<Option<Context>, ContextError> {
        let metadata = &record.metadata;
        if metadata.text(Metadata::WORKTREE_OWNER) == Some(record.id.as_str()) {
            // An earlier attempt has made a worktree of its own.
            return Ok(None);
        }
        // What cleans up gets the worktree of whatever it comes after, however that ended.
        let is_cleanup = metadata.text(Metadata::EXECUTOR_OPERATION) == Some("worktree.cleanup");
        let mut before = Vec::new();
        for after in &record.schedule.after {
            if after.policy != AfterPolicy::Success && !is_cleanup {
                continue;
            }
            // One that is gone or cannot be read was judged by its gate.
            let Ok(found) = self.store_record(&after.job_id) else { continue };
            let is_over = found.status == JobStatus::Succeeded || (is_cleanup && found.status.is_terminal());
            if is_over && found.run() == record.run() {
                before.push(found);
            }
        }
        inherited(&before)
    }

    /// Lets a job run where those before it did.
    pub(super) fn take_context(&self, record: Record) -> Result<Record, TakeError> {
        let Some(context) = self.context_of(&record)? else { return Ok(record) };
        let mut record = record;
        if context.give_to(&mut record) {
            let notes = Notes::new(self, &record);
            let mut written = notes.record().map_err(TakeError::Unwritten)?;
            context.give_to(&mut written);
            notes.write(&written).map_err(TakeError::Unwritten)?;
        }
        Ok(record)
    }
}

/// Why a job cannot run where those before it did.
#[derive(Debug, thiserror::Error)]
pub(super) enum TakeError {
    #[error(transparent)]
    Different(#[from] ContextError),
    #[error("cannot write the record: {0}")]
    Unwritten(io::Error),
}
