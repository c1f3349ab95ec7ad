//! Shared states: whoever writes has seen what was written last.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::sync::Arc;

use tidewheel_store::Shared;

use crate::store_suite::World;

pub async fn a_shared_state_is_written_over_what_was_seen(world: World) {
    let put = |expected, body: &str| world.store.put_shared("breaker", "mail", expected, body.to_owned());
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
        assert!(world.store.put_shared(kind, name, 0, format!("{kind}/{name}")).await.unwrap());
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
                    if store.put_shared("count", "a", version, (count + 1).to_string()).await.unwrap() {
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
