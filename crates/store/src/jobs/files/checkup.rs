//! A look at all files, for those who ask whether they are in order, and the two repairs that lose nothing. Looking
//! takes no turn and writes nothing; what is found is judged elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, unlinkat};
use tidewheel_core::job::{Brief, JobId, JobOutcome, JobStatus, Metadata, Record, RecordError, RunId};

use super::beneath::Root;
use super::folders::Folders;
use super::index::{self, Index, IndexState};
use super::lock::Holder;
use super::obstacle::Obstacle;
use super::signature::Found;
use super::store::Files;
use super::unfinished::Unfinished;
use super::{layout, lock, obstacle, read, scan, sweep};
use crate::jobs::{JobStore, JobStoreError};

/// What a look at all files found.
#[derive(Debug, Default)]
pub struct Checkup {
    /// What is in each directory whose name is an id.
    pub jobs: BTreeMap<JobId, Kept>,
    /// Directories with a record whose names are no ids, and why.
    pub strange: BTreeMap<String, String>,
    /// Each manifest, and what is wrong with it if it cannot be read.
    pub manifests: BTreeMap<RunId, Option<Trouble>>,
    /// Other files of jobs that cannot be read, beneath the data directory, and why.
    pub unreadable: BTreeMap<String, Trouble>,
    /// Jobs that a manifest names and that have no directory any more, with their runs.
    pub missing: BTreeMap<JobId, RunId>,
    /// What stands in the place of locks and of the index, beneath the data directory.
    pub in_the_way: BTreeMap<String, Obstacle>,
    /// Directories without a record whose jobs are named by a manifest, or were started: their records are lost.
    pub lost_records: BTreeSet<JobId>,
    /// Jobs that are on record as running, and nobody holds their run locks.
    pub lost: BTreeSet<JobId>,
    /// Files of writers that died, and directories that they left empty, beneath the data directory.
    pub leftovers: Vec<String>,
    /// How the index stands to the records.
    pub index: IndexState,
    /// Who has the turn.
    pub turn: Option<Holder>,
    /// Who serves the times of jobs: the daemon, or a waker.
    pub server: Option<Holder>,
}

/// What is in the directory of a job.
#[derive(Debug)]
pub enum Kept {
    /// A record.
    Record {
        /// What is known of the job.
        brief: Box<Brief>,
        /// The worktrees that its record names.
        worktrees: Vec<String>,
    },
    /// A record of a later release, with its version.
    Newer(u64),
    /// The record of another job.
    Misplaced(JobId),
    /// Something that is no record, and why.
    Unreadable(Trouble),
    /// No record.
    Vacant,
}

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong, without the path.
    pub why: String,
    /// Whether it may be in order, and we have no right to read it.
    pub is_denied: bool,
}

impl Files {
    /// Looks at all files of jobs. Nothing is written, and nobody is kept waiting.
    ///
    /// # Errors
    /// The directory cannot be used at all.
    pub fn checkup(&self) -> Result<Checkup, JobStoreError> {
        let Some(root) = self.root()? else { return Ok(Checkup::default()) };
        let names = scan::names(root)?;
        let mut checkup = Checkup { strange: names.strange, ..Checkup::default() };
        // What stands in the way of a file is told as that.
        for id in names.ids.into_iter().filter(|id| !obstacle::is_of_file(id.as_str())) {
            let kept = Kept::of(read::record(root, &id));
            if let Kept::Record { brief, .. } = &kept {
                if brief.status == JobStatus::Running {
                    match is_lost(root, brief) {
                        Ok(true) => drop(checkup.lost.insert(id.clone())),
                        Ok(false) => {}
                        // What cannot be looked at is not in order.
                        Err(error) => {
                            let path = layout::of_job(&id, layout::RUN_LOCK);
                            checkup.unreadable.insert(path, Trouble::of(&error));
                        }
                    }
                }
                look_beside(root, brief, &mut checkup.unreadable);
            }
            checkup.jobs.insert(id, kept);
        }
        let mut named = BTreeSet::new();
        for run in read::runs(root)? {
            let wrong = match read::manifest(root, &run) {
                Ok(manifest) => {
                    let nodes = manifest.into_iter().flat_map(|manifest| manifest.nodes.into_values());
                    let ids: Vec<JobId> = nodes.map(|node| node.job_id).collect();
                    let is_vacant = |id: &&JobId| matches!(checkup.jobs.get(*id), Some(Kept::Vacant));
                    named.extend(ids.iter().filter(is_vacant).cloned());
                    let gone = ids.into_iter().filter(|id| is_gone(root, id, &checkup.jobs));
                    let gone: Vec<(JobId, RunId)> = gone.map(|id| (id, run.clone())).collect();
                    // Whoever removed the run while we looked has removed its manifest, too.
                    if !gone.is_empty() && read::has_manifest(root, &run) {
                        checkup.missing.extend(gone);
                    }
                    None
                }
                Err(error) => Some(Trouble::of(&error)),
            };
            checkup.manifests.insert(run, wrong);
        }
        // Of a run whose removal was decided, nothing is lost.
        let unfinished = Unfinished::look(root)?;
        for id in unfinished.in_place() {
            checkup.jobs.remove(id);
        }
        // What was removed while we looked is nothing that is missing.
        let is_known = |run: &RunId| checkup.manifests.contains_key(run);
        checkup.jobs.retain(|id, kept| match kept {
            Kept::Record { brief, .. } if brief.run.as_ref().is_none_or(is_known) => true,
            Kept::Record { .. } => is_there(root, id),
            Kept::Vacant => {
                let is_without = is_without_record(root, id, named.contains(id));
                if is_without && (named.contains(id) || read::was_started(root, id)) {
                    checkup.lost_records.insert(id.clone());
                }
                is_without
            }
            Kept::Newer(_) | Kept::Misplaced(_) | Kept::Unreadable(_) => true,
        });
        checkup.in_the_way = obstacle::obstacles(root, checkup.jobs.keys());
        for (path, found) in obstacle::beside_jobs(root) {
            checkup.unreadable.insert(path, format!("it is {}", found.what).into());
        }
        checkup.leftovers = leftovers(root)?;
        checkup.leftovers.extend(unfinished.paths());
        checkup.leftovers.sort();
        checkup.index = index::inspect(root)?;
        checkup.turn = lock::holder(root, layout::JOBS, layout::TURN_LOCK);
        checkup.server = lock::holder(root, layout::JOBS, layout::SERVER_LOCK);
        Ok(checkup)
    }

    /// Builds the index anew from the records. It waits for its turn.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn rebuild_index(&self) -> Result<(), JobStoreError> {
        let root = self.there()?;
        let _turn = lock::turn(root, self.tell_of_wait())?;
        // What this process knew is of the one before.
        drop(self.take_index());
        Index::build(root).map(drop)
    }

    /// Removes what writers that died have left, finishes removals that they began, and returns what is gone. It waits for
    /// its turn.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn sweep_leftovers(&self) -> Result<Vec<String>, JobStoreError> {
        let finished = JobStore::turn(self)?.finish_removals()?;
        if let Some(error) = finished.errors.into_iter().next() {
            return Err(error);
        }
        let mut removed: Vec<String> = finished.jobs.iter().map(layout::job).collect();
        let root = self.there()?;
        let _turn = lock::turn(root, self.tell_of_wait())?;
        let mut folders = Folders::new(root);
        // Behind the lock: what somebody was still busy with is no leftover now.
        for path in leftovers(root)? {
            let fail = |source| JobStoreError::Io { verb: "remove", path: root.path(&path), source };
            if remove(&mut folders, &path).map_err(fail)? {
                removed.push(path);
            }
        }
        folders.sync(self.disk())?;
        Ok(removed)
    }
}

impl Kept {
    fn of(record: Result<Option<Record>, JobStoreError>) -> Self {
        match record {
            Ok(Some(record)) => Self::Record {
                worktrees: [Metadata::WORKTREE_PATH, Metadata::MERGE_WORKTREE]
                    .iter()
                    .filter_map(|name| record.metadata.text(name).map(str::to_owned))
                    .collect(),
                brief: Box::new(Brief::from(&record)),
            },
            Ok(None) => Self::Vacant,
            Err(JobStoreError::Record(RecordError::Newer { found })) => Self::Newer(found),
            Err(JobStoreError::Record(RecordError::Misplaced { found })) => Self::Misplaced(found),
            Err(error) => Self::Unreadable(Trouble::of(&error)),
        }
    }
}

impl Trouble {
    /// Says what an error means for whoever wants to read.
    #[must_use]
    pub fn of(error: &JobStoreError) -> Self {
        let is_denied = |source: &io::Error| {
            // A link that leads out of the directory is refused by us.
            source.kind() == io::ErrorKind::PermissionDenied && source.raw_os_error().is_some()
        };
        match error {
            JobStoreError::Io { source, .. } => {
                let why = source.to_string();
                let why = why.split_once(" (os error ").map_or(why.as_str(), |(why, _)| why);
                Self { why: why.to_owned(), is_denied: is_denied(source) }
            }
            JobStoreError::Json { source, .. } => source.to_string().into(),
            JobStoreError::Record(_)
            | JobStoreError::Manifest(_)
            | JobStoreError::Held { .. }
            | JobStoreError::Broken => error.explain().into(),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self { why, is_denied: false }
    }
}

/// Returns whether no process runs a job that is on record as running.
fn is_lost(root: &Root, brief: &Brief) -> Result<bool, JobStoreError> {
    let path = layout::of_job(&brief.id, layout::RUN_LOCK);
    let fail = |source| JobStoreError::Io { verb: "look at", path: root.path(&path), source };
    let has_lock = root.look(&path).map_err(fail)?.is_some();
    if has_lock && lock::has_holder(root, &brief.id).map_err(fail)? {
        return Ok(false);
    }
    // It may have ended since its record was read: whoever ends it writes before the lock is free.
    let now = read::record(root, &brief.id)?;
    Ok(now.is_some_and(|now| now.status == brief.status && now.started_at == brief.started_at))
}

/// Returns whether a job that a manifest names has no directory: it may have been made after we listed them.
fn is_gone(root: &Root, id: &JobId, jobs: &BTreeMap<JobId, Kept>) -> bool {
    let is_folder = |found: Found| found.kind == FileType::Directory;
    !jobs.contains_key(id) && root.look(&layout::job(id)).is_ok_and(|found| !found.is_some_and(is_folder))
}

/// Tells whether a job has a directory.
fn is_there(root: &Root, id: &JobId) -> bool {
    root.look(&layout::job(id)).is_ok_and(|found| found.is_some())
}

/// Tells whether a directory should have a record and has none. Whoever is enqueuing makes the directories first, then
/// the records, and the manifest that names them last; nothing is started before.
fn is_without_record(root: &Root, id: &JobId, is_named: bool) -> bool {
    let Some(found) = root.look(&layout::job(id)).ok().flatten() else { return false };
    // The record may have come since we looked for it.
    (is_named || sweep::is_old(found) || read::was_started(root, id))
        && matches!(read::record(root, id), Ok(None))
}

/// Reads what lies beside a record.
fn look_beside(root: &Root, job: &Brief, unreadable: &mut BTreeMap<String, Trouble>) {
    let of = |name| layout::of_job(&job.id, name);
    for name in [layout::OUTCOME, layout::ENDED] {
        if let Err(error) = read::json::<JobOutcome>(root, &of(name)) {
            unreadable.insert(of(name), Trouble::of(&error));
        }
    }
    for name in layout::LOGS.into_iter().chain([layout::CANCEL, layout::SUPERVISOR_LOG]) {
        if let Some(found) = obstacle::obstacle(root, &of(name)) {
            unreadable.insert(of(name), format!("it is {}", found.what).into());
        }
    }
    let wrong = match read::history(root, &job.id) {
        // Whoever removed the job while we looked has removed its directory.
        Ok(history) if !history.is_there && !is_there(root, &job.id) => None,
        Ok(history) => history.wrong_of(job).map(Trouble::from),
        Err(error) => Some(Trouble::of(&error)),
    };
    unreadable.extend(wrong.map(|wrong| (of(layout::EVENTS), wrong)));
}

/// After this long an empty directory is that of an enqueue that did not finish: the rule of the records.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// Returns what writers that died have left: their temporary files, and directories that never got a record.
fn leftovers(root: &Root) -> Result<Vec<String>, JobStoreError> {
    let mut found = Vec::new();
    // The last steps before the files: the directories of jobs, of types and of keys.
    let mut folders = vec![(layout::JOBS.to_owned(), 1)];
    while let Some((path, depth)) = folders.pop() {
        let fail = |source| JobStoreError::Io { verb: "read", path: root.path(&path), source };
        let mut count = 0;
        for (name, kind) in root.names(&path).map_err(fail)? {
            count += 1;
            let Ok(name) = String::from_utf8(name) else { continue };
            let below = format!("{path}/{name}");
            let is_aside = path == layout::JOBS && name.starts_with(layout::ASIDE);
            if below == layout::BIN || is_aside {
                // What removals left there is known, and all else was put there by a person.
                continue;
            }
            match kind {
                FileType::Directory if below == layout::ARTIFACTS => folders.push((below, 4)),
                FileType::Directory if depth > 0 => folders.push((below, depth - 1)),
                _ if sweep::is_leftover(root, &below, &name) => found.push(below),
                _ => {}
            }
        }
        let is_job = |name: &str| JobId::new(name).is_ok() && !obstacle::is_of_file(name);
        let is_of_job = path.strip_prefix("jobs/").is_some_and(is_job);
        if count == 0 && is_of_job && is_abandoned(root, &path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_abandoned(root: &Root, path: &str) -> bool {
    let changed = root.look(path).ok().flatten().map(|found| found.signature.0);
    let since = |nanos: i64| {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos.try_into().unwrap_or(0));
        SystemTime::now().duration_since(changed).unwrap_or_default()
    };
    changed.is_some_and(|changed| since(changed) > ABANDONED)
}

/// Removes a leftover; tells whether it was there.
fn remove(folders: &mut Folders<'_>, path: &str) -> io::Result<bool> {
    let Some((above, name)) = path.rsplit_once('/') else { return Ok(false) };
    let is_folder = folders.root.look(path)?.is_some_and(|found| found.kind == FileType::Directory);
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    let folder = folders.get(above)?;
    match unlinkat(&*folder, name, flags) {
        Ok(()) => {
            folders.change(above);
            Ok(true)
        }
        // Somebody has put something into it meanwhile, or removed it.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTEMPTY) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
