//! Ending jobs.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};
use crate::runs::flow_of;
use crate::world::{eventually, processes_with};

#[test]
fn i_86_a_running_job_is_ended() {
    let desk = Desk::new();
    desk.flow("sleep", &flow_of("echo begun; exec sleep 600"));
    let run = desk.enqueue(&["sleep"]);
    let id = format!("wf-{run}-one");
    eventually("the job says something", || {
        fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).is_ok_and(|log| log == "begun\n")
    });
    let ran = desk.run(&["jobs", "cancel", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let logs = format!(".tidewheel/jobs/{id}");
    let line = format!(
        "Job {id} marked cancelled (stdout: {logs}/stdout.log, stderr: {logs}/stderr.log, cleanup=skipped)"
    );
    assert!(ran.out.contains(&line), "{ran:?}");
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("cancelled"), &json!(143)));
    assert!(record["finished_at"].is_string());
    let outcome = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap();
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!((&outcome["status"], &outcome["exit_code"]), (&json!("cancelled"), &json!(143)));
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID={id}")), []);
}

#[test]
fn i_87_a_waiting_job_is_ended_without_a_signal() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.put(job("queued").schedule("not_before", "2099-01-01T00:00:00Z"));
    desk.put(job("deps").after(&["holder"]))
        .put(job("locks").locks(&["k:exclusive"]))
        .put(job("asks").gated());
    desk.tick();
    for id in ["queued", "deps", "locks", "asks"] {
        let ran = desk.run(&["jobs", "cancel", id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains(&format!("Job {id} marked cancelled (stdout: ")), "{ran:?}");
        let record = desk.record(id);
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("cancelled"), &json!(143)));
        assert!(record["finished_at"].is_string() && desk.in_jobs(id).join("outcome.json").exists());
    }
}

#[test]
fn i_88_what_has_ended_cannot_be_ended() {
    let desk = Desk::new();
    for status in ["succeeded", "failed", "blocked_by_dependency", "blocked_by_approval", "skipped"] {
        desk.put(job(status).status(status));
        let before = fs::read(desk.in_jobs(status).join("job.json")).unwrap();
        let ran = desk.run(&["jobs", "cancel", status]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&format!("job {status} is not active")), "{ran:?}");
        assert_eq!(fs::read(desk.in_jobs(status).join("job.json")).unwrap(), before);
    }
    // What is cancelled stays as it is, which is what was asked for.
    desk.put(job("cancelled").status("cancelled"));
    let before = fs::read(desk.in_jobs("cancelled").join("job.json")).unwrap();
    let ran = desk.run(&["jobs", "cancel", "cancelled"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Job cancelled is cancelled already\n"), "{ran:?}");
    assert_eq!(fs::read(desk.in_jobs("cancelled").join("job.json")).unwrap(), before);
    let ran = desk.run(&["jobs", "cancel", "X"]);
    assert!(ran.code == Some(1) && ran.err.contains("no background job X"), "{ran:?}");
}

/// Puts a waiting job with a worktree of its own.
fn with_worktree(desk: &Desk, id: &str) {
    desk.git(&[
        "worktree",
        "add",
        "-q",
        &format!(".tidewheel/tmp-worktrees/{id}"),
        "-b",
        &format!("draft/{id}"),
    ]);
    desk.put(
        job(id)
            .gated()
            .meta("worktree_owned", true)
            .meta("worktree_path", format!(".tidewheel/tmp-worktrees/{id}"))
            .meta("worktree_name", id),
    );
}

#[test]
fn i_89_an_owned_worktree_is_removed_if_it_is_asked_for() {
    let desk = Desk::with_git();
    for id in ["asked", "not-asked", "configured", "kept"] {
        with_worktree(&desk, id);
    }
    desk.put(job("none").gated());
    let cancelled = |arguments: &[&str], id: &str, says: &str| {
        let ran = desk.run(&[&["jobs", "cancel", id], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains(&format!("cleanup={says})")), "{ran:?}");
        assert_eq!(
            desk.path(&format!(".tidewheel/tmp-worktrees/{id}")).exists(),
            says != "done" && id != "none",
            "{id}"
        );
    };
    cancelled(&["--cleanup-worktree"], "asked", "done");
    cancelled(&[], "not-asked", "skipped");
    cancelled(&["--cleanup-worktree"], "none", "skipped");
    desk.file(".tidewheel/config.toml", "[jobs.cancel]\ncleanup_worktree = true\n");
    cancelled(&["--no-cleanup-worktree"], "kept", "skipped");
    cancelled(&[], "configured", "done");
    assert!(!desk.git(&["worktree", "list"]).contains("asked\n"));
    let ran = desk.run(&["jobs", "cancel", "none", "--cleanup-worktree", "--no-cleanup-worktree"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn i_91_what_waits_for_a_cancelled_job_is_settled_at_once() {
    let desk = Desk::new();
    desk.put(job("J1").gated()).put(job("next").after(&["J1"])).put(job("last").after(&["next"]));
    desk.tick();
    assert_eq!(desk.standing("next").2, "waiting on job J1");
    assert_eq!(desk.run(&["jobs", "cancel", "J1"]).code, Some(0));
    let blocked = |detail: &str| standing("blocked_by_dependency", "dependencies", detail);
    assert_eq!(desk.standing("next"), blocked("dependency failed for job J1 (cancelled)"));
    assert_eq!(desk.standing("last"), blocked("dependency failed for job next (blocked_by_dependency)"));
    assert_eq!(at(&desk.record("next"), "/exit_code"), &Value::Null);
}

#[test]
fn n_164_cancelling_ends_every_descendant_before_its_locks_are_free() {
    let desk = Desk::new();
    let script =
        "(setsid sh -c 'echo x >>begun; sleep 47; touch f') & sh -c 'echo x >>begun; sleep 47; touch f'";
    let flow = flow_of(script) + "locks = [{ key = \"k\", mode = \"exclusive\" }]\n";
    desk.flow("leave", &flow);
    desk.flow("next", &(flow_of("touch after") + "locks = [{ key = \"k\", mode = \"exclusive\" }]\n"));
    let run = desk.enqueue(&["leave"]);
    let id = format!("wf-{run}-one");
    let next = format!("wf-{}-one", desk.enqueue(&["next"]));
    assert_eq!(desk.status(&next), "waiting_on_locks");
    eventually("both have begun", || {
        fs::read_to_string(desk.path("begun")).is_ok_and(|begun| begun == "x\nx\n")
    });
    assert_eq!(desk.run(&["jobs", "cancel", &id]).code, Some(0));
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID={id}")), []);
    desk.wait(&next);
    assert!(desk.path("after").exists() && !desk.path("f").exists());
}

#[test]
fn a_run_is_cancelled_as_a_whole_and_nothing_of_it_starts_meanwhile() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 2\n");
    desk.pipe("never");
    // Two run and do not listen, many wait for a slot, one handler waits for a cancellation.
    let stubborn = "trap '' TERM; echo x >>begun; : <never; sleep 600";
    let mut nodes: Vec<(String, &str, &str)> =
        vec![("s1".into(), stubborn, "on.cancelled = [\"tell\"]"), ("s2".into(), stubborn, "")];
    nodes.extend((0..40).map(|n| (format!("w{n}"), "touch started", "")));
    nodes.push(("tell".into(), "touch told", ""));
    let nodes: Vec<(&str, &str, &str)> =
        nodes.iter().map(|(id, run, more)| (id.as_str(), *run, *more)).collect();
    desk.flow("many", &crate::runs::flow(&nodes));
    let run = desk.enqueue(&["many"]);
    eventually("both have begun", || {
        fs::read_to_string(desk.path("begun")).is_ok_and(|begun| begun == "x\nx\n")
    });
    let ran = desk.run(&["runs", "cancel", &run, "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["cancelled"].as_array().unwrap().len(), 43, "{ran:?}");
    assert!(!desk.path("started").exists() && !desk.path("told").exists());
    for node in ["s1", "s2", "w0", "w39", "tell"] {
        let record = desk.record(&format!("wf-{run}-{node}"));
        assert_eq!((&record["status"], &record["exit_code"]), (&json!("cancelled"), &json!(143)), "{node}");
    }
    assert_eq!(processes_with(&format!("TIDEWHEEL_RUN={run}")), []);
    let ran = desk.run(&["runs", "cancel", &run]);
    assert!(ran.code == Some(0) && ran.out.contains("Run already cancelled"), "{ran:?}");
}

#[test]
fn a_run_that_is_cancelled_keeps_what_had_succeeded_and_takes_no_loop() {
    let desk = Desk::new();
    desk.pipe("never");
    let text = crate::runs::flow(&[
        ("a", "echo a >>log", ""),
        ("c", "touch begun; : <never", "after = [\"a\"]\non.cancelled = [\"a\"]"),
    ]);
    desk.flow("f", &text);
    let run = desk.enqueue(&["f"]);
    desk.has_begun(&format!("wf-{run}-c"), "begun");
    let ran = desk.run(&["runs", "cancel", &run]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = |node: &str| desk.status(&format!("wf-{run}-{node}"));
    assert_eq!((status("a").as_str(), status("c").as_str()), ("succeeded", "cancelled"));
    assert_eq!(desk.lines("log"), ["a"]);
}
