//! Finds out which jobs are not as the index says: written by their supervisors, made, edited or deleted by hand.
//! Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use tidewheel_core::job::{JobId, RunId};

use super::done;
use super::line::{Entry, Line};
use super::live::{Live, Seen};
use super::load::{Ahead, Index, UNKNOWN, look};
use super::merge::is_visible;
use super::threads::in_two;
use crate::jobs::JobStoreError;
use crate::jobs::files::beneath::Root;
use crate::jobs::files::layout::{JOBS, RECORD};
use crate::jobs::files::read::{self, State};
use crate::jobs::files::scan;
use crate::jobs::files::signature::Signature;

/// What is not as the index says.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// What is in the directories of these jobs now; nothing where they have none any more.
    pub(super) changed: BTreeMap<JobId, Option<Entry>>,
    /// The names that are no ids, if the directory was listed.
    pub(super) strange: Option<BTreeMap<String, String>>,
    /// What the directories are known by.
    pub(super) seen: Seen,
    /// Where the next look at the jobs that are over begins.
    pub(super) cursor: u64,
    /// Which runs were enqueued to the end.
    runs: BTreeMap<RunId, bool>,
}

/// A look at a long history takes no longer in one turn, even if the system has to read every directory from disk.
const ENOUGH: Duration = Duration::from_micros(300);

/// As many are looked at in any case.
const LEAST: usize = 16;

/// Compares the index with the directories.
pub(super) fn check(index: &Index, root: &Root) -> Result<Check, JobStoreError> {
    let live = &index.live;
    let seen = Seen { done: live.seen.done, ..look(root)? };
    let mut suspects: BTreeSet<JobId> = live.touching.clone();
    let mut check = Check { seen, cursor: index.cursor, ..Check::default() };
    look_at_runs(live, root, &mut check.runs);
    if seen == live.seen && seen.jobs != UNKNOWN {
        // Whoever looked ahead has seen all changes but those that are noted; what a person changes in between is
        // seen the next time.
        let (found, cursor) = match &index.ahead {
            Some(ahead) => (ahead.suspects.clone(), ahead.cursor),
            None => {
                let found = look_around(index, root)?;
                (found.suspects, found.cursor)
            }
        };
        suspects.extend(found);
        check.cursor = cursor;
    } else {
        suspects.extend(changed(live, root));
        let text = index.done.text().map_err(|source| done_error(root, source))?;
        let mut watch = Watch { root, path: String::new() };
        check.strange = Some(list(live, &text, &mut watch, &mut suspects)?);
    }
    for id in suspects {
        let (signature, state) = read::state(root, &id)?;
        // A directory without a record may get one, and is watched; one that is gone is not, unless its run misses it.
        let is_gone = state == State::Vacant
            && !root.look(&format!("{JOBS}/{id}")).is_ok_and(|found| found.is_some())
            && !read::is_missed(root, &id);
        if let State::Job(brief) = &state
            && let Some(run) = &brief.run
        {
            look_at_run(run, root, &mut check.runs);
        }
        check.changed.insert(id, (!is_gone).then_some(Entry { signature, state, is_hidden: false }));
    }
    // A run that was enqueued to the end meanwhile, or whose manifest is gone.
    for (id, entry) in &live.entries {
        if entry.brief().is_some_and(|brief| is_visible(brief, &check.runs) == entry.is_hidden)
            && !check.changed.contains_key(id)
        {
            check.changed.insert(id.clone(), Some(entry.clone()));
        }
    }
    for entry in check.changed.values_mut().flatten() {
        entry.is_hidden = entry.brief().is_some_and(|brief| !is_visible(brief, &check.runs));
    }
    Ok(check)
}

/// Looks at the records of live jobs, and at a part of the others.
pub(super) fn look_around(index: &Index, root: &Root) -> Result<Ahead, JobStoreError> {
    let mut suspects: BTreeSet<JobId> = changed(&index.live, root).into_iter().collect();
    let (text, from, next) = index.done.window(index.cursor).map_err(|source| done_error(root, source))?;
    let mut cursor = next;
    let is_all = from == done::HEADER && next >= index.done.length;
    let start = Instant::now();
    let mut runs = BTreeMap::new();
    let mut watch = Watch { root, path: String::new() };
    for (count, (at, line)) in done::lines(&text, from).enumerate() {
        if !is_all && count >= LEAST && start.elapsed() > ENOUGH {
            cursor = at;
            break;
        }
        if watch.differs(&line, &mut runs) {
            suspects.extend(JobId::new(line.id));
        }
    }
    Ok(Ahead { suspects, cursor })
}

fn done_error(root: &Root, source: io::Error) -> JobStoreError {
    JobStoreError::Io { verb: "read", path: root.path("jobs/index.done"), source }
}

/// Returns the live jobs whose records are not known any more.
fn changed(live: &Live, root: &Root) -> Vec<JobId> {
    let entries: Vec<(&JobId, &Entry)> = live.entries.iter().collect();
    in_two(&entries, |entries| {
        let mut watch = Watch { root, path: String::new() };
        let differing = entries.iter().filter(|(id, entry)| watch.signature(id.as_str()) != entry.signature);
        differing.map(|(id, _)| (*id).clone()).collect()
    })
}

/// Finds out which runs of live jobs were enqueued to the end.
pub(super) fn look_at_runs(live: &Live, root: &Root, runs: &mut BTreeMap<RunId, bool>) {
    for brief in live.entries.values().filter_map(Entry::brief) {
        if let Some(run) = &brief.run {
            look_at_run(run, root, runs);
        }
    }
}

/// Finds out whether a run was enqueued to the end, if that is not known yet.
pub(super) fn look_at_run(run: &RunId, root: &Root, runs: &mut BTreeMap<RunId, bool>) {
    if !runs.contains_key(run) {
        runs.insert(run.clone(), read::has_manifest(root, run));
    }
}

/// Lists the directory and looks at every record; returns the names that are no ids.
fn list(
    live: &Live,
    text: &str,
    watch: &mut Watch<'_>,
    suspects: &mut BTreeSet<JobId>,
) -> Result<BTreeMap<String, String>, JobStoreError> {
    let names = scan::names(watch.root)?;
    let mut runs = BTreeMap::new();
    let mut over: Vec<&str> = Vec::new();
    for (_, line) in done::lines(text, done::HEADER) {
        over.push(line.id);
        if watch.differs(&line, &mut runs) {
            suspects.extend(JobId::new(line.id));
        }
    }
    over.sort_unstable();
    for id in &names.ids {
        if !live.entries.contains_key(id) && over.binary_search(&id.as_str()).is_err() {
            suspects.insert(id.clone());
        }
    }
    let is_gone = |id: &&JobId| names.ids.binary_search(id).is_err();
    suspects.extend(live.entries.keys().filter(is_gone).cloned());
    Ok(names.strange)
}

/// Looks at records without reading them.
struct Watch<'r> {
    root: &'r Root,
    path: String,
}

impl Watch<'_> {
    fn signature(&mut self, id: &str) -> Signature {
        self.path.clear();
        write!(self.path, "{JOBS}/{id}/{RECORD}").expect("invariant: a string takes any text");
        read::signature(self.root, &self.path)
    }

    /// Tells whether a job that is over is not as its line says, or its run is gone.
    fn differs<'t>(&mut self, line: &Line<'t>, runs: &mut BTreeMap<&'t str, bool>) -> bool {
        if self.signature(line.id) != line.signature {
            return true;
        }
        let Some(run) = line.run else { return false };
        if let Some(is_there) = runs.get(run) {
            return !is_there;
        }
        let is_there = RunId::new(run).is_ok_and(|run| read::has_manifest(self.root, &run));
        runs.insert(run, is_there);
        !is_there
    }
}
