//! `tidewheel demo`: what a newcomer sees first, on every kind of terminal, and always the same.

use std::process::Stdio;

use insta::assert_snapshot;

use crate::home::{Home, Ran};

fn demo_at(columns: &str) -> Ran {
    Home::new().run_under(&[("COLUMNS", columns)], &["demo"]).succeeded()
}

/// The part that starts nothing, and so takes no time.
fn chart_at(columns: &str) -> Ran {
    Home::new().run_under(&[("COLUMNS", columns)], &["demo", "--no-crash"]).succeeded()
}

#[test]
fn a_terminal_of_the_usual_width_shows_the_results_beside_the_bars() {
    assert_snapshot!(demo_at("80"), @r#"
    An order for six books, and the release of the shop that takes it. All files are
    in tidewheel-demo/.

    1. Policies: what happens when something fails.
    A step takes 400ms, fails three times and then succeeds. This is what different
    policies make of it:

                       0s    1s    2s    3s    4s    5s
                       ├─────┼─────┼─────┼─────┼─────┼─
    no policy          ██✗ failed in 0.4s: no retries (SCHED_MAX_RETRIES_REACHED)
    fixed 500ms        ██✗╌╌██✗╌╌╌██✗╌╌██✓ succeeded in 3.1s, 3 retries
    linear 500ms       ██✗╌╌██✗╌╌╌╌╌╌██✗╌╌╌╌╌╌╌╌██✓ succeeded in 4.6s, 3 retries
    exponential 500ms  ██✗╌╌██✗╌╌╌╌╌╌██✗╌╌╌╌╌╌╌╌╌╌╌██✓ succeeded in 5.1s, 3 retries
    jitter, run 1      ██✗╌╌██✗██✗╌██✓ succeeded in 2.3s, 3 retries
    jitter, run 2      ██✗██✗╌╌╌██✗╌╌╌╌╌╌╌╌██✓ succeeded in 3.7s, 3 retries
    jitter, run 3      ██✗╌██✗╌╌╌╌██✗╌╌╌╌╌╌╌╌██✓ succeeded in 4.0s, 3 retries
    llm, 3s in all     ██✗╌╌╌╌╌██✗ failed in 1.8s: out of time (SCHED_TIMEOUT)
    fast_fail, 200ms   █✗ failed in 0.2s: no retries (SCHED_MAX_RETRIES_REACHED)

    █ attempt   ✗ failed   ✓ succeeded   ╌ waiting for a retry

    Without a policy the first failure is final. Growing delays give a struggling
    service time to recover. Jitter keeps runs that failed together from coming back
    together, and still gives each run the same delays every time. The llm policy
    looked ahead: its next retry would have started at 3.8s, after the 3s it has in
    all, so it failed at once instead of waiting for nothing. And fast_fail cut the
    first attempt off at its timeout.

    2. A workflow: an order survives kill -9.
    A worker process runs an order on a SQLite database. The policies stand beside
    the workflow: at most 3 labels a second, a circuit breaker in front of the
    carrier, retries for what is overloaded. While screen_fraud runs for the third
    time, the worker is killed with SIGKILL. Then a second worker starts on the same
    database.

                       first worker                                second worker
      validate_order   ran                                         -
      check_inventory  ran                                         -
      print_label      6 ran, 3 waited for the rate limit          -
      book_carrier     failed twice, held by the breaker, ran      -
      screen_fraud     failed twice, killed                        ran again
      decide                                                       ran
      result           {"day":"Tuesday","labels":6,"ship":true}

    What was stored did not run again. screen_fraud ran again as the same attempt
    with the same id, work_cb296e66ef753dce77d40299c7930659: a service that gets the
    id as its idempotency key can tell that it is the same piece of work. Every
    change is an event in the database, and a run that is made from these events
    alone has the same result.

    3. Jobs: a release as processes, with a person in the loop.
    A template of five jobs runs as `tidewheel run release.toml --follow` runs it.
    Each job is a process with a supervisor of its own, and would go on if this
    command were killed. The last one waits until a person approves it.

      fetch    succeeded  2 starts: exit 75, then exit 0
      compile  succeeded  after fetch
      lint     succeeded  after fetch
      package  succeeded  after compile and lint
      publish  succeeded  after package, approved by itself: nobody to ask

    The first start of fetch ended with 75, which its policy lists as worth another
    try; compile and lint did not wait for each other, and package waited for both.

    Everything is in tidewheel-demo/:
      orders.db         the order: facts, attempts, decisions
      release.toml      the template of the jobs
      .tidewheel/jobs/  each job: its record, logs and events

    Look at it:
      tidewheel runs timeline order-123 --store tidewheel-demo/orders.db
      tidewheel runs explain order-123 --store tidewheel-demo/orders.db
      tidewheel jobs list --all --dir tidewheel-demo
      tidewheel jobs explain fetch --dir tidewheel-demo
      tidewheel jobs tail publish --dir tidewheel-demo
      tidewheel graph tidewheel-demo/release.toml

    Begin your own:
      tidewheel init
    "#);
}

#[test]
fn a_narrow_terminal_shows_the_results_below_the_bars() {
    let narrow = chart_at("40").out;
    let chart: Vec<&str> = narrow.lines().skip(6).take(26).collect();
    assert_snapshot!(chart.join("\n"), @"
                       0s     2s     4s
                       ├──────┼──────┼────
    no policy          █✗
      failed in 0.4s: no retries
      (SCHED_MAX_RETRIES_REACHED)
    fixed 500ms        █✗╌█✗╌█✗╌█✓
      succeeded in 3.1s, 3 retries
    linear 500ms       █✗╌█✗╌╌╌█✗╌╌╌╌╌█✓
      succeeded in 4.6s, 3 retries
    exponential 500ms  █✗╌█✗╌╌╌█✗╌╌╌╌╌╌█✓
      succeeded in 5.1s, 3 retries
    jitter, run 1      █✗╌█✗█✗█✓
      succeeded in 2.3s, 3 retries
    jitter, run 2      █✗█✗╌█✗╌╌╌╌█✓
      succeeded in 3.7s, 3 retries
    jitter, run 3      █✗█✗╌╌█✗╌╌╌╌╌█✓
      succeeded in 4.0s, 3 retries
    llm, 3s in all     █✗╌╌╌█✗
      failed in 1.8s: out of time
      (SCHED_TIMEOUT)
    fast_fail, 200ms   █✗
      failed in 0.2s: no retries
      (SCHED_MAX_RETRIES_REACHED)

    █ attempt   ✗ failed   ✓ succeeded
    ╌ waiting for a retry
    ");
}

#[test]
fn a_narrow_terminal_shows_the_workers_below_each_other() {
    let home = Home::new();
    let narrow = home.run_under(&[("COLUMNS", "60")], &["demo"]).succeeded().out;
    let workers: Vec<&str> = narrow.lines().filter(|line| line.contains(" worker: ")).collect();
    assert_snapshot!(workers.join("\n"), @"
    validate_order   first worker: ran
    check_inventory  first worker: ran
    print_label      first worker: 6 ran, 3 waited for the
    book_carrier     first worker: failed twice, held by the
    screen_fraud     first worker: failed twice, killed
                     second worker: ran again
    decide           second worker: ran
    ");
    // Whoever asks later is told of the waits, too.
    let explained = home.run(&["runs", "explain", "order-123", "--store", "tidewheel-demo/orders.db"]);
    let waits = "3 pieces of print_label waited up to ";
    assert!(explained.out.contains(waits) && explained.out.contains(" for its rate limit."), "{explained}");
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let home = Home::new();
    let under = [("COLUMNS", "80"), ("LC_ALL", "C"), ("LANG", "en_US.UTF-8")];
    let ran = home.run_under(&under, &["demo"]).succeeded();
    assert!(ran.out.is_ascii(), "{ran}");
    let chart: Vec<&str> = ran.lines().into_iter().skip(7).take(13).collect();
    assert_snapshot!(chart.join("\n"), @"
                       0s    1s    2s    3s    4s    5s
                       +-----+-----+-----+-----+-----+-
    no policy          ##x failed in 0.4s: no retries (SCHED_MAX_RETRIES_REACHED)
    fixed 500ms        ##x..##x...##x..##+ succeeded in 3.1s, 3 retries
    linear 500ms       ##x..##x......##x........##+ succeeded in 4.6s, 3 retries
    exponential 500ms  ##x..##x......##x...........##+ succeeded in 5.1s, 3 retries
    jitter, run 1      ##x..##x##x.##+ succeeded in 2.3s, 3 retries
    jitter, run 2      ##x##x...##x........##+ succeeded in 3.7s, 3 retries
    jitter, run 3      ##x.##x....##x........##+ succeeded in 4.0s, 3 retries
    llm, 3s in all     ##x.....##x failed in 1.8s: out of time (SCHED_TIMEOUT)
    fast_fail, 200ms   #x failed in 0.2s: no retries (SCHED_MAX_RETRIES_REACHED)

    # attempt   x failed   + succeeded   . waiting for a retry
    ");
    let under = [("COLUMNS", "80"), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")];
    assert_eq!(home.run_under(&under, &["demo", "--no-crash"]).out, chart_at("80").out);
}

#[test]
fn no_line_but_the_commands_is_wider_than_the_terminal() {
    for columns in [40_usize, 41, 50, 60, 79, 80, 81, 100, 120, 160, 200] {
        let is_whole = columns % 40 == 0;
        let ran = if is_whole { demo_at(&columns.to_string()) } else { chart_at(&columns.to_string()) };
        let commands = if is_whole { "Look at it:" } else { "See the rest:" };
        let (told, commands) = ran.out.split_once(commands).expect("there is a next step");
        for line in told.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert!(commands.lines().all(|line| line.chars().count() <= 80), "{commands}");
    }
}

#[test]
fn a_width_that_is_none_is_not_believed() {
    let usual = chart_at("80").out;
    for columns in ["", "0", "wide", "-3"] {
        assert_eq!(chart_at(columns).out, usual, "{columns:?}");
    }
    assert_eq!(chart_at("1").out, chart_at("40").out);
    assert_eq!(chart_at("100000").out, chart_at("200").out);
}

#[test]
fn colours_are_for_terminals_and_can_be_refused() {
    let home = Home::new();
    let plain = chart_at("80").out;
    assert!(!plain.contains('\u{1b}'));
    let coloured = home
        .run_under(&[("COLUMNS", "80"), ("CLICOLOR_FORCE", "1")], &["demo", "--no-crash"])
        .succeeded()
        .out;
    let fixed: Vec<&str> = coloured.lines().filter(|line| line.contains("fixed")).collect();
    assert_snapshot!(fixed.join("\n").replace('\u{1b}', "<ESC>"), @"fixed 500ms        <ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌<ESC>[0m<ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌╌<ESC>[0m<ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌<ESC>[0m<ESC>[1m<ESC>[32m██<ESC>[0m<ESC>[1m<ESC>[32m✓<ESC>[0m succeeded in 3.1s, 3 retries");
    let refused = [("COLUMNS", "80"), ("NO_COLOR", "1")];
    assert_eq!(home.run_under(&refused, &["demo", "--no-crash"]).succeeded().out, plain);
}

#[test]
fn it_is_the_same_each_time_and_keeps_everything_in_a_directory_of_its_own() {
    let home = Home::new();
    let once = home.run(&["demo"]).succeeded().out;
    let again = home.run(&["demo"]).succeeded().out;
    assert_eq!(once.replace("tidewheel-demo", "tidewheel-demo-2"), again);
    let mut made: Vec<_> = std::fs::read_dir(home.path())
        .expect("the directory is there")
        .map(|entry| entry.expect("it can be read").file_name())
        .collect();
    made.sort();
    assert_eq!(made, ["tidewheel-demo", "tidewheel-demo-2"]);
}

#[test]
fn a_worker_is_killed_and_another_one_goes_on() {
    let ran = Home::new().run(&["demo", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let order = &demo["order"];
    assert_eq!(order["killed_in"], "screen_fraud");
    assert_eq!(order["replay_is_equal"], true);
    assert_eq!(order["result"], serde_json::json!({"day": "Tuesday", "labels": 6, "ship": true}));
    for step in order["steps"].as_array().expect("a list") {
        let calls = |field: &str| step[field].as_array().expect("a list").clone();
        let (first, second) = (calls("first"), calls("second"));
        let waited = (&step["waited_for_rate"], &step["waited_for_breaker"]);
        match step["step"].as_str().expect("a name") {
            "decide" => assert_eq!((first.len(), second.len()), (0, 1), "{step}"),
            "screen_fraud" => {
                assert_eq!((first.len(), second.len()), (3, 1), "{step}");
                assert_eq!(step["stored"], 0);
                assert_eq!(first[2], second[0], "the same id and the same attempt");
                assert_eq!(first[2]["attempt"], 2);
            }
            "print_label" => {
                assert_eq!((first.len(), second.len()), (6, 0), "{step}");
                assert_eq!(waited, (&3.into(), &0.into()));
            }
            "book_carrier" => {
                assert_eq!((first.len(), second.len()), (3, 0), "{step}");
                assert_eq!(waited, (&0.into(), &1.into()));
            }
            _ => assert_eq!((first.len(), second.len()), (1, 0), "{step}"),
        }
    }
}

#[test]
fn without_the_crash_no_process_is_started_and_no_file_is_touched() {
    let home = Home::new();
    let ran = home.run_under(&[("COLUMNS", "80")], &["demo", "--no-crash"]).succeeded();
    let whole = demo_at("80").out;
    let (_, chart) = whole.split_once("\n\n").expect("it begins with a paragraph");
    let (chart, _) = chart.split_once("2. A workflow").expect("it has this part");
    assert_eq!(ran.out, format!("{chart}See the rest:\n  tidewheel demo\n"));
    let ran = home.run(&["demo", "--no-crash", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert!(demo.get("order").is_none() && demo.get("release").is_none());
    assert_eq!(std::fs::read_dir(home.path()).expect("the directory is there").count(), 0);
}

#[test]
fn a_release_runs_as_jobs_and_what_failed_at_first_is_tried_again() {
    for (arguments, answer) in [
        (&["demo", "--format", "json"][..], "nobody_asked"),
        (&["demo", "--yes", "--format", "json"], "approved_by_option"),
    ] {
        let ran = Home::new().run(arguments).succeeded();
        let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        let job = |node: &str, after: &[&str], exit_codes: &[i32]| serde_json::json!({"node": node, "status": "succeeded", "after": after, "exit_codes": exit_codes});
        let jobs = [
            job("fetch", &[], &[75, 0]),
            job("compile", &["fetch"], &[0]),
            job("lint", &["fetch"], &[0]),
            job("package", &["compile", "lint"], &[0]),
            job("publish", &["package"], &[0]),
        ];
        assert_eq!(demo["release"], serde_json::json!({ "jobs": jobs, "answer": answer }));
    }
}

#[test]
fn it_is_kept_where_somebody_says_if_nothing_is_there() {
    let home = Home::new();
    let ran = home.run(&["demo", "--keep", "kept/it's here/"]).succeeded();
    assert!(ran.out.contains("\nEverything is in 'kept/it'\\''s here'/:\n"), "{ran}");
    let tail = home.run(&["jobs", "tail", "fetch", "--dir", "kept/it's here"]).succeeded();
    assert_eq!(tail.out, "[stdout] fetched 12 packages\n[stderr] the mirror is busy\n");
    // The template is there, too, and runs again.
    let template = "kept/it's here/release.toml";
    assert_eq!(home.run(&["run", template, "--dir", "kept/it's here"]).code, Some(0));

    let ran = home.run(&["demo", "--keep", "kept/it's here"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err, @"
    error[TW0008]: The demo cannot be kept in `kept/it's here`: there is something in it.
    hint: Name a directory that does not exist yet.
    ");
}

#[test]
fn a_worker_that_cannot_do_its_part_says_why() {
    let home = Home::new();
    home.file("orders.db", "this is no database, and it is long enough that nobody takes it for one");
    let worker = home.command(&["__demo-worker", "orders.db"]).stdin(Stdio::piped()).spawn();
    let mut worker = worker.expect("it starts");
    // A worker ends without a word when whoever started it is gone.
    let held = worker.stdin.take();
    let ended = worker.wait_with_output().expect("it ends");
    drop(held);
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(1), &b""[..]));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("file is not a database"), "{said}");
}

#[test]
fn programs_get_the_same_as_data() {
    let ran = Home::new().run(&["demo", "--no-crash", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(demo["version"], 2);
    let keys =
        |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&demo), ["attempt_takes_ms", "failures", "rehearsals", "version"]);
    let rehearsals = demo["rehearsals"].as_array().expect("a list");
    assert_eq!(rehearsals.len(), 9);
    for rehearsal in rehearsals {
        assert_eq!(keys(rehearsal), ["name", "node", "policy", "rehearsal", "run_id"]);
        assert_eq!(keys(&rehearsal["rehearsal"]), ["attempts", "cut", "succeeded", "total_ms"]);
    }
    let llm = &rehearsals[7];
    assert_snapshot!(serde_json::to_string_pretty(llm).expect("JSON"), @r#"
    {
      "name": "llm, 3s in all",
      "node": "flaky",
      "policy": {
        "backoff": "exponential",
        "base_delay": "1s",
        "max_delay": "30s",
        "max_retries": 3,
        "on_failure": "halt",
        "timeout": "1s",
        "total_timeout": "3s"
      },
      "rehearsal": {
        "attempts": [
          {
            "decision": {
              "action": "RETRY_AT",
              "attempt_next_index": 1,
              "next_due_at_ns": 1400000000,
              "reason_code": "SCHED_RETRY_SCHEDULED",
              "wake_at_ns": null
            },
            "end_ms": 400,
            "start_ms": 0
          },
          {
            "decision": {
              "action": "FAIL",
              "attempt_next_index": 1,
              "next_due_at_ns": null,
              "reason_code": "SCHED_TIMEOUT",
              "wake_at_ns": null
            },
            "end_ms": 1800,
            "start_ms": 1400
          }
        ],
        "cut": false,
        "succeeded": false,
        "total_ms": 1800
      },
      "run_id": "run-1"
    }
    "#);
}

#[test]
fn the_commands_that_it_names_work_as_they_stand() {
    let home = Home::new();
    let mut command = home.command(&["demo", "--yes"]);
    std::os::unix::process::CommandExt::arg0(&mut command, env!("CARGO_BIN_EXE_tidewheel"));
    let demo = Ran::of(command, b"").succeeded().out;
    let (_, commands) = demo.split_once("Look at it:\n").expect("there is a next step");
    let (commands, begin) = commands.split_once("\nBegin your own:\n").expect("there is a last step");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-e").env_clear().current_dir(home.path());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = Ran::of(shell, format!("{commands}{begin}").as_bytes()).succeeded();
    for wanted in
        ["lost with its process", "for its circuit breaker", "exit code 75", "published release.tar.gz"]
    {
        assert!(ran.out.contains(wanted), "{wanted}: {ran}");
    }
    assert!(home.path().join(".tidewheel/config.toml").exists());
}
