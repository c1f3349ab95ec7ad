//! Jobs after other jobs.

use tidewheel_core::job::{AfterPolicy, JobStatus, WaitKind};

use crate::world::{job, names, scene};

#[test]
fn b_11_to_13_an_active_predecessor_is_waited_for() {
    for status in JobStatus::ALL.iter().filter(|status| status.is_active()) {
        let mut scene = scene([
            job("root").status(JobStatus::Running).exclusive("k"),
            job("dep").status(*status).after("root"),
            job("x").after("dep"),
        ]);
        let settled = scene.settle();
        assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps, "{status}");
        assert_eq!(scene.wait("x"), Some((WaitKind::Dependencies, "waiting on job dep")));
        assert_eq!(scene.job("x").schedule.waited_on, [WaitKind::Dependencies]);
        assert!(!settled.watches && settled.wake_at.is_none(), "whoever ends tells us");
    }
}

#[test]
fn b_14_a_predecessor_that_succeeded_is_enough() {
    let mut scene = scene([job("dep").status(JobStatus::Succeeded), job("x").after("dep")]);
    let settled = scene.settle();
    assert_eq!(names(&settled.starts), ["x"]);
    assert!(settled.runs);
}

#[test]
fn b_15_a_predecessor_that_did_not_succeed_blocks() {
    for status in ["failed", "cancelled", "blocked_by_dependency", "blocked_by_approval"] {
        let mut scene =
            scene([job("dep-1").status(JobStatus::from_name(status).unwrap()), job("x").after("dep-1")]);
        scene.settle();
        assert_eq!(scene.status("x"), JobStatus::BlockedByDependency);
        assert_eq!(scene.detail("x"), format!("dependency failed for job dep-1 ({status})"));
    }
}

#[test]
fn b_16_a_predecessor_that_does_not_exist_blocks() {
    let mut scene = scene([job("x").after("ghost")]);
    scene.settle();
    assert_eq!(scene.status("x"), JobStatus::BlockedByDependency);
    assert_eq!(scene.detail("x"), "missing job dependency ghost");
}

#[test]
fn b_18_a_predecessor_that_cannot_be_read_blocks_with_the_reason() {
    let mut scene = scene([job("x").after("bad")]);
    scene.unreadable.insert("bad".into(), "expected ident at line 1 column 2".into());
    scene.settle();
    assert_eq!(
        scene.detail("x"),
        "scheduler data error for job dependency bad: expected ident at line 1 column 2"
    );
}

#[test]
fn b_19_the_first_that_is_unmet_by_id_decides() {
    let mut scene = scene([
        job("z-running").status(JobStatus::Running),
        job("a-failed").status(JobStatus::Failed),
        job("x").after("z-running").after("a-failed").after("z-running"),
        job("y").after("z-running").after("zz-failed"),
        job("zz-failed").status(JobStatus::Failed),
    ]);
    scene.settle();
    assert_eq!(scene.detail("x"), "dependency failed for job a-failed (failed)");
    assert_eq!(scene.detail("y"), "waiting on job z-running");
}

#[test]
fn b_20_other_jobs_come_before_artifacts() {
    let mut scene = scene([
        job("dep").status(JobStatus::Running),
        job("x").after("dep").needs(crate::world::custom("nobody-makes-it")),
    ]);
    scene.settle();
    assert_eq!((scene.status("x"), scene.detail("x")), (JobStatus::WaitingOnDeps, "waiting on job dep"));
    assert!(scene.asked.is_empty());
}

#[test]
fn b_21_a_blocked_chain_settles_in_one_pass_whatever_the_order_of_the_ids() {
    for chain in [["a", "b", "c", "d"], ["d", "c", "b", "a"], ["b", "d", "a", "c"]] {
        let mut scene = scene([
            job(chain[0]).status(JobStatus::Failed),
            job(chain[1]).after(chain[0]),
            job(chain[2]).after(chain[1]),
            job(chain[3]).after(chain[2]),
        ]);
        scene.settle();
        let [a, b, c, d] = chain;
        assert_eq!(scene.detail(b), format!("dependency failed for job {a} (failed)"));
        assert_eq!(scene.detail(c), format!("dependency failed for job {b} (blocked_by_dependency)"));
        assert_eq!(scene.detail(d), format!("dependency failed for job {c} (blocked_by_dependency)"));
        assert!(scene.settle().changed.is_empty());
    }
}

#[test]
fn b_22_what_a_pass_blocks_or_skips_has_no_exit_code_and_no_end() {
    let mut scene = scene([
        job("dep").status(JobStatus::Failed),
        job("x").after("dep"),
        job("y").after_with("dep", AfterPolicy::Cancelled),
    ]);
    let settled = scene.settle();
    assert_eq!(scene.status("y"), JobStatus::Skipped);
    for name in ["x", "y"] {
        assert_eq!((scene.job(name).exit_code, scene.job(name).finished_at), (None, None));
    }
    assert!(settled.outcomes.is_empty());
}

#[test]
fn a_handler_runs_only_when_its_outcome_happened() {
    use AfterPolicy::{Blocked, Cancelled, Completion, Failed, Failure, Success};
    use JobStatus::{BlockedByApproval, BlockedByDependency, Skipped, Succeeded};
    let ends =
        [Succeeded, JobStatus::Failed, JobStatus::Cancelled, BlockedByDependency, BlockedByApproval, Skipped];
    for (policy, runs, otherwise) in [
        (Success, &ends[..1], None),
        (Failed, &ends[1..2], Some(Skipped)),
        (Cancelled, &ends[2..3], Some(Skipped)),
        (Blocked, &ends[3..5], Some(Skipped)),
        (Failure, &ends[1..5], Some(Skipped)),
        (Completion, &ends[..], None),
    ] {
        for end in ends {
            let mut scene = scene([job("a").status(end), job("h").after_with("a", policy)]);
            let settled = scene.settle();
            if runs.contains(&end) {
                assert_eq!(names(&settled.starts), ["h"], "{policy} of {end}");
            } else {
                let expected = match (otherwise, end) {
                    (None, Skipped) => Skipped,
                    (None, _) => BlockedByDependency,
                    (Some(status), _) => status,
                };
                assert_eq!(scene.status("h"), expected, "{policy} of {end}");
            }
        }
        let mut scene = scene([job("a").status(JobStatus::Running), job("h").after_with("a", policy)]);
        scene.settle();
        assert_eq!(scene.detail("h"), "waiting on job a");
    }
}

#[test]
fn what_is_skipped_is_skipped_along_success_edges_and_not_along_completion() {
    let mut scene = scene([
        job("a").status(JobStatus::Succeeded),
        job("h").after_with("a", AfterPolicy::Failed),
        job("after-h").after("h"),
        job("after-that").after("after-h"),
        job("anyway").after_with("after-h", AfterPolicy::Completion),
    ]);
    let settled = scene.settle();
    for name in ["h", "after-h", "after-that"] {
        assert_eq!(scene.status(name), JobStatus::Skipped, "{name}");
    }
    assert_eq!(scene.detail("h"), "not needed after job a (succeeded)");
    assert_eq!(names(&settled.starts), ["anyway"]);
}

#[test]
fn one_outcome_is_enough_for_a_handler_of_several() {
    let handler = || job("h").after_with("a", AfterPolicy::Failed).after_with("b", AfterPolicy::Failed);
    for (a, b, expected) in [
        (JobStatus::Failed, JobStatus::Running, Some(true)),
        (JobStatus::Running, JobStatus::Failed, Some(true)),
        (JobStatus::Failed, JobStatus::Succeeded, Some(true)),
        (JobStatus::Succeeded, JobStatus::Running, None),
        (JobStatus::Succeeded, JobStatus::Skipped, Some(false)),
    ] {
        let mut scene = scene([job("a").status(a), job("b").status(b), handler()]);
        let settled = scene.settle();
        let found = match scene.status("h") {
            JobStatus::Skipped => Some(false),
            JobStatus::WaitingOnDeps => None,
            _ => Some(names(&settled.starts).contains(&"h")),
        };
        assert_eq!(found, expected, "{a}, {b}");
    }
    let both = job("h").after_with("a", AfterPolicy::Failed).after_with("a", AfterPolicy::Cancelled);
    let mut scene = scene([job("a").status(JobStatus::Cancelled), both]);
    assert_eq!(names(&scene.settle().starts), ["h"]);
}

#[test]
fn a_handler_still_needs_the_success_of_others() {
    let handler = job("h").after_with("a", AfterPolicy::Failed).after("b");
    let mut scene = scene([job("a").status(JobStatus::Failed), job("b").status(JobStatus::Failed), handler]);
    scene.settle();
    assert_eq!(scene.detail("h"), "dependency failed for job b (failed)");
}

#[test]
fn jobs_that_wait_for_each_other_wait_and_nothing_hangs() {
    let mut scene = scene([job("a").after("b"), job("b").after("a"), job("c").after("c")]);
    scene.settle();
    assert_eq!(scene.detail("a"), "waiting on job b");
    assert_eq!(scene.detail("c"), "waiting on job c");
}

/// `--after run:ID` and `--repeat` wait for the last jobs of another run.
#[test]
fn a_run_goes_on_after_a_failure_that_another_run_skips_and_after_no_other_skip() {
    let of_run = |name: &str, status, exit_code| {
        job(name).run(1).status(status).with(|brief| brief.exit_code = exit_code)
    };
    // Its policy said that the failure is to be skipped.
    let mut optional = scene([of_run("sink", JobStatus::Skipped, Some(1)), job("next").run(2).after("sink")]);
    assert_eq!(names(&optional.settle().starts), ["next"]);
    // An edge that was not taken, or something before it that was skipped.
    let mut not_needed = scene([
        of_run("sink", JobStatus::Skipped, None),
        job("next").run(2).after("sink"),
        job("last").run(2).after("next"),
    ]);
    assert_eq!(not_needed.settle().starts, []);
    assert_eq!(
        not_needed.status("next"),
        JobStatus::BlockedByDependency,
        "a run that is skipped is no success"
    );
    assert_eq!(not_needed.detail("next"), "dependency failed for job sink (skipped)");
    assert_eq!(not_needed.status("last"), JobStatus::BlockedByDependency);
    // Within a run nothing changes: what follows a skipped job is skipped, however that came about.
    for exit_code in [None, Some(1)] {
        let mut own = scene([of_run("a", JobStatus::Skipped, exit_code), job("b").run(1).after("a")]);
        own.settle();
        assert_eq!(own.status("b"), JobStatus::Skipped);
    }
    // One of several is enough to keep it back, and handlers of another run are not called by a skip.
    let mut several = scene([
        of_run("a", JobStatus::Skipped, Some(1)),
        of_run("b", JobStatus::Failed, Some(1)),
        job("next").run(2).after("a").after("b"),
        job("handler").run(3).after_with("a", AfterPolicy::Failed),
        job("always").run(4).after_with("a", AfterPolicy::Completion),
    ]);
    assert_eq!(names(&several.settle().starts), ["always"]);
    assert_eq!(several.detail("next"), "dependency failed for job b (failed)");
    assert_eq!(several.status("handler"), JobStatus::Skipped);
}
