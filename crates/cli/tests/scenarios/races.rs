//! People and supervisors who want the same job at once. Whoever has to wait is stopped by the test, not by chance.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::by_hand::Desk;
use crate::runs::flow;
use crate::world::{Ran, eventually};

/// Stops a process, and waits until it stands.
#[track_caller]
fn stop(pid: Pid) {
    kill_process(pid, Signal::STOP).unwrap();
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    eventually("the process stands", || {
        let stat = std::fs::read_to_string(&path).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    });
}

/// Waits for a command and returns what came of it.
fn ended(child: Child) -> Ran {
    let ended = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: ended.status.code(), out: text(&ended.stdout), err: text(&ended.stderr) }
}

#[test]
fn a_job_whose_attempt_fails_while_it_is_cancelled_is_not_tried_again() {
    let desk = Desk::new();
    desk.pipe("gate");
    let text = flow(&[("a", "echo a >>log; : <gate; exit 1", "")])
        + "[[policies]]\nmatch = { name = \"a\" }\nmax_retries = 3\nbackoff = \"fixed\"\nbase_delay = \"50ms\"\n";
    desk.flow("f", &text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.has_begun(&id, "log");
    let turn = desk.take_turn();
    desk.let_go("gate");
    desk.has_ended(&id);
    // The attempt has failed and nobody knows it yet; in between, a person cancels the job.
    let supervisor = desk.supervisor(&id);
    stop(supervisor);
    drop(turn);
    let cancel = desk.command(&["jobs", "cancel", &id]).spawn().unwrap();
    eventually("the wish is written down", || desk.in_jobs(&id).join("cancel.json").exists());
    kill_process(supervisor, Signal::CONT).unwrap();
    let ran = ended(cancel);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(&format!("Job {id} marked cancelled")), "{ran:?}");
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&"cancelled".into(), &143.into()), "{record}");
    desk.is_gone(supervisor);
    desk.tick();
    assert_eq!((desk.status(&id).as_str(), desk.lines("log").len()), ("cancelled", 1));
}

#[test]
fn a_run_is_cancelled_as_a_whole_though_one_of_its_jobs_ends_by_itself() {
    let desk = Desk::new();
    desk.pipe("gate").pipe("never");
    desk.flow(
        "f",
        &flow(&[
            ("long", "touch long; : <never", ""),
            ("short", "touch short; : <gate", ""),
            ("wide", "touch wide; : <never", ""),
            ("next", "touch next", "after = [\"long\"]"),
        ]),
    );
    let run = desk.enqueue(&["f"]);
    let [long, short, wide, next] = ["long", "short", "wide", "next"].map(|node| format!("wf-{run}-{node}"));
    desk.has_begun(&long, "long");
    desk.has_begun(&short, "short");
    desk.has_begun(&wide, "wide");
    let turn = desk.take_turn();
    desk.let_go("gate");
    desk.has_ended(&short);
    let supervisor = desk.supervisor(&short);
    stop(supervisor);
    drop(turn);
    let cancel = desk.command(&["runs", "cancel", &run]).spawn().unwrap();
    eventually("the wish is written down", || desk.in_jobs(&short).join("cancel.json").exists());
    kill_process(supervisor, Signal::CONT).unwrap();
    let ran = ended(cancel);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ends = [&long, &short, &wide, &next].map(|id| desk.status(id));
    assert_eq!(ends, ["cancelled", "succeeded", "cancelled", "cancelled"]);
    assert!(!desk.path("next").exists());
}

#[test]
fn a_supervisor_leaves_an_attempt_alone_that_was_ended_for_it() {
    let desk = Desk::new();
    desk.pipe("never").pipe("gate");
    let script =
        "touch begun-$TIDEWHEEL_ATTEMPT; if test $TIDEWHEEL_ATTEMPT = 1; then : <never; else : <gate; fi";
    let text = flow(&[("a", script, "")])
        + "[[policies]]\nmatch = { name = \"a\" }\nmax_retries = 1\nbackoff = \"none\"\n";
    desk.flow("f", &text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.has_begun(&id, "begun-1");
    let first = desk.supervisor(&id);
    // Somebody takes its lock away: for everybody else it is gone.
    std::fs::remove_file(desk.in_jobs(&id).join("run.lock")).unwrap();
    desk.tick();
    desk.is_gone(first);
    desk.tick();
    desk.has_begun(&id, "begun-2");
    assert_eq!(desk.status(&id), "running");
    desk.let_go("gate");
    desk.wait(&id);
    assert_eq!(desk.status(&id), "succeeded");
    let told = [(1, "dispatched"), (1, "attempt_failed"), (2, "dispatched"), (2, "completed")];
    assert_eq!(desk.events(&id), told.map(|(attempt, name)| (attempt, name.to_owned())));
}

#[test]
fn a_supervisor_whose_attempt_was_ended_for_it_starts_nothing_more_of_it() {
    let desk = Desk::new();
    desk.pipe("never");
    let text = "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"a\"\nkind = \"gate\"\n\
                uses = \"control.gate.cicd\"\n\
                gates = [{ kind = \"cicd\", script = \"touch begun; : <never\", auto_resolve = true }]\n\
                args = { auto_resolve_script = \"true\" }\n";
    desk.flow("f", text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.has_begun(&id, "begun");
    let supervisor = desk.supervisor(&id);
    std::fs::remove_file(desk.in_jobs(&id).join("run.lock")).unwrap();
    // For the supervisor the check failed, and something might mend it.
    desk.tick();
    assert_eq!(desk.status(&id), "failed");
    desk.is_gone(supervisor);
    desk.tick();
    assert_eq!(desk.status(&id), "failed");
    let told = ["dispatched", "attempt_failed", "completed"].map(|name| (1, name.to_owned()));
    assert_eq!(desk.events(&id), told);
}
