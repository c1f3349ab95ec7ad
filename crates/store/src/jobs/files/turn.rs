//! The turn of one process: what it sees, and what it writes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use serde_json::{Value, json};
use tidewheel_core::job::{Brief, JobId, RunId};
use tidewheel_core::time::Timestamp;

use super::beneath::{Root, clear_way};
use super::commit::Committed;
use super::folders::Folders;
use super::index::{self, Entry, Index, Written};
use super::read::State;
use super::staging::Staging;
use super::store::Files;
use super::sync::Disk;
use super::unfinished::Unfinished;
use super::{commit, layout, obstacle, read, remove, scan};
use crate::jobs::{Batch, Due, Finished, JobStoreError, Jobs, Removal, Removed, Turn};

/// The turn of one process, as long as it holds the lock.
pub(super) struct FilesTurn<'s> {
    store: &'s Files,
    /// What we know of all jobs; nothing before it is needed, and after it could not be kept up.
    index: Option<Index>,
    /// Invariant: held until the turn is dropped; the kernel gives it back.
    _lock: File,
}

impl<'s> FilesTurn<'s> {
    pub(super) const fn new(store: &'s Files, lock: File) -> Self {
        Self { store, index: None, _lock: lock }
    }

    /// Returns the index as it was last brought up to date in this turn.
    fn index(&mut self, root: &Root) -> Result<&mut Index, JobStoreError> {
        if self.index.is_none() {
            let mut index = Index::for_turn(root, self.store.take_index())?;
            if index.refresh(root).is_err() {
                // Whatever is wrong with it, the records say how it is.
                index = Index::build(root)?;
            }
            self.index = Some(index);
        }
        Ok(self.index.as_mut().expect("invariant: it was set above"))
    }

    /// Returns the index after a look at what others have changed.
    fn fresh_index(&mut self, root: &Root) -> Result<&Index, JobStoreError> {
        match self.index.take() {
            // If it cannot be brought up to date it is left behind, and the next one is read from its files.
            Some(mut index) => {
                index.refresh(root)?;
                Ok(self.index.insert(index))
            }
            None => self.index(root).map(|index| &*index),
        }
    }
}

impl FilesTurn<'_> {
    /// Removes jobs, and lets the index know.
    fn removing<T>(
        &mut self,
        ids: &[JobId],
        remove: impl FnOnce(&mut Folders<'_>, &Disk) -> Result<T, JobStoreError>,
    ) -> Result<T, JobStoreError> {
        let (root, disk) = (self.store.there()?, self.store.disk());
        disk.check()?;
        // Without room for a note there is no index until the next turn builds one from what is left.
        let noted = self.index(root).and_then(|index| index.touch(ids.iter(), root));
        let has_index = match noted {
            Ok(()) => true,
            Err(error) if error.lacks_room() => {
                self.index = None;
                index::forget(root);
                false
            }
            Err(error) => return Err(error),
        };
        let mut folders = Folders::new(root);
        let removed = match remove(&mut folders, disk) {
            Ok(removed) => removed,
            Err(error) => {
                // The note stays: the next process reads these records again.
                self.index = None;
                return Err(error);
            }
        };
        if !has_index {
            return Ok(removed);
        }
        let records = ids.iter().map(|id| Ok((id.clone(), entry(root, id)?))).collect::<Result<_, _>>();
        let links = folders.links;
        let written =
            records.map(|records| Written { records, has_removed_runs: true, links, ..Written::default() });
        let index = self.index(root)?;
        if written.and_then(|written| index.wrote(root, written)).is_err() {
            self.index = None;
        }
        Ok(removed)
    }
}

impl Drop for FilesTurn<'_> {
    fn drop(&mut self) {
        if let Some(index) = self.index.take() {
            self.store.keep_index(index);
        }
    }
}

impl Turn for FilesTurn<'_> {
    fn active(&mut self) -> Result<Jobs, JobStoreError> {
        let root = self.store.there()?;
        match self.fresh_index(root).map(|index| index.active(root)) {
            Err(error) if error.lacks_room() => Ok(scan::scan(root)?.visible(root)),
            jobs => jobs,
        }
    }

    fn all(&mut self) -> Result<Jobs, JobStoreError> {
        let root = self.store.there()?;
        match self.fresh_index(root).and_then(|index| index.all(root)) {
            // A gc that wants to make room has to see what there is.
            Err(error) if error.lacks_room() => Ok(scan::scan(root)?.all()),
            jobs => jobs,
        }
    }

    fn shared(&mut self, name: &str) -> Result<Option<Value>, JobStoreError> {
        let path = format!("{}/{}", layout::SHARED, layout::shared_name(name));
        let root = self.store.there()?;
        let value: Option<Value> = match read::json(root, &path) {
            Err(error) => match obstacle::obstacle(root, &path) {
                // What was in the file is lost, and no job is to wait for it for ever.
                Some(found) => {
                    let place = root.path(&path);
                    root.note(format!(
                        "{} is {} where a file belongs: what it counted begins anew",
                        place.display(),
                        found.what
                    ));
                    None
                }
                None => return Err(error),
            },
            Ok(value) => value,
        };
        Ok(value.and_then(|mut value| value.get_mut("value").map(Value::take)))
    }

    fn commit(&mut self, batch: Batch) -> Result<Vec<(JobId, JobStoreError)>, JobStoreError> {
        let (root, disk) = (self.store.there()?, self.store.disk());
        disk.check()?;
        let touched: BTreeSet<&JobId> = batch.records.iter().map(|record| &record.id).collect();
        // Jobs of a run that is enqueued again may be anywhere.
        let is_new = |run: &RunId| !read::has_manifest(root, run);
        let new_run = batch.manifest.as_ref().map(|manifest| manifest.run_id.clone()).filter(is_new);
        let index = self.index(root)?;
        index.touch(touched.iter().copied(), root)?;
        let committed = match commit::commit(root, disk, &batch) {
            Ok(committed) => committed,
            Err(error) => {
                // The note stays: the next process reads these records again.
                self.index = None;
                return Err(error);
            }
        };
        if touched.is_empty() && committed.links == 0 {
            return Ok(committed.failed);
        }
        // The records are written; an index that cannot follow is read again, with its note.
        let written = written(root, &batch, &committed).map(|written| Written { new_run, ..written });
        if written.and_then(|written| index.wrote(root, written)).is_err() {
            self.index = None;
        }
        Ok(committed.failed)
    }

    fn remove(&mut self, removals: &[Removal]) -> Result<Vec<Removed>, JobStoreError> {
        let ids: Vec<JobId> = removals.iter().flat_map(|removal| &removal.jobs).cloned().collect();
        self.removing(&ids, |folders, disk| remove::all(folders, disk, removals))
    }

    fn finish_removals(&mut self) -> Result<Finished, JobStoreError> {
        let unfinished = Unfinished::look(self.store.there()?)?;
        if unfinished.is_empty() {
            return Ok(Finished::default());
        }
        self.removing(&unfinished.ids(), |folders, disk| unfinished.finish(folders, disk))
    }

    fn set_due(&mut self, due: Due) -> Result<(), JobStoreError> {
        self.store.disk().check()?;
        let root = self.store.there()?;
        let text = due_text(due);
        let path = format!("{}/{}", layout::JOBS, layout::DUE);
        if root.read(&path).is_ok_and(|found| found.is_some_and(|(before, _)| before == text)) {
            return Ok(());
        }
        let fail = |source| JobStoreError::Io { verb: "write", path: root.path(&path), source };
        self.index(root)?;
        let (mut folders, mut staging) = (Folders::new(root), Staging::new(1));
        let staged = staging.write(&mut folders, layout::JOBS, layout::DUE, &text).map_err(fail)?;
        // Not synced: whoever starts after a crash looks at the jobs first.
        let mut placed = staged.place(&mut folders);
        if let Err(error) = &placed
            && error.kind() == io::ErrorKind::IsADirectory
            && folders.get(layout::JOBS).is_ok_and(|jobs| clear_way(&*jobs, layout::DUE))
        {
            placed = staged.place(&mut folders);
        }
        placed.map_err(|error| {
            staged.discard(&mut folders);
            fail(error)
        })?;
        if self.index(root)?.renamed(root).is_err() {
            self.index = None;
        }
        Ok(())
    }
}

/// Reads when somebody has to look again. It is a cache: what cannot be understood is as good as missing.
pub(super) fn due(root: &Root) -> Result<Due, JobStoreError> {
    let path = format!("{}/{}", layout::JOBS, layout::DUE);
    let value: Value = match read::json(root, &path) {
        Ok(value) => value.unwrap_or_default(),
        Err(JobStoreError::Json { .. }) => Value::Null,
        Err(error) => return Err(error),
    };
    let is = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
    let at = value.get("at").and_then(Value::as_str).and_then(|text| Timestamp::parse(text).ok());
    Ok(Due { at, watches: is("watches"), runs: is("runs") })
}

fn due_text(due: Due) -> String {
    let Due { at, watches, runs } = due;
    let value = json!({ "at": at.map(|at| at.to_string()), "watches": watches, "runs": runs });
    format!("{value}\n")
}

/// Returns what the index has to know of a batch that was written.
fn written(root: &Root, batch: &Batch, committed: &Committed) -> Result<Written, JobStoreError> {
    let mut written = Written { made: committed.made.clone(), links: committed.links, ..Written::default() };
    for record in &batch.records {
        if let Some(signature) = committed.records.get(&record.id) {
            let state = State::Job(Box::new(Brief::from(record)));
            let entry = Entry { signature: *signature, state, is_hidden: false };
            written.records.insert(record.id.clone(), Some(entry));
        }
    }
    for (id, _) in &committed.failed {
        // Nothing of it should have changed; the record itself says whether that is so.
        written.records.insert(id.clone(), entry(root, id)?);
    }
    Ok(written)
}

/// Returns what the index has to know of a job whose record may have changed; nothing if it has no directory.
fn entry(root: &Root, id: &JobId) -> Result<Option<Entry>, JobStoreError> {
    let (signature, state) = read::state(root, id)?;
    let is_there = root.look(&layout::job(id)).is_ok_and(|found| found.is_some());
    Ok(is_there.then_some(Entry { signature, state, is_hidden: false }))
}
