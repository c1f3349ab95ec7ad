//! `tidewheel run`: flows become jobs.

use std::fs::{self, File};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::Ran;
use crate::yard::{FLOW, Yard};

fn shell(id: &str, script: &str, rest: &str) -> String {
    format!(
        "[[nodes]]\nid = \"{id}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = {{ script = \"{script}\" }}\n{rest}\n"
    )
}

fn flow(nodes: &[String]) -> String {
    format!("id = \"t\"\nversion = \"v1\"\n{}", nodes.concat())
}

#[test]
fn l_117_a_run_is_enqueued_with_one_job_for_each_node() {
    let yard = Yard::with_flows(&[]);
    let told = yard.json(&["run", "two.toml"]);
    let run = told["run_id"].as_str().expect("it has an id");
    assert!(run.len() == 36 && run.starts_with("run_"), "{run}");
    assert_eq!(told["outcome"], "workflow_run_enqueued");
    assert_eq!(told["root_job_ids"], json!([format!("wf-{run}-one")]));
    assert_eq!(told["workflow_template_selector"], "two.toml");
    assert_eq!(told["workflow_template_id"], "template.two");
    assert_eq!(told["workflow_template_version"], "v1");
    for next in ["schedule", "show", "tail"] {
        assert!(
            told["next"][next].as_str().is_some_and(|next| next.starts_with("tidewheel jobs ")),
            "{next}"
        );
    }
    assert!(yard.path(&format!("runs/{run}.json")).is_file());
    assert_eq!(yard.record(&format!("wf-{run}-two"))["schedule"]["after"][0]["policy"], "success");
    assert_eq!(yard.jobs(&["wait", "-q"]).code, Some(0));
}

#[test]
fn what_was_enqueued_is_told_in_rows() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.run(&["run", "two.toml"]).succeeded();
    assert_snapshot!(Yard::plain(&ran.out), @"
    Outcome: Workflow run enqueued
    Run: run_0
    Template: template.two@v1
    Selector: two.toml
    Root jobs: wf-run_0-one
    Next: tidewheel jobs schedule --job wf-run_0-one
    Next: tidewheel jobs show wf-run_0-one
    Next: tidewheel jobs tail wf-run_0-one --follow
    ");
    yard.jobs(&["wait", "-q"]);
}

#[test]
fn a_followed_run_tells_each_change_on_a_line() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.run(&["run", "two.toml", "bye", "--where=now", "--follow"]);
    let lines = Yard::plain(&ran.out);
    // A line may be missed between two looks, but never the first and the last.
    assert!(lines.contains("one: succeeded\n") && lines.contains("two: succeeded\n"), "{lines}");
    let (_, rows) = lines.split_once("Outcome").expect("the result comes last");
    assert_snapshot!(rows, @"
    : Workflow run succeeded
    Run: run_0
    Template: template.two@v1
    Selector: two.toml
    Exit: 0
    Succeeded: wf-run_0-one, wf-run_0-two
    ");
    assert_eq!(ran.code, Some(0));
    let tail = yard.jobs(&["tail", "one", "--stream", "stdout"]).succeeded();
    assert_eq!(tail.out, "bye now\n");
}

#[test]
fn l_132_the_exit_code_of_a_followed_run_says_how_it_ended() {
    let fails = flow(&[shell("a", "exit 9", ""), shell("b", "true", "after = [{ node_id = \"a\" }]")]);
    let needs = "needs = [{ custom = { type_id = \"x\", key = \"nowhere\" } }]";
    let contract = "[[artifact_contracts]]\nid = \"x\"\nversion = \"v1\"\n".to_owned();
    let blocked = flow(&[contract, shell("a", "true", needs)]);
    let yard = Yard::with_flows(&[("fails.toml", &fails), ("blocked.toml", &blocked)]);
    let end = |file: &str| {
        let ran = yard.run(&["run", file, "--follow", "--format", "json"]);
        let told: Value = serde_json::from_str(&ran.out).expect("it is JSON");
        assert_eq!(told["outcome"], "workflow_run_terminal");
        assert_eq!(told["exit_code"].as_i64(), ran.code.map(i64::from));
        let counts = ["succeeded", "failed", "blocked", "cancelled", "skipped"]
            .map(|list| told[list].as_array().map_or(0, Vec::len));
        (ran.code.unwrap_or(-1), told["terminal_state"].as_str().unwrap_or_default().to_owned(), counts)
    };
    assert_eq!(end("two.toml"), (0, "succeeded".to_owned(), [2, 0, 0, 0, 0]));
    assert_eq!(end("fails.toml"), (1, "failed".to_owned(), [0, 1, 1, 0, 0]));
    assert_eq!(end("blocked.toml"), (10, "blocked".to_owned(), [0, 0, 1, 0, 0]));
}

#[test]
fn a_followed_run_says_how_to_approve_it_and_goes_on() {
    let yard = Yard::with_flows(&[]);
    let mut command = yard.home.command(&["run", "two.toml", "--require-approval", "--follow"]);
    command.env("PATH", "/usr/bin:/bin");
    let mut child = command.spawn().expect("it starts");
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("it has an output"));
    let mut line = String::new();
    while !line.contains("waiting_on_approval") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut lines, &mut line).expect("it can be read"), 0);
    }
    let approve = line.split('`').nth(1).expect("it says how").to_owned();
    assert!(approve.starts_with("tidewheel jobs approve wf-run_"), "{approve}");
    let words: Vec<&str> = approve.split(' ').skip(1).collect();
    assert_eq!(yard.run(&words).code, Some(0));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).expect("it can be read");
    assert!(child.wait().expect("it ends").success(), "{rest}");
}

#[test]
fn l_134_repeated_runs_come_one_after_the_other() {
    let yard = Yard::with_flows(&[]);
    let told = yard.json(&["run", "two.toml", "--repeat", "3"]);
    assert_eq!(told["outcome"], "workflow_runs_enqueued");
    let runs = told["runs"].as_array().expect("there are runs");
    assert_eq!(runs.len(), 3);
    for pair in runs.windows(2) {
        let root = pair[1]["root_job_ids"][0].as_str().expect("it has a root");
        let sink = format!("wf-{}-two", pair[0]["run_id"].as_str().expect("it has an id"));
        assert_eq!(yard.record(root)["schedule"]["after"][0]["job_id"], sink.as_str());
    }
    assert_eq!(yard.jobs(&["wait", "-q"]).code, Some(0));
}

#[test]
fn l_134_following_repeated_runs_stops_at_the_first_that_does_not_succeed() {
    let yard = Yard::with_flows(&[("fails.toml", &flow(&[shell("a", "exit 3", "")]))]);
    let ran = yard.run(&["run", "fails.toml", "--repeat", "3", "--follow", "--format", "json"]);
    let told: Value = serde_json::from_str(&ran.out).expect("it is JSON");
    assert_eq!((ran.code, told["runs"].as_array().map(Vec::len)), (Some(1), Some(1)));
    assert_eq!((&told["outcome"], &told["repeat"]), (&json!("workflow_runs_terminal"), &json!(3)));
}

#[test]
fn l_135_a_check_writes_nothing() {
    let yard = crate::home::Home::new();
    yard.file("two.toml", FLOW);
    assert_snapshot!(yard.run(&["run", "two.toml", "--check"]).succeeded(), @"
    Outcome: Workflow validation passed
    Selector: two.toml
    Template: template.two@v1
    Nodes: 2
    ");
    assert_eq!(fs::read_dir(yard.path()).expect("the home is there").count(), 1);
    for flag in
        [&["--follow"][..], &["--repeat", "2"], &["--after", "x"], &["--require-approval"], &["--pin", "x"]]
    {
        assert_eq!(yard.run(&[&["run", "two.toml", "--check"], flag].concat()).code, Some(2), "{flag:?}");
    }
}

#[test]
fn b_23_what_a_run_is_after_is_checked() {
    let yard = Yard::with_flows(&[]);
    yard.job("before", "succeeded", 0, json!({}));
    yard.home.file(".tidewheel/jobs/bad/job.json", "not-json");
    let error = |after: &str| {
        let ran = yard.run(&["run", "two.toml", "--after", after]);
        assert_eq!(ran.code, Some(1), "{ran}");
        ran.err.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(error("ghost"), "error[TW0018]: unknown --after job id: ghost");
    assert_eq!(error(""), "error[TW0018]: unknown --after job id: <empty>");
    assert!(error("bad").starts_with("error[TW0018]: cannot read job record for --after bad: "));
    assert_eq!(yard.json(&["jobs", "list", "--all"])["jobs"].as_array().map(Vec::len), Some(1));
    let told = yard.json(&["run", "two.toml", "--after", "before", "--after", "bef"]);
    let root = told["root_job_ids"][0].as_str().expect("it has a root");
    assert_eq!(yard.record(root)["schedule"]["after"].as_array().map(Vec::len), Some(1));
    yard.jobs(&["wait", "-q"]);
}

#[test]
fn a_flow_is_a_file_an_alias_an_id_or_a_name() {
    let yard = Yard::with_flows(&[
        (".tidewheel/workflows/ship.toml", FLOW),
        (".tidewheel/workflows/broken.toml", "id = 1"),
        (".tidewheel/config.toml", "[commands]\nrelease = \"file:.tidewheel/workflows/ship.toml\"\n"),
        ("sub/deep/x", ""),
    ]);
    for flow in
        ["two.toml", "./two.toml", "file:two.toml", "release", "template.two", "template.two@v1", "ship"]
    {
        let ran = yard.run(&["run", flow, "--check"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{flow}: {ran}");
    }
    let mut below = yard.home.command(&["run", "../../two.toml", "--check"]);
    below.current_dir(yard.home.path().join("sub/deep"));
    assert_eq!(crate::home::Ran::of(below, b"").code, Some(0));
}

#[test]
fn nothing_outside_of_the_repository_is_read() {
    let outside = crate::home::Home::new();
    outside.file("secret.toml", FLOW);
    let yard = Yard::with_flows(&[]);
    let secret = outside.path().join("secret.toml").display().to_string();
    std::os::unix::fs::symlink(&secret, yard.home.path().join("link.toml")).expect("links can be made");
    let import = format!("id = \"t\"\nversion = \"v1\"\n[[imports]]\nname = \"x\"\npath = \"{secret}\"\n");
    yard.home.file("import.toml", import);
    for flow in [secret.as_str(), "link.toml", "import.toml", "../../etc/passwd", "/dev/zero", "."] {
        let ran = yard.run(&["run", flow, "--check"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{flow}: {ran}");
    }
}

#[test]
fn what_a_template_does_not_take_is_refused() {
    let yard = Yard::with_flows(&[]);
    for words in [
        &["a", "b"][..],
        &["--nowhere", "x"],
        &["--where"],
        &["--set", "x=1"],
        &["--set", "word"],
        &["a", "--set", "word=b"],
    ] {
        let ran = yard.run(&[&["run", "two.toml", "--check"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {ran}");
        assert!(ran.err.starts_with("error[TW0027]: "), "{ran}");
    }
}

#[test]
fn every_problem_of_a_template_is_shown_at_its_place() {
    let yard = Yard::with_flows(&[(
        "bad.toml",
        &flow(&[shell("a", "true", "after = [{ node_id = \"zzz\" }]\non.failed = [\"yyy\"]\nspeed = 1")]),
    )]);
    assert_snapshot!(yard.run(&["run", "bad.toml", "--check"]), @r#"
        --- stderr
        error: template t@v1 node `a` references unknown after node `zzz`
         --> bad.toml:8:22
          |
        8 | after = [{ node_id = "zzz" }]
          |                      ^^^^^

        error: template t@v1 node `a` references unknown on.failed target `yyy`
         --> bad.toml:9:14
          |
        9 | on.failed = ["yyy"]
          |              ^^^^^

        error: nodes[a].speed: is not a known field
          --> bad.toml:10:1
           |
        10 | speed = 1
           | ^^^^^

        config error[TW0026]: `bad.toml` has 3 problems.
        --- exit code 1
        "#);
}

#[test]
fn a_newcomers_mistakes_are_all_shown_with_what_to_do() {
    let yard = Yard::with_flows(&[(
        "bad.toml",
        &flow(&[
            shell("a", "echo ${HOME} ${wrod}", "after = [\"b\"]"),
            shell("b", "true", "after = [\"a\"]\ndepends_on = [\"a\"]"),
            shell("c", "true", "").replace("script = \"true\"", "scrpt = \"true\""),
            shell("d", "true", "").replace("\"true\"", "3"),
        ])
        .replace("[[nodes]]\nid = \"a\"", "[params]\nword = \"hi\"\n[[nodes]]\nid = \"a\""),
    )]);
    assert_snapshot!(yard.run(&["run", "bad.toml", "--check"]), @r#"
    --- stderr
    error: template t@v1 has a cycle: a -> b -> a
     --> bad.toml:6:6
      |
    6 | id = "a"
      |      ^^^

    error: unresolved parameter `HOME` in nodes[a].args.script
     --> bad.toml:9:25
      |
    9 | args = { script = "echo ${HOME} ${wrod}" }
      |                         ^^^^^^^
      |
      = help: for a variable of the shell write `$HOME` or `$${HOME}`; a parameter is declared under [params]: HOME = "…"

    error: unresolved parameter `wrod` in nodes[a].args.script
     --> bad.toml:9:33
      |
    9 | args = { script = "echo ${HOME} ${wrod}" }
      |                                 ^^^^^^^
      |
      = help: did you mean `${word}`? for a variable of the shell write `$wrod` or `$${wrod}`

    error: nodes[b].depends_on: is not a known field
      --> bad.toml:17:1
       |
    17 | depends_on = ["a"]
       | ^^^^^^^^^^
       |
       = help: did you mean `after`?

    error: nodes[c].args.scrpt: is not an argument of command.run
      --> bad.toml:22:18
       |
    22 | args = { scrpt = "true" }
       |                  ^^^^^^
       |
       = help: did you mean `script`?

    error: nodes[d].args.script: must be a text, found a number
      --> bad.toml:28:19
       |
    28 | args = { script = 3 }
       |                   ^
       |
       = help: write script = "3"

    config error[TW0026]: `bad.toml` has 6 problems.
    --- exit code 1
    "#);
}

#[test]
fn mistakes_above_the_nodes_hide_none_below() {
    let text = "version = 1\n[[imports]]\nname = \"x\"\npath = \"gone.toml\"\n".to_owned()
        + &shell("a", "true", "after = [\"x__last\"]\ntimeout = \"3m\"");
    let yard = Yard::with_flows(&[("bad.toml", &text)]);
    assert_snapshot!(yard.run(&["run", "bad.toml", "--check"]), @r#"
    --- stderr
    error: id: is missing
     --> bad.toml:1:1
      |
    1 | version = 1
      | ^
      |
      = help: write id = "…" at the top of the file

    error: version: must be a string, found an integer
     --> bad.toml:1:11
      |
    1 | version = 1
      |           ^
      |
      = help: write version = "1"

    error: imports[x].path: cannot read `gone.toml`: No such file or directory
     --> bad.toml:4:8
      |
    4 | path = "gone.toml"
      |        ^^^^^^^^^^^
      |
      = help: the path begins at the directory of the file that it stands in

    error: nodes[a].timeout: is not a known field
      --> bad.toml:11:1
       |
    11 | timeout = "3m"
       | ^^^^^^^
       |
       = help: policies say it: write it below [[policies]] with match = { name = "a" }

    config error[TW0026]: `bad.toml` has 4 problems.
    --- exit code 1
    "#);
}

#[test]
fn lines_that_are_no_toml_are_shown_together() {
    let text = "id: t\nversion = v1\n[[nodes]]\nid = \"a\",\nargs = { script = \"C:\\Users\" }\n";
    let yard = Yard::with_flows(&[("bad.toml", text)]);
    assert_snapshot!(yard.run(&["run", "bad.toml", "--check"]), @r#"
    --- stderr
    error: invalid unquoted key, expected letters, numbers, `-`, `_`
     --> bad.toml:1:3
      |
    1 | id: t
      |   ^
      |
      = help: this looks like YAML, and is read as TOML: write id = …

    error: unexpected key or value, expected newline, `#`
     --> bad.toml:4:9
      |
    4 | id = "a",
      |         ^
      |
      = help: leave the comma out: each field has a line of its own

    config error[TW0026]: `bad.toml` has 2 problems.
    --- exit code 1
    "#);
}

#[test]
fn what_is_no_template_is_told_apart() {
    let yard = Yard::with_flows(&[
        ("empty.toml", ""),
        ("policies.toml", "[[policies]]\nmatch = { default = true }\nmax_retries = 2\n"),
        ("dir/x", ""),
    ]);
    yard.home.file("latin.toml", b"id = 't'\nversion = '\xfc'\n");
    yard.home.file("big.toml", "# \u{fc}\n".repeat(1024 * 1024));
    let flows = ["empty.toml", "policies.toml", "dir", "latin.toml", "big.toml"];
    let told: Vec<String> =
        flows.iter().map(|flow| yard.run(&["run", flow, "--check"]).to_string()).collect();
    assert_snapshot!(told.join("\n"), @"
    --- stderr
    error: the file is empty: a template has an id, a version and nodes
     --> empty.toml:1:1
      |
    1 |
      | ^
      |
      = help: `tidewheel init` makes a first one, `hello`

    config error[TW0026]: `empty.toml` has 1 problem.
    --- exit code 1
    --- stderr
    error: this is a file of policies and no template: it has no id and no nodes
     --> policies.toml:1:1
      |
    1 | [[policies]]
      | ^
      |
      = help: `tidewheel policy check FILE` checks it

    config error[TW0026]: `policies.toml` has 1 problem.
    --- exit code 1
    --- stderr
    error[TW0025]: `dir` is a directory, and no flow.
    hint: Give the name of a file in it.
    --- exit code 1
    --- stderr
    error[TW0025]: The flow `latin.toml` cannot be read: line 2 is not UTF-8; save it as UTF-8.
    --- exit code 1
    --- stderr
    error[TW0025]: The flow `big.toml` cannot be read: it is larger than 1048576 bytes, which no template is.
    --- exit code 1
    ");
}

/// The jobs run whatever becomes of the output, and the caller cannot find them without the id of their run.
#[test]
fn a_run_is_told_of_on_stderr_where_the_output_takes_nothing() {
    for follow in [&[][..], &["--follow"], &["--format", "json"]] {
        for is_full in [true, false] {
            let yard = Yard::with_flows(&[]);
            let mut command = yard.home.command(&[&["run", "two.toml"], follow].concat());
            command.env("PATH", "/usr/bin:/bin");
            if is_full {
                let full = File::options().write(true).open("/dev/full").expect("Linux has such a device");
                command.stdout(full);
            } else {
                let (reader, writer) = std::io::pipe().expect("there are pipes");
                drop(reader);
                command.stdout(writer);
            }
            let ran = Ran::of(command, b"");
            // A reader that has gone is no error, a full disk is.
            assert_eq!(ran.code, Some(i32::from(is_full)), "{follow:?}: {ran}");
            assert_eq!(ran.err.contains("error[TW0003]"), is_full, "{follow:?}: {ran}");
            let told = Yard::plain(&ran.err);
            let line = "Run run_0 is enqueued, and its jobs go on: `tidewheel runs show run_0` shows them.\n";
            assert!(told.contains(line), "{follow:?}: {told}");
            assert_eq!(yard.jobs(&["wait", "-q"]).code, Some(0));
        }
    }
}

#[test]
fn a_gc_and_a_tick_say_that_they_are_done_where_the_output_takes_nothing() {
    let yard = Yard::with_flows(&[]);
    assert_eq!(yard.run(&["run", "two.toml", "--follow"]).code, Some(0));
    for arguments in [&["tick"][..], &["tick", "--format", "json"], &["jobs", "gc", "--days", "0"]] {
        let mut command = yard.home.command(arguments);
        command.stdout(File::options().write(true).open("/dev/full").expect("Linux has such a device"));
        let ran = Ran::of(command, b"");
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(ran.err.contains("hint: What was asked for is done"), "{arguments:?}: {ran}");
    }
    assert_eq!(yard.json(&["runs", "list"])["runs"], json!([]), "and it is");
}

/// `on_failure = "skip"` lets a run succeed in which something failed: every view of it says so.
#[test]
fn a_run_with_failures_that_were_skipped_says_so() {
    let policy = "[[policies]]\nmatch = { name = \"publish\" }\non_failure = \"skip\"\n".to_owned();
    let text = flow(&[shell("build", "true", ""), shell("publish", "exit 3", "after = [\"build\"]"), policy]);
    let yard = Yard::with_flows(&[("skips.toml", &text)]);
    let ran = yard.run(&["run", "skips.toml", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for line in [
        "publish: skipped: it failed (exit 3), and its policy skips that\n",
        "Outcome: Workflow run succeeded, with 1 failure skipped\n",
    ] {
        assert!(ran.out.contains(line), "{ran}");
    }
    let told = yard.json(&["run", "skips.toml", "--follow"]);
    let job = format!("wf-{}-publish", told["run_id"].as_str().expect("it has an id"));
    assert_eq!((&told["terminal_state"], &told["skipped_failures"]), (&json!("succeeded"), &json!([job])));
    let list = yard.run(&["runs", "list"]).succeeded();
    assert!(list.out.contains("succeeded, 1 failure skipped  1 succeeded, 1 failed and skipped"), "{list}");
    assert_eq!(yard.json(&["runs", "list"])["runs"][0]["jobs"]["skipped_failures"], 1);
    let run = told["run_id"].as_str().expect("it has an id");
    let show = yard.run(&["runs", "show", run]).succeeded();
    assert!(show.out.contains("Status: succeeded, 1 failure skipped\n"), "{show}");
    assert!(show.out.contains("it failed (exit 3), and its policy skips that"), "{show}");
    assert_eq!(yard.json(&["runs", "show", run])["jobs"][1]["skipped_failure"], true);
    let explained = yard.run(&["runs", "explain", run]).succeeded();
    let said = explained.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(" with 1 failure skipped: 1 succeeded, 1 failed and skipped."), "{said}");
    assert!(
        said.contains("publish failed with exit code 3, which its policy skips: command.run failed."),
        "{said}"
    );
    let timeline = yard.run(&["runs", "timeline", run]).succeeded();
    assert!(timeline.out.contains("succeeded, 1 failure skipped: "), "{timeline}");
}
