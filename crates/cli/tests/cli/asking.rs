//! `tidewheel runs cancel|pause|resume|stop|retry|signal|complete|fail`: what is asked of runs, by rows in their store.

use std::path::Path;
use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::Value;
use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::policy::{ExecutionMode, Failure, OnFailure, Policy, default, name};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, compensation, map, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Append, Batch, Claim, Guard, RealClock, Sqlite, Status, Store as _, Wanted};
use tokio::sync::Semaphore;

use crate::home::{Home, Ran};
use crate::shop::{home, runs};

/// Returns what was asked of the runs of a store and is not handled yet.
fn rows(home: &Home, store: &str) -> Vec<String> {
    let connection = rusqlite::Connection::open(home.path().join(store)).expect("it opens");
    let all =
        "SELECT runs.id || ' ' || kind || ' ' || body FROM commands JOIN runs ON runs.key = commands.run
        ORDER BY commands.id";
    let mut statement = connection.prepare(all).expect("the tables are there");
    let rows = statement.query_map([], |row| row.get(0)).expect("it can be read");
    rows.collect::<Result<_, _>>().expect("it can be read")
}

/// Returns the id of the first piece of work of a component.
fn work(home: &Home, run: &str, component: &str) -> String {
    let shown = runs(home, &["show", run, "--format", "json"]).succeeded();
    let shown: Value = serde_json::from_str(&shown.out).expect("it is JSON");
    let works = shown["work"].as_array().expect("there is work");
    let work = works.iter().find(|work| work["component"] == component).expect("it was woken");
    work["id"].as_str().expect("it has an id").to_owned()
}

#[test]
fn a_run_that_nobody_drives_gets_the_row_and_its_next_owner_obeys() {
    let home = home();
    assert_snapshot!(runs(&home, &["pause", "refund-1", "--no-wait"]).succeeded(), @"
    refund-1 was asked to pause. No process drives it now; the next one that knows
    workflow refunds version 1 will do so.
    ");
    assert_snapshot!(runs(&home, &["resume", "refund-1", "--no-wait", "--format", "json"]).succeeded(), @r#"
    {
      "version": 1,
      "run": "refund-1",
      "asked": "resume",
      "count": 1,
      "handled": false,
      "already": false,
      "refused": [],
      "driven": false,
      "status": "waiting"
    }
    "#);
    let ran = runs(&home, &["cancel", "refund-1", "--wait", "10ms"]).succeeded();
    assert_snapshot!(ran, @"
    refund-1 was asked to cancel. No process drives it now; the next one that knows
    workflow refunds version 1 will do so; none came within 10ms.
    ");
    let asked = ["refund-1 pause", "refund-1 resume", "refund-1 cancel"];
    let rows = rows(&home, "orders.db");
    assert!(rows.len() == 3 && rows.iter().zip(asked).all(|(row, asked)| row.starts_with(asked)), "{rows:?}");
    // Behind the cancel nothing else would have an effect.
    let refused = runs(&home, &["pause", "refund-1", "--no-wait"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert_snapshot!(refused.err, @"error[TW0017]: Run `refund-1` is waiting: a command that was sent before cancels it.");
    let told = runs(&home, &["explain", "refund-1"]).succeeded().out;
    for word in ["asked it to cancel", "asked it to pause", "asked it to resume"] {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn what_would_change_nothing_is_refused_and_not_written() {
    let home = home();
    let mut told = String::new();
    for arguments in [
        &["cancel", "order-1"][..],
        &["cancel", "order-2", "charge"],
        &["cancel", "order-2", "fly"],
        &["cancel", "order-2", "work_00000000000000000000000000000000"],
        &["pause", "order-1"],
        &["resume", "order-2"],
        &["stop", "order-1"],
        &["retry", "order-1"],
        &["retry", "order-2", "price"],
        &["retry", "order-5"],
        &["signal", "order-6", "fly", "1"],
        &["signal", "order-5", "price", "1"],
        &["complete", "order-1", "1"],
        &["complete", "order-9:work_00000000000000000000000000000000:0", "1"],
        &["dead-letters", "retry", "9"],
    ] {
        let ran = runs(&home, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{arguments:?}: {ran}");
        told.push_str(ran.err.lines().next().unwrap_or_default());
        told.push('\n');
    }
    assert_snapshot!(told, @"
    error[TW0017]: Run `order-1` is completed: nothing is left to do.
    error[TW0017]: `charge` of run `order-2` cannot be asked this: nothing of it is left to cancel.
    error[TW0016]: Run `order-2` has no component `fly`.
    error[TW0016]: Run `order-2` has no work `work_00000000000000000000000000000000`.
    error[TW0017]: Run `order-1` is completed: nothing is left to do.
    error[TW0017]: Run `order-2` is failed: nothing is left to do.
    error[TW0017]: Run `order-1` is completed: nothing is left to do.
    error[TW0017]: Run `order-1` is completed: only work that failed can be tried again.
    error[TW0017]: `price` of run `order-2` cannot be asked this: only work that failed can be tried again.
    error[TW0017]: Run `order-5` is cancelled: it was cancelled, and goes on no more.
    error[TW0016]: Run `order-6` has no component `fly`.
    error[TW0017]: Run `order-5` is cancelled: it was cancelled, and goes on no more.
    error[TW0017]: `order-1` is no token: one is `run:work:attempt`, as the work was given it.
    error[TW0013]: There is no run `order-9` in `orders.db`, and none that begins so.
    error[TW0016]: There is no dead letter 9 in `orders.db`.
    ");
    assert!(rows(&home, "orders.db").is_empty());
}

#[test]
fn what_is_so_already_succeeds_says_so_and_writes_nothing() {
    let home = home();
    let mut told = String::new();
    for arguments in [["cancel", "order-5"], ["pause", "order-4"], ["resume", "refund-1"]] {
        told.push_str(&runs(&home, &arguments).succeeded().out);
    }
    assert_snapshot!(told, @"
    order-5 is cancelled. It is so already, so nothing was asked of it.
    order-4 is paused. It is so already, so nothing was asked of it.
    refund-1 is waiting. It goes on already, so nothing was asked of it.
    ");
    assert_snapshot!(runs(&home, &["cancel", "order-5", "--format", "json"]).succeeded(), @r#"
    {
      "version": 1,
      "run": "order-5",
      "asked": "cancel",
      "count": 1,
      "handled": true,
      "already": true,
      "refused": [],
      "driven": false,
      "status": "cancelled"
    }
    "#);
    assert!(rows(&home, "orders.db").is_empty());
}

/// Makes a store with a run in a status that no process drives.
async fn standing(home: &Home, status: Status) {
    let path = home.path().join("orders.db");
    let workflow = |name: &str| {
        let work = |x: i64| async move {
            match x {
                0 => std::future::pending().await,
                x if x < 0 => Err(Failure::new("no")),
                x => Ok(x),
            }
        };
        Workflow::new(name).add(step("s", work)).build().expect("a sound workflow")
    };
    let options = RunnerOptions::new().shutdown_grace(Span::ZERO);
    let runner = Runner::open_with(&path, options).await.expect("a runner");
    let run = runner.start("r", &workflow("w")).await.expect("a run");
    match status {
        Status::Waiting => {}
        Status::Completed => run.input(1_i64).await.expect("an input"),
        Status::Failed => run.input(-1_i64).await.expect("an input"),
        Status::Running | Status::Paused | Status::Stopped | Status::Parked | Status::Cancelled => {
            run.input(0_i64).await.expect("an input");
        }
    }
    match status {
        Status::Completed | Status::Failed => drop(run.wait().await.expect("an end")),
        Status::Paused => drop(run.pause().await.expect("a pause")),
        Status::Stopped | Status::Parked => drop(run.stop().await.expect("a stop")),
        Status::Cancelled => drop(run.cancel().await.expect("a cancel")),
        Status::Running | Status::Waiting => {}
    }
    runner.shutdown().await;
    if status == Status::Parked {
        let store = Sqlite::open(&path, Arc::new(RealClock::new())).expect("a store");
        let owner = store.join(Span::from_secs(60)).await.expect("an owner").owner;
        let claim = Claim { owner, wanted: Wanted::Run("r".into()) };
        let (lease, record, _) = store.claim(claim).await.expect("a claim").runs.swap_remove(0);
        let parked = Append {
            run: "r".into(),
            guard: Guard::Held { key: lease.key, fence: lease.fence },
            expected: record.version,
            events: Batch::new(),
            status,
            reason: Some("it kept going wrong".to_owned()),
            wake_at: None,
            handled: Vec::new(),
            letters: Vec::new(),
            checkpoint: None,
            release: true,
        };
        store.append(vec![parked]).await.expect("an answer").swap_remove(0).expect("it is taken");
        store.leave(owner).await.expect("an answer");
        store.close().await;
    }
}

#[tokio::test]
async fn every_command_does_in_every_status_what_the_table_says() {
    for status in Status::ALL {
        let home = Home::new();
        standing(&home, status).await;
        for command in [
            RunCommand::Signal,
            RunCommand::Cancel,
            RunCommand::Pause,
            RunCommand::Resume,
            RunCommand::Stop,
            RunCommand::Retry,
        ] {
            let name = command.name();
            let arguments = match command {
                RunCommand::Signal => vec![name, "r", "s", "1"],
                _ => vec![name, "r"],
            };
            let ran = runs(&home, &[&arguments[..], &["--no-wait"]].concat());
            let written = rows(&home, "orders.db");
            let place = format!("{command} of a run that is {status}: {ran}");
            match command.effect_on_run(status) {
                Effect::Acts if command == RunCommand::Retry && status != Status::Failed => {
                    assert!(ran.err.contains("only work that failed can be tried again"), "{place}");
                }
                Effect::Acts => assert_eq!((ran.code, written.len()), (Some(0), 1), "{place}"),
                Effect::AlreadySo => {
                    assert_eq!((ran.code, written.len()), (Some(0), 0), "{place}");
                    assert!(ran.out.contains(&format!("r is {status}.")), "{place}");
                }
                Effect::Refused(why) => {
                    assert_eq!((ran.code, written.len()), (Some(1), 0), "{place}");
                    let told = format!("error[TW0017]: Run `r` is {status}: {why}.");
                    assert!(ran.err.starts_with(&told), "{place}");
                }
            }
            let connection = rusqlite::Connection::open(home.path().join("orders.db")).expect("it opens");
            connection.execute("DELETE FROM commands", []).expect("it can be written");
        }
    }
}

#[test]
fn work_that_is_over_takes_no_result() {
    let home = home();
    let token = format!("order-2:{}:2", work(&home, "order-2", "charge"));
    assert_snapshot!(runs(&home, &["complete", &token]), @"
    --- stderr
    error[TW0017]: `charge` of run `order-2` is failed: nobody waits for this attempt any more.
    --- exit code 1
    ");
}

#[test]
fn values_are_json() {
    assert_snapshot!(runs(&home(), &["signal", "order-6", "price", "{no"]), @"
    --- stderr
    error: invalid value '{no' for '<VALUE>': is no JSON: key must be a string at line 1 column 2; a text stands in quotes of its own

    For more information, try '--help'.
    --- exit code 2
    ");
}

#[test]
fn rows_have_the_forms_that_owners_read() {
    let home = home();
    let (refund, charge) = (work(&home, "refund-1", "refund"), work(&home, "order-2", "charge"));
    for arguments in [
        &["signal", "order-6", "price", r#"{"items": 1, "outages": 0}"#][..],
        &["retry", "order-2"],
        &["retry", "order-2", "charge"],
        &["retry", "order-2", &charge],
        &["cancel", "refund-1", "refund"],
        &["dead-letters", "retry", "1"],
        &["dead-letters", "retry", "--all"],
    ] {
        runs(&home, &[arguments, &["--no-wait"]].concat()).succeeded();
    }
    let told = rows(&home, "orders.db").join("\n").replace(&refund, "REFUND").replace(&charge, "CHARGE");
    assert_snapshot!(told, @r#"
    order-6 signal {"signal":{"component":"price","value":{"items": 1, "outages": 0}}}
    order-2 retry {"retry":{"work":null}}
    order-2 retry {"retry":{"work":"CHARGE"}}
    order-2 retry {"retry":{"work":"CHARGE"}}
    refund-1 cancel_work {"cancel_work":{"work":"REFUND"}}
    order-2 retry {"retry":{"work":"CHARGE"}}
    order-2 retry {"retry":{"work":"CHARGE"}}
    "#);
    // Nobody took it, so the letter is still there.
    assert!(runs(&home, &["dead-letters"]).out.contains("charge of order-2"));
}

/// A run that is driven in this process, whose work goes on when it may.
struct Live {
    home: Home,
    runner: Runner,
    gate: Arc<Semaphore>,
}

impl Live {
    async fn new() -> Self {
        let home = Home::new();
        let runner = open(&home.path().join("orders.db")).await;
        Self { home, runner, gate: Arc::new(Semaphore::new(0)) }
    }

    fn workflow(&self) -> Workflow {
        let gate = Arc::clone(&self.gate);
        let pack = move |items: u32| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("it is never closed").forget();
                items
            }
        };
        let built =
            Workflow::new("live").add(step("pack", pack)).add(step("note", |text: Value| text)).build();
        built.expect("a sound workflow")
    }

    /// Returns the token of the work that somebody outside ends, as soon as there is one.
    async fn token(&self) -> String {
        loop {
            let told =
                self.home.run(&["runs", "explain", "order-7", "--format", "json", "--store", "orders.db"]);
            let told: Value = serde_json::from_str(&told.succeeded().out).expect("it is JSON");
            let works = told["work"].as_array().expect("there is work").iter();
            let held = works.map(|work| &work["work"]["held"]).find(|held| held["why"] == "external");
            if let Some(token) = held.and_then(|held| held["on"].as_str()) {
                return token.to_owned();
            }
            tokio::task::yield_now().await;
        }
    }

    /// Runs the command while this process goes on.
    async fn ask(&self, arguments: &[&str]) -> Ran {
        let command =
            self.home.command(&[&["runs"], arguments, &["--store", "orders.db", "--wait", "20s"]].concat());
        tokio::task::spawn_blocking(move || Ran::of(command, b"")).await.expect("it ends").succeeded()
    }
}

async fn open(path: &Path) -> Runner {
    Runner::open_with(path, RunnerOptions::new()).await.expect("a runner")
}

#[tokio::test]
async fn the_process_that_drives_a_run_notices_at_once() {
    let live = Live::new().await;
    let run = live.runner.run("order-7", &live.workflow(), 3_u32).await.expect("it starts");
    assert_snapshot!(live.ask(&["pause", "order"]).await, @"
    order-7 was asked to pause. The process that drives it has taken that; it is
    paused now.
    ");
    assert_eq!(run.status().await.expect("it is there"), Status::Paused);
    assert_snapshot!(live.ask(&["resume", "order-7", "--format", "json"]).await, @r#"
    {
      "version": 1,
      "run": "order-7",
      "asked": "resume",
      "count": 1,
      "handled": true,
      "already": false,
      "refused": [],
      "driven": true,
      "status": "running"
    }
    "#);
    live.ask(&["signal", "order-7", "note", r#""hello""#]).await;
    live.gate.add_permits(2);
    assert_eq!(run.results::<Value>("note").await.expect("it is there").last(), Some(&Value::from("hello")));
    live.runner.shutdown().await;
}

#[tokio::test]
async fn a_run_is_stopped_from_outside_and_goes_on_after_a_resume() {
    let live = Live::new().await;
    let run = live.runner.run("order-7", &live.workflow(), 3_u32).await.expect("it starts");
    assert_snapshot!(live.ask(&["stop", "order-7"]).await, @"
    order-7 was asked to stop. The process that drives it has taken that; it is
    stopped now.
    ");
    assert_eq!(run.status().await.expect("it is there"), Status::Stopped);
    let told = live.ask(&["stop", "order-7"]).await;
    assert!(told.out.contains("order-7 is stopped. It is so already"), "{told}");
    let refused = runs(&live.home, &["signal", "order-7", "note", r#""hello""#]);
    assert!(refused.code == Some(1) && refused.err.contains("until it is resumed"), "{refused}");
    live.ask(&["resume", "order-7"]).await;
    live.gate.add_permits(1);
    let run = live.runner.start("order-7", &live.workflow()).await.expect("it is there");
    assert_eq!(run.result::<u32>("pack").await.expect("it is there"), 3);
    live.runner.shutdown().await;
}

#[test]
fn what_only_runs_of_programs_have_is_refused_for_jobs_by_name() {
    let home = Home::new();
    let mut told = String::new();
    for arguments in [&["stop", "r"][..], &["pause", "r"], &["resume", "r"], &["complete", "r"]] {
        let ran = home.run(&[&["runs"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{ran}");
        told.push_str(&ran.err);
    }
    assert_snapshot!(told, @"
    error[TW0030]: `runs stop` is for the runs of a program: --store FILE names their store.
    hint: Jobs do not have this command; `tidewheel runs cancel RUN` ends those of a run.
    error[TW0030]: `runs pause` is for the runs of a program: --store FILE names their store.
    hint: Jobs do not have this command; `tidewheel runs cancel RUN` ends those of a run.
    error[TW0030]: `runs resume` is for the runs of a program: --store FILE names their store.
    hint: Jobs do not have this command; `tidewheel runs cancel RUN` ends those of a run.
    error[TW0030]: `runs complete` is for the runs of a program: --store FILE names their store.
    hint: For a job there is `tidewheel jobs complete`.
    ");
}

#[tokio::test]
async fn a_run_is_cancelled_from_outside() {
    let live = Live::new().await;
    let run = live.runner.run("order-7", &live.workflow(), 3_u32).await.expect("it starts");
    assert_snapshot!(live.ask(&["cancel", "order-7"]).await, @"
    order-7 was asked to cancel. The process that drives it has taken that; it is
    cancelled now.
    ");
    assert_eq!(run.status().await.expect("it is there"), Status::Cancelled);
    live.runner.shutdown().await;
}

#[tokio::test]
async fn what_nobody_drives_obeys_as_soon_as_somebody_comes() {
    let live = Live::new().await;
    let run = live.runner.start("order-7", &live.workflow()).await.expect("it starts");
    run.pause().await.expect("it pauses");
    let Live { home, runner, gate } = live;
    runner.shutdown().await;
    let asked = ["runs", "cancel", "order-7", "--store", "orders.db", "--no-wait"];
    home.run(&asked).succeeded();
    assert_eq!(rows(&home, "orders.db").len(), 1);

    let live = Live { runner: open(&home.path().join("orders.db")).await, home, gate };
    live.runner.register(&live.workflow()).expect("it is sound");
    let run = live.runner.get("order-7").await.expect("it is there");
    while run.status().await.expect("it is there") != Status::Cancelled {
        tokio::task::yield_now().await;
    }
    assert!(rows(&live.home, "orders.db").is_empty());
    live.runner.shutdown().await;
}

#[tokio::test]
async fn somebody_outside_ends_work_with_the_token_that_is_explained() {
    let live = Live::new().await;
    let outside = Policy::new().execution_mode(ExecutionMode::External);
    let workflow =
        Workflow::new("outside").add(step("sign", |_: u32| 0_u32)).policy(default(), outside).build();
    let run =
        live.runner.run("order-7", &workflow.expect("a sound workflow"), 3_u32).await.expect("it starts");
    let token = live.token().await;
    let told = live.home.run(&["runs", "explain", "order-7", "--store", "orders.db"]).succeeded().out;
    assert!(told.contains("Next: it goes on when what holds its work lets go."), "{told}");
    let shown = live.home.run(&["runs", "show", "order-7", "--store", "orders.db"]).succeeded().out;
    assert!(shown.contains("held: external"), "{shown}");
    assert!(token.starts_with("order-7:work_") && token.ends_with(":0"), "{token}");
    assert_snapshot!(live.ask(&["complete", &token, "42"]).await, @"
    A result was sent to order-7. The process that drives it has taken that; it is
    completed now.
    ");
    assert_eq!(run.result::<u32>("sign").await.expect("it is there"), 42);

    run.input(4_u32).await.expect("it is taken");
    let token = live.token().await;
    live.ask(&["fail", &token, "nobody signs", "--code", "402"]).await;
    assert_eq!(run.wait().await.expect("it ends"), Status::Failed);
    let ran = live.home.run(&["runs", "results", "order-7", "--store", "orders.db"]).succeeded();
    assert_snapshot!(ran, @"sign  input 0  42");
    live.runner.shutdown().await;
}

#[tokio::test]
async fn what_is_said_outside_has_the_form_that_owners_read() {
    let live = Live::new().await;
    let outside = Policy::new().execution_mode(ExecutionMode::External);
    let workflow =
        Workflow::new("outside").add(step("sign", |_: u32| 0_u32)).policy(default(), outside).build();
    live.runner.run("order-7", &workflow.expect("a sound workflow"), 3_u32).await.expect("it starts");
    let token = live.token().await;
    live.runner.shutdown().await;
    for arguments in [
        &["complete", &token, r#"{"paid": true}"#][..],
        &["complete", &token],
        &["fail", &token, "no money", "--code", "broke"],
        &["fail", &token, "no money", "--code", "402"],
        &["fail", &token, "no money"],
    ] {
        runs(&live.home, &[arguments, &["--no-wait"]].concat()).succeeded();
    }
    let told = rows(&live.home, "orders.db").join("\n").replace(&token, "TOKEN");
    assert_snapshot!(told, @r#"
    order-7 complete {"complete":{"token":"TOKEN","value":{"paid": true}}}
    order-7 complete {"complete":{"token":"TOKEN","value":null}}
    order-7 fail {"fail":{"token":"TOKEN","failure":{"code":"broke","type_name":null,"message":"no money","retry_after_ms":null,"non_retryable":false}}}
    order-7 fail {"fail":{"token":"TOKEN","failure":{"code":402,"type_name":null,"message":"no money","retry_after_ms":null,"non_retryable":false}}}
    order-7 fail {"fail":{"token":"TOKEN","failure":{"code":null,"type_name":null,"message":"no money","retry_after_ms":null,"non_retryable":false}}}
    "#);
}

/// It was written, and told to be taken, and nobody waited for it.
#[test]
fn an_attempt_that_failed_takes_no_result() {
    let home = home();
    let token = format!("refund-1:{}:0", work(&home, "refund-1", "refund"));
    assert_snapshot!(runs(&home, &["complete", &token]), @"
    --- stderr
    error[TW0017]: `refund` of run `refund-1` is waiting: nobody waits for this attempt any more.
    --- exit code 1
    ");
    assert!(rows(&home, "orders.db").is_empty());
}

#[tokio::test]
async fn failed_work_and_dead_letters_get_another_chance() {
    let live = Live::new().await;
    let gate = Arc::clone(&live.gate);
    let charge = move |items: u32| match gate.try_acquire() {
        Ok(permit) => {
            permit.forget();
            Ok(items)
        }
        Err(_) => Err(Failure::new("the bank is closed")),
    };
    let letters = Policy::new().on_failure(OnFailure::DeadLetter);
    let workflow = Workflow::new("bank").add(step("charge", charge)).policy(default(), letters).build();
    let run =
        live.runner.run("order-7", &workflow.expect("a sound workflow"), 3_u32).await.expect("it starts");
    assert_eq!(run.wait().await.expect("it ends"), Status::Failed);
    live.ask(&["retry", "order-7", "charge"]).await;
    assert_eq!(run.wait().await.expect("it ends"), Status::Failed, "the bank is still closed");
    let told = live.ask(&["dead-letters", "retry", "--all"]).await;
    assert_snapshot!(told, @"
    order-7 was asked to try charge again, which is letter 2. The process that
    drives it has taken that, and the letter is gone.
    ");
    assert_eq!(run.wait().await.expect("it ends"), Status::Failed, "the bank is still closed");
    live.gate.add_permits(1);
    live.ask(&["retry", "order-7"]).await;
    assert_eq!(run.wait().await.expect("it ends"), Status::Completed);
    assert_eq!(run.result::<u32>("charge").await.expect("it is there"), 3);
    let left = live.home.run(&["runs", "dead-letters", "--store", "orders.db"]).succeeded();
    assert_eq!(left.out, "There are no dead letters.\n");
    let told =
        live.home.run(&["runs", "explain", "order-7", "charge", "--store", "orders.db"]).succeeded().out;
    assert!(told.contains("Then somebody gave it all its attempts again."), "{told}");
    live.runner.shutdown().await;
}

/// It said that it was taken and that the letter was gone, and neither was so.
#[tokio::test]
async fn what_was_undone_is_not_tried_again_and_keeps_no_other_letter_from_it() {
    let live = Live::new().await;
    let mail = |name: String| Err::<u32, _>(Failure::new(format!("{name} is full")));
    let ship = |name: String| if name == "ann" { Err(Failure::new("no address")) } else { Ok(1_u32) };
    let workflow = Workflow::new("shop")
        .add(step("book", |name: String| name))
        .add(step("mail", mail).after("book"))
        .add(step("ship", ship).after("book"))
        .add(compensation("unbook", |_: String| ()))
        .policy(name("book"), Policy::new().compensation_node("unbook"))
        .policy(name("mail"), Policy::new().on_failure(OnFailure::DeadLetter))
        .policy(name("ship"), Policy::new().on_failure(OnFailure::Compensate))
        .build()
        .expect("a sound workflow");
    for customer in ["ann", "bob"] {
        let run = live.runner.run(customer, &workflow, customer.to_owned()).await.expect("it starts");
        assert_eq!(run.wait().await.expect("it ends"), Status::Failed);
    }
    let run = |arguments: &[&str]| live.home.run(&[&["runs"], arguments, &["--store", "orders.db"]].concat());
    let told = run(&["explain", "ann"]).succeeded().out;
    assert!(told.contains("Next: nothing; what was undone is not tried again."), "{told}");
    let mut told = String::new();
    for arguments in [&["retry", "ann"][..], &["retry", "ann", "ship"], &["dead-letters", "retry", "1"]] {
        told.push_str(&run(arguments).err);
    }
    assert_snapshot!(told, @"
    error[TW0017]: Run `ann` is failed: what failed was undone with its input.
    error[TW0017]: `ship` of run `ann` cannot be asked this: what its input caused was undone.
    error[TW0017]: `mail` of run `ann` is failed: what its input caused was undone.
    ");
    assert!(rows(&live.home, "orders.db").is_empty());
    assert_snapshot!(live.ask(&["dead-letters", "retry", "--all"]).await, @"
    Letter 1 stays. `mail` of run `ann` is failed: what its input caused was undone.
    bob was asked to try mail again, which is letter 2. The process that drives it
    has taken that, and the letter is gone.
    ");
    live.runner.shutdown().await;
}

#[tokio::test]
async fn work_that_waits_for_a_person_says_so() {
    let live = Live::new().await;
    let review = |_: u32| Err::<u32, _>(Failure::new("looks odd"));
    let outside = Policy::new().execution_mode(ExecutionMode::External).timeout("1h");
    let workflow = Workflow::new("shop")
        .add(step("sign", |_: u32| 0_u32))
        .add(step("review", review))
        .policy(name("sign"), outside)
        .policy(name("review"), Policy::new().on_failure(OnFailure::Pause))
        .build()
        .expect("a sound workflow");
    let run = live.runner.run("order-7", &workflow, 3_u32).await.expect("it starts");
    let explain = || {
        let told = live.home.run(&["runs", "explain", "order-7", "--store", "orders.db"]).succeeded().out;
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    live.token().await;
    while run.status().await.expect("it is there") != Status::Paused {
        tokio::task::yield_now().await;
    }
    let told = explain();
    assert!(told.contains("is paused: work failed, and a person is to say how it goes on."), "{told}");
    assert!(told.contains("Of its pieces of work, 2 are held."), "{told}");
    assert!(told.contains("Next: they end it, or its time is over in"), "{told}");
    live.runner.shutdown().await;
}

#[tokio::test]
async fn of_very_many_pieces_those_that_failed_are_shown() {
    let live = Live::new().await;
    let pick = |shelf: u32| if shelf == 77 { Err(Failure::new("it is empty")) } else { Ok(shelf) };
    let workflow = Workflow::new("shelves").add(map("pick", pick)).build().expect("a sound workflow");
    let shelves: Vec<u32> = (0..200).collect();
    let run = live.runner.run("shelves-1", &workflow, shelves).await.expect("it starts");
    assert_eq!(run.wait().await.expect("it ends"), Status::Failed);
    let show = |more: &[&str]| {
        let all = [&["runs", "show", "shelves-1", "--store", "orders.db"], more].concat();
        live.home.run(&all).succeeded().out
    };
    let shown = show(&[]);
    assert!(shown.contains("pick 0.77") && shown.contains("it is empty"), "{shown}");
    assert!(shown.contains("There are 200; --all shows all of them."), "{shown}");
    assert_eq!(shown.matches(" completed ").count(), 39);
    assert_eq!(show(&["--all"]).matches(" completed ").count(), 199);
    live.runner.shutdown().await;
}
