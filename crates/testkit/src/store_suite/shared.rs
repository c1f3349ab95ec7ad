//! Shared states: whoever writes has seen what was written last.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::sync::Arc;

use tidewheel_store::{PutShared, Shared, Store};

use crate::store_suite::World;

fn put(kind: &str, name: &str, expected: u64, body: &str) -> PutShared {
    PutShared { kind: kind.to_owned(), name: name.to_owned(), expected, body: Some(body.to_owned()) }
}

fn remove(kind: &str, name: &str, expected: u64) -> PutShared {
    PutShared { body: None, ..put(kind, name, expected, "") }
}

/// Returns the states of a kind as names, versions and bodies, and how many rows each page had.
async fn all(store: &dyn Store, kind: &str) -> (Vec<(String, u64, String)>, Vec<usize>) {
    let (mut found, mut pages, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.all_shared(kind, after).await.unwrap();
        pages.push(page.rows.len());
        found.extend(page.rows.into_iter().map(|(name, Shared { version, body })| (name, version, body)));
        after = page.next;
        if after.is_none() {
            return (found, pages);
        }
    }
}

async fn found(world: &World, kind: &str) -> Vec<(String, u64, String)> {
    all(&*world.other, kind).await.0
}

fn row(name: &str, version: u64, body: &str) -> (String, u64, String) {
    (name.to_owned(), version, body.to_owned())
}

pub async fn a_shared_state_is_written_over_what_was_seen(world: World) {
    let put = |expected, body: &str| world.store.put_shared(vec![put("breaker", "mail", expected, body)]);
    assert_eq!(world.store.shared("breaker", "mail").await.unwrap(), None);
    assert!(!put(1, "early").await.unwrap());
    assert!(put(0, "one").await.unwrap());
    assert!(!put(0, "again").await.unwrap());
    assert!(put(1, "two").await.unwrap());
    assert!(!put(1, "late").await.unwrap());
    let found = world.other.shared("breaker", "mail").await.unwrap();
    assert_eq!(found, Some(Shared { version: 2, body: "two".to_owned() }));
}

pub async fn a_shared_state_has_a_kind_and_a_name(world: World) {
    for (kind, name) in [("a", "b"), ("a", "c"), ("b", "b"), ("", "ab"), ("ab", "")] {
        assert!(world.store.put_shared(vec![put(kind, name, 0, &format!("{kind}/{name}"))]).await.unwrap());
    }
    for (kind, name) in [("a", "b"), ("a", "c"), ("b", "b"), ("", "ab"), ("ab", "")] {
        let found = world.store.shared(kind, name).await.unwrap().unwrap();
        assert_eq!(found.body, format!("{kind}/{name}"));
    }
    assert_eq!(world.store.shared("c", "b").await.unwrap(), None);
}

pub async fn no_write_to_a_shared_state_is_lost(world: World) {
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(if writer % 2 == 0 { &world.store } else { &world.other });
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                loop {
                    let seen = store.shared("count", "a").await.unwrap();
                    let (version, count) =
                        seen.map_or((0, 0), |seen| (seen.version, seen.body.parse::<u64>().unwrap()));
                    let next = put("count", "a", version, &(count + 1).to_string());
                    if store.put_shared(vec![next]).await.unwrap() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let found = world.store.shared("count", "a").await.unwrap();
    assert_eq!(found, Some(Shared { version: 20, body: "20".to_owned() }));
}

pub async fn shared_states_are_written_together_or_not_at_all(world: World) {
    assert!(world.store.put_shared(Vec::new()).await.unwrap());
    let first = vec![put("rate", "a", 0, "1"), put("rate", "b", 0, "1"), put("budget", "a", 0, "1")];
    assert!(world.store.put_shared(first).await.unwrap());
    let before = [row("a", 1, "1"), row("b", 1, "1")];
    assert_eq!(found(&world, "rate").await, before);

    // Wherever the one stands that is not as expected, none of the others happens.
    let late = put("budget", "a", 7, "late");
    for place in 0..=3 {
        let mut puts = vec![put("rate", "a", 1, "2"), remove("rate", "b", 1), put("rate", "c", 0, "1")];
        puts.insert(place, late.clone());
        assert!(!world.store.put_shared(puts).await.unwrap());
        assert_eq!(found(&world, "rate").await, before, "at {place}");
        assert_eq!(found(&world, "budget").await, [row("a", 1, "1")], "at {place}");
    }
    let all = vec![put("rate", "a", 1, "2"), remove("rate", "b", 1), put("budget", "a", 1, "2")];
    assert!(world.store.put_shared(all).await.unwrap());
    assert_eq!(found(&world, "rate").await, [row("a", 2, "2")]);
    assert_eq!(found(&world, "budget").await, [row("a", 2, "2")]);
}

pub async fn a_shared_state_that_is_named_twice_is_written_twice(world: World) {
    let same = vec![put("rate", "a", 0, "1"), put("rate", "a", 0, "2")];
    assert!(!world.store.put_shared(same).await.unwrap());
    assert_eq!(found(&world, "rate").await, []);
    let next = vec![put("rate", "a", 0, "1"), put("rate", "a", 1, "2")];
    assert!(world.store.put_shared(next).await.unwrap());
    assert_eq!(found(&world, "rate").await, [row("a", 2, "2")]);
}

pub async fn a_shared_state_that_was_removed_is_gone(world: World) {
    assert!(world.store.put_shared(vec![remove("rate", "a", 0)]).await.unwrap());
    assert!(!world.store.put_shared(vec![remove("rate", "a", 1)]).await.unwrap());
    assert!(world.store.put_shared(vec![put("rate", "a", 0, "1"), put("rate", "b", 0, "1")]).await.unwrap());
    for version in [0, 2] {
        assert!(!world.store.put_shared(vec![remove("rate", "a", version)]).await.unwrap());
    }
    assert_eq!(found(&world, "rate").await.len(), 2);
    assert!(world.store.put_shared(vec![remove("rate", "a", 1)]).await.unwrap());
    assert_eq!(world.other.shared("rate", "a").await.unwrap(), None);
    assert_eq!(found(&world, "rate").await, [row("b", 1, "1")]);
}

/// A state that is removed while it is not used may come back, and somebody may still know the one before.
pub async fn who_saw_a_shared_state_before_it_was_removed_cannot_write_over_the_next(world: World) {
    for version in 0..3 {
        assert!(world.store.put_shared(vec![put("rate", "a", version, "old")]).await.unwrap());
    }
    assert!(world.store.put_shared(vec![remove("rate", "a", 3)]).await.unwrap());
    assert!(world.other.put_shared(vec![put("rate", "a", 0, "new")]).await.unwrap());
    for seen in 0..=3 {
        assert!(!world.store.put_shared(vec![put("rate", "a", seen, "late")]).await.unwrap(), "{seen}");
    }
    let next = world.store.shared("rate", "a").await.unwrap().unwrap();
    assert_eq!(next.body, "new");
    assert!(world.store.put_shared(vec![put("rate", "a", next.version, "newer")]).await.unwrap());

    // A removal that did not happen leaves no trace.
    let refused = vec![remove("rate", "a", next.version + 1), put("rate", "a", 99, "late")];
    assert!(!world.store.put_shared(refused).await.unwrap());
    assert!(world.store.put_shared(vec![put("rate", "b", 0, "1")]).await.unwrap());
    let other = world.store.shared("rate", "b").await.unwrap().unwrap();
    assert_eq!(other.version, next.version);
}

pub async fn shared_states_of_a_kind_come_in_pages_by_name(world: World) {
    assert_eq!(all(&*world.store, "rate").await, (Vec::new(), vec![0]));
    let mut names: Vec<String> = (0..250).map(|number| format!("name {number}")).collect();
    names.extend(["", "%", "A", "z", "ä", "🐚"].map(str::to_owned));
    let puts = names.iter().map(|name| put("rate", name, 0, name)).collect();
    assert!(world.store.put_shared(puts).await.unwrap());
    assert!(world.store.put_shared(vec![put("rat", "x", 0, "1"), put("rates", "x", 0, "1")]).await.unwrap());
    let (rows, pages) = all(&*world.other, "rate").await;
    names.sort_unstable();
    let expected: Vec<_> = names.iter().map(|name| row(name, 1, name)).collect();
    assert_eq!(rows, expected);
    assert!(pages.len() > 1 && pages.iter().all(|rows| *rows > 0), "{pages:?}");
    // A page goes on behind a name, whether that is still there or not.
    let page = world.store.all_shared("rate", Some("name 98a".to_owned())).await.unwrap();
    assert_eq!(page.rows[0].0, "name 99");
    let page = world.store.all_shared("rate", Some(String::new())).await.unwrap();
    assert_eq!(page.rows[0].0, "%");
}
