//! Files that are renamed, deleted or replaced while a store has them open: nothing more is answered, and a second
//! opener does not write to the log of the first.

use std::fs;
use std::path::PathBuf;

use tidewheel_store::sqlite::Options;
use tidewheel_store::{Sqlite, Store as _, StoreError};

use crate::fixture::{LEASE, Place, more, new_run, write};

fn beside(place: &Place, suffix: &str) -> PathBuf {
    place.path().with_file_name(format!("store.db{suffix}"))
}

/// Asks for one more write, which must be refused because of what happened, as must all that is asked later.
async fn refuses(store: &Sqlite, lease: &tidewheel_store::Lease, what: &str) {
    for _ in 0..2 {
        match write(store, more(lease, 1)).await {
            Err(StoreError::Moved { what: told }) => assert!(told.contains(what), "{told}"),
            other => panic!("{what}: {other:?}"),
        }
        let read = store.find(&lease.run).await;
        assert!(matches!(read, Err(StoreError::Moved { .. })), "{what}: {read:?}");
    }
}

#[tokio::test]
async fn a_database_that_is_renamed_deleted_or_replaced_is_not_written_any_more() {
    for suffix in ["", "-wal", "-shm"] {
        for how in ["rename", "delete", "replace"] {
            let place = Place::new();
            let store = place.open();
            let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
            let path = beside(&place, suffix);
            match how {
                "rename" => fs::rename(&path, path.with_extension("moved")).unwrap(),
                "delete" => fs::remove_file(&path).unwrap(),
                _ => {
                    fs::write(path.with_extension("new"), "").unwrap();
                    fs::rename(path.with_extension("new"), &path).unwrap();
                }
            }
            let what = if how == "replace" {
                "another file was put in the place of"
            } else {
                "was renamed or deleted"
            };
            refuses(&store, &lease, what).await;
        }
    }
}

#[tokio::test]
async fn a_second_opener_does_not_make_a_database_beside_the_log_of_another() {
    let place = Place::new();
    let store = place.open();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    let away = place.path().with_extension("away");
    fs::rename(place.path(), &away).unwrap();
    let refused = place.try_open(&Options::new());
    assert!(matches!(refused, Err(StoreError::Moved { .. })), "{refused:?}");
    assert!(!place.path().exists(), "nothing was made in its place");
    refuses(&store, &lease, "was renamed or deleted").await;
    drop(store);

    // Where it is put back, all that was answered is there.
    fs::rename(&away, place.path()).unwrap();
    let store = place.open();
    assert_eq!(store.read(&lease.run, 0).await.unwrap().len(), 1);
    assert_eq!(store.damage(), Vec::<String>::new());
}

#[tokio::test]
async fn another_database_in_the_place_of_one_with_a_log_is_refused() {
    let other = Place::new();
    other.open().close().await;
    let place = Place::new();
    let store = place.open();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    fs::rename(place.path(), place.path().with_extension("away")).unwrap();
    fs::copy(other.path(), place.path()).unwrap();
    let refused = place.try_open(&Options::new());
    let Err(StoreError::Moved { what }) = &refused else { panic!("{refused:?}") };
    assert!(what.contains("is another database than the one"), "{what}");
    refuses(&store, &lease, "another file was put in the place of").await;
}

/// The file is found by each link to it, and a store that closes in order leaves no log to be confused by.
#[tokio::test]
async fn a_database_that_was_closed_may_be_moved_and_replaced() {
    let place = Place::new();
    let store = place.open();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    store.join(LEASE).await.unwrap();
    store.close().await;
    fs::rename(place.path(), place.path().with_extension("old")).unwrap();
    let store = place.open();
    assert_eq!(store.find(&tidewheel_core::fact::RunId::new("a")).await.unwrap(), None);
    assert_eq!(store.damage(), Vec::<String>::new());
    write(&store, new_run("b", None)).await.unwrap().unwrap();
}
