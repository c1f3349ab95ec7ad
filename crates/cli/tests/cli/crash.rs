//! `tidewheel decide` killed at any moment: what it printed is right, and another one goes on where it ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::decide::turn;
use crate::home::Home;

/// Enough that pipes hold a small part of the answers: whoever is killed is in the middle of its work.
const LINES: usize = 2_000;

/// Returns how often to kill; few by default, so that the tests stay quick.
fn kills() -> usize {
    let given = std::env::var("TIDEWHEEL_CRASH_KILLS").ok();
    given.map_or(20, |count| count.parse().expect("TIDEWHEEL_CRASH_KILLS is a number"))
}

/// Turns and refusals of all lengths. There is no line that is no JSON, since its answer counts the lines.
fn questions() -> Vec<String> {
    let question = |id: usize| match id % 7 {
        0 => "{}".to_owned(),
        1 => format!(r#"{{"wiring_config":{{"sched_enabled":false}},"request":{}}}"#, turn(id)),
        2 => turn(id).replace("wo_123", &"wö".repeat(id % 60)),
        _ => turn(id),
    };
    (0..LINES).map(question).collect()
}

#[test]
fn a_crash_leaves_right_answers_and_the_rest_can_be_asked_again() {
    let home = Home::new();
    let questions = questions();
    let input = questions.join("\n");
    home.file("questions.jsonl", &input);
    let whole = home.run(&["decide", "turn", "questions.jsonl"]).succeeded().out;
    assert_eq!(whole.lines().count(), LINES);

    for kill in 0..kills() {
        // Spread over the run, with small and large steps, and the same in every run of this test.
        let after = kill * 7_919 % (LINES * 8 / 10);
        let by_file = kill % 2 == 0;
        let printed = printed_before_kill(&home, &input, after, by_file);
        let context = format!("kill {kill} after {after} answers, file {by_file}");
        assert!(whole.as_bytes().starts_with(&printed), "{context}");
        assert!(printed.len() < whole.len(), "{context}: it was done before");

        // A torn line at the end is thrown away; its question was not answered.
        let complete = printed.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let answered = printed[..complete].iter().filter(|byte| **byte == b'\n').count();
        assert!(answered >= after, "{context}");
        let rest = home.feed(&["decide", "turn"], questions[answered..].join("\n")).succeeded().out;
        assert_eq!(rest.as_bytes(), &whole.as_bytes()[complete..], "{context}");
    }
    tidewheel_testkit::figure::counted("kills of `decide`", kills());
}

/// Kills a run after it has printed some answers, and returns everything that it printed.
fn printed_before_kill(home: &Home, input: &str, after: usize, by_file: bool) -> Vec<u8> {
    let arguments = if by_file { &["decide", "turn", "questions.jsonl"][..] } else { &["decide", "turn"] };
    let mut child = home.command(arguments).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut to = child.stdin.take().expect("stdin is a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    std::thread::scope(|scope| {
        scope.spawn(move || to.write_all(input.as_bytes()).ok());
        let mut printed = Vec::new();
        for _ in 0..after {
            from.read_until(b'\n', &mut printed).expect("the output can be read");
        }
        child.kill().expect("it can be killed");
        from.read_to_end(&mut printed).expect("the output can be read");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "it was killed, and did not end by itself");
        printed
    })
}
