//! Whatever work waits for, it has no slot of the pool meanwhile.

use tidewheel_core::policy::{self, Backoff, Policy};
use tidewheel_core::time::Timestamp;
use tidewheel_store::{Clock, RealClock};

use crate::world::{HOMES, Starts, breaker, governed};

#[tokio::test(start_paused = true)]
async fn with_one_slot_whatever_waits_lets_other_work_run_at_once() {
    let later = Timestamp::from_nanos(RealClock::new().now().as_nanos() + 3_600_000_000_000);
    let waits = [
        ("delay", Policy::new().delay("5s")),
        ("schedule", Policy::new().scheduled_at(later)),
        ("rate", Policy::new().shared_rate_limit("r", 1, "5s")),
        ("slots", Policy::new().shared_concurrency_limit("c", 1)),
        ("breaker", Policy::new().circuit_breaker(breaker(1))),
        ("backoff", Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("5s")),
    ];
    for home in HOMES {
        for (what, policy) in waits.clone() {
            let (held, free) = (Starts::new(), Starts::new());
            // The first one takes what there is, or opens the breaker; the second one waits.
            let fails = what == "breaker" || what == "backoff";
            let workflow = governed(
                [
                    held.failing("first", 0, move |call| fails && call == 0),
                    free.step("go", 1),
                    free.step("on", 1).after("go"),
                    held.step("second", 0).after("on"),
                    free.step("free", 1).after("on"),
                ],
                vec![(policy::name("first"), policy.clone()), (policy::name("second"), policy)],
            );
            home.run_with(&workflow, 0..1, 1).await;
            let times = free.times();
            assert!(times.len() == 3 && times.iter().all(|at| *at <= 3), "{home:?}, {what}: {times:?}");
            if what != "slots" {
                assert!(held.times().iter().any(|at| *at >= 4_990), "{home:?}, {what}: {:?}", held.times());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_one_of_few_slots_of_a_name_have_none_of_the_pool() {
    for home in HOMES {
        let (held, free) = (Starts::new(), Starts::new());
        let workflow = governed(
            [held.step("held", 5_000), free.step("free", 1)],
            vec![(policy::name("held"), Policy::new().concurrency_limit(1))],
        );
        // Three want the one slot of the limit; the pool has two, so one is for the others.
        home.run_with(&workflow, 0..3, 2).await;
        let gaps: Vec<u64> = held.times().windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!((gaps, free.times()[2] <= 3), (vec![5_000, 5_000], true), "{home:?}");
    }
}
