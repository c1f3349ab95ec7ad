//! Several processes on one file: nobody is starved, nobody takes what is another's, and a death is noticed.

use std::time::{Duration, Instant};

use tidewheel_core::fact::RunId;
use tidewheel_store::sqlite::Options;
use tidewheel_store::{Claim, Filter, OwnerId, Refused, Store as _, Wanted};

use crate::fixture::{LEASE, Place, claim_due, command, new_run, write};
use crate::process::{Other, Part};

/// SQLite alone would let the process that writes all the time go first almost always.
#[tokio::test]
async fn a_busy_process_does_not_starve_another() {
    const CALLS: usize = 40;
    let place = Place::new();
    let store = place.open();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    let mut hog = Other::start(Part::Hog, &place.path());
    assert_eq!(hog.says().as_deref(), Some("busy"));
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        store.send(command("a")).await.unwrap().unwrap();
        times.push(began.elapsed());
        let began = Instant::now();
        store.list(Filter::default()).await.unwrap();
        times.push(began.elapsed());
    }
    hog.finish();
    let written: u64 = hog.says().unwrap().parse().unwrap();
    times.sort_unstable();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("beside a process that wrote {written} times: median {median:?}, slowest {slowest:?}");
    // The bound is for machines that do many things at once; what is usual is far below.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    // The other one was not starved either.
    assert!(written > 100, "{written}");
}

#[tokio::test]
async fn the_runs_of_a_process_that_was_killed_are_free_at_once() {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap();
    let mut other = Other::start(Part::Own, &place.path());
    let theirs: i64 = other.says().unwrap().parse().unwrap();
    let run = RunId::new("owned");
    assert_eq!(claim_due(&store, owner).await.runs.len(), 0);
    let refused = store.delete(&run).await.unwrap();
    assert!(matches!(refused, Err(Refused::Owned { owner, .. }) if owner.0 == theirs), "{refused:?}");

    assert_eq!(store.owners().await.unwrap(), [owner, OwnerId(theirs)]);

    other.kill();
    // Somebody else who just looks does not keep us from seeing it.
    let lock = std::fs::File::open(place.beside().join(format!("owner-{theirs}.lock"))).unwrap();
    lock.lock_shared().unwrap();
    assert_eq!(store.owners().await.unwrap(), [owner]);
    let reader = place.try_open(&Options::new().read_only()).unwrap();
    assert_eq!(reader.owners().await.unwrap(), [owner]);
    // Looking has changed nothing: there is still somebody who has left a run behind.
    assert_eq!(store.find(&run).await.unwrap().unwrap().owner, Some(OwnerId(theirs)));
    assert!(!store.renew(owner, LEASE).await.unwrap().unwrap().is_alone);

    let claimed = claim_due(&store, owner).await;
    assert_eq!((claimed.runs[0].0.run.as_str(), claimed.runs[0].0.fence), ("owned", 2));
    assert!(!place.beside().join(format!("owner-{theirs}.lock")).exists());
    assert!(!place.beside().join(format!("owner-{theirs}.sock")).exists());
    assert!(store.renew(owner, LEASE).await.unwrap().unwrap().is_alone);
}

#[tokio::test]
async fn a_run_of_a_killed_process_can_be_claimed_by_its_id() {
    let place = Place::new();
    let mut other = Other::start(Part::Own, &place.path());
    other.says().unwrap();
    other.kill();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap();
    let wanted = Wanted::Run(RunId::new("owned"));
    assert_eq!(store.claim(Claim { owner, wanted }).await.unwrap().runs.len(), 1);
}
