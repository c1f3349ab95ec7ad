//! `tidewheel jobs explain` and `tidewheel runs explain` on runs of jobs: what people read, and what programs get.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::yard::Yard;

const NOW: &str = "2026-02-01T12:10:00Z";

/// Explains at ten past twelve.
fn explain(yard: &Yard, arguments: &[&str]) -> String {
    at_width(yard, arguments, "80")
}

fn at_width(yard: &Yard, arguments: &[&str], columns: &str) -> String {
    let variables = [("TIDEWHEEL_NOW", NOW), ("COLUMNS", columns), ("PATH", "/usr/bin:/bin")];
    let ran = yard.home.run_under(&variables, &[&["jobs", "explain"], arguments].concat());
    ran.to_string()
}

fn pending() -> Value {
    json!({ "required": true, "state": "pending", "requested_at": "2026-02-01T12:00:00Z", "requested_by": "ada" })
}

fn after(ids: &[&str]) -> Value {
    ids.iter().map(|id| json!({ "job_id": id })).collect()
}

/// Returns jobs that wait for each other, for locks and for a person.
fn waiting() -> Yard {
    let yard = Yard::new();
    let args = json!(["--version"]);
    yard.job("sign-off", "queued", 0, json!({ "child_args": args, "schedule": { "approval": pending() } }));
    yard.job(
        "test",
        "queued",
        1,
        json!({ "child_args": args, "schedule": { "after": after(&["sign-off"]) } }),
    );
    yard.job(
        "deploy",
        "queued",
        2,
        json!({ "child_args": args, "schedule": { "after": after(&["test"]), "approval": pending(),
            "locks": [{ "key": "prod", "mode": "exclusive" }] } }),
    );
    yard.job(
        "holder",
        "running",
        3,
        json!({ "started_at": "2026-02-01T12:08:30Z", "schedule": { "locks": [{ "key": "db", "mode": "exclusive" }] } }),
    );
    yard.job(
        "migrate",
        "queued",
        4,
        json!({ "child_args": args, "schedule": { "locks": [{ "key": "db", "mode": "shared" }] } }),
    );
    yard
}

/// Returns a job that failed after a retry, and one that is blocked by it.
fn failed() -> Yard {
    let yard = Yard::new();
    let ended = json!({ "exit_code": 75, "started_at": "2026-02-01T12:05:02Z", "finished_at": "2026-02-01T12:05:10Z",
        "metadata": { "workflow_node_attempt": 2 } });
    yard.job("import", "failed", 0, ended);
    yard.job(
        "report",
        "blocked_by_dependency",
        1,
        json!({ "schedule": { "after": after(&["import"]),
            "wait_reason": { "kind": "dependencies", "detail": "dependency failed for job import (failed)" } } }),
    );
    let dispatched = |second: u32, attempt: u32, out: u64, err: u64| {
        json!({ "at": format!("2026-02-01T12:05:{second:02}Z"), "attempt": attempt, "event": { "dispatched": {
            "policy_attempt": attempt - 1, "stdout_offset": out, "stderr_offset": err } } })
    };
    let failed = |second: u32, attempt: u32, decision: Value| {
        json!({ "at": format!("2026-02-01T12:05:{second:02}Z"), "attempt": attempt, "event": { "attempt_failed": {
            "exit_code": 75, "message": "exit code 75: no answer", "decision": decision } } })
    };
    let retry = json!({ "action": "RETRY_AT", "reason_code": "SCHED_RETRY_SCHEDULED", "attempt_next_index": 1,
        "next_due_at_ns": 1_769_947_502_000_000_000_u64 });
    let fail =
        json!({ "action": "FAIL", "reason_code": "SCHED_MAX_RETRIES_REACHED", "attempt_next_index": 1 });
    let end = json!({ "at": "2026-02-01T12:05:10Z", "attempt": 2, "event": { "completed": {
        "outcome": "failed", "exit_code": 75, "summary": "exit code 75" } } });
    let events =
        [dispatched(0, 1, 0, 0), failed(1, 1, retry), dispatched(2, 2, 10, 10), failed(10, 2, fail), end];
    let events: String = events.iter().flat_map(|event| [event.to_string(), "\n".into()]).collect();
    yard.home.file(".tidewheel/jobs/import/events.jsonl", events);
    let stdout =
        "connected\n\u{1b}[31mred\u{1b}[0m and dead\n".to_owned() + &"line\n".repeat(9) + "the last line\n";
    yard.home.file(".tidewheel/jobs/import/stdout.log", stdout);
    yard.home.file(".tidewheel/jobs/import/stderr.log", "no answer\nno answer again\n");
    yard
}

#[test]
fn a_chain_is_told_to_its_end_with_what_to_type() {
    assert_snapshot!(explain(&waiting(), &["deploy"]), @"
    make deploy (job deploy) is queued.

    Why it is not running
      deploy waits on test, which waits on sign-off, which awaits a person's
      approval, which ada asked for 10m ago (2026-02-01T12:00:00Z).
      A person has to approve or reject it.
        tidewheel jobs approve sign-off
        tidewheel jobs reject sign-off

    Gates
      after     waiting      waiting on job test
      approval  not reached  pending
      locks     not reached  prod:exclusive

    Next
      It goes on when test has succeeded. Then it still needs a person's approval
      and the lock prod.
        tidewheel jobs approve deploy
    ");
}

#[test]
fn a_lock_is_told_with_its_holder() {
    assert_snapshot!(explain(&waiting(), &["migrate"]), @"
    make migrate (job migrate) is queued.

    Why it is not running
      migrate waits on the lock db behind holder, which has been running for 1m 30s.
      It runs until its process ends; you can watch it, or cancel it.
        tidewheel jobs tail holder --follow
        tidewheel jobs cancel holder

    Gates
      locks  waiting  waiting on locks

    Next
      It goes on when the lock db is free.
    ");
}

#[test]
fn what_failed_is_told_attempt_by_attempt_with_its_last_lines() {
    assert_snapshot!(explain(&failed(), &["import"]), @"
    make import (job import) failed 4m 50s ago (2026-02-01T12:05:10Z) with exit code
    75, after 2 attempts.

    Attempts
      Attempt 1 began 5m ago (2026-02-01T12:05:00Z) and failed after 1s with exit
      code 75: no answer.
        RETRY_AT: retry 1 is due at 2026-02-01T12:05:02Z (SCHED_RETRY_SCHEDULED).
        [stdout] connected
        [stderr] no answer
      Attempt 2 began 4m 58s ago (2026-02-01T12:05:02Z) and failed after 8s with
      exit code 75: no answer.
        FAIL: all retries that its policy allows were made
        (SCHED_MAX_RETRIES_REACHED).
        [stdout] line
        [stdout] line
        [stdout] line
        [stdout] line
        [stdout] the last line
        [stderr] no answer again

    Next
      Nothing automatic: it is over. A retry runs it again, with all that is after
      it.
        tidewheel jobs retry import
      report is blocked by it.
    ");
    assert_snapshot!(explain(&failed(), &["report"]), @"
    make report (job report) is blocked and does not start without a retry
    (blocked_by_dependency).

    Why it is blocked
      report is blocked by import, which failed with exit code 75.
      A retry runs it again, and what is after it, once what went wrong is put
      right.
        tidewheel jobs retry import

    Gates
      after  blocked  dependency failed for job import (failed)

    Next
      Nothing automatic: it is over. A retry of what holds it up runs it again, too.
        tidewheel jobs retry import
    ");
}

#[test]
fn every_width_is_kept_to_but_by_commands_and_ids() {
    for width in [60, 80, 120, 200] {
        let said = at_width(&waiting(), &["deploy"], &width.to_string())
            + &at_width(&failed(), &["import"], &width.to_string());
        assert!(said.lines().all(|line| line.chars().count() <= width), "{width}:\n{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn programs_get_all_of_it() {
    let ran = explain(&waiting(), &["deploy", "--format", "json"]);
    let told: Value = serde_json::from_str(&ran).unwrap_or_else(|error| panic!("{error}: {ran}"));
    assert_eq!(
        (&told["version"], &told["job"], &told["status"]),
        (&json!(1), &json!("deploy"), &json!("queued"))
    );
    let gates: Vec<(&str, &str)> = told["gates"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|gate| (gate["gate"].as_str().unwrap_or(""), gate["state"].as_str().unwrap_or("")))
        .collect();
    let expected = [
        ("after", "waiting"),
        ("artifacts", "not_set"),
        ("pinned_head", "not_set"),
        ("preconditions", "not_set"),
        ("approval", "not_reached"),
        ("locks", "not_reached"),
        ("schedule", "not_set"),
        ("capacity", "not_reached"),
        ("circuit_breaker", "not_set"),
        ("idempotency_key", "not_set"),
        ("command", "not_reached"),
        ("rate_limit", "not_set"),
    ];
    assert_eq!(gates, expected);
    assert_eq!(told["gates"][0]["detail"], "waiting on job test");
    let causes = &told["causes"];
    assert_eq!((&causes[0]["job"], &causes[1]["job"]), (&json!("deploy"), &json!("test")));
    assert_eq!(causes[2]["kind"], "approval");
    assert_eq!((&causes[2]["via"], &causes[2]["root"]), (&json!("test"), &json!(true)));
    assert_eq!(causes[2]["remedy"]["commands"][0], "tidewheel jobs approve sign-off");
    assert_eq!((&told["attempts"], &told["next"]["what"]), (&json!([]), &json!("wait")));
    let ran = explain(&failed(), &["import", "--format", "json"]);
    let told: Value = serde_json::from_str(&ran).unwrap_or_else(|error| panic!("{error}: {ran}"));
    let first = &told["attempts"][0];
    assert_eq!(
        (&first["attempt"], &first["outcome"], &first["exit_code"]),
        (&json!(1), &json!("failed"), &json!(75))
    );
    assert_eq!((&first["duration_ms"], &first["started_at"]), (&json!(1000), &json!("2026-02-01T12:05:00Z")));
    assert_eq!(first["decision"]["action"], "RETRY_AT");
    assert_eq!(first["decision"]["at"], "2026-02-01T12:05:02Z");
    assert_eq!(first["decision"]["reason_code"], "SCHED_RETRY_SCHEDULED");
    let output =
        json!([{ "stream": "stdout", "text": "connected" }, { "stream": "stderr", "text": "no answer" }]);
    assert_eq!(first["output"], output);
    assert_eq!(told["next"]["dependents"], json!({ "direct": ["report"], "waiting": 0, "blocked": 1 }));
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let yard = waiting();
    assert_snapshot!(explain(&yard, &["nobody"]), @"
    --- stderr
    error[TW0018]: no background job nobody
    hint: `tidewheel jobs list --all` lists the jobs.
    --- exit code 1
    ");
    assert_snapshot!(explain(&yard, &["run:nobody"]), @"
    --- stderr
    error[TW0013]: no workflow run run:nobody
    hint: `tidewheel runs list` lists the runs.
    --- exit code 1
    ");
    let ran = yard.home.run(&["runs", "explain", "nobody"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.err.contains("no workflow run nobody"), "{ran}");
}
