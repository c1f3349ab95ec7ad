//! What gates see: all jobs by number, in the order of their ids, as they stand at this moment of the pass.

use std::collections::BTreeMap;

use crate::job::brief::Brief;
use crate::job::id::JobId;
use crate::job::question::Facts;
use crate::job::status::JobStatus;
use crate::time::Timestamp;

/// What gates see.
pub(in crate::job) struct View<'a> {
    /// The jobs, sorted by id. Nothing in them changes during a pass.
    pub(in crate::job) jobs: Vec<&'a Brief>,
    /// Where they stand now: what ended in the pass has ended for all that come after it.
    stands: Vec<JobStatus>,
    /// Records that cannot be read, and why.
    pub(super) unreadable: &'a BTreeMap<String, String>,
    /// What is known of the world.
    pub(super) facts: &'a Facts,
    /// The present.
    pub(in crate::job) now: Timestamp,
}

impl<'a> View<'a> {
    pub(in crate::job) fn new(
        jobs: &'a BTreeMap<JobId, Brief>,
        unreadable: &'a BTreeMap<String, String>,
        facts: &'a Facts,
        now: Timestamp,
    ) -> Self {
        let jobs: Vec<&Brief> = jobs.values().collect();
        let stands = jobs.iter().map(|job| standing(job)).collect();
        Self { jobs, stands, unreadable, facts, now }
    }

    /// Returns the number of a job.
    pub(in crate::job) fn find(&self, id: &str) -> Option<usize> {
        self.jobs.binary_search_by(|job| job.id.as_str().cmp(id)).ok()
    }

    /// Returns where a job stands at this moment of the pass.
    pub(in crate::job) fn stands(&self, job: usize) -> JobStatus {
        self.stands[job]
    }

    /// Tells whether gates are to be asked for a job.
    pub(in crate::job) fn is_waiting(&self, job: usize) -> bool {
        let status = self.jobs[job].status;
        status.is_active() && status != JobStatus::Running
    }

    /// Returns the numbers of the jobs for which gates are to be asked.
    pub(in crate::job) fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(|job| self.is_waiting(*job))
    }

    /// A job ended in the pass.
    pub(in crate::job) fn end(&mut self, job: usize, status: JobStatus) {
        self.stands[job] = status;
    }
}

/// Returns where a job stands for others: one whose loop will rewind it has not ended.
fn standing(job: &Brief) -> JobStatus {
    if job.is_open() && job.status.is_terminal() { JobStatus::Queued } else { job.status }
}
