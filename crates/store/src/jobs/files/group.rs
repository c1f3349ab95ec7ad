//! A batch by jobs: what belongs together is written together, or not at all.

use std::collections::BTreeMap;

use tidewheel_core::job::{Artifact, JobEvent, JobId, JobOutcome, Record};

use crate::jobs::{Batch, Marker, Payload};

/// What a batch has for one job.
#[derive(Debug, Default)]
pub(super) struct Group<'b> {
    pub(super) record: Option<&'b Record>,
    pub(super) outcome: Option<&'b JobOutcome>,
    pub(super) events: Vec<&'b JobEvent>,
    pub(super) markers: Vec<&'b Marker>,
    pub(super) payloads: Vec<&'b Payload>,
    pub(super) unmarked: Vec<&'b Artifact>,
    pub(super) is_rewound: bool,
}

/// Returns what a batch has for each job; of two of a kind the last one counts.
pub(super) fn groups(batch: &Batch) -> BTreeMap<JobId, Group<'_>> {
    let mut groups: BTreeMap<JobId, Group<'_>> = BTreeMap::new();
    for record in &batch.records {
        groups.entry(record.id.clone()).or_default().record = Some(record);
    }
    for outcome in &batch.outcomes {
        groups.entry(outcome.job_id.clone()).or_default().outcome = Some(outcome);
    }
    for (id, event) in &batch.events {
        groups.entry(id.clone()).or_default().events.push(event);
    }
    for marker in &batch.markers {
        groups.entry(marker.job_id.clone()).or_default().markers.push(marker);
    }
    for payload in &batch.payloads {
        groups.entry(payload.job_id.clone()).or_default().payloads.push(payload);
    }
    for (id, artifact) in &batch.unmarked {
        groups.entry(id.clone()).or_default().unmarked.push(artifact);
    }
    for id in &batch.rewound {
        groups.entry(id.clone()).or_default().is_rewound = true;
    }
    groups
}
