//! Reads every record there is: what the index is built from, and what it has to agree with.

use std::collections::BTreeMap;

use tidewheel_core::job::{JobId, RunId};

use super::beneath::Root;
use super::layout;
use super::read::{self, State};
use super::signature::Signature;
use crate::jobs::{JobStoreError, Jobs};

/// All that is in the directory of the jobs.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) jobs: BTreeMap<JobId, (Signature, State)>,
    /// Directories whose names are no ids, and why.
    pub(super) strange: BTreeMap<String, String>,
}

/// Reads every record.
pub(super) fn scan(root: &Root) -> Result<Scan, JobStoreError> {
    let names = names(root)?;
    let mut jobs = BTreeMap::new();
    for id in names.ids {
        let state = read::state(root, &id)?;
        jobs.insert(id, state);
    }
    Ok(Scan { jobs, strange: names.strange })
}

/// The names in the directory of the jobs.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) ids: Vec<JobId>,
    pub(super) strange: BTreeMap<String, String>,
}

/// Lists the directory of the jobs, without what is ours in it.
pub(super) fn names(root: &Root) -> Result<Names, JobStoreError> {
    use rustix::fs::FileType;
    let fail = |source| JobStoreError::Io { verb: "read", path: root.path(layout::JOBS), source };
    let mut names = Names::default();
    for (name, kind) in root.names(layout::JOBS).map_err(fail)? {
        // Whatever is no directory is no job; a file system that does not say what it is may have one.
        if !matches!(kind, FileType::Directory | FileType::Symlink | FileType::Unknown) {
            continue;
        }
        let text = String::from_utf8_lossy(&name);
        match JobId::new(&text) {
            Ok(id) => names.ids.push(id),
            Err(error) => {
                let is_ours =
                    ["runs", "artifacts", "keys", "tmp"].contains(&&*text) || text.starts_with(layout::ASIDE);
                let has_record = std::str::from_utf8(&name).map_or(Ok(None), |name| {
                    root.look(&format!("{}/{name}/{}", layout::JOBS, layout::RECORD))
                });
                if !is_ours && has_record.is_ok_and(|found| found.is_some()) {
                    names.strange.insert(text.into_owned(), error.to_string());
                }
            }
        }
    }
    names.ids.sort_unstable();
    Ok(names)
}

impl Scan {
    /// Returns every job, also those of runs that were never enqueued to the end.
    pub(super) fn all(self) -> Jobs {
        let mut jobs = Jobs { unreadable: self.strange, ..Jobs::default() };
        for (id, (_, state)) in self.jobs {
            match state {
                State::Job(brief) => drop(jobs.briefs.insert(id, *brief)),
                State::Unreadable(why) => drop(jobs.unreadable.insert(id.to_string(), why)),
                State::Vacant => {}
            }
        }
        jobs
    }

    /// Returns every job that is there for everybody.
    pub(super) fn visible(self, root: &Root) -> Jobs {
        let mut jobs = self.all();
        let mut runs: BTreeMap<RunId, bool> = BTreeMap::new();
        jobs.briefs.retain(|_, brief| {
            let Some(run) = brief.run.as_ref().filter(|_| !read::is_begun(brief.status)) else { return true };
            if let Some(is_there) = runs.get(run) {
                return *is_there;
            }
            let is_there = read::has_manifest(root, run);
            runs.insert(run.clone(), is_there);
            is_there
        });
        jobs
    }
}
