//! Commands by status: what the library does with each command in each status is what the table says, and what the
//! documentation draws.

use std::sync::Arc;

use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::job::JobStatus;
use tidewheel_core::policy::{ExecutionMode, Failure, Policy, name};
use tidewheel_core::work::{Context, Token};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{
    AskError, CommandError, CommandOutcome, Control, InputError, RunHandle, Runner, RunnerOptions,
};
use tidewheel_store::{Append, Batch, Claim, Guard, Memory, NewCommand, RealClock, Status, Store, Wanted};

use crate::world::{Gate, Watched, count, gated, log, numbers};

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Acts => "acts",
        Effect::AlreadySo => "is so",
        Effect::Refused(_) => "refused",
    }
}

fn drawn<S: Copy>(
    head: &str,
    statuses: &[S],
    name: impl Fn(S) -> &'static str,
    effect: impl Fn(RunCommand, S) -> Effect,
) -> String {
    let row = |first: String, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
    let commands = RunCommand::ALL.iter().map(ToString::to_string).collect();
    let mut lines =
        vec![row(head.to_owned(), commands), format!("|{}\n", "---|".repeat(RunCommand::ALL.len() + 1))];
    for status in statuses {
        let cells =
            RunCommand::ALL.iter().map(|command| word(effect(*command, *status)).to_string()).collect();
        lines.push(row(format!("`{}`", name(*status)), cells));
    }
    lines.concat()
}

#[test]
fn the_documentation_draws_the_table_of_the_code() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    let page = std::fs::read_to_string(path).unwrap();
    let runs = drawn("a run of a program is", &Status::ALL, Status::name, RunCommand::effect_on_run);
    let jobs = drawn("a job is", JobStatus::ALL, JobStatus::name, RunCommand::effect_on_job);
    for table in [runs, jobs] {
        assert!(page.contains(&table), "docs/states.md should have:\n{table}");
    }
}

/// A step that waits for a word, and one that a person outside ends.
fn slow(gate: &Gate, tokens: &tokio::sync::mpsc::UnboundedSender<Token>) -> Workflow {
    let (gate, tokens) = (gate.clone(), tokens.clone());
    let wait = move |x: i64| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            x
        }
    };
    let hand_out = move |context: Context, x: i64| {
        drop(tokens.send(context.token()));
        x
    };
    Workflow::new("slow")
        .add(step("wait", wait))
        .add(step("outside", hand_out))
        .policy(name("outside"), Policy::new().execution_mode(ExecutionMode::External))
        .build()
        .expect("sound")
}

/// What happens at once.
fn quick() -> Workflow {
    let work = |x: i64| if x < 0 { Err(Failure::new("no")) } else { Ok(x) };
    Workflow::new("quick").add(step("wait", work)).build().expect("sound")
}

/// A run in a status, and a token of work of it.
struct Standing {
    run: RunHandle,
    runner: Runner,
    store: Arc<dyn Store>,
    token: Token,
    gate: Gate,
}

async fn standing(status: Status) -> Standing {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.expect("sound");
    let (gate, (tokens, mut handed_out)) = (Gate::new(), tokio::sync::mpsc::unbounded_channel());
    let is_over = matches!(status, Status::Completed | Status::Failed);
    let workflow = if is_over { quick() } else { slow(&gate, &tokens) };
    let mut events = runner.subscribe();
    let run = runner.start("first", &workflow).await.expect("sound");
    let mut token = None;
    if status != Status::Waiting {
        run.input(if status == Status::Failed { -1_i64 } else { 1 }).await.expect("sound");
    }
    if is_over {
        run.wait().await.expect("sound");
    } else if status != Status::Waiting {
        gate.began().await;
        token = handed_out.recv().await;
        // The step has handed out its token; that it waits is stored after that.
        while !events.recv().await.expect("sound").event.contains("runnable_held") {}
    }
    match status {
        Status::Running | Status::Waiting | Status::Completed | Status::Failed => {}
        Status::Paused => drop(run.pause().await.expect("sound")),
        Status::Stopped => drop(run.stop().await.expect("sound")),
        Status::Cancelled => drop(run.cancel().await.expect("sound")),
        Status::Parked => {
            run.stop().await.expect("sound");
            park(store.as_ref()).await;
        }
    }
    assert_eq!(run.status().await.expect("sound"), status);
    let token = token.unwrap_or_else(|| Token {
        run: run.id().clone(),
        work: tidewheel_core::fact::RunnableId::default(),
        round: 0,
        attempt: 0,
    });
    Standing { run, runner, store, token, gate }
}

/// Puts a stopped run aside, as a runner does with one that keeps going wrong.
async fn park(store: &dyn Store) {
    let owner = store.join(tidewheel_core::time::Span::from_secs(60)).await.expect("sound").owner;
    let claimed = store.claim(Claim { owner, wanted: Wanted::Run("first".into()) }).await.expect("sound");
    let (lease, record, _) = claimed.runs.into_iter().next().expect("sound");
    let append = Append {
        run: "first".into(),
        guard: Guard::Held { key: lease.key, fence: lease.fence },
        expected: record.version,
        events: Batch::new(),
        status: Status::Parked,
        reason: Some("it kept going wrong".to_owned()),
        wake_at: None,
        handled: Vec::new(),
        letters: Vec::new(),
        checkpoint: None,
        release: true,
    };
    store.append(vec![append]).await.expect("sound").swap_remove(0).expect("sound");
    store.leave(owner).await.expect("sound");
}

/// What the library did with a command.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    Acted,
    WasSo,
    Refused,
    /// It acts as the run is, and was refused because of the work that it is about.
    OfWork,
}

fn did_command(answer: Result<CommandOutcome, CommandError>) -> Did {
    match answer {
        Ok(CommandOutcome::Done | CommandOutcome::Sent) => Did::Acted,
        Ok(CommandOutcome::AlreadySo) => Did::WasSo,
        Err(CommandError::NoEffect { .. }) => Did::Refused,
        Err(
            CommandError::NotAwaited { .. } | CommandError::NothingFailed { .. } | CommandError::Retry { .. },
        ) => Did::OfWork,
        Err(error) => panic!("{error:?}"),
    }
}

fn did_input(answer: Result<(), InputError>) -> Did {
    match answer {
        Ok(()) => Did::Acted,
        Err(InputError::Over { .. }) => Did::Refused,
        Err(error) => panic!("{error:?}"),
    }
}

async fn ask_handle(standing: &Standing, command: RunCommand) -> Did {
    let Standing { run, runner, token, .. } = standing;
    match command {
        RunCommand::Input => did_input(run.input(2_i64).await),
        RunCommand::Signal => did_input(run.signal("wait", 2_i64).await),
        RunCommand::Cancel => did_command(run.cancel().await),
        RunCommand::Pause => did_command(run.pause().await),
        RunCommand::Resume => did_command(run.resume().await),
        RunCommand::Retry => did_command(run.retry().await.map(|_| CommandOutcome::Done)),
        RunCommand::Stop => did_command(run.stop().await),
        RunCommand::Checkpoint => did_command(run.checkpoint().await),
        RunCommand::Complete => {
            did_command(runner.complete(token, 7_i64).await.map(|()| CommandOutcome::Done))
        }
        RunCommand::Fail => {
            did_command(runner.fail(token, Failure::new("no")).await.map(|()| CommandOutcome::Done))
        }
        RunCommand::Heartbeat => did_command(runner.heartbeat(token).await.map(|()| CommandOutcome::Done)),
    }
}

fn is_as_the_table_says(command: RunCommand, status: Status, did: &Did) {
    let fits = match command.effect_on_run(status) {
        Effect::Acts => {
            let is_of_work = matches!(
                command,
                RunCommand::Retry | RunCommand::Complete | RunCommand::Fail | RunCommand::Heartbeat
            );
            *did == Did::Acted || is_of_work && *did == Did::OfWork
        }
        Effect::AlreadySo => *did == Did::WasSo,
        // Work that is over is named before the run that is.
        Effect::Refused(_) => matches!(did, Did::Refused | Did::OfWork),
    };
    assert!(fits, "{command} of a run that is {status}: {did:?}");
}

/// `cancel()` then `signal(..)` was acknowledged and stored nothing; `resume` of a finished run did nothing.
#[tokio::test]
async fn the_library_does_with_every_command_in_every_status_what_the_table_says() {
    for status in Status::ALL {
        for command in RunCommand::ALL {
            let standing = standing(status).await;
            let before = standing.store.find(standing.run.id()).await.unwrap().unwrap();
            let did = ask_handle(&standing, *command).await;
            is_as_the_table_says(*command, status, &did);
            if did != Did::Acted {
                let after = standing.store.find(standing.run.id()).await.unwrap().unwrap();
                assert_eq!(
                    (after.status, after.version),
                    (before.status, before.version),
                    "{command}, {status}"
                );
            }
            standing.gate.open(100);
            standing.runner.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_control_does_with_every_command_in_every_status_what_the_table_says() {
    for status in Status::ALL {
        for command in RunCommand::ALL {
            let standing = standing(status).await;
            let Standing { run, store, token, .. } = &standing;
            let (control, id) = (Control::new(Arc::clone(store)), run.id());
            let value = serde_json::value::to_raw_value(&2).unwrap();
            let sent = match command {
                RunCommand::Signal => control.signal(id, "wait", value).await,
                RunCommand::Cancel => control.cancel(id).await,
                RunCommand::Pause => control.pause(id).await,
                RunCommand::Resume => control.resume(id).await,
                RunCommand::Retry => control.retry(id, None).await,
                RunCommand::Stop => control.stop(id).await,
                RunCommand::Complete => control.complete(&token.to_string(), &value).await,
                RunCommand::Fail => control.fail(&token.to_string(), &Failure::new("no")).await,
                RunCommand::Heartbeat => control.heartbeat(&token.to_string()).await,
                // It has none of these.
                RunCommand::Input | RunCommand::Checkpoint => continue,
            };
            let did = match &sent {
                Ok(sent) if sent.id.is_none() => Did::WasSo,
                Ok(sent) => {
                    control.until_handled(sent).await.unwrap();
                    assert_eq!(control.refusal(sent).await.unwrap(), None, "{command}, {status}");
                    Did::Acted
                }
                Err(AskError::Idle { why: "only work that failed can be tried again", .. }) => Did::OfWork,
                Err(AskError::Idle { .. }) => Did::Refused,
                Err(AskError::Work { .. } | AskError::NoWork { .. }) => Did::OfWork,
                Err(error) => panic!("{error:?}"),
            };
            is_as_the_table_says(*command, status, &did);
            standing.gate.open(100);
            standing.runner.shutdown().await;
        }
    }
}

/// The run ends in its own process between the moment in which another process sends a command and the one in which it
/// would be applied.
#[tokio::test(start_paused = true)]
async fn a_command_that_another_process_sends_too_late_is_not_acknowledged() {
    for kind in ["signal", "input", "pause", "retry", "checkpoint"] {
        let (store, gate) = (Watched::new(), Gate::new());
        let (one, other) = (
            store.runner(RunnerOptions::new()).await,
            store.runner(RunnerOptions::new().only_own_runs()).await,
        );
        let run = one.run("first", &gated(&gate), 1_i64).await.unwrap();
        gate.began().await;
        let same = other.start("first", &gated(&gate)).await.unwrap();
        // The owner cancels; that is on its way to the store while the other process finds the run running.
        store.hold(true);
        let cancel = tokio::spawn({
            let run = run.clone();
            async move { run.cancel().await }
        });
        tokio::task::yield_now().await;
        let late = tokio::spawn(async move {
            match kind {
                "signal" => same.signal("inc", 2_i64).await.map_err(|error| error.to_string()),
                "input" => same.input(2_i64).await.map_err(|error| error.to_string()),
                "pause" => same.pause().await.map(drop).map_err(|error| error.to_string()),
                "retry" => same.retry().await.map(drop).map_err(|error| error.to_string()),
                _ => same.checkpoint().await.map(drop).map_err(|error| error.to_string()),
            }
        });
        // Until the owner has seen the row.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        store.hold(false);
        assert_eq!(cancel.await.unwrap().unwrap(), CommandOutcome::Done);
        let error = late.await.unwrap().expect_err(kind);
        assert!(error.contains("the run is cancelled"), "{kind}: {error}");
        let events = log(&store, "first").await;
        assert_eq!(count(&events, "command_refused"), 1, "{kind}");
        assert!(store.commands_of(run.id()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_stop_reaches_a_run_whose_workflow_is_not_registered_here() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let options = RunnerOptions::new().shutdown_grace(tidewheel_core::time::Span::ZERO);
    let owner = Runner::with_store(Arc::clone(&store), options).await.unwrap();
    let stranger = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.unwrap();
    let gate = Gate::new();
    let run = owner.run("first", &gated(&gate), 1_i64).await.unwrap();
    gate.began().await;
    assert_eq!(stranger.stop("first").await.unwrap(), CommandOutcome::Done);
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
    assert_eq!(stranger.stop("first").await.unwrap(), CommandOutcome::AlreadySo);
    run.resume().await.unwrap();
    gate.began().await;
    owner.shutdown().await;
    // No process drives it: the command is stored for the next one that can.
    assert_eq!(stranger.stop("first").await.unwrap(), CommandOutcome::Sent);
    assert_eq!(store.commands_of(&"first".into()).await.unwrap().len(), 1);
    let next = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.unwrap();
    next.register(&gated(&gate)).unwrap();
    while store.find(&"first".into()).await.unwrap().unwrap().status != Status::Stopped {
        tokio::task::yield_now().await;
    }
    for error in [
        stranger.stop("second").await.map(drop).unwrap_err(),
        stranger.resume("second").await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(&error, CommandError::NotFound { run } if run.as_str() == "second"), "{error:?}");
    }
    next.shutdown().await;
    stranger.shutdown().await;
}

/// A row of another release, or of another program.
#[tokio::test]
async fn a_command_of_a_finished_run_that_came_through_the_store_is_refused_in_the_log() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await.unwrap();
    let run = runner.run("first", &numbers(), 1_i64).await.unwrap();
    run.wait().await.unwrap();
    for kind in ["cancel", "pause", "resume", "stop", "checkpoint"] {
        let command =
            NewCommand { run: run.id().clone(), kind: kind.to_owned(), body: format!("\"{kind}\"") };
        store.send(command).await.unwrap().unwrap();
        while !store.commands_of(run.id()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }
    let events = log(store.as_ref(), "first").await;
    assert_eq!(count(&events, "command_refused"), 5);
    assert_eq!(run.status().await.unwrap(), Status::Completed);
    runner.shutdown().await;
}
