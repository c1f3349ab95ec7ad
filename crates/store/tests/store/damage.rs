//! Damage: what was changed behind the store's back is that run's error, at that place, and nobody else's.

use tidewheel_core::fact::RunId;
use tidewheel_store::{Filter, Refused, Status, Store as _, StoreError};

use crate::fixture::{LEASE, Place, claim_due, more, new_run, write};

/// Changes a database with two runs of three rows each, and returns where the first one is damaged.
async fn damaged_by(change: &str) -> (Option<u64>, String) {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    for id in ["bad", "good"] {
        let lease = write(&store, new_run(id, Some(owner))).await.unwrap().unwrap();
        for version in 1..3 {
            write(&store, more(&lease, version)).await.unwrap().unwrap();
        }
    }
    place.bare().execute_batch(change).unwrap();
    assert_eq!(store.read(&RunId::new("good"), 0).await.unwrap().len(), 3);
    match store.read(&RunId::new("bad"), 0).await {
        Err(StoreError::Damaged { run, version, what }) => {
            assert_eq!(run.as_str(), "bad");
            (Some(version), what)
        }
        other => (None, format!("{other:?}")),
    }
}

#[tokio::test]
async fn damage_is_found_where_it_is() {
    const FIRST: &str = "run = (SELECT key FROM runs WHERE id = 'bad')";
    for (change, version) in [
        ("UPDATE events SET body = replace(body, '1', '7') WHERE first = 1 AND", 1),
        ("UPDATE events SET body = CAST(x'5BFF5D' AS TEXT) WHERE first = 1 AND", 1),
        ("UPDATE events SET at = at + 1 WHERE first = 0 AND", 0),
        ("UPDATE events SET count = 2 WHERE first = 2 AND", 2),
        ("UPDATE events SET checksum = checksum + 1 WHERE first = 2 AND", 2),
        ("DELETE FROM events WHERE first = 0 AND", 0),
        ("DELETE FROM events WHERE first = 1 AND", 1),
        ("DELETE FROM events WHERE first = 2 AND", 2),
        ("DELETE FROM events WHERE", 0),
    ] {
        let found = damaged_by(&format!("{change} {FIRST}")).await;
        assert_eq!(found.0, Some(version), "{change}: {}", found.1);
    }
}

#[tokio::test]
async fn a_row_of_another_run_is_no_row_of_this_one() {
    let swap = "UPDATE events SET body = (SELECT body FROM events WHERE first = 2 LIMIT 1),
        checksum = (SELECT e.checksum FROM events e JOIN runs ON runs.key = e.run WHERE id = 'good' AND first = 1)
        WHERE first = 1 AND run = (SELECT key FROM runs WHERE id = 'bad')";
    assert_eq!(damaged_by(swap).await.0, Some(1));
}

#[tokio::test]
async fn a_read_from_a_later_place_does_not_meet_earlier_damage() {
    let place = Place::new();
    let store = place.open();
    let lease = write(&store, new_run("a", None)).await.unwrap().unwrap();
    write(&store, more(&lease, 1)).await.unwrap().unwrap();
    place.bare().execute_batch("UPDATE events SET body = '[]' WHERE first = 0").unwrap();
    assert!(store.read(&lease.run, 0).await.is_err());
    assert_eq!(store.read(&lease.run, 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_bad_record_hides_no_other() {
    let place = Place::new();
    let store = place.open();
    for id in ["a", "b", "c"] {
        write(&store, new_run(id, None)).await.unwrap().unwrap();
    }
    let bad = "UPDATE runs SET status = 'runnimg', workflow = CAST(x'FF' AS TEXT) WHERE id = 'b';
        UPDATE texts SET body = CAST(x'7BFF' AS TEXT)
            WHERE id = (SELECT text FROM definitions WHERE run = (SELECT key FROM runs WHERE id = 'a'));
        UPDATE runs SET status = CAST(x'FF' AS TEXT) WHERE id = 'c'";
    place.bare().execute_batch(bad).unwrap();
    let page = store.list(Filter::default()).await.unwrap();
    let ids: Vec<&str> = page.rows.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert_eq!((page.rows[1].status, page.rows[2].status), (Status::Parked, Status::Running));
    assert_eq!(store.damage().len(), 2, "{:?}", store.damage());
    // No process drives a run whose record it cannot trust, and it is not met again and again.
    assert!(page.rows[1].reason.as_deref().unwrap().contains("`runnimg` is no status"));
    let owner = store.join(LEASE).await.unwrap().owner;
    let claimed = claim_due(&store, owner).await;
    let ids: Vec<&str> = claimed.runs.iter().map(|(_, record, _)| record.id.as_str()).collect();
    assert_eq!((ids, claimed.next_due), (vec!["a"], None));
    for id in ["b", "c"] {
        let refused = store.find(&RunId::new(id)).await;
        assert!(matches!(refused, Err(StoreError::DamagedRow { .. })), "{refused:?}");
        let refused = store.send(crate::fixture::command(id)).await.unwrap();
        assert_eq!(refused, Err(Refused::Damaged { run: RunId::new(id) }));
    }
    let told = store.damage().join("\n");
    assert!(told.contains("what run `a` was created with"), "{told}");
}
