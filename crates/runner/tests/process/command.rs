//! A step that runs a program: what goes in, what comes out, and what it fails of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidewheel_core::policy::{Backoff, ErrorMatcher, Failure, Policy};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Options, command, react_until_satisfied};

use crate::world::{outcome, sh, workflow};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    items: Vec<String>,
}

async fn failure_of(argv: &[String]) -> Failure {
    outcome(command("it", argv), 1).await.unwrap_err()
}

#[tokio::test]
async fn a_value_of_any_type_goes_in_as_a_line_of_json_and_json_comes_out() {
    let order = Order { items: vec!["tea".to_owned(), "ä\n".to_owned()] };
    assert_eq!(outcome(command("it", ["cat"]), order).await.unwrap(), json!({"items": ["tea", "ä\n"]}));
    assert_eq!(outcome(command("it", ["wc", "-l"]), "one\nline".to_owned()).await.unwrap(), 1);
    assert_eq!(outcome(command("it", sh("read -r line && echo \"$line\"")), 7).await.unwrap(), 7);
}

#[tokio::test]
async fn several_parents_come_as_a_list_and_the_result_goes_on_as_any_type() {
    let workflow = Workflow::new("w")
        .add(step("a", |x: i64| x + 1))
        .add(step("b", |x: i64| x.to_string()))
        .add(command("it", ["cat"]).after(["a", "b"]))
        .add(step("sum", |(a, b): (i64, String)| format!("{a}{b}")).after("it"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    react_until_satisfied(&mut run, 1_i64, Options::new()).await.unwrap();
    assert_eq!(run.result::<String>("sum").unwrap().as_deref(), Some("21"));
}

#[tokio::test]
async fn output_is_json_or_else_text_and_none_is_null() {
    for (script, result) in [
        ("true", json!(null)),
        ("echo", json!("")),
        ("echo hello; echo world", json!("hello\nworld")),
        ("printf 'dos\\r\\n'", json!("dos")),
        ("printf ' {\"a\": [1, 2]}\\n\\n'", json!({"a": [1, 2]})),
        ("echo '{\"a\": 1} and more'", json!("{\"a\": 1} and more")),
        ("echo 1e10", json!(1e10)),
    ] {
        assert_eq!(outcome(command("it", sh(script)), 1).await.unwrap(), result, "{script}");
    }
    for (script, result) in [("true", ""), ("echo 1e10", "1e10"), ("echo '\"x\"'", "\"x\"")] {
        assert_eq!(outcome(command("it", sh(script)).text(), 1).await.unwrap(), result, "{script}");
    }
}

#[tokio::test]
async fn the_program_knows_for_whom_it_works() {
    let it = command("it", sh("env | grep ^TIDEWHEEL_ | sort")).env("TIDEWHEEL_RUN", "is ours");
    let shown = outcome(it, 1).await.unwrap();
    let vars: BTreeMap<&str, &str> =
        shown.as_str().unwrap().lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!((vars["TIDEWHEEL_RUN"], vars["TIDEWHEEL_NODE"], vars["TIDEWHEEL_ATTEMPT"]), ("r", "it", "0"));
    let work = {
        let mut run = workflow(command("it", ["true"]), Policy::new()).run("r");
        run.plan(1);
        run.prepare().remove(0).id().to_string()
    };
    assert_eq!(vars["TIDEWHEEL_IDEMPOTENCY_KEY"], work);
}

#[tokio::test]
async fn its_surroundings_are_as_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(
        outcome(command("it", ["pwd"]).current_dir(&place), 1).await.unwrap(),
        place.to_str().unwrap()
    );

    let it = || command("it", sh("exec env")).env("COLOUR", "blue");
    let names = |shown: serde_json::Value| -> Vec<String> {
        let names =
            shown.as_str().unwrap().lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
        names.filter(|name| !name.starts_with("TIDEWHEEL_") && name != "PWD").collect()
    };
    let inherited = names(outcome(it(), 1).await.unwrap());
    assert!(["COLOUR", "PATH"].iter().all(|name| inherited.iter().any(|one| one == name)), "{inherited:?}");
    assert_eq!(names(outcome(it().env_clear(), 1).await.unwrap()), ["COLOUR"]);
}

#[tokio::test]
async fn arguments_are_not_read_by_a_shell() {
    let it = command("it", ["printf", "%s|", "$HOME", "a b", "*", "`id`"]);
    assert_eq!(outcome(it, 1).await.unwrap(), "$HOME|a b|*|`id`|");
}

#[tokio::test]
async fn an_exit_code_is_the_code_of_the_failure_and_stderr_its_message() {
    let failure = failure_of(&sh("echo no such order >&2; echo result; exit 75")).await;
    assert_eq!(failure.to_string(), "[75] no such order");
    assert!(!failure.non_retryable);
    let failure = failure_of(&["false".to_owned()]).await;
    assert_eq!(failure.to_string(), "[1] false exited with code 1 and wrote nothing to stderr");
    let failure = failure_of(&sh("printf '\\033[31mred\\007' >&2; exit 2")).await;
    assert_eq!(failure.message, "\\u{1b}[31mred\\u{7}");
    let failure = failure_of(&sh("seq 100000 >&2; exit 2")).await;
    assert!(failure.message.starts_with("… 99991\n") && failure.message.ends_with("\n100000"), "{failure}");
}

#[tokio::test]
async fn policies_match_exit_codes() {
    let script = "[ $TIDEWHEEL_ATTEMPT = 2 ] && echo $TIDEWHEEL_ATTEMPT || exit ";
    let policy = || {
        let policy = Policy::new().max_retries(5).backoff(Backoff::None);
        policy.retryable_errors([ErrorMatcher::Code(75), ErrorMatcher::Name("signal:9".to_owned())])
    };
    for (end, attempts) in [("75", Some(2_u8)), ("74", None), ("$(kill -9 $$)", Some(2))] {
        let mut run = workflow(command("it", sh(&format!("{script}{end}"))), policy()).run("r");
        react_until_satisfied(&mut run, 1, Options::new()).await.unwrap();
        assert_eq!(run.result::<u8>("it").unwrap(), attempts, "{end}: {:?}", run.failures());
    }
}

#[tokio::test]
async fn a_signal_is_named_in_the_code() {
    let failure = failure_of(&sh("kill -9 $$")).await;
    assert_eq!(failure.to_string(), "[signal:9] sh was killed by signal 9 and wrote nothing to stderr");
    let failure = failure_of(&sh("echo out of luck >&2; kill -15 $$")).await;
    assert_eq!(failure.to_string(), "[signal:15] out of luck");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap().to_owned();
    let gone = folder.path().join("gone").to_str().unwrap().to_owned();
    let owned = str::to_owned;
    for (argv, expected) in [
        (
            vec![owned("tidewheel-no-such\u{1b}")],
            owned(
                "[not_found] cannot find the program tidewheel-no-such\\u{1b} in any directory of PATH: install \
                 it, or give its whole path",
            ),
        ),
        (
            vec![gone.clone()],
            format!(
                "[not_found] cannot find the program {gone}: there is no such file, or the interpreter that its \
                 first line names is missing; a path without a slash in front counts from the directory of the \
                 command"
            ),
        ),
        (
            vec![plain.clone()],
            format!(
                "[not_executable] may not run the program {plain}: make it executable with chmod +x, and its \
                 directory accessible"
            ),
        ),
        (vec![], owned("[not_found] there is no program to run: the first item of a command is its program")),
        (
            vec![owned("echo"), owned("nul\0")],
            owned("[spawn] cannot start the program echo: nul byte found in provided data"),
        ),
    ] {
        let failure = failure_of(&argv).await;
        assert_eq!(failure.to_string(), expected);
        assert!(failure.non_retryable, "{failure}");
    }
    let failure = outcome(command("it", ["true"]).current_dir(&gone), 1).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        format!(
            "[not_found] cannot run true in {gone}: there is no such directory; create it, or give another one with \
             current_dir"
        )
    );
}

#[tokio::test]
async fn a_part_of_a_result_is_none() {
    for program in ["yes", "seq 1000", "seq 1000; sleep 1000"] {
        let failure = outcome(command("it", sh(program)).output_limit(100), 1).await.unwrap_err();
        assert_eq!(
            failure.to_string(),
            "[output_limit] sh wrote more than 100 bytes to stdout: let it write less, or give it more room with \
             output_limit"
        );
        assert!(failure.non_retryable);
    }
    assert_eq!(outcome(command("it", ["echo", "12345"]).output_limit(6), 1).await.unwrap(), 12_345);
}

#[tokio::test]
async fn output_that_is_no_text_is_a_failure() {
    let failure = failure_of(&sh("printf '\\377'")).await;
    assert_eq!(
        failure.to_string(),
        "[output_encoding] the output of sh is no text in UTF-8: let it write JSON, or base64"
    );
    assert!(failure.non_retryable);
}

#[tokio::test]
async fn input_need_not_be_read() {
    assert_eq!(outcome(command("it", ["echo", "1"]), "x".repeat(1_000_000)).await.unwrap(), 1);
    let much = "x".repeat(1_000_000);
    assert_eq!(outcome(command("it", ["cat"]), much.clone()).await.unwrap(), much);
}

#[test]
fn without_a_runtime_it_says_so() {
    let mut run = workflow(command("it", ["true"]), Policy::new()).run("r");
    run.react_until_satisfied(1).unwrap();
    assert_eq!(
        run.failures()[0].failure.to_string(),
        "[no_runtime] a command needs a tokio runtime: run the workflow inside one"
    );
}

#[test]
fn values_of_the_environment_are_not_shown() {
    let shown = format!("{:?}", command("it", ["true"]).env("TOKEN", "hunter2"));
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}
