//! What the index shows: the active jobs with what they need, or all of them.

use std::collections::{BTreeMap, HashSet};

use rustix::fs::OFlags;
use tidewheel_core::job::{Brief, JobId};

use super::check::check;
use super::done;
use super::line::{Entry, Line};
use super::load::Index;
use super::merge::needs;
use super::survey::Survey;
use super::threads::in_two;
use crate::jobs::files::beneath::Root;
use crate::jobs::files::read::{self, State};
use crate::jobs::files::scan;
use crate::jobs::needs::Needs;
use crate::jobs::{JobStoreError, Jobs};

impl Index {
    /// Returns what a pass of the scheduler needs, as it was at the last refresh.
    pub(in crate::jobs::files) fn active(&self, root: &Root) -> Jobs {
        let mut visible = self.live.entries.values().filter_map(Entry::visible);
        // Where all are active, nobody has to find out what they need.
        let has_others = visible.any(|brief| brief.status.is_terminal());
        let needs = if has_others { needs(&self.live) } else { Needs::default() };
        let vacant = self.live.entries.iter().filter(|(_, entry)| entry.state == State::Vacant);
        let lost = vacant.map(|(id, _)| id).filter(|id| read::is_missed(root, id)).cloned().collect();
        Jobs { lost, ..self.live_jobs(|entry| entry.visible().filter(|brief| needs.has(brief))) }
    }

    /// Returns all jobs, also those of runs that were never enqueued to the end.
    pub(in crate::jobs::files) fn all(&self, root: &Root) -> Result<Jobs, JobStoreError> {
        let fail = |source| JobStoreError::Io { verb: "read", path: root.path("jobs/index.done"), source };
        let text = self.done.text().map_err(fail)?;
        let mut jobs = self.live_jobs(Entry::brief);
        let lines = done::lines(&text, done::HEADER).map(|(_, line)| line);
        let over = lines.filter(|line| !self.live.entries.contains_key(line.id)).map(Source::Over);
        let live = std::mem::take(&mut jobs.briefs);
        let mut sources: Vec<Source<'_>> = over.chain(live.values().map(Source::Live)).collect();
        // In order from the start, so that the map is made at once and no brief is moved twice.
        sources.sort_by(|one, other| one.id().cmp(other.id()));
        jobs.briefs = read_all(&sources).into_iter().collect();
        Ok(jobs)
    }

    /// Adds jobs that became live while we read, or were over again by then: their lines were crossed out before we
    /// came to them. Returns whether what we have is whole.
    fn catch_up(&mut self, root: &Root, survey: &mut Survey) -> bool {
        // Each time is shorter than the one before; somebody who writes all the time does not hold us for ever.
        const TRIES: usize = 8;
        self.live.touching.clear();
        let mut over: Option<HashSet<String>> = None;
        for _ in 0..TRIES {
            let (known, done) = (self.length(), self.done.length);
            if !self.follow(root).unwrap_or(false) {
                return false;
            }
            if self.length() == known {
                return true;
            }
            let Ok(text) = self.done.part(done, self.done.length) else { return false };
            let over = over.get_or_insert_with(|| {
                done::lines(&survey.over, 0).map(|(_, line)| line.id.to_owned()).collect()
            });
            for line in text.split_inclusive('\n') {
                // One that was over when we came is there already.
                if Line::parse(line).is_some_and(|line| over.insert(line.id.to_owned())) {
                    survey.over.push_str(line);
                }
            }
            for (id, entry) in &self.live.entries {
                if let Some(brief) = entry.visible()
                    && !survey.known.contains_key(id)
                    && !over.contains(id.as_str())
                {
                    survey.known.insert(id.clone(), Some(brief.clone()));
                }
            }
            for id in &self.live.touching {
                if !survey.known.contains_key(id)
                    && !over.contains(id.as_str())
                    && let Ok((_, State::Job(brief))) = read::state(root, id)
                    && (read::is_begun(brief.status)
                        || brief.run.as_ref().is_none_or(|run| read::has_manifest(root, run)))
                {
                    survey.known.insert(id.clone(), Some(*brief));
                }
            }
        }
        false
    }

    fn live_jobs(&self, wanted: impl Fn(&Entry) -> Option<&Brief>) -> Jobs {
        let mut jobs = Jobs { unreadable: self.live.strange.clone(), ..Jobs::default() };
        for (id, entry) in &self.live.entries {
            if let State::Unreadable(why) = &entry.state {
                jobs.unreadable.insert(id.to_string(), why.clone());
            } else if let Some(brief) = wanted(entry) {
                jobs.briefs.insert(id.clone(), brief.clone());
            }
        }
        jobs
    }
}

/// Looks at all jobs that are there for everybody, without a turn; writes nothing.
pub(in crate::jobs::files) fn survey(root: &Root) -> Result<Survey, JobStoreError> {
    // Somebody else may replace the index while we read it; a few times are enough, and the records never lie.
    const TRIES: usize = 4;
    for _ in 0..TRIES {
        let Ok(Some(mut index)) = Index::open(root, OFlags::RDONLY) else { break };
        let Ok(found) = check(&index, root) else { continue };
        if let Some(strange) = found.strange {
            index.live.strange = strange;
        }
        let Ok(over) = index.done.text() else { continue };
        let Jobs { briefs, unreadable, .. } = index.live_jobs(Entry::visible);
        let mut known: BTreeMap<JobId, Option<Brief>> =
            index.live.entries.keys().map(|id| (id.clone(), None)).collect();
        known.extend(briefs.into_iter().map(|(id, brief)| (id, Some(brief))));
        let mut survey = Survey { over, known, unreadable };
        for (id, entry) in found.changed {
            // What has no record, or no directory any more, hides the line that is left of it.
            let state = entry.as_ref().map(|entry| &entry.state);
            match state {
                Some(State::Unreadable(why)) => {
                    drop(survey.unreadable.insert(id.to_string(), why.clone()));
                }
                Some(State::Job(_) | State::Vacant) | None => drop(survey.unreadable.remove(id.as_str())),
            }
            let brief = entry.as_ref().and_then(Entry::visible).cloned();
            survey.known.insert(id, brief);
        }
        if index.catch_up(root, &mut survey) {
            return Ok(survey);
        }
    }
    Ok(Survey::of(scan::scan(root)?.visible(root)))
}

/// Where a brief comes from.
enum Source<'t> {
    Over(Line<'t>),
    Live(&'t Brief),
}

impl Source<'_> {
    fn id(&self) -> &str {
        match self {
            Self::Over(line) => line.id,
            Self::Live(brief) => brief.id.as_str(),
        }
    }

    fn read(&self) -> Option<(JobId, Brief)> {
        match self {
            Self::Over(line) => {
                let id = JobId::new(line.id).ok()?;
                let brief = line.brief(&id)?;
                Some((id, brief))
            }
            Self::Live(brief) => Some((brief.id.clone(), (*brief).clone())),
        }
    }
}

/// Reads all.
fn read_all(sources: &[Source<'_>]) -> Vec<(JobId, Brief)> {
    in_two(sources, |sources| sources.iter().filter_map(Source::read).collect())
}
