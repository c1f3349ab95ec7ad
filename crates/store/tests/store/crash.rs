//! Deaths: a process is killed while it writes, and what it was told, and all of it, is there afterwards.

use tidewheel_core::fact::RunId;
use tidewheel_store::Store as _;

use crate::fixture::{LEASE, Place, claim_due, more};
use crate::process::{Other, Part, RUNS};

/// Looks at the database of a writer that died after it had said so many.
async fn check(place: &Place, said: u64) {
    let store = place.open();
    let mut versions = Vec::new();
    for run in RUNS.map(RunId::new) {
        let Some(record) = store.find(&run).await.unwrap() else { continue };
        let events = store.read(&run, 0).await.unwrap();
        assert_eq!(events.len() as u64, record.version);
        versions.push(record.version);
    }
    if versions.is_empty() {
        assert_eq!(said, 0);
        return;
    }
    // A call is one commit: all of its runs are at the same place.
    assert!(
        versions.len() == RUNS.len() && versions.iter().all(|version| *version == versions[0]),
        "{versions:?}"
    );
    let version = versions[0];
    assert!(version == said || version == said + 1, "version {version}, and {said} was answered");
    let run = RunId::new(RUNS[0]);
    let waiting = store.commands_of(&run).await.unwrap().len() as u64;
    let asked: i64 = place
        .bare()
        .query_row("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'commands'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(
        u64::try_from(asked).unwrap() - waiting,
        version - 1,
        "what was asked is handled with its write"
    );
    let checkpoint = store.checkpoint(&run).await.unwrap();
    assert_eq!(checkpoint.map(|(at, _)| at), (version > 1).then_some(version));
    let letters = store.dead_letters(None, None).await.unwrap().rows;
    let aside: Vec<String> = letters.into_iter().map(|letter| letter.body).collect();
    let expected = (version > 1).then(|| (version - 1).to_string());
    assert_eq!(aside, Vec::from_iter(expected), "what is put aside is so with its write");

    let whole: String = place.bare().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    if waiting > 0 {
        let owner = store.join(LEASE).await.unwrap().owner;
        let claimed = claim_due(&store, owner).await;
        assert_eq!(claimed.runs.len(), 1, "a run of which something is asked is due");
        let lease = &claimed.runs[0].0;
        store.append(vec![more(lease, version)]).await.unwrap().remove(0).unwrap();
    }
}

#[tokio::test]
async fn whoever_is_killed_at_any_time_leaves_a_whole_store() {
    for kill in 0..8_u64 {
        let place = Place::new();
        let mut writer = Other::start(Part::Write, &place.path());
        let mut said = 0;
        while said <= kill * 7 {
            said = writer.says().unwrap().parse().unwrap();
        }
        writer.kill();
        // What it said before its end and nobody heard yet.
        while let Some(more) = writer.says() {
            said = more.parse().unwrap();
        }
        check(&place, said).await;
    }
}

#[cfg(feature = "failpoints")]
#[tokio::test]
async fn whoever_dies_at_any_place_leaves_a_whole_store() {
    for place_of_death in 0..tidewheel_store::sqlite::failpoint::ALL.len() {
        for nth in [1, 2, 3, 8] {
            let place = Place::new();
            let mut writer = Other::start(Part::Die { place: place_of_death, nth }, &place.path());
            let mut said = 0;
            while let Some(more) = writer.says() {
                said = more.parse().unwrap();
            }
            assert!(!writer.ended_well());
            check(&place, said).await;
        }
    }
}

/// After a sync that failed, nobody can tell what is on the disk; the next opening finds out.
#[cfg(feature = "failpoints")]
#[tokio::test]
async fn a_disk_that_failed_is_not_trusted_again_until_the_store_is_opened_again() {
    let place = Place::new();
    let mut other = Other::start(Part::Break, &place.path());
    assert_eq!(other.says().as_deref(), Some("broken"));
    assert!(other.ended_well());
    let store = place.open();
    assert_eq!(store.read(&RunId::new(RUNS[0]), 0).await.unwrap().len(), 1);
}
