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
    for status in
        ["succeeded", "failed", "cancelled", "blocked_by_dependency", "blocked_by_approval", "skipped"]
    {
        desk.put(job(status).status(status));
        let before = fs::read(desk.in_jobs(status).join("job.json")).unwrap();
        let ran = desk.run(&["jobs", "cancel", status]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&format!("job {status} is not active")), "{ran:?}");
        assert_eq!(fs::read(desk.in_jobs(status).join("job.json")).unwrap(), before);
    }
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
