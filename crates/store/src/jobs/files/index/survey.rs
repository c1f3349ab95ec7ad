//! All jobs at a glance: of those that are over, as much of their lines is read as somebody wants to see.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidewheel_core::job::{Artifact, Brief, JobId, JobStatus};
use tidewheel_core::time::Timestamp;

use super::done;
use super::line::Line;
use super::threads::{by_lines, in_two};
use crate::jobs::Jobs;

/// All jobs that are there for everybody, as they were when somebody looked.
#[derive(Debug, Default)]
pub struct Survey {
    /// The lines of jobs that are over.
    pub(super) over: String,
    /// Whatever is known better than from those lines: a job, or that there is none.
    pub(super) known: BTreeMap<JobId, Option<Brief>>,
    /// What is wrong with the jobs whose records cannot be read.
    pub unreadable: BTreeMap<String, String>,
}

/// A little of one job: enough to choose by.
#[derive(Clone, Copy, Debug)]
pub struct Glance<'s> {
    /// Its id.
    pub id: &'s str,
    /// The run that it belongs to.
    pub run: Option<&'s str>,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was enqueued.
    pub created_at: Timestamp,
    source: Source<'s>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'s> {
    Over(Line<'s>),
    Known(&'s Brief),
}

impl Survey {
    /// Returns a look at these jobs, and at no others.
    #[must_use]
    pub fn of(jobs: Jobs) -> Self {
        let known = jobs.briefs.into_iter().map(|(id, brief)| (id, Some(brief))).collect();
        Self { over: String::new(), known, unreadable: jobs.unreadable }
    }

    /// Returns a glance at each job, in no particular order.
    #[must_use]
    pub fn glances(&self) -> Vec<Glance<'_>> {
        let mut glances = by_lines(&self.over, |text| {
            let lines = done::lines(text, 0).map(|(_, line)| line);
            lines.filter(|line| !self.known.contains_key(line.id)).filter_map(Glance::over).collect()
        });
        glances.extend(self.known.values().flatten().map(Glance::known));
        glances
    }

    /// Reads all jobs.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        self.read(self.glances())
    }

    /// Reads these jobs.
    #[must_use]
    pub fn read(&self, mut wanted: Vec<Glance<'_>>) -> Jobs {
        // In order from the start, so that the map is made at once and no brief is moved twice.
        wanted.sort_unstable_by_key(|glance| glance.id);
        let briefs = in_two(&wanted, |wanted| wanted.iter().filter_map(Glance::read).collect());
        let (briefs, unreadable) = (briefs.into_iter().collect(), self.unreadable.clone());
        Jobs { briefs, unreadable, ..Jobs::default() }
    }

    /// Reads these jobs and those that they are after, the makers of what they need, and so on to the first of all.
    #[must_use]
    pub fn read_with_needs(&self, all: &[Glance<'_>], wanted: Vec<Glance<'_>>) -> Jobs {
        let mut jobs = self.read(wanted);
        let mut by_id: HashMap<&str, &Glance<'_>> = HashMap::new();
        let mut asked: BTreeSet<String> = BTreeSet::new();
        let mut new: Vec<JobId> = jobs.briefs.keys().cloned().collect();
        while !new.is_empty() {
            let mut ids: BTreeSet<&str> = BTreeSet::new();
            let mut artifacts: BTreeMap<String, &Artifact> = BTreeMap::new();
            for brief in new.iter().filter_map(|id| jobs.briefs.get(id)) {
                ids.extend(brief.schedule.after.iter().map(|after| after.job_id.as_str()));
                for needed in &brief.schedule.dependencies {
                    if let Artifact::CommandPatch { job_id } = &needed.artifact {
                        ids.insert(job_id);
                    }
                    let label = needed.artifact.to_string();
                    if !asked.contains(&label) {
                        artifacts.insert(label, &needed.artifact);
                    }
                }
            }
            ids.retain(|id| !jobs.briefs.contains_key(*id));
            if !ids.is_empty() && by_id.is_empty() {
                by_id = all.iter().map(|glance| (glance.id, glance)).collect();
            }
            let named = ids.iter().filter_map(|id| by_id.get(id)?.read());
            let mut found: Vec<(JobId, Brief)> = named.collect();
            if !artifacts.is_empty() {
                let names: Vec<String> = artifacts.values().map(|artifact| name_in_line(artifact)).collect();
                let may_make = |glance: &&Glance<'_>| glance.may_make(&names);
                let makers = all.iter().filter(may_make).filter_map(Glance::read);
                let makes = |made: &Artifact| artifacts.contains_key(&made.to_string());
                found.extend(makers.filter(|(_, brief)| brief.schedule.artifacts.iter().any(makes)));
            }
            asked.extend(artifacts.into_keys());
            found.retain(|(id, _)| !jobs.briefs.contains_key(id));
            new = found.iter().map(|(id, _)| id.clone()).collect();
            jobs.briefs.extend(found);
        }
        jobs
    }

    /// Reads the jobs of this run, if there is one, and all that may have to do with them: whoever has to do with jobs
    /// of other runs or with artifacts, and the runs of those.
    #[must_use]
    pub fn read_around(&self, all: &[Glance<'_>], run: Option<&str>) -> Jobs {
        let is_outward = in_two(all, |all| all.iter().map(|glance| !glance.keeps_to_its_run()).collect());
        let mut runs: BTreeSet<String> = run.map(str::to_owned).into_iter().collect();
        let outward = all.iter().zip(&is_outward).filter(|(_, is_outward)| **is_outward);
        let mut jobs = self.read(outward.map(|(glance, _)| *glance).collect());
        let run_of: HashMap<&str, &str> = if jobs.briefs.is_empty() {
            HashMap::new()
        } else {
            all.iter().filter_map(|glance| Some((glance.id, glance.run?))).collect()
        };
        for brief in jobs.briefs.values() {
            runs.extend(brief.run.as_ref().map(ToString::to_string));
            let before = brief.schedule.after.iter().filter_map(|after| run_of.get(after.job_id.as_str()));
            runs.extend(before.map(|run| (*run).to_owned()));
        }
        let inward = all.iter().zip(is_outward).filter(|(_, is_outward)| !is_outward);
        let of_runs = inward.filter(|(glance, _)| glance.run.is_some_and(|run| runs.contains(run)));
        jobs.briefs.extend(self.read(of_runs.map(|(glance, _)| *glance).collect()).briefs);
        jobs
    }
}

impl<'s> Glance<'s> {
    fn over(line: Line<'s>) -> Option<Self> {
        let (status, created_at) = line.standing()?;
        Some(Self { id: line.id, run: line.run, status, created_at, source: Source::Over(line) })
    }

    fn known(brief: &'s Brief) -> Self {
        let run = brief.run.as_ref().map(|run| run.as_str());
        let Brief { id, status, created_at, .. } = brief;
        let source = Source::Known(brief);
        Self { id: id.as_str(), run, status: *status, created_at: *created_at, source }
    }

    /// Tells whether something may still happen to the job by itself, or people have to know how it ended: it did not
    /// do what it should.
    #[must_use]
    pub const fn is_noteworthy(&self) -> bool {
        match self.status {
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running
            | JobStatus::Failed
            | JobStatus::Cancelled
            | JobStatus::BlockedByDependency
            | JobStatus::BlockedByApproval => true,
            // What goes back in a loop is kept with the active ones, and failed.
            JobStatus::Succeeded | JobStatus::Skipped => false,
        }
    }

    /// Tells whether the job may have something to do with somebody or something of this name.
    #[must_use]
    pub fn speaks_of(&self, name: &str) -> bool {
        match self.source {
            Source::Over(line) => line.mentions(name),
            Source::Known(_) => true,
        }
    }

    fn keeps_to_its_run(&self) -> bool {
        match self.source {
            Source::Over(line) => line.keeps_to_its_run(),
            Source::Known(_) => false,
        }
    }

    fn may_make(&self, names: &[String]) -> bool {
        match self.source {
            Source::Over(line) => line.has_artifacts() && names.iter().any(|name| line.mentions(name)),
            Source::Known(brief) => !brief.schedule.artifacts.is_empty(),
        }
    }

    fn read(&self) -> Option<(JobId, Brief)> {
        match self.source {
            Source::Over(line) => {
                let id = JobId::new(line.id).ok()?;
                let brief = line.brief(&id)?;
                Some((id, brief))
            }
            Source::Known(brief) => Some((brief.id.clone(), brief.clone())),
        }
    }
}

/// Returns a name that is in the line of whoever makes an artifact, as it is written there.
fn name_in_line(artifact: &Artifact) -> String {
    let name = match artifact {
        Artifact::PlanBranch { slug, .. }
        | Artifact::PlanDoc { slug, .. }
        | Artifact::PlanCommits { slug, .. }
        | Artifact::MergeSentinel { slug } => slug,
        Artifact::TargetBranch { name } => name,
        Artifact::CommandPatch { job_id } => job_id,
        Artifact::Custom { key, .. } => key,
    };
    serde_json::Value::from(name.as_str()).to_string()
}
