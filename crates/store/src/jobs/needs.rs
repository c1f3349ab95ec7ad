//! What a pass of the scheduler needs beside the active jobs themselves. Looks at briefs only.

use std::collections::{HashMap, HashSet};

use tidewheel_core::job::{Artifact, Brief, JobId, RunId};

/// What active jobs need: other jobs, those of their runs, and producers of artifacts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    jobs: HashSet<JobId>,
    runs: HashSet<RunId>,
    /// Labels, since one branch of a plan may be written in two ways.
    artifacts: HashSet<String>,
}

impl Needs {
    /// Returns what the active ones among these jobs need.
    pub(super) fn of<'b>(briefs: impl Iterator<Item = &'b Brief> + Clone) -> Self {
        let mut needs = Self::default();
        let mut wanted: HashMap<&Artifact, Vec<Option<&RunId>>> = HashMap::new();
        for brief in briefs.clone().filter(|brief| brief.is_open()) {
            if let Some(run) = &brief.run
                && !needs.runs.contains(run)
            {
                needs.runs.insert(run.clone());
            }
            needs.jobs.extend(brief.schedule.after.iter().map(|after| after.job_id.clone()));
            for needed in &brief.schedule.dependencies {
                wanted.entry(&needed.artifact).or_default().push(brief.run.as_ref());
            }
        }
        if wanted.is_empty() {
            return needs;
        }
        // If a node of a run makes a custom artifact, nobody else's counts in this run.
        let mut own: HashSet<(&RunId, &Artifact)> = HashSet::new();
        for brief in briefs {
            let Some(run) = brief.run.as_ref().filter(|run| needs.runs.contains(*run)) else { continue };
            let custom =
                brief.schedule.artifacts.iter().filter(|made| matches!(made, Artifact::Custom { .. }));
            own.extend(custom.map(|made| (run, made)));
        }
        for (artifact, runs) in wanted {
            if runs.iter().any(|run| run.is_none_or(|run| !own.contains(&(run, artifact)))) {
                needs.artifacts.insert(artifact.to_string());
            }
            // The end of the job counts for its patch, whether it says that it makes one or not.
            if let Artifact::CommandPatch { job_id } = artifact
                && let Ok(job) = JobId::new(job_id)
            {
                needs.jobs.insert(job);
            }
        }
        needs
    }

    /// Tells whether a job is active, or needed by one that is.
    pub(super) fn has(&self, brief: &Brief) -> bool {
        brief.is_open()
            || self.jobs.contains(&brief.id)
            || brief.run.as_ref().is_some_and(|run| self.runs.contains(run))
            || self.has_artifact_of(brief)
    }

    /// Returns what is needed here and was not needed before.
    pub(super) fn beyond(mut self, before: &Self) -> Self {
        self.jobs.retain(|job| !before.jobs.contains(job));
        self.runs.retain(|run| !before.runs.contains(run));
        self.artifacts.retain(|label| !before.artifacts.contains(label));
        self
    }

    /// Leaves out jobs and runs of which everything is known.
    pub(super) fn without(
        mut self,
        is_known: impl Fn(&JobId) -> bool,
        is_whole: impl Fn(&RunId) -> bool,
    ) -> Self {
        self.jobs.retain(|job| !is_known(job));
        self.runs.retain(|run| !is_whole(run));
        self
    }

    /// Tells whether nothing is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.runs.is_empty() && self.artifacts.is_empty()
    }

    /// Tells whether a job is needed by its id or for its run, of which no more than their names are known.
    pub(super) fn has_name(&self, id: &str, run: Option<&str>) -> bool {
        self.jobs.contains(id) || run.is_some_and(|run| self.runs.contains(run))
    }

    /// Tells whether an artifact is needed at all.
    pub(super) fn has_artifacts(&self) -> bool {
        !self.artifacts.is_empty()
    }

    /// Tells whether a job makes something that is needed.
    pub(super) fn has_artifact_of(&self, brief: &Brief) -> bool {
        !self.artifacts.is_empty()
            && brief.schedule.artifacts.iter().any(|made| self.artifacts.contains(&made.to_string()))
    }
}
