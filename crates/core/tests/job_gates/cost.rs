//! Large graphs: whoever did anything with the square of their size would not end in a minute.

use tidewheel_core::job::{AfterPolicy, Brief, JobStatus, rewind};

use crate::world::{Job, Scene, at, custom, id, job, scene};

const MANY: usize = 40_000;

fn many(jobs: impl IntoIterator<Item = Job>) -> Scene {
    let mut scene = scene([]);
    for (index, Job(mut brief)) in jobs.into_iter().enumerate() {
        brief.created_at = at(u64::try_from(index).unwrap());
        scene.jobs.insert(brief.id.clone(), brief);
    }
    scene
}

fn name(index: usize) -> String {
    format!("j{index:06}")
}

fn all(scene: &Scene, from: usize, is: impl Fn(&Brief) -> bool) -> bool {
    scene.jobs.values().skip(from).all(is)
}

#[test]
fn a_long_chain_is_blocked_in_one_pass() {
    let root = job(&name(0)).status(JobStatus::Failed);
    let mut scene = many([root].into_iter().chain((1..MANY).map(|n| job(&name(n)).after(&name(n - 1)))));
    scene.settle();
    assert!(all(&scene, 1, |job| job.status == JobStatus::BlockedByDependency));
    assert_eq!(rewind(&scene.jobs, &id(&name(0))).unwrap().set.len(), MANY);
}

#[test]
fn a_long_chain_against_the_order_of_the_ids_is_blocked_in_one_pass() {
    let root = job(&name(MANY)).status(JobStatus::Failed);
    let mut scene = many([root].into_iter().chain((0..MANY).map(|n| job(&name(n)).after(&name(n + 1)))));
    scene.settle();
    assert_eq!(scene.status(&name(0)), JobStatus::BlockedByDependency);
}

#[test]
fn a_long_chain_of_jobs_that_cannot_start_ends_in_one_pass() {
    let broken = |n: usize| job(&name(n)).with(|job| job.is_runnable = false);
    let chain = (1..MANY).map(|n| broken(n).after_with(&name(n - 1), AfterPolicy::Completion));
    let mut scene = many([broken(0)].into_iter().chain(chain));
    let settled = scene.settle();
    assert_eq!(settled.outcomes.len(), MANY);
}

#[test]
fn a_job_after_very_many_is_judged_once_for_each() {
    let broken = (0..MANY).map(|n| job(&name(n)).with(|job| job.is_runnable = false));
    let mut join = job("z-join");
    for n in 0..MANY {
        join = join.after_with(&name(n), AfterPolicy::Completion);
    }
    let mut scene = many(broken.chain([join]));
    assert_eq!(scene.settle().starts.len(), 1);
}

#[test]
fn very_many_makers_and_users_of_one_artifact_are_no_trouble() {
    let half = MANY / 2;
    let makers = (0..half).map(|n| job(&name(n)).makes(custom("k")).run(1).after("bad"));
    let users = (half..MANY).map(|n| job(&name(n)).needs(custom("k")).run(1));
    let mut scene = many([job("bad").status(JobStatus::Failed)].into_iter().chain(makers).chain(users));
    scene.settle();
    assert_eq!(scene.detail(&name(half)), "dependency failed for custom:acme.exec:k");
    assert_eq!(rewind(&scene.jobs, &id(&name(0))).unwrap().set.len(), 1 + half);
}

#[test]
fn very_many_runs_may_make_the_same_artifact() {
    let half = MANY / 2;
    let run = |n: usize| u128::try_from(n).unwrap();
    let makers =
        (0..half).map(|n| job(&format!("m{n:06}")).makes(custom("k")).run(run(n)).status(JobStatus::Running));
    let users = (0..half).map(|n| job(&format!("u{n:06}")).needs(custom("k")).run(run(n)));
    let mut scene = many(makers.chain(users));
    scene.settle();
    assert_eq!(scene.detail("u000000"), "waiting on custom:acme.exec:k");
    assert_eq!(rewind(&scene.jobs, &id("u000007")).unwrap().set.len(), 1);
}

#[test]
fn very_many_jobs_may_want_one_lock() {
    let mut scene = many((0..MANY).map(|n| job(&name(n)).exclusive("k")));
    assert_eq!(scene.settle().starts.len(), 1);
    assert_eq!(scene.status(&name(1)), JobStatus::WaitingOnLocks);
}
