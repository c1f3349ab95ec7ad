//! `tidewheel demo`: what a newcomer sees first, on every kind of terminal, and always the same.

use std::process::Stdio;

use insta::assert_snapshot;

use crate::home::{Home, Ran};

fn demo_at(columns: &str) -> Ran {
    Home::new().run_under(&[("COLUMNS", columns)], &["demo"]).succeeded()
}

#[test]
fn a_terminal_of_the_usual_width_shows_the_results_beside_the_bars() {
    assert_snapshot!(demo_at("80"), @r#"
    A step takes 400ms, fails three times and then succeeds.
    This is what different policies make of it:

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

    A workflow: an order through five functions.
    A rule lets the order in, three checks look at it independently, and a decision
    waits for all of them.

      validate_order     {"customer":"alice","items":2}
      check_inventory    true
      screen_fraud       true
      estimate_shipping  4
      (join)             [true,true,4]
      decide             {"days":4,"ship":true}

    Every change was an event, 32 in all. A run made from these events alone has the
    same facts.

    A durable workflow: kill -9 in the middle.
    A worker process runs the same order on a SQLite database. While screen_fraud
    runs, it is killed with SIGKILL. Then a second worker starts on the same
    database.

                         first worker     second worker
      validate_order     ran, stored      did not run again
      check_inventory    ran, stored      did not run again
      estimate_shipping  ran, stored      did not run again
      screen_fraud       ran, killed      ran again, same id and attempt
      decide                              ran
      result                              {"days":4,"ship":true}

    What was stored did not run again. screen_fraud ran again as attempt 0 with the
    same id, work_e3d6545c53c8a8c3e587df12c584c511: a service that gets the id as
    its idempotency key can tell that it is the same piece of work.

    Jobs: a build as processes, kept in plain files.
    A template of four jobs runs as `tidewheel run build.toml --follow` runs it.
    Each job is a process with a supervisor of its own, and would go on if this
    command were killed.

      fetch    succeeded  2 starts: exit 75, then exit 0
      compile  succeeded  after fetch
      lint     succeeded  after fetch
      package  succeeded  after compile and lint

    The first start of fetch ended with 75, which its policy lists as worth another
    try; compile and lint did not wait for each other, and package waited for both.
    Each job has a directory .tidewheel/jobs/JOB/ with its record (job.json), its
    logs (stdout.log, stderr.log) and why it was retried (events.jsonl).
    Here that was in a temporary directory, which is gone; `--keep DIR` keeps it.

    Try next:
      echo '{"policy": {"backoff": "linear"}, "attempt_index": 2}' |
        tidewheel decide delay
      echo 'policies = [{match.default=true, max_retries=4, backoff="jitter"}]' |
        tidewheel policy check - --name fetch
      tidewheel demo --keep demo-jobs
      tidewheel jobs tail fetch --dir demo-jobs
      tidewheel jobs schedule --all --dir demo-jobs
    "#);
}

#[test]
fn a_narrow_terminal_shows_the_results_below_the_bars() {
    assert_snapshot!(demo_at("40"), @r#"
    A step takes 400ms, fails three times
    and then succeeds.
    This is what different policies make of
    it:

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

    Without a policy the first failure is
    final. Growing delays give a struggling
    service time to recover. Jitter keeps
    runs that failed together from coming
    back together, and still gives each run
    the same delays every time. The llm
    policy looked ahead: its next retry
    would have started at 3.8s, after the 3s
    it has in all, so it failed at once
    instead of waiting for nothing. And
    fast_fail cut the first attempt off at
    its timeout.

    A workflow: an order through five
    functions.
    A rule lets the order in, three checks
    look at it independently, and a decision
    waits for all of them.

      validate_order     {"customer":"alice…
      check_inventory    true
      screen_fraud       true
      estimate_shipping  4
      (join)             [true,true,4]
      decide             {"days":4,"ship":t…

    Every change was an event, 32 in all. A
    run made from these events alone has the
    same facts.

    A durable workflow: kill -9 in the
    middle.
    A worker process runs the same order on
    a SQLite database. While screen_fraud
    runs, it is killed with SIGKILL. Then a
    second worker starts on the same
    database.

                         first worker     s…
      validate_order     ran, stored      d…
      check_inventory    ran, stored      d…
      estimate_shipping  ran, stored      d…
      screen_fraud       ran, killed      r…
      decide                              r…
      result                              {…

    What was stored did not run again.
    screen_fraud ran again as attempt 0 with
    the same id,
    work_e3d6545c53c8a8c3e587df12c584c511: a
    service that gets the id as its
    idempotency key can tell that it is the
    same piece of work.

    Jobs: a build as processes, kept in
    plain files.
    A template of four jobs runs as
    `tidewheel run build.toml --follow` runs
    it. Each job is a process with a
    supervisor of its own, and would go on
    if this command were killed.

      fetch    succeeded  2 starts: exit 75…
      compile  succeeded  after fetch
      lint     succeeded  after fetch
      package  succeeded  after compile and…

    The first start of fetch ended with 75,
    which its policy lists as worth another
    try; compile and lint did not wait for
    each other, and package waited for both.
    Each job has a directory
    .tidewheel/jobs/JOB/ with its record
    (job.json), its logs (stdout.log,
    stderr.log) and why it was retried
    (events.jsonl).
    Here that was in a temporary directory,
    which is gone; `--keep DIR` keeps it.

    Try next:
      echo '{"policy": {"backoff": "linear"}, "attempt_index": 2}' |
        tidewheel decide delay
      echo 'policies = [{match.default=true, max_retries=4, backoff="jitter"}]' |
        tidewheel policy check - --name fetch
      tidewheel demo --keep demo-jobs
      tidewheel jobs tail fetch --dir demo-jobs
      tidewheel jobs schedule --all --dir demo-jobs
    "#);
}

#[test]
fn a_wide_terminal_has_long_bars_and_short_lines_of_text() {
    assert_snapshot!(demo_at("200"), @r#"
    A step takes 400ms, fails three times and then succeeds.
    This is what different policies make of it:

                       0s        0.5s      1s        1.5s      2s        2.5s      3s        3.5s      4s        4.5s      5s
                       ├─────────┼─────────┼─────────┼─────────┼─────────┼─────────┼─────────┼─────────┼─────────┼─────────┼──
    no policy          ████████✗ failed in 0.4s: no retries (SCHED_MAX_RETRIES_REACHED)
    fixed 500ms        ████████✗╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌████████✓ succeeded in 3.1s, 3 retries
    linear 500ms       ████████✗╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✓ succeeded in 4.6s, 3 retries
    exponential 500ms  ████████✗╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✓ succeeded in 5.1s, 3 retries
    jitter, run 1      ████████✗╌╌╌╌╌╌████████✗████████✗╌╌╌╌╌╌████████✓ succeeded in 2.3s, 3 retries
    jitter, run 2      ████████✗╌████████✗╌╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✓ succeeded in 3.7s, 3 retries
    jitter, run 3      ████████✗╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✓ succeeded in 4.0s, 3 retries
    llm, 3s in all     ████████✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌████████✗ failed in 1.8s: out of time (SCHED_TIMEOUT)
    fast_fail, 200ms   ████✗ failed in 0.2s: no retries (SCHED_MAX_RETRIES_REACHED)

    █ attempt   ✗ failed   ✓ succeeded   ╌ waiting for a retry

    Without a policy the first failure is final. Growing delays give a struggling service
    time to recover. Jitter keeps runs that failed together from coming back together, and
    still gives each run the same delays every time. The llm policy looked ahead: its next
    retry would have started at 3.8s, after the 3s it has in all, so it failed at once
    instead of waiting for nothing. And fast_fail cut the first attempt off at its timeout.

    A workflow: an order through five functions.
    A rule lets the order in, three checks look at it independently, and a decision waits
    for all of them.

      validate_order     {"customer":"alice","items":2}
      check_inventory    true
      screen_fraud       true
      estimate_shipping  4
      (join)             [true,true,4]
      decide             {"days":4,"ship":true}

    Every change was an event, 32 in all. A run made from these events alone has the same
    facts.

    A durable workflow: kill -9 in the middle.
    A worker process runs the same order on a SQLite database. While screen_fraud runs, it
    is killed with SIGKILL. Then a second worker starts on the same database.

                         first worker     second worker
      validate_order     ran, stored      did not run again
      check_inventory    ran, stored      did not run again
      estimate_shipping  ran, stored      did not run again
      screen_fraud       ran, killed      ran again, same id and attempt
      decide                              ran
      result                              {"days":4,"ship":true}

    What was stored did not run again. screen_fraud ran again as attempt 0 with the same id,
    work_e3d6545c53c8a8c3e587df12c584c511: a service that gets the id as its idempotency key
    can tell that it is the same piece of work.

    Jobs: a build as processes, kept in plain files.
    A template of four jobs runs as `tidewheel run build.toml --follow` runs it. Each job is
    a process with a supervisor of its own, and would go on if this command were killed.

      fetch    succeeded  2 starts: exit 75, then exit 0
      compile  succeeded  after fetch
      lint     succeeded  after fetch
      package  succeeded  after compile and lint

    The first start of fetch ended with 75, which its policy lists as worth another try;
    compile and lint did not wait for each other, and package waited for both.
    Each job has a directory .tidewheel/jobs/JOB/ with its record (job.json), its logs
    (stdout.log, stderr.log) and why it was retried (events.jsonl).
    Here that was in a temporary directory, which is gone; `--keep DIR` keeps it.

    Try next:
      echo '{"policy": {"backoff": "linear"}, "attempt_index": 2}' |
        tidewheel decide delay
      echo 'policies = [{match.default=true, max_retries=4, backoff="jitter"}]' |
        tidewheel policy check - --name fetch
      tidewheel demo --keep demo-jobs
      tidewheel jobs tail fetch --dir demo-jobs
      tidewheel jobs schedule --all --dir demo-jobs
    "#);
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let home = Home::new();
    let ran = home.run_under(&[("COLUMNS", "80"), ("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], &["demo"]);
    assert!(ran.out.is_ascii(), "{ran}");
    let chart: Vec<&str> = ran.lines().into_iter().skip(3).take(13).collect();
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
    let unicode = home.run_under(&[("COLUMNS", "80"), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], &["demo"]);
    assert_eq!(unicode.out, demo_at("80").out);
}

#[test]
fn no_line_but_the_commands_is_wider_than_the_terminal() {
    for columns in [40_usize, 41, 50, 60, 79, 80, 81, 100, 120, 160, 200] {
        let ran = demo_at(&columns.to_string());
        let (told, commands) = ran.out.split_once("Try next:").expect("there is a next step");
        for line in told.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert!(commands.lines().all(|line| line.chars().count() <= 80), "{commands}");
    }
}

#[test]
fn a_width_that_is_none_is_not_believed() {
    let usual = demo_at("80").out;
    for columns in ["", "0", "wide", "-3"] {
        assert_eq!(demo_at(columns).out, usual, "{columns:?}");
    }
    assert_eq!(demo_at("1").out, demo_at("40").out);
    assert_eq!(demo_at("100000").out, demo_at("200").out);
}

#[test]
fn colours_are_for_terminals_and_can_be_refused() {
    let home = Home::new();
    let plain = demo_at("80").out;
    assert!(!plain.contains('\u{1b}'));
    let coloured = home.run_under(&[("COLUMNS", "80"), ("CLICOLOR_FORCE", "1")], &["demo"]).succeeded().out;
    let fixed: Vec<&str> = coloured.lines().filter(|line| line.contains("fixed")).collect();
    assert_snapshot!(fixed.join("\n").replace('\u{1b}', "<ESC>"), @"fixed 500ms        <ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌<ESC>[0m<ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌╌<ESC>[0m<ESC>[1m<ESC>[31m██<ESC>[0m<ESC>[1m<ESC>[31m✗<ESC>[0m<ESC>[2m╌╌<ESC>[0m<ESC>[1m<ESC>[32m██<ESC>[0m<ESC>[1m<ESC>[32m✓<ESC>[0m succeeded in 3.1s, 3 retries");
    let refused = [("COLUMNS", "80"), ("NO_COLOR", "1")];
    assert_eq!(home.run_under(&refused, &["demo"]).succeeded().out, plain);
}

#[test]
fn it_is_the_same_each_time_and_leaves_no_file() {
    let home = Home::new();
    let under = [("TMPDIR", home.path().to_str().expect("a path of ours"))];
    let once = home.run_under(&under, &["demo"]).succeeded().out;
    assert_eq!(once, home.run_under(&under, &["demo"]).succeeded().out);
    assert_eq!(once, Home::new().run(&["demo"]).succeeded().out);
    assert_eq!(std::fs::read_dir(home.path()).expect("the directory is there").count(), 0);
}

#[test]
fn a_worker_is_killed_and_another_one_goes_on() {
    let ran = Home::new().run(&["demo", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let durable = &demo["durable"];
    assert_eq!(durable["killed_in"], "screen_fraud");
    assert_eq!(durable["result"], serde_json::json!({"days": 4, "ship": true}));
    for step in durable["steps"].as_array().expect("a list") {
        let is_null = |field: &str| step[field].is_null();
        match step["step"].as_str().expect("a name") {
            "decide" => assert!(is_null("first") && !is_null("second"), "{step}"),
            "screen_fraud" => {
                assert_eq!(step["was_stored"], false);
                assert_eq!(step["first"], step["second"], "the same id and the same attempt");
                assert_eq!(step["first"]["attempt"], 0);
            }
            _ => assert!(step["was_stored"] == true && is_null("second"), "{step}"),
        }
    }
}

#[test]
fn without_the_crash_no_process_is_started_and_no_file_is_touched() {
    let home = Home::new();
    // A worker would need a directory, and here none can be made.
    let under = [("TMPDIR", "/nowhere")];
    let short = home.run_under(&under, &["demo", "--no-crash"]).succeeded().out;
    let whole = demo_at("80").out;
    let (before, rest) = whole.split_once("A durable workflow:").expect("it has this part");
    let (_, after) = rest.split_once("Try next:").expect("there is a next step");
    assert_eq!(short, format!("{before}Try next:{after}"));
    let ran = home.run_under(&under, &["demo", "--no-crash", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert!(demo.get("durable").is_none() && demo.get("jobs").is_none());
}

#[test]
fn a_build_runs_as_jobs_and_what_failed_at_first_is_tried_again() {
    let ran = Home::new().run(&["demo", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let job = |node: &str, after: &[&str], exit_codes: &[i32]| serde_json::json!({"node": node, "status": "succeeded", "after": after, "exit_codes": exit_codes});
    let jobs = [
        job("fetch", &[], &[75, 0]),
        job("compile", &["fetch"], &[0]),
        job("lint", &["fetch"], &[0]),
        job("package", &["compile", "lint"], &[0]),
    ];
    assert_eq!(demo["jobs"], serde_json::json!({ "jobs": jobs }));
}

#[test]
fn the_files_of_the_jobs_can_be_kept_and_looked_at() {
    let home = Home::new();
    let ran = home.run(&["demo", "--keep", "kept/here"]).succeeded();
    let place = std::fs::canonicalize(home.path().join("kept/here")).expect("it was made");
    assert!(ran.out.replace('\n', " ").contains(&format!("All of it is in {}.", place.display())), "{ran}");
    assert!(ran.out.ends_with("  tidewheel jobs schedule --all --dir kept/here\n"), "{ran}");
    let tail = home.run(&["jobs", "tail", "fetch", "--dir", "kept/here"]).succeeded();
    assert_eq!(tail.out, "[stdout] fetched 12 packages\n[stderr] the mirror is busy\n");
    // The template is there, too, and runs again.
    let again = ["run", "kept/here/build.toml", "--dir", "kept/here", "--follow", "--format", "json"];
    assert_eq!(home.run(&again).code, Some(0));

    let ran = home.run(&["demo", "--keep", "kept/here"]);
    assert_eq!(ran.code, Some(1));
    assert_snapshot!(ran.err, @"
    error[TW0008]: The jobs of the demo cannot be kept in `kept/here`: there is something in it.
    hint: Name a directory that does not exist yet.
    ");
}

#[test]
fn a_worker_that_cannot_do_its_part_is_an_error_and_the_rest_is_shown() {
    let home = Home::new();
    let ran = home.run_under(&[("TMPDIR", "/nowhere")], &["demo"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("A workflow: an order through five functions."), "{ran}");
    assert_snapshot!(ran.err, @"
    internal error[TW0008]: The worker of the demo could not do its part: no directory could be made in `/nowhere`: No such file or directory.
    hint: `tidewheel demo --no-crash` leaves that part out.
    ");

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
    let ran = Home::new().run(&["demo", "--format", "json"]).succeeded();
    let demo: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(demo["version"], 1);
    let keys =
        |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&demo),
        ["attempt_takes_ms", "durable", "failures", "jobs", "rehearsals", "version", "workflow"]
    );
    assert_eq!(demo["workflow"]["replay_is_equal"], true);
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
    let mut command = home.command(&["demo"]);
    std::os::unix::process::CommandExt::arg0(&mut command, env!("CARGO_BIN_EXE_tidewheel"));
    let demo = Ran::of(command, b"").succeeded().out;
    let (_, commands) = demo.split_once("Try next:\n").expect("there is a next step");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-e").env_clear().current_dir(home.path());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = Ran::of(shell, commands.as_bytes()).succeeded();
    assert!(ran.out.starts_with(r#"{"kind":"ok","delay_ms":1500,"#), "{ran}");
    assert!(ran.out.contains("fetch (step): policies[0] (default) wins"), "{ran}");
    assert!(ran.out.contains("[stdout] fetched 12 packages"), "{ran}");
}
