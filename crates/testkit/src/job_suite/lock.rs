//! Turns and run locks: one holder at a time, whoever asks.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::world::{World, job, job_id};

/// There is one turn at a time.
pub fn there_is_one_turn_at_a_time(world: World) {
    let turn = world.store.turn().unwrap();
    assert!(world.other.try_turn().unwrap().is_none());
    assert!(world.store.try_turn().unwrap().is_none());
    drop(turn);
    assert!(world.other.try_turn().unwrap().is_some());
}

/// Threads that wait for the turn get it one after the other, and no write is lost.
pub fn whoever_waits_for_the_turn_gets_it(world: World) {
    const EACH: u32 = 8;
    world.put(&[job("a")]);
    let holders = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for store in [&world.store, &world.other, &world.store, &world.other] {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let mut turn = store.turn().unwrap();
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                    let mut record = store.record(&job_id("a")).unwrap().unwrap();
                    record.metadata.set("n", record.metadata.number("n").unwrap_or(0) + 1);
                    let batch = tidewheel_store::jobs::Batch { records: vec![record], ..Default::default() };
                    assert!(turn.commit(batch).unwrap().is_empty());
                    assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
                }
            });
        }
    });
    let record = world.store.record(&job_id("a")).unwrap().unwrap();
    assert_eq!(record.metadata.number("n"), Some(4 * EACH));
}

/// A run lock is held until the last copy of it is closed.
pub fn a_run_lock_is_held_until_its_last_copy_is_closed(world: World) {
    world.put(&[job("a"), job("b")]);
    let lock = world.store.take_run_lock(&job_id("a")).unwrap().unwrap();
    assert!(world.other.take_run_lock(&job_id("a")).unwrap().is_none());
    assert!(world.store.take_run_lock(&job_id("a")).unwrap().is_none());
    assert!(world.other.take_run_lock(&job_id("b")).unwrap().is_some());
    let copy = lock.try_clone().unwrap();
    drop(lock);
    assert!(world.other.take_run_lock(&job_id("a")).unwrap().is_none());
    drop(copy);
    assert!(world.other.take_run_lock(&job_id("a")).unwrap().is_some());
}
