//! A process and its group: fed and read at once, and nothing is left when it is over.

use std::future::pending;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc;

use tidewheel_core::time::Span;
use tidewheel_runner::process::{Capture, End, Options, Outcome, Program, Stopped, System, start};
use tokio::sync::oneshot;

use crate::world::{living, sh, until};

const MIB: usize = 1024 * 1024;

fn options(stdin: Vec<u8>) -> Options {
    Options {
        stdin,
        stdout: Capture::whole(32 * MIB),
        stderr: Capture::tail(100),
        grace: Span::from_secs(60),
    }
}

async fn run(argv: &[String], stdin: Vec<u8>) -> Outcome {
    let started = start(&System, &Program::new(argv)).unwrap();
    started.run(options(stdin), pending()).await.unwrap()
}

/// Starts a script and stops it when it says that it is ready.
async fn stop_when_ready(script: &str, grace: Span) -> (Outcome, u32) {
    let started = start(&System, &Program::new(sh(script))).unwrap();
    let group = started.id();
    let (ready, is_ready) = oneshot::channel::<()>();
    let mut ready = Some(ready);
    let stdout = Capture::tail(100).listener(move |_| {
        drop(ready.take());
        ControlFlow::Continue(())
    });
    let options = Options { stdout, grace, ..options(Vec::new()) };
    let outcome = started.run(options, async { drop(is_ready.await) }).await.unwrap();
    (outcome, group)
}

#[tokio::test]
async fn much_input_and_much_output_at_once_do_not_wait_for_each_other() {
    let input: Vec<u8> = (0..16 * MIB).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
    let outcome = run(&["cat".to_owned()], input.clone()).await;
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.stdout.bytes == input && !outcome.stdout.is_truncated);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_error() {
    let outcome = run(&sh("exec <&-; echo done"), vec![b'x'; 8 * MIB]).await;
    assert_eq!((outcome.end, outcome.stdout.bytes.as_slice()), (End::Exited(0), b"done\n".as_slice()));
}

#[tokio::test]
async fn a_process_that_closed_its_output_still_gets_all_of_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let argv = ["sh", "-c", "exec >\"$0\" 2>&-; cat"].map(str::to_owned);
    let argv = [argv.as_slice(), &[copy.to_str().unwrap().to_owned()]].concat();
    let outcome = run(&argv, vec![b'x'; 8 * MIB]).await;
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), 8 * 1024 * 1024);
}

#[tokio::test]
async fn how_it_ended_and_the_last_it_said_are_told() {
    let outcome = run(&sh("seq 100000 >&2; exit 3"), Vec::new()).await;
    assert_eq!((outcome.end, outcome.stopped), (End::Exited(3), None));
    assert!(outcome.stderr.is_truncated && outcome.stderr.bytes.len() == 100);
    assert!(outcome.stderr.bytes.ends_with(b"\n99999\n100000\n"));
    let outcome = run(&sh("kill -9 $$"), Vec::new()).await;
    assert_eq!((outcome.end, outcome.stopped), (End::Signalled(9), None));
}

#[tokio::test]
async fn what_a_process_leaves_running_is_ended_with_it() {
    let started = start(&System, &Program::new(sh("sleep 1000 & sleep 1000 & echo done"))).unwrap();
    let group = started.id();
    let outcome = started.run(options(Vec::new()), pending()).await.unwrap();
    assert_eq!((outcome.end, outcome.stdout.bytes.as_slice()), (End::Exited(0), b"done\n".as_slice()));
    assert_eq!(living(group), [0; 0]);
}

#[tokio::test]
async fn a_process_that_is_asked_to_end_may_end_in_order_and_say_as_much_as_it_likes() {
    let script = "trap 'seq 100000; echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let (outcome, group) = stop_when_ready(script, Span::from_secs(60)).await;
    assert_eq!((outcome.end, outcome.stopped), (End::Exited(7), Some(Stopped::Asked)));
    assert!(outcome.stdout.bytes.ends_with(b"\n100000\nbye\n"), "{outcome:?}");
    assert_eq!(living(group), [0; 0]);
}

#[tokio::test]
async fn a_group_that_does_not_want_to_end_is_killed() {
    // The leader ends, and its child does not.
    for leader in ["trap - TERM", ":"] {
        let script = format!(
            "trap '' TERM; (echo ready; while :; do sleep 0.01; done) & {leader}; while :; do sleep 0.01; done"
        );
        let (outcome, group) = stop_when_ready(&script, Span::from_millis(50)).await;
        assert!(matches!(outcome.end, End::Signalled(9 | 15)), "{outcome:?}");
        assert_eq!(living(group), [0; 0]);
    }
}

#[tokio::test]
async fn without_grace_nobody_is_asked() {
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let (outcome, group) = stop_when_ready(script, Span::ZERO).await;
    assert_eq!(outcome.end, End::Signalled(9));
    assert_eq!(living(group), [0; 0]);
}

#[tokio::test]
async fn a_process_that_writes_without_end_can_be_stopped() {
    let (outcome, _) = stop_when_ready("exec yes", Span::from_secs(60)).await;
    assert_eq!((outcome.end, outcome.stopped), (End::Signalled(15), Some(Stopped::Asked)));
    assert!(outcome.stdout.is_truncated);
}

#[tokio::test]
async fn a_process_that_writes_more_than_there_is_room_for_is_stopped() {
    let started = start(&System, &Program::new(["yes"])).unwrap();
    let options = Options { stdout: Capture::whole(1_000), ..options(Vec::new()) };
    let outcome = started.run(options, pending()).await.unwrap();
    assert_eq!((outcome.end, outcome.stopped), (End::Signalled(15), Some(Stopped::Full)));
    assert_eq!((outcome.stdout.bytes.len(), outcome.stdout.is_truncated), (1_000, true));
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_it_up() {
    // It keeps the output open, and is a group of its own when its number is written.
    let script =
        "setsid sleep 1000 & while [ \"$(cut -d' ' -f5 /proc/$!/stat)\" != $! ]; do :; done; echo $!";
    let outcome = run(&sh(script), Vec::new()).await;
    let daemon: i32 = String::from_utf8(outcome.stdout.bytes).unwrap().trim().parse().unwrap();
    assert_eq!(living(daemon.unsigned_abs()).len(), 1, "it goes on");
    let daemon = rustix::process::Pid::from_raw(daemon).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_process_that_is_dropped_is_killed_with_all_that_it_started_and_taken_away() {
    let script = "trap '' TERM; (echo ready; while :; do sleep 0.01; done) & while :; do sleep 0.01; done";
    let started = start(&System, &Program::new(sh(script))).unwrap();
    let group = started.id();
    let (ready, is_ready) = oneshot::channel::<()>();
    let mut ready = Some(ready);
    let stdout = Capture::tail(100).listener(move |_| {
        drop(ready.take());
        ControlFlow::Continue(())
    });
    let options = Options { stdout, ..options(Vec::new()) };
    tokio::select! {
        outcome = started.run(options, pending()) => panic!("{outcome:?}"),
        ready = is_ready => drop(ready),
    }
    until(|| living(group).is_empty()).await;
    until(|| !Path::new(&format!("/proc/{group}")).exists()).await;
}

#[test]
fn a_process_that_is_dropped_outside_of_a_runtime_is_killed_and_taken_away() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let started = runtime.block_on(async { start(&System, &Program::new(["sleep", "1000"])).unwrap() });
    let group = started.id();
    let (dropped, drops) = mpsc::channel();
    drop(runtime);
    std::thread::spawn(move || {
        drop(started);
        dropped.send(()).unwrap();
    });
    drops.recv().unwrap();
    assert!(!Path::new(&format!("/proc/{group}")).exists());
}
