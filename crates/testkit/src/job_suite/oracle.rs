//! What a directory of jobs holds, found out in the plainest way: every file is read, and nothing is remembered.
#![expect(clippy::unwrap_used, reason = "a directory that cannot be read is no oracle")]

use std::collections::BTreeSet;
use std::path::Path;

use tidewheel_core::job::{Artifact, Brief, JobId, JobStatus, Record};
use tidewheel_store::jobs::Jobs;

/// What a keeper of jobs has to say about a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Every record.
    pub all: Jobs,
    /// Those that everybody sees.
    pub visible: Jobs,
    /// Those that a pass of the scheduler needs.
    pub active: Jobs,
}

/// Reads a data directory.
///
/// # Panics
/// The directory cannot be read.
#[must_use]
pub fn expected(data: &Path) -> Expected {
    let jobs = data.join("jobs");
    let mut all = Jobs::default();
    for entry in std::fs::read_dir(&jobs).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let Ok(id) = JobId::new(&name) else { continue };
        if !entry.file_type().unwrap().is_dir() {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(entry.path().join("job.json")) else { continue };
        match Record::parse(&text) {
            Ok(record) if record.id == id => drop(all.briefs.insert(id, Brief::from(&record))),
            Ok(record) => drop(all.unreadable.insert(name, format!("record is of job {}", record.id))),
            Err(error) => drop(all.unreadable.insert(name, error.to_string())),
        }
    }
    let mut visible = all.clone();
    let has_run = |brief: &Brief| {
        brief.run.as_ref().is_none_or(|run| jobs.join("runs").join(format!("{run}.json")).exists())
    };
    // What runs is seen whatever became of its manifest: somebody has to end it.
    visible.briefs.retain(|_, brief| brief.status == JobStatus::Running || has_run(brief));
    let needed: BTreeSet<JobId> = visible
        .briefs
        .values()
        .filter(|brief| brief.status.is_active())
        .flat_map(|brief| needed_by(brief, &visible))
        .collect();
    let mut active = visible.clone();
    active.briefs.retain(|id, brief| brief.status.is_active() || needed.contains(id));
    Expected { all, visible, active }
}

fn needed_by<'j>(brief: &'j Brief, jobs: &'j Jobs) -> impl Iterator<Item = JobId> + 'j {
    let makes = |other: &Brief, artifact: &Artifact| {
        other.schedule.artifacts.iter().any(|made| made.to_string() == artifact.to_string())
    };
    jobs.briefs.values().filter_map(move |other| {
        let is_of_run = brief.run.is_some() && brief.run == other.run;
        let is_before = brief.schedule.after.iter().any(|after| after.job_id == other.id);
        let is_producer = brief.schedule.dependencies.iter().any(|needed| {
            let artifact = &needed.artifact;
            let is_own_of_run = |artifact: &Artifact| {
                let is_of_run = |job: &&Brief| brief.run.is_some() && brief.run == job.run;
                jobs.briefs.values().filter(is_of_run).any(|job| job.schedule.artifacts.contains(artifact))
            };
            match artifact {
                Artifact::CommandPatch { job_id } if other.id.as_str() == job_id => true,
                Artifact::Custom { .. } if is_own_of_run(artifact) => false,
                _ => makes(other, artifact),
            }
        });
        (is_of_run || is_before || is_producer).then(|| other.id.clone())
    })
}
