//! Values that nobody is to read.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::Path;

use crate::by_hand::{Desk, job};
use crate::prompts::{configure, end_of, payload, talk};
use crate::runs::{flow, flow_of};
use crate::world::Ran;

const VALUE: &str = "s3cr3t-\"value\"";

/// Runs a command with the secret in its environment.
fn run(desk: &Desk, arguments: &[&str]) -> Ran {
    Ran::of(desk.command(arguments).env("API_TOKEN", VALUE).env("OTHER", "s3cr3t-other"))
}

/// Runs a template to its end, and returns the id of its run.
#[track_caller]
fn followed(desk: &Desk, text: &str, more: &[&str], code: i32) -> String {
    desk.file("flows/flow.toml", text);
    let ran = run(desk, &[&["run", "flows/flow.toml", "--follow", "--format", "json"], more].concat());
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(!ran.out.contains("s3cr3t") && !ran.err.contains("s3cr3t"), "{ran:?}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

/// Returns the files beneath a directory that have a text in them, as it is or as JSON writes it.
fn found(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains("s3cr3t") {
                files.push(path.display().to_string());
            }
        }
    }
    files
}

fn desk() -> Desk {
    let desk = Desk::new();
    configure(&desk, "cat", "[secrets]\nenv = [\"API_TOKEN\", \"OTHER\", \"UNSET\"]");
    desk
}

fn log(desk: &Desk, run: &str, node: &str, stream: &str) -> String {
    fs::read_to_string(desk.in_jobs(&format!("wf-{run}-{node}/{stream}.log"))).unwrap()
}

#[test]
fn what_a_job_prints_is_hidden_however_it_is_split() {
    let desk = desk();
    let run = followed(&desk, &flow_of("echo \"a $API_TOKEN b\"; echo \"$OTHER\" >&2"), &[], 0);
    assert_eq!(
        (log(&desk, &run, "one", "stdout"), log(&desk, &run, "one", "stderr")),
        ("a *** b\n".into(), "***\n".into())
    );
    // One letter at a time, each by a process of its own.
    let letters = "echo \"x$API_TOKEN-$(printf %s \"$OTHER\" | cut -c1-10).\" | fold -w 1 | \
                   while IFS= read -r c; do printf %s \"$c\"; done";
    let run = followed(&desk, &flow_of(letters), &[], 0);
    assert_eq!(
        log(&desk, &run, "one", "stdout"),
        "x***-s3cr3t-oth.",
        "what only begins like a value is let through"
    );
    fs::remove_file(desk.in_jobs(&format!("wf-{run}-one/stdout.log"))).unwrap();
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
}

#[test]
fn what_a_job_fails_with_is_hidden_in_records_events_and_outcomes() {
    let desk = desk();
    let policy = "[[policies]]\nmatch = { default = true }\nmax_retries = 1\nbackoff = \"none\"\non_failure = \"dead_letter\"\n";
    let text = flow_of("echo \"cannot log in with $API_TOKEN\" >&2; exit 3") + policy;
    let run = followed(&desk, &text, &[], 1);
    let events = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-one/events.jsonl"))).unwrap();
    assert!(events.contains("cannot log in with ***"), "{events}");
    let text = flow(&[("gate", "true", "gates = [{ kind = \"approval\", required = true }]")]);
    desk.file("flows/gate.toml", &text);
    let ran = self::run(&desk, &["run", "flows/gate.toml", "--format", "json"]);
    let gate = ran.json()["run_id"].as_str().unwrap().to_owned();
    let id = format!("wf-{gate}-gate");
    assert_eq!(
        self::run(&desk, &["jobs", "reject", &id, "--reason", &format!("not with {VALUE}")]).code,
        Some(0)
    );
    assert_eq!(desk.record(&id)["schedule"]["approval"]["reason"], "not with ***");
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
}

#[test]
fn what_is_in_a_payload_is_hidden_and_does_not_reach_an_agent() {
    let desk = desk();
    let text = talk("args = { script = \"echo \\\"use $API_TOKEN\\\"\" }", "")
        .replace("builtin.prompt", "shell.prompt");
    let text = text.replace("id = \"ask\"", "id = \"ask\"\nkind = \"shell\"");
    let run = followed(&desk, &text, &[], 0);
    assert_eq!(payload(&desk, &run, "ask", ("prompt_text", "k"))["text"], "use ***\n");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "use ***\n");
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
}

#[test]
fn an_argument_with_the_value_runs_with_it_and_is_kept_without() {
    let desk = desk();
    let text = "id = \"T\"\nversion = \"v1\"\n[params]\ntoken = \"\"\n[[nodes]]\nid = \"n\"\nname = \"with ${token}\"\n\
                kind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
                args = { command = [\"sh\", \"-c\", \"test \\\"$1\\\" = \\\"$API_TOKEN\\\" && echo \\\"same: $1\\\"\", \"sh\", \"${token}\"] }\n";
    let run = followed(&desk, text, &["--set", &format!("token={VALUE}")], 0);
    assert_eq!(log(&desk, &run, "n", "stdout"), "same: ***\n");
    let manifest = fs::read_to_string(desk.in_jobs(&format!("runs/{run}.json"))).unwrap();
    assert!(manifest.contains("\"token\": \"***\"") && manifest.contains("API_TOKEN"), "{manifest}");
    for arguments in [&["jobs", "show"][..], &["jobs", "explain"]] {
        let ran = self::run(&desk, &[arguments, &[&format!("wf-{run}-n")]].concat());
        assert!(ran.code == Some(0) && !ran.out.contains("s3cr3t"), "{ran:?}");
    }
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
    // Whoever does not know the value any more cannot run it.
    let retried = desk.run(&["jobs", "retry", &format!("wf-{run}-n")]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    desk.wait(&format!("wf-{run}-n"));
    let (status, _, summary) = end_of(&desk, &run, "n");
    assert_eq!(status, "failed");
    assert!(summary.contains("secret `API_TOKEN` is not in the environment"), "{summary}");
    // Nobody gets the value by writing what hides it.
    let run = followed(&desk, text, &["--set", "token=***"], 1);
    assert_eq!(log(&desk, &run, "n", "stdout"), "");
}

#[test]
fn a_name_with_the_value_is_refused() {
    let desk = desk();
    let text = flow_of("true") + "locks = [{ key = \"${key}\" }]\n[params]\nkey = \"\"\n";
    desk.file("flows/flow.toml", &text);
    let ran = run(&desk, &["run", "flows/flow.toml", "--set", &format!("key={VALUE}")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("has the value of a secret in it") && !ran.err.contains("s3cr3t"), "{ran:?}");
    assert_eq!(desk.job_dirs(), [""; 0]);
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
}

#[test]
fn views_hide_what_was_kept_before_anybody_knew_that_it_is_secret() {
    let desk = desk();
    desk.put(
        job("old")
            .status("failed")
            .with("command", vec![format!("login {VALUE}")])
            .meta("plan", "s3cr3t-other"),
    );
    fs::write(desk.in_jobs("old/stdout.log"), format!("token {VALUE}\n")).unwrap();
    for arguments in [
        &["jobs", "show", "old"][..],
        &["jobs", "show", "old", "--format", "json"],
        &["jobs", "list", "--all", "--format", "table"],
        &["jobs", "tail", "old"],
        &["jobs", "tail", "old", "--raw"],
        &["jobs", "explain", "old"],
    ] {
        let ran = run(&desk, arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains("s3cr3t") && !ran.out.is_empty(), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_configuration_that_breaks_while_jobs_run_gives_nothing_away() {
    let desk = desk();
    let config = desk.path(".tidewheel/config.toml");
    let text = flow(&[
        ("break", "echo '[[' >.tidewheel/config.toml", "on.succeeded = [\"print\"]"),
        ("print", "echo \"$API_TOKEN\"", ""),
    ]);
    let run = followed(&desk, &text, &[], 0);
    assert_eq!(fs::read_to_string(config).unwrap(), "[[\n");
    assert_eq!(log(&desk, &run, "print", "stdout"), "***\n");
    assert_eq!(found(&desk.path(".tidewheel/jobs")), [""; 0]);
}

#[test]
fn a_value_that_is_too_short_is_told() {
    let desk = desk();
    desk.file("flows/flow.toml", &flow_of("echo abc"));
    let mut command = desk.command(&["run", "flows/flow.toml", "--follow"]);
    let ran = Ran::of(command.env("API_TOKEN", "abc").env("OTHER", ""));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("`API_TOKEN` is not hidden: it has 3 bytes"), "{ran:?}");
    assert!(ran.err.contains("`OTHER` is not hidden: it is empty"), "{ran:?}");
    assert!(!ran.err.contains("UNSET"), "{ran:?}");
}

#[test]
fn live_output_is_not_held_back() {
    let desk = desk();
    // It waits until somebody has seen what it said; the line ends in nothing that a value begins with.
    desk.file(
        "flows/flow.toml",
        &flow_of("printf 'Continue? '; until test -e go; do sleep 0.02; done; echo yes"),
    );
    let ran = run(&desk, &["run", "flows/flow.toml", "--format", "json"]);
    let id = format!("wf-{}-one", ran.json()["run_id"].as_str().unwrap());
    crate::world::eventually("the question is in the log", || {
        fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).is_ok_and(|log| log == "Continue? ")
    });
    desk.file("go", "");
    desk.wait(&id);
    assert_eq!(fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap(), "Continue? yes\n");
}
