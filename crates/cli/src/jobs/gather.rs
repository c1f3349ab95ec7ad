//! Gathers what the lines of a board are made of: attempts, retries, ends of logs and causes. Of what changes seldom it
//! reads each thing once.

use std::collections::BTreeMap;

use tidewheel_core::job::{Brief, JobEventKind, JobId, JobStatus, Metadata, Record, RunId, WaitKind};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::JobStore as _;

use super::latest::latest;
use super::opened::Opened;
use super::progress::{Board, Followee, Time};
use crate::store::now;

/// What was read so far.
pub(super) struct Gather<'a> {
    opened: &'a Opened,
    began: Timestamp,
    /// Which attempt the policy of each job counts.
    policy_attempts: BTreeMap<JobId, u32>,
    /// How many retries the jobs of each run have.
    retries: BTreeMap<RunId, BTreeMap<JobId, u32>>,
    /// Why which attempt of a job failed.
    failures: BTreeMap<JobId, (u32, Option<String>)>,
}

impl<'a> Gather<'a> {
    /// Begins.
    pub(super) fn new(opened: &'a Opened) -> Self {
        let (policy_attempts, retries, failures) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { opened, began: now(), policy_attempts, retries, failures }
    }

    /// Takes what lists do not have of a job.
    pub(super) fn see(&mut self, record: &Record) {
        let attempt = record.metadata.number(Metadata::POLICY_ATTEMPT).unwrap_or(0);
        self.policy_attempts.insert(record.id.clone(), attempt);
    }

    /// Says how the jobs are, in at most so many lines.
    pub(super) fn board(&mut self, jobs: &BTreeMap<JobId, Brief>, room: usize) -> Board {
        let running = jobs.values().filter(|job| job.status == JobStatus::Running).take(room);
        let running: Vec<&Brief> = running.collect();
        let tail = |job: &Brief| latest(&self.opened.place.data.join("jobs").join(job.id.as_str()));
        let latest: BTreeMap<&JobId, String> =
            running.iter().filter_map(|job| Some((&job.id, tail(job)?))).collect();
        for job in running {
            self.read_retries(job);
        }
        for job in jobs.values().filter(|job| is_retried(job)).take(room) {
            self.read_failure(job);
        }
        let followees: Vec<Followee<'_>> = jobs
            .values()
            .map(|job| Followee {
                job,
                policy_attempt: self.policy_attempts.get(&job.id).copied().unwrap_or(0),
                retries: job.run.as_ref().and_then(|run| self.retries.get(run)?.get(&job.id).copied()),
                latest: latest.get(&job.id).map(String::as_str),
                failure: self.failures.get(&job.id).and_then(|(_, failure)| failure.as_deref()),
            })
            .collect();
        Board::of(&followees, Time { began: self.began, now: now() }, room)
    }

    fn read_retries(&mut self, job: &Brief) {
        let Some(run) = &job.run else { return };
        if self.retries.contains_key(run) {
            return;
        }
        // Who cannot read it shows less.
        let manifest = self.opened.store().manifest(run).ok().flatten();
        let nodes = manifest.into_iter().flat_map(|manifest| manifest.nodes.into_values());
        let retries = nodes.filter_map(|node| {
            let policy = node.policy().ok()?.resolved().ok()?;
            Some((node.job_id, policy.max_retries))
        });
        self.retries.insert(run.clone(), retries.collect());
    }

    fn read_failure(&mut self, job: &Brief) {
        if self.failures.get(&job.id).is_some_and(|(attempt, _)| *attempt == job.attempt) {
            return;
        }
        let events = self.opened.store().history(&job.id).unwrap_or_default().events;
        let failure = events.into_iter().rev().find_map(|event| match event.event {
            JobEventKind::AttemptFailed { exit_code: Some(code), .. } => Some(format!("exit {code}")),
            JobEventKind::AttemptFailed { exit_code: None, message, .. } => Some(message),
            JobEventKind::Dispatched { .. }
            | JobEventKind::Withdrawn { .. }
            | JobEventKind::Completed { .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => None,
        });
        self.failures.insert(job.id.clone(), (job.attempt, failure));
    }
}

/// Tells whether a job waits for its next attempt.
fn is_retried(job: &Brief) -> bool {
    let kind = job.schedule.wait_reason.as_ref().map(|reason| reason.kind);
    job.attempt > 0 && job.status.is_active() && kind == Some(WaitKind::Schedule)
}
