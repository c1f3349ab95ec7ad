//! Work that somebody outside ends, told to another runner, or after the process that handed it over is gone.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::policy::{self, Failure};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{CommandError, Runner, RunnerOptions};
use tidewheel_store::{Memory, RealClock, Status, Store};

use crate::world::{Disk, Process, Tokens, count, crash, external, governed, log, soon, start, until};

fn asking(tokens: &Tokens) -> Workflow {
    let after = step("after", |x: i64| x + 1).after("ask");
    let policy = external().max_retries(3).heartbeat("1h");
    governed("asking", [tokens.step("ask"), after], [(policy::name("ask"), policy)])
}

#[tokio::test(flavor = "multi_thread")]
async fn another_runner_on_the_file_ends_it_whether_it_knows_the_workflow_or_not() {
    for knows_it in [true, false] {
        let (disk, tokens) = (Disk::new(), Tokens::new());
        let (driver, _) = disk.open().await;
        let (other, _) = disk.open_with(RunnerOptions::new().only_own_runs()).await;
        let workflow = asking(&tokens);
        if knows_it {
            other.register(&workflow).unwrap();
        }
        let run = start(&driver, "r", &workflow, 1).await;
        let first = tokens.next().await;
        until(&run, Status::Waiting).await;
        other.heartbeat(&first).await.unwrap();
        other.fail(&first, Failure::new("not yet").code("later")).await.unwrap();
        let second = tokens.next().await;
        assert_eq!(second.attempt, 1);
        other.complete(&second, 41_i64).await.unwrap();
        assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42, "{knows_it}");
        let state = run.state().await.unwrap();
        assert_eq!(state.results::<i64>("ask").unwrap(), [41]);
        driver.shutdown().await;
        other.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_token_told_elsewhere_changes_nothing() {
    let (disk, tokens) = (Disk::new(), Tokens::new());
    let (driver, store) = disk.open().await;
    let (other, _) = disk.open().await;
    let run = start(&driver, "r", &asking(&tokens), 1).await;
    let first = tokens.next().await;
    driver.fail(&first, Failure::new("not yet")).await.unwrap();
    let second = tokens.next().await;
    until(&run, Status::Waiting).await;
    let refused = other.complete(&first, 1_i64).await;
    assert!(matches!(refused, Err(CommandError::NotAwaited { .. })), "{refused:?}");
    other.complete(&second, 41_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("ask")).await.unwrap(), 41);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert!(store.commands_of(run.id()).await.unwrap().is_empty(), "both are seen to");
    driver.shutdown().await;
    other.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_waits_outside_while_no_process_is_there() {
    let (disk, tokens) = (Disk::new(), Tokens::new());
    let workflow = asking(&tokens);
    let (runner, store) = disk.open().await;
    let run = start(&runner, "r", &workflow, 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    crash(runner, &store).await;
    let (runner, store) = disk.open().await;
    let run = runner.start("r", &workflow).await.unwrap();
    runner.heartbeat(&token).await.unwrap();
    crash(runner, &store).await;
    drop(run);
    let (runner, _) = disk.open().await;
    runner.register(&workflow).unwrap();
    runner.complete(&token, 41_i64).await.unwrap();
    let run = runner.get("r").await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(tokens.count(), 1, "it was handed over once");
    assert!(matches!(runner.complete(&token, 1_i64).await, Err(CommandError::NotAwaited { .. })));
    runner.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_nobody_drives_the_run_is_found_by_whoever_takes_it() {
    let (disk, tokens) = (Disk::new(), Tokens::new());
    let workflow = asking(&tokens);
    let (runner, store) = disk.open().await;
    let run = start(&runner, "r", &workflow, 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    crash(runner, &store).await;
    // It does not know the workflow, so it can only leave a word.
    let (stranger, _) = disk.open().await;
    stranger.complete(&token, 41_i64).await.unwrap();
    stranger.shutdown().await;
    let (runner, store) = disk.open().await;
    // Nobody asks for the run: it is due because of the word.
    runner.register(&workflow).unwrap();
    let run = runner.get("r").await.unwrap();
    until(&run, Status::Completed).await;
    assert_eq!(run.results::<i64>("after").await.unwrap(), [42]);
    assert_eq!(count(&log(&*store, "r").await, "runnable_dispatched"), 2);
    runner.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_survives_the_end_of_the_process_at_every_write() {
    let mut interrupted = 0;
    for (writes, does_last) in (1..40).flat_map(|writes| [(writes, false), (writes, true)]) {
        let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
        let (tokens, process) = (Tokens::new(), Process::dying(&store, writes, does_last));
        // A budget lets what follows be found out beside the run.
        let policy = external().max_retries(1).retry_budget("b", 9, "1h").idempotency_key_template("key");
        let after = step("after", |x: i64| x + 1).after("ask");
        let workflow = governed("asking", [tokens.step("ask"), after], [(policy::name("ask"), policy)]);
        let runner = process.runner().await;
        let mut said = (false, false);
        let story = async {
            let run = start(&runner, "r", &workflow, 1).await;
            let first = tokens.next().await;
            runner.fail(&first, Failure::new("no")).await.unwrap();
            said.0 = true;
            let second = tokens.next().await;
            runner.complete(&second, 41_i64).await.unwrap();
            said.1 = true;
            soon(run.wait()).await.unwrap();
        };
        let is_gone = process.ends_before(story).await;
        interrupted += u32::from(is_gone);
        drop(runner);
        let given = tokens.count();
        // Whoever asks before the lease is over leaves a word, and does not know what becomes of it.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let runner = Process::new(&store).runner().await;
        let run = runner.start("r", &workflow).await.unwrap();
        if store.read(run.id(), 0).await.unwrap().is_empty() {
            run.input(1_i64).await.unwrap();
        }
        let what = format!("{writes} writes, {does_last}: {said:?}, {given} tokens");
        if said.1 {
            assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42, "{what}");
            assert_eq!(tokens.count(), given, "{what}");
            continue;
        }
        // Whoever got no answer says it again.
        soon(async {
            while run.status().await.unwrap() != Status::Completed {
                if let Some(token) = tokens.last() {
                    match runner.complete(&token, 41_i64).await {
                        // It counts already, the function begins again, or it is at the next attempt.
                        Ok(()) | Err(CommandError::NotAwaited { .. }) => {}
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert_eq!(run.results::<i64>("after").await.unwrap(), [42], "{what}");
    }
    assert!(interrupted > 20, "{interrupted} were interrupted");
}

#[tokio::test(start_paused = true)]
async fn a_word_that_comes_before_the_function_is_done_again_is_kept() {
    // The process is gone after its function gave the token away and before it is stored that it did.
    let store = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let (tokens, process) = (Tokens::new(), Process::dying(&store, 2, false));
    let workflow = asking(&tokens);
    let runner = process.runner().await;
    let run = start(&runner, "r", &workflow, 1).await;
    let token = tokens.next().await;
    assert!(process.ends_before(std::future::pending::<()>()).await);
    drop((runner, run));
    let stranger =
        Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, RunnerOptions::new()).await.unwrap();
    stranger.complete(&token, 41_i64).await.unwrap();
    stranger.shutdown().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let runner = Process::new(&store).runner().await;
    runner.register(&workflow).unwrap();
    let run = runner.get("r").await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_whose_function_is_gone_takes_a_word_from_outside_at_once() {
    for is_external in [true, false] {
        let (disk, tokens) = (Disk::new(), Tokens::new());
        let given = tokens.clone();
        let ask = step("ask", move |context: Context, x: i64| {
            given.give(&context);
            let is_first = given.count() == 1;
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                x
            }
        });
        let after = step("after", |x: i64| x + 1).after("ask");
        let rules = [(policy::name("ask"), external())].into_iter().filter(|_| is_external);
        let workflow = governed("w", [ask, after], rules);
        let (runner, store) = disk.open().await;
        let run = start(&runner, "r", &workflow, 1).await;
        let token = tokens.next().await;
        run.pause().await.unwrap();
        drop(run);
        crash(runner, &store).await;
        let (runner, _) = disk.open().await;
        runner.register(&workflow).unwrap();
        let said = soon(runner.complete(&token, 41_i64)).await;
        let run = runner.get("r").await.unwrap();
        assert_eq!(run.status().await.unwrap(), Status::Paused);
        run.resume().await.unwrap();
        if is_external {
            said.unwrap();
            assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
            assert_eq!(tokens.count(), 1, "its function does not begin again");
        } else {
            assert!(matches!(said, Err(CommandError::NotAwaited { .. })), "{said:?}");
            assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 2);
        }
        runner.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_while_a_program_attaches_to_the_run_reaches_it() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(RealClock::new())));
    let open = || Runner::with_store(Arc::clone(&store), RunnerOptions::new());
    let tokens = Tokens::new();
    let workflow = asking(&tokens);
    let runner = open().await.unwrap();
    let mut given = Vec::new();
    for number in 0..20 {
        start(&runner, &number.to_string(), &workflow, number).await;
        given.push(tokens.next().await);
    }
    runner.shutdown().await;
    let runner = open().await.unwrap();
    runner.register(&workflow).unwrap();
    for token in given {
        let attaching = runner.start(token.run.clone(), &workflow);
        let (run, said) = tokio::join!(attaching, runner.complete(&token, 41_i64));
        said.unwrap();
        let run = run.unwrap();
        assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
        let (run, given) = tokio::join!(runner.start(token.run.clone(), &workflow), run.input(1_i64));
        given.unwrap();
        drop(run.unwrap());
    }
}
