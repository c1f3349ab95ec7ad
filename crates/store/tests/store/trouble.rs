//! Trouble that passes: the store says what stands in the way, has changed nothing, and works again afterwards.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_store::sqlite::Options;
use tidewheel_store::{Filter, Store as _, StoreError, Unavailable};

use crate::fixture::{LEASE, Place, command, more, new_run, obstacle, write};

#[tokio::test]
async fn a_full_disk_is_named_and_refuses_no_reads() {
    let place = Place::new();
    let store = place.try_open(&Options::new().pages_at_most(60)).unwrap();
    let owner = store.join(LEASE).await.unwrap().owner;
    let lease = write(&store, new_run("a", Some(owner))).await.unwrap().unwrap();
    let mut big = more(&lease, 1);
    big.events.push(&format!("\"{}\"", "x".repeat(1_000_000)));
    assert_eq!(obstacle(write(&store, big.clone()).await), Some(Unavailable::Full));
    assert_eq!(store.find(&lease.run).await.unwrap().unwrap().version, 1);
    assert_eq!(store.read(&lease.run, 0).await.unwrap().len(), 1);

    write(&store, more(&lease, 1)).await.unwrap().unwrap();
    store.close().await;
    let roomy = place.open();
    let mut big = more(&lease, 2);
    big.events.push(&format!("\"{}\"", "x".repeat(1_000_000)));
    write(&roomy, big).await.unwrap().unwrap();
    assert_eq!(roomy.read(&lease.run, 0).await.unwrap().len(), 3);
}

#[tokio::test]
async fn somebody_who_writes_too_long_is_waited_for_so_long_and_no_longer() {
    let place = Place::new();
    let store = place.try_open(&Options::new().patience(Duration::from_millis(50))).unwrap();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    let bare = place.bare();
    bare.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(obstacle(write(&store, more(&lease, 1)).await), Some(Unavailable::Busy));
    assert_eq!(obstacle(store.join(LEASE).await), Some(Unavailable::Busy));
    assert_eq!(store.list(Filter::default()).await.unwrap().rows.len(), 1);
    bare.execute_batch("COMMIT").unwrap();
    write(&store, more(&lease, 1)).await.unwrap().unwrap();
}

/// A process that is stopped while it has its turn, and not in the middle of a write, holds up no other.
#[tokio::test]
async fn a_turn_that_does_not_come_is_not_needed() {
    let place = Place::new();
    let store = place.try_open(&Options::new().patience(Duration::from_millis(50))).unwrap();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    let turn = std::fs::File::open(place.beside().join("turn.lock")).unwrap();
    turn.lock().unwrap();
    for version in 1..3 {
        write(&store, more(&lease, version)).await.unwrap().unwrap();
    }
    assert_eq!(store.list(Filter::default()).await.unwrap().rows.len(), 1);
    turn.unlock().unwrap();
    write(&store, more(&lease, 3)).await.unwrap().unwrap();
    let other = place.open();
    write(&other, more(&lease, 4)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_store_that_may_only_be_read_is_read() {
    let place = Place::new();
    let missing = place.try_open(&Options::new().read_only());
    assert_eq!(obstacle(missing), Some(Unavailable::Io));
    assert!(!place.beside().exists());

    let store = place.open();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    let reader = place.try_open(&Options::new().read_only()).unwrap();
    assert_eq!(obstacle(write(&reader, more(&lease, 1)).await), Some(Unavailable::ReadOnly));
    assert_eq!(obstacle(reader.join(LEASE).await), Some(Unavailable::ReadOnly));
    assert_eq!(reader.read(&lease.run, 0).await.unwrap().len(), 1);
    write(&store, more(&lease, 1)).await.unwrap().unwrap();
    assert_eq!(reader.read(&lease.run, 0).await.unwrap().len(), 2);
}

/// A write that cannot be done must not fail those that happened to be committed with it.
#[tokio::test]
async fn one_bad_write_fails_alone() {
    let place = Place::new();
    let store = Arc::new(place.try_open(&Options::new().bytes_at_most(10_000)).unwrap());
    // Nobody is answered before the turn is free, so all of them become one group.
    let turn = std::fs::File::open(place.beside().join("turn.lock")).unwrap();
    turn.lock().unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = Arc::clone(&store);
            let mut run = new_run(&format!("run {number}"), None);
            if number == 7 {
                run.events.push(&format!("\"{}\"", "x".repeat(20_000)));
            }
            tokio::spawn(async move { write(&*store, run).await })
        })
        .collect();
    tokio::task::yield_now().await;
    turn.unlock().unwrap();
    for (number, task) in tasks.into_iter().enumerate() {
        let answer = task.await.unwrap();
        let is_bad = matches!(answer, Err(StoreError::Other(_)));
        assert_eq!((is_bad, answer.is_ok_and(|taken| taken.is_ok())), (number == 7, number != 7), "{number}");
    }
    assert_eq!(store.list(Filter::default()).await.unwrap().rows.len(), 19);
    assert_eq!(store.find(&RunId::new("run 7")).await.unwrap(), None);
}

/// Writes that queue up while another one is committed share the next commit.
#[tokio::test]
async fn what_queues_up_is_committed_together() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let turn = std::fs::File::open(place.beside().join("turn.lock")).unwrap();
    turn.lock().unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { write(&*store, new_run(&format!("run {number}"), None)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    turn.unlock().unwrap();
    for task in tasks {
        task.await.unwrap().unwrap().unwrap();
    }
    assert!(store.commits() <= 3, "{} commits", store.commits());
}

#[tokio::test]
async fn a_lost_folder_of_locks_is_an_error_of_joining_and_of_nothing_else() {
    let place = Place::new();
    let store = place.open();
    std::fs::remove_dir_all(place.beside()).unwrap();
    assert_eq!(obstacle(store.join(LEASE).await), Some(Unavailable::Io));
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    store.send(command("a")).await.unwrap().unwrap();
    drop(store);
    place.open().join(LEASE).await.unwrap();
}
