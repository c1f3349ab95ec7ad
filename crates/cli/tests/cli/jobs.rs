//! `tidewheel jobs`: what is shown of jobs, and asked of them.

use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::yard::Yard;

/// Returns jobs of several kinds.
fn yard() -> Yard {
    let yard = Yard::new();
    yard.job("a-done", "succeeded", 0, json!({ "exit_code": 0, "finished_at": "2026-02-01T12:01:00Z" }));
    yard.job(
        "b-runs",
        "running",
        1,
        json!({ "pid": 4242, "schedule": {
        "after": [{ "job_id": "a-done" }], "locks": [{ "key": "k", "mode": "exclusive" }] } }),
    );
    yard.job(
        "c-waits",
        "waiting_on_deps",
        2,
        json!({
        "metadata": { "command_alias": "merge", "plan": "alpha", "target": "main" },
        "schedule": {
            "after": [{ "job_id": "b-runs" }],
            "dependencies": [{ "artifact": { "merge_sentinel": { "slug": "alpha" } } }],
            "wait_reason": { "kind": "dependencies", "detail": "waiting on job b-runs" },
            "waited_on": ["dependencies"],
        } }),
    );
    yard.job("d-fails", "failed", 3, json!({ "exit_code": 9, "finished_at": "2026-02-01T12:01:00Z" }));
    yard
}

/// Every command that only looks.
const LOOKS: [&[&str]; 10] = [
    &["list"],
    &["list", "--all", "--format", "json"],
    &["show", "a-done"],
    &["status", "a-done"],
    &["explain", "c-waits"],
    &["explain", "d-fails", "--format", "json"],
    &["schedule"],
    &["schedule", "--format", "dag"],
    &["schedule", "--format", "json", "--all"],
    &["tail", "a-done", "--follow"],
];

#[test]
fn looking_writes_nothing() {
    let yard = yard();
    let files = || {
        let mut all = Vec::new();
        let mut folders = vec![yard.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it can be read").flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => all.push((fs::read(&path).expect("it can be read"), path)),
                }
            }
        }
        all.sort();
        all
    };
    let before = files();
    for look in LOOKS {
        yard.jobs(look).succeeded();
    }
    assert!(files() == before, "a look has written something");
}

#[test]
fn where_there_is_nothing_nothing_is_made() {
    let home = Home::new();
    for (arguments, said) in [
        (&["jobs", "list"][..], "Outcome: No background jobs found\n"),
        (&["jobs", "schedule"], "Outcome: No scheduled jobs\n"),
        (&["jobs", "schedule", "--format", "dag"], "Outcome: No scheduled jobs\n"),
        (&["jobs", "gc"], "Outcome: removed 0 job(s)\n"),
        (&["jobs", "wait", "-q"], ""),
        (&["runs", "list"], "There are no such runs.\n"),
    ] {
        assert_eq!(home.run(arguments).succeeded().out, said, "{arguments:?}");
    }
    let ran = home.run(&["jobs", "wait"]);
    assert_eq!(ran.err, "hint: there is nothing to wait for: no job is queued, waiting or running\n");
    assert_eq!(home.run(&["jobs", "wait", "--quiet"]).err, "");
    for verb in ["approve", "reject", "retry", "cancel", "show", "status", "tail", "attach"] {
        let ran = home.run(&["jobs", verb, "J1"]);
        assert_eq!(ran.code, Some(1), "{verb}: {ran}");
        assert!(ran.err.starts_with("error[TW0018]: no background job J1\n"), "{verb}: {ran}");
    }
    assert_eq!(fs::read_dir(home.path()).expect("the home is there").count(), 0);
}

#[test]
fn k_111_jobs_are_listed_newest_first() {
    assert_snapshot!(yard().jobs(&["list"]).succeeded(), @"
    Outcome: 3 background jobs
    Hidden: 1 succeeded (use --all to include)

      Job: d-fails
      Status: failed
      Created: 2026-02-01T12:00:03Z
      Failed: 2026-02-01T12:01:00Z
      Command: make d-fails

      Job: c-waits
      Status: waiting_on_deps
      Created: 2026-02-01T12:00:02Z
      After: b-runs (success)
      Wait: dependencies: waiting on job b-runs
      Waited on: dependencies
      Dependencies: merge_sentinel:alpha
      Command: make c-waits

      Job: b-runs
      Status: running
      Created: 2026-02-01T12:00:01Z
      After: a-done (success)
      Locks: k:exclusive
      Command: make b-runs
    ");
    assert_snapshot!(yard().jobs(&["list", "--all", "--format", "table"]).succeeded(), @"
    Outcome: 4 background jobs

    Job      Status           Created               After             Wait                                 Waited on     Dependencies          Locks        Failed                Command
    d-fails  failed           2026-02-01T12:00:03Z                                                                                                          2026-02-01T12:01:00Z  make d-fails
    c-waits  waiting_on_deps  2026-02-01T12:00:02Z  b-runs (success)  dependencies: waiting on job b-runs  dependencies  merge_sentinel:alpha                                     make c-waits
    b-runs   running          2026-02-01T12:00:01Z  a-done (success)                                                                           k:exclusive                        make b-runs
    a-done   succeeded        2026-02-01T12:00:00Z                                                                                                                                make a-done
    ");
    assert_snapshot!(yard().jobs(&["list", "--dismiss-failures", "--format", "table"]).succeeded(), @"
    Outcome: 2 background jobs
    Hidden: 1 failed, 1 succeeded (use --all to include)

    Job      Status           Created               After             Wait                                 Waited on     Dependencies          Locks        Command
    c-waits  waiting_on_deps  2026-02-01T12:00:02Z  b-runs (success)  dependencies: waiting on job b-runs  dependencies  merge_sentinel:alpha               make c-waits
    b-runs   running          2026-02-01T12:00:01Z  a-done (success)                                                                           k:exclusive  make b-runs
    ");
}

#[test]
fn k_112_a_list_for_programs_has_strings() {
    let list = yard().json(&["jobs", "list"]);
    assert_eq!(list["header"]["outcome"], "3 background jobs");
    assert_eq!(list["header"]["hidden"], "1 succeeded (use --all to include)");
    let waits = &list["jobs"][1];
    assert_eq!(waits["job"], "c-waits");
    assert_eq!(waits["wait"], "dependencies: waiting on job b-runs");
    let jobs = list["jobs"].as_array().expect("there are jobs");
    assert!(jobs.iter().flat_map(|job| job.as_object().expect("an object").values()).all(Value::is_string));
    assert_eq!(yard().json(&["jobs", "list", "--all"])["header"].get("hidden"), None);
}

#[test]
fn the_configuration_chooses_fields_and_format() {
    let yard = yard();
    yard.home.file(
        ".tidewheel/config.toml",
        "[display.lists.jobs]\nformat = \"table\"\nfields = [\"job\", \"Exit code\"]\n[display.lists.jobs_show]\nformat = \"json\"\nfields = [\"status\", \"locks\", \"Exit code\"]\n",
    );
    assert_snapshot!(yard.jobs(&["list"]).succeeded(), @"
    Outcome: 3 background jobs
    Hidden: 1 succeeded (use --all to include)

    Job      Exit code
    d-fails  9
    c-waits
    b-runs
    ");
    assert_snapshot!(yard.jobs(&["show", "b-runs"]).succeeded(), @r#"
    {
      "exit_code": null,
      "locks": "k:exclusive",
      "status": "running",
      "version": 1
    }
    "#);
    // What the configuration names is there in every format, also where there is nothing to say.
    assert_snapshot!(yard.jobs(&["list", "--format", "block"]).succeeded(), @"
    Outcome: 3 background jobs
    Hidden: 1 succeeded (use --all to include)

      Job: d-fails
      Exit code: 9

      Job: c-waits
      Exit code: -

      Job: b-runs
      Exit code: -
    ");
    let listed = yard.json(&["jobs", "list"]);
    assert_eq!(listed["jobs"][1], json!({ "job": "c-waits", "exit_code": null }));
    let shown = yard.jobs(&["show", "c-waits", "--format", "block"]).succeeded();
    assert_eq!(shown.out, "Status: waiting_on_deps\nLocks: -\nExit code: -\n");
}

#[test]
fn k_113_one_job_is_shown_with_everything() {
    assert_snapshot!(yard().jobs(&["show", "c-"]).succeeded(), @"
    Job: c-waits
    Status: waiting_on_deps
    Name: merge/alpha/main
    Slug: alpha
    Created: 2026-02-01T12:00:02Z
    Stdout: .tidewheel/jobs/c-waits/stdout.log
    Stderr: .tidewheel/jobs/c-waits/stderr.log
    Scope: merge
    Plan: alpha
    Target: main
    After: b-runs (success)
    Dependencies: merge_sentinel:alpha
    Wait: dependencies: waiting on job b-runs
    Waited on: dependencies
    Command: make c-waits
    ");
    let shown = yard().json(&["jobs", "show", "b-runs"]);
    assert_eq!((&shown["pid"], &shown["locks"]), (&json!("4242"), &json!("k:exclusive")));
}

#[test]
fn k_114_the_status_is_one_line() {
    let ran = yard().jobs(&["status", "d-fails"]).succeeded();
    assert_eq!(
        ran.out,
        "d-fails [failed] exit=9 stdout=.tidewheel/jobs/d-fails/stdout.log stderr=.tidewheel/jobs/d-fails/stderr.log\n"
    );
    let status = yard().json(&["jobs", "status", "b-runs"]);
    assert_eq!(status["exit_code"], Value::Null);
    assert_eq!(status["stdout"], ".tidewheel/jobs/b-runs/stdout.log");
}

#[test]
fn k_98_the_schedule_as_summary_and_as_dag() {
    assert_snapshot!(yard().jobs(&["schedule"]).succeeded(), @"
    Schedule (Summary)
    #  Slug   Name              Status           Wait                   Job
    1         make b-runs       running                                 b-runs
    2  alpha  merge/alpha/main  waiting_on_deps  waiting on job b-runs  c-waits
    ");
    assert_snapshot!(yard().jobs(&["schedule", "--format", "dag"]).succeeded(), @"
    Schedule (DAG, verbose)
    b-runs running [make b-runs] [locks: k:exclusive]
    `-- after:success -> a-done succeeded

    c-waits waiting_on_deps [merge/alpha/main] [wait: waiting on job b-runs]
    |-- after:success -> b-runs running
    |   `-- after:success -> a-done succeeded
    `-- merge_sentinel:alpha -> [missing]
    ");
    assert_snapshot!(yard().jobs(&["schedule", "--job", "c-waits", "--max-depth", "1"]).succeeded(), @"
    Schedule (Summary)
    #  Slug   Name              Status           Wait                   Job
    1  alpha  merge/alpha/main  waiting_on_deps  waiting on job b-runs  c-waits
    2         make b-runs       running                                 b-runs
    ");
    assert_eq!(yard().jobs(&["schedule", "--job", "nobody"]).succeeded().out, "Outcome: No scheduled jobs\n");
}

#[test]
fn k_108_what_cannot_be_watched_is_refused() {
    let error = |arguments: &[&str]| {
        let ran = yard().jobs(&[&["schedule"], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{arguments:?}");
        ran.err.trim_start_matches("error[TW0029]: ").trim_end().to_owned()
    };
    let terminal =
        "`--watch` requires an interactive TTY with ANSI enabled; rerun without `--watch` for static output.";
    assert_eq!(error(&["--watch"]), terminal);
    assert_eq!(error(&["--watch", "--no-ansi"]), terminal);
    let summary = "`--watch` only supports summary format; rerun without `--format dag|json`.";
    assert_eq!(error(&["--watch", "--format", "json"]), summary);
    assert_eq!(error(&["--watch", "--top", "0"]), "`--top` must be at least 1.");
    assert_eq!(error(&["--watch", "--interval-ms", "50"]), "`--interval-ms` must be at least 100.");
}

#[test]
fn k_115_logs_are_printed_with_the_names_of_their_streams() {
    let yard = yard();
    yard.home.file(".tidewheel/jobs/a-done/stdout.log.1", "zero\n");
    yard.home.file(".tidewheel/jobs/a-done/stdout.log", "one\n\u{1b}[31mtwo\u{1b}[0m\nlast");
    yard.home.file(".tidewheel/jobs/a-done/stderr.log", "oops\n");
    let tail = |arguments: &[&str]| yard.jobs(&[&["tail", "a-done"], arguments].concat()).succeeded().out;
    assert_eq!(tail(&[]), "[stdout] zero\n[stdout] one\n[stdout] two\n[stdout] last\n[stderr] oops\n");
    assert_eq!(tail(&["--follow"]).len(), tail(&[]).len());
    assert_eq!(tail(&["--stream", "stdout"]), "zero\none\ntwo\nlast\n");
    assert_eq!(tail(&["--stream", "stdout", "--raw"]), "zero\none\n\u{1b}[31mtwo\u{1b}[0m\nlast");
    assert_eq!(tail(&["--stream", "stderr", "-n", "5"]), "oops\n");
    assert_eq!(tail(&["--stream", "stdout", "-n", "1"]), "last\n");
    assert_eq!(tail(&["--stream", "stdout", "--lines", "3"]), "one\ntwo\nlast\n");
    assert_eq!(tail(&["--stream", "stdout", "-n", "4"]), "zero\none\ntwo\nlast\n");
    assert_eq!(tail(&["-n", "0"]), "");
    assert_eq!(yard.jobs(&["tail", "b-runs"]).succeeded().out, "");
    assert_eq!(yard.jobs(&["attach", "d-fails"]).succeeded().out, "");
}

#[test]
fn k_116_a_record_that_cannot_be_read_is_left_out_with_a_warning() {
    let yard = yard();
    yard.home.file(".tidewheel/jobs/bad/job.json", "not-json");
    for look in [&["list"][..], &["schedule"]] {
        let ran = yard.jobs(look);
        assert_eq!(ran.code, Some(0));
        assert!(ran.err.starts_with("warning: unable to load background job bad: "), "{ran}");
    }
}

#[test]
fn n_162_what_is_no_id_is_nobody() {
    for id in ["../../x", "/etc/passwd", "..", "a\u{1b}[2J", "", "x/../../y"] {
        for verb in ["status", "show", "tail", "cancel", "retry", "approve", "reject"] {
            let ran = yard().jobs(&[verb, id]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{verb} {id}");
            assert!(ran.err.starts_with("error[TW0018]: no background job "), "{ran}");
            assert!(!ran.err.contains('\u{1b}'), "{ran}");
        }
    }
}

#[test]
fn n_166_a_closed_pipe_is_no_error() {
    let yard = Yard::new();
    for index in 0..200 {
        yard.job(&format!("job-{index:03}"), "queued", 0, json!({ "command": ["x".repeat(2_000)] }));
    }
    let mut child = yard.home.command(&["jobs", "list"]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let mut err = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("it is there"), &mut err)
        .expect("it is text");
    assert_eq!((child.wait().expect("it ends").code(), err.as_str()), (Some(0), ""));
}

#[test]
fn hostile_text_is_made_harmless() {
    let yard = Yard::new();
    let evil = "\u{1b}[2J\u{202e}evil\nOutcome: 9";
    yard.job(
        "a",
        "waiting_on_deps",
        0,
        json!({
        "command": [evil], "metadata": { "plan": evil, "workflow_node_name": evil },
        "schedule": { "wait_reason": { "kind": "dependencies", "detail": evil },
            "locks": [{ "key": evil, "mode": "shared" }] } }),
    );
    for look in [
        &["list"][..],
        &["list", "--format", "table"],
        &["show", "a"],
        &["schedule"],
        &["schedule", "--format", "dag"],
    ] {
        let ran = yard.jobs(look).succeeded();
        assert!(ran.out.contains(r"\u{1b}[2J\u{202e}evil\nOutcome: 9"), "{look:?}: {ran}");
        assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{look:?}");
    }
}

fn asks(state: &str) -> Value {
    json!({ "child_args": ["--version"], "schedule": { "approval": { "required": true, "state": state } } })
}

#[test]
fn f_55_a_job_is_approved_and_goes_on() {
    let yard = Yard::new();
    yard.job("J1", "waiting_on_approval", 0, asks("pending"));
    assert_snapshot!(yard.run(&["jobs", "approve", "J1"]).succeeded(), @"
    Outcome: Job approval granted
    Job: J1
    Status: running
    Approval state: approved
    Started: J1
    Updated: none
    ");
    let approval = &yard.record("J1")["schedule"]["approval"];
    assert_eq!((&approval["state"], &approval["decided_by"]), (&json!("approved"), &json!("ada")));
    assert_eq!(yard.jobs(&["wait", "J1", "-q"]).code, Some(0));
}

#[test]
fn f_56_a_job_is_rejected_with_a_reason() {
    let yard = Yard::new();
    yard.job("J1", "waiting_on_approval", 0, asks("pending"));
    assert_snapshot!(yard.run(&["jobs", "reject", "J1", "--reason", "not today"]).succeeded(), @"
    Outcome: Job approval rejected
    Job: J1
    Status: blocked_by_approval
    Approval state: rejected
    Reason: not today
    Started: none
    Updated: J1
    ");
    let record = yard.record("J1");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("blocked_by_approval"), &json!(10)));
    assert!(yard.path("J1/outcome.json").is_file());
    let ran = yard.jobs(&["wait", "J1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(10), "J1: blocked_by_approval: not today\n"));
}

#[test]
fn f_58_what_cannot_be_approved_says_why() {
    let yard = Yard::new();
    yard.job("plain", "queued", 0, json!({}));
    yard.job("done", "succeeded", 0, asks("approved"));
    yard.job("again", "waiting_on_locks", 0, asks("approved"));
    let error = |id: &str| {
        let before = yard.record(id);
        let ran = yard.jobs(&["approve", id]);
        assert_eq!((ran.code, yard.record(id)), (Some(1), before));
        ran.err.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(error("plain"), "error[TW0021]: job plain is not configured for approval gating");
    assert_eq!(error("done"), "error[TW0021]: job done is terminal (succeeded)");
    assert_eq!(error("again"), "error[TW0021]: job again is already approved");
}

#[test]
fn h_84_a_retry_tells_what_is_done_again() {
    let yard = Yard::new();
    yard.job("p", "succeeded", 0, json!({}));
    let needs = json!({ "child_args": ["--version"], "schedule": { "after": [{ "job_id": "p" }],
        "dependencies": [{ "artifact": { "custom": { "type_id": "t", "key": "missing" } } }] } });
    yard.job("a", "failed", 1, needs);
    assert_snapshot!(yard.run(&["jobs", "retry", "a"]).succeeded(), @"
    Outcome: Jobs retried
    Requested: a
    Retry root: a
    Last successful point: p
    Retry set: a
    Reset: a
    Restarted: none
    Updated: a
    ");
    let told = yard.json(&["jobs", "retry", "a"]);
    assert_eq!(told["outcome"], "Jobs retried");
    assert_eq!((&told["requested_job"], &told["retry_root"]), (&json!("a"), &json!("a")));
    assert_eq!((&told["last_successful_point"], &told["retry_set"]), (&json!(["p"]), &json!(["a"])));
    assert_eq!((&told["reset"], &told["restarted"]), (&json!(["a"]), &json!([])));
    assert_eq!(told["updated"], json!(["a"]));
}

#[test]
fn i_86_a_cancelled_job_is_told_with_its_logs() {
    let yard = Yard::new();
    yard.job("J1", "waiting_on_approval", 0, asks("pending"));
    let ran = yard.run(&["jobs", "cancel", "J1"]).succeeded();
    assert_eq!(
        ran.out,
        "Job J1 marked cancelled (stdout: .tidewheel/jobs/J1/stdout.log, stderr: .tidewheel/jobs/J1/stderr.log, cleanup=skipped)\n"
    );
    assert_eq!(yard.record("J1")["exit_code"], 143);
    // What is so already succeeds, and says so; what it left may still be cleaned up.
    assert_eq!(yard.run(&["jobs", "cancel", "J1"]).succeeded().out, "Job J1 is cancelled already\n");
    let ran = yard.run(&["jobs", "cancel", "J1", "--cleanup-worktree"]).succeeded();
    assert_eq!(ran.out, "Job J1 is cancelled already (cleanup=skipped)\n");
    let both = yard.jobs(&["cancel", "J1", "--cleanup-worktree", "--no-cleanup-worktree"]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn what_is_old_is_removed_unless_it_is_only_asked_what_would_be() {
    let yard = yard();
    assert_snapshot!(yard.run(&["jobs", "gc", "--days", "0", "--dry-run"]).succeeded(), @"
    Outcome: would remove 1 job(s)
      d-fails
    ");
    assert!(yard.path("d-fails").is_dir());
    let told = yard.json(&["jobs", "gc", "--days", "0"]);
    assert_eq!((&told["dry_run"], &told["removed"]), (&json!(false), &json!(["d-fails"])));
    assert_eq!(told["kept"], json!(["a-done"]));
    assert!(!yard.path("d-fails").exists() && yard.path("a-done").is_dir());
}

#[test]
fn waiting_ends_when_the_time_is_over() {
    let yard = Yard::new();
    yard.job("J1", "waiting_on_approval", 0, asks("pending"));
    let ran = yard.jobs(&["wait", "--timeout", "20ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.starts_with("J1: waiting_on_approval: awaiting human approval; `tidewheel jobs approve J1`")
    );
    assert!(ran.err.starts_with("error[TW0024]: The time is over, and 1 job is not.\n"), "{ran}");
}

#[test]
fn runs_of_jobs_are_listed_shown_cancelled_and_retried() {
    let flow = "id = \"t\"\nversion = \"v1\"\n[[nodes]]\nid = \"a\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = { script = \"true\" }\n";
    let yard = Yard::with_flows(&[("one.toml", flow)]);
    yard.run(&["run", "one.toml", "--require-approval"]).succeeded();
    let run = yard.json(&["runs", "list"])["runs"][0].clone();
    let id = run["id"].as_str().expect("it has an id");
    assert_eq!((&run["status"], &run["workflow_template_id"]), (&json!("waiting"), &json!("t")));
    assert_eq!(run["jobs"]["waiting"], 1);
    let shown = yard.json(&["runs", "show", &id[..12]]);
    assert_eq!((&shown["jobs"][0]["node"], &shown["run"]["id"]), (&json!("a"), &json!(id)));
    let text = yard.run(&["runs", "show", id]).succeeded().out;
    assert!(text.contains("\nWorkflow: t@v1\n") && text.contains("\nNODE  STATUS "), "{text}");
    assert_eq!(yard.json(&["runs", "cancel", id])["cancelled"], json!([format!("wf-{id}-a")]));
    assert_eq!(yard.json(&["runs", "list", "--status", "failed"])["runs"][0]["id"], id);
    assert_eq!(yard.json(&["runs", "retry", id])["reset"], json!([format!("wf-{id}-a")]));
    assert_eq!(yard.record(&format!("wf-{id}-a"))["status"], "waiting_on_approval");
    for (arguments, code) in [
        (&["runs", "cancel", id, "part"][..], Some(2)),
        (&["runs", "list", "--status", "parked"], Some(2)),
        (&["runs", "gc", "--older-than", "1d"], Some(2)),
        (&["runs", "pause", id], Some(2)),
        (&["runs", "stop", id], Some(2)),
        (&["runs", "show", "nobody"], Some(1)),
    ] {
        let ran = yard.run(arguments);
        assert_eq!(ran.code, code, "{ran}");
    }
}

#[test]
fn a_directory_can_be_named() {
    let yard = yard();
    let root = yard.home.path().display().to_string();
    let elsewhere = Home::new();
    for dir in [root.clone(), format!("{root}/.tidewheel")] {
        let ran: Ran = elsewhere.run(&["jobs", "status", "a-done", "--dir", &dir]).succeeded();
        assert!(ran.out.starts_with("a-done [succeeded]"), "{ran}");
    }
}
