//! What is shown of jobs.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::by_hand::{Desk, job};
use crate::runs::flow_of;
use crate::world::{Ran, eventually};

/// Returns the words of the lines of a table, each line as one text with single blanks.
fn rows(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// Returns the ids of the jobs of `jobs schedule --format json`, in their order.
fn scheduled(desk: &Desk, arguments: &[&str]) -> Vec<String> {
    let schedule = desk.json(&[&["jobs", "schedule"], arguments].concat());
    let jobs = schedule["jobs"].as_array().unwrap();
    for (index, row) in jobs.iter().enumerate() {
        assert_eq!(row["order"], index + 1);
    }
    jobs.iter().map(|row| row["job_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn k_98_the_summary_has_its_header_columns_and_order() {
    let desk = Desk::new();
    desk.put(job("b").gated().with("created_at", "2026-02-01T12:00:01Z"));
    desk.put(job("c").gated().with("created_at", "2026-02-01T12:00:00Z"));
    desk.put(job("a").gated().with("created_at", "2026-02-01T12:00:01Z").meta("plan", "alpha"));
    desk.tick();
    let ran = desk.run(&["jobs", "schedule"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = rows(&ran.out);
    assert_eq!(rows[0], "Schedule (Summary)");
    let header =
        rows.iter().position(|row| row == "# Slug Name Status Wait Job").unwrap_or_else(|| panic!("{ran:?}"));
    let jobs: Vec<&str> = rows[header + 1..].iter().filter_map(|row| row.split(' ').next_back()).collect();
    let jobs: Vec<&str> = jobs.into_iter().filter(|word| ["a", "b", "c"].contains(word)).collect();
    assert_eq!(jobs, ["c", "a", "b"], "{ran:?}");
    let first = rows.iter().find(|row| row.ends_with(" a")).unwrap();
    assert!(first.starts_with("2 alpha "), "{first}");
    assert!(first.contains("waiting_on_approval"), "{first}");
}

#[test]
fn k_99_what_is_over_and_blocks_nobody_is_hidden() {
    let desk = Desk::new();
    desk.put(job("succeeded").status("succeeded")).put(job("cancelled").status("cancelled"));
    desk.put(job("failed").status("failed")).put(job("failed-alone").status("failed"));
    desk.put(job("skipped").status("skipped"));
    desk.put(job("blocked").after(&["failed"])).put(job("asks").gated());
    desk.put(job("no").status("blocked_by_approval"));
    desk.tick();
    assert_eq!(scheduled(&desk, &[]), ["failed", "blocked", "asks", "no"]);
    let all = scheduled(&desk, &["--all"]);
    assert_eq!(all, ["succeeded", "cancelled", "failed", "failed-alone", "skipped", "blocked", "asks", "no"]);
}

#[test]
fn k_100_a_focused_job_is_first_and_shown_with_its_neighbours() {
    let desk = Desk::new();
    desk.put(job("before").gated()).put(job("unrelated").gated());
    desk.put(job("job-root").after(&["before"])).put(job("next").after(&["job-root"]));
    desk.put(job("further").after(&["next"]));
    desk.tick();
    assert_eq!(scheduled(&desk, &["--job", "job-root"]), ["job-root", "before", "next", "further"]);
    assert_eq!(scheduled(&desk, &["--job", "job-root", "--max-depth", "1"]), ["job-root", "before", "next"]);
    let nothing = desk.json(&["jobs", "schedule", "--job", "no-such-job"]);
    assert_eq!(nothing["jobs"], json!([]));
    assert_eq!(desk.run(&["jobs", "schedule", "--job", "no-such-job"]).out, "Outcome: No scheduled jobs\n");
}

#[test]
fn k_101_nothing_is_shown_as_nothing() {
    let desk = Desk::new();
    for format in ["summary", "dag"] {
        let ran = desk.run(&["jobs", "schedule", "--format", format]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Outcome: No scheduled jobs\n"));
    }
    let empty = json!({"version": 1, "ordering": "created_at_then_job_id", "jobs": [], "edges": []});
    assert_eq!(desk.json(&["jobs", "schedule"]), empty);
}

#[test]
fn k_102_jobs_and_edges_as_json_have_their_keys() {
    let desk = Desk::new();
    let patch = json!({"command_patch": {"job_id": "producer"}});
    desk.put(
        job("producer").status("running").makes(std::slice::from_ref(&patch)).meta("command_alias", "draft"),
    );
    desk.put(
        job("consumer")
            .after(&["producer"])
            .needs(&[patch, json!({"target_branch": {"name": "y"}})])
            .meta("plan", "foo")
            .meta("command_alias", "approve")
            .meta("target", "main"),
    );
    desk.tick();
    let schedule = desk.json(&["jobs", "schedule"]);
    assert_eq!((&schedule["version"], &schedule["ordering"]), (&json!(1), &json!("created_at_then_job_id")));
    let consumer = &schedule["jobs"][1];
    assert_eq!(consumer["job_id"], "consumer");
    assert_eq!((&consumer["slug"], &consumer["name"]), (&json!("foo"), &json!("approve/foo/main")));
    assert_eq!(consumer["status"], "waiting_on_deps");
    assert!(consumer["wait"].as_str().unwrap().contains("waiting on job producer"), "{consumer}");
    let created = consumer["created_at"].as_str().unwrap();
    assert!(created.starts_with("2026-02-01T12:00:01"), "{created}");
    let producer = &schedule["jobs"][0];
    assert_eq!((&producer["slug"], &producer["wait"]), (&Value::Null, &Value::Null));

    let edges = schedule["edges"].as_array().unwrap();
    let after = json!({"from": "consumer", "to": "producer", "after": {"policy": "success"}});
    assert!(edges.contains(&after), "{schedule}");
    let artifact = edges.iter().find(|edge| edge["artifact"] == "command_patch:producer").unwrap();
    assert_eq!((&artifact["from"], &artifact["to"]), (&json!("consumer"), &json!("producer")));
}

#[test]
fn k_103_each_edge_is_shown_once() {
    let desk = Desk::new();
    for layer in 0..4 {
        for place in 0..40 {
            let before: Vec<String> = (0..40).map(|place| format!("l{}-{place}", layer - 1)).collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let one = job(&format!("l{layer}-{place}"));
            desk.put(if layer == 0 { one.gated() } else { one.after(&before) });
        }
    }
    let schedule = desk.json(&["jobs", "schedule"]);
    assert_eq!(schedule["edges"].as_array().unwrap().len(), 4_800);
    assert_eq!(schedule["jobs"].as_array().unwrap().len(), 160);
    let ran = desk.run(&["jobs", "schedule", "--format", "dag"]);
    assert!(ran.out.len() < 2_000_000, "{} bytes", ran.out.len());
}

#[test]
fn k_104_the_dag_is_a_tree_of_what_each_job_needs() {
    let desk = Desk::with_git();
    desk.put(job("job-predecessor").status("succeeded"));
    desk.put(job("job-producer").status("running").makes(&[json!({"command_patch": {"job_id": "x"}})]));
    desk.put(
        job("job-leaf")
            .status("waiting_on_deps")
            .after(&["job-predecessor", "job-unknown"])
            .needs(&[json!({"command_patch": {"job_id": "x"}}), json!({"target_branch": {"name": "y"}})])
            .locks(&["k:exclusive"])
            .schedule("pinned_head", json!({"branch": "main", "oid": "feedface"}))
            .schedule("wait_reason", json!({"kind": "dependencies", "detail": "waiting on command_patch:x"}))
            .meta("workflow_node_name", "Leaf"),
    );
    let ran = desk.run(&["jobs", "schedule", "--format", "dag"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("Schedule (DAG, verbose)\n"), "{}", ran.out);
    let root = ran
        .out
        .lines()
        .find(|line| line.starts_with("job-leaf waiting_on_deps"))
        .unwrap_or_else(|| panic!("{}", ran.out));
    for part in
        ["[Leaf]", "[wait: ", "waiting on command_patch:x", "[locks: k:exclusive]", "[pinned: main@feedface]"]
    {
        assert!(root.contains(part), "{part}: {root}");
    }
    for child in [
        "after:success -> job-predecessor succeeded",
        "after:success -> job-unknown missing",
        "command_patch:x -> job-producer running",
        "target_branch:y -> [missing]",
    ] {
        let found = ran.out.lines().any(|line| {
            line.strip_prefix("|-- ")
                .or_else(|| line.strip_prefix("`-- "))
                .is_some_and(|edge| edge.starts_with(child))
        });
        assert!(found, "{child}:\n{}", ran.out);
    }
    assert!(ran.out.contains("`-- "), "{}", ran.out);
}

#[test]
fn k_105_the_dag_goes_as_deep_as_it_is_told() {
    let desk = Desk::new();
    desk.put(job("e-end").gated())
        .put(job("d-four").after(&["e-end"]))
        .put(job("c-three").after(&["d-four"]));
    desk.put(job("b-two").after(&["c-three"])).put(job("a-one").after(&["b-two"]));
    desk.tick();
    let tree = |arguments: &[&str]| {
        let words = [&["jobs", "schedule", "--format", "dag", "--job", "a-one"], arguments].concat();
        let ran = desk.run(&words);
        let lines = ran.out.lines().skip_while(|line| !line.starts_with("a-one")).map(str::to_owned);
        let lines = lines.enumerate().take_while(|(index, line)| {
            *index == 0 || line.starts_with(['|', '`', ' ']) && !line.trim().is_empty()
        });
        lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    };
    let shows =
        |tree: &str| ["b-two", "c-three", "d-four", "e-end"].map(|id| tree.contains(&format!("-> {id} ")));
    assert_eq!(shows(&tree(&["--max-depth", "0"])), [false, false, false, false]);
    assert_eq!(shows(&tree(&["--max-depth", "1"])), [true, false, false, false]);
    assert_eq!(shows(&tree(&["--max-depth", "2"])), [true, true, false, false]);
    assert_eq!(shows(&tree(&[])), [true, true, true, false]);
}

#[test]
fn k_106_and_107_names_and_slugs_come_from_the_first_place_that_has_one() {
    let desk = Desk::new();
    let words = |words: &[&str]| json!(words);
    desk.put(job("j0").gated().meta("workflow_node_name", "Nice").meta("workflow_node_id", "x"));
    desk.put(
        job("j1").gated().meta("workflow_node_id", "develop_draft__stage_files").meta("command_alias", "x"),
    );
    desk.put(job("j2").gated().meta("command_alias", "approve").meta("plan", "foo").meta("target", "main"));
    desk.put(job("j3").gated().meta("command_alias", "approve").meta("target", "main"));
    desk.put(job("j4").gated().meta("command_alias", "approve"));
    desk.put(job("j5").gated().with("command", words(&["a", "b", "c", "d"])));
    desk.put(job("j6").gated().with("command", words(&[])));
    desk.put(job("j7").gated().makes(&[
        json!({"command_patch": {"job_id": "x"}}),
        json!({"merge_sentinel": {"slug": "beta"}}),
        json!({"plan_doc": {"slug": "gamma", "branch": "b"}}),
    ]));
    let schedule = desk.json(&["jobs", "schedule"]);
    let names: Vec<&str> =
        schedule["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(
        names[..7],
        [
            "Nice",
            "develop draft / stage files",
            "approve/foo/main",
            "approve/main",
            "approve",
            "a b c ...",
            "<command unavailable>"
        ]
    );
    let slugs: Vec<&Value> = schedule["jobs"].as_array().unwrap().iter().map(|job| &job["slug"]).collect();
    assert_eq!(slugs[2], "foo");
    assert_eq!(slugs[3], &Value::Null);
    assert_eq!(slugs[7], "beta");
}

#[test]
fn k_108_watching_wants_a_terminal_and_sensible_numbers() {
    let desk = Desk::new();
    let refused = |arguments: &[&str], says: &str| {
        let ran = desk.run(&[&["jobs", "schedule", "--watch"], arguments].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(says), "{says}: {ran:?}");
        assert_eq!(ran.out, "", "{ran:?}");
    };
    refused(
        &[],
        "`--watch` requires an interactive TTY with ANSI enabled; rerun without `--watch` for static output.",
    );
    for format in ["dag", "json"] {
        refused(
            &["--format", format],
            "`--watch` only supports summary format; rerun without `--format dag|json`.",
        );
    }
    refused(&["--top", "0"], "`--top` must be at least 1.");
    refused(&["--interval-ms", "50"], "`--interval-ms` must be at least 100.");
}

#[test]
fn k_111_lists_begin_with_the_newest_and_hide_what_succeeded() {
    let desk = Desk::new();
    let none = desk.run(&["jobs", "list"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), "Outcome: No background jobs found\n"), "{none:?}");
    desk.put(job("s1").status("succeeded"));
    assert!(desk.run(&["jobs", "list"]).out.contains("Outcome: No active background jobs\n"));
    desk.put(job("f1").status("failed"))
        .put(job("s2").status("succeeded"))
        .put(job("s3").status("succeeded"));
    let hidden = desk.run(&["jobs", "list", "--dismiss-failures"]);
    assert!(hidden.out.contains("Outcome: No visible background jobs\n"), "{hidden:?}");
    desk.put(job("a1").gated()).put(job("a2").gated());

    let ran = desk.run(&["jobs", "list", "--dismiss-failures"]);
    assert!(ran.out.contains("Outcome: 2 background jobs\n"), "{ran:?}");
    assert!(ran.out.contains("Hidden: 1 failed, 3 succeeded (use --all to include)\n"), "{ran:?}");
    assert!(ran.out.find("a2") < ran.out.find("a1"), "{ran:?}");
    let ran = desk.run(&["jobs", "list"]);
    assert!(ran.out.contains("Outcome: 3 background jobs\n"), "{ran:?}");
    assert!(ran.out.contains("Hidden: 3 succeeded (use --all to include)\n"), "{ran:?}");
    let ran = desk.run(&["jobs", "list", "--all", "--dismiss-failures"]);
    assert!(ran.out.contains("Outcome: 6 background jobs\n"), "{ran:?}");
    assert!(!ran.out.contains("Hidden:"), "{ran:?}");
}

#[test]
fn k_111_large_numbers_are_grouped_and_one_is_one() {
    let desk = Desk::new();
    for index in 0..1_000 {
        desk.put(job(&format!("j{index}")).gated().with("created_at", "2026-02-01T12:00:00Z"));
    }
    assert!(desk.run(&["jobs", "list"]).out.contains("Outcome: 1,000 background jobs\n"));
    let one = Desk::new();
    one.put(job("a").gated());
    assert!(one.run(&["jobs", "list"]).out.contains("Outcome: 1 background job\n"));
}

#[test]
fn k_112_a_list_as_json_has_texts_only() {
    let desk = Desk::new();
    desk.put(job("s").status("succeeded").with("exit_code", 0)).put(job("a").status("running"));
    desk.put(job("b").after(&["a"]));
    desk.tick();
    let list = desk.json(&["jobs", "list"]);
    assert!(list["version"].is_u64(), "{list}");
    assert_eq!(list["header"]["outcome"], "2 background jobs");
    assert_eq!(list["header"]["hidden"], "1 succeeded (use --all to include)");
    let jobs = list["jobs"].as_array().unwrap();
    assert_eq!((&jobs[0]["job"], &jobs[0]["status"]), (&json!("b"), &json!("waiting_on_deps")));
    assert_eq!(jobs[0]["wait"], "dependencies: waiting on job a");
    assert!(jobs[0]["created"].is_string(), "{list}");
    for job in jobs {
        assert!(job.as_object().unwrap().values().all(Value::is_string), "{job}");
    }
}

#[test]
fn k_113_one_job_as_json_has_texts_only() {
    let desk = Desk::new();
    desk.put(
        job("one")
            .status("failed")
            .with("pid", 4242)
            .with("exit_code", 42)
            .with("config_snapshot", json!({"a": 1}))
            .locks(&["repo_serial:exclusive"])
            .needs(&[json!({"plan_doc": {"slug": "alpha", "branch": "draft/alpha"}})])
            .schedule("pinned_head", json!({"branch": "main", "oid": "feedface"}))
            .schedule("wait_reason", json!({"kind": "locks", "detail": "waiting on locks"}))
            .schedule("waited_on", json!(["dependencies", "locks"])),
    );
    let shown = desk.json(&["jobs", "show", "one"]);
    assert!(shown["version"].is_u64(), "{shown}");
    for (field, value) in [
        ("job", "one"),
        ("status", "failed"),
        ("pid", "4242"),
        ("exit_code", "42"),
        ("locks", "repo_serial:exclusive"),
        ("wait", "locks: waiting on locks"),
        ("pinned_head", "main@feedface"),
        ("dependencies", "plan_doc:alpha (draft/alpha)"),
    ] {
        assert_eq!(shown[field], value, "{field}: {shown}");
    }
    assert_eq!(shown["config_snapshot"], json!({"a": 1}));
    let others = shown
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "config_snapshot" && *name != "version");
    for (name, value) in others {
        assert!(value.is_string(), "{name}: {value}");
    }
}

#[test]
fn k_114_a_status_is_one_line() {
    let desk = Desk::new();
    desk.put(job("done").status("succeeded").with("exit_code", 0)).put(job("open").gated());
    let line = |id: &str, status: &str, exit: &str| {
        let logs = format!(".tidewheel/jobs/{id}");
        format!("{id} [{status}] exit={exit} stdout={logs}/stdout.log stderr={logs}/stderr.log\n")
    };
    assert_eq!(desk.run(&["jobs", "status", "done"]).out, line("done", "succeeded", "0"));
    assert_eq!(desk.run(&["jobs", "status", "open"]).out, line("open", "queued", "-"));
    let shown = desk.json(&["jobs", "status", "done"]);
    assert!(shown["version"].is_u64(), "{shown}");
    assert_eq!((&shown["job"], &shown["status"]), (&json!("done"), &json!("succeeded")));
    assert_eq!(shown["stdout"], ".tidewheel/jobs/done/stdout.log");
    assert_eq!(shown["stderr"], ".tidewheel/jobs/done/stderr.log");
    assert!(shown.get("exit_code").is_some(), "{shown}");
    let ran = desk.run(&["jobs", "status", "X"]);
    assert!(ran.code == Some(1) && ran.err.contains("no background job X"), "{ran:?}");
}

#[test]
fn k_115_logs_are_shown_with_their_streams() {
    let desk = Desk::new();
    desk.put(job("one").status("succeeded")).put(job("silent").status("succeeded"));
    fs::write(desk.in_jobs("one/stdout.log"), "hello\nworld\n").unwrap();
    fs::write(desk.in_jobs("one/stderr.log"), "oops\n").unwrap();
    let ran = desk.run(&["jobs", "tail", "one"]);
    let mut lines: Vec<&str> = ran.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[stderr] oops", "[stdout] hello", "[stdout] world"]);
    assert_eq!(desk.run(&["jobs", "tail", "one", "--stream", "stdout"]).out, "hello\nworld\n");
    assert_eq!(desk.run(&["jobs", "tail", "one", "--stream", "stderr"]).out, "oops\n");
    let silent = desk.run(&["jobs", "tail", "silent"]);
    assert_eq!((silent.code, silent.out.as_str()), (Some(0), ""), "{silent:?}");
    // Following ends by itself when the job is over.
    for arguments in [&["jobs", "tail", "one", "--follow"][..], &["jobs", "attach", "one"]] {
        let ran = desk.run(arguments);
        assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 3), "{ran:?}");
    }
}

#[test]
fn k_115_log_text_cannot_steer_the_terminal() {
    let desk = Desk::new();
    desk.put(job("one").status("succeeded").meta("workflow_node_name", "a\u{1b}[2Jb"));
    fs::write(desk.in_jobs("one/stdout.log"), "a\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\n").unwrap();
    for arguments in [
        &["jobs", "tail", "one"][..],
        &["jobs", "tail", "one", "--stream", "stdout"],
        &["jobs", "list", "--all"],
        &["jobs", "show", "one"],
        &["jobs", "schedule", "--all"],
        &["jobs", "schedule", "--all", "--format", "dag"],
    ] {
        let ran = desk.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{arguments:?}: {:?}", ran.out);
    }
}

#[test]
fn k_116_a_bad_record_is_skipped_with_a_warning() {
    let desk = Desk::new();
    desk.file(".tidewheel/jobs/bad/job.json", "{\"id\":");
    desk.put(job("good").gated());
    for arguments in [&["jobs", "list"][..], &["jobs", "schedule"], &["jobs", "schedule", "--format", "json"]]
    {
        let ran = desk.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("good"), "{ran:?}");
        assert!(ran.err.contains("unable to load background job bad: "), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn jobs_are_found_by_any_unique_part_and_by_run_and_node() {
    let desk = Desk::new();
    desk.flow("one", crate::runs::ONE);
    let run = desk.enqueue(&["one"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    desk.put(job("alpha-1").gated()).put(job("alpha-2").gated()).put(job("alpha").gated());
    let shown = |name: &str| desk.run(&["jobs", "status", name]);
    for name in [&id[..20], &id[8..], &format!("{run}/one")] {
        assert!(shown(name).out.starts_with(&format!("{id} [succeeded]")), "{name}: {:?}", shown(name));
    }
    // The whole name is unique, whatever else begins with it.
    assert!(shown("alpha").out.starts_with("alpha ["));
    assert!(shown("pha-2").out.starts_with("alpha-2 ["));
    let ran = shown("alpha-");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("alpha-1") && ran.err.contains("alpha-2"), "{ran:?}");
}

#[test]
fn n_165_logs_are_there_while_the_job_runs() {
    let desk = Desk::new();
    let script = "echo a; while [ ! -e go ]; do sleep 0.02; done; echo b";
    desk.flow("slow", &flow_of(script));
    let run = desk.enqueue(&["slow"]);
    let id = format!("wf-{run}-one");
    eventually("the first line is shown", || desk.run(&["jobs", "tail", &id]).out == "[stdout] a\n");
    assert_eq!(desk.status(&id), "running");
    desk.file("go", "");
    let ran = desk.run(&["jobs", "tail", &id, "--follow"]);
    assert_eq!(ran.out, "[stdout] a\n[stdout] b\n", "{ran:?}");
}

#[test]
fn n_166_a_closed_pipe_is_no_error() {
    let desk = Desk::new();
    for index in 0..2_000 {
        desk.put(
            job(&format!("job-with-a-long-name-{index}")).gated().with("created_at", "2026-02-01T12:00:00Z"),
        );
    }
    for arguments in [
        &["jobs", "list"][..],
        &["jobs", "schedule", "--format", "json"],
        &["jobs", "list", "--format", "json"],
    ] {
        let mut child = desk.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{arguments:?}");
    }
}

#[test]
fn every_document_has_a_version() {
    let desk = Desk::new();
    desk.flow("one", crate::runs::ONE);
    let run = desk.enqueue(&["one"]);
    desk.wait(&format!("wf-{run}-one"));
    for arguments in [
        &["jobs", "list"][..],
        &["jobs", "show", &format!("wf-{run}-one")],
        &["jobs", "status", &format!("wf-{run}-one")],
        &["jobs", "schedule"],
        &["jobs", "gc", "--dry-run"],
        &["jobs", "retry", &format!("wf-{run}-one")],
        &["runs", "list"],
        &["runs", "show", &run],
        &["tick"],
    ] {
        let document = desk.json(arguments);
        assert!(document["version"].is_u64(), "{arguments:?}: {document}");
    }
}

#[test]
fn the_data_directory_is_the_nearest_one_or_that_of_the_main_worktree() {
    let desk = Desk::with_git();
    desk.put(job("one").gated());
    desk.file("deep/er/x", "");
    let status = |directory: &std::path::Path, arguments: &[&str]| {
        let mut command = desk.command(&[arguments, &["jobs", "status", "one"]].concat());
        command.current_dir(directory);
        Ran::of(&mut command)
    };
    assert_eq!(status(&desk.path("deep/er"), &[]).code, Some(0));
    let linked = desk.outside().join("linked");
    desk.git(&["rm", "-rq", "--cached", ".tidewheel"]);
    desk.git(&["commit", "-qm", "without"]);
    desk.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "linked"]);
    let ran = status(&linked, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Named on the command line, before or after the verb.
    let far = desk.outside().join("home");
    assert_eq!(status(&far, &[]).code, Some(1));
    let mut command = desk.command(&["jobs", "status", "one", "--dir"]);
    command.arg(desk.path("")).current_dir(&far);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
