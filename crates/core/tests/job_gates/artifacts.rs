//! Jobs that need what others make.

use tidewheel_core::job::{Answer, Artifact, JobStatus, MissingProducer, Question, WaitKind};

use crate::world::{custom, id, job, names, patch, question_of, scene};

fn kinds() -> Vec<Artifact> {
    let (slug, branch) = (|| "alpha".to_owned(), || "draft/alpha".to_owned());
    vec![
        Artifact::PlanBranch { slug: slug(), branch: branch() },
        Artifact::PlanDoc { slug: slug(), branch: branch() },
        Artifact::PlanCommits { slug: slug(), branch: branch() },
        Artifact::TargetBranch { name: "main".into() },
        Artifact::MergeSentinel { slug: slug() },
        patch("a-artifact"),
        custom("k1"),
    ]
}

#[test]
fn c_24_what_is_there_is_enough_whoever_should_have_made_it() {
    for artifact in kinds() {
        let mut scene = scene([
            job("p").makes(artifact.clone()).status(JobStatus::Failed),
            job("x").needs(artifact.clone()),
        ])
        .has(&artifact);
        assert_eq!(names(&scene.settle().starts), ["x"], "{artifact}");
    }
}

#[test]
fn c_25_a_missing_artifact_with_an_active_producer_is_waited_for() {
    for artifact in kinds() {
        for status in JobStatus::ALL.iter().filter(|status| status.is_active()) {
            let producer = job("p").makes(artifact.clone()).after("root").status(*status);
            let root = job("root").status(JobStatus::Running);
            let mut scene = scene([root, producer, job("x").needs(artifact.clone())]);
            scene.settle();
            assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps, "{artifact}");
            let detail = format!("waiting on {artifact}");
            assert_eq!(scene.wait("x"), Some((WaitKind::Dependencies, detail.as_str())));
        }
    }
}

#[test]
fn c_26_to_30_a_missing_artifact_without_an_active_producer_blocks() {
    use JobStatus::{BlockedByApproval, BlockedByDependency, Cancelled, Failed, Skipped, Succeeded};
    for artifact in kinds() {
        for (producers, detail) in [
            (vec![Succeeded], "missing"),
            (vec![Failed, Succeeded], "missing"),
            (vec![], "missing"),
            (vec![Failed], "dependency failed for"),
            (
                vec![Failed, Cancelled, BlockedByApproval, BlockedByDependency, Skipped],
                "dependency failed for",
            ),
        ] {
            let makers = producers
                .iter()
                .enumerate()
                .map(|(index, status)| job(&format!("p{index}")).makes(artifact.clone()).status(*status));
            let mut scene = scene(makers.chain([job("x").needs(artifact.clone())]));
            let settled = scene.settle();
            assert_eq!(scene.status("x"), JobStatus::BlockedByDependency, "{artifact} of {producers:?}");
            assert_eq!(scene.detail("x"), format!("{detail} {artifact}"), "{producers:?}");
            assert!(!settled.watches);
        }
    }
}

#[test]
fn c_31_artifacts_are_judged_in_the_order_in_which_they_are_listed() {
    let mut scene = scene([
        job("p").makes(custom("z-left")).makes(custom("a-right")).status(JobStatus::Running),
        job("x").needs(custom("z-left")).needs(custom("a-right")),
    ]);
    scene.settle();
    assert_eq!(scene.detail("x"), "waiting on custom:acme.exec:z-left");
    assert_eq!(scene.asked.len(), 2, "all that a job needs is asked for at once");
}

#[test]
fn c_32_a_job_may_wait_for_somebody_who_makes_what_it_needs() {
    let wait = |job: crate::world::Job| job.with(|job| job.schedule.missing_producer = MissingProducer::Wait);
    for artifact in kinds() {
        let mut scene = scene([wait(job("x").needs(artifact.clone()))]);
        let settled = scene.settle();
        assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps);
        assert_eq!(scene.detail("x"), format!("awaiting producer for {artifact}"));
        assert!(settled.watches, "it may be made by hand");
        scene.add(job("p").makes(artifact.clone()).status(JobStatus::Running));
        scene.settle();
        assert_eq!(scene.detail("x"), format!("waiting on {artifact}"));
        scene.set("p", JobStatus::Succeeded);
        scene = scene.has(&artifact);
        assert_eq!(names(&scene.settle().starts), ["x"]);
        scene.truth.clear();
        scene.set("p", JobStatus::Failed);
        scene.settle();
        assert_eq!(scene.detail("x"), format!("dependency failed for {artifact}"));
    }
}

#[test]
fn c_37_a_patch_counts_as_there_when_its_job_succeeded() {
    let mut scene = scene([job("a").status(JobStatus::Succeeded), job("x").needs(patch("a"))]);
    assert_eq!(names(&scene.settle().starts), ["x"]);
}

#[test]
fn producers_of_the_same_run_win_for_custom_artifacts_only() {
    let marker = |of: Option<Vec<&str>>| Question::Marker {
        type_id: "acme.exec".into(),
        key: "k".into(),
        of: of.map(|ids| ids.into_iter().map(id).collect()),
    };
    let mut own = scene([
        job("other").makes(custom("k")).run(1).status(JobStatus::Succeeded),
        job("own").makes(custom("k")).run(2).status(JobStatus::Running),
        job("x").needs(custom("k")).run(2),
    ])
    .is(marker(None), Answer::Yes);
    own.settle();
    assert_eq!(own.detail("x"), "waiting on custom:acme.exec:k", "only the marker of its own run counts");
    own = own.is(marker(Some(vec!["own"])), Answer::Yes);
    assert_eq!(names(&own.settle().starts), ["x"]);

    let mut foreign = scene([
        job("other").makes(custom("k")).run(1).status(JobStatus::Succeeded),
        job("x").needs(custom("k")).run(2),
    ])
    .is(marker(None), Answer::Yes);
    assert_eq!(names(&foreign.settle().starts), ["x"], "nobody of its run makes it");

    let branch = Artifact::TargetBranch { name: "main".into() };
    let mut built_in = scene([
        job("own").makes(branch.clone()).run(2).status(JobStatus::Running),
        job("x").needs(branch.clone()).run(2),
    ])
    .has(&branch);
    assert_eq!(names(&built_in.settle().starts), ["x"], "a branch exists or not");
}

#[test]
fn a_producer_that_is_blocked_in_the_pass_blocks_its_consumers_in_the_pass() {
    let mut scene = scene([
        job("z").status(JobStatus::Failed),
        job("p1").makes(custom("k")).after("z"),
        job("p2").makes(custom("k")).after("p1"),
        job("a-user").needs(custom("k")).makes(custom("next")),
        job("a-last").needs(custom("next")),
    ]);
    scene.settle();
    assert_eq!(scene.detail("a-user"), "dependency failed for custom:acme.exec:k");
    assert_eq!(scene.detail("a-last"), "dependency failed for custom:acme.exec:next");
}

#[test]
fn nobody_waits_for_itself() {
    let mut scene = scene([job("x").needs(custom("k")).makes(custom("k"))]);
    scene.settle();
    assert_eq!(scene.detail("x"), "missing custom:acme.exec:k");
}

#[test]
fn a_question_that_nobody_could_answer_lets_only_its_own_job_wait() {
    let branch = Artifact::TargetBranch { name: "main".into() };
    let mut scene = scene([job("x").needs(branch.clone()), job("y")])
        .is(question_of(&branch), Answer::Failed("git is broken".into()));
    let settled = scene.settle();
    assert_eq!(scene.detail("x"), "waiting on target_branch:main");
    assert!(settled.watches);
    assert_eq!(names(&settled.starts), ["y"]);
}

#[test]
fn a_name_that_could_leave_the_repository_is_never_asked_for() {
    let hostile = Artifact::MergeSentinel { slug: "../../x".into() };
    let mut scene = scene([job("x").needs(hostile)]);
    scene.settle();
    assert_eq!(scene.detail("x"), "missing merge_sentinel:../../x");
    assert!(scene.asked.is_empty());
}

#[test]
fn only_what_may_be_made_by_hand_is_watched() {
    let branch = Artifact::TargetBranch { name: "main".into() };
    for (artifact, watches) in [(branch, true), (custom("k"), false)] {
        let mut scene =
            scene([job("p").makes(artifact.clone()).status(JobStatus::Running), job("x").needs(artifact)]);
        assert_eq!(scene.settle().watches, watches);
    }
}
