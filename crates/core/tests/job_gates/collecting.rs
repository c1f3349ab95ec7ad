//! What is removed because it is old.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    Attic, CollectUnit, Collected, JobId, JobStatus, KeptRun, MANIFEST_VERSION, Manifest, ManifestNode,
    NodeId, RunId, collect, keeps,
};

use crate::world::{Job, Scene, at, custom, id, job, names, patch, scene};

const DAY: u64 = 86_400;

fn collected(scene: &Scene, runs: &[u128]) -> Collected {
    collected_beside(scene, runs, &[])
}

/// Collects while open jobs work in the worktrees of some.
fn collected_beside(scene: &Scene, runs: &[u128], in_use: &[&str]) -> Collected {
    let manifests: BTreeSet<RunId> = runs.iter().map(|bits| RunId::of_bits(*bits)).collect();
    let in_use: BTreeSet<JobId> = in_use.iter().map(|name| id(name)).collect();
    let (jobs, unreadable) = (&scene.jobs, &scene.unreadable);
    collect(&Attic { jobs, unreadable, manifests: &manifests, in_use: &in_use, days: 7, now: at(20 * DAY) })
}

fn gone(collected: &Collected) -> Vec<&str> {
    collected.jobs().map(JobId::as_str).collect()
}

fn runs_of(collected: &Collected) -> Vec<RunId> {
    collected.runs().cloned().collect()
}

fn ended(name: &str, days_ago: u64) -> Job {
    job(name).status(JobStatus::Succeeded).with(|job| job.finished_at = Some(at((20 - days_ago) * DAY)))
}

#[test]
fn j_93_what_ended_long_ago_is_removed_and_what_is_active_stays() {
    let mut scene = scene([ended("old", 8), ended("new", 6), job("active")]);
    scene.add(ended("failed", 9).status(JobStatus::Failed));
    let collected = collected(&scene, &[]);
    assert_eq!(gone(&collected), ["old", "failed"]);
    assert!(collected.kept.is_empty());
}

#[test]
fn j_94_without_an_end_the_beginning_counts() {
    let blocked = job("blocked").status(JobStatus::BlockedByDependency);
    assert_eq!(gone(&collected(&scene([blocked]), &[])), ["blocked"]);
}

#[test]
fn j_95_and_97_what_active_jobs_need_stays() {
    let scene = scene([
        ended("before", 9),
        ended("maker", 9).makes(custom("k")),
        ended("patched", 9),
        ended("unrelated", 9),
        job("x").after("before").needs(custom("k")).needs(patch("patched")),
        ended("after-only-the-old", 9).after("unrelated"),
    ]);
    let collected = collected(&scene, &[]);
    assert_eq!(gone(&collected), ["unrelated", "after-only-the-old"]);
    assert_eq!(names(&collected.kept), ["before", "maker", "patched"]);
}

#[test]
fn j_96_a_run_goes_as_a_whole_or_not_at_all() {
    let scene = scene([
        ended("a", 9).run(1),
        ended("b", 9).run(1),
        ended("c", 9).run(2),
        ended("d", 1).run(2),
        ended("e", 9).run(3),
        job("f").run(3),
        ended("alone", 9).makes(custom("k")),
    ]);
    let collected = collected(&scene, &[1, 2, 3, 4]);
    assert_eq!(gone(&collected), ["a", "b", "alone"]);
    assert_eq!(runs_of(&collected), [RunId::of_bits(1), RunId::of_bits(4)]);
    assert_eq!(names(&collected.kept), ["c", "e"], "a job of their run stays");
    assert_eq!(collected.units[1].unmarks, [(id("alone"), custom("k"))]);
}

#[test]
fn the_owner_of_a_worktree_in_which_an_open_job_works_stays() {
    let scene = scene([ended("a", 9).run(1), ended("b", 9).run(1), ended("alone", 9)]);
    let collected = collected_beside(&scene, &[1], &["b"]);
    assert_eq!((gone(&collected), names(&collected.kept)), (vec!["alone"], vec!["a", "b"]));
    assert_eq!(names(&collected_beside(&scene, &[1], &["alone"]).kept), ["alone"]);
}

#[test]
fn a_run_that_was_never_enqueued_completely_goes_after_a_day() {
    let mut scene = scene([job("half").run(1), job("young").run(2), ended("needed-by-half", 9)]);
    scene.change("half", |job| job.created_at = at(19 * DAY));
    scene.change("young", |job| job.created_at = at(19 * DAY + 1));
    scene.change("half", |job| {
        job.schedule.after.push(tidewheel_core::job::After {
            job_id: id("needed-by-half"),
            policy: tidewheel_core::job::AfterPolicy::Success,
        });
    });
    let collected = collected(&scene, &[]);
    assert_eq!(gone(&collected), ["needed-by-half", "half"]);
    assert_eq!(collected.runs().count(), 0, "there is no manifest to remove");
}

#[test]
fn a_run_with_a_record_that_cannot_be_read_stays() {
    let mut scene = scene([ended("a", 9).run(1)]);
    scene.unreadable = BTreeMap::from([(format!("wf-{}-x", RunId::of_bits(1)), "no JSON".to_owned())]);
    let collected = collected(&scene, &[1, 2]);
    assert_eq!((runs_of(&collected), names(&collected.kept)), (vec![RunId::of_bits(2)], vec!["a"]));
}

#[test]
fn a_job_that_will_be_rewound_is_not_old() {
    let goes_back =
        ended("a", 9).run(1).with(|job| job.goes_back = tidewheel_core::job::NodeId::new("n").ok());
    assert_eq!(collected(&scene([goes_back]), &[1]), Collected::default());
}

/// The manifest of a run that was enqueued so many days ago.
fn manifest(run: u128, nodes: &[&str], days_ago: u64) -> Manifest {
    let node = |name: &&str| {
        let node = serde_json::json!({
            "job_id": name, "kind": "step", "uses": "cap.env.shell.command.run", "policy": "",
        });
        (NodeId::new(name).unwrap(), serde_json::from_value::<ManifestNode>(node).unwrap())
    };
    Manifest {
        version: MANIFEST_VERSION,
        run_id: RunId::of_bits(run),
        workflow_template_selector: String::new(),
        workflow_template_source: None,
        workflow_template_id: String::new(),
        workflow_template_version: String::new(),
        policy_snapshot_hash: String::new(),
        created_at: at((20 - days_ago) * DAY),
        params: BTreeMap::new(),
        nodes: nodes.iter().map(node).collect(),
    }
}

/// Asks why run 1 stays; these jobs have directories.
fn kept_by(jobs: &Scene, manifest: &Manifest, directories: &[&str]) -> Option<KeptRun> {
    let attic = Attic {
        jobs: &jobs.jobs,
        unreadable: &jobs.unreadable,
        manifests: &BTreeSet::from([RunId::of_bits(1)]),
        in_use: &BTreeSet::new(),
        days: 7,
        now: at(20 * DAY),
    };
    let units: Vec<CollectUnit> = collect(&attic).units;
    keeps(&attic, &units[0], manifest, |id| directories.contains(&id.as_str()))
}

/// The manifest of a run whose records were lost an hour ago was removed at once, and the run was not listed any more.
#[test]
fn a_run_without_jobs_stays_until_it_is_old() {
    let none = scene([]);
    assert_eq!(kept_by(&none, &manifest(1, &["a"], 6), &[]), Some(KeptRun::Young));
    assert_eq!(kept_by(&none, &manifest(1, &["a"], 7), &[]), None);
}

#[test]
fn a_run_with_a_job_whose_record_is_lost_stays_however_old_it_is() {
    let lost = Some(KeptRun::Lost(id("b")));
    let one = scene([ended("a", 9).run(1)]);
    assert_eq!(kept_by(&one, &manifest(1, &["a", "b"], 9), &["a", "b"]), lost);
    assert_eq!(kept_by(&scene([]), &manifest(1, &["b"], 9), &["b"]), lost);
    assert_eq!(kept_by(&one, &manifest(1, &["a", "b"], 9), &["a"]), None, "its directory is gone, too");
}

#[test]
fn the_manifest_of_another_run_keeps_the_place_that_it_was_copied_to() {
    let copied = manifest(2, &[], 19);
    assert_eq!(kept_by(&scene([]), &copied, &[]), Some(KeptRun::Foreign(RunId::of_bits(2))));
}
