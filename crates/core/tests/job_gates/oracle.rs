//! Random graphs of jobs, settled in one pass and by a naive repetition of single steps: both must agree.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    AfterPolicy, Approval, ApprovalState, Artifact, Brief, JobId, JobStatus, MissingProducer,
};
use tidewheel_testkit::Dice;

use crate::world::{Job, Scene, at, custom, id, job, scene};

#[test]
fn one_pass_finds_what_single_steps_find() {
    let (mut ended, mut waited, mut started) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut dice = Dice::new(seed);
        let count = 2 + dice.below(14);
        let mut scene = scene([]);
        scene.jobs = random_jobs(&mut dice, count);
        for made in
            scene.jobs.values().flat_map(|job| job.schedule.artifacts.iter().map(move |made| (job, made)))
        {
            if dice.chance(25) {
                scene.marks.insert((made.0.id.clone(), made.1.clone()));
            }
        }
        scene.unreadable.insert("unreadable".into(), "no JSON".into());
        let (expected, starts) = naive(&scene);
        let settled = scene.settle();
        assert_eq!(settled.starts.iter().cloned().collect::<BTreeSet<_>>(), starts, "seed {seed}");
        for (id, (status, detail)) in &expected {
            let job = &scene.jobs[id];
            let found = job.schedule.wait_reason.as_ref().map_or("", |reason| reason.detail.as_str());
            assert_eq!((job.status, found), (*status, detail.as_str()), "seed {seed}, job {id}");
            ended += usize::from(status.is_terminal());
            waited += usize::from(status.is_active());
        }
        started += starts.len();
        // The starts are as they were; all else is settled.
        let again = scene.settle();
        assert!(again.changed.is_empty(), "seed {seed}: {:?}", again.changed);
    }
    assert!(ended > 3_000 && waited > 1_000 && started > 1_000, "{ended} {waited} {started}");
}

/// Returns jobs with edges of all kinds between them, some of which lead in circles or nowhere.
pub(crate) fn random_jobs(dice: &mut Dice, count: usize) -> BTreeMap<JobId, Brief> {
    let mut ids: Vec<usize> = (0..count).collect();
    dice.shuffle(&mut ids);
    let name = |index: usize| format!("j{:02}", ids[index]);
    let mut jobs = BTreeMap::new();
    for index in 0..count {
        let mut one = job(&name(index));
        for _ in 0..dice.below(4) {
            let policy = match dice.below(10) {
                0 => AfterPolicy::Failed,
                1 => AfterPolicy::Blocked,
                2 => AfterPolicy::Failure,
                3 => AfterPolicy::Completion,
                4 => AfterPolicy::Cancelled,
                _ => AfterPolicy::Success,
            };
            one = match dice.below(40) {
                0 => one.after_with("ghost", policy),
                1 => one.after_with("unreadable", policy),
                2 => one.after_with(&name(dice.below(count)), policy),
                _ if index > 0 => one.after_with(&name(dice.below(index)), policy),
                _ => one,
            };
        }
        if dice.chance(40) {
            one = one.makes(artifact(dice));
        }
        if dice.chance(35) {
            one = one.needs(artifact(dice));
            if dice.chance(40) {
                one = one.needs(artifact(dice));
            }
        }
        if dice.chance(60) {
            one = one.run(u128::from(dice.chance(50)));
        }
        if dice.chance(10) {
            let state = if dice.chance(50) { ApprovalState::Pending } else { ApprovalState::Rejected };
            one = one.approval(Approval { state, ..Approval::pending("x", at(0)) });
        }
        let status = if dice.chance(55) {
            JobStatus::Queued
        } else {
            JobStatus::ALL[dice.below(JobStatus::ALL.len())]
        };
        let Job(mut brief) = one.status(status);
        brief.is_runnable = dice.chance(80);
        brief.created_at = at(dice.roll() % 5);
        if dice.chance(20) {
            brief.schedule.missing_producer = MissingProducer::Wait;
        }
        jobs.insert(brief.id.clone(), brief);
    }
    jobs
}

fn artifact(dice: &mut Dice) -> Artifact {
    match dice.below(4) {
        0 => Artifact::TargetBranch { name: "main".into() },
        1 => custom("k1"),
        2 => custom("k2"),
        _ => custom("k3"),
    }
}

/// Tells whether one job leads directly to another, by the words of the rule.
pub(crate) fn leads_to(jobs: &BTreeMap<JobId, Brief>, from: &Brief, to: &Brief) -> bool {
    to.schedule.after.iter().any(|after| after.job_id == from.id)
        || to.schedule.dependencies.iter().any(|need| makers(jobs, to, &need.artifact).contains(&from.id))
}

/// Returns who makes an artifact, as far as that counts for a job.
fn makers(jobs: &BTreeMap<JobId, Brief>, job: &Brief, artifact: &Artifact) -> BTreeSet<JobId> {
    let all = jobs.values().filter(|maker| maker.schedule.artifacts.contains(artifact));
    let own: BTreeSet<JobId> = all
        .clone()
        .filter(|maker| maker.run.is_some() && maker.run == job.run)
        .map(|maker| maker.id.clone())
        .collect();
    if matches!(artifact, Artifact::Custom { .. }) && !own.is_empty() {
        return own;
    }
    all.map(|maker| maker.id.clone()).collect()
}

type Standing = (JobStatus, String);

/// Judges every job by how all stood before, and again until nothing changes. Returns where those stand that do not start.
fn naive(scene: &Scene) -> (BTreeMap<JobId, Standing>, BTreeSet<JobId>) {
    let mut now: BTreeMap<JobId, Standing> =
        scene.jobs.iter().map(|(id, job)| (id.clone(), (job.status, String::new()))).collect();
    loop {
        let before = now.clone();
        let mut starts = BTreeSet::new();
        for (id, job) in &scene.jobs {
            if before[id].0.is_terminal() || job.status == JobStatus::Running {
                continue;
            }
            match judge(scene, &before, job) {
                Some(standing) => {
                    now.insert(id.clone(), standing);
                }
                None if !job.is_runnable => {
                    now.insert(id.clone(), (JobStatus::Failed, "missing child args".into()));
                }
                None => {
                    starts.insert(id.clone());
                    now.insert(id.clone(), (JobStatus::Queued, String::new()));
                }
            }
        }
        if now == before {
            now.retain(|id, _| !starts.contains(id));
            return (now, starts);
        }
    }
}

fn judge(scene: &Scene, stands: &BTreeMap<JobId, Standing>, job: &Brief) -> Option<Standing> {
    use AfterPolicy::{Completion, Success};
    let blocked = |detail: String| Some((JobStatus::BlockedByDependency, detail));
    let waits = |detail: String| Some((JobStatus::WaitingOnDeps, detail));
    let skipped =
        |id: &JobId, status| Some((JobStatus::Skipped, format!("not needed after job {id} ({status})")));
    let mut afters = job.schedule.after.clone();
    afters.sort();
    let is_handler = |policy| !matches!(policy, Success | Completion);
    let status = |id: &JobId| stands.get(id).map(|(status, _)| *status);
    let is_called = afters.iter().any(|after| {
        is_handler(after.policy)
            && status(&after.job_id).is_some_and(|end| end.is_terminal() && after.policy.is_met_by(end))
    });
    let (mut not_called_by, mut broken) = (None, None);
    for after in afters.iter().filter(|after| !(is_handler(after.policy) && is_called)) {
        let id = &after.job_id;
        match status(id) {
            None => {
                let detail = if scene.unreadable.contains_key(id.as_str()) {
                    format!("scheduler data error for job dependency {id}: no JSON")
                } else {
                    format!("missing job dependency {id}")
                };
                if !is_handler(after.policy) {
                    return blocked(detail);
                }
                // Another one may still call it.
                broken.get_or_insert(detail);
            }
            Some(end) if end.is_active() => return waits(format!("waiting on job {id}")),
            Some(end) if after.policy.is_met_by(end) => {}
            Some(end) if is_handler(after.policy) => not_called_by = Some((id, end)),
            Some(JobStatus::Skipped) if scene.jobs[id].run == job.run => {
                return skipped(id, JobStatus::Skipped);
            }
            // A failure that another run's policy skips keeps no run from its work.
            Some(JobStatus::Skipped) if scene.jobs[id].exit_code.is_some() => {}
            Some(end) => return blocked(format!("dependency failed for job {id} ({end})")),
        }
    }
    if let Some(detail) = broken {
        return blocked(detail);
    }
    if let Some((id, end)) = not_called_by {
        return skipped(id, end);
    }
    for need in &job.schedule.dependencies {
        let artifact = &need.artifact;
        let mut makers = makers(&scene.jobs, job, artifact);
        let is_custom = matches!(artifact, Artifact::Custom { .. });
        let is_own = makers.iter().all(|maker| job.run.is_some() && scene.jobs[maker].run == job.run);
        let counts = |maker: &JobId| makers.is_empty() || !is_own || makers.contains(maker);
        let is_there = is_custom && scene.marks.iter().any(|(maker, made)| made == artifact && counts(maker));
        if is_there {
            continue;
        }
        makers.remove(&job.id);
        let ends: Vec<JobStatus> = makers.iter().filter_map(status).collect();
        return if ends.iter().any(|end| end.is_active()) {
            waits(format!("waiting on {artifact}"))
        } else if makers.is_empty() && job.schedule.missing_producer == MissingProducer::Wait {
            waits(format!("awaiting producer for {artifact}"))
        } else if makers.is_empty() || ends.contains(&JobStatus::Succeeded) {
            blocked(format!("missing {artifact}"))
        } else {
            blocked(format!("dependency failed for {artifact}"))
        };
    }
    match job.schedule.approval.as_ref().map(|approval| approval.state) {
        None | Some(ApprovalState::Approved) => None,
        Some(ApprovalState::Pending) => {
            Some((JobStatus::WaitingOnApproval, "awaiting human approval".to_owned()))
        }
        Some(ApprovalState::Rejected) => Some((JobStatus::BlockedByApproval, "approval rejected".to_owned())),
    }
}

#[test]
fn the_naive_steps_know_a_chain() {
    let mut chain = scene([job("a").status(JobStatus::Failed), job("b").after("a"), job("c").after("b")]);
    let (expected, _) = naive(&chain);
    assert_eq!(expected[&id("c")].1, "dependency failed for job b (blocked_by_dependency)");
    chain.settle();
    assert_eq!(chain.detail("c"), expected[&id("c")].1);
}
