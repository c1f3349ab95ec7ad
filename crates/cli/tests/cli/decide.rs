//! `tidewheel decide`: answers in order, whatever the lines are, in constant memory and without delay.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use insta::assert_snapshot;
use tidewheel_core::decide::Engine;

use crate::home::Home;

/// A turn that is retried.
pub(crate) fn turn(turn_id: usize) -> String {
    format!(
        r#"{{"correlation_id":6601,"turn_id":{turn_id},"tenant_id":"tenant_demo","work_order_id":"wo_123","step_id":"step_1","now_ns":2000000000,"step_started_at_ns":1000000000,"timeout_ms":30000,"max_retries":3,"retry_backoff_ms":1000,"attempt_index":{},"last_failure_reason_code":7,"retryable_reason_codes":[7,9],"wait_is_pause_only":true}}"#,
        turn_id % 5
    )
}

const EVALUATE: &str = r#"{"envelope":{"correlation_id":1,"turn_id":2,"max_retryable_reason_codes":8,"max_diagnostics":8,"max_backoff_ms":30000},"tenant_id":"t","work_order_id":"w","step_id":"s","now_ns":2000000000,"step_started_at_ns":1000000000,"timeout_ms":30000,"max_retries":3,"retry_backoff_ms":1000,"attempt_index":0,"last_failure_reason_code":7,"retryable_reason_codes":[7],"wait_is_pause_only":true}"#;

const COMPUTE: &str = r#"{"envelope":{"correlation_id":1,"turn_id":2,"max_retryable_reason_codes":8,"max_diagnostics":8,"max_backoff_ms":30000},"tenant_id":"t","work_order_id":"w","step_id":"s","now_ns":2000000000,"attempt_index":0,"next_attempt_index":1,"retry_backoff_ms":1000,"timeout_exceeded":false,"max_retries_reached":false,"retry_allowed":true,"wait_is_pause_only":true}"#;

const KERNEL: &str = r#"{"policy":{"max_retries":3,"backoff":"exponential"},"context":{"now_ns":2000000000,"step_started_at_ns":1000000000,"attempt_index":1,"outcome":{"failed":{}}}}"#;

const DELAY: &str = r#"{"policy":{"backoff":"exponential","jitter":"full"},"seed":{"run_id":"run-1","node":"fetch"},"attempt_index":1}"#;

#[test]
fn each_question_has_its_answer() {
    let home = Home::new();
    let mut answers = String::new();
    let disabled = format!(r#"{{"wiring_config":{{"sched_enabled":false}},"request":{}}}"#, turn(1));
    let no_engine = format!(r#"{{"engine_config":{{"max_backoff_ms":0}},"request":{}}}"#, turn(1));
    for (question, line) in [
        ("evaluate", EVALUATE),
        ("compute", COMPUTE),
        ("turn", &turn(1)),
        ("kernel", KERNEL),
        ("delay", DELAY),
        ("turn", &disabled),
        ("turn", &no_engine),
        ("turn", "{}"),
        ("kernel", r#"{"policy":{},"context":7,"more":null}"#),
    ] {
        let ran = home.feed(&["decide", question], line).succeeded();
        let _ = writeln!(answers, "{question}: {}", ran.out.trim_end());
    }
    assert_snapshot!(answers, @r#"
    evaluate: {"kind":"ok","response":{"capability_id":"SCHED_POLICY_EVALUATE","reason_code":"PH1_SCHED_OK_POLICY_EVALUATE","correlation_id":1,"turn_id":2,"tenant_id":"t","work_order_id":"w","step_id":"s","attempt_index":0,"next_attempt_index":1,"timeout_exceeded":false,"max_retries_reached":false,"retry_allowed":true,"retry_backoff_ms":1000,"wait_is_pause_only":true,"deterministic":true}}
    compute: {"kind":"ok","response":{"capability_id":"SCHED_DECISION_COMPUTE","reason_code":"SCHED_RETRY_SCHEDULED","correlation_id":1,"turn_id":2,"tenant_id":"t","work_order_id":"w","step_id":"s","action":"RETRY_AT","attempt_index":0,"attempt_next_index":1,"next_due_at_ns":3000000000,"wait_is_pause_only":true,"deterministic":true}}
    turn: {"kind":"forwarded","policy_evaluate":{"capability_id":"SCHED_POLICY_EVALUATE","reason_code":"PH1_SCHED_OK_POLICY_EVALUATE","correlation_id":6601,"turn_id":1,"tenant_id":"tenant_demo","work_order_id":"wo_123","step_id":"step_1","attempt_index":1,"next_attempt_index":2,"timeout_exceeded":false,"max_retries_reached":false,"retry_allowed":true,"retry_backoff_ms":1000,"wait_is_pause_only":true,"deterministic":true},"decision_compute":{"capability_id":"SCHED_DECISION_COMPUTE","reason_code":"SCHED_RETRY_SCHEDULED","correlation_id":6601,"turn_id":1,"tenant_id":"tenant_demo","work_order_id":"wo_123","step_id":"step_1","action":"RETRY_AT","attempt_index":1,"attempt_next_index":2,"next_due_at_ns":3000000000,"wait_is_pause_only":true,"deterministic":true}}
    kernel: {"kind":"ok","action":"RETRY_AT","reason_code":"SCHED_RETRY_SCHEDULED","attempt_next_index":2,"next_due_at_ns":3000000000,"wake_at_ns":null}
    delay: {"kind":"ok","delay_ms":871,"hash_hex":"deeae9a163f391db"}
    turn: {"kind":"not_invoked_disabled"}
    turn: {"kind":"config_error","message":"max_backoff_ms must be within 1..=86400000, got 0","detail":{"field":"max_backoff_ms","reason":"must be within 1..=86400000, got 0"}}
    turn: {"kind":"refuse","capability_id":"SCHED_POLICY_EVALUATE","reason_code":"PH1_SCHED_UPSTREAM_INPUT_MISSING","message":"correlation_id is missing","detail":{"field":"correlation_id","reason":"is missing"},"diagnostics":[{"field":"turn_id","reason":"is missing"},{"field":"tenant_id","reason":"is missing"},{"field":"work_order_id","reason":"is missing"},{"field":"step_id","reason":"is missing"},{"field":"now_ns","reason":"is missing"},{"field":"step_started_at_ns","reason":"is missing"},{"field":"timeout_ms","reason":"is missing"},{"field":"max_retries","reason":"is missing"}]}
    kernel: {"kind":"refuse","capability_id":"SCHED_KERNEL","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVALID","message":"max_retries is missing","detail":{"field":"max_retries","reason":"is missing"},"diagnostics":[{"field":"backoff","reason":"is missing"},{"field":"context","reason":"must be an object, found an integer"},{"field":"more","reason":"is not a known field"}]}
    "#);
}

#[test]
fn what_is_no_question_is_answered_in_its_place() {
    let mut input = b"\xef\xbb\xbf\r\n".to_vec();
    input.extend_from_slice(KERNEL.as_bytes());
    input.extend_from_slice(b"\r\n\n \t \n{\"policy\": oh}\n");
    input.extend_from_slice(
        b"[]\n7\nnull\n\"text\"\n{\"a\": \"\xff\"}\n{\"ab\xc3\xa9\" 1}\n{} {}\n\xc2\xa0\n{",
    );
    let ran = Home::new().feed(&["decide", "kernel"], &input);
    assert_snapshot!(ran, @r#"
    {"kind":"ok","action":"RETRY_AT","reason_code":"SCHED_RETRY_SCHEDULED","attempt_next_index":2,"next_due_at_ns":3000000000,"wake_at_ns":null}
    {"kind":"error","line":5,"message":"is not JSON: expected value at column 12"}
    {"kind":"refuse","capability_id":"SCHED_KERNEL","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVALID","message":"request must be an object, found a list","detail":{"field":"request","reason":"must be an object, found a list"}}
    {"kind":"refuse","capability_id":"SCHED_KERNEL","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVALID","message":"request must be an object, found an integer","detail":{"field":"request","reason":"must be an object, found an integer"}}
    {"kind":"refuse","capability_id":"SCHED_KERNEL","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVALID","message":"request must be an object, found null","detail":{"field":"request","reason":"must be an object, found null"}}
    {"kind":"refuse","capability_id":"SCHED_KERNEL","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVALID","message":"request must be an object, found a string","detail":{"field":"request","reason":"must be an object, found a string"}}
    {"kind":"error","line":10,"message":"is not UTF-8 at column 8"}
    {"kind":"error","line":11,"message":"is not JSON: expected `:` at column 8"}
    {"kind":"error","line":12,"message":"is not JSON: trailing characters at column 4"}
    {"kind":"error","line":14,"message":"is not JSON: EOF while parsing an object at column 2"}
    --- stderr
    error[TW0004]: 5 of 10 lines could not be read as JSON; the answers of kind `error` say which.
    --- exit code 2
    "#);
}

#[test]
fn a_mark_of_byte_order_is_passed_over_at_the_start_only() {
    let home = Home::new();
    let marked = home.feed(&["decide", "delay"], format!("\u{feff}{DELAY}\n")).succeeded();
    assert_eq!(marked.out, home.feed(&["decide", "delay"], DELAY).succeeded().out);
    let later = home.feed(&["decide", "delay"], format!("{DELAY}\n\u{feff}{DELAY}\n"));
    assert_eq!(later.code, Some(2));
    assert!(later.lines()[1].starts_with(r#"{"kind":"error","line":2,"#), "{later}");
}

#[test]
fn a_file_the_standard_input_and_a_dash_are_the_same() {
    let home = Home::new();
    let input = format!("{}\n{}", turn(1), turn(2));
    home.file("turns.jsonl", &input);
    let from_file = home.run(&["decide", "turn", "turns.jsonl"]).succeeded().out;
    assert_eq!(from_file.lines().count(), 2);
    assert_eq!(from_file, home.feed(&["decide", "turn"], &input).succeeded().out);
    assert_eq!(from_file, home.feed(&["decide", "turn", "-"], &input).succeeded().out);
}

#[test]
fn no_input_has_no_answer() {
    for input in ["", "\n", "\u{feff}", " \r\n\r\n"] {
        assert_eq!(Home::new().feed(&["decide", "turn"], input).succeeded().out, "", "{input:?}");
    }
}

#[test]
fn answers_are_those_of_the_library_byte_for_byte() {
    let lines: Vec<String> = (0..500).map(turn).collect();
    let ran = Home::new().feed(&["decide", "turn"], lines.join("\n")).succeeded();
    let engine = Engine::default();
    let expected: Vec<String> = lines.iter().map(|line| engine.turn_json(line).to_json()).collect();
    assert_eq!(ran.lines(), expected);
}

#[test]
fn a_monstrous_line_is_passed_over() {
    let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024 - 8));
    assert_eq!(fits.len(), 1024 * 1024);
    let input =
        format!("{fits}\n{fits} \n{}\n{}\n{DELAY}\n", "[".repeat(5_000_000), "{\"a\":".repeat(200_000));
    let ran = Home::new().feed(&["decide", "delay"], input);
    let starts: Vec<String> = ran.lines().iter().map(|line| line.chars().take(90).collect()).collect();
    assert_snapshot!(starts.join("\n"), @r#"
    {"kind":"refuse","capability_id":"SCHED_DELAY","reason_code":"PH1_SCHED_INPUT_SCHEMA_INVAL
    {"kind":"error","line":2,"message":"is longer than 1048576 bytes"}
    {"kind":"error","line":3,"message":"is longer than 1048576 bytes"}
    {"kind":"error","line":4,"message":"is not JSON: EOF while parsing a value at column 10000
    {"kind":"ok","delay_ms":871,"hash_hex":"deeae9a163f391db"}
    "#);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn controls_of_a_terminal_do_not_come_through() {
    let line = turn(1).replace("wo_123", "a\u{9b}31m\u{7f}é\\u001b[2J");
    let ran = Home::new().feed(&["decide", "turn"], &line).succeeded();
    assert!(ran.out.contains(r#""work_order_id":"a\u009b31m\u007fé\u001b[2J""#), "{ran}");
    assert!(!ran.out.contains(|c: char| c.is_control() && c != '\n'), "{ran}");
}

/// A run that is talked to while it lasts.
struct Talk {
    child: Child,
    to: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Talk {
    fn with(arguments: &[&str], home: &Home) -> Self {
        let mut child = home.command(arguments).stdin(Stdio::piped()).spawn().expect("the binary starts");
        let to = child.stdin.take().expect("stdin is a pipe");
        let from = child.stdout.take().expect("stdout is a pipe");
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, to, answers }
    }

    fn say(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).expect("the binary listens");
        self.to.flush().expect("the binary listens");
    }

    /// Waits for an answer. The time only bounds a test that has failed.
    fn hear(&self) -> String {
        self.answers.recv_timeout(Duration::from_secs(60)).expect("there is an answer")
    }
}

#[test]
fn whoever_waits_for_an_answer_gets_it_at_once() {
    let home = Home::new();
    let mut talk = Talk::with(&["decide", "delay"], &home);
    for _ in 0..3 {
        talk.say(&format!("{DELAY}\n"));
        assert!(talk.hear().starts_with(r#"{"kind":"ok","#));
    }
    // Two questions and a half: the two are answered while the half is on its way.
    let (head, tail) = DELAY.split_at(40);
    talk.say(&format!("{DELAY}\noh\n{head}"));
    assert!(talk.hear().starts_with(r#"{"kind":"ok","#));
    assert!(talk.hear().starts_with(r#"{"kind":"error","line":5,"#));
    talk.say(tail);
    drop(talk.to);
    assert!(talk.answers.recv().expect("an answer to the last line").starts_with(r#"{"kind":"ok","#));
    assert_eq!(talk.child.wait().expect("it ends").code(), Some(2));
}

/// Writes lines until the other side has gone, for ever if it never goes.
fn talk_for_ever(mut to: ChildStdin) {
    let lines = format!("{}\n", turn(1)).repeat(100);
    while to.write_all(lines.as_bytes()).is_ok() {}
}

#[test]
fn a_reader_that_has_enough_ends_it_silently() {
    let mut child =
        Home::new().command(&["decide", "turn"]).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let to = child.stdin.take().expect("stdin is a pipe");
    let writer = std::thread::spawn(move || talk_for_ever(to));
    let mut from = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut first = String::new();
    from.read_line(&mut first).expect("there is an answer");
    assert!(first.starts_with(r#"{"kind":"forwarded""#));
    drop(from);
    // The input never ends, so this returns only because the output has.
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_input() {
    const LINES: usize = 200_000;
    const MOST_KILOBYTES: u64 = 32 * 1024;
    let home = Home::new();
    let mut child = home.command(&["decide", "turn"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut to = child.stdin.take().expect("stdin is a pipe");
    let from = child.stdout.take().expect("stdout is a pipe");
    let writer = std::thread::spawn(move || {
        let lines: String = (0..1_000).map(|id| turn(id + 1) + "\n").collect();
        for _ in 0..LINES / 1_000 {
            to.write_all(lines.as_bytes()).expect("the binary reads");
        }
        to
    });
    assert_eq!(count_lines(from, LINES), LINES);
    // All is answered, and the input is still open: the process is there to be looked at.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it is alive");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel counts it");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < MOST_KILOBYTES, "{peak} kB");
    drop(writer.join().expect("the writer ends"));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Counts lines until there are as many as wanted, or no more come.
fn count_lines(mut from: ChildStdout, wanted: usize) -> usize {
    let mut buffer = vec![0; 64 * 1024];
    let mut lines = 0;
    while lines < wanted {
        match from.read(&mut buffer).expect("the output can be read") {
            0 => break,
            read => lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    lines
}

#[test]
fn the_header_of_the_engine_is_data_that_is_printed() {
    let home = Home::new();
    let header: serde_json::Value = serde_json::from_str(&home.run(&["decide", "engine"]).out).unwrap();
    assert_eq!(header["engine_id"], "PH1.SCHED");
    assert_eq!(header["placement"], "ENTERPRISE_SUPPORT");
    assert_eq!(
        header["role"],
        "deterministic scheduler decision engine for WorkOrder retry/wait/fail control"
    );
    for (index, capability) in ["SCHED_POLICY_EVALUATE", "SCHED_DECISION_COMPUTE"].into_iter().enumerate() {
        assert_eq!(header["capabilities"][index]["capability_id"], capability);
        assert_eq!(header["capabilities"][index]["allowed_callers"], "SELENE_OS_ONLY");
    }
    assert_eq!(home.run(&["decide", "engine", "questions.jsonl"]).code, Some(2), "it reads nothing");
}
