//! What follows from how jobs end: handlers, policies, times and limits.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};
use crate::runs::{flow, flow_of};
use crate::world::eventually;

/// Follows a run to its end and returns its exit code and the statuses of these nodes.
#[track_caller]
fn followed<const N: usize>(desk: &Desk, text: &str, nodes: [&str; N]) -> (Option<i32>, [String; N]) {
    desk.flow("followed", text);
    let ran = desk.run(&["run", "followed", "--follow", "--format", "json"]);
    let ended = ran.json();
    let run = ended["run_id"].as_str().unwrap_or_else(|| panic!("{ran:?}"));
    (ran.code, nodes.map(|node| desk.status(&format!("wf-{run}-{node}"))))
}

fn policy(fields: &str) -> String {
    format!("[[policies]]\nmatch = {{ name = \"a\" }}\n{fields}\n")
}

#[test]
fn a_handler_of_a_blocked_job_runs_when_it_is_blocked() {
    let desk = Desk::new();
    let text = flow(&[
        ("a", "true", "needs = [{ merge_sentinel = { slug = \"s\" } }]\non.blocked = [\"tell\"]"),
        ("tell", "touch told", ""),
        ("other", "true", ""),
    ]);
    let (code, ends) = followed(&desk, &text, ["a", "tell", "other"]);
    assert_eq!(
        (code, ends.map(|end| end)),
        (Some(10), ["blocked_by_dependency", "succeeded", "succeeded"].map(String::from))
    );
    assert!(desk.path("told").exists());
}

#[test]
fn a_handler_of_a_cancelled_job_runs_when_it_is_cancelled() {
    let desk = Desk::new();
    desk.flow(
        "f",
        &flow(&[("a", "touch begun; sleep 600", "on.cancelled = [\"tell\"]"), ("tell", "touch told", "")]),
    );
    let run = desk.enqueue(&["f"]);
    eventually("it has begun", || desk.path("begun").exists());
    assert_eq!(desk.run(&["jobs", "cancel", &format!("wf-{run}-a")]).code, Some(0));
    desk.wait(&format!("wf-{run}-tell"));
    assert_eq!(desk.status(&format!("wf-{run}-tell")), "succeeded");
}

#[test]
fn a_handler_of_several_outcomes_runs_for_any_of_them() {
    let desk = Desk::new();
    let text = |script: &str| {
        flow(&[
            ("a", script, "on.failed = [\"tell\"]\non.cancelled = [\"tell\"]"),
            ("b", "true", "on.failed = [\"tell\"]"),
            ("tell", "true", ""),
        ])
    };
    let (code, ends) = followed(&desk, &text("false"), ["tell"]);
    assert_eq!((code, ends), (Some(1), ["succeeded".to_owned()]));
    let (code, ends) = followed(&desk, &text("true"), ["tell"]);
    assert_eq!((code, ends), (Some(0), ["skipped".to_owned()]));
}

#[test]
fn a_policy_may_skip_what_fails() {
    let desk = Desk::new();
    let text = flow(&[
        ("a", "exit 3", ""),
        ("b", "true", "after = [\"a\"]"),
        ("c", "true", "after = [{ node_id = \"a\", policy = \"completion\" }]"),
    ]) + &policy("on_failure = \"skip\"");
    let (code, ends) = followed(&desk, &text, ["a", "b", "c"]);
    assert_eq!((code, ends), (Some(0), ["skipped", "skipped", "succeeded"].map(String::from)));
}

#[test]
fn a_policy_may_have_a_value_instead() {
    let desk = Desk::new();
    let text =
        flow(&[("a", "exit 3", ""), ("b", "true", "after = [\"a\"]")]) + &policy("fallback = { value = 7 }");
    let (code, ends) = followed(&desk, &text, ["a", "b"]);
    assert_eq!((code, ends), (Some(0), ["succeeded", "succeeded"].map(String::from)));
}

#[test]
fn a_policy_may_try_something_else_at_last() {
    let desk = Desk::new();
    let text = flow(&[("a", "echo first >>log; exit 3", "")])
        + &policy(
            "max_retries = 1\nbackoff = \"none\"\nfallback = { overrides = { args = { script = \"echo last >>log\" } } }",
        );
    let (code, ends) = followed(&desk, &text, ["a"]);
    assert_eq!((code, ends), (Some(0), ["succeeded".to_owned()]));
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "first\nfirst\nlast\n");
}

#[test]
fn only_some_codes_are_tried_again() {
    let desk = Desk::new();
    let text = |code: u32| {
        flow(&[("a", &format!("echo x >>log; exit {code}"), "")])
            + &policy("max_retries = 2\nbackoff = \"none\"\nretryable_errors = [75]")
    };
    followed(&desk, &text(75), ["a"]);
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "x\nx\nx\n");
    fs::remove_file(desk.path("log")).unwrap();
    followed(&desk, &text(1), ["a"]);
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "x\n");
}

#[test]
fn fields_that_cannot_act_on_a_process_are_refused_by_name() {
    let desk = Desk::new();
    for (fields, name) in [
        ("execution_mode = \"sync\"", "execution_mode"),
        ("execution_mode = \"async\"", "execution_mode"),
        ("execution_mode = \"durable\"", "execution_mode"),
        ("checkpoint_after = true", "checkpoint_after"),
        ("on_failure = \"compensate\"\ncompensation = \"nobody\"", "compensation"),
        ("timeout = \"1s\"\ntimeout_ms = 5", "timeout"),
        ("max_retrys = 3", "max_retrys"),
    ] {
        desk.flow("bad", &(flow(&[("a", "true", "")]) + &policy(fields)));
        let ran = desk.run(&["run", "bad", "--check"]);
        assert!(matches!(ran.code, Some(1 | 2)), "{fields}: {ran:?}");
        assert!(ran.err.contains(name) && ran.err.contains("bad.toml:"), "{fields}: {}", ran.err);
    }
    desk.flow("good", &(flow(&[("a", "true", "")]) + &policy("execution_mode = \"external\"")));
    assert_eq!(desk.run(&["run", "good", "--check"]).code, Some(0));
}

#[test]
fn who_waits_too_long_in_the_queue_has_failed() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    let text = flow(&[("a", "true", "locks = [{ key = \"k\", mode = \"exclusive\" }]")])
        + &policy("queue_timeout = \"150ms\"");
    desk.flow("f", &text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    let record = desk.record(&id);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(1)), "{record}");
    assert_eq!(desk.standing(&id).2, "queue timeout");
}

#[test]
fn a_delayed_job_is_queued_until_its_time() {
    let desk = Desk::new();
    desk.flow("f", &(flow(&[("a", "true", "")]) + &policy("delay = \"1h\"")));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    let (status, kind, _) = desk.standing(&id);
    assert_eq!((status.as_str(), kind.as_str()), ("queued", "schedule"));
    desk.flow("f", &(flow(&[("a", "true", "")]) + &policy("delay = \"150ms\"")));
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    assert_eq!(desk.status(&id), "succeeded");
}

#[test]
fn a_job_whose_deadline_is_over_before_it_starts_ends_as_its_policy_says() {
    for (on_failure, status) in
        [("halt", "failed"), ("skip", "skipped"), ("pause", "waiting_on_approval"), ("dead_letter", "failed")]
    {
        let desk = Desk::new();
        let nodes = flow(&[
            ("before", "until [ -e go ]; do sleep 0.01; done", ""),
            ("a", "touch ran", "after = [{ node_id = \"before\" }]"),
            ("next", "true", "after = [{ node_id = \"a\" }]"),
        ]);
        let late =
            policy(&format!("deadline = \"1ms\"\non_failure = \"{on_failure}\"\nfallback = {{ value = 1 }}"));
        desk.flow("f", &(nodes + &late));
        let run = desk.enqueue(&["f"]);
        let id = format!("wf-{run}-a");
        if on_failure == "pause" {
            // Its approval is asked for when nothing else is in its way.
            assert_eq!(desk.ticked(&id).0, "waiting_on_deps");
            desk.file("go", "");
        }
        eventually("it is late", || desk.run(&["tick"]).code == Some(0) && desk.status(&id) == status);
        assert!(!desk.path("ran").exists());
        let next = format!("wf-{run}-next");
        match on_failure {
            "skip" => assert_eq!(desk.wait(&next).code, Some(0)),
            "pause" => assert_eq!(desk.status(&next), "waiting_on_deps"),
            _ => assert_eq!(desk.status(&next), "blocked_by_dependency"),
        }
        let letter = &desk.record(&id)["metadata"]["dead_letter"];
        assert_eq!(letter.as_str(), (on_failure == "dead_letter").then_some("deadline exceeded"));
        if on_failure == "pause" {
            // It stays so until a person ends it.
            assert_eq!(desk.ticked(&id).2, "paused after a failure: deadline exceeded");
            assert_eq!(desk.run(&["jobs", "reject", &id]).code, Some(0));
            assert_eq!(desk.status(&id), "blocked_by_approval");
            // Whoever wants it done gives it as much time as it had at first, for each attempt.
            assert!(!desk.record(&id)["schedule"]["limits"]["deadline"].is_null());
        }
        desk.file("go", "");
        desk.wait(&format!("wf-{run}-before"));
    }
}

#[test]
fn an_open_breaker_that_fails_jobs_leaves_the_last_word_to_their_policies() {
    for (more, status) in [
        ("on_failure = \"halt\"", "failed"),
        ("on_failure = \"skip\"", "skipped"),
        ("on_failure = \"skip\"\nfallback = { value = 1 }", "succeeded"),
    ] {
        let desk = Desk::new();
        let breaker = "circuit_breaker = { name = \"api\", failure_threshold = 1, reset_timeout = \"1h\", on_open = \"fail\" }";
        let nodes = flow(&[
            ("breaks", "exit 1", ""),
            ("a", "touch ran", "after = [{ node_id = \"breaks\", policy = \"completion\" }]"),
        ]);
        let rules = format!("[[policies]]\nmatch = {{ name = \"breaks\" }}\n{breaker}\n")
            + &policy(&format!("{breaker}\n{more}"));
        let (_, [end]) = followed(&desk, &(nodes + &rules), ["a"]);
        assert_eq!(end, status, "{more}");
        assert!(!desk.path("ran").exists());
    }
}

/// A breaker that one failure opens, after which jobs are skipped.
const SKIPS: &str =
    "circuit_breaker = { name = \"b\", failure_threshold = 1, reset_timeout = \"1h\", on_open = \"skip\" }";

#[test]
fn what_an_open_breaker_skips_is_counted_and_told() {
    for retries in [1, 0] {
        let desk = Desk::new();
        let rule = policy(&format!("max_retries = {retries}\n{SKIPS}"));
        desk.flow("f", &(flow(&[("a", "echo ran >>log; exit 1", "")]) + &rule));
        // The first attempt opens the breaker. Without a second one to skip, its run has failed.
        let opens = desk.run(&["run", "f", "--follow", "--format", "json"]);
        let skips = desk.run(&["run", "f", "--follow", "--format", "json"]);
        assert_eq!((opens.code, skips.code), (Some(1 - retries), Some(0)), "{opens:?} {skips:?}");
        let skipped = if retries == 0 { vec![skips] } else { vec![opens, skips] };
        for ran in &skipped {
            let document = ran.json();
            let job = format!("wf-{}-a", document["run_id"].as_str().unwrap_or_default());
            assert_eq!((ran.code, desk.status(&job).as_str()), (Some(0), "skipped"), "{ran:?}");
            assert_eq!(document["skipped_failures"], serde_json::json!([job]), "{document}");
            let explained = desk.run(&["jobs", "explain", &job]).out;
            assert!(!explained.contains("not needed"), "{explained}");
            assert!(!explained.contains("jobs cancel"), "{explained}");
        }
        assert_eq!(desk.lines("log").len(), 1, "only the first attempt ran");
        let listed = desk.run(&["runs", "list"]).out;
        assert_eq!(listed.matches("1 failure skipped").count(), skipped.len(), "{listed}");
        let ran = desk.run(&["run", "f", "--follow"]);
        assert!(ran.out.contains("circuit breaker `b` is open, and its policy skips that"), "{ran:?}");
        assert!(ran.out.contains("Workflow run succeeded, with 1 failure skipped"), "{ran:?}");
    }
}

#[test]
fn a_run_goes_on_after_one_that_an_open_breaker_skipped() {
    let desk = Desk::new();
    desk.flow("f", &(flow(&[("a", "exit 1", "")]) + &policy(SKIPS)));
    assert_eq!(desk.run(&["run", "f", "--follow"]).code, Some(1));
    let ran = desk.run(&["run", "f", "--repeat", "3", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Workflow runs succeeded, with 3 failures skipped"), "{ran:?}");
}

#[test]
fn a_rate_lets_only_so_many_start() {
    let desk = Desk::new();
    let nodes = flow(&[("a", "true", ""), ("b", "true", ""), ("c", "true", "")]);
    let limit = "[[policies]]\nmatch = { default = true }\nrate_limit = { count = 2, window = \"1h\", name = \"mail\" }\n";
    desk.flow("f", &(nodes + limit));
    let run = desk.enqueue(&["f"]);
    for node in ["a", "b"] {
        desk.wait(&format!("wf-{run}-{node}"));
        assert_eq!(desk.status(&format!("wf-{run}-{node}")), "succeeded");
    }
    desk.tick();
    let (status, kind, _) = desk.standing(&format!("wf-{run}-c"));
    assert_eq!((status.as_str(), kind.as_str()), ("queued", "schedule"));
}

#[test]
fn who_has_priority_starts_first() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let nodes = flow(&[
        ("low", "echo low >>log", ""),
        ("normal", "echo normal >>log", ""),
        ("high", "echo high >>log", ""),
    ]);
    let ranks = "[[policies]]\nmatch = { name = \"low\" }\npriority = \"low\"\n[[policies]]\nmatch = { name = \"high\" }\npriority = \"high\"\n";
    let (code, _) = followed(&desk, &(nodes + ranks), []);
    assert_eq!(code, Some(0));
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "high\nnormal\nlow\n");
}

#[test]
fn logs_of_all_attempts_are_kept() {
    let desk = Desk::new();
    let text = flow(&[("a", "echo attempt $TIDEWHEEL_ATTEMPT; echo oops >&2; exit 1", "")])
        + &policy("max_retries = 2\nbackoff = \"none\"");
    desk.flow("f", &text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    desk.wait(&id);
    assert_eq!(
        fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap(),
        "attempt 1\nattempt 2\nattempt 3\n"
    );
    let events = fs::read_to_string(desk.in_jobs(&id).join("events.jsonl")).unwrap();
    let offsets: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|event| event.pointer("/event/dispatched/stdout_offset").and_then(Value::as_u64))
        .collect();
    assert_eq!(offsets, [0, 10, 20]);
}

#[test]
fn following_goes_on_while_an_approval_is_open_and_says_so() {
    let desk = Desk::new();
    desk.flow("f", &(flow_of("touch done") + "gates = [{ kind = \"approval\", required = true }]\n"));
    let mut child = desk.command(&["run", "f", "--follow"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let asked = lines.find(|line| line.contains("approve")).unwrap_or_default();
    assert!(asked.contains("approve"), "it says how: {asked}");
    assert!(child.try_wait().unwrap().is_none());
    let id = desk.job_dirs().remove(0);
    assert_eq!(desk.run(&["jobs", "approve", &id]).code, Some(0));
    assert!(lines.any(|line| line.contains("succeeded")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(desk.path("done").exists());
}

#[test]
fn a_run_whose_approval_is_rejected_is_blocked() {
    let desk = Desk::new();
    desk.flow("f", &(flow_of("true") + "gates = [{ kind = \"approval\", required = true }]\n"));
    let child = desk.command(&["run", "f", "--follow", "--format", "json"]).spawn().unwrap();
    eventually("it asks", || {
        desk.job_dirs().first().is_some_and(|id| desk.run(&["jobs", "status", id]).code == Some(0))
    });
    let id = desk.job_dirs().remove(0);
    assert_eq!(desk.run(&["jobs", "reject", &id]).code, Some(0));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(10), "{ended:?}");
    let ended: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&ended["terminal_state"], &ended["blocked"]), (&json!("blocked"), &json!([id])));
}

#[test]
fn a_skipped_job_is_hidden_and_counted_as_over() {
    let desk = Desk::new();
    desk.put(job("gone").status("skipped")).put(job("open").gated());
    desk.tick();
    let ran = desk.run(&["jobs", "list"]);
    assert!(
        ran.out.contains("Outcome: 1 background job\n")
            && ran.out.contains("Hidden: 1 skipped (use --all to include)\n"),
        "{ran:?}"
    );
    let ran = desk.run(&["jobs", "schedule"]);
    assert!(!ran.out.contains("gone"), "{ran:?}");
    assert!(desk.run(&["jobs", "schedule", "--all"]).out.contains("gone"));
}

#[test]
fn without_a_repository_what_git_would_have_is_missing() {
    let desk = Desk::new();
    desk.put(job("branch").needs(&[json!({"target_branch": {"name": "main"}})]));
    desk.put(job("doc").needs(&[json!({"plan_doc": {"slug": "alpha", "branch": ""}})]));
    desk.put(job("plain"));
    assert_eq!(desk.tick().started, ["plain"]);
    let blocked = |detail: &str| standing("blocked_by_dependency", "dependencies", detail);
    assert_eq!(desk.standing("branch"), blocked("missing target_branch:main"));
    assert_eq!(desk.standing("doc"), blocked("missing plan_doc:alpha (draft/alpha)"));
}

#[test]
fn a_broken_repository_stops_nothing_but_who_asks_it() {
    let desk = Desk::with_git();
    fs::write(desk.path(".git/HEAD"), "this is no head").unwrap();
    desk.put(job("clean").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    desk.put(job("pinned").schedule("pinned_head", json!({"branch": "main", "oid": "feedface"})));
    desk.put(job("plain"));
    assert_eq!(desk.tick().started, ["plain"]);
    for id in ["clean", "pinned"] {
        assert_eq!(desk.status(id), "waiting_on_deps", "{id}");
    }
}

#[test]
fn what_is_kept_of_a_job_survives_a_retry_by_its_policy() {
    let desk = Desk::new();
    let text = flow(&[(
        "a",
        "test -e again || { touch again; exit 5; }",
        "gates = [{ kind = \"approval\", required = true }]",
    )]) + &policy("max_retries = 1\nbackoff = \"none\"");
    desk.flow("f", &text);
    let id = format!("wf-{}-a", desk.enqueue(&["f"]));
    assert_eq!(desk.run(&["jobs", "approve", &id]).code, Some(0));
    desk.wait(&id);
    // An approval counts for all attempts; only a rewind asks again.
    let record = desk.record(&id);
    assert_eq!(
        (&record["status"], &record["metadata"]["workflow_node_attempt"]),
        (&json!("succeeded"), &json!(2))
    );
    assert_eq!(record["schedule"]["approval"]["state"], "approved");
    assert_eq!(at(&record, "/schedule/wait_reason"), &Value::Null);
}

#[test]
fn a_tick_as_json_has_exactly_its_keys() {
    let desk = Desk::new();
    let ticked = desk.json(&["tick"]);
    let keys: Vec<&String> = ticked.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["errors", "started", "updated", "version"]);
}

#[test]
fn wrong_command_lines_end_with_two() {
    let desk = Desk::new();
    for arguments in [
        &["jobs", "frobnicate"][..],
        &["jobs", "list", "--colour"],
        &["jobs", "status"],
        &["jobs", "list", "--format", "xml"],
        &["jobs", "schedule", "--format", "table"],
        &["jobs", "tail", "x", "--stream", "both-of-them"],
        &["run"],
        &["tick", "now"],
        &["runs", "frobnicate"],
        &["runs", "show"],
    ] {
        let ran = desk.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    }
}
