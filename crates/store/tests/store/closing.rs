//! The end of a store: what was asked is done first, and what comes later is refused.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_store::{Filter, Store as _, StoreError};

use crate::fixture::{LEASE, Place, claim_due, new_run, write};

#[tokio::test]
async fn what_was_asked_before_the_end_is_done() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let turn = std::fs::File::open(place.beside().join("turn.lock")).unwrap();
    turn.lock().unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|run| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { write(&*store, new_run(&format!("run {run}"), None)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    turn.unlock().unwrap();
    store.close().await;
    for task in tasks {
        task.await.unwrap().unwrap().unwrap();
    }
    assert!(matches!(store.list(Filter::default()).await, Err(StoreError::Closed)));
    assert!(matches!(write(&*store, new_run("late", None)).await, Err(StoreError::Closed)));
    store.close().await;
    assert_eq!(place.open().list(Filter::default()).await.unwrap().rows.len(), 50);
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    for _ in 0..20 {
        let place = Place::new();
        let store = Arc::new(place.open());
        write(&*store, new_run("a", None)).await.unwrap().unwrap();
        let list = || {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.list(Filter::default()).await })
        };
        let reads: Vec<_> = (0..8).map(|_| list()).collect();
        for read in reads {
            read.await.unwrap().unwrap();
        }
        store.close().await;
        let mut log = place.path().into_os_string();
        log.push("-wal");
        assert!(!std::path::Path::new(&log).exists(), "a copy of the database alone has everything");
    }
}

#[tokio::test]
async fn a_store_that_is_dropped_frees_its_owners_at_once() {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    let mut run = new_run("a", Some(owner));
    run.wake_at = Some(tidewheel_core::time::Timestamp::from_nanos(0));
    write(&store, run).await.unwrap().unwrap();
    store.close().await;

    let next = place.open();
    let owner = next.join(LEASE).await.unwrap().owner;
    assert_eq!(claim_due(&next, owner).await.runs[0].0.fence, 2);
    let files: Vec<_> =
        std::fs::read_dir(place.beside()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files.len(), 6, "three locks, the last commits, and lock and socket of one owner: {files:?}");
    next.leave(owner).await.unwrap();
    next.close().await;
    assert_eq!(std::fs::read_dir(place.beside()).unwrap().count(), 4);
}

/// The store has threads of its own and needs no runtime.
#[test]
fn no_runtime_is_needed() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let place = Place::new();
    let store = place.open();
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut answer = Box::pin(async {
        write(&store, new_run("a", None)).await.unwrap().unwrap();
        store.read(&RunId::new("a"), 0).await.unwrap().len()
    });
    let count = loop {
        match answer.as_mut().poll(&mut context) {
            std::task::Poll::Ready(count) => break count,
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(count, 1);
}
