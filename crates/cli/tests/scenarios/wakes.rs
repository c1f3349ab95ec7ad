//! Waits that end without anybody asking: times that come, and a world that changes.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use serde_json::json;

use crate::by_hand::{Desk, job};
use crate::runs::{flow, flow_of};
use crate::world::{Ran, eventually};

/// Returns a desk in a repository that is looked at often.
fn watchful() -> Desk {
    let desk = Desk::with_git();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 8\nprobe_interval = \"50ms\"\n");
    desk.commit("configured");
    desk
}

#[test]
fn a_branch_that_comes_later_is_noticed() {
    let desk = watchful();
    desk.put(job("one").schedule("preconditions", json!([{"kind": "branch_exists", "branch": "feat"}])));
    assert_eq!(desk.ticked("one").0, "waiting_on_deps");
    desk.git(&["branch", "feat"]);
    desk.wait("one");
    assert_eq!(desk.status("one"), "succeeded");
    eventually("everybody has gone", || desk.processes().is_empty());
}

#[test]
fn a_clean_tree_and_a_head_that_is_back_are_noticed() {
    let desk = watchful();
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.commit("second");
    desk.file("x.txt", "x");
    desk.put(job("pin").schedule("pinned_head", json!({"branch": "main", "oid": first})));
    desk.put(job("tree").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    desk.tick();
    fs::remove_file(desk.path("x.txt")).unwrap();
    desk.wait("tree");
    assert_eq!((desk.status("tree"), desk.status("pin")), ("succeeded".into(), "waiting_on_deps".into()));
    desk.git(&["reset", "-q", "--hard", &first]);
    desk.wait("pin");
    assert_eq!(desk.status("pin"), "succeeded");
}

#[test]
fn an_artifact_made_by_hand_is_noticed() {
    let desk = watchful();
    let sentinel = json!({"merge_sentinel": {"slug": "alpha"}});
    desk.put(job("maker").status("running").makes(std::slice::from_ref(&sentinel)));
    desk.put(job("one").needs(&[sentinel]));
    assert_eq!(desk.ticked("one").2, "waiting on merge_sentinel:alpha");
    desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", "{}");
    desk.wait("one");
    assert_eq!(desk.status("one"), "succeeded");
}

#[test]
fn a_daemon_serves_a_directory_alone() {
    let desk = watchful();
    let mut daemon = desk.command(&["daemon"]).spawn().unwrap();
    // The file is there before it is locked.
    let is_held = |file: fs::Metadata| {
        fs::read_to_string("/proc/locks").unwrap().contains(&format!(":{} ", file.ino()))
    };
    eventually("it serves", || desk.in_jobs("daemon.lock").metadata().is_ok_and(is_held));
    assert_eq!(desk.run(&["daemon"]).code, Some(1), "nobody else may");
    desk.put(job("one").schedule("preconditions", json!([{"kind": "branch_exists", "branch": "feat"}])));
    desk.tick();
    desk.git(&["branch", "feat"]);
    desk.wait("one");
    assert_eq!(desk.status("one"), "succeeded");
    assert!(daemon.try_wait().unwrap().is_none(), "it stays");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn nobody_watches_a_directory_that_was_removed() {
    let desk = watchful();
    desk.put(job("one").schedule("preconditions", json!([{"kind": "branch_exists", "branch": "feat"}])));
    desk.tick();
    eventually("somebody watches", || !desk.processes().is_empty());
    // Whoever watches may write something while it is removed.
    eventually("it is removed", || {
        fs::remove_dir_all(desk.path(".tidewheel")).ok();
        !desk.path(".tidewheel").exists()
    });
    eventually("it has gone", || desk.processes().is_empty());
}

#[test]
fn several_jobs_or_a_whole_run_can_be_waited_for() {
    let desk = Desk::new();
    desk.flow("pair", &flow(&[("one", "true", ""), ("two", "exit 3", "after = [\"one\"]")]));
    let run = desk.enqueue(&["pair"]);
    assert_eq!(desk.run(&["jobs", "wait", &format!("run:{run}")]).code, Some(1));
    assert_eq!(desk.run(&["jobs", "wait", &format!("{run}/one")]).code, Some(0));
    assert_eq!(desk.run(&["jobs", "wait", &format!("{run}/one"), &format!("{run}/two")]).code, Some(1));
}

/// Runs the command at a terminal for a while, and returns what it showed.
fn at_a_terminal(desk: &Desk, arguments: &str) -> String {
    let mut command = Command::new("timeout");
    desk.settle_in(&mut command);
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_tidewheel"));
    command.env("TERM", "xterm").args(["-s", "INT", "2", "script", "-qec", &line, "/dev/null"]);
    Ran::of(&mut command).out
}

#[test]
fn k_109_and_110_watching_shows_a_running_job_and_its_latest_line() {
    let desk = Desk::new();
    desk.put(job("a").status("running")).put(job("b").status("running")).put(job("z").gated());
    fs::write(desk.in_jobs("a/stdout.log"), "first\n  last words  \n\n").unwrap();
    desk.tick();
    let shown = at_a_terminal(&desk, "jobs schedule --watch --interval-ms 100 --top 1");
    assert!(shown.contains("Schedule (Summary)"), "{shown}");
    assert!(shown.contains("Running job: a"), "{shown}");
    assert!(shown.contains("Latest line: [stdout] last words"), "{shown}");
    assert!(shown.contains("running=2") && shown.contains("waiting=1"), "{shown}");
    // The focused job wins, even if it is below the first rows.
    let shown = at_a_terminal(&desk, "jobs schedule --watch --job b --top 1");
    assert!(shown.contains("Running job: b") && shown.contains("Latest line: (no output yet)"), "{shown}");
    desk.end("a", "succeeded").end("b", "succeeded");
    let shown = at_a_terminal(&desk, "jobs schedule --watch");
    assert!(shown.contains("No running job") && shown.contains("Latest line: (none)"), "{shown}");
}

#[test]
fn fields_and_formats_of_lists_are_configured() {
    let desk = Desk::new();
    desk.put(job("one").gated().locks(&["k:shared"]));
    desk.file(
        ".tidewheel/config.toml",
        "[display.lists.jobs]\nformat = \"table\"\nfields = [\"job\", \"locks\"]\n\
         [display.lists.jobs_show]\nfields = [\"job\", \"approval_state\"]\n",
    );
    let list = desk.run(&["jobs", "list"]);
    assert!(list.out.contains("k:shared") && !list.out.contains("queued"), "{list:?}");
    let shown = desk.run(&["jobs", "show", "one"]);
    assert!(shown.out.contains("pending") && !shown.out.contains("k:shared"), "{shown:?}");
    desk.file(".tidewheel/config.toml", "[display.lists.jobs]\nfields = [\"job\", \"colour\"]\n");
    let list = desk.run(&["jobs", "list"]);
    assert!(list.code != Some(0) && list.err.contains("colour"), "{list:?}");
}

#[test]
fn raw_logs_are_what_was_written() {
    let desk = Desk::new();
    desk.put(job("one").status("succeeded"));
    fs::write(desk.in_jobs("one/stdout.log"), "a\u{1b}[31mred\u{1b}[0m\n").unwrap();
    let ran = desk.run(&["jobs", "tail", "one", "--stream", "stdout", "--raw"]);
    assert_eq!(ran.out, "a\u{1b}[31mred\u{1b}[0m\n", "{ran:?}");
    assert_eq!(desk.run(&["jobs", "tail", "one", "--stream", "stdout"]).out, "ared\n");
}

#[test]
fn a_gate_of_checks_mends_and_looks_again() {
    let desk = Desk::new();
    let gate = |fix: &str| {
        format!(
            "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"gate\"\nuses = \"control.gate.cicd\"\n\
             args = {{ auto_resolve_script = \"{fix}\" }}\n\
             gates = [{{ kind = \"cicd\", script = \"test -e good || exit 7\", auto_resolve = true }}]\n"
        )
    };
    desk.flow("f", &gate("true"));
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(desk.record(&format!("wf-{run}-n"))["exit_code"], 7, "{ran:?}");
    desk.flow("f", &gate("touch good"));
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let outcome = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-n")).join("outcome.json")).unwrap();
    assert!(outcome.contains("cicd gate passed after auto-resolve on attempt 1"), "{outcome}");
}

#[test]
fn a_job_whose_manifest_is_lost_meanwhile_does_not_stay_running() {
    let desk = Desk::new();
    desk.flow("f", &flow_of("touch begun; until [ -e go ]; do sleep 0.02; done"));
    let run = desk.enqueue(&["f"]);
    let id = format!("wf-{run}-one");
    eventually("it has begun", || desk.path("begun").exists());
    fs::remove_file(desk.in_jobs(&format!("runs/{run}.json"))).unwrap();
    desk.file("go", "");
    eventually("it is over", || {
        desk.run(&["tick"]);
        desk.status(&id) != "running"
    });
}
