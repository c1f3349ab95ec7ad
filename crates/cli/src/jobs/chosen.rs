//! The jobs that a command is about, and no others: of a long history only what is shown is read.

use std::collections::BTreeMap;

use tidewheel_core::job::{JobId, JobStatus, RunId};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::{FindError, ListAsk, find, find_id, find_run_id};
use tidewheel_store::jobs::{Glance, JobStore as _, Jobs, Survey};

use super::opened::{Opened, damaged, unfit, unfound};
use crate::error::CommandError;
use crate::output;

impl Opened {
    /// Looks at all jobs, and warns of those that cannot be read.
    pub(crate) fn survey(&self) -> Result<Survey, CommandError> {
        let survey = self.store().survey().map_err(|error| unfit(&error))?;
        for (id, error) in &survey.unreadable {
            output::warning(&format!("unable to load background job {id}: {error}"));
        }
        Ok(survey)
    }

    /// Returns the run that a text means, and its jobs with all that they wait for.
    pub(crate) fn run(&self, text: &str) -> Result<(RunId, Jobs), CommandError> {
        let survey = self.survey()?;
        run_with_needs(&survey, &survey.glances(), text)
    }

    /// Returns the job that a text means, and the jobs from which it can be told why it does not run: the noteworthy
    /// ones, those of its run, those that speak of it, and all that these wait for.
    pub(crate) fn around_job(&self, text: &str) -> Result<(JobId, Jobs), CommandError> {
        if let Ok(id) = JobId::new(text) {
            // Whoever names one that cannot be read is told why.
            self.store().record(&id).map_err(|error| super::opened::unreadable(text, &error))?;
        }
        let survey = self.survey()?;
        let all = survey.glances();
        let id = job_among(&survey, &all, text)?;
        let run = all.iter().find(|glance| glance.id == id.as_str()).and_then(|glance| glance.run);
        let is_wanted = |glance: &Glance<'_>| {
            let is_of_run = run.is_some() && glance.run == run;
            is_of_run || glance.is_noteworthy() || glance.speaks_of(id.as_str())
        };
        let wanted = all.iter().copied().filter(is_wanted).collect();
        let jobs = survey.read_with_needs(&all, wanted);
        Ok((id, jobs))
    }

    /// Returns the run that a text means, and the jobs from which it can be told why it does not go on.
    pub(crate) fn around_run(&self, text: &str) -> Result<(RunId, Jobs), CommandError> {
        let survey = self.survey()?;
        let all = survey.glances();
        let run = run_among(&all, text)?;
        let is_wanted = |glance: &Glance<'_>| glance.run == Some(run.as_str()) || glance.is_noteworthy();
        let wanted = all.iter().copied().filter(is_wanted).collect();
        let jobs = survey.read_with_needs(&all, wanted);
        Ok((run, jobs))
    }

    /// Returns the run that a text means among those that have a manifest, whether any of their jobs is left or not.
    pub(crate) fn kept_run(&self, text: &str) -> Option<RunId> {
        let runs = self.store().runs().ok()?;
        let id = find_run_id(runs.iter().map(RunId::as_str), text).ok()?;
        RunId::new(id).ok()
    }

    /// Returns the id of the job that a text means.
    pub(crate) fn find(&self, text: &str) -> Result<JobId, CommandError> {
        // What is an id as a whole is found without looking at all the others.
        if let Ok(id) = JobId::new(text)
            && self.store().record(&id).map_err(|error| super::opened::unreadable(text, &error))?.is_some()
        {
            return Ok(id);
        }
        let survey = self.store().survey().map_err(|error| unfit(&error))?;
        job_among(&survey, &survey.glances(), text)
    }
}

/// Returns the jobs of a list, and where those stand that it leaves out.
pub(crate) fn listed(survey: &Survey, all: &[Glance<'_>], ask: ListAsk) -> (Jobs, Vec<JobStatus>) {
    let (hidden, shown): (Vec<_>, Vec<_>) = all.iter().copied().partition(|glance| ask.hides(glance.status));
    (survey.read(shown), hidden.into_iter().map(|glance| glance.status).collect())
}

/// Returns the jobs that are not over, or did not end well, with all that they wait for.
pub(crate) fn noteworthy(survey: &Survey, all: &[Glance<'_>]) -> Jobs {
    let noteworthy = all.iter().copied().filter(Glance::is_noteworthy).collect();
    survey.read_with_needs(all, noteworthy)
}

/// Returns the run that a text means, and its jobs with all that they wait for.
pub(crate) fn run_with_needs(
    survey: &Survey,
    all: &[Glance<'_>],
    text: &str,
) -> Result<(RunId, Jobs), CommandError> {
    let run = run_among(all, text)?;
    let of_run = all.iter().copied().filter(|glance| glance.run == Some(run.as_str())).collect();
    Ok((run, survey.read_with_needs(all, of_run)))
}

/// Returns the job that a text means, and all jobs that it may have to do with.
pub(crate) fn neighbours(
    survey: &Survey,
    all: &[Glance<'_>],
    text: &str,
) -> Result<(JobId, Jobs), CommandError> {
    let id = job_among(survey, all, text)?;
    let itself = all.iter().copied().filter(|glance| glance.id == id.as_str());
    let run = itself.clone().find_map(|glance| glance.run);
    let mut jobs = survey.read_around(all, run);
    // If it has to do with nobody, it is there all the same.
    jobs.briefs.append(&mut survey.read(itself.collect()).briefs);
    Ok((id, jobs))
}

/// Returns the runs of some jobs, newest first, each with its jobs.
pub(crate) fn by_run<'g, 's>(all: &'g [Glance<'s>]) -> Vec<(&'s str, Vec<&'g Glance<'s>>)> {
    let mut runs: BTreeMap<&str, Vec<&Glance<'_>>> = BTreeMap::new();
    for glance in all {
        if let Some(run) = glance.run {
            runs.entry(run).or_default().push(glance);
        }
    }
    let created = |jobs: &[&Glance<'_>]| jobs.iter().map(|job| job.created_at).min().unwrap_or_default();
    let mut runs: Vec<(Timestamp, &str, Vec<&Glance<'_>>)> =
        runs.into_iter().map(|(run, jobs)| (created(&jobs), run, jobs)).collect();
    runs.sort_by_key(|(created_at, _, _)| *created_at);
    runs.into_iter().rev().map(|(_, run, jobs)| (run, jobs)).collect()
}

fn run_among(all: &[Glance<'_>], text: &str) -> Result<RunId, CommandError> {
    let id = find_run_id(all.iter().filter_map(|glance| glance.run), text);
    let id = id.map_err(|error| unfound(&error))?;
    RunId::new(id).map_err(|_| unfound(&FindError::NoRun { text: text.to_owned() }))
}

fn job_among(survey: &Survey, all: &[Glance<'_>], text: &str) -> Result<JobId, CommandError> {
    let unknown = || FindError::NoJob { text: text.to_owned() };
    let found = match text.split_once('/') {
        Some((run, _)) => match find_run_id(all.iter().filter_map(|glance| glance.run), run) {
            Ok(run) => {
                let of_run = all.iter().copied().filter(|glance| glance.run == Some(run)).collect();
                find(&survey.read(of_run).briefs, text).map(|job| job.id.clone())
            }
            Err(FindError::NoJob { .. } | FindError::NoRun { .. }) => Err(unknown()),
            Err(error @ FindError::Ambiguous { .. }) => Err(error),
        },
        None => find_id(all.iter().map(|glance| (glance.id, glance.created_at)), text)
            .and_then(|id| JobId::new(id).map_err(|_| unknown())),
    };
    found.map_err(|error| match error {
        FindError::NoJob { .. } => unread_among(survey, text).unwrap_or_else(|| unfound(&error)),
        FindError::NoRun { .. } | FindError::Ambiguous { .. } => unfound(&error),
    })
}

/// Returns the error of the job that a text means among those whose records cannot be read: all that is known of them is
/// their ids.
fn unread_among<'s>(survey: &'s Survey, text: &str) -> Option<CommandError> {
    let ids = survey.unreadable.keys().map(String::as_str);
    let found = match text.split_once('/') {
        Some((run, node)) => {
            let run_in = |id: &'s str| id.strip_prefix("wf-")?.strip_suffix(node)?.strip_suffix('-');
            find_run_id(ids.filter_map(run_in), run).map(|run| format!("wf-{run}-{node}"))
        }
        None => find_id(ids.map(|id| (id, Timestamp::default())), text).map(str::to_owned),
    };
    match found {
        Ok(id) => Some(damaged(&id, survey.unreadable.get(&id)?)),
        Err(error @ FindError::Ambiguous { .. }) => Some(unfound(&error)),
        Err(FindError::NoJob { .. } | FindError::NoRun { .. }) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tidewheel_core::job::{After, AfterPolicy, Artifact, Needed, Record};
    use tidewheel_core::view::jobs::{FlowAsk, FlowView, List, Schedule, ScheduleAsk};
    use tidewheel_store::jobs::Files;

    use super::*;
    use crate::jobs::{DirArguments, explained_job, explained_run};

    /// Numbers that look random and are always the same.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % bound
        }
    }

    /// Writes jobs in runs and without, that wait for each other in every way, and returns their ids.
    fn write_history(data: &std::path::Path, dice: &mut Dice) -> Vec<JobId> {
        let mut ids: Vec<JobId> = Vec::new();
        fs::create_dir_all(data.join("jobs/runs")).unwrap();
        for index in 0..90_usize {
            let run = format!("run_{:02}", dice.below(9));
            let is_of_run = dice.below(8) > 0;
            let node = format!("n-{index}");
            let id = if is_of_run { format!("wf-{run}-{node}") } else { format!("job-{index}") };
            let id = JobId::new(&id).unwrap();
            let mut record = Record::new(id.clone(), Timestamp::from_millis(1_000 + index as u64 / 2));
            record.child_args = vec!["true".to_owned()];
            record.status = match dice.below(3) {
                0 => JobStatus::ALL[dice.below(JobStatus::ALL.len())],
                _ => JobStatus::Succeeded,
            };
            if is_of_run {
                record.metadata.set("workflow_run_id", run.as_str());
                record.metadata.set("workflow_node_id", node.as_str());
                fs::write(data.join(format!("jobs/runs/{run}.json")), "{}").unwrap();
            }
            let own: Vec<&JobId> = ids.iter().filter(|id| id.as_str().contains(&run)).collect();
            if let Some(before) = (!own.is_empty()).then(|| own[dice.below(own.len())].clone()) {
                record.schedule.after.push(After { job_id: before, policy: AfterPolicy::Success });
            }
            if !ids.is_empty() && dice.below(9) == 0 {
                let job_id = ids[dice.below(ids.len())].clone();
                record.schedule.after.push(After { job_id, policy: AfterPolicy::Completion });
            }
            let thing =
                |key: usize| Artifact::Custom { type_id: "thing".to_owned(), key: format!("\"{key}") };
            match dice.below(10) {
                0 => record.schedule.artifacts.push(thing(dice.below(4))),
                1 => record.schedule.dependencies.push(Needed { artifact: thing(dice.below(5)) }),
                2 if !ids.is_empty() => {
                    let job_id = ids[dice.below(ids.len())].to_string();
                    record.schedule.dependencies.push(Needed { artifact: Artifact::CommandPatch { job_id } });
                }
                _ => {}
            }
            let directory = data.join("jobs").join(id.as_str());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("job.json"), record.to_json()).unwrap();
            ids.push(id);
        }
        // From now on there is an index, and the lines of most jobs are in it.
        Files::open(data).unwrap().turn().unwrap().active().unwrap();
        ids
    }

    fn schedule(jobs: &Jobs, focus: Option<&JobId>) -> (Value, Vec<String>) {
        let schedule = Schedule::of(&jobs.briefs, &ScheduleAsk { all: false, focus, max_depth: 3 });
        (json!(schedule.form(&|_| false)), schedule.dag(&|_| false))
    }

    #[test]
    fn what_is_read_of_a_history_shows_what_the_whole_of_it_would() {
        for seed in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let ids = write_history(&folder.path().join(".tidewheel"), &mut Dice(seed));
            let opened = Opened::open(&DirArguments { dir: Some(folder.path().to_owned()) }).unwrap();
            let survey = opened.survey().unwrap();
            let glances = survey.glances();
            let all = survey.jobs();
            assert_eq!(all.briefs.len(), ids.len());
            assert_eq!(schedule(&noteworthy(&survey, &glances), None), schedule(&all, None));
            for dismiss_failures in [false, true] {
                let ask = ListAsk { dismiss_failures, ..ListAsk::default() };
                let (jobs, left_out) = listed(&survey, &glances, ask);
                assert!(jobs.briefs.len() < ids.len());
                let said = |list: List<'_>| {
                    (list.outcome, list.hidden, list.jobs.into_iter().cloned().collect::<Vec<_>>())
                };
                assert_eq!(said(List::of(&jobs.briefs, left_out, ask)), said(List::of(&all.briefs, [], ask)));
            }
            for id in &ids {
                let (found, jobs) = neighbours(&survey, &glances, id.as_str()).unwrap();
                assert_eq!(schedule(&jobs, Some(&found)), schedule(&all, Some(id)), "{id}");
                let (found, jobs) = opened.around_job(id.as_str()).unwrap();
                let told = explained_job(&opened, jobs, &found).unwrap();
                let whole = explained_job(&opened, all.clone(), id).unwrap();
                assert_eq!(json!(told.why), json!(whole.why), "{id}");
            }
            for (run, _) in by_run(&survey.glances()) {
                let (run, jobs) = opened.run(run).unwrap();
                let drawn = |jobs: &Jobs| {
                    json!(FlowView::of(&FlowAsk { briefs: &jobs.briefs, run: &run, manifest: None }, &|_| {
                        false
                    }))
                };
                assert_eq!(drawn(&jobs), drawn(&all), "{run}");
                let (_, jobs) = opened.around_run(run.as_str()).unwrap();
                assert_eq!(
                    json!(explained_run(&opened, &jobs, &run)),
                    json!(explained_run(&opened, &all, &run)),
                    "{run}"
                );
            }
        }
    }
}
