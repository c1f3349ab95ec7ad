//! What the help says, command by command. Whoever changes a word of it sees it here.

use insta::assert_snapshot;

use crate::home::Home;

fn help_of(arguments: &[&str]) -> String {
    let ran = Home::new().run(arguments).succeeded();
    // The help pads some empty lines, which no editor would leave alone.
    ran.lines().iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_whole() {
    assert_snapshot!(help_of(&["--help"]), @"
    A workflow scheduler: retries, policies and decisions that come out the same every time

    New here? Begin with `tidewheel demo`.

    Usage: tidewheel <COMMAND>

    Commands:
      demo    See how policies retry a flaky step, and a workflow that survives kill -9
      decide  Answer questions about retries: a line of JSON in, a line of JSON out
      policy  Look at files of policies
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Exit codes:
      0  the command did what it was asked
      1  what was looked at is not in order, or the command could not do its part
      2  the command line is wrong, or `decide` met lines that are not JSON

    Each error has a code such as TW0001, and a page `docs/errors/TW0001.md` that says what to do.
    ");
    assert_eq!(help_of(&["help"]), help_of(&["--help"]));
}

#[test]
fn the_whole_in_short() {
    assert_snapshot!(help_of(&["-h"]), @"
    A workflow scheduler: retries, policies and decisions that come out the same every time

    Usage: tidewheel <COMMAND>

    Commands:
      demo    See how policies retry a flaky step, and a workflow that survives kill -9
      decide  Answer questions about retries: a line of JSON in, a line of JSON out
      policy  Look at files of policies
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
}

#[test]
fn without_a_command_the_help_is_an_error() {
    let ran = Home::new().run(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert_eq!(ran.err.trim_end(), help_of(&["-h"]));
    for arguments in
        [&["policy"][..], &["decide"], &["decide", "turn", "a", "b"], &["policy", "check"], &["fly"]]
    {
        assert_eq!(Home::new().run(arguments).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn the_version() {
    assert_eq!(help_of(&["--version"]), format!("tidewheel {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn demo() {
    assert_snapshot!(help_of(&["demo", "--help"]), @"
    See how policies retry a flaky step, and a workflow that survives kill -9

    A step takes 400ms, fails three times and then succeeds. The demo draws
    what different policies make of it: the function that decides about real
    retries decides here, and time is only counted. Then an order runs through
    a small workflow, and once more from its events alone. At last a worker, a
    process of its own, runs the order on a database in a temporary directory,
    is killed in the middle and started again. Nothing is left behind, and the
    demo is the same every time.

    Example:

      $ tidewheel demo

    Usage: tidewheel demo [OPTIONS]

    Options:
          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

          --no-crash
              Leave out the worker that is killed: no process is started, and no file is touched

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn decide() {
    let help = help_of(&["decide", "--help"]);
    assert_snapshot!(help, @r#"
    Answer questions about retries: a line of JSON in, a line of JSON out

    Reads one question per line from FILE, or from the standard input without
    one, and prints one answer per line, in the same order and at once.
    A refusal is an answer: it names the field that is wrong. A line that is
    not JSON is answered with an error that names the line, and the exit code
    is 2 at the end. Blank lines are passed over.

    Example:

      $ echo '{"policy": {"backoff": "linear"}, "attempt_index": 2}' |
          tidewheel decide delay
      {"kind":"ok","delay_ms":1500,"hash_hex":"36eaa5e8ca69882a"}

    Usage: tidewheel decide <QUESTION> [FILE]

    Arguments:
      <QUESTION>
              What is asked

              Possible values:
              - evaluate: What does the policy say about this failure?
              - compute:  What is to be done, given the evaluation?
              - turn:     Both in one turn, over one flat object
              - kernel:   What does the bare kernel decide: {"policy": …, "context": …}
              - delay:    How long is the delay: {"policy": …, "seed": …, "attempt_index": …}

      [FILE]
              Where the questions are; `-` is the standard input

    Options:
      -h, --help
              Print help (see a summary with '-h')
    "#);
    let answer = help.lines().find(|line| line.trim_start().starts_with("{\"kind\"")).expect("an example");
    let question = help.split('\'').nth(1).expect("an example");
    assert_eq!(Home::new().feed(&["decide", "delay"], question).succeeded().out.trim(), answer.trim());
}

#[test]
fn policy() {
    assert_snapshot!(help_of(&["policy", "--help"]), @"
    Look at files of policies

    Usage: tidewheel policy <COMMAND>

    Commands:
      check  Check a file of policies, and show which rule wins for a node
      help   Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn policy_check() {
    assert_snapshot!(help_of(&["policy", "check", "--help"]), @r#"
    Check a file of policies, and show which rule wins for a node

    Every problem is shown at once, each with its place in the file. If there
    is none, each --name is a node, of the given kind and with the given tags:
    the rule that wins for it is named, and its whole policy is listed, with
    the delays before its retries. Without a node the rules are listed.

    Example:

      $ cat policies.toml
      [[policies]]
      match = { pattern = "^fetch_" }
      max_retries = 3
      backoff = "exponential"
      $ tidewheel policy check policies.toml --name fetch_user

    Usage: tidewheel policy check [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file: JSON if its name ends in .json, TOML otherwise; `-` is TOML from the standard
              input

    Options:
          --name <NAME>
              A node to look up; may be given several times

          --kind <KIND>
              The kind of the nodes; a step if not given

              [possible values: step, condition, rule, join, map, reduce, accumulator, state_machine,
              fsm, aggregate, saga, process_manager, sub_workflow, builtin, shell, agent, gate]

          --tag <TAG>
              A tag of the nodes; may be given several times

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    "#);
}
