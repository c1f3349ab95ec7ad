//! The life of a supervisor: one attempt of one job, from the lock that it was handed to the pass after its end.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use serde_json::{Map, Value};
use tidewheel_core::job::{Ended, JobId, JobStatus, Manifest, Metadata, NodeOutcome, Record};
use tidewheel_core::policy::{Fallback, Resolved};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{JobStore as _, JobStoreError};

use super::Scheduler;
use super::error::{SchedulerError, chain};
use super::lost::attempt_of;
use super::notes::{Notes, TakeError};
use super::ticked::Ticked;
use crate::job::attempt::{self, Attempt, AttemptError, GRACE, Logs};
use crate::job::launch::{detach, handed_over};
use crate::job::operation::{self, Around as _, Node, NodeEnd, Task};
use crate::job::{Identity, LogFile, attempt::Ended as ProcessEnded};
use crate::process::StartError;

impl Scheduler {
    /// Runs one attempt of a job that was handed over to this process, and the pass that follows it.
    ///
    /// # Errors
    /// The job was not handed over, or its end could not be put on record.
    pub fn supervise(&self, id: &JobId) -> Result<Ticked, SchedulerError> {
        let lock = handed_over(&self.directory_of(id).join("run.lock"));
        let lock = lock.ok_or_else(|| SchedulerError::NotHandedOver(id.clone()))?;
        self.supervised.get_or_init(|| (id.clone(), lock));
        detach();
        let record = self.store_record(id)?;
        let attempt = attempt_of(&record);
        let manifest = self.manifest_of(&record);
        let end = match self.take_context(record) {
            Ok(record) => self.attempt(&record, &manifest),
            Err(TakeError::Different(error)) => NodeEnd::failed(error.to_string(), 1).non_retryable(),
            Err(error @ TakeError::Unwritten(_)) => NodeEnd::failed(error.to_string(), 1),
        };
        self.make_logs(id);
        self.conclude_attempt(id, attempt, &end, manifest.ok().flatten().as_ref())
    }

    /// Makes the logs of a job that has written nothing: the record names them, and a reader finds them empty.
    fn make_logs(&self, id: &JobId) {
        for name in ["stdout.log", "stderr.log"] {
            // The writer of a log reports what is in its way.
            drop(LogFile::open(&self.directory_of(id).join(name), self.options.log_limit));
        }
    }

    /// Runs the attempt. Whatever keeps it from being run is its failure.
    fn attempt(&self, record: &Record, manifest: &Result<Option<Manifest>, JobStoreError>) -> NodeEnd {
        let manifest = match manifest {
            Ok(Some(manifest)) => Some(manifest),
            Ok(None) if record.run().is_none() => None,
            Ok(None) => return NodeEnd::failed("the manifest of its run is missing", 1),
            Err(error) => {
                return NodeEnd::failed(
                    format!("the manifest of its run cannot be read: {}", chain(error)),
                    1,
                );
            }
        };
        let Some(manifest) = manifest else {
            let mut surroundings = Surroundings::new(self, record, &Resolved::default(), None);
            let (binary, root) = (&self.options.binary, &self.options.root);
            return operation::run_child(record, binary, root, &mut |task| surroundings.execute(task));
        };
        let Some(node) = record.node().and_then(|node| manifest.nodes.get(&node)) else {
            return NodeEnd::failed("the manifest of its run has no such node", 1);
        };
        let mut node = node.clone();
        if let Err(error) = node.put_back(&self.options.secrets) {
            return NodeEnd::failed(format!("an argument of it cannot be put together: {error}"), 1);
        }
        let policy = match node.policy().and_then(|policy| policy.resolved()) {
            Ok(policy) => policy,
            Err(problems) => return NodeEnd::failed(format!("its policy cannot be read: {problems}"), 1),
        };
        let overrides = overrides(record, &policy);
        let accepted_at = record.deadline_from().unwrap_or(manifest.created_at);
        let limit = policy.limit(Some(accepted_at), step_started_at(record), None);
        let mut surroundings = Surroundings::new(self, record, &policy, limit);
        let notes = Notes::new(self, record);
        let node = Node {
            node: &node,
            attempt: attempt_of(record),
            record,
            root: &self.options.root,
            overrides: overrides.as_ref(),
            around: &notes,
        };
        let end = operation::run(&node, &mut |task| surroundings.execute(task));
        if !surroundings.has_run && end.outcome != NodeOutcome::Succeeded {
            // No process of it said why.
            notes.complain(&end.summary);
        }
        end
    }

    /// Reads the manifest of the run of a job, as far as it is about this job.
    pub(super) fn manifest_of(&self, record: &Record) -> Result<Option<Manifest>, JobStoreError> {
        match (record.run(), record.node()) {
            (Some(run), Some(node)) => self.store.manifest_with(&run, &node),
            (Some(run), None) => self.store.manifest(&run),
            (None, _) => Ok(None),
        }
    }

    /// Puts the end of an attempt on record, and makes the pass that follows. Where there is no room for that, it is
    /// tried again for a while: what ran is not to be lost because a disk is full.
    ///
    /// If somebody else has the turn, the outcome is written before it is waited for: this process may die meanwhile.
    fn conclude_attempt(
        &self,
        id: &JobId,
        attempt: u32,
        end: &NodeEnd,
        manifest: Option<&Manifest>,
    ) -> Result<Ticked, SchedulerError> {
        let shown = |text: &str| self.options.secrets.hide(text).into_owned();
        let ended = Ended {
            outcome: end.outcome,
            exit_code: end.exit_code,
            code: end.code.clone().unwrap_or_else(|| i64::from(end.exit_code.unwrap_or(1)).into()),
            summary: Some(shown(&match &end.log_error {
                Some(error) => format!("{}; some of its output is lost: {error}", end.summary),
                None => end.summary.clone(),
            })),
            complaint: end.complaint.as_deref().map(shown),
            non_retryable: end.non_retryable,
            liveness: None,
            decided: None,
            at: self.now(),
        };
        let mut pauses = pauses();
        let mut is_first = true;
        loop {
            let tried = self.put_on_record(id, attempt, end, (&ended, manifest), is_first);
            let (why, lacks_room) = match &tried {
                Ok(ticked) => (ticked.errors.join("; "), ticked.lacks_room),
                Err(error) => (chain(error), error.lacks_room()),
            };
            let is_written = tried.as_ref().is_ok_and(|ticked| !ticked.unwritten.contains(id));
            let left = if is_written { None } else { self.store_record(id).ok() };
            // The pass that finds the job without this process reads it there.
            let kept = left
                .filter(|record| is_own(record, attempt))
                .map(|record| self.keep_end(&record, end, &ended));
            if let Some(pause) = pauses.next().filter(|_| lacks_room) {
                // While this process holds the lock of the job, nobody takes it for lost.
                thread::sleep(pause);
                is_first = false;
                continue;
            }
            let Some(kept) = kept else { return tried };
            let ended = ended.summary.unwrap_or_default();
            let why = match kept {
                Ok(()) => why,
                Err(error) => format!("{why}; {}", chain(&error)),
            };
            return Err(SchedulerError::Unwritten { id: id.clone(), ended, why });
        }
    }

    /// Writes the end of an attempt beside the record, for the pass that puts it there if this process does not.
    fn keep_end(&self, record: &Record, end: &NodeEnd, ended: &Ended) -> Result<(), JobStoreError> {
        // What is not in this file has to be put on record by this process.
        if !end.payloads.is_empty() || !end.metadata.is_empty() {
            return Ok(());
        }
        self.store.write_ended(&ended.to_outcome(record))
    }

    /// Puts the end of an attempt on record once, and makes the pass that follows.
    fn put_on_record(
        &self,
        id: &JobId,
        attempt: u32,
        end: &NodeEnd,
        (ended, manifest): (&Ended, Option<&Manifest>),
        is_first: bool,
    ) -> Result<Ticked, SchedulerError> {
        self.store.look_ahead();
        let turn = match self.store.try_turn()? {
            Some(turn) => turn,
            None => {
                let record = self.store_record(id)?;
                if is_own(&record, attempt) {
                    self.keep_end(&record, end, ended)?;
                }
                self.store.turn()?
            }
        };
        let mut record = self.store_record(id)?;
        if !is_own(&record, attempt) {
            drop(turn);
            // Whoever put it on record has made the pass that follows, too, unless it was this very process, and there
            // was no room for all of that.
            return if is_first { Ok(Ticked::default()) } else { self.tick() };
        }
        let mut pass = self.pass_in(turn)?;
        for (name, value) in &end.metadata {
            record.metadata.set(name, value.clone());
        }
        pass.finish(record, manifest, ended)?;
        pass.add_payloads(id, &end.payloads)?;
        pass.conclude()
    }
}

/// Tells whether a job is still in this attempt: somebody who took its lock away may have ended that for it, and begun
/// another one.
fn is_own(record: &Record, attempt: u32) -> bool {
    record.status == JobStatus::Running && attempt_of(record) == attempt
}

/// What the processes of an attempt have around them.
struct Surroundings<'s> {
    scheduler: &'s Scheduler,
    identity: Identity,
    /// How long the attempt may take, all its processes together, from when it began.
    timeout: Option<Duration>,
    began: Instant,
    limit: Option<Timestamp>,
    heartbeat: Option<Duration>,
    /// Whether there was a process.
    has_run: bool,
}

impl<'s> Surroundings<'s> {
    fn new(scheduler: &'s Scheduler, record: &Record, policy: &Resolved, limit: Option<Timestamp>) -> Self {
        let key = record.schedule.limits.as_deref().and_then(|limits| limits.idempotency_key.clone());
        Self {
            scheduler,
            identity: Identity {
                job: record.id.clone(),
                run: record.run(),
                node: record.node(),
                attempt: attempt_of(record),
                idempotency_key: key.unwrap_or_else(|| record.id.to_string()),
            },
            timeout: policy.timeout.span().map(duration),
            began: Instant::now(),
            limit,
            heartbeat: policy.heartbeat.map(duration),
            has_run: false,
        }
    }

    /// Runs a process of the attempt, with what is left of its time.
    fn execute(&mut self, task: Task) -> Result<ProcessEnded, AttemptError> {
        let Task { program, input, timeout: own, keeps } = task;
        self.has_run = true;
        let scheduler = self.scheduler;
        let id = self.identity.job.clone();
        let directory = scheduler.directory_of(&id);
        let left = self
            .limit
            .map(|limit| Duration::from_nanos(limit.as_nanos().saturating_sub(scheduler.now().as_nanos())));
        let timeout = self.timeout.map(|timeout| timeout.saturating_sub(self.began.elapsed()));
        let attempt = self.identity.attempt;
        let program = self.identity.given_to(program, &scheduler.options.data);
        let stdin = match input.map(|input| file_of(&input)).transpose() {
            Ok(stdin) => stdin,
            Err(source) => return Err(StartError { program, source }.into()),
        };
        attempt::run(Attempt {
            program,
            stdin,
            logs: Logs {
                stdout: directory.join("stdout.log"),
                stderr: directory.join("stderr.log"),
                limit: scheduler.options.log_limit,
            },
            keeps,
            secrets: scheduler.options.secrets.clone(),
            timeout: timeout.into_iter().chain(left).chain(own).min(),
            heartbeat: self.heartbeat,
            grace: GRACE,
            on_spawn: &mut |started| {
                let mut record = scheduler.store_record(&id).map_err(io::Error::other)?;
                if !is_own(&record, attempt) || !scheduler.supervises(&id) {
                    return Err(io::Error::other("another process has ended this attempt"));
                }
                record.pid = Some(started.pid);
                record.process_start_time = started.start_time;
                if let Some(session) = started.session {
                    record.metadata.set(Metadata::PROCESS_SESSION, session);
                }
                scheduler.store.write_process(&record).map_err(io::Error::other)
            },
            is_cancelled: &|| scheduler.store.is_asked_to_cancel(&id).unwrap_or(false),
            cancel_in: Some(directory.clone()),
        })
    }
}

/// Returns a file that is nowhere and has this in it: whoever reads it may do so as slowly as it likes, or not at all,
/// and nobody has to wait for it.
fn file_of(input: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// Returns the arguments that the fallback gives to this attempt.
fn overrides(record: &Record, policy: &Resolved) -> Option<Map<String, Value>> {
    record.metadata.get(Metadata::FALLBACK)?;
    match policy.fallback.as_ref()? {
        Fallback::Overrides(overrides) => overrides.get("args")?.as_object().cloned(),
        Fallback::Value(_) | Fallback::Function(_) => None,
    }
}

fn step_started_at(record: &Record) -> Option<Timestamp> {
    Timestamp::parse(record.metadata.text(Metadata::STEP_STARTED_AT)?).ok()
}

/// Returns how long to wait before each further try to put an end on record: soon at first, and half a minute in all.
fn pauses() -> impl Iterator<Item = Duration> {
    let doubled = (0..6).map(|power| Duration::from_millis(50 << power));
    doubled.chain(std::iter::repeat_n(Duration::from_secs(2), 14))
}

const fn duration(span: tidewheel_core::time::Span) -> Duration {
    Duration::from_millis(span.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_who_makes_room_has_half_a_minute() {
        let pauses: Vec<Duration> = pauses().collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[0], Duration::from_millis(50));
        let all: Duration = pauses.iter().sum();
        assert!((30..40).contains(&all.as_secs()), "{all:?}");
    }
}
