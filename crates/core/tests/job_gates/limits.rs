//! Capacity, limits and times.

use tidewheel_core::job::{Answer, JobStatus, Limits, Question, WaitKind};
use tidewheel_core::policy::{CircuitBreaker, ConcurrencyLimit, OnOpen, Priority, RateLimit};
use tidewheel_core::time::Span;

use crate::world::{at, custom, id, job, names, scene};

fn limits() -> Limits {
    Limits::default()
}

#[test]
fn no_more_jobs_run_than_there_are_slots() {
    let mut scene = scene([job("r").status(JobStatus::Running), job("a"), job("b"), job("c")]);
    scene.capacity = 2;
    assert_eq!(names(&scene.tick().starts), ["a"]);
    for name in ["b", "c"] {
        assert_eq!(scene.status(name), JobStatus::Queued);
        assert_eq!(scene.wait(name), Some((WaitKind::Capacity, "waiting for one of 2 slots")));
    }
    scene.set("r", JobStatus::Failed);
    assert_eq!(names(&scene.tick().starts), ["b"]);
    scene.capacity = 0;
    scene.set("a", JobStatus::Succeeded);
    assert!(scene.tick().starts.is_empty());
}

#[test]
fn a_concurrency_limit_counts_over_all_jobs_with_its_name() {
    let limited = |name: &str, by: &str| {
        let limit = ConcurrencyLimit { limit: 2, name: Some(by.into()) };
        job(name).limits(Limits { concurrency: Some(limit), ..limits() })
    };
    let mut scene = scene([
        limited("r", "api").status(JobStatus::Running),
        limited("a", "api"),
        limited("b", "api"),
        limited("c", "db"),
        job("d"),
    ]);
    assert_eq!(names(&scene.tick().starts), ["a", "c", "d"]);
    assert_eq!(scene.wait("b"), Some((WaitKind::Capacity, "waiting for one of 2 slots of `api`")));
    assert_eq!(scene.status("b"), JobStatus::Queued);
}

#[test]
fn a_rate_limit_lets_so_many_start_in_a_window_and_says_when_to_look_again() {
    let limited = |name: &str| {
        let rate = RateLimit { count: 2, window: Span::from_secs(10), name: Some("api".into()) };
        job(name).limits(Limits { rate: Some(rate), ..limits() })
    };
    let mut scene = scene(["a", "b", "c", "d"].map(limited));
    let settled = scene.tick();
    assert_eq!(names(&settled.starts), ["a", "b"]);
    assert_eq!(scene.wait("c"), Some((WaitKind::Schedule, "waiting for rate limit `api`")));
    let wake_at = settled.wake_at.unwrap();
    assert!(wake_at >= scene.now.saturating_add(Span::from_secs(10)));
    assert_eq!(scene.shared.take_changed().len(), 1);
    assert!(scene.tick().changed.is_empty(), "waiting writes nothing");
    assert!(scene.shared.take_changed().is_empty());
    scene.now = wake_at;
    assert_eq!(names(&scene.tick().starts), ["c", "d"]);
}

#[test]
fn what_is_shared_is_read_as_it_was_written() {
    let rate = RateLimit { count: 1, window: Span::from_secs(10), name: Some("api".into()) };
    let limited = |name: &str| job(name).limits(Limits { rate: Some(rate.clone()), ..limits() });
    let mut first = scene([limited("a")]);
    first.tick();
    let rows = first.shared.take_changed();
    let mut second = scene([limited("b")]);
    assert_eq!(tidewheel_core::job::Shared::names_of_jobs(second.jobs.values()).len(), 1);
    for (name, value) in &rows {
        assert!(tidewheel_core::job::Shared::names_of_jobs(second.jobs.values()).contains(name));
        second.shared.put(name, value);
    }
    assert!(second.tick().starts.is_empty());
}

#[test]
fn a_job_does_not_start_before_its_time() {
    let mut scene = scene([job("x").with(|job| job.schedule.not_before = Some(at(2_000)))]);
    let settled = scene.tick();
    assert_eq!(scene.status("x"), JobStatus::Queued);
    assert_eq!(scene.wait("x"), Some((WaitKind::Schedule, "not before 2026-02-01T10:33:20Z")));
    assert_eq!(settled.wake_at, Some(at(2_000)));
    scene.now = at(2_000);
    assert_eq!(names(&scene.tick().starts), ["x"]);
}

#[test]
fn between_two_attempts_a_job_says_so_until_it_is_due() {
    use tidewheel_core::job::WaitReason;
    let mut scene = scene([
        job("holder").exclusive("k").status(JobStatus::Running),
        job("x").exclusive("k").with(|job| {
            job.started_at = Some(at(900));
            job.schedule.not_before = Some(at(1_005));
            job.schedule.wait_reason = Some(WaitReason::new(WaitKind::Schedule, "retry 1 of 3 at later"));
            job.schedule.waited_on = vec![WaitKind::Schedule];
        }),
    ]);
    let settled = scene.tick();
    assert!(settled.changed.is_empty());
    assert_eq!((settled.wake_at, scene.detail("x")), (Some(at(1_005)), "retry 1 of 3 at later"));
    scene.now = at(1_005);
    scene.tick();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnLocks);
}

#[test]
fn a_queue_timeout_counts_from_when_only_others_are_in_the_way() {
    let timed = Limits { queue_timeout_ms: Some(5_000), ..limits() };
    let mut scene = scene([
        job("dep").status(JobStatus::Running),
        job("x").after("dep").exclusive("k").limits(timed),
        job("holder").exclusive("k").status(JobStatus::Running),
        job("y").after("x"),
    ]);
    scene.now = at(5_000);
    scene.tick();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps, "waiting for others is no waiting in the queue");
    scene.set("dep", JobStatus::Succeeded);
    let settled = scene.tick();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnLocks);
    assert_eq!(settled.wake_at, Some(at(5_005)));
    scene.now = at(5_005);
    let settled = scene.tick();
    assert_eq!((scene.status("x"), scene.job("x").exit_code), (JobStatus::Failed, Some(1)));
    assert_eq!(scene.wait("x"), Some((WaitKind::Schedule, "queue timeout")));
    assert_eq!(settled.outcomes[0].summary.as_deref(), Some("queue timeout"));
    assert_eq!(scene.detail("y"), "dependency failed for job x (failed)");
}

#[test]
fn a_delay_counts_from_when_the_job_could_begin_and_comes_to_its_end() {
    let delayed = Limits { delay_ms: Some(5_000), queue_timeout_ms: Some(3_000), ..limits() };
    let mut scene =
        scene([job("dep").status(JobStatus::Running), job("x").after("dep").exclusive("k").limits(delayed)]);
    scene.now = at(100);
    scene.tick();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps);
    scene.set("dep", JobStatus::Succeeded);
    let settled = scene.tick();
    assert_eq!((scene.status("x"), settled.wake_at), (JobStatus::Queued, Some(at(105))));
    assert_eq!(scene.job("x").schedule.ready_at, Some(at(100)));
    scene.now = at(104);
    let settled = scene.tick();
    assert!(settled.changed.is_empty(), "looking again does not put it off");
    assert_eq!(settled.wake_at, Some(at(105)));
    scene.now = at(105);
    assert_eq!(names(&scene.tick().starts), ["x"]);
}

#[test]
fn a_delay_is_no_time_in_the_queue() {
    let delayed = Limits { delay_ms: Some(5_000), queue_timeout_ms: Some(3_000), ..limits() };
    let mut scene = scene([
        job("holder").exclusive("k").status(JobStatus::Running),
        job("x").exclusive("k").limits(delayed),
    ]);
    scene.now = at(100);
    assert_eq!(scene.tick().wake_at, Some(at(105)), "its time in the queue begins then");
    scene.now = at(105);
    assert_eq!(scene.tick().wake_at, Some(at(108)));
    scene.now = at(108);
    scene.tick();
    assert_eq!((scene.status("x"), scene.detail("x")), (JobStatus::Failed, "queue timeout"));
}

#[test]
fn a_job_that_could_start_starts_even_if_its_time_in_the_queue_is_over() {
    let timed = Limits { queue_timeout_ms: Some(5_000), ..limits() };
    let mut scene = scene([job("x").limits(timed).with(|job| job.schedule.ready_at = Some(at(0)))]);
    assert_eq!(names(&scene.tick().starts), ["x"]);
}

#[test]
fn after_its_deadline_a_job_fails_whatever_it_waits_for_unless_it_is_blocked() {
    let late = || Limits { deadline: Some(at(1_000)), ..limits() };
    let mut scene = scene([
        job("dep").status(JobStatus::Running),
        job("bad").status(JobStatus::Failed),
        job("free").limits(late()),
        job("waits").after("dep").limits(late()),
        job("blocked").after("bad").limits(late()),
    ]);
    scene.now = at(999);
    assert_eq!(names(&scene.settle().starts), ["free"]);
    assert_eq!(scene.settle().wake_at, Some(at(1_000)));
    scene.now = at(1_000);
    scene.tick();
    for name in ["free", "waits"] {
        assert_eq!((scene.status(name), scene.detail(name)), (JobStatus::Failed, "deadline exceeded"));
    }
    assert_eq!(scene.status("blocked"), JobStatus::BlockedByDependency);
}

#[test]
fn an_open_breaker_lets_jobs_wait_fail_or_be_skipped() {
    let with = |name: &str, on_open| {
        let breaker = CircuitBreaker { failure_threshold: 1, on_open, ..CircuitBreaker::new("api") };
        job(name).limits(Limits { breaker: Some(breaker), ..limits() })
    };
    let mut scene = scene([with("first", OnOpen::Wait)]);
    let settled = scene.tick();
    assert_eq!(settled.permits.len(), 1);
    let config = scene.job("first").schedule.limits.clone().unwrap().breaker.unwrap();
    let mut record = tidewheel_core::job::Record::new(id("first"), at(0));
    record.schedule = scene.job("first").schedule.clone();
    tidewheel_core::job::start(&mut record, settled.permits.get(&id("first")), scene.now);
    let ended = tidewheel_core::job::Ended::exited(9, scene.now);
    tidewheel_core::job::finish(&mut record, None, None, &ended, &mut scene.shared);
    scene.set("first", JobStatus::Failed);
    for (name, on_open) in [("wait", OnOpen::Wait), ("fail", OnOpen::Fail), ("skip", OnOpen::Skip)] {
        scene.add(with(name, on_open));
    }
    let settled = scene.tick();
    assert!(settled.starts.is_empty());
    assert_eq!(scene.wait("wait"), Some((WaitKind::Schedule, "circuit breaker `api` is open")));
    assert_eq!(settled.wake_at, Some(scene.now.saturating_add(config.reset_timeout)));
    assert_eq!((scene.status("fail"), scene.job("fail").exit_code), (JobStatus::Failed, Some(1)));
    assert_eq!(scene.status("skip"), JobStatus::Skipped);
    scene.now = settled.wake_at.unwrap();
    assert_eq!(names(&scene.tick().starts), ["wait"], "one probe");
}

#[test]
fn jobs_with_one_key_are_one_piece_of_work() {
    let keyed = |name: &str| job(name).limits(Limits { idempotency_key: Some("k".into()), ..limits() });
    let mut scene = scene([keyed("a").makes(custom("m")).run(1), keyed("b").makes(custom("m")).run(2)]);
    scene.add(job("user").needs(custom("m")).run(2));
    assert_eq!(names(&scene.tick().starts), ["a"]);
    assert_eq!(scene.wait("b"), Some((WaitKind::Capacity, "waiting on job a with the same idempotency key")));
    scene.set("a", JobStatus::Succeeded);
    scene = scene.is(Question::KeyOwner("k".into()), Answer::Text(Some("a".into())));
    let settled = scene.tick();
    assert_eq!(settled.adopted, [(id("b"), id("a"))]);
    assert_eq!((scene.status("b"), scene.job("b").exit_code), (JobStatus::Succeeded, Some(0)));
    assert_eq!(names(&settled.starts), ["user"], "what the other one made is there");
    scene.add(keyed("c"));
    scene.set("a", JobStatus::Failed);
    scene.set("b", JobStatus::Failed);
    scene = scene.is(Question::KeyOwner("k".into()), Answer::Text(None));
    assert_eq!(names(&scene.tick().starts), ["c"], "nobody has done the work any more");
    scene.set("c", JobStatus::Failed);
    scene.add(keyed("d"));
    scene = scene.is(Question::KeyOwner("k".into()), Answer::Text(Some("long-ago".into())));
    assert_eq!(scene.tick().adopted, [(id("d"), id("long-ago"))]);
}

#[test]
fn whoever_has_to_ask_first_takes_no_place_of_a_rate() {
    let rate = RateLimit { count: 1, window: Span::from_secs(10), name: Some("api".into()) };
    let breaker = Some(CircuitBreaker::new("api"));
    let mut scene = scene([
        job("a").limits(Limits { rate: Some(rate), breaker, ..limits() }),
        job("b").limits(Limits { idempotency_key: Some("k".into()), ..limits() }),
    ]);
    let settled = scene.tick();
    assert!(!scene.asked.is_empty(), "the second one asks when the first one has its place");
    assert_eq!(names(&settled.starts), ["a", "b"]);
    assert_eq!(scene.shared.take_changed().len(), 1, "the breaker is closed as before");
}

#[test]
fn a_job_of_low_priority_rises_while_it_waits() {
    let with = |name: &str, priority| job(name).limits(Limits { priority: Some(priority), ..limits() });
    let mut scene = scene([job("r").status(JobStatus::Running), with("low", Priority::Low)]);
    scene.capacity = 1;
    let mut running = "r".to_owned();
    for round in 0..100 {
        let name = format!("high{round:03}");
        scene.add(with(&name, Priority::High));
        scene.tick();
        scene.set(&running, JobStatus::Succeeded);
        running = names(&scene.tick().starts)[0].to_owned();
        if running == "low" {
            assert!(round > 5, "the important ones go first for a while");
            return;
        }
        scene.now = scene.now.saturating_add(Span::from_secs(10));
    }
    panic!("it starves");
}
