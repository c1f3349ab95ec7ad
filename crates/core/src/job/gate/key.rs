//! The gate of idempotency keys: jobs with one key are one piece of work. While one of them is under way the others wait,
//! and when it succeeded they take its result; if it did not, the next one does the work. Who did the work is a fact that
//! somebody keeps: a job that only took the result over did not.

use std::collections::BTreeMap;

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::brief::Brief;
use crate::job::id::JobId;
use crate::job::question::{Answer, Question};
use crate::job::schedule::WaitKind;
use crate::job::status::JobStatus;

/// Who has which key.
pub(in crate::job) struct Keys<'a> {
    /// Those who are under way.
    owners: BTreeMap<&'a str, &'a JobId>,
}

impl<'a> Keys<'a> {
    pub(in crate::job) fn new(view: &View<'a>) -> Self {
        let mut this = Self { owners: BTreeMap::new() };
        for job in &view.jobs {
            let Some(key) = key_of(job) else { continue };
            if job.status.is_active() && job.started_at.is_some() {
                this.owners.entry(key).or_insert(&job.id);
            }
        }
        this
    }

    /// Says whether a job is the one that does the work; if another one did it, the job succeeded.
    pub(in crate::job) fn judge(&self, job: usize, view: &View<'a>) -> Verdict {
        let brief = view.jobs[job];
        let Some(key) = key_of(brief) else { return Verdict::Open };
        let done = |owner: &str| {
            let detail = format!("same work as job {owner}");
            Verdict::end(JobStatus::Succeeded, WaitKind::Dependencies, detail)
        };
        if let Some(owner) = self.owners.get(key).filter(|owner| ***owner != brief.id) {
            let detail = format!("waiting on job {owner} with the same idempotency key");
            return Wait::new(JobStatus::Queued, WaitKind::Capacity, detail).ready();
        }
        let question = Question::KeyOwner(key.to_owned());
        match view.facts.get(&question) {
            None => Verdict::Ask(vec![question]),
            Some(Answer::Text(Some(owner))) if owner != brief.id.as_str() => done(owner),
            Some(Answer::Text(_) | Answer::Yes | Answer::No | Answer::Failed(_)) => Verdict::Open,
        }
    }

    /// Returns who did the work that a job takes over.
    pub(in crate::job) fn owner(job: usize, view: &View<'a>) -> Option<JobId> {
        let key = key_of(view.jobs[job])?;
        match view.facts.get(&Question::KeyOwner(key.to_owned())) {
            Some(Answer::Text(Some(owner))) => JobId::new(owner).ok(),
            Some(Answer::Text(None) | Answer::Yes | Answer::No | Answer::Failed(_)) | None => None,
        }
    }

    /// Returns who does the work of a job, if that is another one.
    pub(in crate::job) fn worker(&self, job: &Brief) -> Option<&'a JobId> {
        self.owners.get(key_of(job)?).copied().filter(|owner| **owner != job.id)
    }

    /// A job does the work.
    pub(in crate::job) fn take(&mut self, job: &'a Brief) {
        if let Some(key) = key_of(job) {
            self.owners.entry(key).or_insert(&job.id);
        }
    }
}

fn key_of(job: &Brief) -> Option<&str> {
    job.schedule.limits.as_ref()?.idempotency_key.as_deref()
}
