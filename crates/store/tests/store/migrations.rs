//! A database gets its shape once, whoever comes first, and one of another shape is refused.

use tidewheel_core::fact::RunId;
use tidewheel_store::sqlite::Options;
use tidewheel_store::{
    Claim, Filter, Letter, NewDeadLetter, PutShared, Shared, Store as _, StoreError, Wanted,
};

use crate::fixture::{LEASE, Place, more, new_run, write};
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
    assert_eq!(steps, 6);
}

/// The file is a dump of what the first version wrote, with four letters of which the last was taken away.
#[tokio::test]
async fn a_database_of_the_first_version_keeps_all_it_has() {
    let place = Place::new();
    place.bare().execute_batch(include_str!("../versions/1.sql")).unwrap();
    // Whoever may only look cannot bring it to the newest version, and says who can.
    let refused = place.try_open(&Options::new().read_only());
    let Err(StoreError::Other(why)) = &refused else { panic!("{refused:?}") };
    let expected = "the database has version 1; it must be opened for writing once to get version 6";
    assert_eq!(why.to_string(), expected);

    let store = place.open();
    place.try_open(&Options::new().read_only()).unwrap();
    let run = RunId::new("order-1");
    let read = store.read(&run, 0).await.unwrap();
    assert_eq!(read.iter().map(|batch| batch.events.len()).sum::<u32>(), 3);
    assert_eq!(store.checkpoint(&run).await.unwrap(), Some((3, "[2]".to_owned())));
    assert_eq!(store.commands_of(&run).await.unwrap().len(), 1);
    assert_eq!(store.definition(&run).await.unwrap().as_deref(), Some(r#"{"workflow":"flow"}"#));
    let page = store.all_shared("breaker", None).await.unwrap();
    let breaker = Shared { version: 2, body: r#"{"open":true}"#.to_owned() };
    assert_eq!(page.rows, [("mail".to_owned(), breaker)]);
    let letters = store.dead_letters(None, None).await.unwrap().rows;
    let seen: Vec<_> = letters.iter().map(|one| (one.id.0, one.run.as_str(), one.node.as_str())).collect();
    assert_eq!(seen, [(1, "order-1", "pay"), (2, "order-1", "pay"), (3, "order-2", "ship")]);
    assert!(letters[0].work != letters[1].work);

    // And it is used like any other.
    let owner = store.join(LEASE).await.unwrap().owner;
    let claim = Claim { owner, wanted: Wanted::Run(run.clone()) };
    let (lease, record, _) = store.claim(claim).await.unwrap().runs.remove(0);
    let mut next = more(&lease, record.version);
    for _ in 0..2 {
        let letter = NewDeadLetter { work: "w".to_owned(), node: "pay".to_owned(), body: "{}".to_owned() };
        next.letters.push(Letter::Bury(letter));
    }
    write(&store, next).await.unwrap().unwrap();
    let (kind, name) = ("breaker".to_owned(), "mail".to_owned());
    assert!(store.put_shared(vec![PutShared { kind, name, expected: 2, body: None }]).await.unwrap());
    let letters = store.dead_letters(Some(&run), None).await.unwrap().rows;
    assert_eq!(letters.len(), 3);
    assert!(letters[2].work == "w" && letters[2].id.0 > 4, "a number that was taken away is not given again");
    store.release(vec![lease]).await.unwrap();
    assert_eq!(store.delete(&run).await.unwrap(), Ok(true));
    assert_eq!(store.dead_letters(None, None).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_database_of_a_later_release_is_refused_and_left_alone() {
    let place = Place::new();
    place.open().close().await;
    place.bare().execute("INSERT INTO migrations VALUES (99, 'later', 0)", []).unwrap();
    let refused = place.try_open(&Options::new());
    assert!(matches!(refused, Err(StoreError::Newer { found: 99, known: 6 })), "{refused:?}");
    place.bare().execute("DELETE FROM migrations WHERE version = 99", []).unwrap();
    place.open();
}

#[tokio::test]
async fn a_step_that_was_changed_is_refused() {
    let place = Place::new();
    place.open().close().await;
    place.bare().execute("UPDATE migrations SET hash = 'other'", []).unwrap();
    let refused = place.try_open(&Options::new());
    assert!(matches!(refused, Err(StoreError::Other(_))), "{refused:?}");
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let place = Place::new();
    place.bare().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let refused = place.try_open(&Options::new());
    assert!(matches!(refused, Err(StoreError::Other(_))), "{refused:?}");
    let tables: i64 =
        place.bare().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
    let mode: String = place.bare().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    assert!(!place.beside().exists());
    std::fs::write(place.path(), "this is no database, and long enough to be noticed as none ".repeat(20))
        .unwrap();
    assert!(place.try_open(&Options::new()).is_err());
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
    let owner = store.join(crate::fixture::LEASE).await.unwrap().owner;
    write(&by_link, new_run("a", None)).await.unwrap().unwrap();
    store.alerted(owner).await;
}

#[tokio::test]
async fn a_new_database_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let store = place.open();
    store.join(LEASE).await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.beside()), 0o700);
    for end in ["", "-wal", "-shm"] {
        let mut path = place.path().into_os_string();
        path.push(end);
        assert_eq!(mode(path.as_ref()), 0o600, "{end}");
    }
    for entry in std::fs::read_dir(place.beside()).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.extension().is_some_and(|end| end == "sock") || mode(&path) == 0o600, "{path:?}");
    }
    // What a person allowed others stays so.
    store.close().await;
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o664)).unwrap();
    place.open();
    assert_eq!(mode(&place.path()), 0o664);
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
