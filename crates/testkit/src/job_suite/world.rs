//! What a case works with: one keeper of jobs by two handles, and short ways to write to it.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use tidewheel_core::job::{Artifact, JobId, MANIFEST_VERSION, Manifest, Metadata, Record, RunId};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Batch, JobStore, Jobs, Removal};

/// A keeper of jobs that is empty, with what a case needs around it.
pub struct World {
    /// The keeper.
    pub store: Arc<dyn JobStore>,
    /// The same one as another process sees it.
    pub other: Arc<dyn JobStore>,
    /// What must live as long as the keeper, such as its folder.
    pub keeps: Box<dyn Any + Send>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// Writes a batch of which everything can be written.
    pub(crate) fn commit(&self, batch: Batch) {
        let failed = self.store.turn().unwrap().commit(batch).unwrap();
        assert!(failed.is_empty(), "{failed:?}");
    }

    /// Removes a run, or jobs without one, that can be removed.
    pub(crate) fn remove(&self, run: Option<&str>, jobs: &[JobId]) {
        let removal = Removal { run: run.map(run_id), jobs: jobs.to_vec(), unmarked: Vec::new() };
        let removed = self.store.turn().unwrap().remove(&[removal]).unwrap();
        assert!(removed[0].refusal.is_none(), "{removed:?}");
    }

    /// Writes records without a run.
    pub(crate) fn put(&self, records: &[Record]) {
        self.commit(Batch { records: records.to_vec(), ..Batch::default() });
    }

    /// Enqueues a run with these nodes.
    pub(crate) fn enqueue(&self, run: &str, nodes: &[&str]) -> Vec<Record> {
        let records: Vec<Record> = nodes.iter().map(|node| member(run, node)).collect();
        self.commit(Batch { records: records.clone(), manifest: Some(manifest(run)), ..Batch::default() });
        records
    }

    pub(crate) fn active(&self) -> Jobs {
        self.other.turn().unwrap().active().unwrap()
    }

    pub(crate) fn all(&self) -> Jobs {
        self.other.turn().unwrap().all().unwrap()
    }
}

/// Returns the names of jobs.
pub(crate) fn names(jobs: &Jobs) -> Vec<&str> {
    jobs.briefs.keys().map(JobId::as_str).collect()
}

/// Returns an id.
///
/// # Panics
/// The text is none.
#[must_use]
pub fn job_id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

/// Returns the id of a run.
///
/// # Panics
/// The text is none.
#[must_use]
pub fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

/// Returns a record that could be started.
#[must_use]
pub fn job(id: &str) -> Record {
    let mut record = Record::new(job_id(id), Timestamp::from_millis(1_700_000_000_000));
    record.child_args = vec!["true".to_owned()];
    record
}

/// Returns the record of a node of a run.
#[must_use]
pub fn member(run: &str, node: &str) -> Record {
    let mut record = job(&format!("wf-{run}-{node}"));
    record.metadata.set(Metadata::RUN_ID, run);
    record.metadata.set(Metadata::NODE_ID, node);
    record
}

/// Returns a custom artifact.
#[must_use]
pub fn custom(type_id: &str, key: &str) -> Artifact {
    Artifact::Custom { type_id: type_id.to_owned(), key: key.to_owned() }
}

/// Returns the manifest of a run without nodes.
#[must_use]
pub fn manifest(run: &str) -> Manifest {
    Manifest {
        version: MANIFEST_VERSION,
        run_id: run_id(run),
        workflow_template_selector: "file:a.toml".to_owned(),
        workflow_template_source: None,
        workflow_template_id: "template.a".to_owned(),
        workflow_template_version: "v1".to_owned(),
        policy_snapshot_hash: "00".to_owned(),
        created_at: Timestamp::from_millis(1_700_000_000_000),
        params: BTreeMap::from([("slug".to_owned(), "alpha".to_owned())]),
        nodes: BTreeMap::new(),
    }
}
