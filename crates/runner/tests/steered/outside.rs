//! Work that somebody outside ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::event::Hold;
use tidewheel_core::policy::{self, Backoff, CircuitBreaker, Failure, Jitter, OnFailure, OnOpen, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, compensation, step};
use tidewheel_runner::{CommandError, ResultError, Runner, RunnerOptions, StartOptions};
use tidewheel_store::{Clock, RealClock, Sleep, Status};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::world::{Calls, Tokens, code, external, governed, in_memory, soon, start, until};

/// `ask`, which somebody outside ends, and `after` it.
fn asking(tokens: &Tokens, policy: Policy) -> Workflow {
    let after = step("after", |x: i64| x + 1).after("ask");
    governed("asking", [tokens.step("ask"), after], [(policy::name("ask"), policy)])
}

/// Returns the failure of `ask`.
async fn failure_of(run: &tidewheel_runner::RunHandle) -> Failure {
    match soon(run.result::<i64>("ask")).await {
        Err(ResultError::Failed { failure, .. }) => *failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_has_the_token_gives_the_result_and_only_once() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external()), 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    assert_eq!(token.run.as_str(), "r");
    // Time alone ends nothing.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(run.status().await.unwrap(), Status::Waiting);
    // The result is what was said outside, and not what the function returned.
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("ask")).await.unwrap(), 41);
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    let refused = runner.complete(&token, 5_i64).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("nobody waits for `{token}`: the work is over, is at another attempt, or was never there")
    );
    assert!(matches!(runner.fail(&token, Failure::new("no")).await, Err(CommandError::NotAwaited { .. })));
    assert!(matches!(runner.heartbeat(&token).await, Err(CommandError::NotAwaited { .. })));
    assert_eq!(run.results::<i64>("ask").await.unwrap(), [41]);
    assert_eq!(tokens.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_who_end_it_at_once_one_is_refused() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    // A result under a key is kept for others before anybody goes on with it.
    let policy = external().idempotency_key_template("key");
    let run = start(&runner, "r", &asking(&tokens, policy), 1).await;
    let token = tokens.next().await;
    soon(async {
        while run.state().await.unwrap().waits().iter().all(|wait| wait.why != Some(Hold::External)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let (one, two, three) = tokio::join!(
        runner.complete(&token, 1_i64),
        runner.complete(&token, 2_i64),
        runner.fail(&token, Failure::new("no"))
    );
    assert_eq!([one, two, three].iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    assert_eq!(run.results::<i64>("ask").await.unwrap(), [1]);
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_outside_has_no_slot() {
    let (tokens, calls) = (Tokens::new(), Calls::default());
    let runner = Runner::in_memory(RunnerOptions::new().max_concurrency(1)).await.unwrap();
    let asking = asking(&tokens, external().concurrency_limit(1));
    let mut outside = Vec::new();
    for number in 0..5 {
        let run = start(&runner, &format!("outside-{number}"), &asking, number).await;
        outside.push((tokens.next().await, run));
    }
    let other = governed("other", [calls.failing("s", 0)], []);
    let run = start(&runner, "other", &other, 7).await;
    assert_eq!(soon(run.result::<i64>("s")).await.unwrap(), 7);
    for (token, run) in outside.into_iter().rev() {
        runner.complete(&token, 41_i64).await.unwrap();
        assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_from_outside_is_retried_with_a_new_token_and_the_old_one_is_refused() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let workflow = asking(
        &tokens,
        external().max_retries(1).backoff(Backoff::Fixed).base_delay("10s").jitter(Jitter::None),
    );
    let run = start(&runner, "r", &workflow, 1).await;
    let first = tokens.next().await;
    until(&run, Status::Waiting).await;
    let began = Instant::now();
    runner.fail(&first, Failure::new("not today")).await.unwrap();
    // Neither is it awaited before the next attempt.
    assert!(matches!(runner.complete(&first, 1_i64).await, Err(CommandError::NotAwaited { .. })));
    let second = tokens.next().await;
    assert!(began.elapsed() >= Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!((first.attempt, second.attempt, first.work), (0, 1, second.work));
    assert!(matches!(runner.complete(&first, 1_i64).await, Err(CommandError::NotAwaited { .. })));
    runner.fail(&second, Failure::new("never").code("gone")).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    let state = run.state().await.unwrap();
    let failed = state.failures();
    assert_eq!((failed.len(), failed[0].attempts), (1, 2));
    assert_eq!((failed[0].failure.message.as_str(), code(failed[0].failure)), ("never", "gone".to_owned()));
    assert_eq!(tokens.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_retried_ends_it_from_outside_too() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external().max_retries(9)), 1).await;
    let token = tokens.next().await;
    runner.fail(&token, Failure::new("never").non_retryable()).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(tokens.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_counts_from_when_the_work_was_handed_over() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external().timeout("10s")), 1).await;
    let token = tokens.next().await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(9)).await;
    // Signs of life are no more time.
    runner.heartbeat(&token).await.unwrap();
    let failure = failure_of(&run).await;
    assert_eq!((failure.message.as_str(), code(&failure)), ("took longer than 10s", "timeout".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(runner.complete(&token, 1_i64).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn silence_outside_is_a_failure_and_a_heartbeat_is_more_time() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let policy = external().heartbeat("10s").max_retries(1);
    let run = start(&runner, "r", &asking(&tokens, policy), 1).await;
    let first = tokens.next().await;
    let began = Instant::now();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(9)).await;
        runner.heartbeat(&first).await.unwrap();
    }
    let second = tokens.next().await;
    assert_eq!(began.elapsed().as_secs(), 55);
    assert!(matches!(runner.heartbeat(&first).await, Err(CommandError::NotAwaited { .. })));
    assert_eq!(second.attempt, 1);
    let failure = failure_of(&run).await;
    assert_eq!(failure.message, "gave no sign of life for 10s");
    assert_eq!(code(&failure), "heartbeat");
}

/// A clock that counts who asks it.
#[derive(Debug)]
struct Counting {
    clock: RealClock,
    asked: AtomicUsize,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.clock.now()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        self.clock.sleep_until(at)
    }
}

/// Each sign of life left a timer behind, and all of them went off in each span of the heartbeat, for ever.
#[tokio::test(start_paused = true)]
async fn the_thousandth_sign_of_life_costs_no_more_than_the_first() {
    let clock = Arc::new(Counting { clock: RealClock::new(), asked: AtomicUsize::new(0) });
    let options = RunnerOptions::new().clock(Arc::<Counting>::clone(&clock));
    let (tokens, runner) = (Tokens::new(), Runner::in_memory(options).await.unwrap());
    let run = start(&runner, "r", &asking(&tokens, external().heartbeat("10s")), 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    // A run for which somebody waits is not given back.
    let awaited = tokio::spawn(async move { run.result::<i64>("after").await });
    let mut costs = Vec::new();
    for _ in 0..10 {
        let before = clock.asked.load(Ordering::SeqCst);
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_secs(6)).await;
            runner.heartbeat(&token).await.unwrap();
        }
        costs.push(clock.asked.load(Ordering::SeqCst) - before);
    }
    assert!(costs[9] < 2 * costs[0], "{costs:?}");
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(soon(awaited).await.unwrap().unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_all_attempts_and_deadlines_hold_outside() {
    let total = |policy: Policy| policy.total_timeout("20s");
    let deadline = |policy: Policy| policy.deadline("20s");
    let of_run = |policy: Policy| policy;
    let too_long = ("all attempts together took longer than 20s", "timeout");
    let too_late = ("was not over at its deadline", "deadline_exceeded");
    let cases: [(&str, &dyn Fn(Policy) -> Policy, _); 3] =
        [("total", &total, too_long), ("deadline", &deadline, too_late), ("run", &of_run, too_late)];
    for (name, rule, expected) in cases {
        let (tokens, runner) = (Tokens::new(), in_memory().await);
        let options = StartOptions::new();
        let options = if name == "run" { options.deadline(Span::from_secs(20)) } else { options };
        let workflow = asking(&tokens, rule(external().max_retries(5).timeout("15s")));
        let began = Instant::now();
        let run = runner.run_with(name, &workflow, 1_i64, &options).await.unwrap();
        let failure = failure_of(&run).await;
        assert_eq!((failure.message.as_str(), code(&failure)), (expected.0, expected.1.to_owned()), "{name}");
        assert_eq!(began.elapsed().as_secs(), 20, "{name}");
        assert_eq!(tokens.count(), 2, "{name}: the first attempt took 15s, the second what was left");
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_hold_outside_while_nobody_has_the_run() {
    // A run that only waits is given back to the store, within a third of the lease.
    for (name, policy) in
        [("total", external().total_timeout("50s")), ("deadline", external().deadline("50s"))]
    {
        let tokens = Tokens::new();
        let runner = Runner::in_memory(RunnerOptions::new().lease(Span::from_secs(3))).await.unwrap();
        let began = Instant::now();
        let run = start(&runner, name, &asking(&tokens, policy), 1).await;
        tokens.next().await;
        until(&run, Status::Failed).await;
        assert_eq!(began.elapsed().as_secs(), 50, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_outside_can_be_cancelled_and_then_the_token_is_refused() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let workflow = asking(&tokens, external());
    let run = start(&runner, "run", &workflow, 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    run.cancel().await.unwrap();
    let refused = runner.complete(&token, 1_i64).await;
    assert!(matches!(refused, Err(CommandError::NotAwaited { .. })), "{refused:?}");
    assert_eq!(run.status().await.unwrap(), Status::Cancelled);

    let run = start(&runner, "work", &workflow, 1).await;
    let token = tokens.next().await;
    run.cancel_work(token.work).await.unwrap();
    assert!(matches!(runner.complete(&token, 1_i64).await, Err(CommandError::NotAwaited { .. })));
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_value_of_another_type_fails_what_comes_after_and_nothing_else() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external()), 1).await;
    let token = tokens.next().await;
    runner.complete(&token, "forty-one".to_owned()).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(run.result::<String>("ask").await.unwrap(), "forty-one");
    let state = run.state().await.unwrap();
    let failed: Vec<_> = state.failures().iter().map(|failed| failed.component).collect();
    assert_eq!(failed, [Some("after")]);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_fails_before_it_hands_over_is_tried_again() {
    let (tokens, calls, runner) = (Tokens::new(), Calls::default(), in_memory().await);
    let (given, counted) = (tokens.clone(), calls.clone());
    let ask = step("ask", move |context: Context, x: i64| {
        given.give(&context);
        if counted.next() == 0 { Err(Failure::new("nobody there")) } else { Ok(x) }
    });
    let workflow = governed("w", [ask], [(policy::name("ask"), external().max_retries(1))]);
    let run = start(&runner, "r", &workflow, 1).await;
    let first = tokens.next().await;
    let second = tokens.next().await;
    until(&run, Status::Waiting).await;
    assert!(runner.complete(&first, 3_i64).await.is_err(), "that attempt failed");
    runner.complete(&second, 4_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("ask")).await.unwrap(), 4);
}

/// `ask` gives its token away and goes on when it may; it fails then if it shall.
fn slow(tokens: &Tokens, may_end: &Arc<Semaphore>, undone: &Calls, fails: bool, policy: Policy) -> Workflow {
    let (tokens, may_end, undone) = (tokens.clone(), Arc::clone(may_end), undone.clone());
    let ask = step("ask", move |context: Context, x: i64| {
        tokens.give(&context);
        let may_end = Arc::clone(&may_end);
        async move {
            may_end.acquire().await.unwrap().forget();
            context.register_compensation("undo", 7_i64);
            if fails { Err(Failure::new("broke")) } else { Ok(x) }
        }
    });
    let ship = step("ship", |_: i64| Err::<i64, _>(Failure::new("no"))).after("ask");
    let undo = compensation("undo", move |_: i64| i64::from(undone.next()));
    let rules = [
        (policy::name("ask"), policy),
        (policy::name("ship"), Policy::new().on_failure(OnFailure::Compensate)),
    ];
    governed("slow", [ask, ship, undo], rules)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_quicker_than_the_function_counts() {
    let (tokens, may_end, runner) = (Tokens::new(), Arc::new(Semaphore::new(0)), in_memory().await);
    let undone = Calls::default();
    let run = start(&runner, "r", &slow(&tokens, &may_end, &undone, false, external()), 1).await;
    let token = tokens.next().await;
    runner.heartbeat(&token).await.unwrap();
    let answer = tokio::spawn({
        let (runner, token) = (runner.clone(), token.clone());
        async move { runner.complete(&token, 41_i64).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!answer.is_finished(), "it is stored when the function has handed over");
    assert!(runner.complete(&token, 5_i64).await.is_err(), "somebody was quicker");
    may_end.add_permits(1);
    soon(answer).await.unwrap().unwrap();
    assert_eq!(soon(run.result::<i64>("ask")).await.unwrap(), 41);
    // What the function said after the answer came counts, too.
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(undone.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_early_answer_is_refused_if_the_function_fails_is_cancelled_or_stopped() {
    for status in [Status::Failed, Status::Cancelled, Status::Stopped] {
        let (tokens, may_end, runner) = (Tokens::new(), Arc::new(Semaphore::new(0)), in_memory().await);
        let workflow = slow(&tokens, &may_end, &Calls::default(), true, external());
        let run = start(&runner, "r", &workflow, 1).await;
        let token = tokens.next().await;
        let end = async {
            match status {
                Status::Cancelled => drop(run.cancel().await.unwrap()),
                Status::Stopped => drop(run.stop().await.unwrap()),
                _ => may_end.add_permits(1),
            }
        };
        let (answer, ()) = soon(async { tokio::join!(runner.complete(&token, 41_i64), end) }).await;
        assert!(matches!(answer, Err(CommandError::NotAwaited { .. })), "{status}: {answer:?}");
        assert_eq!(soon(run.wait()).await.unwrap(), status);
    }
}

#[tokio::test(start_paused = true)]
async fn only_work_whose_policy_says_so_is_ended_outside() {
    let (tokens, may_end, runner) = (Tokens::new(), Arc::new(Semaphore::new(0)), in_memory().await);
    let run = start(&runner, "r", &slow(&tokens, &may_end, &Calls::default(), false, Policy::new()), 1).await;
    let token = tokens.next().await;
    let refused = runner.complete(&token, 41_i64).await;
    assert!(matches!(refused, Err(CommandError::NotAwaited { .. })), "{refused:?}");
    may_end.add_permits(1);
    assert_eq!(soon(run.result::<i64>("ask")).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_counts_what_comes_from_outside() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let breaker = |on_open| CircuitBreaker {
        failure_threshold: 2,
        reset_timeout: Span::from_secs(30),
        on_open,
        ..CircuitBreaker::new("api")
    };
    let workflow = asking(&tokens, external().circuit_breaker(breaker(OnOpen::Fail)));
    for number in 0..2 {
        let run = start(&runner, &format!("{number}"), &workflow, 1).await;
        let token = tokens.next().await;
        runner.fail(&token, Failure::new("down")).await.unwrap();
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    }
    let run = start(&runner, "shut", &workflow, 1).await;
    let failure = failure_of(&run).await;
    assert_eq!(code(&failure), "circuit_open", "{failure}");
    assert_eq!(tokens.count(), 2, "it did not begin");
    // One that ends well outside closes it again.
    tokio::time::sleep(Duration::from_secs(31)).await;
    let run = start(&runner, "again", &workflow, 1).await;
    let token = tokens.next().await;
    runner.complete(&token, 1_i64).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    for number in 0..3 {
        let run = start(&runner, &format!("closed-{number}"), &workflow, 1).await;
        let token = tokens.next().await;
        runner.complete(&token, 1_i64).await.unwrap();
        assert_eq!(soon(run.wait()).await.unwrap(), Status::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_of_work_that_fails_outside_take_from_the_budget() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let policy = external().max_retries(9).retry_budget("b", 2, "1h");
    let run = start(&runner, "r", &asking(&tokens, policy), 1).await;
    for attempt in 0..3 {
        let token = tokens.next().await;
        assert_eq!(token.attempt, attempt);
        runner.fail(&token, Failure::new("down")).await.unwrap();
    }
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    assert_eq!(tokens.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_helps_out_of_a_failure_from_outside() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let workflow = asking(&tokens, external().fallback_value(serde_json::json!(9)));
    let run = start(&runner, "r", &workflow, 1).await;
    let token = tokens.next().await;
    runner.fail(&token, Failure::new("down")).await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_takes_what_comes_from_outside_and_goes_on_later() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external()), 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    run.pause().await.unwrap();
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(run.results::<i64>("ask").await.unwrap(), [41]);
    assert_eq!(run.results::<i64>("after").await.unwrap(), [0_i64; 0]);
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_takes_what_comes_from_outside_and_goes_on_later() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external().idempotency_key_template("key")), 1).await;
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    run.stop().await.unwrap();
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(run.status().await.unwrap(), Status::Stopped);
    assert_eq!(run.results::<i64>("ask").await.unwrap(), [41]);
    run.resume().await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_token_says_what_is_wrong() {
    let runner = in_memory().await;
    let token = "nowhere:work_00112233445566778899aabbccddeeff:0".parse().unwrap();
    let error = runner.complete(&token, 1_i64).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no run `nowhere`");
}

#[tokio::test(start_paused = true)]
async fn work_under_a_key_that_ends_outside_is_the_result_of_all_that_are_the_same() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let keys = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&keys);
    let key = move |_: &policy::NodeInfo<'_>, _: &tidewheel_core::fact::Value| {
        *counted.lock().unwrap() += 1;
        "same".to_owned()
    };
    let workflow = asking(&tokens, external().idempotency_key(key));
    let one = start(&runner, "one", &workflow, 1).await;
    let token = tokens.next().await;
    let two = start(&runner, "two", &workflow, 2).await;
    until(&two, Status::Waiting).await;
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(soon(one.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(soon(two.result::<i64>("after")).await.unwrap(), 42);
    assert_eq!(tokens.count(), 1);
    assert!(*keys.lock().unwrap() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_the_time_before_somebody_retried_it_ends_nothing() {
    let (tokens, runner) = (Tokens::new(), in_memory().await);
    let run = start(&runner, "r", &asking(&tokens, external()), 1).await;
    let before = tokens.next().await;
    until(&run, Status::Waiting).await;
    runner.fail(&before, Failure::new("no")).await.unwrap();
    assert_eq!(soon(run.wait()).await.unwrap(), Status::Failed);
    run.retry().await.unwrap();
    let token = tokens.next().await;
    until(&run, Status::Waiting).await;
    assert_eq!((token.attempt, token.round, token.to_string()), (0, 1, format!("{before}.1")));
    assert_eq!(token.to_string().parse(), Ok(token.clone()));
    assert!(matches!(runner.complete(&before, 1_i64).await, Err(CommandError::NotAwaited { .. })));
    runner.complete(&token, 41_i64).await.unwrap();
    assert_eq!(soon(run.result::<i64>("after")).await.unwrap(), 42);
}
