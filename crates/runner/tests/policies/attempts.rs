//! How often work is called, when again, and which failures are worth another call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::event::Absence;
use tidewheel_core::policy::{
    self, Backoff, Coefficient, ErrorMatcher, Failure, Jitter, Kind, Overlay, Policy, Rules,
};
use tidewheel_core::workflow::{Workflow, accumulator, condition, map, reduce, rule, step};
use tidewheel_runner::{Options, SyncWork, react_until_satisfied};

use crate::world::{Calls, built, flaky, flaky_sync, governed, react, rules};

const EVERYWHERE: [SyncWork; 2] = [SyncWork::Threads, SyncWork::Inline];

#[tokio::test(start_paused = true)]
async fn f10_runtime_rules_come_before_those_of_the_workflow_or_in_their_place() {
    let calls = Calls::default();
    let workflow = governed([flaky("flaky", &calls, 2)], policy::default(), Policy::new().max_retries(0));
    let runtime = rules(policy::name("flaky"), Policy::new().max_retries(3));
    let (run, _) = react(&workflow, Options::new().policies(runtime, Overlay::Merge)).await;
    assert_eq!(run.result::<i64>("flaky").unwrap(), Some(2));

    let slow = step("slow", |x: i64| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        x + 5
    });
    let workflow = governed([slow], policy::default(), Policy::new().timeout("1ms"));
    assert_eq!(react(&workflow, Options::new()).await.0.failures().len(), 1);
    let runtime = rules(policy::default(), Policy::new().timeout("infinity"));
    let (run, _) = react(&workflow, Options::new().policies(runtime, Overlay::Replace)).await;
    assert_eq!(run.result::<i64>("slow").unwrap(), Some(6));
    let (run, _) = react(&workflow, Options::new().policies(Rules::default(), Overlay::Replace)).await;
    assert_eq!(run.result::<i64>("slow").unwrap(), Some(6), "no rules at all are rules, too");
    let (run, _) = react(&workflow, Options::new().policies(Rules::default(), Overlay::Merge)).await;
    assert_eq!(run.failures().len(), 1, "nothing was laid over");
}

#[tokio::test(start_paused = true)]
async fn f11_the_reaction_of_a_rule_has_a_policy() {
    for place in EVERYWHERE {
        let calls = Calls::default();
        let counted = calls.clone();
        let tenfold = move |x: i64| {
            if counted.one_more() < 2 { Err(Failure::new("busy")) } else { Ok(x * 10) }
        };
        let workflow = governed(
            [rule("big").when(|x: &i64| *x > 5).then(tenfold), step("after", |x: i64| x + 1).after("big")],
            policy::name("big"),
            Policy::new().max_retries(3),
        );
        let mut run = workflow.run("r");
        let options = Options::new().sync_work(place);
        react_until_satisfied(&mut run, 10_i64, options.clone()).await.unwrap();
        assert_eq!(run.result::<i64>("big").unwrap(), Some(100));
        assert_eq!(run.result::<i64>("after").unwrap(), Some(101));
        assert_eq!(calls.count(), 3);
        react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
        assert_eq!(calls.count(), 3, "what the condition does not want is not called");
    }
}

#[tokio::test(start_paused = true)]
async fn g1_work_that_returns_is_completed_and_work_that_fails_has_failed() {
    let policy = Policy::new().max_retries(0).timeout("1s");
    let workflow = governed(
        [
            step("good", |x: i64| x + 1),
            step("bad", |_: i64| -> Result<i64, Failure> { Err(Failure::new("no").code(7)) }),
            step("worse", |_: i64| -> i64 { panic!("never") }),
        ],
        policy::default(),
        policy,
    );
    let (run, _) = react(&workflow, Options::new()).await;
    assert_eq!(run.result::<i64>("good").unwrap(), Some(2));
    let failed: Vec<_> = run.failures().iter().map(|failed| failed.failure.to_string()).collect();
    assert_eq!(failed, ["[7] no", "[panic] never"]);
}

#[tokio::test(start_paused = true)]
async fn g3_attempts_are_counted() {
    for place in EVERYWHERE {
        for (failures, retries, calls_wanted, value) in
            [(2, 3, 3, Some(2)), (4, 3, 4, None), (9, 0, 1, None), (9, 3, 4, None), (0, 3, 1, Some(2))]
        {
            for component in [flaky, flaky_sync] {
                let calls = Calls::default();
                let policy = Policy::new().max_retries(retries);
                let workflow = governed([component("flaky", &calls, failures)], policy::default(), policy);
                let (run, took) = react(&workflow, Options::new().sync_work(place)).await;
                assert_eq!(calls.count(), calls_wanted);
                assert_eq!(run.result::<i64>("flaky").unwrap(), value);
                let attempts = run.failures().first().map(|failed| failed.attempts);
                assert_eq!(attempts, value.is_none().then_some(calls_wanted));
                assert_eq!(took, 0, "without a backoff nobody waits");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g4_the_delays_are_those_of_the_policy() {
    let exponential = Backoff::exponential();
    let by_half = Backoff::Exponential(Coefficient::from_number(1.5).unwrap());
    for (backoff, base, max, gaps) in [
        (Backoff::None, "500ms", "30s", [0, 0, 0, 0]),
        (Backoff::Fixed, "70ms", "30s", [70, 70, 70, 70]),
        (Backoff::Fixed, "70ms", "70ms", [70, 70, 70, 70]),
        (Backoff::Linear, "100ms", "30s", [100, 200, 300, 400]),
        (Backoff::Linear, "100ms", "250ms", [100, 200, 250, 250]),
        (exponential, "100ms", "30s", [100, 200, 400, 800]),
        (exponential, "100ms", "300ms", [100, 200, 300, 300]),
        (by_half, "100ms", "30s", [100, 150, 225, 337]),
    ] {
        let calls = Calls::default();
        let policy = Policy::new().max_retries(4).backoff(backoff).base_delay(base).max_delay(max);
        let workflow = governed([flaky("flaky", &calls, 4)], policy::default(), policy);
        let (run, took) = react(&workflow, Options::new()).await;
        assert_eq!(calls.gaps(), gaps, "{backoff:?} {base} {max}");
        assert_eq!(took, gaps.iter().sum::<u128>());
        assert_eq!(run.result::<i64>("flaky").unwrap(), Some(2));
    }
}

#[tokio::test(start_paused = true)]
async fn g4_jitter_is_within_its_bounds_and_the_same_every_time() {
    for (jitter, lowest) in [(Jitter::Full, [1, 1, 1, 1]), (Jitter::Equal, [50, 100, 150, 150])] {
        let mut seen: Vec<Vec<u128>> = Vec::new();
        for _ in 0..2 {
            let calls = Calls::default();
            let policy = Policy::new()
                .max_retries(4)
                .backoff(Backoff::exponential())
                .jitter(jitter)
                .base_delay("100ms")
                .max_delay("300ms");
            let workflow = governed([flaky("flaky", &calls, 4)], policy::default(), policy);
            react(&workflow, Options::new()).await;
            seen.push(calls.gaps());
        }
        assert_eq!(seen[0], seen[1], "a function of identity");
        for (attempt, highest) in [100, 200, 300, 300].into_iter().enumerate() {
            let gap = seen[0][attempt];
            assert!((lowest[attempt]..=highest).contains(&gap), "{jitter:?} {attempt} {gap}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn items_of_a_map_do_not_come_back_in_step() {
    let at = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&at);
    let item = move |x: i64| {
        let again = {
            let mut seen = seen.lock().unwrap();
            let again = seen.iter().any(|(item, _)| *item == x);
            seen.push((x, tokio::time::Instant::now()));
            again
        };
        async move { if again { Ok(x) } else { Err(Failure::new("busy")) } }
    };
    let policy = Policy::new().max_retries(1).backoff(Backoff::Fixed).jitter(Jitter::Full).base_delay("10s");
    let workflow = governed([map("each", item)], policy::default(), policy);
    let mut run = workflow.run("r");
    react_until_satisfied(&mut run, (0..20_i64).collect::<Vec<_>>(), Options::new()).await.unwrap();
    assert_eq!(run.results::<i64>("each").unwrap(), (0..20).collect::<Vec<_>>());
    let mut again: Vec<_> = at.lock().unwrap()[20..].iter().map(|(_, at)| *at).collect();
    again.dedup();
    assert!(again.len() > 15, "{}", again.len());
}

#[tokio::test(start_paused = true)]
async fn a_failure_may_ask_for_a_longer_wait_than_the_backoff_has() {
    for (asked, gap) in [(50, 100), (700, 700)] {
        let calls = Calls::default();
        let counted = calls.clone();
        let limited = step("limited", move |x: i64| {
            let before = counted.one_more();
            let wait = Duration::from_millis(asked);
            async move { if before == 0 { Err(Failure::new("slow down").retry_after(wait)) } else { Ok(x) } }
        });
        let policy =
            Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("100ms").max_delay("100ms");
        react(&governed([limited], policy::default(), policy), Options::new()).await;
        assert_eq!(calls.gaps(), [gap]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_failures_that_are_worth_it_are_tried_again() {
    #[derive(Debug)]
    struct Throttled;
    impl std::fmt::Display for Throttled {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("throttled")
        }
    }
    impl std::error::Error for Throttled {}

    type Fail = fn() -> Failure;
    let (coded, typed): (Fail, Fail) = (|| Failure::new("x").code(503), || Failure::of(&Throttled));
    let own: Fail = || Failure::new("x").code(503).non_retryable();
    let panics: Fail = || panic!("oh");
    let retry = || Policy::new().max_retries(2);
    let only = |errors: Vec<ErrorMatcher>| retry().retryable_errors(errors);
    let never = |errors: Vec<ErrorMatcher>| retry().non_retryable_errors(errors);
    let is_503 = || ErrorMatcher::predicate(|failure| failure.code == Some(503.into()));
    let unsure = || ErrorMatcher::predicate(|_| panic!("no answer"));
    for (name, policy, fail, calls_wanted) in [
        ("all of them", retry(), coded, 3),
        ("only its code", only(vec![503.into()]), coded, 3),
        ("only another code", only(vec![429.into()]), coded, 1),
        ("only its type", only(vec!["Throttled".into()]), typed, 3),
        ("only this type", only(vec![ErrorMatcher::of::<Throttled>()]), typed, 3),
        ("only another type", only(vec!["Throttled".into()]), coded, 1),
        ("only by predicate", only(vec![is_503()]), coded, 3),
        ("only by predicate, another", only(vec![is_503()]), typed, 1),
        ("never its code", never(vec![503.into()]), coded, 1),
        ("never another code", never(vec![429.into()]), coded, 3),
        ("never its type", never(vec!["Throttled".into()]), typed, 1),
        ("never by predicate", never(vec![is_503()]), coded, 1),
        ("never beats only", only(vec![503.into()]).non_retryable_errors([is_503()]), coded, 1),
        ("its own word", only(vec![503.into()]), own, 1),
        ("a panic", retry(), panics, 3),
        ("never a panic", never(vec!["panic".into()]), panics, 1),
        ("only if a predicate answers", only(vec![unsure()]), coded, 1),
        ("never, if a predicate does not answer", never(vec![unsure()]), coded, 1),
    ] {
        for place in EVERYWHERE {
            let calls = Calls::default();
            let counted = calls.clone();
            let fails = step("fails", move |_: i64| -> Result<i64, Failure> {
                counted.one_more();
                Err(fail())
            });
            let workflow = governed([fails], policy::default(), policy.clone());
            let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
            assert_eq!(calls.count(), calls_wanted, "{name}");
            assert_eq!(run.failures()[0].attempts, calls_wanted, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g12_hooks_are_called_around_every_attempt() {
    for place in EVERYWHERE {
        let (before, after, calls) = (Calls::default(), Calls::default(), Calls::default());
        let (before_too, after_too) = (before.clone(), after.clone());
        let hooked = flaky_sync("flaky", &calls, 2)
            .hook_before(move |_, _| {
                before_too.one_more();
                Ok(())
            })
            .hook_after(move |_, _, _| match after_too.one_more() {
                0 => Err(Failure::new("not good enough")),
                _ => Ok(()),
            });
        let workflow = governed([hooked], policy::default(), Policy::new().max_retries(5));
        let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
        assert_eq!(run.result::<i64>("flaky").unwrap(), Some(2));
        assert_eq!(
            (before.count(), calls.count(), after.count()),
            (4, 4, 2),
            "an after hook fails attempts, too"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d14_the_fallback_of_an_item_counts_for_the_reduce() {
    let item = |x: i64| if x == 2 { Err(Failure::new("no")) } else { Ok(x) };
    let workflow = Workflow::new("w")
        .add(map("each", item))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("each"))
        .policy(policy::name("each"), Policy::new().fallback_value(100_i64))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    react_until_satisfied(&mut run, vec![1_i64, 2, 3], Options::new()).await.unwrap();
    assert_eq!(run.results::<i64>("each").unwrap(), [1, 100, 3]);
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(104));
    assert!(run.failures().is_empty());
}

#[tokio::test(start_paused = true)]
async fn e7_a_state_is_unchanged_between_attempts_and_after_a_failure() {
    for place in EVERYWHERE {
        let (seen, calls) = (Arc::new(Mutex::new(Vec::new())), Calls::default());
        let (told, counted) = (Arc::clone(&seen), calls.clone());
        let add = move |state: i64, x: i64| {
            told.lock().unwrap().push((state, x));
            assert!(x < 100 && (x != 7 || counted.one_more() >= 2), "cannot add {x}");
            state + x
        };
        let policy = Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay("10ms");
        let workflow = governed([accumulator("total", 0_i64, add)], policy::kind(Kind::Accumulator), policy);
        let mut run = workflow.run("r");
        for input in [5_i64, 7, 100, 1] {
            run.plan(input);
        }
        react_until_satisfied(&mut run, 2_i64, Options::new().sync_work(place)).await.unwrap();
        assert_eq!(run.results::<i64>("total").unwrap(), [0, 5, 12, 13, 15]);
        let seen = seen.lock().unwrap().clone();
        let twelve = [(12, 100), (12, 100), (12, 100)];
        assert_eq!(seen[..4], [(0, 5), (5, 7), (5, 7), (5, 7)]);
        assert_eq!(seen[4..7], twelve);
        assert_eq!(seen[7..], [(12, 1), (13, 2)]);
        assert_eq!(run.failures().len(), 1);
        assert_eq!(run.failures()[0].attempts, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn b21_a_condition_that_fails_is_tried_again_under_its_policy() {
    for place in EVERYWHERE {
        let (calls, named) = (Calls::default(), Calls::default());
        let (counted, named_too) = (calls.clone(), named.clone());
        let unsure = move |x: &i64| {
            assert!(counted.one_more() >= 2, "not yet");
            *x > 0
        };
        let is_big =
            move |_: i64| if named_too.one_more() < 1 { Err(Failure::new("busy")) } else { Ok(true) };
        let workflow = Workflow::new("w")
            .add(rule("rule").when(unsure).then(|x: i64| x * 2))
            .add(condition("is_big", is_big))
            .add(step("gated", |x: i64| x + 1).after("is_big"))
            .add(rule("hopeless").when(|_: &i64| -> bool { panic!("never") }).then(|x: i64| x))
            .policy(policy::default(), Policy::new().max_retries(2))
            .build()
            .unwrap();
        let (run, _) = react(&workflow, Options::new().sync_work(place)).await;
        assert_eq!(run.result::<i64>("rule").unwrap(), Some(2));
        assert_eq!(run.result::<i64>("gated").unwrap(), Some(2));
        assert_eq!((calls.count(), named.count()), (3, 2));
        assert_eq!(run.absence("hopeless", 0), Some(Absence::Failed));
        assert_eq!(run.failures()[0].attempts, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn without_policies_nothing_changes() {
    let calls = Calls::default();
    let (run, _) = react(&built([flaky("flaky", &calls, 1)]), Options::new()).await;
    assert_eq!(calls.count(), 1);
    assert_eq!(run.failures()[0].attempts, 1);
    assert_eq!(run.failures()[0].reason, None, "nobody decided anything");
}
