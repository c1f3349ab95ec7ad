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
use super::store::Files;
use super::{layout, lock, read, scan, sweep};
use crate::jobs::JobStoreError;

/// What a look at all files found.
#[derive(Debug, Default)]
pub struct Checkup {
    /// What is in each directory whose name is an id.
    pub jobs: BTreeMap<JobId, Kept>,
    /// Directories with a record whose names are no ids, and why.
    pub strange: BTreeMap<String, String>,
    /// Each manifest, and what is wrong with it if it cannot be read.
    pub manifests: BTreeMap<RunId, Option<String>>,
    /// Other files of jobs that cannot be read, beneath the data directory, and why.
    pub unreadable: BTreeMap<String, String>,
    /// Jobs that a manifest names and that have no directory any more, with their runs.
    pub missing: BTreeMap<JobId, RunId>,
    /// What is not the regular file that it should be, beneath the data directory, and what it is.
    pub in_the_way: BTreeMap<String, &'static str>,
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
        /// The worktree that its record names.
        worktree: Option<String>,
    },
    /// A record of a later release, with its version.
    Newer(u64),
    /// The record of another job.
    Misplaced(JobId),
    /// Something that is no record, and why.
    Unreadable(String),
    /// No record.
    Vacant,
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
        for id in names.ids {
            let kept = Kept::of(read::record(root, &id));
            if let Kept::Record { brief, .. } = &kept {
                if brief.status == JobStatus::Running && is_lost(root, brief) {
                    checkup.lost.insert(id.clone());
                }
                look_beside(root, &id, &mut checkup.unreadable);
            }
            checkup.jobs.insert(id, kept);
        }
        for run in read::runs(root)? {
            let wrong = match read::manifest(root, &run) {
                Ok(manifest) => {
                    let nodes = manifest.into_iter().flat_map(|manifest| manifest.nodes.into_values());
                    let gone = nodes.map(|node| node.job_id).filter(|id| is_gone(root, id, &checkup.jobs));
                    let gone: Vec<(JobId, RunId)> = gone.map(|id| (id, run.clone())).collect();
                    // Whoever removed the run while we looked has removed its manifest, too.
                    if !gone.is_empty() && read::has_manifest(root, &run) {
                        checkup.missing.extend(gone);
                    }
                    None
                }
                Err(error) => Some(error.explain()),
            };
            checkup.manifests.insert(run, wrong);
        }
        // What was removed while we looked is nothing that is missing.
        let is_known = |run: &RunId| checkup.manifests.contains_key(run);
        checkup.jobs.retain(|id, kept| match kept {
            Kept::Record { brief, .. } if brief.run.as_ref().is_none_or(is_known) => true,
            Kept::Record { .. } => root.look(&layout::job(id)).is_ok_and(|found| found.is_some()),
            // Whoever is enqueuing makes the directories first.
            Kept::Vacant => root.look(&layout::job(id)).is_ok_and(|found| found.is_some_and(sweep::is_old)),
            Kept::Newer(_) | Kept::Misplaced(_) | Kept::Unreadable(_) => true,
        });
        for name in [layout::TURN_LOCK, layout::SERVER_LOCK] {
            look_at_lock(root, format!("{}/{name}", layout::JOBS), &mut checkup.in_the_way);
        }
        for id in checkup.jobs.keys() {
            look_at_lock(root, layout::of_job(id, layout::RUN_LOCK), &mut checkup.in_the_way);
        }
        checkup.leftovers = leftovers(root)?;
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
        let _turn = lock::turn(root)?;
        // What this process knew is of the one before.
        drop(self.take_index());
        Index::build(root).map(drop)
    }

    /// Removes what writers that died have left, and returns it. It waits for its turn.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn sweep_leftovers(&self) -> Result<Vec<String>, JobStoreError> {
        let root = self.there()?;
        let _turn = lock::turn(root)?;
        let mut folders = Folders::new(root);
        // Behind the lock: what somebody was still busy with is no leftover now.
        let mut removed = Vec::new();
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
                worktree: record.metadata.text(Metadata::WORKTREE_PATH).map(str::to_owned),
                brief: Box::new(Brief::from(&record)),
            },
            Ok(None) => Self::Vacant,
            Err(JobStoreError::Record(RecordError::Newer { found })) => Self::Newer(found),
            Err(JobStoreError::Record(RecordError::Misplaced { found })) => Self::Misplaced(found),
            Err(error) => Self::Unreadable(error.explain()),
        }
    }
}

/// Tells whether nobody runs a job that is on record as running.
fn is_lost(root: &Root, brief: &Brief) -> bool {
    let has_lock = root.look(&layout::of_job(&brief.id, layout::RUN_LOCK)).is_ok_and(|found| found.is_some());
    if has_lock && lock::is_held(root, &brief.id) {
        return false;
    }
    // It may have ended since its record was read: whoever ends it writes before the lock is free.
    let now = read::record(root, &brief.id).ok().flatten();
    now.is_some_and(|now| now.status == brief.status && now.started_at == brief.started_at)
}

/// Tells whether a job that a manifest names has no directory: it may have been made after we listed them.
fn is_gone(root: &Root, id: &JobId, jobs: &BTreeMap<JobId, Kept>) -> bool {
    !jobs.contains_key(id) && root.look(&layout::job(id)).is_ok_and(|found| found.is_none())
}

/// Looks whether a lock is a file that can be locked.
fn look_at_lock(root: &Root, path: String, in_the_way: &mut BTreeMap<String, &'static str>) {
    let what = match root.look(&path).ok().flatten().map(|found| found.kind) {
        None | Some(FileType::RegularFile) => return,
        Some(FileType::Directory) => "a directory",
        Some(FileType::Symlink) => "a link",
        Some(FileType::Fifo) => "a pipe",
        Some(FileType::Socket) => "a socket",
        Some(FileType::CharacterDevice | FileType::BlockDevice) => "a device",
        Some(FileType::Unknown) => "something else",
    };
    in_the_way.insert(path, what);
}

/// Reads what lies beside a record.
fn look_beside(root: &Root, id: &JobId, unreadable: &mut BTreeMap<String, String>) {
    let of = |name| layout::of_job(id, name);
    for name in [layout::OUTCOME, layout::ENDED] {
        if let Err(error) = read::json::<JobOutcome>(root, &of(name)) {
            unreadable.insert(of(name), plain(&error));
        }
    }
    let wrong = match read::history(root, id) {
        Ok(history) => history.wrong(),
        Err(error) => Some(plain(&error)),
    };
    unreadable.extend(wrong.map(|wrong| (of(layout::EVENTS), wrong)));
}

/// Says what is wrong without the path, which is known.
fn plain(error: &JobStoreError) -> String {
    match error {
        JobStoreError::Io { source, .. } => source.to_string(),
        JobStoreError::Json { source, .. } => source.to_string(),
        JobStoreError::Record(_)
        | JobStoreError::Manifest(_)
        | JobStoreError::Held { .. }
        | JobStoreError::Broken => error.explain(),
    }
}

/// After this long an empty directory is that of an enqueue that did not finish: the rule of the records.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// Returns what writers that died have left: their temporary files, jobs that were removed and not swept up, and
/// directories that never got a record.
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
            match kind {
                FileType::Directory if below == layout::BIN => {
                    let thrown = root.names(layout::BIN).map_err(fail)?;
                    let thrown = thrown.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok());
                    found.extend(thrown.map(|name| format!("{below}/{name}")));
                }
                FileType::Directory if below == layout::ARTIFACTS => folders.push((below, 4)),
                FileType::Directory if depth > 0 => folders.push((below, depth - 1)),
                _ if sweep::is_leftover(root, &below, &name) => found.push(below),
                _ => {}
            }
        }
        let is_of_job = path.strip_prefix("jobs/").is_some_and(|name| JobId::new(name).is_ok());
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
    if above == layout::BIN {
        return match std::fs::remove_dir_all(folders.root.path(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
    }
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
