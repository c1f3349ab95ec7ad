//! The store itself: one data directory, opened once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::FileType;
use serde_json::{Value, json};
use tidewheel_core::job::{JobEvent, JobId, JobOutcome, Manifest, NodeId, Record, RunId};

use super::beneath::Root;
use super::folders::Folders;
use super::index::{self, Index};
use super::read::History;
use super::staging::Staging;
use super::sync::Disk;
use super::turn::FilesTurn;
use super::{artifacts, commit, layout, lock, read, rewind};
use crate::jobs::{CancelRequest, Due, JobStore, JobStoreError, Survey, TellOfWait, Turn};

/// Keeps jobs as plain files in a data directory; any number of processes may have it open.
#[derive(Debug)]
pub struct Files {
    data: PathBuf,
    root: OnceLock<Root>,
    disk: Disk,
    /// What the last turn of this process knew.
    index: Mutex<Option<Index>>,
    /// Called when this process waits for its turn.
    tell_of_wait: Option<TellOfWait>,
}

impl Files {
    /// Opens the data directory, and makes it if it is missing.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn open(data: &Path) -> Result<Self, JobStoreError> {
        let fail = |source| JobStoreError::Io { verb: "open", path: data.to_owned(), source };
        make_synced(data).map_err(fail)?;
        let store = Self::open_existing(data)?;
        let root = store.there()?;
        let mut folders = Folders::new(root);
        // Whatever goes wrong here, the directory of the jobs is what cannot be used.
        let fail = |source| JobStoreError::Io { verb: "open", path: data.join(layout::JOBS), source };
        folders.make(".", layout::JOBS).and_then(|_| folders.make(layout::JOBS, "runs")).map_err(fail)?;
        if !index::is_there(root) {
            // Until the first turn is over, the process that made these may have died before the disk had their names: a run that
            // is enqueued must not be in a directory that is not there after a crash.
            folders.change(".");
            folders.change(layout::JOBS);
            folders.sync(store.disk())?;
        }
        Ok(store)
    }

    /// Opens the data directory to read; nothing is made or written, and a missing directory has no jobs.
    ///
    /// # Errors
    /// It is there, and cannot be opened.
    pub fn open_existing(data: &Path) -> Result<Self, JobStoreError> {
        let fail = |source| JobStoreError::Io { verb: "open", path: data.to_owned(), source };
        let data = std::path::absolute(data).map_err(fail)?;
        let store = Self {
            data,
            root: OnceLock::new(),
            disk: Disk::new(),
            index: Mutex::new(None),
            tell_of_wait: None,
        };
        if let Some(root) = store.root()? {
            read::check_runs(root)?;
        }
        Ok(store)
    }

    /// Has a function called when this process has waited for its turn for longer than a second.
    #[must_use]
    pub const fn telling_of_waits(mut self, tell: Option<TellOfWait>) -> Self {
        self.tell_of_wait = tell;
        self
    }

    pub(super) const fn tell_of_wait(&self) -> Option<TellOfWait> {
        self.tell_of_wait
    }

    /// Lends the slot of a running job for as long as the file is open: a process of the job waits for other jobs.
    ///
    /// # Errors
    /// The lock cannot be used.
    pub fn lend_slot(&self, id: &JobId) -> Result<File, JobStoreError> {
        lock::lend(self.there()?, id)
    }

    /// Returns whether a process of a job lends the slot of the job.
    #[must_use]
    pub fn is_slot_lent(&self, id: &JobId) -> bool {
        self.root().is_ok_and(|root| root.is_some_and(|root| lock::is_lent(root, id)))
    }

    /// Returns what was found in the place of files since the last time, and what became of it: one sentence each, without
    /// a full stop.
    #[must_use]
    pub fn take_notes(&self) -> Vec<String> {
        self.root.get().map_or_else(Vec::new, Root::take_notes)
    }

    /// Keeps notes that the caller does not tell itself for the next who asks.
    pub fn keep_notes(&self, notes: Vec<String>) {
        if let Some(root) = self.root.get() {
            notes.into_iter().for_each(|note| root.note(note));
        }
    }

    /// Reads what happened to a job, as far as it can be read.
    ///
    /// # Errors
    /// There is something, and nothing of it can be read.
    pub fn history(&self, id: &JobId) -> Result<History, JobStoreError> {
        self.root()?.map_or_else(|| Ok(History::default()), |root| read::history(root, id))
    }

    /// Tells whether a job can start again from nothing. Nothing is changed.
    ///
    /// # Errors
    /// Something is in the way, which is named, or its record is one of a later release.
    pub fn check_rewind(&self, id: &JobId) -> Result<(), JobStoreError> {
        let root = self.there()?;
        commit::check_version(root, id)?;
        rewind::check(&mut Folders::new(root), &layout::job(id))
    }

    /// Returns the directory, if it is there by now.
    pub(super) fn root(&self) -> Result<Option<&Root>, JobStoreError> {
        if let Some(root) = self.root.get() {
            return Ok(Some(root));
        }
        let fail = |source| JobStoreError::Io { verb: "open", path: self.data.clone(), source };
        let Some(root) = Root::open(&self.data).map_err(fail)? else { return Ok(None) };
        Ok(Some(self.root.get_or_init(|| root)))
    }

    /// Returns the directory, which has to be there.
    pub(super) fn there(&self) -> Result<&Root, JobStoreError> {
        let missing = || JobStoreError::Io {
            verb: "open",
            path: self.data.clone(),
            source: std::io::ErrorKind::NotFound.into(),
        };
        self.root()?.ok_or_else(missing)
    }

    /// Returns what the last turn knew; whoever has the turn gives it back.
    pub(super) fn take_index(&self) -> Option<Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps what a turn knows for the next one.
    pub(super) fn keep_index(&self, index: Index) {
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = Some(index);
    }

    pub(super) const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Replaces one file in the directory of a job, and syncs the directory where that is wanted.
    fn replace(&self, id: &JobId, name: &str, text: &str, is_name_synced: bool) -> Result<(), JobStoreError> {
        self.disk.check()?;
        let root = self.there()?;
        let fail =
            |source| JobStoreError::Io { verb: "write", path: root.path(&layout::of_job(id, name)), source };
        let (mut folders, mut staging) = (Folders::new(root), Staging::new(1));
        let staged = staging.write(&mut folders, &layout::job(id), name, text).map_err(fail)?;
        if let Err(error) = staging.sync(&folders, &self.disk) {
            staged.discard(&mut folders);
            return Err(error);
        }
        if let Err(error) = staged.place(&mut folders) {
            staged.discard(&mut folders);
            return Err(fail(error));
        }
        if is_name_synced { folders.sync(&self.disk) } else { Ok(()) }
    }
}

/// Makes a directory with all above it that is missing, and lets the disk have the name of each.
fn make_synced(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    std::fs::create_dir_all(path)?;
    for made in missing.into_iter().rev() {
        let above =
            made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(above)?.sync_all()?;
    }
    Ok(())
}

impl JobStore for Files {
    fn turn(&self) -> Result<Box<dyn Turn + '_>, JobStoreError> {
        self.disk.check()?;
        Ok(Box::new(FilesTurn::new(self, lock::turn(self.there()?, self.tell_of_wait)?)))
    }

    fn try_turn(&self) -> Result<Option<Box<dyn Turn + '_>>, JobStoreError> {
        self.disk.check()?;
        let lock = lock::try_turn(self.there()?)?;
        Ok(lock.map(|lock| Box::new(FilesTurn::new(self, lock)) as Box<dyn Turn + '_>))
    }

    fn look_ahead(&self) {
        if let Ok(Some(root)) = self.root()
            && let Some(index) = Index::ahead_of_turn(root, self.take_index())
        {
            self.keep_index(index);
        }
    }

    fn record(&self, id: &JobId) -> Result<Option<Record>, JobStoreError> {
        let Some(root) = self.root()? else { return Ok(None) };
        let record = read::record(root, id)?;
        Ok(record.filter(|record| {
            read::is_begun(record.status) || record.run().is_none_or(|run| read::has_manifest(root, &run))
        }))
    }

    fn manifest(&self, run: &RunId) -> Result<Option<Manifest>, JobStoreError> {
        self.root()?.map_or(Ok(None), |root| read::manifest(root, run))
    }

    fn manifest_with(&self, run: &RunId, node: &NodeId) -> Result<Option<Manifest>, JobStoreError> {
        self.root()?.map_or(Ok(None), |root| read::manifest_with(root, run, node))
    }

    fn runs(&self) -> Result<BTreeSet<RunId>, JobStoreError> {
        self.root()?.map_or_else(|| Ok(BTreeSet::new()), read::runs)
    }

    fn outcome(&self, id: &JobId) -> Result<Option<JobOutcome>, JobStoreError> {
        self.root()?.map_or(Ok(None), |root| read::json(root, &layout::of_job(id, layout::OUTCOME)))
    }

    fn events(&self, id: &JobId) -> Result<Vec<JobEvent>, JobStoreError> {
        self.root()?.map_or_else(|| Ok(Vec::new()), |root| read::events(root, id))
    }

    fn survey(&self) -> Result<Survey, JobStoreError> {
        self.root()?.map_or_else(|| Ok(Survey::default()), index::survey)
    }

    fn take_run_lock(&self, id: &JobId) -> Result<Option<File>, JobStoreError> {
        lock::run(self.there()?, id)
    }

    fn has_supervisor(&self, id: &JobId) -> bool {
        // Where nobody can tell, nobody is told gone.
        self.root().map_or(true, |root| root.is_none_or(|root| lock::is_held(root, id)))
    }

    fn write_process(&self, record: &Record) -> Result<(), JobStoreError> {
        commit::check_version(self.there()?, &record.id)?;
        self.replace(&record.id, layout::RECORD, &record.to_json(), false)
    }

    fn write_ended(&self, ended: &JobOutcome) -> Result<(), JobStoreError> {
        self.replace(&ended.job_id, layout::ENDED, &commit::outcome_text(ended), true)
    }

    fn ended(&self, id: &JobId) -> Result<Option<JobOutcome>, JobStoreError> {
        self.root()?.map_or(Ok(None), |root| read::json(root, &layout::of_job(id, layout::ENDED)))
    }

    fn has_marker(&self, type_id: &str, key: &str, of: Option<&[JobId]>) -> Result<bool, JobStoreError> {
        self.root()?.map_or(Ok(false), |root| artifacts::has_marker(root, type_id, key, of))
    }

    fn payload(
        &self,
        type_id: &str,
        key: &str,
        of: Option<&[JobId]>,
    ) -> Result<Option<Value>, JobStoreError> {
        self.root()?.map_or(Ok(None), |root| artifacts::payload(root, type_id, key, of))
    }

    fn ask_to_cancel(&self, id: &JobId, request: CancelRequest<'_>) -> Result<(), JobStoreError> {
        let CancelRequest { by, at, is_of_run } = request;
        let text = read::text(&json!({ "by": by, "at": at.to_string(), "run": is_of_run }));
        self.replace(id, layout::CANCEL, &text, true)
    }

    fn is_asked_to_cancel_run(&self, id: &JobId) -> Result<bool, JobStoreError> {
        let Some(root) = self.root()? else { return Ok(false) };
        let request: Option<Value> = match read::json(root, &layout::of_job(id, layout::CANCEL)) {
            Err(error) if error.lacks_room() => return Err(error),
            // What a process of the job put there says nothing of the run.
            request => request.ok().flatten(),
        };
        Ok(request.is_some_and(|request| request.get("run").and_then(Value::as_bool) == Some(true)))
    }

    fn is_asked_to_cancel(&self, id: &JobId) -> Result<bool, JobStoreError> {
        let Some(root) = self.root()? else { return Ok(false) };
        let path = layout::of_job(id, layout::CANCEL);
        let found = root.look(&path);
        let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&path), source };
        // No command that cancels makes anything but a file.
        Ok(found.map_err(fail)?.is_some_and(|found| found.kind == FileType::RegularFile))
    }

    fn due(&self) -> Result<Due, JobStoreError> {
        self.root()?.map_or_else(|| Ok(Due::default()), super::turn::due)
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_core::time::Timestamp;

    use super::*;
    use crate::jobs::Batch;

    /// Whichever sync fails, a run that is enqueued is there as a whole or not at all.
    #[test]
    fn a_run_whose_enqueue_fails_at_any_sync_leaves_nothing() {
        use tidewheel_core::job::{MANIFEST_VERSION, Metadata};
        let manifest = |run: &RunId| Manifest {
            version: MANIFEST_VERSION,
            run_id: run.clone(),
            workflow_template_selector: String::new(),
            workflow_template_source: None,
            workflow_template_id: String::new(),
            workflow_template_version: String::new(),
            policy_snapshot_hash: String::new(),
            created_at: Timestamp::from_millis(1),
            params: std::collections::BTreeMap::new(),
            nodes: std::collections::BTreeMap::new(),
        };
        for count in [1, 3, 100] {
            let mut is_over = false;
            for syncs in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let mut store = Files::open(folder.path()).unwrap();
                let old = Batch { shared: vec![("row".to_owned(), json!(1))], ..Batch::default() };
                assert!(store.turn().unwrap().commit(old).unwrap().is_empty());
                store.disk = Disk::failing_after(syncs);
                let run = RunId::new("r1").unwrap();
                let member = |n: u32| {
                    let id = JobId::new(&format!("wf-r1-{n}")).unwrap();
                    let mut record = Record::new(id, Timestamp::from_millis(1));
                    record.metadata.set(Metadata::RUN_ID, "r1");
                    record
                };
                let batch = Batch {
                    records: (0..count).map(member).collect(),
                    manifest: Some(manifest(&run)),
                    shared: vec![("row".to_owned(), json!(2))],
                    ..Batch::default()
                };
                let is_written = store.turn().unwrap().commit(batch).is_ok();
                let again = Files::open(folder.path()).unwrap();
                let mut turn = again.turn().unwrap();
                let jobs = turn.all().unwrap().briefs.len();
                let expected = if is_written { count as usize } else { 0 };
                assert_eq!(jobs, expected, "{count} jobs, {syncs} syncs");
                assert_eq!(
                    again.runs().unwrap().len(),
                    usize::from(is_written),
                    "{count} jobs, {syncs} syncs"
                );
                let row = turn.shared("row").unwrap();
                assert_eq!(row, Some(json!(if is_written { 2 } else { 1 })), "{count} jobs, {syncs} syncs");
                if is_written {
                    is_over = syncs > 1;
                    break;
                }
            }
            assert!(is_over, "several syncs were tried");
        }
    }

    /// What the disk did not take may be there or not; nobody may build on it.
    #[test]
    fn a_disk_that_fails_once_is_not_written_to_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Files::open(folder.path()).unwrap();
        let record = |id| Record::new(JobId::new(id).unwrap(), Timestamp::from_millis(1));
        let batch = |id| Batch { records: vec![record(id)], ..Batch::default() };
        assert!(store.turn().unwrap().commit(batch("a")).unwrap().is_empty());
        store.disk = Disk::failing();
        let mut turn = store.turn().unwrap();
        assert!(matches!(turn.commit(batch("b")), Err(JobStoreError::Io { verb: "sync", .. })));
        assert!(matches!(turn.commit(batch("c")), Err(JobStoreError::Broken)));
        assert!(matches!(turn.set_due(Due { runs: true, ..Due::default() }), Err(JobStoreError::Broken)));
        drop(turn);
        assert!(matches!(store.turn().map(drop), Err(JobStoreError::Broken)));
        assert!(matches!(store.write_process(&record("a")), Err(JobStoreError::Broken)));
        // Nothing of what failed is left, and a new start goes on.
        let again = Files::open(folder.path()).unwrap();
        let jobs = again.turn().unwrap().all().unwrap();
        assert_eq!(jobs.briefs.keys().map(JobId::as_str).collect::<Vec<_>>(), ["a"]);
    }
}
