//! What is rewound when a job is done again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tidewheel_core::job::{
    Approval, ApprovalState, Artifact, Brief, Cause, Cleanup, JobId, JobStatus, Lock, LockMode, Metadata,
    Needed, Record, WaitKind, WaitReason, reset, rewind, sentinels, start,
};
use tidewheel_testkit::Dice;

use crate::world::{Job, at, custom, id, job, names, scene};

fn by(actor: &str) -> Cause<'_> {
    Cause { by: actor, is_loop: false, not_before: None, asks_first: None, at: at(500) }
}

fn h_71() -> crate::world::Scene {
    let plain = |job: Job| job.status(JobStatus::Succeeded);
    scene([
        plain(job("p")),
        job("a").after("p").status(JobStatus::Failed),
        job("z-b").after("a").makes(custom("k")).status(JobStatus::BlockedByDependency),
        job("c").needs(custom("k")).status(JobStatus::BlockedByDependency),
        plain(job("d")),
    ])
}

#[test]
fn h_71_a_retry_takes_all_that_is_after_it_or_needs_what_it_makes() {
    let scene = h_71();
    let plan = rewind(&scene.jobs, &id("a")).unwrap();
    assert_eq!(names(&plan.set), ["a", "z-b", "c"]);
    assert_eq!(names(&plan.last_successful_point), ["p"]);
    let plan = rewind(&scene.jobs, &id("c")).unwrap();
    assert_eq!((names(&plan.set), plan.last_successful_point), (vec!["c"], vec![]));
}

#[test]
fn h_71_the_root_comes_first_even_if_it_was_enqueued_last() {
    let mut scene =
        scene([job("b").after("root"), job("c").after("root"), job("root").status(JobStatus::Failed)]);
    scene.change("c", |job| job.created_at = at(0));
    assert_eq!(names(&rewind(&scene.jobs, &id("root")).unwrap().set), ["root", "b", "c"]);
}

#[test]
fn the_makers_of_what_the_root_needs_are_its_last_successful_point_too() {
    let mut scene = scene([
        job("m").makes(custom("k")).run(1).status(JobStatus::Succeeded),
        job("other").makes(custom("k")).run(2).status(JobStatus::Succeeded),
        job("p").status(JobStatus::Succeeded),
        job("bad").status(JobStatus::Failed),
        job("x").run(1).needs(custom("k")).after("p").after("bad"),
    ]);
    assert_eq!(names(&rewind(&scene.jobs, &id("x")).unwrap().last_successful_point), ["m", "p"]);
    assert_eq!(names(&rewind(&scene.jobs, &id("m")).unwrap().set), ["m", "x"]);
    assert_eq!(names(&rewind(&scene.jobs, &id("other")).unwrap().set), ["other"], "x has a maker of its own");
    scene.change("x", |job| job.run = None);
    assert_eq!(names(&rewind(&scene.jobs, &id("other")).unwrap().set), ["other", "x"]);
}

#[test]
fn h_72_nothing_is_rewound_while_a_member_runs() {
    let mut scene = h_71();
    scene.set("c", JobStatus::Running);
    let error = rewind(&scene.jobs, &id("a")).unwrap_err().to_string();
    assert_eq!(error, "cannot retry while jobs are running in the retry set: c (running)");
    scene.set("z-b", JobStatus::Running);
    let error = rewind(&scene.jobs, &id("a")).unwrap_err().to_string();
    assert_eq!(error, "cannot retry while jobs are running in the retry set: z-b (running), c (running)");
}

fn ran() -> Record {
    let mut record = Record::new(id("a"), at(0));
    record.status = JobStatus::Failed;
    record.pid = Some(4_242);
    record.process_start_time = Some(1);
    record.started_at = Some(at(1));
    record.finished_at = Some(at(2));
    record.exit_code = Some(9);
    record.session_path = Some("sessions/x".into());
    record.outcome_path = Some(".tidewheel/jobs/a/outcome.json".into());
    record.schedule.wait_reason = Some(WaitReason::new(WaitKind::Locks, "waiting on locks"));
    record.schedule.waited_on = vec![WaitKind::Locks];
    record.schedule.not_before = Some(at(1));
    record.schedule.ready_at = Some(at(1));
    record.schedule.artifacts = vec![custom("k"), Artifact::TargetBranch { name: "main".into() }];
    for (name, value) in [
        ("workflow_node_attempt", json!(4)),
        ("workflow_node_outcome", json!("failed")),
        ("workflow_payload_refs", json!(["x"])),
        ("agent_exit_code", json!(3)),
        ("cancel_cleanup_status", json!("degraded")),
        ("cancel_cleanup_error", json!("x")),
        ("process_liveness_state", json!("stale_not_running")),
        ("policy_attempt", json!(2)),
        ("step_started_at", json!("2026-02-01T10:00:00Z")),
        ("workflow_loop_count", json!(1)),
        ("command_alias", json!("merge")),
        ("workflow_template_selector", json!("file:x")),
        ("worktree_owned", json!(true)),
        ("worktree_path", json!(".tidewheel/tmp-worktrees/x")),
        ("execution_root", json!(".tidewheel/tmp-worktrees/x")),
    ] {
        record.metadata.set(name, value);
    }
    record
}

#[test]
fn h_74_a_rewound_job_is_as_if_it_had_never_run() {
    let mut record = ran();
    let reset_to = reset(&mut record, &Cleanup::Skipped, by("anna"));
    let written: serde_json::Value = serde_json::from_str(&record.to_json()).unwrap();
    assert_eq!(written["status"], "queued");
    for name in [
        "pid",
        "process_start_time",
        "started_at",
        "finished_at",
        "exit_code",
        "session_path",
        "outcome_path",
    ] {
        assert_eq!(written[name], json!(null), "{name}");
    }
    for name in ["wait_reason", "waited_on", "not_before", "ready_at"] {
        assert_eq!(written["schedule"].get(name), None, "{name}");
    }
    let metadata = &written["metadata"];
    assert_eq!(metadata["workflow_node_attempt"], 5);
    for name in [
        "workflow_node_outcome",
        "workflow_payload_refs",
        "agent_exit_code",
        "cancel_cleanup_status",
        "cancel_cleanup_error",
        "process_liveness_state",
        "policy_attempt",
        "step_started_at",
        "workflow_loop_count",
        "retry_cleanup_error",
    ] {
        assert_eq!(metadata[name], json!(null), "{name}");
    }
    assert_eq!(metadata["command_alias"], "merge");
    assert_eq!(metadata["workflow_template_selector"], "file:x");
    assert_eq!(reset_to.unmarks, [custom("k")]);
    assert_eq!(reset_to.event.attempt, 4);
    start(&mut record, None, at(600));
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(5), "it is the fifth start");
}

#[test]
fn h_74_a_job_without_a_count_is_at_its_second_attempt() {
    let mut record = Record::new(id("a"), at(0));
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    assert_eq!(record.metadata.number(Metadata::NODE_ATTEMPT), Some(2));
}

#[test]
fn h_76_to_78_a_worktree_is_forgotten_only_when_it_is_gone() {
    for cleanup in [Cleanup::Done, Cleanup::Skipped] {
        let mut record = ran();
        reset(&mut record, &cleanup, by("anna"));
        assert_eq!(record.metadata.get(Metadata::WORKTREE_PATH), None);
        assert_eq!(record.metadata.get(Metadata::WORKTREE_OWNED), None);
        assert_eq!(record.metadata.text(Metadata::EXECUTION_ROOT), Some("."));
        assert_eq!(record.metadata.text(Metadata::RETRY_CLEANUP_STATUS), Some(cleanup.name()));
        assert_eq!(record.metadata.get(Metadata::RETRY_CLEANUP_ERROR), None);
    }
    let mut record = ran();
    reset(&mut record, &Cleanup::Degraded("refusing".into()), by("anna"));
    assert_eq!(record.metadata.text(Metadata::WORKTREE_PATH), Some(".tidewheel/tmp-worktrees/x"));
    assert_eq!(record.metadata.text(Metadata::EXECUTION_ROOT), Some(".tidewheel/tmp-worktrees/x"));
    assert_eq!(record.metadata.text(Metadata::RETRY_CLEANUP_STATUS), Some("degraded"));
    assert_eq!(record.metadata.text(Metadata::RETRY_CLEANUP_ERROR), Some("refusing"));
}

#[test]
fn h_80_merge_sentinels_of_the_set_are_found_wherever_they_are_named() {
    let with = |change: &dyn Fn(&mut Record)| {
        let mut record = Record::new(id("a"), at(0));
        change(&mut record);
        record
    };
    let sentinel = |slug: &str| Artifact::MergeSentinel { slug: slug.into() };
    let records = [
        with(&|r| r.schedule.artifacts = vec![sentinel("made")]),
        with(&|r| r.schedule.dependencies = vec![Needed { artifact: sentinel("needed") }]),
        with(&|r| {
            r.schedule.locks = vec![Lock { key: "merge_sentinel:locked".into(), mode: LockMode::Exclusive }];
        }),
        with(&|r| {
            r.metadata.set(Metadata::COMMAND_ALIAS, "merge");
            r.metadata.set("plan", "alpha");
        }),
        with(&|r| {
            r.metadata.set(Metadata::COMMAND_ALIAS, "draft");
            r.metadata.set("plan", "beta");
        }),
    ];
    let found = sentinels(&records, false).unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["alpha", "locked", "made", "needed"]);
    let error = sentinels(&records, true).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot retry merge-related jobs while Git has an in-progress merge/cherry-pick; run `git merge --abort` or \
         `git cherry-pick --abort` (or resolve/commit), then retry"
    );
    assert_eq!(
        sentinels(&records[4..], true),
        Ok(BTreeSet::new()),
        "jobs that are about no merge do not mind one"
    );
}

#[test]
fn h_82_an_approval_is_asked_for_again() {
    let mut record = ran();
    record.schedule.approval = Some(Approval {
        state: ApprovalState::Rejected,
        decided_at: Some(at(3)),
        decided_by: Some("bob".into()),
        reason: Some("no".into()),
        ..Approval::pending("enqueuer", at(0))
    });
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    assert_eq!(record.schedule.approval, Some(Approval::pending("anna", at(500))));

    let optional = Approval { required: false, ..Approval::pending("enqueuer", at(0)) };
    record.schedule.approval = Some(optional.clone());
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    assert_eq!(record.schedule.approval, Some(optional));

    record.schedule.approval = Some(Approval::pending("policy", at(0)));
    record.metadata.set(Metadata::PAUSED, false);
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    assert_eq!(record.schedule.approval, None, "only its policy had asked");
}

#[test]
fn h_73_and_83_what_was_reset_is_judged_again() {
    let mut record = ran();
    record.child_args = vec!["true".into()];
    record.schedule.dependencies =
        vec![Needed { artifact: Artifact::TargetBranch { name: "missing-retry-target".into() } }];
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    let mut scene = scene([Job(Brief::from(&record))]);
    scene.settle();
    assert_eq!(scene.detail("a"), "missing target_branch:missing-retry-target");
}

#[test]
fn h_85_a_job_that_nobody_knows_cannot_be_rewound() {
    assert_eq!(rewind(&BTreeMap::new(), &id("X")).unwrap_err().to_string(), "no background job X");
}

#[test]
fn a_job_that_never_started_is_still_not_due_before_its_time() {
    let mut record = Record::new(id("a"), at(0));
    record.schedule.not_before = Some(at(9_000));
    reset(&mut record, &Cleanup::Skipped, by("anna"));
    assert_eq!(record.schedule.not_before, Some(at(9_000)));
}

#[test]
fn the_retry_set_is_what_a_naive_search_finds() {
    for seed in 0..300 {
        let jobs = crate::oracle::random_jobs(&mut Dice::new(seed), 14);
        for root in jobs.keys() {
            let mut found: BTreeSet<JobId> = BTreeSet::from([root.clone()]);
            loop {
                let more: Vec<JobId> = jobs
                    .values()
                    .filter(|job| !found.contains(&job.id))
                    .filter(|job| {
                        found.iter().any(|before| crate::oracle::leads_to(&jobs, &jobs[before], job))
                    })
                    .map(|job| job.id.clone())
                    .collect();
                if more.is_empty() {
                    break;
                }
                found.extend(more);
            }
            let runs = found.iter().any(|id| jobs[id].status == JobStatus::Running);
            match rewind(&jobs, root) {
                Ok(plan) => {
                    assert!(!runs, "seed {seed}, root {root}");
                    assert_eq!(plan.set[0], *root);
                    assert_eq!(
                        plan.set.iter().cloned().collect::<BTreeSet<_>>(),
                        found,
                        "seed {seed}, root {root}"
                    );
                    let rest: Vec<_> = plan.set[1..].iter().map(|id| (jobs[id].created_at, id)).collect();
                    assert!(rest.is_sorted());
                }
                Err(_) => assert!(runs, "seed {seed}, root {root}"),
            }
        }
    }
}
