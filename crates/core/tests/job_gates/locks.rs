//! Locks: who gets them, who waits, and that nobody waits for ever.

use tidewheel_core::job::{JobStatus, LockMode, WaitKind};
use tidewheel_core::time::Span;

use crate::world::{job, names, scene};

#[test]
fn g_64_shared_locks_are_shared() {
    let mut scene =
        scene([job("a").shared("k").status(JobStatus::Running), job("b").shared("k"), job("c").shared("k")]);
    assert_eq!(names(&scene.settle().starts), ["b", "c"]);
}

#[test]
fn g_65_an_exclusive_lock_is_not_shared_with_anybody() {
    use LockMode::{Exclusive, Shared};
    for (held, wanted) in [(Exclusive, Shared), (Shared, Exclusive), (Exclusive, Exclusive)] {
        let mut scene =
            scene([job("a").lock("k", held).status(JobStatus::Running), job("b").lock("k", wanted)]);
        assert!(scene.settle().starts.is_empty());
        assert_eq!(scene.status("b"), JobStatus::WaitingOnLocks);
        assert_eq!(scene.wait("b"), Some((WaitKind::Locks, "waiting on locks")));
    }
}

#[test]
fn g_66_a_job_gets_all_its_locks_or_none() {
    let mut scene = scene([
        job("holder").exclusive("b").status(JobStatus::Running),
        job("both").exclusive("a").exclusive("b"),
    ]);
    scene.tick();
    scene.add(job("only-a").exclusive("a"));
    assert_eq!(names(&scene.tick().starts), ["only-a"]);
    assert_eq!(scene.status("both"), JobStatus::WaitingOnLocks);
}

#[test]
fn g_67_of_two_that_want_the_same_the_earlier_one_starts() {
    let mut scene = scene([job("z").exclusive("k"), job("a").exclusive("k")]);
    assert_eq!(names(&scene.settle().starts), ["z"]);
    assert_eq!(scene.status("a"), JobStatus::WaitingOnLocks);
}

#[test]
fn g_68_only_what_runs_holds_locks() {
    for status in JobStatus::ALL.iter().filter(|status| **status != JobStatus::Running) {
        let root = job("root").status(JobStatus::Running);
        let mut scene =
            scene([root, job("a").exclusive("k").after("root").status(*status), job("b").exclusive("k")]);
        assert_eq!(names(&scene.settle().starts), ["b"], "{status}");
    }
}

#[test]
fn g_69_what_was_waited_for_is_remembered_once_each() {
    let mut scene = scene([
        job("dep").status(JobStatus::Running),
        job("holder").exclusive("k").status(JobStatus::Running),
        job("x").after("dep").exclusive("k"),
    ]);
    scene.tick();
    scene.set("dep", JobStatus::Succeeded);
    scene.tick();
    scene.set("holder", JobStatus::Succeeded);
    scene.tick();
    assert_eq!(scene.status("x"), JobStatus::Running);
    assert_eq!(scene.job("x").schedule.waited_on, [WaitKind::Dependencies, WaitKind::Locks]);
    assert_eq!(scene.wait("x"), None);
}

#[test]
fn a_job_that_lists_a_key_twice_is_not_in_its_own_way() {
    let mut scene = scene([job("x").shared("k").exclusive("k").shared("k")]);
    assert_eq!(names(&scene.tick().starts), ["x"]);
    scene.add(job("y").shared("k"));
    assert!(scene.tick().starts.is_empty());
}

#[test]
fn g_70_a_stream_of_shared_locks_does_not_overtake_an_exclusive_one() {
    let mut scene = scene([job("s0").shared("k").status(JobStatus::Running), job("writer").exclusive("k")]);
    scene.tick();
    for round in 1..5 {
        scene.add(job(&format!("s{round}")).shared("k"));
        scene.tick();
        assert_eq!(scene.status(&format!("s{round}")), JobStatus::WaitingOnLocks);
    }
    scene.set("s0", JobStatus::Succeeded);
    assert_eq!(names(&scene.tick().starts), ["writer"]);
    scene.set("writer", JobStatus::Succeeded);
    assert_eq!(scene.tick().starts.len(), 4);
}

/// At every moment somebody holds one of the two keys, and new ones come all the time, some of them more important.
#[test]
fn a_job_that_wants_two_busy_keys_gets_them_in_the_end() {
    use tidewheel_core::job::Limits;
    use tidewheel_core::policy::Priority;
    let important = Limits { priority: Some(Priority::High), ..Limits::default() };
    let mut scene = scene([
        job("a0").exclusive("a").status(JobStatus::Running),
        job("both").exclusive("a").exclusive("b"),
    ]);
    let mut started = None;
    for round in 1_u64..200 {
        let (key, other) = if round % 2 == 0 { ("a", "b") } else { ("b", "a") };
        scene.add(job(&format!("{key}{round}")).exclusive(key).limits(important.clone()));
        scene.tick();
        let holder = scene.jobs.values().find(|job| {
            job.status == JobStatus::Running && job.schedule.locks.iter().all(|lock| lock.key == other)
        });
        if let Some(holder) = holder.map(|job| job.id.to_string()) {
            scene.set(&holder, JobStatus::Succeeded);
        }
        if scene.status("both") == JobStatus::Running {
            started = Some(round);
            break;
        }
        scene.now = scene.now.saturating_add(Span::from_secs(10));
    }
    let round = started.expect("it starves");
    assert!((6..30).contains(&round), "others go first for a while, and not for ever: {round}");
}

#[test]
fn a_job_that_is_not_due_keeps_nothing_from_others() {
    let mut scene = scene([
        job("s0").shared("k").status(JobStatus::Running),
        job("later").exclusive("k").with(|job| job.schedule.not_before = Some(crate::world::at(99_999))),
        job("s1").shared("k"),
    ]);
    assert_eq!(names(&scene.tick().starts), ["s1"]);
    assert_eq!(scene.job("later").schedule.ready_at, None);
}
