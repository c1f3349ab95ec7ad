//! Doing a part of the work again.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, custom, job, standing};

/// Returns a chain of jobs after a failure, beside jobs that have nothing to do with it.
fn chain() -> Desk {
    let desk = Desk::new();
    desk.put(job("p").status("succeeded"));
    desk.put(job("a").status("failed").with("exit_code", 9).after(&["p"]).gated_off());
    desk.put(job("c").status("blocked_by_dependency").needs(&[custom("t", "k")]));
    desk.put(job("b").status("blocked_by_dependency").after(&["a"]).makes(&[custom("t", "k")]));
    desk.put(job("d").status("failed"));
    desk
}

impl crate::by_hand::Job {
    /// Keeps it from running when it is judged again: it waits for somebody who never comes.
    fn gated_off(self) -> Self {
        self.locks(&["held:exclusive"])
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn h_71_and_84_what_comes_after_is_done_again_and_nothing_else() {
    let desk = chain();
    desk.put(job("holder").status("running").locks(&["held:exclusive"]));
    let (p, d) =
        (fs::read(desk.in_jobs("p/job.json")).unwrap(), fs::read(desk.in_jobs("d/job.json")).unwrap());
    let retried = desk.json(&["jobs", "retry", "a"]);
    assert!(retried["version"].is_u64(), "{retried}");
    assert_eq!(retried["outcome"], "Jobs retried");
    assert_eq!((&retried["requested_job"], &retried["retry_root"]), (&json!("a"), &json!("a")));
    assert_eq!(texts(&retried["last_successful_point"]), ["p"]);
    // The root first, then in the order of creation.
    assert_eq!(texts(&retried["retry_set"]), ["a", "c", "b"]);
    assert_eq!(texts(&retried["reset"]), ["a", "c", "b"]);
    assert_eq!(texts(&retried["restarted"]), [""; 0]);
    assert!(retried["updated"].is_array(), "{retried}");
    assert_eq!(fs::read(desk.in_jobs("p/job.json")).unwrap(), p);
    assert_eq!(fs::read(desk.in_jobs("d/job.json")).unwrap(), d);
    assert_eq!(desk.status("a"), "waiting_on_locks");
    assert_eq!(desk.standing("b").2, "waiting on job a");
    assert_eq!(desk.standing("c").2, "waiting on custom:t:k");
}

#[test]
fn h_72_while_one_of_them_runs_nothing_is_reset() {
    let desk = chain();
    desk.put(job("c").status("running").needs(&[custom("t", "k")]));
    let before = fs::read(desk.in_jobs("a/job.json")).unwrap();
    let ran = desk.run(&["jobs", "retry", "a"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let says = "cannot retry while jobs are running in the retry set: c (running)";
    assert!(ran.err.contains(says), "{ran:?}");
    assert_eq!(fs::read(desk.in_jobs("a/job.json")).unwrap(), before);
}

#[test]
fn h_73_who_waits_is_judged_again() {
    let desk = Desk::new();
    desk.put(job("a").status("failed"));
    desk.put(
        job("b")
            .after(&["a"])
            .status("waiting_on_deps")
            .schedule("wait_reason", json!({"kind": "dependencies", "detail": "waiting on job a"}))
            .schedule("waited_on", json!(["dependencies", "locks"])),
    );
    let retried = desk.json(&["jobs", "retry", "a"]);
    assert_eq!(texts(&retried["reset"]), ["a", "b"]);
    assert_eq!(texts(&retried["restarted"]), ["a"]);
    desk.wait("b");
    assert_eq!(desk.status("b"), "succeeded");
    assert_eq!(desk.record("b")["schedule"]["waited_on"], json!(["dependencies"]));
}

#[test]
fn h_74_and_75_nothing_is_left_of_the_last_time() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["held:exclusive"]));
    desk.put(
        job("a")
            .status("failed")
            .locks(&["held:exclusive"])
            .makes(&[custom("t", "k")])
            .with("pid", 999_999)
            .with("started_at", "2026-02-01T12:00:00Z")
            .with("finished_at", "2026-02-01T12:00:01Z")
            .with("exit_code", 9)
            .with("session_path", ".tidewheel/sessions/s")
            .with("outcome_path", ".tidewheel/jobs/a/outcome.json")
            .schedule("waited_on", json!(["dependencies"]))
            .meta("workflow_node_attempt", 4)
            .meta("workflow_node_outcome", "failed")
            .meta("workflow_payload_refs", json!(["x"]))
            .meta("agent_exit_code", 3)
            .meta("cancel_cleanup_status", "done")
            .meta("cancel_cleanup_error", "x")
            .meta("command_alias", "draft")
            .meta("workflow_template_selector", "draft"),
    );
    let mine = ["outcome.json", "command.patch", "ask-save.patch", "save-input.patch"];
    for name in mine {
        fs::write(desk.in_jobs("a").join(name), "{}").unwrap();
    }
    for name in ["stdout.log", "stderr.log"] {
        fs::write(desk.in_jobs("a").join(name), "old\n").unwrap();
    }
    for tree in ["custom", "data"] {
        for by in ["a", "other"] {
            let marker =
                json!({"job_id": by, "type_id": "t", "key": "k", "written_at": "2026-02-01T12:00:00Z"});
            desk.file(&format!(".tidewheel/jobs/artifacts/{tree}/74/6b/{by}.json"), &marker.to_string());
        }
    }
    desk.json(&["jobs", "retry", "a"]);
    let record = desk.record("a");
    for field in ["pid", "started_at", "finished_at", "exit_code", "session_path", "outcome_path"] {
        assert_eq!(at(&record, &format!("/{field}")), &Value::Null, "{field}");
    }
    let metadata = &record["metadata"];
    assert_eq!(metadata["workflow_node_attempt"], 5);
    for name in [
        "workflow_node_outcome",
        "workflow_payload_refs",
        "agent_exit_code",
        "cancel_cleanup_status",
        "cancel_cleanup_error",
    ] {
        assert_eq!(at(metadata, &format!("/{name}")), &Value::Null, "{name}");
    }
    assert_eq!(
        (&metadata["command_alias"], &metadata["workflow_template_selector"]),
        (&json!("draft"), &json!("draft"))
    );
    // It waits again, from the beginning.
    assert_eq!(desk.standing("a").0, "waiting_on_locks");
    assert_eq!(record["schedule"]["waited_on"], json!(["locks"]));

    for name in mine {
        assert!(!desk.in_jobs("a").join(name).exists(), "{name}");
    }
    for name in ["stdout.log", "stderr.log"] {
        assert_eq!(fs::read_to_string(desk.in_jobs("a").join(name)).unwrap(), "", "{name}");
    }
    for tree in ["custom", "data"] {
        assert!(!desk.in_jobs(&format!("artifacts/{tree}/74/6b/a.json")).exists(), "{tree}");
        assert!(desk.in_jobs(&format!("artifacts/{tree}/74/6b/other.json")).exists(), "{tree}");
    }
}

#[test]
fn h_74_a_job_without_a_count_is_in_its_second_attempt() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["held:exclusive"]));
    desk.put(job("a").status("failed").locks(&["held:exclusive"]));
    desk.json(&["jobs", "retry", "a"]);
    assert_eq!(desk.record("a")["metadata"]["workflow_node_attempt"], 2);
}

#[test]
fn h_76_an_owned_worktree_is_removed() {
    let desk = Desk::with_git();
    desk.git(&["worktree", "add", "-q", ".tidewheel/tmp-worktrees/x", "-b", "draft/x"]);
    desk.put(
        job("a")
            .status("failed")
            .gated()
            .meta("worktree_owned", true)
            .meta("worktree_path", ".tidewheel/tmp-worktrees/x")
            .meta("worktree_name", "x")
            .meta("execution_root", ".tidewheel/tmp-worktrees/x"),
    );
    desk.json(&["jobs", "retry", "a"]);
    let metadata = desk.record("a")["metadata"].clone();
    assert_eq!(metadata["retry_cleanup_status"], "done", "{metadata}");
    assert_eq!(at(&metadata, "/retry_cleanup_error"), &Value::Null);
    assert_eq!(metadata["execution_root"], ".");
    for name in ["worktree_owned", "worktree_path", "worktree_name"] {
        assert_eq!(at(&metadata, &format!("/{name}")), &Value::Null, "{name}");
    }
    assert!(!desk.path(".tidewheel/tmp-worktrees/x").exists());
    assert!(!desk.git(&["worktree", "list"]).contains("tmp-worktrees/x"));
}

#[test]
fn h_77_a_worktree_at_an_unsafe_place_is_left_alone() {
    let desk = Desk::with_git();
    desk.file("precious/file", "x");
    fs::create_dir_all(desk.path(".tidewheel/tmp-worktrees")).unwrap();
    std::os::unix::fs::symlink(desk.path("precious"), desk.path(".tidewheel/tmp-worktrees/link")).unwrap();
    let outside = desk.outside().join("far");
    fs::create_dir_all(&outside).unwrap();
    let places = [
        "precious".to_owned(),
        ".tidewheel/tmp-worktrees/../../precious".to_owned(),
        ".tidewheel/tmp-worktrees".to_owned(),
        ".tidewheel/tmp-worktrees/link".to_owned(),
        outside.display().to_string(),
    ];
    for (index, place) in places.iter().enumerate() {
        let id = format!("a{index}");
        desk.put(
            job(&id)
                .status("failed")
                .gated()
                .meta("worktree_owned", true)
                .meta("worktree_path", place.as_str())
                .meta("execution_root", place.as_str()),
        );
        let retried = desk.json(&["jobs", "retry", &id]);
        assert_eq!(texts(&retried["reset"]), [id.as_str()], "{place}");
        let metadata = desk.record(&id)["metadata"].clone();
        assert_eq!(metadata["retry_cleanup_status"], "degraded", "{place}: {metadata}");
        let error = metadata["retry_cleanup_error"].as_str().unwrap();
        assert!(error.contains("refusing to clean unsafe worktree path"), "{error}");
        assert_eq!(metadata["worktree_path"], place.as_str());
        assert_eq!(metadata["execution_root"], place.as_str());
        assert_eq!(metadata["worktree_owned"], true);
    }
    assert!(desk.path("precious/file").exists() && outside.exists());
}

#[test]
fn h_78_without_a_worktree_there_is_nothing_to_clean() {
    let desk = Desk::new();
    desk.put(job("a").status("failed").gated().meta("execution_root", "somewhere"));
    desk.json(&["jobs", "retry", "a"]);
    let metadata = desk.record("a")["metadata"].clone();
    assert_eq!(
        (&metadata["retry_cleanup_status"], &metadata["execution_root"]),
        (&json!("skipped"), &json!("."))
    );
}

#[test]
fn h_80_a_merge_that_is_done_again_forgets_its_conflict() {
    let sentinel = json!({"merge_sentinel": {"slug": "alpha"}});
    let jobs = [
        job("a").needs(std::slice::from_ref(&sentinel)),
        job("a").makes(&[sentinel]),
        job("a").locks(&["merge_sentinel:alpha:exclusive"]),
        job("a").meta("command_alias", "merge").meta("plan", "alpha"),
    ];
    for merge in jobs {
        let desk = Desk::with_git();
        desk.put(merge.status("failed"));
        desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", "{}");
        desk.file(".tidewheel/tmp/merge-conflicts/beta.json", "{}");
        desk.json(&["jobs", "retry", "a"]);
        assert!(!desk.path(".tidewheel/tmp/merge-conflicts/alpha.json").exists(), "{}", desk.record("a"));
        assert!(desk.path(".tidewheel/tmp/merge-conflicts/beta.json").exists());
    }
}

#[test]
fn h_81_a_merge_in_progress_is_not_disturbed() {
    let says = "cannot retry merge-related jobs while Git has an in-progress merge/cherry-pick; run `git merge \
                --abort` or `git cherry-pick --abort` (or resolve/commit), then retry";
    for head in ["MERGE_HEAD", "CHERRY_PICK_HEAD"] {
        let desk = Desk::with_git();
        let oid = desk.git(&["rev-parse", "HEAD"]);
        desk.file(&format!(".git/{head}"), &format!("{oid}\n"));
        desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", "{}");
        desk.put(job("a").status("failed").makes(&[json!({"merge_sentinel": {"slug": "alpha"}})]));
        desk.put(job("other").status("failed"));
        let before = fs::read(desk.in_jobs("a/job.json")).unwrap();
        let ran = desk.run(&["jobs", "retry", "a"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(says), "{ran:?}");
        assert_eq!(fs::read(desk.in_jobs("a/job.json")).unwrap(), before);
        assert!(desk.path(".tidewheel/tmp/merge-conflicts/alpha.json").exists());
        // What has nothing to do with merging is not kept from it.
        assert_eq!(desk.run(&["jobs", "retry", "other"]).code, Some(0));
    }
}

#[test]
fn h_82_an_approval_is_asked_for_again() {
    let desk = Desk::new();
    let decided = json!({
        "required": true,
        "state": "rejected",
        "requested_at": "2026-02-01T12:00:00Z",
        "requested_by": "bob",
        "decided_at": "2026-02-01T12:00:01Z",
        "decided_by": "bob",
        "reason": "no",
    });
    desk.put(job("a").status("blocked_by_approval").schedule("approval", decided));
    desk.json(&["jobs", "retry", "a"]);
    let record = desk.record("a");
    let approval = &record["schedule"]["approval"];
    assert_eq!((&approval["state"], &approval["requested_by"]), (&json!("pending"), &json!("ada")));
    assert_ne!(approval["requested_at"], "2026-02-01T12:00:00Z");
    for field in ["decided_at", "decided_by", "reason"] {
        assert_eq!(at(approval, &format!("/{field}")), &Value::Null, "{field}");
    }
    assert_eq!(desk.standing("a"), standing("waiting_on_approval", "approval", "awaiting human approval"));
}

#[test]
fn h_83_what_is_still_impossible_is_blocked_again() {
    let desk = Desk::with_git();
    desk.put(job("a").status("failed").needs(&[json!({"target_branch": {"name": "missing-retry-target"}})]));
    let retried = desk.json(&["jobs", "retry", "a"]);
    assert_eq!(texts(&retried["reset"]), ["a"]);
    assert_eq!(texts(&retried["restarted"]), [""; 0]);
    assert_eq!(texts(&retried["updated"]), ["a"]);
    assert_eq!(desk.status("a"), "blocked_by_dependency");
}

#[test]
fn h_84_for_people_there_are_rows() {
    let desk = Desk::new();
    desk.put(job("a").status("failed").gated());
    let ran = desk.run(&["jobs", "retry", "a"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows =
        ["Outcome", "Requested", "Retry root", "Last successful point", "Retry set", "Reset", "Restarted"];
    for row in rows {
        assert!(ran.out.contains(row), "{row}: {ran:?}");
    }
    assert!(ran.out.contains("Jobs retried"), "{ran:?}");
    let restarted = ran.out.lines().find(|line| line.contains("Restarted")).unwrap();
    assert!(restarted.ends_with("none"), "{restarted:?}");
}

#[test]
fn h_85_an_unknown_job_is_an_error() {
    let desk = Desk::new();
    let ran = desk.run(&["jobs", "retry", "X"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no background job X"), "{ran:?}");
}

#[test]
fn a_succeeded_job_may_be_done_again_with_all_that_follows() {
    let desk = Desk::new();
    desk.put(job("a").status("succeeded")).put(job("b").status("succeeded").after(&["a"]));
    let retried = desk.json(&["jobs", "retry", "a"]);
    assert_eq!(texts(&retried["restarted"]), ["a"]);
    desk.wait("b");
    assert_eq!(desk.status("b"), "succeeded");
    assert!(desk.record("b")["started_at"].is_string());
}

#[test]
fn h_81_merges_are_known_by_what_they_do() {
    let desk = Desk::with_git();
    let head = desk.git(&["rev-parse", "HEAD"]);
    desk.put(job("merge").status("failed").meta("workflow_executor_operation", "git.integrate_plan_branch"));
    desk.put(job("gate").status("failed").meta("workflow_control_policy", "gate.conflict_resolution"));
    desk.put(job("other").status("failed").meta("workflow_executor_operation", "git.stage_commit"));
    fs::write(desk.path(".git/MERGE_HEAD"), format!("{head}\n")).unwrap();
    for id in ["merge", "gate"] {
        let ran = desk.run(&["jobs", "retry", id]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.contains("cannot retry merge-related jobs while Git has an in-progress merge"),
            "{ran:?}"
        );
        assert_eq!(desk.status(id), "failed");
    }
    assert_eq!(desk.run(&["jobs", "retry", "other"]).code, Some(0));
}

#[test]
fn a_retry_says_that_it_runs_the_text_of_then() {
    let desk = Desk::new();
    desk.flow("f", &crate::runs::flow_of("echo old >>log; exit 1"));
    let run = desk.enqueue(&["f"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    let ran = desk.run(&["jobs", "retry", &id]);
    assert!(ran.code == Some(0) && !ran.err.contains("template"), "nothing has changed: {ran:?}");
    desk.wait(&id);
    desk.flow("f", &crate::runs::flow_of("echo new >>log"));
    for arguments in [["jobs", "retry", id.as_str()], ["runs", "retry", run.as_str()]] {
        let ran = desk.run(&arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let says =
            format!("template `f` has changed since run {run} was enqueued; a retry runs the text of then");
        assert!(ran.err.contains(&says) && ran.err.contains("`tidewheel run f`"), "{ran:?}");
        desk.wait(&id);
    }
    assert_eq!(desk.lines("log"), ["old"; 4]);
    std::fs::remove_file(desk.path(".tidewheel/workflows/f.toml")).unwrap();
    let ran = desk.run(&["jobs", "retry", &id]);
    assert!(ran.err.contains("template `f` is gone"), "{ran:?}");
}

/// Where the command was typed decided what was said of the template.
#[test]
fn a_retry_finds_the_template_of_its_run_from_every_directory() {
    let desk = Desk::new();
    let text = |said: &str| crate::runs::flow_of(&format!("echo {said}; exit 1"));
    desk.file("sub/f.toml", &text("old")).file("other/empty", "");
    let at = |folder: &str, arguments: &[&str]| {
        let mut command = desk.command(arguments);
        command.current_dir(desk.path(folder));
        crate::world::Ran::of(&mut command)
    };
    // Once by a path from the root, once by a path that means nothing there.
    for (folder, name) in [("", "sub/f.toml"), ("other", "../sub/f.toml"), ("sub", "f.toml")] {
        desk.file("sub/f.toml", &text("old"));
        let ran = at(folder, &["run", name, "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let run = ran.json()["run_id"].as_str().unwrap().to_owned();
        let id = format!("wf-{run}-one");
        for here in ["", "sub", "other"] {
            desk.wait(&id);
            let ran = at(here, &["jobs", "retry", &id]);
            assert!(ran.code == Some(0) && !ran.err.contains("template"), "{name} from {here}: {ran:?}");
        }
        desk.file("sub/f.toml", &text("new"));
        for here in ["", "sub", "other"] {
            desk.wait(&id);
            let ran = at(here, &["jobs", "retry", &id]);
            assert!(
                ran.err.contains(&format!("template `{name}` has changed")),
                "{name} from {here}: {ran:?}"
            );
            let means_it = desk.path(here).join(name).is_file();
            let command = if means_it { name } else { "file:sub/f.toml" };
            assert!(ran.err.contains(&format!("`tidewheel run {command}`")), "{name} from {here}: {ran:?}");
        }
        desk.wait(&id);
    }
}

/// A template was said to have changed that had not.
#[test]
fn a_retry_tells_a_changed_configuration_from_a_changed_template() {
    let desk = Desk::new();
    desk.flow("f", &crate::runs::flow_of("exit 1"));
    let run = desk.enqueue(&["f"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    desk.file(
        ".tidewheel/config.toml",
        "[scheduler]\ncapacity = 64\n[[policies]]\nmatch = { default = true }\nmax_retries = 1\n",
    );
    let ran = desk.run(&["jobs", "retry", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let says =
        format!("template `f` has not changed since run {run} was enqueued, but `.tidewheel/config.toml`");
    assert!(ran.err.contains(&says), "{ran:?}");
    desk.wait(&id);
    desk.flow("f", &crate::runs::flow_of("exit 2"));
    let ran = desk.run(&["jobs", "retry", &id]);
    assert!(ran.err.contains("template `f` has changed"), "{ran:?}");
    desk.wait(&id);
}
