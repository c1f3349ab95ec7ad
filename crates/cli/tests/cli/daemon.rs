//! `tidewheel daemon`: wakes up for the times of jobs.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::yard::Yard;

#[test]
fn a_daemon_that_ends_when_nothing_is_due_has_looked_once() {
    let yard = Yard::new();
    yard.job("a", "queued", 0, json!({ "child_args": ["--version"] }));
    let ran = yard.run(&["daemon", "--until-idle"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran}");
    assert_eq!(yard.jobs(&["wait", "a", "-q"]).code, Some(0));
    assert_eq!(yard.record("a")["status"], "succeeded");
}

/// What a service manager does to restart it: only the daemon is ended.
#[test]
fn a_daemon_is_ended_by_a_signal_and_its_jobs_are_not() {
    let yard = Yard::new();
    let pipe = yard.home.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    yard.job("a", "queued", 0, json!({ "child_args": ["decide", "turn", "pipe"] }));
    let mut daemon = yard.home.command(&["daemon"]).spawn().unwrap();
    let mut told = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "started a");
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    assert_eq!(daemon.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    // The job waits for its input, and its supervisor is there.
    let ran = yard.run(&["doctor"]);
    assert!(ran.code == Some(0) && ran.out.contains("the job that is running has its supervisor"), "{ran}");
    // The next one finds it as it is.
    assert_eq!(yard.run(&["daemon", "--until-idle"]).code, Some(0));
    assert_eq!(yard.record("a")["status"], "running");
    File::options().write(true).open(&pipe).unwrap().write_all(b"{\"attempt\": 1}\n").unwrap();
    assert_eq!(yard.jobs(&["wait", "a", "-q"]).code, Some(0));
    assert_eq!(yard.record("a")["status"], "succeeded");
}

#[test]
fn a_daemon_says_once_which_records_cannot_be_read() {
    let yard = Yard::new();
    yard.job("good", "queued", 0, json!({ "child_args": ["--version"] }));
    yard.home.file(".tidewheel/jobs/bad/job.json", "{ this is no record");
    let ran = yard.run(&["daemon", "--until-idle"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(ran.err.matches("warning: job bad: its record cannot be read: ").count(), 1, "{ran}");
}
