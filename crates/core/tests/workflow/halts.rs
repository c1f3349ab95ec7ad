//! Reduces that halt: their result does not wait for items behind the halt, nor for what becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidewheel_core::event::{Absence, Event};
use tidewheel_core::policy::Failure;
use tidewheel_core::workflow::{Fold, Workflow, map, reduce, step};
use tidewheel_core::{Executed, Outcome, Runnable};

use crate::driven::{Driven, well};

/// Adds items up to the first that is at least 3.
fn until_three(sum: i64, x: i64) -> Fold<i64> {
    if x >= 3 { Fold::Halt(sum + x) } else { Fold::Continue(sum + x) }
}

fn sums() -> Workflow {
    Workflow::new("w")
        .add(step("list", |n: i64| (1..=n).collect::<Vec<_>>()))
        .add(map("item", |x: i64| x).after("list"))
        .add(reduce("sum", 0_i64, until_three).after("item"))
        .add(step("after", |x: i64| x * 10).after("sum"))
        .build()
        .unwrap()
}

/// Returns the pieces of work for the items, in order, and leaves the run waiting for them.
fn items_of(driven: &mut Driven, count: i64) -> Vec<Runnable> {
    driven.plan(count);
    loop {
        let runnables = driven.prepare();
        if runnables.len() as i64 == count {
            return runnables;
        }
        runnables.into_iter().for_each(|runnable| driven.end(runnable, well));
    }
}

fn broken(runnable: Runnable) -> Executed {
    runnable.executed(Outcome::Failed(Failure::new("broken")))
}

#[test]
fn a_reduce_that_halts_gives_its_result_before_the_items_behind_it_are_done() {
    let mut driven = Driven::of(&sums());
    let mut items = items_of(&mut driven, 5);
    let behind = items.split_off(3);
    for item in items {
        assert_eq!(driven.run.next_runnables().len(), 0, "the reduce waits for the items up to the halt");
        driven.end(item, well);
    }
    for runnable in driven.prepare() {
        driven.end(runnable, well);
    }
    assert_eq!(driven.values("sum"), [6]);
    driven.is_sound();
    let after = driven.prepare();
    after.into_iter().for_each(|runnable| driven.end(runnable, well));
    behind.into_iter().for_each(|item| driven.end(item, well));
    driven.finish(well);
    assert_eq!((driven.values("sum"), driven.values("after")), (vec![6.into()], vec![60.into()]));
    assert_eq!(driven.values("item").len(), 5, "what the others gave is there, and does not count");
    assert_eq!(driven.count(|event| matches!(event, Event::FanInHalted { items: 3, .. })), 1);
}

#[test]
fn an_item_behind_the_halt_that_fails_does_not_fail_the_reduce_whenever_it_does() {
    for behind_first in [false, true] {
        let mut driven = Driven::of(&sums());
        let mut items = items_of(&mut driven, 5);
        let behind = items.split_off(3);
        if behind_first {
            behind.into_iter().for_each(|item| driven.end(item, broken));
            items.into_iter().for_each(|item| driven.end(item, well));
        } else {
            items.into_iter().for_each(|item| driven.end(item, well));
            behind.into_iter().for_each(|item| driven.end(item, broken));
        }
        driven.finish(well);
        assert_eq!(driven.values("after"), [60], "failed first: {behind_first}");
        assert_eq!((driven.run.absence("sum", 0), driven.run.failures().len()), (None, 2));
        // Those items may be tried again, which changes nothing of the result.
        driven.reopen("item").unwrap();
        driven.finish(well);
        assert_eq!((driven.values("item").len(), driven.values("after")), (5, vec![60.into()]));
    }
}

#[test]
fn an_item_before_the_halt_that_fails_fails_the_reduce() {
    let mut driven = Driven::of(&sums());
    for (place, item) in items_of(&mut driven, 5).into_iter().enumerate().rev() {
        driven.end(item, if place == 1 { broken } else { well });
    }
    driven.finish(well);
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::UpstreamFailed));
    // When it succeeds after all, the halt is found.
    driven.reopen("item").unwrap();
    driven.finish(well);
    assert_eq!(driven.values("after"), [60]);
}

#[test]
fn items_in_any_order_give_the_same_result_and_the_same_origin() {
    let orders: [fn(&mut Vec<Runnable>); 3] = [|_| {}, |items| items.reverse(), |items| items.rotate_left(2)];
    for order in orders {
        let mut driven = Driven::of(&sums());
        let mut items = items_of(&mut driven, 5);
        order(&mut items);
        items.into_iter().for_each(|item| driven.end(item, well));
        driven.finish(well);
        assert_eq!(driven.values("after"), [60]);
        let came_from = |value: i64| {
            let items = driven.run.productions_of("item").unwrap();
            let item = items.iter().find(|item| item.value.get::<i64>().unwrap() == value).unwrap().id;
            driven.run.produced_since(item).iter().any(|fact| fact.producer == Some("sum"))
        };
        assert_eq!([1, 2, 3, 4, 5].map(came_from), [true, true, true, false, false]);
    }
}

#[test]
fn a_reducer_that_halts_only_when_it_is_looked_at_fails_by_name() {
    let calls = Arc::new(AtomicU32::new(0));
    let workflow = Workflow::new("w")
        .add(step("list", |n: i64| (1..=n).collect::<Vec<_>>()))
        .add(map("item", |x: i64| x).after("list"))
        .add(
            reduce("sum", 0_i64, move |sum: i64, x: i64| match calls.fetch_add(1, Ordering::Relaxed) {
                0 => Fold::Halt(sum + x),
                _ => Fold::Continue(sum + x),
            })
            .after("item"),
        )
        .build()
        .unwrap();
    let driven = Driven::ran(&workflow, 3, well);
    let failures = driven.run.failures();
    assert_eq!(failures[0].failure.code, Some("unstable".into()), "{failures:?}");
}

#[test]
fn a_reducer_that_panics_fails_its_reduce_when_all_items_are_there() {
    let workflow = Workflow::new("w")
        .add(step("list", |n: i64| (1..=n).collect::<Vec<_>>()))
        .add(map("item", |x: i64| x).after("list"))
        .add(
            reduce("sum", 0_i64, |sum: i64, x: i64| -> Fold<i64> {
                assert!(x < 2, "no twos");
                Fold::Continue(sum + x)
            })
            .after("item"),
        )
        .build()
        .unwrap();
    let driven = Driven::ran(&workflow, 3, well);
    assert_eq!(driven.run.absence("sum", 0), Some(Absence::Failed));
    assert_eq!(driven.run.failures()[0].failure.message, "no twos");
}
