//! Fields, words and numbers that scripts rely on, beside those of the other files.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, Job, at, job};
use crate::runs::{ONE, flow, flow_of};
use crate::world::Ran;

#[test]
fn b_23_a_cycle_of_jobs_is_refused_by_name() {
    let desk = Desk::new();
    desk.put(job("A").after(&["B"])).put(job("B").after(&["A"]));
    desk.flow("one", ONE);
    let ran = desk.run(&["run", "one", "--after", "A"]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    assert!(ran.err.contains("invalid --after cycle: A -> B -> A"), "{ran:?}");
    assert_eq!(desk.job_dirs(), ["A", "B"]);
}

#[test]
fn h_74_a_retried_job_counts_its_starts() {
    let desk = Desk::new();
    desk.put(job("a").status("failed").meta("workflow_node_attempt", 4));
    desk.put(job("b").status("failed"));
    for (id, attempt) in [("a", 5), ("b", 2)] {
        desk.json(&["jobs", "retry", id]);
        desk.wait(id);
        let record = desk.record(id);
        assert_eq!(
            (&record["status"], &record["metadata"]["workflow_node_attempt"]),
            (&json!("succeeded"), &json!(attempt))
        );
    }
    desk.put(job("c"));
    desk.tick();
    desk.wait("c");
    assert_eq!(desk.record("c")["metadata"]["workflow_node_attempt"], 1);
    desk.json(&["jobs", "retry", "c"]);
    desk.wait("c");
    assert_eq!(desk.record("c")["metadata"]["workflow_node_attempt"], 2);
}

#[test]
fn k_108_without_colours_there_is_no_watching() {
    let desk = Desk::new();
    let ran = desk.run(&["jobs", "schedule", "--watch", "--no-ansi"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("`--watch` requires an interactive TTY with ANSI enabled"), "{ran:?}");
}

#[test]
fn k_113_everything_that_is_known_of_a_job_can_be_seen() {
    let desk = Desk::new();
    let gate = "gates = [{ kind = \"approval\", required = true }]\nafter = [\"a\"]\n\
                needs = [{ merge_sentinel = { slug = \"s\" } }]\nproduces.succeeded = [{ plan_branch = { slug = \"s\", branch = \"b\" } }]\n\
                locks = [{ key = \"k\", mode = \"shared\" }]";
    desk.file(".tidewheel/tmp/merge-conflicts/s.json", "{}");
    desk.flow("pair", &flow(&[("a", "true", ""), ("b", "true", gate)]));
    let run = desk.enqueue(&["pair"]);
    let (a, b) = (format!("wf-{run}-a"), format!("wf-{run}-b"));
    desk.wait(&a);
    desk.run(&["jobs", "approve", &b]);
    desk.wait(&b);
    let shown = desk.json(&["jobs", "show", &b]);
    for (field, value) in [
        ("dependencies", "merge_sentinel:s"),
        ("locks", "k:shared"),
        ("approval_required", "true"),
        ("approval_state", "approved"),
        ("approval_decided_by", "ada"),
        ("artifacts", "plan_branch:s (b)"),
        ("workflow_executor_class", "environment_shell"),
        ("workflow_executor_operation", "command.run"),
        ("execution_root", "."),
        ("status", "succeeded"),
        ("exit_code", "0"),
    ] {
        assert_eq!(shown[field], value, "{field}: {shown}");
    }
    for (field, part) in [
        ("after", a.as_str()),
        ("waited_on", "approval"),
        ("workflow_template", "T"),
        ("workflow_node", "b"),
        ("workflow_gates", "approval"),
        ("workflow_policy_snapshot", ""),
        ("started", "T"),
        ("finished", "T"),
    ] {
        let value = shown[field].as_str().unwrap_or_else(|| panic!("{field}: {shown}"));
        assert!(value.contains(part), "{field}: {value}");
    }
    for format in ["block", "table"] {
        let ran = desk.run(&["jobs", "show", &b, "--format", format]);
        assert!(
            ran.code == Some(0) && ran.out.contains("command.run") && ran.out.contains("k:shared"),
            "{ran:?}"
        );
        let ran = desk.run(&["jobs", "list", "--all", "--format", format]);
        assert!(ran.code == Some(0) && ran.out.contains(&b), "{ran:?}");
    }
}

#[test]
fn m_138_a_gate_without_an_approval_to_look_at_is_blocked() {
    let desk = Desk::new();
    desk.flow(
        "gate",
        "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"gate\"\nuses = \"control.gate.approval\"\n",
    );
    let id = format!("wf-{}-n", desk.enqueue(&["gate"]));
    let mut record = desk.record(&id);
    record["schedule"]["approval"] = Value::Null;
    desk.put(Job(record)).tick();
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&json!("blocked_by_dependency"), &json!(10)),
        "{record}"
    );
    assert_eq!(record["metadata"]["workflow_node_outcome"], "blocked");
    assert!(record["finished_at"].is_string());
    let outcome: Value =
        serde_json::from_str(&fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap()).unwrap();
    assert_eq!(outcome["status"], "blocked_by_dependency");
    assert_eq!(outcome["summary"], "approval gate blocked: no approval state present");
}

#[test]
fn m_139_an_attempt_too_many_is_blocked() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.flow(
        "stop",
        "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"gate\"\nuses = \"control.gate.stop_condition\"\n\
         gates = [{ kind = \"script\", script = \"exit 5\" }]\nretry = { mode = \"until_gate\", budget = 1 }\n\
         locks = [{ key = \"k\", mode = \"exclusive\" }]\n",
    );
    let id = format!("wf-{}-n", desk.enqueue(&["stop"]));
    let mut record = desk.record(&id);
    record["metadata"]["workflow_node_attempt"] = json!(3);
    desk.put(Job(record)).end("holder", "succeeded").tick();
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&json!("blocked_by_dependency"), &json!(10)),
        "{record}"
    );
    let outcome = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap();
    assert!(outcome.contains("stop-condition failed on attempt 3; retry budget exhausted (1)"), "{outcome}");
}

#[test]
fn a_job_of_a_linked_worktree_runs_in_the_main_one() {
    let desk = Desk::with_git();
    desk.git(&["rm", "-rq", "--cached", ".tidewheel"]);
    desk.file(".gitignore", ".tidewheel/\n");
    desk.git(&["add", ".gitignore"]);
    desk.git(&["commit", "-qm", "without"]);
    let linked = desk.outside().join("linked");
    desk.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "linked"]);
    desk.flow("where", &flow_of("pwd >where"));
    let mut command = desk.command(&["run", "where", "--follow"]);
    command.current_dir(&linked);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let root = fs::canonicalize(desk.path("")).unwrap();
    assert_eq!(fs::read_to_string(desk.path("where")).unwrap(), format!("{}\n", root.display()));
}

#[test]
fn a_run_works_without_any_data_directory_before_it() {
    let desk = Desk::new();
    let fresh = desk.outside().join("fresh");
    fs::create_dir_all(&fresh).unwrap();
    fs::write(fresh.join("one.toml"), flow_of("touch done")).unwrap();
    let mut command = desk.command(&["run", "one.toml", "--follow"]);
    command.current_dir(&fresh);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fresh.join("done").exists() && fresh.join(".tidewheel/jobs/runs").exists());
}

#[test]
fn an_old_record_without_a_version_or_paths_is_read() {
    let desk = Desk::new();
    desk.file(
        ".tidewheel/jobs/old/job.json",
        r#"{"id":"old","status":"queued","command":["x"],"child_args":["--version"],"created_at":"2026-02-01T12:00:00+00:00"}"#,
    );
    assert_eq!(desk.tick().started, ["old"]);
    desk.wait("old");
    let record = desk.record("old");
    assert_eq!(record["status"], "succeeded");
    assert!(at(&record, "/version").is_u64());
    assert_eq!(record["stdout_path"], ".tidewheel/jobs/old/stdout.log");
}
