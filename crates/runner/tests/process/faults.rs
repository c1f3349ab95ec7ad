//! When the system does not do what it should: what is tried, in which order, and what is told.

use std::future::{pending, ready};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidewheel_core::Outcome as Came;
use tidewheel_core::policy::{Backoff, Policy};
use tidewheel_core::time::Span;
use tidewheel_runner::process::{
    Capture, Options, Outcome, ProcessError, Program, Signal, Spawn, Spawned, Stopped, System, start,
};
use tidewheel_runner::{Options as ReactOptions, command, react_until_satisfied};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::world::{Fake, Fault, executed, workflow};

fn options() -> Options {
    Options {
        stdin: b"in".to_vec(),
        stdout: Capture::whole(10),
        stderr: Capture::tail(10),
        grace: Span::from_secs(5),
    }
}

/// Starts a false process and asks it at once to end.
async fn stopped(fake: &Fake) -> Result<Outcome, ProcessError> {
    start(fake, &Program::new(["fake"])).unwrap().run(options(), ready(())).await
}

#[tokio::test(start_paused = true)]
async fn a_group_is_asked_first_and_killed_when_its_grace_is_over() {
    let began = Instant::now();
    let polite = Fake::obeying(Signal::Terminate);
    let outcome = stopped(&polite).await.unwrap();
    assert_eq!(outcome.stopped, Some(Stopped::Asked));
    assert_eq!(polite.told(), [(Signal::Terminate, began)]);

    for fake in [
        Fake::obeying(Signal::Kill),
        Fake { has_stubborn_children: true, ..Fake::obeying(Signal::Terminate) },
    ] {
        let began = Instant::now();
        stopped(&fake).await.unwrap();
        let told = fake.told();
        assert_eq!(told, [(Signal::Terminate, began), (Signal::Kill, began + Duration::from_secs(5))]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_grace_without_end_never_kills() {
    let fake = Fake { has_stubborn_children: true, ..Fake::obeying(Signal::Terminate) };
    let options = Options { grace: Span::LONGEST, ..options() };
    let run = start(&fake, &Program::new(["fake"])).unwrap().run(options, ready(()));
    tokio::time::timeout(Duration::from_secs(3_600), run).await.unwrap_err();
    let told: Vec<Signal> = fake.told().into_iter().map(|(signal, _)| signal).collect();
    assert_eq!(told, [Signal::Terminate, Signal::Kill], "the last one when it was dropped");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_killed_is_told() {
    let error = stopped(&Fake::default().with(Fault::Kill)).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot kill the processes of group 1000000");
    assert!(matches!(error, ProcessError::Kill { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_to_a_known_end_is_killed_and_told() {
    for (fault, message) in [
        (Fault::Wait, "cannot wait for process 1000000: no child"),
        (Fault::Input, "the input of process 1000000 broke: the disk burns"),
        (Fault::Output, "the output of process 1000000 broke: the disk burns"),
    ] {
        let fake = Fake::obeying(Signal::Terminate).with(fault);
        let it = command("it", ["fake"]).spawned_by(Arc::new(fake.clone()));
        let Came::Failed(failure) = executed(&workflow(it, Policy::new())).await else { panic!("it failed") };
        assert_eq!((failure.code, failure.message.as_str()), (Some("process".into()), message));
        assert!(!fake.told().is_empty(), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_pipe_ends_the_process_though_nobody_asked() {
    let fake = Fake::obeying(Signal::Terminate).with(Fault::Output);
    let started = start(&fake, &Program::new(["fake"])).unwrap();
    assert!(started.run(options(), pending()).await.is_err());
}

#[tokio::test]
async fn output_that_never_pauses_does_not_keep_a_process_from_being_stopped() {
    let fake = Fake::obeying(Signal::Terminate).with(Fault::EndlessOutput);
    let (enough, is_enough) = oneshot::channel::<()>();
    let mut enough = Some(enough);
    let stdout = Capture::tail(10).listener(move |_| {
        drop(enough.take());
        ControlFlow::Continue(())
    });
    let options = Options { stdout, ..options() };
    let started = start(&fake, &Program::new(["fake"])).unwrap();
    let outcome = started.run(options, async { drop(is_enough.await) }).await.unwrap();
    assert_eq!(outcome.stopped, Some(Stopped::Asked));
}

/// A system that is short of processes for a while.
struct Short(AtomicU32);

impl Spawn for Short {
    fn spawn(&self, program: &Program) -> io::Result<Spawned> {
        if self.0.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "no more processes"));
        }
        System.spawn(program)
    }
}

#[tokio::test]
async fn a_system_that_is_short_of_something_is_asked_again() {
    let policy = Policy::new().max_retries(2).backoff(Backoff::None);
    let it = command("it", ["echo", "1"]).spawned_by(Arc::new(Short(AtomicU32::new(0))));
    let mut run = workflow(it.clone(), policy).run("r");
    react_until_satisfied(&mut run, 1, ReactOptions::new()).await.unwrap();
    assert_eq!(run.result::<u8>("it").unwrap(), Some(1));

    let it = it.spawned_by(Arc::new(Short(AtomicU32::new(0))));
    let Came::Failed(failure) = executed(&workflow(it, Policy::new())).await else { panic!("it failed") };
    assert_eq!(failure.to_string(), "[spawn] cannot start the program echo: no more processes");
}
