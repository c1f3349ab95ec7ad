//! What nodes do.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, job};
use crate::runs::{ONE, flow, flow_of};

/// Returns a template `T@v1` with one node `n` of a control policy, and more of the node.
fn control(policy: &str, more: &str) -> String {
    format!(
        "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"gate\"\nuses = \"control.{policy}\"\n{more}\n"
    )
}

/// Runs a template to its end and returns the record of its node `n`, the exit code and the summary of the outcome.
#[track_caller]
fn ended(desk: &Desk, text: &str) -> (Value, Option<i32>, String) {
    desk.flow("flow", text);
    let ran = desk.run(&["run", "flow", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned();
    let id = format!("wf-{run}-n");
    let outcome = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap();
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    (desk.record(&id), ran.code, outcome["summary"].as_str().unwrap_or("").to_owned())
}

/// Returns how a node ended: status, exit code and outcome.
fn end_of(record: &Value) -> (&str, Option<i64>, &str) {
    let outcome = record["metadata"]["workflow_node_outcome"].as_str().unwrap_or("");
    (record["status"].as_str().unwrap(), record["exit_code"].as_i64(), outcome)
}

const FAILED_7: (&str, Option<i64>, &str) = ("failed", Some(7), "failed");
const SUCCEEDED: (&str, Option<i64>, &str) = ("succeeded", Some(0), "succeeded");

#[test]
fn m_136_a_command_ends_with_its_code() {
    let desk = Desk::new();
    let node = |args: &str| flow(&[("n", "", "")]).replace("{ script = \"\" }", args);
    for args in
        ["{ script = \"printf ok\" }", "{ command = \"printf ok\" }", "{ command = [\"printf\", \"ok\"] }"]
    {
        let (record, code, _) = ended(&desk, &node(args));
        assert_eq!((end_of(&record), code), (SUCCEEDED, Some(0)), "{args}");
        let log = desk.path(record["stdout_path"].as_str().unwrap());
        assert_eq!(fs::read_to_string(log).unwrap(), "ok", "{args}");
    }
    let (record, code, _) = ended(&desk, &node("{ script = \"exit 9\" }"));
    assert_eq!((end_of(&record), code), (("failed", Some(9), "failed"), Some(1)));
    let (record, _, _) = ended(&desk, &node("{ script = \"kill -9 $$\" }"));
    assert_eq!(end_of(&record), ("failed", Some(137), "failed"));
    let (record, _, _) = ended(&desk, &node("{ command = [\"no-such-program-anywhere\"] }"));
    assert_eq!((record["status"].as_str(), record["finished_at"].is_string()), (Some("failed"), true));
    for bad in ["{ }", "{ script = \"true\", command = \"true\" }"] {
        desk.flow("bad", &node(bad));
        assert!(matches!(desk.run(&["run", "bad", "--check"]).code, Some(1 | 2)), "{bad}");
    }
}

#[test]
fn m_137_a_check_runs_its_own_script_or_that_of_its_gate() {
    let desk = Desk::new();
    let node = |more: &str| {
        format!(
            "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"shell\"\n\
             uses = \"cap.env.shell.cicd.run\"\n{more}\n"
        )
    };
    assert_eq!(end_of(&ended(&desk, &node("args = { script = \"exit 7\" }")).0), FAILED_7);
    assert_eq!(end_of(&ended(&desk, &node("args = { script = \"true\" }")).0), SUCCEEDED);
    let gate = node("gates = [{ kind = \"cicd\", script = \"exit 7\" }]");
    assert_eq!(end_of(&ended(&desk, &gate).0), FAILED_7);
}

#[test]
fn m_138_a_gate_of_approval_waits_for_it() {
    let desk = Desk::new();
    desk.flow("gate", &control("gate.approval", ""));
    let gate = || {
        let run = desk.enqueue(&["gate"]);
        let id = format!("wf-{run}-n");
        assert_eq!(desk.status(&id), "waiting_on_approval");
        id
    };
    let yes = gate();
    assert_eq!(desk.run(&["jobs", "approve", &yes]).code, Some(0));
    desk.wait(&yes);
    assert_eq!(end_of(&desk.record(&yes)), SUCCEEDED);
    let no = gate();
    assert_eq!(desk.run(&["jobs", "reject", &no]).code, Some(0));
    assert_eq!(
        (desk.status(&no), desk.record(&no)["exit_code"].clone()),
        ("blocked_by_approval".into(), json!(10))
    );
    let (record, code, _) = ended(&desk, &control("gate.approval", "args = { required = \"false\" }"));
    assert_eq!((end_of(&record), code), (SUCCEEDED, Some(0)));
}

#[test]
fn m_139_a_stop_condition_asks_its_script() {
    let desk = Desk::new();
    let stop = |script: &str| {
        control("gate.stop_condition", &format!("gates = [{{ kind = \"script\", script = \"{script}\" }}]"))
    };
    assert_eq!(end_of(&ended(&desk, &control("gate.stop_condition", "")).0), SUCCEEDED);
    assert_eq!(end_of(&ended(&desk, &stop("true")).0), SUCCEEDED);
    assert_eq!(end_of(&ended(&desk, &stop("exit 7")).0), FAILED_7);
}

#[test]
fn m_139_a_stop_condition_goes_back_until_its_budget_is_used_up() {
    let desk = Desk::new();
    let text = flow(&[("work", "echo work >>log", "")])
        + "[[nodes]]\nid = \"n\"\nkind = \"gate\"\nuses = \"control.gate.stop_condition\"\nafter = [\"work\"]\n\
           gates = [{ kind = \"script\", script = \"test $(wc -l <log) -ge ${enough}\" }]\n\
           retry = { mode = \"until_gate\", budget = 1 }\non.failed = [\"work\"]\n[params]\nenough = \"2\"\n";
    let (record, code, _) = ended(&desk, &text);
    assert_eq!((end_of(&record), code), (SUCCEEDED, Some(0)));
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "work\nwork\n");
    fs::remove_file(desk.path("log")).unwrap();
    let (record, code, summary) = ended(&desk, &text.replace("enough = \"2\"", "enough = \"9\""));
    assert_eq!((end_of(&record), code), (("blocked_by_dependency", Some(10), "blocked"), Some(10)));
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "work\nwork\n");
    assert_eq!(summary, "stop-condition failed on attempt 2; retry budget exhausted (1)");
}

#[test]
fn m_141_a_gate_of_checks_can_mend_what_it_finds() {
    let desk = Desk::new();
    let gate = |more: &str, args: &str| {
        control("gate.cicd", &format!("gates = [{{ kind = \"cicd\", {more} }}]\n{args}"))
    };
    assert_eq!(end_of(&ended(&desk, &gate("script = \"exit 7\"", "")).0), FAILED_7);
    assert_eq!(end_of(&ended(&desk, &gate("script = \"true\"", "")).0), SUCCEEDED);
    assert_eq!(end_of(&ended(&desk, &control("gate.cicd", "")).0), SUCCEEDED);
}

#[test]
fn m_143_a_terminal_node_is_the_end() {
    let desk = Desk::new();
    let (record, code, summary) = ended(&desk, &control("terminal", ""));
    assert_eq!((end_of(&record), code, summary.as_str()), (SUCCEEDED, Some(0), "terminal sink reached"));
    let text = control("terminal", "on.succeeded = [\"next\"]")
        + &flow(&[("next", "true", "")]).replacen("id = \"T\"\nversion = \"v1\"\n", "", 1);
    desk.flow("bad", &text);
    let ran = desk.run(&["run", "bad"]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    assert!(ran.err.contains("terminal policy node must not declare outgoing routes"), "{ran:?}");
}

#[test]
fn m_148_a_job_never_runs_outside_of_the_repository() {
    let desk = Desk::new();
    fs::create_dir_all(desk.outside().join("evil")).unwrap();
    std::os::unix::fs::symlink(desk.outside().join("evil"), desk.path("link")).unwrap();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    let lock = "locks = [{ key = \"k\", mode = \"exclusive\" }]\n";
    desk.flow("touch", &(flow_of("touch here") + lock));
    let roots = ["../evil".to_owned(), desk.outside().join("evil").display().to_string(), "link".to_owned()];
    let ids = roots.map(|root| {
        let id = format!("wf-{}-one", desk.enqueue(&["touch"]));
        let mut record = desk.record(&id);
        record["metadata"]["execution_root"] = json!(root);
        desk.put(crate::by_hand::Job(record));
        id
    });
    desk.end("holder", "succeeded").tick();
    for id in ids {
        desk.wait(&id);
        let record = desk.record(&id);
        assert_eq!(
            (record["status"].as_str(), record["exit_code"].as_i64()),
            (Some("failed"), Some(1)),
            "{record}"
        );
        let said = fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap();
        assert!(said.contains("workflow metadata.execution_root path"), "{said}");
        assert!(said.contains("is outside repository root"), "{said}");
    }
    assert!(!desk.outside().join("evil/here").exists() && !desk.path("here").exists());
}

#[test]
fn m_154_a_job_without_its_manifest_fails_and_never_stays_running() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.flow("locked", &(flow_of("true") + "locks = [{ key = \"k\", mode = \"exclusive\" }]\n"));
    let run = desk.enqueue(&["locked"]);
    let id = format!("wf-{run}-one");
    // The manifest is there, so that the job is scheduled, and says nothing.
    desk.file(&format!(".tidewheel/jobs/runs/{run}.json"), "not-json");
    desk.end("holder", "succeeded").tick();
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!(
        (record["status"].as_str(), record["exit_code"].as_i64()),
        (Some("failed"), Some(1)),
        "{record}"
    );
    assert!(record["finished_at"].is_string());
}

#[test]
fn a_job_knows_who_it_is() {
    let desk = Desk::new();
    desk.flow("who", &flow_of("env | grep '^TIDEWHEEL_' | sort"));
    let run = desk.enqueue(&["who"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    let said = fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap();
    for line in [
        format!("TIDEWHEEL_JOB_ID={id}"),
        "TIDEWHEEL_ATTEMPT=1".to_owned(),
        format!("TIDEWHEEL_RUN={run}"),
        "TIDEWHEEL_NODE=one".to_owned(),
    ] {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    assert!(said.contains("TIDEWHEEL_IDEMPOTENCY_KEY="), "{said}");
}

#[test]
fn the_hidden_command_is_hidden() {
    let desk = Desk::new();
    for arguments in [&["--help"][..], &["help"], &["jobs", "--help"]] {
        let ran = desk.run(arguments);
        assert!(!ran.out.contains("__workflow-node") && !ran.err.contains("__workflow-node"), "{ran:?}");
    }
    // By hand, without a lock and without a job, it does nothing.
    desk.put(job("one"));
    for id in ["one", "nobody", "../one"] {
        let ran = desk.run(&["__workflow-node", "--job-id", id]);
        assert_ne!(ran.code, Some(0), "{id}: {ran:?}");
    }
    assert_eq!(desk.status("one"), "queued");
}
