//! `tidewheel runs`: what is shown of runs, from their store alone.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::home::{Home, Ran};
use crate::shop::{self, NOW, contents, home, runs};

/// Every command that only looks.
const LOOKS: [&[&str]; 9] = [
    &["list"],
    &["show", "order-2"],
    &["timeline", "order-2"],
    &["events", "order-2"],
    &["results", "order-1"],
    &["results", "order-1", "ship"],
    &["explain", "order-2"],
    &["dead-letters"],
    &["gc", "--older-than", "0s", "--dry-run"],
];

fn look(arguments: &[&str]) -> Ran {
    runs(&home(), arguments).succeeded()
}

fn json(arguments: &[&str]) -> Value {
    let ran = look(&[arguments, &["--format", "json"]].concat());
    let value: Value = serde_json::from_str(&ran.out).expect("it is JSON");
    assert_eq!(value["version"], 1);
    value
}

/// Returns the names of the fields of an object.
fn fields(value: &Value) -> String {
    value.as_object().expect("it is an object").keys().cloned().collect::<Vec<_>>().join(" ")
}

#[test]
fn runs_are_listed_newest_first() {
    assert_snapshot!(look(&["list"]), @"
    RUN        STATUS     WHY                    UPDATED               CREATED               EVENTS  WORKFLOW
    refund-1   waiting    due in 5m              2026-03-01T12:05:00Z  2026-03-01T12:05:00Z       5  refunds
    order-6    waiting    no input yet           2026-03-01T12:05:00Z  2026-03-01T12:02:01Z       0  orders
    order-5    cancelled                         2026-03-01T12:02:01Z  2026-03-01T12:02:01Z       0  orders
    order-4    paused                            2026-03-01T12:05:00Z  2026-03-01T12:02:01Z       3  orders
    picking-1  completed  1 failure was skipped  2026-03-01T12:05:00Z  2026-03-01T12:02:00Z      34  picking
    order-3    completed                         2026-03-01T12:05:00Z  2026-03-01T12:01:20Z      19  orders
    order-2    failed                            2026-03-01T12:05:00Z  2026-03-01T12:00:33Z      17  orders
    order-1    completed                         2026-03-01T12:05:00Z  2026-03-01T12:00:00Z      17  orders
    ");
}

#[test]
fn a_list_has_filters() {
    let ids = |arguments: &[&str]| {
        let rows = json(&[&["list"], arguments].concat());
        let rows = rows["runs"].as_array().expect("there are rows").iter();
        rows.map(|row| row["id"].as_str().expect("it has an id").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(&["--status", "failed,waiting"]), "refund-1 order-6 order-2");
    assert_eq!(ids(&["--workflow", "picking"]), "picking-1");
    assert_eq!(ids(&["--prefix", "re"]), "refund-1");
    assert_eq!(ids(&["--prefix", "order-", "--status", "completed"]), "order-3 order-1");
    assert_eq!(ids(&["--limit", "2"]), "refund-1 order-6");
    assert_eq!(ids(&["--all"]).split(' ').count(), 8);
    assert_snapshot!(look(&["list", "--workflow", "none"]), @"No run of orders.db fits.");
    assert_snapshot!(runs(&home(), &["list", "--status", "over"]), @"
    --- stderr
    error: invalid value 'over' for '--status <STATUS>'
      [possible values: running, waiting, completed, failed, paused, stopped, parked, cancelled, succeeded, blocked, incomplete]

    For more information, try '--help'.
    --- exit code 2
    ");
}

#[test]
fn a_list_says_that_there_is_more() {
    assert_snapshot!(runs(&home(), &["list", "--limit", "1"]), @"
    RUN       STATUS   WHY        UPDATED               CREATED               EVENTS  WORKFLOW
    refund-1  waiting  due in 5m  2026-03-01T12:05:00Z  2026-03-01T12:05:00Z       5  refunds
    --- stderr
    hint: There are more: --all lists all of them, and --limit as many as you like.
    ");
    assert_eq!(json(&["list", "--limit", "1"])["more"], true);
    assert_eq!(json(&["list", "--limit", "8"])["more"], false);
}

#[test]
fn instants_are_shown_in_utc_where_somebody_wants_that() {
    let arguments = ["runs", "list", "--store", "orders.db", "--utc", "--limit", "8"];
    let ran = home().run_under(&[("TIDEWHEEL_NOW", NOW), ("COLUMNS", "110")], &arguments).succeeded();
    assert_snapshot!(ran, @"
    RUN        STATUS     WHY                    UPDATED               CREATED               EVENTS  WORKFLOW
    refund-1   waiting    due in 5m              2026-03-01T12:05:00Z  2026-03-01T12:05:00Z       5  refunds
    order-6    waiting    no input yet           2026-03-01T12:05:00Z  2026-03-01T12:02:01Z       0  orders
    order-5    cancelled                         2026-03-01T12:02:01Z  2026-03-01T12:02:01Z       0  orders
    order-4    paused                            2026-03-01T12:05:00Z  2026-03-01T12:02:01Z       3  orders
    picking-1  completed  1 failure was skipped  2026-03-01T12:05:00Z  2026-03-01T12:02:00Z      34  picking
    order-3    completed                         2026-03-01T12:05:00Z  2026-03-01T12:01:20Z      19  orders
    order-2    failed                            2026-03-01T12:05:00Z  2026-03-01T12:00:33Z      17  orders
    order-1    completed                         2026-03-01T12:05:00Z  2026-03-01T12:00:00Z      17  orders
    ");
}

#[test]
fn a_run_that_failed_shows_its_work_and_where_its_time_went() {
    assert_snapshot!(look(&["show", "order-2"]), @r#"
    order-2
      workflow   orders, version 1
      status     failed
      driven by  nobody now
      created    9m 26s ago (2026-03-01T12:00:33Z)
      updated    4m 59s ago (2026-03-01T12:05:00Z)
      events     17

    Inputs
      0  9m 26s ago  key order  {"items":3,"outages":3}

      WORK    STATE      ATTEMPTS  TOOK   LAST FAILURE
      price   completed  1         400ms
      charge  failed     3         4.5s   [503] the bank does not answer

    Timeline
              0s      2s      4s      6s      8s      10s     12s     14s     16s
              ├───────┼───────┼───────┼───────┼───────┼───────┼───────┼───────┼────
      price   ██✓
      charge    ▓▓▓▓▓▓╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▓▓▓▓▓▓╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▓▓▓▓▓▓✗
      █ attempt   ▓ failed attempt   ╌ backoff

    Where the time went
      attempt                   400ms    2%
      failed attempt             4.5s   27%
      backoff                     12s   71%
      in all                    16.9s
    "#);
}

#[test]
fn a_run_that_waits_shows_what_it_waits_for() {
    assert_snapshot!(look(&["show", "refund-1"]), @"
    refund-1
      workflow   refunds, version 1
      status     waiting
      why        due in 5m
      driven by  nobody now
      created    5m ago (2026-03-01T12:05:00Z)
      updated    4m 59s ago (2026-03-01T12:05:00Z)
      events     5

    Inputs
      0  5m ago  9

      WORK    STATE    ATTEMPTS  TOOK   LAST FAILURE
      refund  waiting  1         700ms  [closed] the bank is closed

    Timeline
              0s           1m           2m           3m           4m
              ├────────────┼────────────┼────────────┼────────────┼────────────┼
      refund  ▓╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
      ▓ failed attempt   ╌ backoff

    Where the time went
      failed attempt            700ms    0%
      backoff                  4m 59s  100%
      in all                       5m
    ");
}

#[test]
fn the_items_of_a_map_are_told_apart() {
    assert_snapshot!(look(&["show", "picking-1"]), @"
    picking-1
      workflow   picking, version 1
      status     completed
      why        1 failure was skipped
      driven by  nobody now
      created    7m 59s ago (2026-03-01T12:02:00Z)
      updated    4m 59s ago (2026-03-01T12:05:00Z)
      events     34

    Inputs
      0  7m 59s ago  key order  [4,-1,7]

      WORK      STATE      ATTEMPTS  TOOK   LAST FAILURE
      pick 0.0  completed  1         300ms
      pick 0.1  skipped    1         600ms  there is no such shelf
      pick 0.2  completed  1         900ms
      basket    completed  1         0s

    Timeline
                0s     0.1s   0.2s   0.3s   0.4s   0.5s   0.6s   0.7s   0.8s
                ├──────┼──────┼──────┼──────┼──────┼──────┼──────┼──────┼──────┼
      pick 0.0  █████████████████████✓
      pick 0.1  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓✗
      pick 0.2  ███████████████████████████████████████████████████████████████✓
      basket                                                                   █✓
      █ attempt   ▓ failed attempt

    Where the time went
      attempt                   900ms  100%  (1.2s over all pieces)
      failed attempt               0s    0%  (600ms over all pieces)
      in all                    900ms
    ");
}

#[test]
fn a_terminal_without_unicode_gets_letters() {
    let arguments = ["runs", "show", "order-3", "--store", "orders.db"];
    let ran = home().run_under(&[("TIDEWHEEL_NOW", NOW), ("LANG", "C"), ("COLUMNS", "60")], &arguments);
    let (_, bars) = ran.out.split_once("Timeline\n").expect("there is one");
    assert_snapshot!(bars, @"
              0s   1s   2s   3s   4s   5s   6s   7s   8s   9s
              +----+----+----+----+----+----+----+----+----+--
      price   ##+
      charge    xxxxxxxx....................#######+
      ship                                         ##########+
      # attempt   x failed attempt   . backoff

    Where the time went
      attempt                    3.9s   41%
      failed attempt             1.5s   16%
      backoff                      4s   43%
      in all                     9.4s
    ");
}

#[test]
fn the_beginning_of_an_id_is_enough_where_only_one_run_begins_so() {
    assert!(look(&["show", "ref"]).out.starts_with("refund-1\n"));
    assert_snapshot!(runs(&home(), &["show", "order-"]), @"
    --- stderr
    error[TW0014]: Several runs begin with `order-`: `order-6`, `order-5`, `order-4`, `order-3`, `order-2`, `order-1`.
    hint: Write more of the id, so that only one begins so.
    --- exit code 1
    ");
    assert_snapshot!(runs(&home(), &["show", ""]), @"
    --- stderr
    error[TW0013]: There is no run `` in `orders.db`, and none that begins so.
    hint: `tidewheel runs list --store orders.db` lists the runs.
    --- exit code 1
    ");
}

#[test]
fn every_event_is_a_line() {
    assert_snapshot!(look(&["events", "order-2"]), @r#"
     0     +0s  fact_produced        input  {"items":3,"outages":3}
     1     +0s  input_accepted       input=0  key=order
     2     +0s  runnable_activated   price #0  phase=work
     3     +0s  runnable_dispatched  price #0  attempt=0
     4  +400ms  runnable_completed   price #0  attempts=1
     5  +400ms  fact_produced        price  {"items":3,"outages":3}
     6  +400ms  activation_consumed  price #0
     7  +400ms  runnable_activated   charge #1  phase=work
     8  +400ms  runnable_dispatched  charge #1  attempt=0
     9   +1.9s  attempt_failed       charge #1  [503] the bank does not answer  RET…
    10   +5.9s  runnable_dispatched  charge #1  attempt=1
    11   +7.4s  attempt_failed       charge #1  [503] the bank does not answer  RET…
    12  +15.4s  runnable_dispatched  charge #1  attempt=2
    13  +16.9s  runnable_failed      charge #1  attempts=3  [503] the bank does not…
    14  +16.9s  activation_consumed  charge #1
    15  +16.9s  node_settled         charge  why=failed
    16  +16.9s  node_settled         ship  why=upstream_failed
    "#);
}

#[test]
fn events_are_listed_from_a_number_on() {
    assert_snapshot!(look(&["events", "order-2", "--from", "15", "--utc"]), @"
    15  2026-03-01T12:00:50.8Z  node_settled  charge  why=failed
    16  2026-03-01T12:00:50.8Z  node_settled  ship  why=upstream_failed
    ");
    assert_eq!(look(&["events", "order-2", "--from", "99"]).out, "");
    let events = json(&["events", "order-2", "--from", "16"]);
    assert_eq!(fields(&events), "events run version");
    assert_snapshot!(events["events"][0], @r#"{"event":{"node_settled":{"lineage":0,"node":"ship","why":"upstream_failed"}},"number":16,"stored_at":"2026-03-01T12:00:50.8Z"}"#);
}

#[test]
fn results_are_the_values_of_the_components() {
    assert_snapshot!(look(&["results", "picking-1"]), @"
    pick    input 0, item 0  4
    pick    input 0, item 2  7
    basket  input 0          11
    ");
    assert_snapshot!(look(&["results", "order-1", "ship"]), @r#""parcel for 15 cents""#);
    assert_snapshot!(json(&["results", "order-1", "ship"])["results"], @r#"{"ship":[{"at":"2026-03-01T12:00:03.9Z","input":0,"items":[],"value":"parcel for 15 cents"}]}"#);
    assert_eq!(look(&["results", "order-6"]).out, "order-6 has no results yet.\n");
}

#[test]
fn a_component_without_a_result_says_why() {
    for (component, why) in [
        ("ship", "has no result: something before it failed."),
        ("charge", "has no result: it failed: [503] the bank does not answer."),
    ] {
        let ran = runs(&home(), &["results", "order-2", component]);
        assert!(ran.code == Some(1) && ran.err.contains(why), "{ran}");
    }
    assert_snapshot!(runs(&home(), &["results", "order-6", "ship"]), @"
    --- stderr
    error[TW0016]: `ship` of run `order-6` has no result: it gave nothing yet.
    hint: `tidewheel runs explain order-6 ship --store orders.db` says more.
    --- exit code 1
    ");
    assert_snapshot!(runs(&home(), &["results", "order-6", "fly"]), @"
    --- stderr
    error[TW0016]: Run `order-6` has no component `fly`.
    hint: It has `charge`, `price`, `ship`.
    --- exit code 1
    ");
}

#[test]
fn a_failure_is_explained_with_each_decision_and_its_reason() {
    assert_snapshot!(look(&["explain", "order-2"]), @"
    Run order-2 of workflow orders failed: nothing is left to do, and something
    failed.
    Of its pieces of work, 1 completed, 1 failed.
    Next: nothing by itself; `tidewheel runs retry order-2 --store orders.db` tries
    what failed again.

    charge (input 0)
      The first attempt failed after 1.5s: [503] the bank does not answer. Retry 1
      of 2 came 4s later (SCHED_RETRY_SCHEDULED).
      Retry 1 failed after 1.5s: [503] the bank does not answer. Retry 2 of 2 came
      8s later (SCHED_RETRY_SCHEDULED).
      Retry 2 failed after 1.5s: [503] the bank does not answer. No other attempt
      followed: all 2 retries that its policy allows were made
      (SCHED_MAX_RETRIES_REACHED).
      It failed for good 9m 9s ago (2026-03-01T12:00:50Z).

    Nothing came from ship: something before it failed.
    ");
}

#[test]
fn a_run_that_waits_for_a_retry_is_explained_with_the_time_of_the_retry() {
    assert_snapshot!(look(&["explain", "refund-1"]), @"
    Run refund-1 of workflow refunds is waiting: all that is left waits for a time
    or for somebody.
    Of its pieces of work, 1 waits for a retry.
    Next: it goes on in 5m (2026-03-01T12:15:00Z).

    refund (input 0)
      The first attempt failed after 700ms: [closed] the bank is closed. Retry 1 of
      5 comes 10m later (SCHED_RETRY_SCHEDULED).
      Next: retry 1 is due in 5m (2026-03-01T12:15:00Z).
    ");
}

#[test]
fn what_was_due_in_the_past_waits_for_somebody() {
    let arguments = ["runs", "explain", "refund-1", "--store", "orders.db"];
    let ran = home().run_under(&[("TIDEWHEEL_NOW", "2026-03-01T12:20:00Z")], &arguments).succeeded();
    assert_snapshot!(ran, @"
    Run refund-1 of workflow refunds is waiting: all that is left waits for a time
    or for somebody.
    Of its pieces of work, 1 waits for a retry.
    Next: the next process that knows workflow refunds version 1 takes it up; it was
    due 4m 59s ago (2026-03-01T12:15:00Z).

    refund (input 0)
      The first attempt failed after 700ms: [closed] the bank is closed. Retry 1 of
      5 comes 10m later (SCHED_RETRY_SCHEDULED).
      Next: retry 1 was due 4m 59s ago (2026-03-01T12:15:00Z), and starts as soon as
      somebody takes it up.
    ");
}

#[test]
fn every_other_state_is_explained() {
    assert_snapshot!(look(&["explain", "order-1"]), @"
    Run order-1 of workflow orders completed: nothing is left to do, and nothing
    failed.
    Of its pieces of work, 3 completed.
    ");
    assert_snapshot!(look(&["explain", "order-4"]), @"
    Run order-4 of workflow orders is paused: somebody paused it, so no new work
    starts.
    Of its pieces of work, 1 has not begun.
    Next: `tidewheel runs resume order-4 --store orders.db` lets it go on.

    price (input 0)
      It has not begun, and has been in the queue for 7m 58s.
    ");
    assert_snapshot!(look(&["explain", "order-5"]), @"
    Run order-5 of workflow orders was cancelled: somebody cancelled it, and it
    takes no input any more.
    ");
    assert_snapshot!(look(&["explain", "order-6"]), @"
    Run order-6 of workflow orders is waiting: it had no input yet.
    Next: an input or a signal makes it go on.
    ");
    assert_snapshot!(look(&["explain", "picking-1"]), @"
    Run picking-1 of workflow picking completed: nothing is left to do, and what
    failed was skipped.
    The reason: 1 failure was skipped.
    Of its pieces of work, 3 completed, 1 failed and was skipped.

    pick (input 0, item 1)
      The first attempt failed after 600ms: there is no such shelf. No other attempt
      followed: its policy allows no retries (SCHED_MAX_RETRIES_REACHED).
      It was skipped 7m 59s ago (2026-03-01T12:02:00Z): its policy lets the failure
      pass.
    ");
}

#[test]
fn one_component_is_explained_by_itself() {
    assert_snapshot!(look(&["explain", "order-3", "price"]), @"
    Run order-3 of workflow orders completed: nothing is left to do, and nothing
    failed.
    Of its pieces of work, 3 completed.

    price (input 0)
      It completed 8m 38s ago (2026-03-01T12:01:21Z).
    ");
    assert_snapshot!(look(&["explain", "order-2", "ship"]), @"
    Run order-2 of workflow orders failed: nothing is left to do, and something
    failed.
    Of its pieces of work, 1 completed, 1 failed.
    Next: nothing by itself; `tidewheel runs retry order-2 --store orders.db` tries
    what failed again.

    Nothing came from ship: something before it failed.
    ");
    assert_snapshot!(look(&["explain", "order-4", "ship"]), @"
    Run order-4 of workflow orders is paused: somebody paused it, so no new work
    starts.
    Of its pieces of work, 1 has not begun.
    Next: `tidewheel runs resume order-4 --store orders.db` lets it go on.

    ship was not reached yet: what comes before it gave nothing so far.
    ");
    assert_snapshot!(runs(&home(), &["explain", "order-4", "fly"]), @"
    --- stderr
    error[TW0016]: Run `order-4` has no component `fly`.
    hint: It has `charge`, `price`, `ship`.
    --- exit code 1
    ");
}

#[test]
fn programs_get_everything_with_instants_and_ids() {
    let shown = json(&["show", "order-2"]);
    assert_eq!(fields(&shown), "asked inputs run skipped_failures time version work");
    assert_snapshot!(shown["run"], @r#"{"created_at":"2026-03-01T12:00:33.9Z","driven":false,"events":17,"id":"order-2","reason":null,"status":"failed","updated_at":"2026-03-01T12:05:00.7Z","wake_at":null,"workflow":"orders","workflow_version":1}"#);
    assert_snapshot!(shown["work"][1]["attempts"][2], @r#"{"action":"FAIL","decided_at":"2026-03-01T12:00:50.8Z","dispatched_at":["2026-03-01T12:00:49.3Z"],"due_at":null,"failure":"[503] the bank does not answer","number":2,"reason_code":"SCHED_MAX_RETRIES_REACHED","round":0}"#);
    assert_snapshot!(fields(&shown["work"][1]), @"attempts component due_at ended_at failure held id input is_look items state stretches undoes woken_at");
    assert!(shown["work"][1]["id"].as_str().expect("it has an id").starts_with("work_"));
    assert_snapshot!(shown["time"], @r#"{"idle_ns":0,"rows":[{"doing":"attempt","sum_ns":400000000,"wall_ns":400000000},{"doing":"failed","sum_ns":4500000000,"wall_ns":4500000000},{"doing":"backoff","sum_ns":12000000000,"wall_ns":12000000000}],"total_ns":16900000000}"#);
    let explained = json(&["explain", "refund-1"]);
    assert_eq!(fields(&explained), "asked run sentences version work");
    assert_eq!(explained["work"][0]["work"]["due_at"], "2026-03-01T12:15:00.7Z");
    assert_eq!(fields(&json(&["dead-letters"])["letters"][0]), "at body component id run work");
    assert_eq!(fields(&json(&["list"])["runs"][0]), fields(&shown["run"]));
}

#[test]
fn dead_letters_are_listed_with_all_that_they_hold() {
    assert_snapshot!(look(&["dead-letters"]), @r#"
    1  charge of order-2
      put aside  9m 9s ago (2026-03-01T12:00:50Z)
      attempts   3
      failure    [503] the bank does not answer
      input      {"items":3,"outages":3}
    "#);
    assert_eq!(look(&["dead-letters", "order-2"]).out, look(&["dead-letters"]).out);
    assert_eq!(look(&["dead-letters", "order-1"]).out, "There are no dead letters.\n");
}

/// Whoever only looks is no owner, writes no row and no event, and makes no folder for those who write.
#[test]
fn looking_changes_nothing() {
    let home = home();
    let before = contents(home.path());
    for arguments in LOOKS {
        runs(&home, arguments).succeeded();
    }
    let after = contents(home.path());
    for file in before {
        assert!(after.contains(&file), "{} was changed", file.0.display());
    }
    assert!(!home.path().join("orders.db-tidewheel").exists());
}

#[test]
fn looking_at_what_is_no_store_creates_and_changes_nothing() {
    let home = home();
    home.file("empty.db", "")
        .file("text.db", "not a database, but long enough to look like one\n".repeat(99));
    foreign_database(&home.path().join("other.db"));
    for name in ["none.db", "empty.db", "text.db", "other.db", "newer.db", "damaged.db/x", "."] {
        let before = fs::read(home.path().join(name)).ok();
        for arguments in LOOKS.iter().chain([&["cancel", "order-1"][..]].iter()) {
            let ran = home.run(&[&["runs"], *arguments, &["--store", name]].concat());
            assert!(
                ran.code == Some(1) && ran.out.is_empty() && ran.err.contains("error[TW00"),
                "{name}: {ran}"
            );
        }
        assert_eq!(fs::read(home.path().join(name)).ok(), before, "{name}");
    }
    assert_snapshot!(home.run(&["runs", "list", "--store", "empty.db"]), @"
    --- stderr
    error[TW0010]: `empty.db` is no store of Tidewheel: it is empty.
    --- exit code 1
    ");
    assert_snapshot!(home.run(&["runs", "list", "--store", "other.db"]), @"
    --- stderr
    error[TW0010]: `other.db` is no store of Tidewheel: the database has tables, and none of Tidewheel's.
    --- exit code 1
    ");
    assert_snapshot!(home.run(&["runs", "list", "--store", "damaged.db/x"]), @"
    --- stderr
    error[TW0012]: The store `damaged.db/x` cannot be used: Not a directory.
    hint: Check the name: it is the file that your program gives to `Runner::open`.
    --- exit code 1
    ");
}

/// Makes a database of something else.
fn foreign_database(path: &std::path::Path) {
    let connection = rusqlite::Connection::open(path).expect("it can be made");
    connection.execute_batch("CREATE TABLE songs (name TEXT)").expect("it can be written");
}

#[test]
fn a_store_that_somebody_holds_for_too_long_is_told() {
    let home = home();
    let connection = rusqlite::Connection::open(home.path().join("orders.db")).expect("it opens");
    connection
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .expect("nobody else is there");
    let ran = runs(&home, &["list"]);
    assert_snapshot!(ran, @"
    --- stderr
    error[TW0012]: The store `orders.db` cannot be used: somebody else holds it: database is locked.
    hint: Try again when it is free; `fuser orders.db` names the processes that have it open.
    --- exit code 1
    ");
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let home = home();
    for store in ["orders.db", "strange.db"] {
        let listed = home.run(&["runs", "list", "--format", "json", "--store", store]).succeeded();
        let listed: Value = serde_json::from_str(&listed.out).expect("it is JSON");
        let first = listed["runs"][0]["id"].as_str().expect("there is a run").to_owned();
        for arguments in
            [&["list"][..], &["list", "--utc"], &["show", &first], &["events", &first], &["results", &first]]
        {
            for width in ["60", "61", "79", "100", "137", "200"] {
                let all = [&["runs"], arguments, &["--store", store]].concat();
                let ran = home.run_under(&[("TIDEWHEEL_NOW", NOW), ("COLUMNS", width)], &all).succeeded();
                let most: usize = width.parse().expect("it is a number");
                for line in ran.lines() {
                    assert!(columns(line) <= most, "{width}: {line}");
                }
            }
        }
    }
}

/// Counts columns plainly: what the tests write has characters of one column and of two.
fn columns(line: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{3000}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
    line.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

#[test]
fn what_steers_a_terminal_does_not_get_there() {
    let home = home();
    for run in ["evil-1", "evil-2"] {
        for arguments in [
            &["list"][..],
            &["list", "--prefix", "\u{1b}[31m"],
            &["show", run],
            &["show", "\u{1b}[31m"],
            &["show", "evil"],
            &["events", run],
            &["results", run],
            &["results", run, "step-\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}"],
            &["explain", run],
            &["dead-letters"],
            &["dead-letters", "--format", "json"],
            &["show", run, "--format", "json"],
            &["gc", "--older-than", "0s", "--dry-run"],
            &["cancel", run],
            &["signal", "注", "\u{1b}[31m", "1"],
            &["complete", "\u{1b}[31m"],
            &["retry", run, "--no-wait"],
        ] {
            let all = [&["runs"], arguments, &["--store", "strange.db"]].concat();
            let ran = home.run_under(&[("CLICOLOR_FORCE", "1")], &all);
            let plain = crate::errors::without_styles(&format!("{}{}", ran.out, ran.err));
            let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            let is_json = arguments.contains(&"json");
            assert!(is_json || !plain.contains(harmful), "{arguments:?}: {plain:?}");
            assert!(!plain.contains(|c: char| c != '\n' && c.is_control()), "{arguments:?}: {plain:?}");
        }
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let home = home();
    let arguments = ["runs", "show", "order-2", "--store", "orders.db"];
    let plain = home.run(&arguments).succeeded();
    assert!(!plain.out.contains('\u{1b}'));
    let coloured = home.run_under(&[("CLICOLOR_FORCE", "1")], &arguments).succeeded();
    assert!(coloured.out.contains("\u{1b}[1m"));
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let home = home();
    for arguments in LOOKS {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let mut command = home.command(&[&["runs"], arguments, &["--store", "orders.db"]].concat());
        command.stdout(writer);
        Ran::of(command, b"").succeeded();
    }
}

#[test]
fn old_runs_are_forgotten_and_others_stay() {
    let home = home();
    assert_snapshot!(runs(&home, &["gc", "--older-than", "5m", "--dry-run"]).succeeded(), @"
      order-5  cancelled 7m 58s ago
    1 run would be deleted.
    ");
    assert_eq!(look_at(&home).split(' ').count(), 8, "a dry run deletes nothing");
    assert_snapshot!(runs(&home, &["gc", "--older-than", "4m", "--status", "completed,failed"]).succeeded(), @"
    4 runs were deleted.
    1 dead letter of theirs went with them.
    ");
    assert_eq!(look_at(&home), "refund-1 order-6 order-5 order-4");
    assert_eq!(runs(&home, &["show", "order-1"]).code, Some(1));
    assert_snapshot!(runs(&home, &["gc", "--older-than", "1d", "--format", "json"]).succeeded(), @r#"
    {
      "version": 1,
      "dry_run": false,
      "deleted": [],
      "kept": [],
      "forgotten_keys": 0,
      "dead_letters": 0
    }
    "#);
    assert_snapshot!(runs(&home, &["gc"]), @"
    --- stderr
    error[TW0030]: With --store, --older-than SPAN says which runs are old.
    --- exit code 2
    ");
    assert_snapshot!(runs(&home, &["gc", "--older-than", "1d", "--status", "paused"]), @"
    --- stderr
    error: invalid value 'paused' for '--status <STATUS>'
      [possible values: completed, failed, cancelled]

    For more information, try '--help'.
    --- exit code 2
    ");
}

fn look_at(home: &crate::home::Home) -> String {
    let listed = runs(home, &["list", "--format", "json"]).succeeded();
    let listed: Value = serde_json::from_str(&listed.out).expect("it is JSON");
    let rows = listed["runs"].as_array().expect("there are rows").iter();
    rows.map(|row| row["id"].as_str().expect("it has an id").to_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_timeline_of_a_run_of_a_program_is_drawn_alike() {
    let shown = look(&["show", "order-2"]).out;
    let told = look(&["timeline", "order-2"]).out;
    // Where the time went is the same, whoever asks.
    let spent = |text: &str| text.split("Where the time went").nth(1).map(str::to_owned);
    assert_eq!(spent(&told), spent(&shown), "{told}");
    assert!(!told.contains("Critical path"), "nobody knows what came after what: {told}");
    let svg = look(&["timeline", "order-2", "--format", "svg"]).out;
    assert!(svg.starts_with("<svg ") && svg.contains("class=\"attempt\""), "{svg}");
    let form = json(&["timeline", "order-2"]);
    assert_eq!(fields(&form), "from run_id status time to version work workflow");
    assert_eq!((&form["run_id"], &form["status"]), (&"order-2".into(), &"failed".into()));
}

/// A completed run was shown as running, and no command said that half of its events are missing.
#[test]
fn a_store_that_misses_commits_is_shown_with_a_warning_by_every_command() {
    let home = Home::new();
    shop::lose_commits(&home);
    let commands: [&[&str]; 6] = [
        &["list"],
        &["list", "--format", "json"],
        &["show", "here"],
        &["explain", "here"],
        // The first one that opens it to write.
        &["cancel", "here"],
        &["list"],
    ];
    for command in commands {
        let ran = home.run(&[&["runs"], command, &["--store", "damaged.db"]].concat());
        assert_eq!(ran.code, Some(0), "{command:?}: {ran}");
        assert!(ran.err.contains("warning: The store `damaged.db` is damaged: "), "{command:?}: {ran}");
        assert!(ran.err.contains("run `lost` is not there"), "{command:?}: {ran}");
        assert!(ran.err.contains("hint: `tidewheel doctor --store damaged.db`"), "{command:?}: {ran}");
    }
    home.run(&["runs", "list", "--store", "whole.db"]).succeeded();
}
