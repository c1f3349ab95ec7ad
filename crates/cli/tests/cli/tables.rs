//! Lists and tables at terminals of several widths: what fits, what is short, and what every command takes.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::yard::Yard;

/// The present, three minutes after the first job.
const NOW: &str = "2026-02-01T12:03:20Z";

/// Two runs that begin alike, the first older than the second.
const RUNS: [&str; 2] = ["run_14660000000000000000000000000a01", "run_1466ffff0000000000000000000000b2"];

/// Puts a job of a run into a yard.
fn node(yard: &Yard, run: &str, (id, status, second): (&str, &str, u32), rest: Value) {
    let mut rest = rest;
    let metadata = json!({ "workflow_run_id": run, "workflow_node_id": id, "workflow_node_attempt": 1,
        "workflow_template_id": "template.release" });
    rest.as_object_mut().expect("it is an object").insert("metadata".to_owned(), metadata);
    yard.job(&format!("wf-{run}-{id}"), status, second, rest);
}

/// Returns two runs of one flow, and a job with a name that somebody chose.
fn yard() -> Yard {
    let yard = Yard::new();
    for (index, run) in RUNS.iter().enumerate() {
        let manifest = json!({ "version": 1, "run_id": run, "workflow_template_selector": "release",
            "workflow_template_id": "template.release", "workflow_template_version": "v1",
            "policy_snapshot_hash": "", "created_at": "2026-02-01T12:00:00Z", "params": {}, "nodes": {} });
        yard.home.file(&format!(".tidewheel/jobs/runs/{run}.json"), manifest.to_string());
        let second = u32::try_from(index).expect("it is small") * 10;
        let build = format!("wf-{run}-build");
        node(
            &yard,
            run,
            ("build", "running", second),
            json!({ "pid": 7, "started_at": "2026-02-01T12:01:00Z",
            "schedule": { "locks": [{ "key": "branch:main", "mode": "exclusive" }] } }),
        );
        node(
            &yard,
            run,
            ("sign_off", "waiting_on_approval", second + 1),
            json!({ "schedule": {
            "after": [{ "job_id": build }], "approval": { "required": true, "state": "pending" },
            "wait_reason": { "kind": "approval", "detail": "awaiting human approval" } } }),
        );
        node(
            &yard,
            run,
            ("ship", "waiting_on_deps", second + 2),
            json!({ "schedule": {
            "after": [{ "job_id": build }],
            "wait_reason": { "kind": "dependencies", "detail": format!("waiting on job {build}") } } }),
        );
    }
    node(
        &yard,
        RUNS[1],
        ("notify", "failed", 20),
        json!({ "exit_code": 1, "finished_at": "2026-02-01T12:02:00Z" }),
    );
    yard.job("by-hand", "queued", 30, json!({ "command": ["处理订单", "--all"] }));
    yard
}

/// Runs a command as it is at a terminal of a width.
fn at(yard: &Yard, width: &str, arguments: &[&str]) -> Ran {
    yard.home.run_under(&[("COLUMNS", width), ("TIDEWHEEL_NOW", NOW)], arguments).succeeded()
}

/// What people see at a terminal, for those who have none.
const SEEN: [&str; 4] = ["--ids", "short", "--times", "relative"];

#[test]
fn jobs_are_listed_at_sixty_a_hundred_and_two_hundred_columns() {
    let list =
        |width: &str| at(&yard(), width, &[&["jobs", "list", "--format", "table"][..], &SEEN].concat());
    assert_snapshot!(list("60"), @"
    Outcome: 8 background jobs

    Job             Status               Wait
    by-hand         queued
    notify          failed
    1466f/ship      waiting_on_deps      dependencies: waiting …
    1466f/sign_off  waiting_on_approval  approval: awaiting hum…
    1466f/build     running
    14660/ship      waiting_on_deps      dependencies: waiting …
    14660/sign_off  waiting_on_approval  approval: awaiting hum…
    14660/build     running
    ");
    assert_snapshot!(list("100"), @"
    Outcome: 8 background jobs

    Job             Status               Created     Wait                          After
    by-hand         queued               2m 50s ago
    notify          failed               3m ago
    1466f/ship      waiting_on_deps      3m 8s ago   dependencies: waiting on jo…  1466f/build (success)
    1466f/sign_off  waiting_on_approval  3m 9s ago   approval: awaiting human ap…  1466f/build (success)
    1466f/build     running              3m 10s ago
    14660/ship      waiting_on_deps      3m 18s ago  dependencies: waiting on jo…  14660/build (success)
    14660/sign_off  waiting_on_approval  3m 19s ago  approval: awaiting human ap…  14660/build (success)
    14660/build     running              3m 20s ago
    ");
    assert_snapshot!(list("200"), @"
    Outcome: 8 background jobs

    Job             Status               Created     Wait                                      After                  Locks                  Approval state  Name
    by-hand         queued               2m 50s ago                                                                                                          处理订单 --all
    notify          failed               3m ago                                                                                                              notify
    1466f/ship      waiting_on_deps      3m 8s ago   dependencies: waiting on job 1466f/build  1466f/build (success)                                         ship
    1466f/sign_off  waiting_on_approval  3m 9s ago   approval: awaiting human approval         1466f/build (success)                         pending         sign off
    1466f/build     running              3m 10s ago                                                                   branch:main:exclusive                  build
    14660/ship      waiting_on_deps      3m 18s ago  dependencies: waiting on job 14660/build  14660/build (success)                                         ship
    14660/sign_off  waiting_on_approval  3m 19s ago  approval: awaiting human approval         14660/build (success)                         pending         sign off
    14660/build     running              3m 20s ago                                                                   branch:main:exclusive                  build
    ");
}

#[test]
fn full_ids_stay_whole_as_long_as_anything_else_can_give() {
    let list = |width: &str| at(&yard(), width, &["jobs", "list", "--format", "table"]);
    assert_snapshot!(list("60"), @"
    Outcome: 8 background jobs

    Job                                               Status
    by-hand                                           queued
    wf-run_1466ffff0000000000000000000000b2-notify    failed
    wf-run_1466ffff0000000000000000000000b2-ship      waiting_o…
    wf-run_1466ffff0000000000000000000000b2-sign_off  waiting_o…
    wf-run_1466ffff0000000000000000000000b2-build     running
    wf-run_14660000000000000000000000000a01-ship      waiting_o…
    wf-run_14660000000000000000000000000a01-sign_off  waiting_o…
    wf-run_14660000000000000000000000000a01-build     running
    ");
    assert_snapshot!(list("100"), @"
    Outcome: 8 background jobs

    Job                                               Status               Wait
    by-hand                                           queued
    wf-run_1466ffff0000000000000000000000b2-notify    failed
    wf-run_1466ffff0000000000000000000000b2-ship      waiting_on_deps      dependencies: waiting on job…
    wf-run_1466ffff0000000000000000000000b2-sign_off  waiting_on_approval  approval: awaiting human app…
    wf-run_1466ffff0000000000000000000000b2-build     running
    wf-run_14660000000000000000000000000a01-ship      waiting_on_deps      dependencies: waiting on job…
    wf-run_14660000000000000000000000000a01-sign_off  waiting_on_approval  approval: awaiting human app…
    wf-run_14660000000000000000000000000a01-build     running
    ");
}

#[test]
fn one_job_is_shown_as_a_table() {
    let show = |width: &str| {
        let arguments = ["jobs", "show", "1466f/ship", "--format", "table"];
        at(&yard(), width, &[&arguments[..], &SEEN].concat())
    };
    assert_snapshot!(show("60"), @"
    Field                  Value
    Job                    1466f/ship
    Status                 waiting_on_deps
    Name                   ship
    Created                3m 8s ago
    Stdout                 .tidewheel/jobs/wf-run_1466ffff00000…
    Stderr                 .tidewheel/jobs/wf-run_1466ffff00000…
    Workflow run           run_1466f
    Workflow template      template.release
    Workflow node          ship
    Workflow node attempt  1
    After                  1466f/build (success)
    Wait                   dependencies: waiting on job 1466f/b…
    Command                make wf-run_1466ffff0000000000000000…
    ");
    assert_snapshot!(show("200"), @"
    Field                  Value
    Job                    1466f/ship
    Status                 waiting_on_deps
    Name                   ship
    Created                3m 8s ago
    Stdout                 .tidewheel/jobs/wf-run_1466ffff0000000000000000000000b2-ship/stdout.log
    Stderr                 .tidewheel/jobs/wf-run_1466ffff0000000000000000000000b2-ship/stderr.log
    Workflow run           run_1466f
    Workflow template      template.release
    Workflow node          ship
    Workflow node attempt  1
    After                  1466f/build (success)
    Wait                   dependencies: waiting on job 1466f/build
    Command                make wf-run_1466ffff0000000000000000000000b2-ship
    ");
}

#[test]
fn the_schedule_fits() {
    let schedule = |width: &str| at(&yard(), width, &["jobs", "schedule", "--ids", "short"]);
    assert_snapshot!(schedule("60"), @"
    Schedule (Summary)
    Status               Wait                     Job
    running                                       14660/build
    waiting_on_approval  awaiting human approval  14660/sign_off
    waiting_on_deps      waiting on job 14660/b…  14660/ship
    running                                       1466f/build
    waiting_on_approval  awaiting human approval  1466f/sign_off
    waiting_on_deps      waiting on job 1466f/b…  1466f/ship
    queued                                        by-hand
    ");
    assert_snapshot!(schedule("100"), @"
    Schedule (Summary)
    #  Slug  Name            Status               Wait                        Job
    1        build           running                                          14660/build
    2        sign off        waiting_on_approval  awaiting human approval     14660/sign_off
    3        ship            waiting_on_deps      waiting on job 14660/build  14660/ship
    4        build           running                                          1466f/build
    5        sign off        waiting_on_approval  awaiting human approval     1466f/sign_off
    6        ship            waiting_on_deps      waiting on job 1466f/build  1466f/ship
    7        处理订单 --all  queued                                           by-hand
    ");
    assert_snapshot!(schedule("200"), @"
    Schedule (Summary)
    #  Slug  Name            Status               Wait                        Job
    1        build           running                                          14660/build
    2        sign off        waiting_on_approval  awaiting human approval     14660/sign_off
    3        ship            waiting_on_deps      waiting on job 14660/build  14660/ship
    4        build           running                                          1466f/build
    5        sign off        waiting_on_approval  awaiting human approval     1466f/sign_off
    6        ship            waiting_on_deps      waiting on job 1466f/build  1466f/ship
    7        处理订单 --all  queued                                           by-hand
    ");
    assert_snapshot!(at(&yard(), "60", &["jobs", "schedule", "--ids", "short", "--format", "dag", "--job", "1466f/ship"]), @"
    Schedule (DAG, verbose)
    1466f/ship waiting_on_deps [ship] [wait: waiting on job 1466f/build]
    `-- after:success -> 1466f/build running
    ");
}

#[test]
fn runs_are_listed_and_shown() {
    let list = |width: &str| at(&yard(), width, &[&["runs", "list"][..], &SEEN].concat());
    assert_snapshot!(list("60"), @"
    RUN        STATUS   JOBS                          CREATED
    run_1466f  running  1 running, 2 waiting, 1 fai…  3m 10s ago
    run_14660  running  1 running, 2 waiting          3m 20s ago
    ");
    assert_snapshot!(list("100"), @"
    RUN        STATUS   JOBS                            CREATED     WORKFLOW
    run_1466f  running  1 running, 2 waiting, 1 failed  3m 10s ago  template.release@v1
    run_14660  running  1 running, 2 waiting            3m 20s ago  template.release@v1
    ");
    assert_snapshot!(list("200"), @"
    RUN        STATUS   JOBS                            CREATED     WORKFLOW
    run_1466f  running  1 running, 2 waiting, 1 failed  3m 10s ago  template.release@v1
    run_14660  running  1 running, 2 waiting            3m 20s ago  template.release@v1
    ");
    assert_snapshot!(at(&yard(), "60", &["runs", "show", "1466f", "--ids", "short"]), @"
    Run: run_1466ffff0000000000000000000000b2
    Status: running
    Workflow: template.release@v1
    Jobs: 1 running, 2 waiting, 1 failed
    Created: 3m 10s ago (2026-02-01T12:00:10Z)
    Age: 3m 10s

    NODE      STATUS               TIME    WAIT
    build     running              2m 20s
    sign_off  waiting_on_approval          awaiting human appro…
    ship      waiting_on_deps              waiting on job 1466f…
    notify    failed
    ");
    assert_snapshot!(at(&yard(), "60", &["runs", "list"]), @"
    RUN                                   STATUS
    run_1466ffff0000000000000000000000b2  running
    run_14660000000000000000000000000a01  running
    ");
}

/// Whatever is shown as an id is one for every command that takes one.
#[test]
fn short_ids_are_ids() {
    let yard = yard();
    let full = yard.json(&["jobs", "list", "--all"]);
    let full: Vec<&str> =
        full["jobs"].as_array().expect("a list").iter().filter_map(|job| job["job"].as_str()).collect();
    let text = at(&yard, "200", &["jobs", "list", "--all", "--format", "table", "--ids", "short"]).out;
    let shown: Vec<&str> = text.lines().skip(3).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(shown.len(), full.len(), "{text}");
    for (short, full) in shown.iter().zip(full) {
        assert!(short.len() < 16, "{short}");
        for arguments in
            [&["jobs", "status", short][..], &["jobs", "show", short], &["jobs", "explain", short]]
        {
            let ran = yard.home.run(arguments);
            assert!(ran.code == Some(0) && ran.out.contains(full), "{arguments:?}: {ran}");
        }
        assert_eq!(yard.json(&["jobs", "status", short])["job"], full);
    }
    let text = at(&yard, "100", &["runs", "list", "--ids", "short"]).out;
    for (line, run) in text.lines().skip(1).zip(RUNS.iter().rev()) {
        let short = line.split_whitespace().next().expect("it has an id");
        assert_eq!(yard.json(&["runs", "show", short])["run"]["id"], *run);
    }
    let missing = yard.jobs(&["status", "1466/build"]);
    assert!(
        missing.err.contains("1466/build is ambiguous") || missing.err.contains("1466 is ambiguous"),
        "{missing}"
    );
}

/// Programs read what is piped: ids and instants are whole there, and JSON has no other.
#[test]
fn what_is_piped_is_in_full() {
    let yard = yard();
    let build = format!("wf-{}-build", RUNS[0]);
    for arguments in [
        &["jobs", "list"][..],
        &["jobs", "list", "--format", "table"],
        &["jobs", "list", "--format", "json"],
        &["jobs", "list", "--format", "json", "--ids", "full", "--times", "absolute"],
        &["jobs", "schedule"],
        &["jobs", "schedule", "--format", "dag"],
        &["jobs", "schedule", "--format", "json", "--ids", "full"],
    ] {
        let ran = yard.home.run(arguments).succeeded();
        assert!(ran.out.contains(&build) && !ran.out.contains(" ago"), "{arguments:?}: {ran}");
        assert!(!ran.out.contains('…') && !ran.out.contains('\u{1b}'), "{arguments:?}: {ran}");
    }
    let ran = yard.home.run(&["runs", "list"]).succeeded();
    assert!(ran.out.contains(RUNS[0]) && ran.out.contains(" 2026-02-01T12:00:00Z "), "{ran}");
}

#[test]
fn a_block_is_short_where_somebody_asks_for_it() {
    let yard = yard();
    assert_snapshot!(at(&yard, "60", &[&["jobs", "show", "1466f/ship"][..], &SEEN].concat()), @"
    Job: 1466f/ship
    Status: waiting_on_deps
    Name: ship
    Created: 3m 8s ago
    Stdout: .tidewheel/jobs/wf-run_1466ffff0000000000000000000000b2-ship/stdout.log
    Stderr: .tidewheel/jobs/wf-run_1466ffff0000000000000000000000b2-ship/stderr.log
    Workflow run: run_1466f
    Workflow template: template.release
    Workflow node: ship
    Workflow node attempt: 1
    After: 1466f/build (success)
    Wait: dependencies: waiting on job 1466f/build
    Command: make wf-run_1466ffff0000000000000000000000b2-ship
    ");
}

#[test]
fn a_field_that_nobody_knows_is_refused_with_its_place_and_those_that_are_known() {
    let yard = yard();
    for (list, look) in [("jobs", &["jobs", "list"][..]), ("jobs_show", &["jobs", "show", "by-hand"])] {
        for field in ["stats", "weather"] {
            let config = format!("[display.lists.{list}]\nfields = [\"job\", \"{field}\"]\n");
            yard.home.file(".tidewheel/config.toml", config);
            let ran = yard.home.run(look);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran}");
            assert!(
                ran.err.contains(&format!("display.lists.{list}.fields: has no field `{field}`;")),
                "{ran}"
            );
            assert!(
                ran.err.contains("known are job, status, name, ") && ran.err.contains("config.toml:2:"),
                "{ran}"
            );
            assert!(ran.err.contains("error[TW0028]"), "{ran}");
        }
    }
    yard.home.file(
        ".tidewheel/config.toml",
        "[display.lists.jobs]\nfields = [\"Job\", \"waited-on\", \"EXIT CODE\"]\n",
    );
    yard.home.run(&["jobs", "list"]).succeeded();
}

#[test]
fn every_field_can_be_listed_and_shown_in_every_format() {
    let yard = Yard::new();
    yard.job("a", "waiting_on_approval", 0, json!({
        "metadata": { "workflow_template_id": "t", "workflow_node_id": "n", "workflow_policy_snapshot_hash": "abc",
            "workflow_gates": ["approval"], "workflow_executor_class": "agent", "workflow_executor_operation": "agent.invoke",
            "workflow_control_policy": "gate.approval", "execution_root": "." },
        "schedule": { "after": [{ "job_id": "b" }], "dependencies": [{ "artifact": { "target_branch": { "name": "main" } } }],
            "locks": [{ "key": "k", "mode": "shared" }],
            "approval": { "required": true, "state": "approved", "decided_by": "ada" },
            "wait_reason": { "kind": "locks", "detail": "waiting on locks" }, "waited_on": ["approval", "locks"],
            "pinned_head": { "branch": "main", "oid": "feed" },
            "artifacts": [{ "custom": { "type_id": "t", "key": "k" } }] } }));
    let wanted = [
        ("after", "b (success)"),
        ("dependencies", "target_branch:main"),
        ("locks", "k:shared"),
        ("approval_required", "true"),
        ("approval_state", "approved"),
        ("approval_decided_by", "ada"),
        ("wait", "locks: waiting on locks"),
        ("waited_on", "approval, locks"),
        ("pinned_head", "main@feed"),
        ("artifacts", "custom:t:k"),
        ("workflow_template", "t"),
        ("workflow_node", "n"),
        ("workflow_policy_snapshot", "abc"),
        ("workflow_gates", "approval"),
        ("workflow_executor_class", "agent"),
        ("workflow_executor_operation", "agent.invoke"),
        ("workflow_control_policy", "gate.approval"),
        ("execution_root", "."),
    ];
    let fields: Vec<String> = wanted.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let fields = fields.join(", ");
    yard.home.file(
        ".tidewheel/config.toml",
        format!(
            "[display.lists.jobs]\nfields = [{fields}]\n[display.lists.jobs_show]\nfields = [{fields}]\n"
        ),
    );
    for look in [&["jobs", "list"][..], &["jobs", "show", "a"]] {
        let told = yard.json(look);
        let job = if look.len() == 2 { &told["jobs"][0] } else { &told };
        for format in ["block", "table"] {
            let text = yard.home.run(&[look, &["--format", format]].concat()).succeeded().out;
            for (name, value) in wanted {
                let label = name.replace('_', " ");
                assert!(
                    text.to_lowercase().contains(&label) && text.contains(value),
                    "{format} {name}: {text}"
                );
                assert_eq!(job[name], value, "{name}");
            }
        }
    }
}

/// Commands stand only in the records; a table that has to fit leaves them out unless somebody chose them.
#[test]
fn a_table_that_has_to_fit_shows_what_lists_know_without_the_records() {
    let yard = Yard::with_flows(&[]);
    // A real run, so that there is an index.
    yard.run(&["run", "two.toml", "--require-approval"]).succeeded();
    let arguments = ["jobs", "list", "--format", "table"];
    let mut command = yard.home.command(&arguments);
    command.env("COLUMNS", "80");
    let ran = Ran::of(command, b"").succeeded();
    assert!(ran.out.contains("waiting_on_approval") && !ran.out.contains("echo hello"), "{ran}");
    let whole = yard.home.run(&arguments).succeeded();
    assert!(whole.out.contains("echo hello"), "{whole}");
}

/// Returns a job that was started three times and wrote to logs that were turned over.
fn started_again(dispatched: &[(u32, u64)], rewound_after: Option<u32>) -> Yard {
    let yard = Yard::new();
    yard.job("a", "failed", 0, json!({ "exit_code": 1, "finished_at": "2026-02-01T12:01:00Z" }));
    let mut events = String::new();
    for (attempt, offset) in dispatched {
        let event = json!({ "at": "2026-02-01T12:00:00Z", "attempt": attempt, "event": { "dispatched": {
            "policy_attempt": 0, "stdout_offset": offset, "stderr_offset": 0 } } });
        events.extend([event.to_string(), "\n".to_owned()]);
        if rewound_after == Some(*attempt) {
            let event = json!({ "at": "2026-02-01T12:00:00Z", "attempt": attempt, "event": { "rewound": { "by": "ada" } } });
            events.extend([event.to_string(), "\n".to_owned()]);
        }
    }
    yard.home.file(".tidewheel/jobs/a/events.jsonl", events);
    yard
}

#[test]
fn k_115_output_is_printed_since_an_attempt() {
    let yard = started_again(&[(1, 0), (2, 4), (3, 8)], None);
    yard.home.file(".tidewheel/jobs/a/stdout.log", "one\ntwo\nthree\nmore\n");
    yard.home.file(".tidewheel/jobs/a/stderr.log", "oops\n");
    let tail = |arguments: &[&str]| yard.jobs(&[&["tail", "a"], arguments].concat()).succeeded().out;
    assert_eq!(tail(&["--since-attempt", "3", "--stream", "stdout"]), "three\nmore\n");
    assert_eq!(tail(&["--since-attempt", "2", "--stream", "stdout"]), "two\nthree\nmore\n");
    assert_eq!(tail(&["--since-attempt", "1", "--follow"]).lines().count(), 5);
    assert_eq!(tail(&["--since-attempt", "2", "--lines", "1"]), "[stdout] more\n[stderr] oops\n");
    assert_eq!(tail(&["--since-attempt", "3", "--lines", "9", "--stream", "stdout"]), "three\nmore\n");
    let missing = yard.jobs(&["tail", "a", "--since-attempt", "4"]);
    assert_snapshot!(missing, @"
    --- stderr
    error[TW0016]: job a has no attempt 4: its last one is attempt 3
    hint: `tidewheel jobs explain a` tells of each attempt.
    --- exit code 1
    ");
    assert_eq!(yard.jobs(&["tail", "a", "--since-attempt", "0"]).code, Some(2));
    let never = Yard::new();
    never.job("b", "queued", 0, json!({}));
    let ran = never.jobs(&["tail", "b", "--since-attempt", "1"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("job b has no attempt 1: it has not started yet"),
        "{ran}"
    );
}

#[test]
fn k_115_what_is_gone_of_an_attempt_is_said() {
    // Turned over twice: 100 bytes are gone, 8 were put aside.
    let yard = started_again(&[(1, 0), (2, 96), (3, 104), (4, 200)], None);
    let note =
        "[tidewheel] the output before this line is in stdout.log.1; 100 bytes before that were dropped\n";
    yard.home.file(".tidewheel/jobs/a/stdout.log.1", "two\nthr\n");
    yard.home.file(".tidewheel/jobs/a/stdout.log", format!("{note}four\n"));
    let tail = |attempt: &str| yard.jobs(&["tail", "a", "--stream", "stdout", "--since-attempt", attempt]);
    assert_eq!(tail("3").succeeded().out, format!("thr\n{note}four\n"));
    let ran = tail("2");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), format!("two\nthr\n{note}four\n").as_str()));
    assert_eq!(
        ran.err,
        "hint: The beginning of attempt 2 is gone: 4 bytes of its stdout were dropped when the log was turned over.\n"
    );
    assert_eq!(tail("4").succeeded().out, format!("{note}four\n")[92..]);
}

#[test]
fn k_115_what_was_rewound_has_no_output() {
    let yard = started_again(&[(1, 0), (2, 0)], Some(1));
    yard.home.file(".tidewheel/jobs/a/stdout.log", "two\n");
    let ran = yard.jobs(&["tail", "a", "--since-attempt", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "[stdout] two\n"));
    assert!(ran.err.starts_with("hint: What attempt 1 wrote is gone"), "{ran}");
    assert_eq!(yard.jobs(&["tail", "a", "--since-attempt", "2"]).succeeded().out, "[stdout] two\n");
}

#[test]
fn nothing_is_made_by_looking_at_tables() {
    let home = Home::new();
    home.run_under(&[("COLUMNS", "60")], &["jobs", "list", "--format", "table", "--ids", "short"])
        .succeeded();
    assert_eq!(fs::read_dir(home.path()).expect("it is there").count(), 0);
}
