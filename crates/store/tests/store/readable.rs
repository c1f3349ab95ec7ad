//! What is stored can be read by anybody with a shell of SQLite.

use crate::fixture::{LEASE, Place, more, new_run, write};
use tidewheel_store::Store as _;

#[tokio::test]
async fn events_are_json_for_everybody() {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    let lease = write(&store, new_run("order 1", Some(owner))).await.unwrap().unwrap();
    let mut two = more(&lease, 1);
    two.events.push(r#"{"n":2,"text":"ü"}"#);
    write(&store, two).await.unwrap().unwrap();

    let look = "SELECT runs.id, first + json_each.key, json_extract(value, '$.n')
        FROM runs JOIN events ON events.run = runs.key, json_each(body) ORDER BY 1, 2";
    let bare = place.bare();
    let mut statement = bare.prepare(look).unwrap();
    let rows: Vec<(String, i64, i64)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let run = || "order 1".to_owned();
    assert_eq!(rows, [(run(), 0, 0), (run(), 1, 1), (run(), 2, 2)]);
}

/// The page about the store has every table, and the settings are what it promises.
#[test]
fn the_page_about_the_store_knows_every_table() {
    let place = Place::new();
    let _store = place.open();
    let bare = place.bare();
    let page = include_str!("../../../../docs/store.md");
    let mut tables = bare.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for name in names.map(Result::unwrap).filter(|name| !name.starts_with("sqlite_")) {
        assert!(page.contains(&format!("`{name}`")), "docs/store.md says nothing of the table {name}");
    }
    let mode: String = bare.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}
