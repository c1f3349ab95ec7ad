//! Takes over what has changed: jobs become live or are over, and what the active ones need comes along.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use tidewheel_core::job::{Brief, JobId, RunId};

use super::check::{check, look_at_run};
use super::done;
use super::line::{Entry, JOB, Line};
use super::live::{self, Live};
use super::load::{Index, UNKNOWN, look};
use crate::jobs::JobStoreError;
use crate::jobs::files::beneath::Root;
use crate::jobs::files::layout::JOBS;
use crate::jobs::files::read;
use crate::jobs::needs::Needs;

/// As many jobs that nobody needs may stay among the live ones.
const SPARE: usize = 64;

/// What a turn wrote itself.
#[derive(Debug, Default)]
pub(in crate::jobs::files) struct Written {
    /// Records, with what they are known by; nothing for jobs that were removed.
    pub(in crate::jobs::files) records: BTreeMap<JobId, Option<Entry>>,
    /// Jobs that had no directory before.
    pub(in crate::jobs::files) made: BTreeSet<JobId>,
    /// The run that was enqueued, if there was none before.
    pub(in crate::jobs::files) new_run: Option<RunId>,
    /// Whether runs were removed.
    pub(in crate::jobs::files) has_removed_runs: bool,
    /// How many directories more there are now.
    pub(in crate::jobs::files) links: i64,
}

/// What is taken over.
#[derive(Debug, Default)]
struct Changes {
    entries: BTreeMap<JobId, Option<Entry>>,
    /// Those of them that are in no line of the jobs that are over.
    fresh: BTreeSet<JobId>,
    /// A run to which nobody belongs but some of them.
    new_run: Option<RunId>,
    /// More lines for the log.
    lines: String,
}

impl Index {
    /// Takes over what others have changed.
    pub(in crate::jobs::files) fn refresh(&mut self, root: &Root) -> Result<(), JobStoreError> {
        let found = check(self, root)?;
        self.ahead = None;
        let mut lines = String::new();
        if let Some(strange) = found.strange
            && strange != self.live.strange
        {
            live::strange(&strange, &mut lines);
            self.live.strange = strange;
        }
        let is_same = found.changed.is_empty() && lines.is_empty() && found.seen == self.live.seen;
        self.live.seen = found.seen;
        self.move_cursor(found.cursor);
        if is_same && self.live.touching.is_empty() {
            return Ok(());
        }
        let before = needs(&self.live);
        self.merge(root, Changes { entries: found.changed, lines, ..Changes::default() }, &before)?;
        self.tidy(root)
    }

    /// Notes which records are about to be written.
    pub(in crate::jobs::files) fn touch<'i>(
        &mut self,
        ids: impl Iterator<Item = &'i JobId> + Clone,
        root: &Root,
    ) -> Result<(), JobStoreError> {
        if ids.clone().next().is_none() {
            return Ok(());
        }
        let mut text = String::new();
        live::touch_line(ids.clone(), &mut text);
        self.append(&text).map_err(|source| index_error(root, source))?;
        self.live.touching.extend(ids.cloned());
        Ok(())
    }

    /// Takes over what this turn has written itself.
    pub(in crate::jobs::files) fn wrote(
        &mut self,
        root: &Root,
        written: Written,
    ) -> Result<(), JobStoreError> {
        let before = needs(&self.live);
        let mut runs = BTreeMap::new();
        let mut entries = written.records;
        for entry in entries.values_mut().flatten() {
            let Some(run) = entry.brief().and_then(|brief| brief.run.clone()) else { continue };
            look_at_run(&run, root, &mut runs);
            entry.is_hidden = entry.brief().is_some_and(|brief| !is_visible(brief, &runs));
        }
        let now = look(root)?;
        self.see(&now, written.links);
        if written.has_removed_runs {
            // Jobs of theirs that are left have to be found.
            self.live.seen.runs = UNKNOWN;
        }
        let changes =
            Changes { entries, fresh: written.made, new_run: written.new_run, ..Changes::default() };
        self.merge(root, changes, &before)?;
        self.tidy(root)
    }

    /// Writes files as a whole that are mostly of no use any more.
    fn tidy(&mut self, root: &Root) -> Result<(), JobStoreError> {
        const ENOUGH: u64 = 256 << 10;
        if self.waste > ENOUGH && self.waste > self.done.length / 2 {
            let text = self.done.text().map_err(|source| index_error(root, source))?;
            let alive = |line: &&str| line.as_bytes().first() == Some(&JOB);
            let over: String = text.split_inclusive('\n').filter(alive).collect();
            *self = Self::create(root, std::mem::take(&mut self.live), &over)?;
            return Ok(());
        }
        if self.is_long() { self.rewrite(root) } else { Ok(()) }
    }

    /// Accounts for a name in the directory of the jobs that we changed ourselves.
    pub(in crate::jobs::files) fn renamed(&mut self, root: &Root) -> Result<(), JobStoreError> {
        let now = look(root)?;
        self.see(&now, 0);
        let mut text = String::new();
        self.live.seen.write(&mut text);
        self.append(&text).map_err(|source| index_error(root, source))
    }

    /// Takes over changes.
    fn merge(&mut self, root: &Root, changes: Changes, before: &Needs) -> Result<(), JobStoreError> {
        let Changes { entries: changed, fresh, new_run, mut lines } = changes;
        let fail = |source| index_error(root, source);
        let unknown: BTreeSet<&JobId> = changed
            .keys()
            .filter(|id| !self.live.entries.contains_key(*id) && !fresh.contains(*id))
            .collect();
        let unknown: BTreeSet<JobId> = unknown.into_iter().cloned().collect();
        for (id, entry) in changed {
            match entry {
                Some(entry) => {
                    entry.write(&id, &mut lines);
                    self.live.entries.insert(id, entry);
                }
                None => {
                    live::drop_line(&id, &mut lines);
                    self.live.entries.remove(&id);
                }
            }
        }
        let wanted = needs(&self.live).beyond(before).without(
            |id| self.live.entries.contains_key(id) || !is_there(root, id),
            |run| Some(run) == new_run.as_ref(),
        );
        let mut dead = Vec::new();
        if !unknown.is_empty() || !wanted.is_empty() {
            let text = self.done.text().map_err(fail)?;
            self.waste = text
                .split_inclusive('\n')
                .filter(|line| line.starts_with('-'))
                .map(|line| line.len() as u64)
                .sum();
            for (at, line) in done::lines(&text, done::HEADER) {
                if unknown.contains(line.id) || self.live.entries.contains_key(line.id) {
                    dead.push((at, JobId::new(line.id).ok()));
                } else if let Some((id, entry)) = pulled(&line, &wanted) {
                    entry.write(&id, &mut lines);
                    dead.push((at, Some(id.clone())));
                    self.live.entries.insert(id, entry);
                }
            }
        }
        let over = self.part_with_unneeded(&mut lines);
        // Whoever reads while lines are crossed out has to read these records itself.
        let noted = dead.iter().filter_map(|(_, id)| id.as_ref());
        self.touch(noted, root)?;
        if !over.is_empty() {
            self.done.append(&over).map_err(fail)?;
        }
        for (at, _) in dead {
            self.done.kill(at).map_err(fail)?;
        }
        self.live.seen.done = self.done.length;
        self.live.seen.write(&mut lines);
        self.append(&lines).map_err(fail)?;
        self.live.touching.clear();
        Ok(())
    }

    /// Takes jobs that nobody needs from the live ones, if they are many; returns their lines.
    fn part_with_unneeded(&mut self, lines: &mut String) -> String {
        let mut over = String::new();
        let terminal =
            self.live.entries.values().filter_map(Entry::brief).filter(|brief| brief.status.is_terminal());
        if terminal.count() <= SPARE {
            return over;
        }
        for id in unneeded(&self.live) {
            if let Some(entry) = self.live.entries.remove(&id) {
                entry.write(&id, &mut over);
                live::drop_line(&id, lines);
            }
        }
        over
    }
}

/// Returns the jobs that are over and that nobody needs.
pub(super) fn unneeded(live: &Live) -> Vec<JobId> {
    let needs = needs(live);
    let visible = live.entries.values().filter_map(Entry::visible);
    visible.filter(|brief| !needs.has(brief)).map(|brief| brief.id.clone()).collect()
}

/// Returns what the active jobs need.
pub(super) fn needs(live: &Live) -> Needs {
    Needs::of(live.entries.values().filter_map(Entry::visible))
}

/// Tells whether the run of a job was enqueued to the end.
pub(super) fn is_visible(brief: &Brief, runs: &BTreeMap<RunId, bool>) -> bool {
    let is_enqueued = |run| runs.get(run).copied().unwrap_or(false);
    read::is_begun(brief.status) || brief.run.as_ref().is_none_or(is_enqueued)
}

/// Reads a line of a job that is over if somebody needs it now.
fn pulled(line: &Line<'_>, wanted: &Needs) -> Option<(JobId, Entry)> {
    if wanted.has_name(line.id, line.run) {
        return line.entry();
    }
    if !wanted.has_artifacts() || !line.has_artifacts() {
        return None;
    }
    line.entry().filter(|(_, entry)| entry.brief().is_some_and(|brief| wanted.has_artifact_of(brief)))
}

fn is_there(root: &Root, id: &JobId) -> bool {
    root.look(&format!("{JOBS}/{id}")).is_ok_and(|found| found.is_some())
}

fn index_error(root: &Root, source: io::Error) -> JobStoreError {
    JobStoreError::Io { verb: "write", path: root.path("jobs/index.live"), source }
}
