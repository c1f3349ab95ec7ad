//! `tidewheel completions`: what a shell is told, and what bash really makes of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::home::{Home, Ran};
use crate::yard::Yard;

/// Returns what bash offers for a line that is typed so far.
fn offered(home: &Home, words: &[&str]) -> Vec<String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_tidewheel")).parent().expect("it is in a directory");
    let script = r#"
        source <(tidewheel completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_tidewheel tidewheel "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).args(words).current_dir(home.path()).env_clear();
    bash.env("PATH", format!("{}:/usr/bin:/bin", binary.display()));
    bash.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = Ran::of(bash, b"");
    assert_eq!(ran.err, "", "{words:?}");
    ran.lines().into_iter().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn yard() -> Yard {
    let yard = Yard::with_flows(&[
        (".tidewheel/workflows/ship.toml", include_str!("../../../../examples/jobs/hello.toml")),
        (".tidewheel/config.toml", "[commands]\ntwice = \"file:two.toml\"\n"),
    ]);
    let run = "run_000000000000000000000000000000ab";
    let of_run = json!({ "metadata": { "workflow_run_id": run, "workflow_node_id": "one" } });
    yard.home.file(&format!(".tidewheel/jobs/runs/{run}.json"), "{}");
    yard.job("alpha", "succeeded", 0, json!({})).job("beta", "succeeded", 1, json!({}));
    yard.job(&format!("wf-{run}-one"), "succeeded", 2, of_run);
    yard
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Home::new().run(&["completions", shell]).succeeded().out;
        assert!(script.contains("_TIDEWHEEL_COMPLETE"), "{shell}: {script}");
        assert!(!script.contains("/target/"), "{shell}: the binary is found by its name");
    }
    assert_eq!(Home::new().run(&["completions", "dos"]).code, Some(2));
}

#[test]
fn zsh_puts_no_blank_behind_the_name_of_a_parameter() {
    let script = Home::new().run(&["completions", "zsh"]).succeeded().out;
    for part in [
        "        local -a begun=()\n",
        "            elif [[ \"$value\" == *= ]]; then\n                begun+=(\"$completion\")\n            else\n",
        "        [[ -n $begun ]] && _describe -V 'values' begun -S ''\n",
    ] {
        assert_eq!(script.matches(part).count(), 1, "{part}: {script}");
    }
}

#[test]
fn flags_are_offered_to_who_begins_one_and_where_nothing_else_is() {
    let yard = yard();
    let jobs = offered(&yard.home, &["tidewheel", "jobs", "show", ""]);
    assert!(jobs.contains(&"alpha".to_owned()) && !jobs.contains(&"--dir".to_owned()), "{jobs:?}");
    let flags = offered(&yard.home, &["tidewheel", "jobs", "show", "-"]);
    assert!(flags.contains(&"--dir".to_owned()), "{flags:?}");
    let flags = offered(&yard.home, &["tidewheel", "tick", ""]);
    assert!(flags.contains(&"--dir".to_owned()), "{flags:?}");
    let flags = offered(&Home::new(), &["tidewheel", "jobs", "show", ""]);
    assert!(flags.contains(&"--dir".to_owned()), "{flags:?}");
    assert_eq!(offered(&yard.home, &["tidewheel", "jobs", "status", "--format", ""]), ["text", "json"]);
}

#[test]
fn commands_flags_and_values_complete() {
    let home = Home::new();
    assert_eq!(offered(&home, &["tidewheel", "ini"]), ["init"]);
    assert_eq!(offered(&home, &["tidewheel", "jobs", "ca"]), ["cancel"]);
    assert_eq!(offered(&home, &["tidewheel", "tick", "--fo"]), ["--format"]);
    assert_eq!(offered(&home, &["tidewheel", "tick", "--format", "j"]), ["json"]);
    assert_eq!(offered(&home, &["tidewheel", "schema", "c"]), ["config"]);
    // So bash breaks `--format=j`.
    assert_eq!(offered(&home, &["tidewheel", "tick", "--format", "=", "j"]), ["json"]);
    assert!(!offered(&home, &["tidewheel", ""]).iter().any(|word| word.starts_with("__")));
    assert_eq!(fs::read_dir(home.path()).expect("it is there").count(), 0, "completing makes nothing");
}

#[test]
fn ids_of_jobs_and_runs_complete() {
    let yard = yard();
    let run = "run_000000000000000000000000000000ab";
    let job = format!("wf-{run}-one");
    let before = yard.record("alpha");
    assert_eq!(offered(&yard.home, &["tidewheel", "jobs", "show", "al"]), ["alpha"]);
    assert_eq!(offered(&yard.home, &["tidewheel", "jobs", "tail", "wf"]), [job.as_str()]);
    assert_eq!(
        offered(&yard.home, &["tidewheel", "jobs", "show", &format!("{run}/")]),
        [format!("{run}/one")]
    );
    assert_eq!(offered(&yard.home, &["tidewheel", "runs", "show", "r"]), [run]);
    assert_eq!(offered(&yard.home, &["tidewheel", "graph", "run_"]), [run]);
    assert_eq!(offered(&yard.home, &["tidewheel", "jobs", "explain", "run", ":", "r"]), [run]);
    assert_eq!(offered(&yard.home, &["tidewheel", "jobs", "wait", "be"]), ["beta"]);
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "ship", "--after", "be"]), ["beta"]);
    // So bash breaks `run:ru`.
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "ship", "--after", "run", ":", "ru"]), [run]);
    assert_eq!(yard.record("alpha"), before);
}

#[test]
fn flows_with_their_flags_and_parameters_complete() {
    let yard = yard();
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "sh"]), ["ship"]);
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "tw"]), ["twice", "two.toml"]);
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "ship", "--set", ""]), ["name="]);
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "two.toml", "--set", "w"]), ["word="]);
    assert_eq!(offered(&yard.home, &["tidewheel", "run", "twice", "--wh"]), ["--where"]);
    let flags_first =
        ["tidewheel", "run", "--after", "alpha", "--require-approval", "two.toml", "--set", "w"];
    assert_eq!(offered(&yard.home, &flags_first), ["word="]);
    assert_eq!(offered(&yard.home, &["tidewheel", "graph", "tw"]), ["twice", "two.toml"]);
    assert_eq!(offered(&yard.home, &["tidewheel", "graph", "two.toml", "--wh"]), ["--where"]);
}

#[test]
fn another_directory_is_looked_at_where_the_line_names_it() {
    let home = Home::new();
    let yard = yard();
    let dir = yard.home.path().display().to_string();
    assert_eq!(offered(&home, &["tidewheel", "jobs", "show", "--dir", &dir, "al"]), ["alpha"]);
}

#[test]
fn what_cannot_be_read_is_no_candidate_and_no_noise() {
    let home = Home::new();
    home.file(".tidewheel/config.toml", "what is this").file(".tidewheel/workflows/bad.toml", "=");
    home.file("a\n\u{1b}[2J.toml", "")
        .file(".tidewheel/workflows/a\u{1b}[2J.toml", "")
        .file(".tidewheel/jobs", "no directory");
    assert_eq!(offered(&home, &["tidewheel", "run", "bad", "--set", ""]), [""; 0]);
    assert_eq!(offered(&home, &["tidewheel", "run", "a"]), [""; 0]);
    assert_eq!(offered(&home, &["tidewheel", "jobs", "show", "a"]), [""; 0]);
}
