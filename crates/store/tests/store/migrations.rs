//! A database gets its shape once, whoever comes first, and one of another shape is refused.

use tidewheel_store::{Filter, Store as _, StoreError};

use crate::fixture::{Place, new_run, write};
use crate::process::{Other, Part};

#[test]
fn sixteen_processes_open_a_new_file_at_once() {
    let place = Place::new();
    let mut others: Vec<Other> = (0..16).map(|_| Other::start(Part::Open, &place.path())).collect();
    for other in &mut others {
        assert_eq!(other.says().as_deref(), Some("open"));
        assert!(other.ended_well());
    }
    let steps: i64 = place.bare().query_row("SELECT count(*) FROM migrations", [], |row| row.get(0)).unwrap();
    assert_eq!(steps, 1);
}

#[tokio::test]
async fn a_database_of_a_later_release_is_refused_and_left_alone() {
    let place = Place::new();
    place.open().close().await;
    place.bare().execute("INSERT INTO migrations VALUES (99, 'later', 0)", []).unwrap();
    let refused = place.try_open(&tidewheel_store::sqlite::Options::new());
    assert!(matches!(refused, Err(StoreError::Newer { found: 99, known: 1 })), "{refused:?}");
    place.bare().execute("DELETE FROM migrations WHERE version = 99", []).unwrap();
    place.open();
}

#[tokio::test]
async fn a_step_that_was_changed_is_refused() {
    let place = Place::new();
    place.open().close().await;
    place.bare().execute("UPDATE migrations SET hash = 'other'", []).unwrap();
    let refused = place.try_open(&tidewheel_store::sqlite::Options::new());
    assert!(matches!(refused, Err(StoreError::Other(_))), "{refused:?}");
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let place = Place::new();
    place.bare().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let refused = place.try_open(&tidewheel_store::sqlite::Options::new());
    assert!(matches!(refused, Err(StoreError::Other(_))), "{refused:?}");
    let tables: i64 =
        place.bare().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
    let mode: String = place.bare().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    assert!(!place.beside().exists());
    std::fs::write(place.path(), "this is no database, and long enough to be noticed as none ".repeat(20))
        .unwrap();
    assert!(place.try_open(&tidewheel_store::sqlite::Options::new()).is_err());
}

#[tokio::test]
async fn an_opening_that_finds_nothing_to_do_waits_for_nobody() {
    let place = Place::new();
    let store = place.open();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    let bare = place.bare();
    bare.execute_batch("BEGIN IMMEDIATE").unwrap();
    let second = place.open();
    assert_eq!(second.list(Filter::default()).await.unwrap().rows.len(), 1);
    bare.execute_batch("ROLLBACK").unwrap();
}

/// Processes that come by different ways must meet at the same locks and bells.
#[tokio::test]
async fn links_lead_to_the_same_store() {
    let place = Place::new();
    let link = place.path().with_file_name("link.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let clock = || std::sync::Arc::new(tidewheel_store::RealClock::new());
    let by_link = tidewheel_store::Sqlite::open(&link, clock()).unwrap();
    let store = place.open();
    assert_eq!(by_link.path(), store.path());
    let owner = store.join(crate::fixture::LEASE).await.unwrap();
    write(&by_link, new_run("a", None)).await.unwrap().unwrap();
    store.alerted(owner).await;
}

#[test]
fn a_missing_folder_is_not_made() {
    let place = Place::new();
    let path = place.beside().join("store.db");
    let clock = std::sync::Arc::new(tidewheel_store::RealClock::new());
    let refused = tidewheel_store::Sqlite::open(&path, clock);
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    assert!(!place.beside().exists());
}
