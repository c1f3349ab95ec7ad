//! Commands that are given up: nothing of them is left, and the next attempt waits for that.

use std::path::Path;
use std::sync::Arc;

use tidewheel_core::policy::{Backoff, Policy};
use tidewheel_core::time::Span;
use tidewheel_runner::process::Command;
use tidewheel_runner::{Options, Runner, RunnerOptions, command, react_until_satisfied};
use tidewheel_testkit::VirtualClock;

use crate::world::{Seen, living, sh, watched, workflow};

/// A program and one that it started, which both run for long.
fn family() -> Command {
    command("it", sh("sleep 1000 & echo ready; sleep 1000"))
}

/// The same, and nobody obeys.
fn stubborn_family() -> Command {
    command("it", sh("trap '' TERM; sleep 1000 & echo ready; sleep 1000; sleep 1000"))
}

#[tokio::test]
async fn a_timeout_ends_the_program_and_what_it_started() {
    for it in [family(), stubborn_family().grace(Span::from_millis(50)), stubborn_family().grace(Span::ZERO)]
    {
        let (spawn, mut watcher) = watched();
        let clock = VirtualClock::default();
        let mut run = workflow(it.spawned_by(spawn), Policy::new().timeout("10s")).run("r");
        let options = Options::new().clock(Arc::new(clock.clone()));
        let work = async {
            let group = watcher.ready().await;
            assert!(living(group).len() >= 2, "it started another one");
            clock.advance(Span::from_secs(10));
            group
        };
        let (group, reacted) = tokio::join!(work, react_until_satisfied(&mut run, 1, options));
        reacted.unwrap();
        assert_eq!(run.failures()[0].failure.code, Some("timeout".into()));
        watcher.over(group).await;
        assert_eq!(living(group), [0; 0]);
        assert!(!Path::new(&format!("/proc/{group}")).exists(), "it was taken away");
    }
}

#[tokio::test]
async fn the_next_attempt_begins_when_nothing_is_left_of_the_one_before() {
    let script = "trap '' TERM; echo ready; [ $TIDEWHEEL_ATTEMPT = 1 ] || sleep 1000";
    let (spawn, mut watcher) = watched();
    let clock = VirtualClock::default();
    let it = command("it", sh(script)).grace(Span::from_millis(300)).spawned_by(spawn);
    let policy = Policy::new().timeout("10s").max_retries(1).backoff(Backoff::None);
    let mut run = workflow(it, policy).run("r");
    let options = Options::new().clock(Arc::new(clock.clone()));
    let watch = async {
        let first = watcher.ready().await;
        clock.advance(Span::from_secs(10));
        assert_eq!(watcher.next().await, Seen::Over(first));
        assert_eq!(living(first), [0; 0]);
        let second = watcher.ready().await;
        assert_ne!(first, second);
    };
    let ((), reacted) = tokio::join!(watch, react_until_satisfied(&mut run, 1, options));
    reacted.unwrap();
    assert_eq!(run.result::<String>("it").unwrap().as_deref(), Some("ready"));
}

#[tokio::test]
async fn other_work_of_the_same_command_does_not_wait() {
    let (spawn, mut watcher) = watched();
    let workflow = workflow(family().spawned_by(spawn), Policy::new());
    let runs = ["a", "b"].map(|id| {
        let mut run = workflow.run(id);
        tokio::spawn(async move { drop(react_until_satisfied(&mut run, 1, Options::new()).await) })
    });
    let mut ready = 0;
    while ready < 2 {
        ready += usize::from(matches!(watcher.next().await, Seen::Wrote(_)));
    }
    for run in runs {
        run.abort();
    }
    let mut over = 0;
    while over < 2 {
        if let Seen::Over(group) = watcher.next().await {
            assert_eq!(living(group), [0; 0]);
            over += 1;
        }
    }
}

#[tokio::test]
async fn a_durable_run_that_is_cancelled_ends_its_programs() {
    let (spawn, mut watcher) = watched();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let workflow = workflow(family().spawned_by(spawn), Policy::new());
    let run = runner.run("first", &workflow, 1).await.unwrap();
    let group = watcher.ready().await;
    run.cancel().await.unwrap();
    watcher.over(group).await;
    assert_eq!(living(group), [0; 0]);
    runner.shutdown().await;
}

#[test]
fn a_runtime_that_shuts_down_leaves_nothing_behind() {
    let (spawn, mut watcher) = watched();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let it = stubborn_family().grace(Span::from_secs(3_600)).spawned_by(spawn);
    let mut run = workflow(it, Policy::new()).run("r");
    let group = runtime.block_on(async {
        let running =
            tokio::spawn(async move { drop(react_until_satisfied(&mut run, 1, Options::new()).await) });
        let group = watcher.ready().await;
        running.abort();
        group
    });
    assert!(!living(group).is_empty(), "it has an hour");
    drop(runtime);
    while !living(group).is_empty() {
        std::thread::yield_now();
    }
}
