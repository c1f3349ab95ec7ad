//! Finishes removals that a process began and did not end. A manifest that was put aside means that the removal of its run
//! was decided: no reader sees any of its jobs, and what is left of it only takes room.

use std::collections::BTreeSet;

use rustix::fs::FileType;
use tidewheel_core::job::{JobId, Manifest, marks_of};

use super::beneath::Root;
use super::folders::Folders;
use super::layout;
use super::remove::{self, Bin, Moved};
use super::sync::Disk;
use super::{beneath, read};
use crate::jobs::{Finished, JobStoreError, Removal};

/// What removals that did not end have left.
#[derive(Default)]
pub(super) struct Unfinished {
    runs: Vec<RunAside>,
    jobs: Vec<JobAside>,
    /// Manifests of runs that are there again.
    stale: Vec<(Bin, String)>,
}

/// A manifest that was put aside.
struct RunAside {
    bin: Bin,
    name: String,
    manifest: Manifest,
    /// The jobs of the run that are still in their places.
    jobs: Vec<JobId>,
}

/// A directory that was put aside.
struct JobAside {
    bin: Bin,
    name: String,
    id: JobId,
}

impl Unfinished {
    /// Looks for what was put aside and not swept up.
    pub(super) fn look(root: &Root) -> Result<Self, JobStoreError> {
        let mut found = Self::default();
        for bin in Bin::ALL {
            let names = match root.names(bin.folder) {
                Ok(names) => names,
                // Something else is in the place of the bin; then nothing was put into it.
                Err(_) if bin.folder == layout::BIN => continue,
                Err(source) => {
                    return Err(JobStoreError::Io { verb: "read", path: root.path(bin.folder), source });
                }
            };
            for (name, kind) in names {
                let Ok(name) = String::from_utf8(name) else { continue };
                let Some(plain) = name.strip_prefix(bin.prefix) else { continue };
                if let Some(of_run) = plain.strip_prefix(layout::MANIFEST_ASIDE) {
                    found.add_manifest(root, bin, &name, of_run);
                } else if let (FileType::Directory, Ok(id)) = (kind, JobId::new(plain))
                    && is_ours(root, &format!("{}/{name}", bin.folder))
                {
                    found.jobs.push(JobAside { bin, id, name });
                }
            }
        }
        Ok(found)
    }

    fn add_manifest(&mut self, root: &Root, bin: Bin, name: &str, of_run: &str) {
        let path = format!("{}/{name}", bin.folder);
        // Only manifests that can be read are put aside.
        let Ok(Some(manifest)) = read::manifest_at(root, &path) else { return };
        if !of_run.starts_with(&layout::manifest_name(&manifest.run_id)) {
            return;
        }
        if read::has_manifest(root, &manifest.run_id) {
            self.stale.push((bin, name.to_owned()));
            return;
        }
        let ids = manifest.nodes.values().map(|node| node.job_id.clone());
        let is_there = |id: &JobId| root.look(&layout::job(id)).is_ok_and(|found| found.is_some());
        let jobs = ids.filter(is_there).collect();
        self.runs.push(RunAside { bin, name: name.to_owned(), manifest, jobs });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.jobs.is_empty() && self.stale.is_empty()
    }

    /// Returns the jobs that are in their places, or may be put back there.
    pub(super) fn ids(&self) -> Vec<JobId> {
        let aside = self.jobs.iter().map(|job| &job.id);
        let ids: BTreeSet<&JobId> = self.in_place().chain(aside).collect();
        ids.into_iter().cloned().collect()
    }

    /// Returns the jobs whose removal was decided and that are still in their places.
    pub(super) fn in_place(&self) -> impl Iterator<Item = &JobId> {
        self.runs.iter().flat_map(|run| &run.jobs)
    }

    /// Returns all of it, beneath the data directory.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        let runs = self.runs.iter().map(|run| (run.bin, &run.name));
        let jobs = self.jobs.iter().map(|job| (job.bin, &job.name));
        let stale = self.stale.iter().map(|(bin, name)| (*bin, name));
        let aside = runs.chain(jobs).chain(stale);
        aside.map(|(bin, name)| format!("{}/{name}", bin.folder)).chain(self.in_place().map(layout::job))
    }

    /// Removes all of it, but for runs of which a job cannot be removed.
    pub(super) fn finish(self, folders: &mut Folders<'_>, disk: &Disk) -> Result<Finished, JobStoreError> {
        let mut finished = Finished::default();
        let target = Bin::open(folders);
        let mut aside = self.jobs;
        let mut manifests = self.stale;
        for RunAside { bin, name, manifest, jobs } in self.runs {
            let unmarked = marks_of(&manifest).collect();
            let removal = Removal { run: None, jobs, unmarked };
            let mut moved = Moved::default();
            let done = remove::check(folders, &removal).and_then(|()| moved.jobs(folders, target, &removal));
            aside.extend(moved.jobs.into_iter().map(|(id, name)| JobAside { bin: target, id, name }));
            match done {
                Ok(()) => {
                    remove::unmark_all(folders, &removal.unmarked, &mut finished.errors);
                    finished.runs.push(manifest.run_id);
                    manifests.push((bin, name));
                }
                // The manifest stays in the bin, so that the next removal tries again.
                Err((_, error)) => finished.errors.push(error),
            }
        }
        folders.sync(disk)?;
        for JobAside { bin, name, id } in aside {
            match remove::sweep_job(folders, bin.folder, &name) {
                Ok(left) => {
                    if !left.is_empty() {
                        remove::put_back(folders, bin, &id, &name);
                        finished.left.extend(left.iter().map(|name| layout::of_job(&id, name)));
                    }
                    finished.jobs.push(id);
                }
                Err(source) => {
                    let path = format!("{}/{name}", bin.folder);
                    finished.errors.push(remove::io_error(folders.root, &path, source));
                }
            }
        }
        for (bin, name) in manifests {
            if let Err(source) = remove::remove(folders, bin.folder, &name) {
                let path = format!("{}/{name}", bin.folder);
                finished.errors.push(remove::io_error(folders.root, &path, source));
            }
        }
        finished.jobs.sort();
        Ok(finished)
    }
}

/// Returns whether a directory among those that were put aside is that of a job: empty, or with a file that is made there.
fn is_ours(root: &Root, path: &str) -> bool {
    let Ok(folder) = root.folder(path) else { return false };
    let Ok(names) = beneath::names(folder) else { return false };
    let is_made =
        |(name, _): &(Vec<u8>, FileType)| std::str::from_utf8(name).is_ok_and(layout::is_made_in_job);
    names.is_empty() || names.iter().any(is_made)
}
