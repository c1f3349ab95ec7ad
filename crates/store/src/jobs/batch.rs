//! What is written together.

use serde_json::Value;
use tidewheel_core::job::{Artifact, JobEvent, JobId, JobOutcome, Manifest, Record, RunId};
use tidewheel_core::time::Timestamp;

use super::error::JobStoreError;

/// What is written together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Records, new or changed.
    pub records: Vec<Record>,
    /// Outcomes of jobs.
    pub outcomes: Vec<JobOutcome>,
    /// What happened to jobs, in order.
    pub events: Vec<(JobId, JobEvent)>,
    /// Markers that are set.
    pub markers: Vec<Marker>,
    /// Payloads that are written.
    pub payloads: Vec<Payload>,
    /// Markers and payloads that are taken away: these artifacts, as far as they were made by these jobs.
    pub unmarked: Vec<(JobId, Artifact)>,
    /// Jobs that start again from nothing: logs emptied, outcome, patches and the wish to cancel removed.
    pub rewound: Vec<JobId>,
    /// States of limits that jobs share, and who has done the work of which key. A null takes a row away.
    pub shared: Vec<(String, Value)>,
    /// The run whose jobs these are; written last.
    pub manifest: Option<Manifest>,
    /// Whether all of it is written or nothing, as of a run that is enqueued: the first job that fails is an error then.
    pub is_whole: bool,
}

impl Batch {
    /// Tells whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let Self {
            records,
            outcomes,
            events,
            markers,
            payloads,
            unmarked,
            rewound,
            shared,
            manifest,
            is_whole: _,
        } = self;
        records.is_empty()
            && outcomes.is_empty()
            && events.is_empty()
            && markers.is_empty()
            && payloads.is_empty()
            && unmarked.is_empty()
            && rewound.is_empty()
            && shared.is_empty()
            && manifest.is_none()
    }
}

/// A run that is removed with all of its jobs, or a job that belongs to no run: as a whole, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// The run whose manifest goes.
    pub run: Option<RunId>,
    /// The jobs that go.
    pub jobs: Vec<JobId>,
    /// Markers and payloads that go with them: these artifacts, as far as they were made by these jobs.
    pub unmarked: Vec<(JobId, Artifact)>,
}

/// What came of a [`Removal`].
#[derive(Debug, Default)]
pub struct Removed {
    /// Why nothing of it was removed, and the job that was in the way, if it was one.
    pub refusal: Option<(Option<JobId>, JobStoreError)>,
    /// Files in the directories of its jobs that Tidewheel did not make, beneath the data directory: they stay.
    pub left: Vec<String>,
    /// What could not be swept up, though no job has it any more. [`super::Turn::finish_removals`] tries again.
    pub errors: Vec<JobStoreError>,
}

/// What came of removals that an earlier process began and did not end.
#[derive(Debug, Default)]
pub struct Finished {
    /// The jobs that are gone now.
    pub jobs: Vec<JobId>,
    /// The runs of which nothing is left now.
    pub runs: Vec<RunId>,
    /// Files in the directories of these jobs that Tidewheel did not make, beneath the data directory: they stay.
    pub left: Vec<String>,
    /// What could not be removed. The next one tries again.
    pub errors: Vec<JobStoreError>,
}

/// That a custom artifact is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Who made it.
    pub job_id: JobId,
    /// The contract.
    pub type_id: String,
    /// Which of its kind.
    pub key: String,
    /// When.
    pub written_at: Timestamp,
}

/// What is in a custom artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// Who made it.
    pub job_id: JobId,
    /// The contract.
    pub type_id: String,
    /// Which of its kind.
    pub key: String,
    /// The whole document.
    pub value: Value,
}
