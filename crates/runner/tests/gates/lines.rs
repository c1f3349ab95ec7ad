//! Who is let in first: urgent work, and whoever asks in turns; nobody waits for ever, and waiting costs little.

use std::time::Duration;

use tidewheel_core::policy::{self, Policy, Priority};
use tidewheel_core::workflow::{Workflow, map, step};
use tidewheel_runner::{Runner, RunnerOptions};

use crate::world::{HOMES, Home, Starts, assert_rate, governed, named, start, timed};

/// Two steps that share one slot, which somebody has until all of them wait.
fn urgent(starts: &Starts, low: i64, high: i64) -> Workflow {
    let slow = Policy::new().shared_concurrency_limit("db", 1);
    let later = slow.clone().delay("1s");
    let list = |name: &str, from: i64, count: i64| {
        step(name, move |_: i64| async move { (from..from + count).collect::<Vec<i64>>() })
    };
    governed(
        [
            Starts::new().step("has_it", 5_000),
            list("lows", 0, low),
            map("each_low", |x: i64| async move { x }).after("lows"),
            starts.step("low", 10).after("each_low"),
            list("highs", 1_000, high),
            map("each_high", |x: i64| async move { x }).after("highs"),
            starts.step("high", 10).after("each_high"),
        ],
        vec![
            (policy::name("has_it"), slow),
            (policy::name("low"), later.clone().priority(Priority::Low)),
            (policy::name("high"), later.priority(Priority::High)),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn urgent_work_goes_first_and_what_is_not_urgent_has_its_turn() {
    for home in HOMES {
        let starts = Starts::new();
        home.run(&urgent(&starts, 4, 30), 0..1).await;
        let order = starts.order();
        let lows: Vec<usize> = (0..order.len()).filter(|place| order[*place] < 1_000).collect();
        assert_eq!((order.len(), lows), (34, vec![8, 17, 26, 33]), "{home:?}: each ninth turn is theirs");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_much_work_does_not_keep_another_waiting() {
    for policy in
        [Policy::new().shared_concurrency_limit("db", 1), Policy::new().shared_rate_limit("db", 1, "10ms")]
    {
        let (many, one) = (Starts::new(), Starts::new());
        let rules = || vec![(policy::name("s"), policy.clone())];
        let list = step("list", |count: i64| async move { (0..count).collect::<Vec<i64>>() });
        let items = map("items", |x: i64| async move { x }).after("list");
        let much = named("much", [list, items, many.step("s", 10).after("items")], rules());
        let little = named("little", [one.step("s", 10)], rules());
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let large = start(&runner, "large", &much, 1_000).await;
        tokio::time::sleep(Duration::from_millis(95)).await;
        let small = start(&runner, "small", &little, 7).await;
        timed(small.wait()).await.unwrap();
        let first = one.times()[0];
        assert!(first <= 120, "it began at {first}");
        timed(large.wait()).await.unwrap();
        assert_eq!(many.count(), 1_000);
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_let_in_one_after_the_other() {
    for home in HOMES {
        let starts = Starts::new();
        let list = step("list", |count: i64| async move { (0..count).collect::<Vec<i64>>() });
        let items = map("items", |x: i64| async move { x }).after("list");
        let workflow = governed(
            [list, items, starts.step("s", 0).after("items")],
            vec![(policy::name("s"), Policy::new().rate_limit(100, "1s"))],
        );
        home.run(&workflow, 2_000..2_001).await;
        let mut order = starts.order();
        if home == Home::Runner {
            // Threads that store the results of a run may ask in another order than that of the items.
            order.sort_unstable();
        }
        assert!(order.into_iter().eq(0..2_000), "{home:?}: each of them, once");
        assert!(starts.now() >= 19_000, "{home:?}");
        assert_rate(starts.times(), 100, 1_000);
    }
}
