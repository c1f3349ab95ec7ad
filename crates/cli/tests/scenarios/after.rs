//! Jobs that wait for other jobs.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, Job, at, job, standing};

const WAITING: [&str; 4] = ["queued", "waiting_on_deps", "waiting_on_locks", "waiting_on_approval"];

/// Returns a job that stays where it is for as long as the world is as it is.
fn held_at(id: &str, status: &str) -> Job {
    let job = job(id).status(status);
    match status {
        "waiting_on_deps" => job.after(&["never"]),
        "waiting_on_locks" => job.locks(&["held:exclusive"]),
        "waiting_on_approval" => job.gated(),
        "queued" => job.schedule("not_before", "2099-01-01T00:00:00Z"),
        _ => job,
    }
}

/// Returns a desk on which all that can hold a job is held.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put(job("never").status("running").locks(&["held:exclusive"]));
    desk
}

#[test]
fn b_11_a_running_predecessor_is_waited_for() {
    let desk = Desk::new();
    desk.put(job("dep-running").status("running")).put(job("job-after").after(&["dep-running"]));
    let ticked = desk.tick();
    assert_eq!((ticked.started, ticked.updated), (vec![], vec!["job-after".to_owned()]));
    assert_eq!(
        desk.standing("job-after"),
        standing("waiting_on_deps", "dependencies", "waiting on job dep-running")
    );
    assert_eq!(desk.record("job-after")["schedule"]["waited_on"], json!(["dependencies"]));
}

#[test]
fn b_12_and_13_every_active_predecessor_is_waited_for() {
    let desk = desk();
    for status in WAITING {
        desk.put(held_at(status, status)).put(job(&format!("after-{status}")).after(&[status]));
    }
    desk.tick();
    for status in WAITING {
        let detail = format!("waiting on job {status}");
        assert_eq!(
            desk.standing(&format!("after-{status}")),
            standing("waiting_on_deps", "dependencies", &detail)
        );
    }
}

#[test]
fn b_14_after_a_succeeded_predecessor_the_next_gate_counts() {
    let desk = Desk::new();
    desk.put(job("dep").status("succeeded"));
    desk.put(job("goes").after(&["dep"])).put(job("asks").after(&["dep"]).gated());
    // A policy that is not written is success.
    desk.put(job("short").schedule("after", json!([{"job_id": "dep"}])));
    assert_eq!(desk.tick().started, ["goes", "short"]);
    assert_eq!(desk.standing("asks"), standing("waiting_on_approval", "approval", "awaiting human approval"));
}

#[test]
fn b_15_and_22_a_failed_predecessor_blocks_without_an_end() {
    let desk = Desk::new();
    for status in ["failed", "cancelled", "blocked_by_dependency", "blocked_by_approval"] {
        desk.put(job(status).status(status)).put(job(&format!("after-{status}")).after(&[status]));
    }
    desk.tick();
    for status in ["failed", "cancelled", "blocked_by_dependency", "blocked_by_approval"] {
        let id = format!("after-{status}");
        let detail = format!("dependency failed for job {status} ({status})");
        assert_eq!(desk.standing(&id), standing("blocked_by_dependency", "dependencies", &detail));
        let record = desk.record(&id);
        for field in ["/exit_code", "/finished_at", "/outcome_path"] {
            assert_eq!(at(&record, field), &Value::Null, "{field}");
        }
        assert!(!desk.in_jobs(&id).join("outcome.json").exists());
    }
}

#[test]
fn b_16_a_missing_predecessor_blocks() {
    let desk = Desk::new();
    desk.put(job("one").after(&["ghost"]));
    let expected = standing("blocked_by_dependency", "dependencies", "missing job dependency ghost");
    assert_eq!(desk.ticked("one"), expected);
}

#[test]
fn b_18_an_unreadable_predecessor_blocks_and_lists_go_on() {
    let desk = Desk::new();
    desk.file(".tidewheel/jobs/bad/job.json", "not-json");
    desk.put(job("one").after(&["bad"])).put(job("other"));
    let ran = desk.run(&["tick", "--format", "json"]);
    assert!(ran.code == Some(1) && ran.out.contains("job bad: its record cannot be read"), "{ran:?}");
    assert_eq!(ran.json()["started"], serde_json::json!(["other"]));
    let (status, kind, detail) = desk.standing("one");
    assert_eq!((status.as_str(), kind.as_str()), ("blocked_by_dependency", "dependencies"));
    let start = "scheduler data error for job dependency bad: ";
    assert!(detail.starts_with(start) && detail.len() > start.len(), "{detail}");

    let ran = desk.run(&["jobs", "list", "--all"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("unable to load background job bad: "), "{ran:?}");
    assert!(ran.out.contains("other"), "{ran:?}");
}

#[test]
fn b_19_the_first_unmet_in_sorted_order_wins() {
    let desk = Desk::new();
    desk.put(job("z-running").status("running")).put(job("a-failed").status("failed"));
    desk.put(job("one").after(&["z-running", "a-failed", "z-running"]));
    let blocked =
        standing("blocked_by_dependency", "dependencies", "dependency failed for job a-failed (failed)");
    assert_eq!(desk.ticked("one"), blocked);

    desk.put(job("a-running").status("running")).put(job("z-failed").status("failed"));
    desk.put(job("two").after(&["z-failed", "a-running"]));
    assert_eq!(desk.ticked("two"), standing("waiting_on_deps", "dependencies", "waiting on job a-running"));
}

#[test]
fn b_20_jobs_are_judged_before_artifacts() {
    let desk = Desk::new();
    desk.put(job("dep").status("running"));
    desk.put(job("one").after(&["dep"]).needs(&[crate::by_hand::custom("t", "k")]));
    assert_eq!(desk.ticked("one"), standing("waiting_on_deps", "dependencies", "waiting on job dep"));
}

#[test]
fn b_21_a_chain_of_blocked_jobs_settles_in_one_tick() {
    let desk = Desk::new();
    desk.put(job("a").status("failed"));
    // The order of creation and of the names is not that of the chain.
    desk.put(job("d").after(&["b"])).put(job("c").after(&["d"])).put(job("b").after(&["a"]));
    desk.tick();
    let blocked = |detail: &str| standing("blocked_by_dependency", "dependencies", detail);
    assert_eq!(desk.standing("b"), blocked("dependency failed for job a (failed)"));
    assert_eq!(desk.standing("d"), blocked("dependency failed for job b (blocked_by_dependency)"));
    assert_eq!(desk.standing("c"), blocked("dependency failed for job d (blocked_by_dependency)"));
}

#[test]
fn other_policies_take_other_ends_and_an_unmet_handler_is_skipped() {
    let ends =
        ["succeeded", "failed", "cancelled", "blocked_by_dependency", "blocked_by_approval", "skipped"];
    let blocked = ["blocked_by_dependency", "blocked_by_approval"];
    let is_met = |policy: &str, end: &str| match policy {
        "success" => end == "succeeded",
        "failed" | "cancelled" => end == policy,
        "blocked" => blocked.contains(&end),
        "failure" => end == "failed" || end == "cancelled" || blocked.contains(&end),
        _ => true,
    };
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 200\n");
    let mut expected = Vec::new();
    for end in ends {
        desk.put(job(end).status(end));
        for policy in ["success", "failed", "blocked", "cancelled", "failure", "completion"] {
            let id = format!("{policy}-after-{end}");
            // The gate of the approval shows that this one was passed, and nothing has to run.
            desk.put(job(&id).schedule("after", json!([{"job_id": end, "policy": policy}])).gated());
            let standing = if is_met(policy, end) {
                "waiting_on_approval"
            } else if policy == "success" && end != "skipped" {
                "blocked_by_dependency"
            } else {
                "skipped"
            };
            expected.push((id, standing));
        }
    }
    desk.tick();
    for (id, expected) in expected {
        assert_eq!(desk.status(&id), expected, "{id}");
    }
}

#[test]
fn b_23_what_a_run_is_after_is_checked_before_anything_is_written() {
    let desk = Desk::new();
    desk.flow("one", crate::runs::ONE);
    desk.put(job("dep").status("running"));
    desk.file(".tidewheel/jobs/bad/job.json", "not-json");
    let refused = |after: &str, says: &str| {
        let ran = desk.run(&["run", "one", "--after", after]);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
        assert!(ran.err.contains(says), "{says}: {ran:?}");
        assert_eq!(desk.job_dirs(), ["bad", "dep"]);
        assert!(!desk.in_jobs("runs").exists() || fs::read_dir(desk.in_jobs("runs")).unwrap().count() == 0);
    };
    refused("ghost", "unknown --after job id: ghost");
    refused("", "unknown --after job id: <empty>");
    refused("bad", "cannot read job record for --after bad: ");
    let run = desk.enqueue(&["one", "--after", "dep", "--after", "dep"]);
    let record = desk.record(&format!("wf-{run}-one"));
    assert_eq!(record["schedule"]["after"], json!([{"job_id": "dep", "policy": "success"}]));
    assert_eq!(record["status"], "waiting_on_deps");
}
