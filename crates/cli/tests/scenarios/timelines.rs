//! Where the time of a run went.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::by_hand::{Desk, Job, job};
use crate::runs::flow;
use crate::world::{Ran, eventually};

const RUN: &str = "run_00000000000000000000000000000007";

/// A policy that lets everything be tried twice, almost at once.
const TWICE: &str = "[[policies]]\nmatch = { default = true }\nmax_retries = 1\nbackoff = \"linear\"\nbase_delay = \"20ms\"\n";

/// Writes a job of a run by hand, with its events: seconds after noon and what happened.
fn put(desk: &Desk, record: Job, events: &[(u32, Value)]) {
    let id = record.0["id"].as_str().unwrap().to_owned();
    let record = record.meta("workflow_run_id", RUN).meta("workflow_node_id", id.as_str());
    desk.put(record.with("created_at", "2026-02-01T12:00:00Z"));
    let line = |(second, event): &(u32, Value)| {
        format!("{}\n", json!({"at": format!("2026-02-01T12:00:{second:02}Z"), "attempt": 1, "event": event}))
    };
    fs::write(desk.in_jobs(&id).join("events.jsonl"), events.iter().map(line).collect::<String>()).unwrap();
}

/// Makes the run of the jobs that are written by hand one that was enqueued to the end.
fn manifest(desk: &Desk) {
    let manifest = json!({
        "version": 1, "run_id": RUN, "workflow_template_selector": "t", "workflow_template_id": "template.t",
        "workflow_template_version": "v1", "policy_snapshot_hash": "", "created_at": "2026-02-01T12:00:00Z",
        "params": {}, "nodes": {},
    });
    desk.file(&format!(".tidewheel/jobs/runs/{RUN}.json"), &manifest.to_string());
}

fn dispatched() -> Value {
    json!({"dispatched": {"policy_attempt": 0, "stdout_offset": 0, "stderr_offset": 0}})
}

fn completed(outcome: &str) -> Value {
    json!({"completed": {"outcome": outcome, "exit_code": 0, "summary": null}})
}

/// Returns the desk with a run that is half over: one job failed once and succeeded, one runs, one waits, one is blocked.
fn half_over() -> Desk {
    let desk = Desk::new();
    manifest(&desk);
    put(
        &desk,
        job("fetch").status("succeeded").with("finished_at", "2026-02-01T12:00:20Z"),
        &[(0, dispatched()), (20, completed("succeeded"))],
    );
    put(&desk, job("build").status("running").after(&["fetch"]), &[(20, dispatched())]);
    let waits = json!({"kind": "locks", "detail": "waiting on locks"});
    put(&desk, job("test").status("waiting_on_locks").after(&["fetch"]).schedule("wait_reason", waits), &[]);
    put(&desk, job("ship").status("blocked_by_dependency").after(&["gone"]), &[]);
    desk
}

fn timeline(desk: &Desk, columns: &str, arguments: &[&str]) -> Ran {
    let mut command = desk.command(&[&["runs", "timeline", RUN], arguments].concat());
    command.env("TIDEWHEEL_NOW", "2026-02-01T12:00:40Z").env("COLUMNS", columns);
    Ran::of(&mut command)
}

#[test]
fn a_run_that_goes_on_is_drawn_until_now() {
    let desk = half_over();
    let ran = timeline(&desk, "72", &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(
        ran.out,
        "\
run_00000000000000000000000000000007
  workflow   template.t@v1
  status     running: 1 running, 1 waiting, 1 succeeded, 1 blocked
  created    40s ago (2026-02-01T12:00:00Z)
  so far     40s

         0s    5s    10s   15s   20s   25s   30s   35s
         ├─────┼─────┼─────┼─────┼─────┼─────┼─────┼─────┼
* fetch  ████████████████████████✓                           20s
* build                          ████████████████████████    20s running
  test                           ≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡≡    20s waiting
  ship                                                       blocked

  █ attempt   ≡ locks   * critical path

Critical path
  fetch > build (40s of 40s)

Where the time went
  attempt                     40s  100%
  locks                        0s    0%  (20s over all pieces)
  in all                      40s
"
    );
}

#[test]
fn the_text_is_as_wide_as_the_terminal_and_no_wider() {
    let desk = half_over();
    for columns in ["60", "80", "131", "200"] {
        let ran = timeline(&desk, columns, &[]);
        let width = columns.parse().unwrap();
        assert!(ran.out.lines().all(|line| line.width() <= width), "{columns}: {}", ran.out);
        assert_eq!(ran.out, timeline(&desk, "99", &["--width", columns]).out);
    }
    assert_eq!(timeline(&desk, "80", &["--width", "7"]).code, Some(2));
}

#[test]
fn the_data_has_attempts_stretches_and_the_critical_path() {
    let desk = half_over();
    let form = timeline(&desk, "80", &["--format", "json"]).json();
    assert_eq!(
        (&form["version"], &form["run_id"], &form["is_over"]),
        (&json!(1), &json!(RUN), &json!(false))
    );
    assert_eq!(form["critical_path"], json!({"jobs": ["fetch", "build"], "took_ns": 40_000_000_000_u64}));
    let jobs: Vec<&str> =
        form["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap()).collect();
    assert_eq!(jobs, ["fetch", "build", "test", "ship"]);
    let stretch = json!([{"doing": "locks", "from": "2026-02-01T12:00:20Z", "to": null}]);
    assert_eq!(form["jobs"][2]["stretches"], stretch);
    assert_eq!(form["jobs"][0]["attempts"][0]["outcome"], "succeeded");
    assert_eq!(form["time"]["total_ns"], 40_000_000_000_u64);
}

#[test]
fn a_picture_needs_nothing_else() {
    let desk = half_over();
    let ran = timeline(&desk, "80", &["--format", "svg"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\""), "{}", ran.out);
    assert!(ran.out.ends_with("</svg>\n") && !ran.out.contains("<script") && !ran.out.contains("href"));
    for part in
        ["class=\"running\"", "class=\"attempt\"", "class=\"hold\"", "class=\"critical\"", ">template.t@v1<"]
    {
        assert!(ran.out.contains(part), "{part} in {}", ran.out);
    }
}

#[test]
fn a_run_that_was_retried_and_failed_shows_each_attempt() {
    let desk = Desk::new();
    let nodes = flow(&[("bad", "exit 3", ""), ("later", "true", "after = [{ node_id = \"bad\" }]")]);
    desk.flow("bad", &nodes.replace("version = \"v1\"\n", &format!("version = \"v1\"\n{TWICE}")));
    let run = desk.enqueue(&["bad"]);
    desk.wait(&format!("run:{run}"));
    let form = desk.json(&["runs", "timeline", &run]);
    assert_eq!((&form["status"], &form["is_over"]), (&json!("failed"), &json!(true)));
    let bad = &form["jobs"][0];
    let ended: Vec<&Value> =
        bad["attempts"].as_array().unwrap().iter().map(|one| &one["exit_code"]).collect();
    assert_eq!(ended, [&json!(3), &json!(3)]);
    let doings: Vec<&str> =
        bad["stretches"].as_array().unwrap().iter().map(|one| one["doing"].as_str().unwrap()).collect();
    assert_eq!(doings.iter().filter(|doing| **doing == "failed").count(), 2, "{doings:?}");
    assert!(doings.contains(&"backoff"), "{doings:?}");
    assert_eq!(
        (&form["jobs"][1]["status"], &form["jobs"][1]["stretches"]),
        (&json!("blocked_by_dependency"), &json!([]))
    );
    let text = desk.run(&["runs", "timeline", &run]);
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""), "{text:?}");
    assert!(text.out.contains("\nCritical path\n  bad ("), "{}", text.out);
    let row = text.out.lines().find(|line| line.starts_with("  later ")).unwrap();
    assert!(row.ends_with(" blocked"), "{row}");
    assert!(!text.out.contains('\u{1b}'), "no colours where nobody sees them");
}

#[test]
fn a_running_job_is_seen_while_it_runs() {
    let desk = Desk::new();
    desk.flow("slow", &flow(&[("slow", "sleep 600", "")]));
    let run = desk.enqueue(&["slow"]);
    eventually("it runs", || desk.status(&format!("wf-{run}-slow")) == "running");
    let form = desk.json(&["runs", "timeline", &run]);
    assert_eq!((&form["status"], &form["jobs"][0]["attempts"][0]["to"]), (&json!("running"), &Value::Null));
    assert_eq!(desk.run(&["runs", "cancel", &run]).code, Some(0));
    let form = desk.json(&["runs", "timeline", &run]);
    assert_eq!(form["jobs"][0]["attempts"][0]["outcome"], "cancelled");
}

#[test]
fn a_run_that_is_not_there_is_refused() {
    let ran = Desk::new().run(&["runs", "timeline", "run_7"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("error[TW0013]"), "{ran:?}");
}
