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
      demo         See policies at work, a workflow that survives kill -9, and a release as jobs
      init         Make the files that a repository begins with
      run          Run a flow: make jobs of a template, and let them run
      graph        Draw what comes after what: of a flow, or of a run
      jobs         Look at jobs, and ask things of them
      tick         Look at all jobs once, and start what may start
      daemon       Look at the jobs whenever a time has come
      doctor       Look whether all is in order, and say what to do where it is not
      decide       Answer questions about retries: a line of JSON in, a line of JSON out
      policy       Look at files of policies
      runs         Look at durable runs, and ask things of them
      schema       Print the JSON schema of a kind of file, for editors
      completions  Print a script that completes command lines in a shell
      man          Print the manual page, or write the pages of all commands
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Exit codes:
      0  the command did what it was asked
      1  what was looked at is not in order, or the command could not do its part
      2  the command line is wrong, or `decide` met lines that are not JSON
      10 nothing failed, but a job can never run: what it needs will not come, or it was rejected

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
      demo         See policies at work, a workflow that survives kill -9, and a release as jobs
      init         Make the files that a repository begins with
      run          Run a flow: make jobs of a template, and let them run
      graph        Draw what comes after what: of a flow, or of a run
      jobs         Look at jobs, and ask things of them
      tick         Look at all jobs once, and start what may start
      daemon       Look at the jobs whenever a time has come
      doctor       Look whether all is in order, and say what to do where it is not
      decide       Answer questions about retries: a line of JSON in, a line of JSON out
      policy       Look at files of policies
      runs         Look at durable runs, and ask things of them
      schema       Print the JSON schema of a kind of file, for editors
      completions  Print a script that completes command lines in a shell
      man          Print the manual page, or write the pages of all commands
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
}

#[test]
fn without_a_command_the_help_is_an_error() {
    for arguments in
        [&["policy"][..], &["decide"], &["decide", "turn", "a", "b"], &["policy", "check"], &["fly"], &[]]
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
    See policies at work, a workflow that survives kill -9, and a release as jobs

    First the demo draws what different policies make of a step that fails: the
    function that decides about real retries decides here, and time is only
    counted. Then a worker, a process of its own, runs an order with retries, a
    rate limit and a circuit breaker, is killed in the middle and started again.
    At last a small release runs as jobs, as `tidewheel run --follow` runs it,
    and waits for your approval. It takes a few seconds and needs no git, no
    server and no network; everything that it makes is in one directory, and
    it ends with commands to look at that.

    Example:

      $ tidewheel demo
      $ tidewheel demo --yes --keep /tmp/demo

    Usage: tidewheel demo [OPTIONS]

    Options:
          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -y, --yes
              Approve the release without asking

          --no-crash
              Draw the policies only: no process is started, and no file is touched

          --keep <DIR>
              Keep everything in this directory, which is made; by default `tidewheel-demo` here

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
              - engine:   Nothing: print what the engine is, its id, role, placement and allowed callers

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
              compensation, builtin, shell, agent, gate]

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

#[test]
fn runs() {
    assert_snapshot!(help_of(&["runs", "--help"]), @"
    Look at durable runs, and ask things of them

    The runs of a repository are made of jobs, and live in `.tidewheel/`; list,
    show, explain, timeline, cancel, retry and gc work on them. With --store,
    all commands work on the file that a program keeps its runs in, without that
    program. Looking changes nothing. What is asked of a run is written to the file; the
    process that drives the run notices it at once, and the next one that takes
    it up does otherwise.

    Wherever a command takes the id of a RUN, the beginning of the id is enough
    if only one run begins so.

    Example:

      $ tidewheel runs list
      $ tidewheel runs list --store orders.db --status failed,waiting
      $ tidewheel runs explain order-7 --store orders.db

    Usage: tidewheel runs <COMMAND>

    Commands:
      list          List the runs, newest first
      show          Show one run: its inputs, its work, and where its time went
      timeline      Show where the time of a run went
      events        List the events of a run: everything that happened, in order
      results       Show what the components of a run gave
      explain       Explain in sentences why a run waits, was retried or failed, and what is next
      cancel        Cancel a run: end all of its work that is not over
      pause         Pause a run: what is under way comes to its end, nothing new starts
      resume        Let a run go on that was paused, stopped or put aside
      stop          Stop a run: the process that drives it lets go of it
      retry         Try failed work of a run again
      signal        Give one component of a run a value, and the others nothing
      complete      Give the result of work that is done elsewhere
      fail          Say that work failed that is done elsewhere
      dead-letters  List work that was put aside after it failed, and try it again
      gc            Delete runs that are over, with all that is stored of them
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn what_looks_at_runs() {
    assert_snapshot!(help_of(&["runs", "list", "--help"]), @"
    List the runs, newest first

    Each run has its workflow, how it is and why, and when it was created; of a
    run in a store, also when it was written last and how many events its log
    has.

    Example:

      $ tidewheel runs list --status failed,blocked
      $ tidewheel runs list --store orders.db --status failed --prefix order-

    Usage: tidewheel runs list [OPTIONS]

    Options:
          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --status <STATUS>
              Only runs that are so; several with commas between

              [possible values: running, waiting, completed, failed, paused, stopped, parked, cancelled,
              succeeded, blocked, incomplete]

          --workflow <NAME>
              Only runs of this workflow

          --prefix <ID>
              Only runs whose id begins so

          --limit <N>
              At most so many

              [default: 50]

          --all
              All of them

          --ids <HOW>
              How ids are written; without it short on a terminal, full everywhere else and always in
              JSON

              Possible values:
              - short: As much as tells them apart, which every command takes for the whole
              - full:  As they are

          --times <HOW>
              How instants are written; without it relative on a terminal, absolute everywhere else and
              always in JSON

              Possible values:
              - relative: How long ago they were
              - absolute: In UTC

          --utc
              The same as --times absolute

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "show", "--help"]), @"
    Show one run: its inputs, its work, and where its time went

    The timeline has one bar for each piece of work. Inputs, items and attempts
    are counted from zero, as in the log and in what the work is told.

    Example:

      $ tidewheel runs show run_5c
      $ tidewheel runs show order-7 --store orders.db

    Usage: tidewheel runs show [OPTIONS] <RUN>

    Arguments:
      <RUN>
              The run, or the beginning of its id

    Options:
          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --all
              Show all pieces of work, however many they are

          --ids <HOW>
              How the ids of jobs are written; without it short in tables on a terminal, full everywhere
              else and always in JSON

              Possible values:
              - short: As much as tells them apart, which every command takes for the whole
              - full:  As they are

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "timeline", "--help"]), @"
    Show where the time of a run went

    One bar for each job, in the order in which they started: how long it waited
    once it could start, its attempts, and the time between them. The chain of
    jobs that took longest is marked: the run gets shorter only if one of those
    does. A picture as SVG needs nothing else, and reads well on any ground.

    Example:

      $ tidewheel runs timeline run_5c
      $ tidewheel runs timeline run_5c --format svg > run.svg

    Usage: tidewheel runs timeline [OPTIONS] <RUN>

    Arguments:
      <RUN>
              The run, or the beginning of its id

    Options:
          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --format <FORMAT>
              How the timeline is printed

              Possible values:
              - text: For people: bars of characters
              - svg:  For pages: a picture
              - json: For programs: one object with a `version`

              [default: text]

          --width <N>
              With --format text: how many columns it takes, from 40 to 200; as many as the terminal
              has, otherwise

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "events", "--help"]), @"
    List the events of a run: everything that happened, in order

    Each line has the number of the event, when it was stored, counted from the
    creation of the run, what happened, and to which component. `#3` behind a
    component is its piece of work: the same number, the same piece.

    Example:

      $ tidewheel runs events order-7 --store orders.db --from 20

    Usage: tidewheel runs events [OPTIONS] --store <FILE> <RUN>

    Arguments:
      <RUN>
              The run, or the beginning of its id

    Options:
          --store <FILE>
              The SQLite file that the runs are kept in

          --from <N>
              Begin with the event of this number

              [default: 0]

          --utc
              Show instants in UTC instead of the time since the run was created

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "results", "--help"]), @"
    Show what the components of a run gave

    With a COMPONENT only its values are printed, each as one line of JSON and
    as a whole; without, each value has its component and its input, and what is
    wider than the terminal is cut.

    Example:

      $ tidewheel runs results order-7 decide --store orders.db

    Usage: tidewheel runs results [OPTIONS] --store <FILE> <RUN> [COMPONENT]

    Arguments:
      <RUN>
              The run, or the beginning of its id

      [COMPONENT]
              Only the values of this component

    Options:
          --store <FILE>
              The SQLite file that the runs are kept in

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "explain", "--help"]), @"
    Explain in sentences why a run waits, was retried or failed, and what is next

    Without a COMPONENT, the run as a whole and each piece of work that did not
    simply come to its end; with one, all of its pieces. Each failed attempt has
    the decision about it and its reason code. Of a run of jobs, what holds them
    up is followed through to the root; a COMPONENT is one of its nodes.

    Example:

      $ tidewheel runs explain run_5c
      $ tidewheel runs explain order-7 charge --store orders.db

    Usage: tidewheel runs explain [OPTIONS] <RUN> [COMPONENT]

    Arguments:
      <RUN>
              The run, or the beginning of its id

      [COMPONENT]
              Only this component

    Options:
          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn what_asks_something_of_runs() {
    assert_snapshot!(help_of(&["runs", "cancel", "--help"]), @"
    Cancel a run: end all of its work that is not over

    Async work is dropped at its next await point, other work is told. With a
    component, only its pieces of work that are not over end, and the run goes
    on without them.

    Example:

      $ tidewheel runs cancel run_5c --cleanup-worktree
      $ tidewheel runs cancel order-7 --store orders.db

    Usage: tidewheel runs cancel [OPTIONS] <RUN> [COMPONENT]

    Arguments:
      <RUN>
              The run, or the beginning of its id

      [COMPONENT]
              Only the work of this component, or the one piece of work with this id

    Options:
          --cleanup-worktree
              Remove the worktrees that jobs of the run made

          --no-cleanup-worktree
              Keep the worktrees that jobs of the run made, whatever is configured

          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --wait <SPAN>
              With --store: wait so long until it is done; 2s if not given

          --no-wait
              With --store: do not wait until it is done

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "pause", "-h"]), @"
    Pause a run: what is under way comes to its end, nothing new starts

    Usage: tidewheel runs pause [OPTIONS] <RUN>

    Arguments:
      <RUN>  The run, or the beginning of its id

    Options:
          --store <FILE>     The SQLite file that the runs are kept in
          --wait <SPAN>      With --store: wait so long until it is done; 2s if not given
          --no-wait          With --store: do not wait until it is done
          --format <FORMAT>  How the result is printed [default: text] [possible values: text, json]
      -h, --help             Print help (see more with '--help')
    ");
    assert_snapshot!(help_of(&["runs", "resume", "-h"]), @"
    Let a run go on that was paused, stopped or put aside

    Usage: tidewheel runs resume [OPTIONS] <RUN>

    Arguments:
      <RUN>  The run, or the beginning of its id

    Options:
          --store <FILE>     The SQLite file that the runs are kept in
          --wait <SPAN>      With --store: wait so long until it is done; 2s if not given
          --no-wait          With --store: do not wait until it is done
          --format <FORMAT>  How the result is printed [default: text] [possible values: text, json]
      -h, --help             Print help (see more with '--help')
    ");
    assert_snapshot!(help_of(&["runs", "stop", "-h"]), @"
    Stop a run: the process that drives it lets go of it

    Usage: tidewheel runs stop [OPTIONS] <RUN>

    Arguments:
      <RUN>  The run, or the beginning of its id

    Options:
          --store <FILE>     The SQLite file that the runs are kept in
          --wait <SPAN>      With --store: wait so long until it is done; 2s if not given
          --no-wait          With --store: do not wait until it is done
          --format <FORMAT>  How the result is printed [default: text] [possible values: text, json]
      -h, --help             Print help (see more with '--help')
    ");
    assert_snapshot!(help_of(&["runs", "retry", "-h"]), @"
    Try failed work of a run again

    Usage: tidewheel runs retry [OPTIONS] <RUN> [COMPONENT]

    Arguments:
      <RUN>        The run, or the beginning of its id
      [COMPONENT]  Only the failed work of this component, or the one piece of work with this id

    Options:
          --store <FILE>     The SQLite file that a program keeps its runs in, instead of the runs of
                             `.tidewheel/`
          --dir <DIR>        The directory with `.tidewheel/`, instead of the one found from here
          --wait <SPAN>      With --store: wait so long until it is done; 2s if not given
          --no-wait          With --store: do not wait until it is done
          --format <FORMAT>  How the result is printed [default: text] [possible values: text, json]
      -h, --help             Print help (see more with '--help')
    ");
    assert_snapshot!(help_of(&["runs", "signal", "--help"]), @r#"
    Give one component of a run a value, and the others nothing

    Example:

      $ tidewheel runs signal order-7 approve '{"by": "ada"}' --store orders.db

    Usage: tidewheel runs signal [OPTIONS] <RUN> <COMPONENT> <VALUE>

    Arguments:
      <RUN>
              The run, or the beginning of its id

      <COMPONENT>
              The component, one that takes the input of the workflow

      <VALUE>
              The value, as JSON

    Options:
          --store <FILE>
              The SQLite file that the runs are kept in

          --wait <SPAN>
              With --store: wait so long until it is done; 2s if not given

          --no-wait
              With --store: do not wait until it is done

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    "#);
    assert_snapshot!(help_of(&["runs", "complete", "--help"]), @r#"
    Give the result of work that is done elsewhere

    The work got its TOKEN when it was handed out; `tidewheel runs explain`
    shows it, too.

    Example:

      $ tidewheel runs complete "$TOKEN" '{"paid": true}' --store orders.db

    Usage: tidewheel runs complete [OPTIONS] <TOKEN> [VALUE]

    Arguments:
      <TOKEN>
              Which attempt at which work: RUN:WORK:ATTEMPT

      [VALUE]
              The result, as JSON

              [default: null]

    Options:
          --store <FILE>
              The SQLite file that the runs are kept in

          --wait <SPAN>
              With --store: wait so long until it is done; 2s if not given

          --no-wait
              With --store: do not wait until it is done

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    "#);
    assert_snapshot!(help_of(&["runs", "fail", "--help"]), @r#"
    Say that work failed that is done elsewhere

    Its policy decides what follows, as for all work.

    Example:

      $ tidewheel runs fail "$TOKEN" 'the bank is closed' --code closed --store orders.db

    Usage: tidewheel runs fail [OPTIONS] <TOKEN> <MESSAGE>

    Arguments:
      <TOKEN>
              Which attempt at which work: RUN:WORK:ATTEMPT

      <MESSAGE>
              Why it failed

    Options:
          --code <CODE>
              A number or a word that policies look at

          --store <FILE>
              The SQLite file that the runs are kept in

          --wait <SPAN>
              With --store: wait so long until it is done; 2s if not given

          --no-wait
              With --store: do not wait until it is done

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    "#);
    assert_snapshot!(help_of(&["runs", "dead-letters", "--help"]), @r#"
    List work that was put aside after it failed, and try it again

    Work whose policy says `on_failure = "dead_letter"` is put aside when it
    failed for good: with its input, its failure and its history.

    Example:

      $ tidewheel runs dead-letters --store orders.db
      $ tidewheel runs dead-letters retry 3 --store orders.db

    Usage: tidewheel runs dead-letters [OPTIONS] --store <FILE> [RUN]
           tidewheel runs dead-letters <COMMAND>

    Commands:
      retry  Try work again that was put aside
      help   Print this message or the help of the given subcommand(s)

    Arguments:
      [RUN]
              Only those of this run, or of the one whose id begins so

    Options:
          --store <FILE>
              The SQLite file that the runs are kept in

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    "#);
    assert_snapshot!(help_of(&["runs", "dead-letters", "retry", "--help"]), @"
    Try work again that was put aside

    Its run is asked to retry it, and when that is taken, the letter is gone. If
    the work fails for good again, there is a new one.

    Example:

      $ tidewheel runs dead-letters retry 3 --store orders.db

    Usage: tidewheel runs dead-letters retry [OPTIONS] --store <FILE> [ID]...

    Arguments:
      [ID]...
              The number of the letter; may be given several times

    Options:
          --all
              All of them

          --store <FILE>
              The SQLite file that the runs are kept in

          --wait <SPAN>
              With --store: wait so long until it is done; 2s if not given

          --no-wait
              With --store: do not wait until it is done

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["runs", "gc", "--help"]), @"
    Delete runs that are over, with all that is stored of them

    Of a repository, jobs go that have been over for as many days as --days
    says, and runs with their last job. In a store, a run is deleted if it is
    over and was not written for as long as --older-than says. Runs that a
    process still holds, and those of which something was asked, stay. Where a
    person types, the command asks first.

    Example:

      $ tidewheel runs gc --days 30
      $ tidewheel runs gc --older-than 30d --dry-run --store orders.db

    Usage: tidewheel runs gc [OPTIONS]

    Options:
          --store <FILE>
              The SQLite file that a program keeps its runs in, instead of the runs of `.tidewheel/`

          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --older-than <SPAN>
              With --store: only runs that were not written for so long: 30d, 12h

          --days <N>
              Without --store: only jobs that have been over for more than so many days; what is
              configured, else 7

          --status <STATUS>
              With --store: only runs that ended so; several with commas between; all if not given

              [possible values: completed, failed, cancelled]

          --dry-run
              Only show what would be deleted

          --yes
              With --store: do not ask

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn every_command_has_an_example() {
    for command in
        "list show events results explain cancel pause resume retry signal complete fail gc".split(' ')
    {
        let help = help_of(&["runs", command, "--help"]);
        assert!(help.contains(&format!("\n  $ tidewheel runs {command} ")), "{help}");
    }
}

#[test]
fn run() {
    assert_snapshot!(help_of(&["graph", "--help"]), @"
    Draw what comes after what: of a flow, or of a run

    FLOW is what `tidewheel run` takes, with its INPUTs and flags; nothing is
    enqueued. RUN is the id of a run, any beginning or end of it, or run:ID; the
    picture has where its jobs stand.

    In a tree, each node stands in a layer below all that it waits for, and under
    it one line for each edge. Mermaid and DOT are for programs that draw.

    Example:

      $ tidewheel graph release alpha
      $ tidewheel graph run_5c --format dot | dot -Tsvg > run.svg

    Usage: tidewheel graph [OPTIONS] <FLOW|RUN> [INPUT]...

    Arguments:
      <FLOW|RUN>
              The flow, or the run

      [INPUT]...
              Parameters of the flow by their place

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --set <K=V>
              Give a parameter its value; may be given several times

          --format <FORMAT>
              How the graph is printed

              Possible values:
              - tree:    For people: layer by layer, with one line for each edge
              - mermaid: A flowchart, as web pages and many editors draw it
              - dot:     For Graphviz
              - json:    For programs: one object with a `version`

              [default: tree]

      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help_of(&["run", "--help"]), @"
    Run a flow: make jobs of a template, and let them run

    FLOW is a file, an alias of config.toml, the id of a template, or the name
    of a file in `.tidewheel/workflows/`. INPUTs and flags are what the template
    declares under [cli]; --set gives any parameter. The jobs go on when the
    command ends; with --follow it stays until they are over, and ends with 0 if
    all succeeded, 1 if one failed, 10 if one is blocked.

    Example:

      $ tidewheel run release alpha --target main --follow

    Usage: tidewheel run [OPTIONS] <FLOW> [INPUT]...

    Arguments:
      <FLOW>
              The flow

      [INPUT]...
              Parameters by their place

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --set <K=V>
              Give a parameter its value; may be given several times

          --after <JOB>
              Start only after this job, or after a run: `run:ID`; may be given several times

          --pin <BRANCH>
              Start only while this branch stands where it stands now

          --require-approval
              Start only when a person has approved it

          --check
              Check the template and the parameters, and do nothing

          --repeat <N>
              Run it so many times, one after the other

          --follow
              Stay until the jobs are over

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn tick() {
    assert_snapshot!(help_of(&["tick", "--help"]), @"
    Look at all jobs once, and start what may start

    Commands that change jobs do this themselves, and so do jobs that end. It is
    needed by hand only after something outside has changed, if no daemon runs.

    Example:

      $ tidewheel tick --format json

    Usage: tidewheel tick [OPTIONS]

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --format <FORMAT>
              How the result is printed

              Possible values:
              - text: For people
              - json: For programs: one object with a `version`

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn daemon() {
    assert_snapshot!(help_of(&["daemon", "--help"]), @"
    Look at the jobs whenever a time has come

    Retries, delays and limits need a process that wakes up. Without a daemon,
    each command that leaves such a time behind starts a small process that
    does it and ends when nothing is due; a daemon stays until it is ended.

    Example:

      $ tidewheel daemon

    Usage: tidewheel daemon [OPTIONS]

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --until-idle
              End as soon as nothing is due

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn jobs() {
    assert_snapshot!(help_of(&["jobs", "--help"]), @"
    Look at jobs, and ask things of them

    A job is one process of a flow, with gates before it. Jobs live in the
    directory `.tidewheel/` of the repository, and go on without any command
    that waits for them. Looking changes nothing.

    Wherever a command takes a JOB, any beginning or end of its id is enough if
    only one job has it, and so is RUN/NODE.

    Example:

      $ tidewheel jobs list
      $ tidewheel jobs tail build --follow

    Usage: tidewheel jobs <COMMAND>

    Commands:
      list       List the jobs, newest first
      show       Show one job with everything that is known of it
      status     Say in one line how a job is, and where its logs are
      explain    Explain in sentences why a job waits, failed or was retried, and what is next
      schedule   Show which jobs go when, and who waits for whom
      tail       Print what a job has written
      attach     Print both streams of a job, and stay until it is over
      wait       Wait until jobs are over
      approve    Let a job go on that waits for approval
      reject     End a job that waits for approval, because it must not run
      complete   Complete a job whose work is done elsewhere
      fail       Fail an attempt of a job whose work is done elsewhere
      heartbeat  Report that the external worker of a job is alive
      retry      Run a job again, with everything after it
      cancel     End a job, with all its processes
      gc         Remove jobs that have been over for a while
      help       Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn jobs_schedule() {
    assert_snapshot!(help_of(&["jobs", "schedule", "--help"]), @"
    Show which jobs go when, and who waits for whom

    Jobs that are over are left out unless --all is given, or unless they hold
    others up. With --job, only that job and those around it are shown. With
    --watch the whole terminal shows them as they change; `?` lists the keys.

    Example:

      $ tidewheel jobs schedule --format dag --job build
      $ tidewheel jobs schedule --watch

    Usage: tidewheel jobs schedule [OPTIONS]

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --all
              Also jobs that are over

          --job <JOB>
              Only this job and those around it

          --format <FORMAT>
              How the schedule is printed

              Possible values:
              - summary: For people: a row for each job
              - dag:     For people: each job and what it needs
              - json:    For programs: one object with a `version`

              [default: summary]

          --watch
              Stay, and show it as it changes, with keys to look closer and to steer

          --top <N>
              How many rows are shown while watching

              [default: 10]

          --interval-ms <MS>
              How often it is looked at while watching

              [default: 500]

          --max-depth <N>
              With --job, --format dag or json: how many edges away from a shown job things are
              followed; 3 if not given

          --no-ansi
              Nothing but plain text

          --ids <HOW>
              How ids are written; without it short on a terminal, full everywhere else and always in
              JSON

              Possible values:
              - short: As much as tells them apart, which every command takes for the whole
              - full:  As they are

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn jobs_tail() {
    assert_snapshot!(help_of(&["jobs", "tail", "--help"]), @"
    Print what a job has written

    Each line begins with the stream that it came from, unless only one stream
    is asked for. Sequences that steer a terminal are left out unless --raw is
    given. With --follow the command stays until the job is over; Ctrl-C leaves
    it, and the job goes on.

    Example:

      $ tidewheel jobs tail run_5c/build --follow
      $ tidewheel jobs tail run_5c/build --since-attempt 2 --lines 20

    Usage: tidewheel jobs tail [OPTIONS] <JOB>

    Arguments:
      <JOB>
              The job: its id, any beginning or end of it, or RUN/NODE

    Options:
          --dir <DIR>
              The directory with `.tidewheel/`, instead of the one found from here

          --stream <STREAM>
              Which stream

              Possible values:
              - stdout: What it prints
              - stderr: What it complains about
              - both:   Both, each line with the name of its stream

              [default: both]

      -f, --follow
              Stay until the job is over

      -n, --lines <N>
              Begin with the last lines of each stream, so many

          --since-attempt <N>
              Only what was written since this attempt began; the first one is 1

          --raw
              Print the bytes as they are

      -h, --help
              Print help (see a summary with '-h')
    ");
}

/// The others are of one kind: a job, and how the result is printed.
#[test]
fn each_command_on_jobs_has_an_example() {
    for command in "list show status explain attach wait approve reject retry cancel gc".split(' ') {
        let help = help_of(&["jobs", command, "--help"]);
        assert!(help.contains(&format!("  $ tidewheel jobs {command}")), "{help}");
        assert!(help.contains("--dir <DIR>"), "{help}");
    }
}

#[test]
fn what_only_the_scheduler_starts_is_not_in_the_help() {
    assert!(!help_of(&["--help"]).contains("workflow-node"));
    assert!(!help_of(&["run", "--help"]).contains("--named"));
    assert!(!help_of(&["graph", "--help"]).contains("--named"));
}
