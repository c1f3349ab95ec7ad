//! Writes a batch: everything beside its place first, one sync for all, then each thing into its place, in the
//! order in which a crash in between does the least harm, and the manifest of a run after all the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Deserialize;
use serde_json::Value;
use tidewheel_core::job::{JobId, JobOutcome, RECORD_VERSION, RecordError};

use super::beneath::Root;
use super::folders::Folders;
use super::group::{Group, groups};
use super::signature::Signature;
use super::staging::{Staged, Staging};
use super::sync::Disk;
use super::{append, artifacts, layout, read, remove, rewind, sweep};
use crate::jobs::{Batch, JobStoreError};

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Committed {
    /// Jobs of which nothing was changed, and why.
    pub(super) failed: Vec<(JobId, JobStoreError)>,
    /// Jobs that had no directory before.
    pub(super) made: BTreeSet<JobId>,
    /// By what the records are known that were written.
    pub(super) records: BTreeMap<JobId, Signature>,
    /// How many directories more there are in the one of the jobs.
    pub(super) links: i64,
}

/// Writes a batch.
pub(super) fn commit(root: &Root, disk: &Disk, batch: &Batch) -> Result<Committed, JobStoreError> {
    let groups = groups(batch);
    let mut writer = Writer {
        folders: Folders::new(root),
        staging: Staging::new(
            batch.records.len() + batch.outcomes.len() + batch.markers.len() + batch.payloads.len(),
        ),
        jobs: BTreeMap::new(),
        common: Vec::new(),
        manifest: None,
        is_whole: batch.is_whole || batch.manifest.is_some(),
        done: Committed::default(),
    };
    let result = writer.write(disk, batch, &groups);
    match result {
        Ok(()) => {
            let Writer { mut done, jobs, folders, .. } = writer;
            done.links = folders.links;
            let records = jobs.into_iter().filter_map(|(id, job)| Some((id, job.record?.signature)));
            done.records = records.collect();
            Ok(done)
        }
        Err(error) => {
            writer.undo_all();
            Err(error)
        }
    }
}

/// Refuses to replace a record that a later release wrote, or something that is no file.
pub(super) fn check_version(root: &Root, id: &JobId) -> Result<Option<String>, JobStoreError> {
    #[derive(Deserialize)]
    struct Head {
        version: Option<u64>,
    }
    let path = layout::of_job(id, layout::RECORD);
    let fail = |source| JobStoreError::Io { verb: "write", path: root.path(&path), source };
    let Some((text, _)) = root.read(&path).map_err(fail)? else { return Ok(None) };
    match serde_json::from_str::<Head>(&text) {
        Ok(Head { version: Some(found) }) if found > u64::from(RECORD_VERSION) => {
            Err(RecordError::Newer { found }.into())
        }
        // What is no record is mended by one.
        Ok(_) | Err(_) => Ok(Some(text)),
    }
}

/// Returns the text of the file of an outcome.
pub(super) fn outcome_text(outcome: &JobOutcome) -> String {
    read::text(&serde_json::to_value(outcome).expect("invariant: every key of an outcome is a string"))
}

/// A batch on its way.
struct Writer<'r> {
    folders: Folders<'r>,
    staging: Staging,
    jobs: BTreeMap<JobId, Job>,
    /// What belongs to no job.
    common: Vec<Common>,
    /// The manifest of the run, which is put into its place last.
    manifest: Option<Common>,
    /// Whether everything is written, or nothing.
    is_whole: bool,
    done: Committed,
}

/// A file that belongs to no job, on its way.
struct Common {
    staged: Staged,
    is_placed: bool,
    /// The text of the file that it replaces.
    before: Option<String>,
}

impl Common {
    /// Puts the file into its place.
    fn place(&mut self, folders: &mut Folders<'_>) -> Result<(), JobStoreError> {
        let Staged { folder, name, .. } = &self.staged;
        let fail = io_error(folders.root, "write", folder);
        // Only what is replaced has to be known, and only if it can be put back.
        self.before = folders.root.read(&format!("{folder}/{name}")).ok().flatten().map(|(text, _)| text);
        self.staged.place(folders).map_err(fail)?;
        self.is_placed = true;
        Ok(())
    }

    /// Takes the file away again, and puts back what it replaced.
    fn undo(&self, folders: &mut Folders<'_>, staging: &mut Staging) {
        let Staged { folder, name, .. } = &self.staged;
        match &self.before {
            _ if !self.is_placed => self.staged.discard(folders),
            None => self.staged.undo(folders),
            Some(before) => {
                if let Ok(staged) = staging.write(folders, folder, name, before)
                    && staged.place(folders).is_err()
                {
                    staged.discard(folders);
                }
            }
        }
    }
}

/// What is on its way for one job.
#[derive(Default)]
struct Job {
    is_new: bool,
    markers: Vec<Staged>,
    outcome: Option<Staged>,
    record: Option<Staged>,
    /// The text of the record that is replaced.
    before: Option<String>,
    /// How long the file of the events was.
    events: Option<u64>,
    is_record_placed: bool,
    placed: usize,
    is_outcome_placed: bool,
}

impl Writer<'_> {
    fn write(
        &mut self,
        disk: &Disk,
        batch: &Batch,
        groups: &BTreeMap<JobId, Group<'_>>,
    ) -> Result<(), JobStoreError> {
        self.stage_common(batch)?;
        self.each(groups, Self::stage)?;
        self.staging.sync(&self.folders, disk)?;
        // Readiness and payloads are there before a record says that the job has succeeded, and traces of the last
        // time are gone before one says that it is queued.
        self.each(groups, Self::place_artifacts)?;
        if groups.values().any(|group| !group.markers.is_empty() || !group.payloads.is_empty()) {
            self.folders.sync(disk)?;
        }
        self.each(groups, Self::place_record)?;
        for common in &mut self.common {
            common.place(&mut self.folders)?;
        }
        self.remove_rows(batch)?;
        self.folders.sync(disk)?;
        if let Some(manifest) = &mut self.manifest {
            manifest.place(&mut self.folders)?;
            self.folders.sync(disk)?;
        }
        Ok(())
    }

    /// Does a part of the work for each job that has not failed yet.
    fn each(
        &mut self,
        groups: &BTreeMap<JobId, Group<'_>>,
        part: fn(&mut Self, &JobId, &Group<'_>) -> Result<(), JobStoreError>,
    ) -> Result<(), JobStoreError> {
        for (id, group) in groups {
            if self.done.failed.iter().any(|(failed, _)| failed == id) {
                continue;
            }
            if let Err(error) = part(self, id, group) {
                if self.is_whole {
                    return Err(error);
                }
                self.undo(id);
                self.done.failed.push((id.clone(), error));
            }
        }
        Ok(())
    }

    fn stage_common(&mut self, batch: &Batch) -> Result<(), JobStoreError> {
        let root = self.folders.root;
        for (name, value) in batch.shared.iter().filter(|(_, value)| !value.is_null()) {
            let fail = io_error(root, "write", layout::SHARED);
            let text = read::text(&serde_json::json!({ "name": name, "value": value }));
            let file = layout::shared_name(name);
            let staged = self
                .folders
                .make_all(layout::SHARED)
                .and_then(|()| self.staging.write(&mut self.folders, layout::SHARED, &file, &text));
            let staged = staged.map_err(fail)?;
            self.common.push(Common { staged, is_placed: false, before: None });
        }
        if let Some(manifest) = &batch.manifest {
            let fail = io_error(root, "write", layout::RUNS);
            let (name, text) = (layout::manifest_name(&manifest.run_id), manifest.to_json());
            let staged = self
                .folders
                .make_all(layout::RUNS)
                .and_then(|()| self.staging.write(&mut self.folders, layout::RUNS, &name, &text));
            let staged = staged.map_err(fail)?;
            self.manifest = Some(Common { staged, is_placed: false, before: None });
        }
        Ok(())
    }

    /// Writes what a job has beside its place.
    fn stage(&mut self, id: &JobId, group: &Group<'_>) -> Result<(), JobStoreError> {
        let root = self.folders.root;
        let folder = layout::job(id);
        let fail = io_error(root, "write", &folder);
        if group.is_rewound {
            // While nothing of it is changed yet.
            rewind::check(&mut self.folders, &folder)?;
        }
        let mut job = Job::default();
        if group.record.is_some() {
            job.is_new = self.folders.make(layout::JOBS, id.as_str()).map_err(fail)?;
            if job.is_new {
                self.done.made.insert(id.clone());
            } else {
                sweep::sweep(&mut self.folders, &folder);
            }
        }
        // From here on an error finds what has to be undone.
        let job = self.jobs.entry(id.clone()).or_insert(job);
        for marker in &group.markers {
            let text = artifacts::marker_text(marker);
            let path = layout::artifact(layout::MARKERS, &marker.type_id, &marker.key);
            self.folders.make_all(&path).map_err(fail)?;
            let name = layout::made_by(id);
            job.markers.push(self.staging.write(&mut self.folders, &path, &name, &text).map_err(fail)?);
        }
        for payload in &group.payloads {
            let path = layout::artifact(layout::PAYLOADS, &payload.type_id, &payload.key);
            self.folders.make_all(&path).map_err(fail)?;
            let (name, text) = (layout::made_by(id), read::text(&payload.value));
            job.markers.push(self.staging.write(&mut self.folders, &path, &name, &text).map_err(fail)?);
        }
        // Payloads stand before the markers that say that they are there.
        job.markers.rotate_left(group.markers.len());
        if let Some(outcome) = group.outcome {
            let text = outcome_text(outcome);
            let staged = self.staging.write(&mut self.folders, &folder, layout::OUTCOME, &text);
            job.outcome = Some(staged.map_err(fail)?);
        }
        if let Some(record) = group.record {
            if !job.is_new {
                job.before = check_version(root, id)?;
            }
            let staged = self.staging.write(&mut self.folders, &folder, layout::RECORD, &record.to_json());
            job.record = Some(staged.map_err(fail)?);
        }
        if !group.events.is_empty() {
            let path = layout::of_job(id, layout::EVENTS);
            let fail = io_error(root, "write", &path);
            let (file, length) = append::events(&mut self.folders, &folder, &group.events).map_err(fail)?;
            job.events = Some(length);
            self.staging.hold(file);
        }
        Ok(())
    }

    fn place_artifacts(&mut self, id: &JobId, group: &Group<'_>) -> Result<(), JobStoreError> {
        let folder = layout::job(id);
        let fail = io_error(self.folders.root, "write", &folder);
        if group.is_rewound {
            rewind::rewind(&mut self.folders, &folder)?;
        }
        for artifact in &group.unmarked {
            remove::unmark(&mut self.folders, id, artifact).map_err(fail)?;
        }
        let Some(job) = self.jobs.get_mut(id) else { return Ok(()) };
        for staged in &job.markers {
            staged.place(&mut self.folders).map_err(fail)?;
            job.placed += 1;
        }
        Ok(())
    }

    fn place_record(&mut self, id: &JobId, _: &Group<'_>) -> Result<(), JobStoreError> {
        let path = layout::of_job(id, layout::RECORD);
        let fail = io_error(self.folders.root, "write", &path);
        let Some(job) = self.jobs.get_mut(id) else { return Ok(()) };
        if let Some(staged) = &job.outcome {
            let path = layout::of_job(id, layout::OUTCOME);
            let fail = io_error(self.folders.root, "write", &path);
            staged.place(&mut self.folders).map_err(fail)?;
            job.is_outcome_placed = true;
        }
        if let Some(staged) = &job.record {
            staged.place(&mut self.folders).map_err(fail)?;
            job.is_record_placed = true;
        }
        Ok(())
    }

    /// Takes away the rows that are null. Of several values of one row the last one counts.
    fn remove_rows(&mut self, batch: &Batch) -> Result<(), JobStoreError> {
        let last: BTreeMap<&str, &Value> =
            batch.shared.iter().map(|(name, value)| (name.as_str(), value)).collect();
        for (name, _) in last.into_iter().filter(|(_, value)| value.is_null()) {
            let fail = io_error(self.folders.root, "remove", layout::SHARED);
            remove::shared(&mut self.folders, name).map_err(fail)?;
        }
        Ok(())
    }

    /// Takes back what was done for a job. What was there before stays as far as the disk lets us.
    fn undo(&mut self, id: &JobId) {
        let Some(job) = self.jobs.remove(id) else { return };
        for (at, staged) in job.markers.iter().enumerate() {
            if at < job.placed { staged.undo(&mut self.folders) } else { staged.discard(&mut self.folders) }
        }
        if let Some(staged) = &job.outcome {
            if job.is_outcome_placed {
                staged.undo(&mut self.folders);
            } else {
                staged.discard(&mut self.folders);
            }
        }
        if let Some(staged) = &job.record
            && !job.is_record_placed
        {
            staged.discard(&mut self.folders);
        }
        let folder = layout::job(id);
        if let Some(length) = job.events {
            append::cut(&mut self.folders, &folder, length);
        }
        if job.is_new {
            self.done.made.remove(id);
            remove::new_job(&mut self.folders, id);
        } else if let Some(before) = &job.before
            && job.is_record_placed
            && let Ok(staged) = self.staging.write(&mut self.folders, &folder, layout::RECORD, before)
            && staged.place(&mut self.folders).is_err()
        {
            staged.discard(&mut self.folders);
        }
    }

    fn undo_all(&mut self) {
        // The manifest first: until its jobs are there as a whole, a run must not be.
        for common in self.manifest.take().into_iter().chain(self.common.drain(..)) {
            common.undo(&mut self.folders, &mut self.staging);
        }
        let ids: Vec<JobId> = self.jobs.keys().cloned().collect();
        ids.iter().for_each(|id| self.undo(id));
    }
}

fn io_error<'a>(
    root: &'a Root,
    verb: &'static str,
    path: &'a str,
) -> impl Fn(io::Error) -> JobStoreError + Copy + use<'a> {
    move |source| JobStoreError::Io { verb, path: root.path(path), source }
}
