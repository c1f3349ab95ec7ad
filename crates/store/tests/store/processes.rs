//! Several processes on one file: nobody is starved, nobody takes what is another's, and a death is noticed.

use std::time::{Duration, Instant};

use tidewheel_core::fact::RunId;
use tidewheel_store::sqlite::Options;
use tidewheel_store::{Claim, Filter, OwnerId, Refused, Store as _, Unavailable, Wanted};

use crate::fixture::{LEASE, Place, claim_due, command, new_run, obstacle, write};
use crate::process::{Other, Part};

/// How long a test waits for what must come; only a failure takes that long.
const LONG: Duration = Duration::from_secs(60);

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
    let owner = store.join(LEASE).await.unwrap().owner;
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

/// A killed process sends no message, and those that live need not wait until they renew.
#[tokio::test]
async fn the_death_of_a_process_alerts_the_others() {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    let mut other = Other::start(Part::Own, &place.path());
    other.says().unwrap();
    // Whatever rang for the beginning of the other one has been heard by now, or is heard below.
    let mut claimed = claim_due(&store, owner).await;
    assert_eq!(claimed.runs.len(), 0);
    other.kill();
    let killed = Instant::now();
    while claimed.runs.is_empty() {
        tokio::time::timeout(LONG, store.alerted(owner)).await.unwrap();
        claimed = claim_due(&store, owner).await;
    }
    println!("the run of a killed process was taken over after {:?}", killed.elapsed());
    assert_eq!(claimed.runs[0].0.run.as_str(), "owned");
}

/// As when a process is stopped between the end of a write and the moment when it gives the turn back.
#[tokio::test]
async fn a_turn_that_is_never_given_back_keeps_no_other_process_from_writing() {
    let place = Place::new();
    let store = place.try_open(&Options::new().patience(Duration::from_millis(500))).unwrap();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    for name in ["turn.lock", "next.lock"] {
        let lock = std::fs::File::open(place.beside().join(name)).unwrap();
        lock.lock().unwrap();
        for _ in 0..20 {
            store.send(command("a")).await.unwrap().unwrap();
        }
        drop(lock);
        store.send(command("a")).await.unwrap().unwrap();
        store.delete(&RunId::new("a")).await.unwrap().unwrap();
        write(&store, new_run("a", None)).await.unwrap().unwrap();
    }
}

/// SQLite's lock cannot be taken from a process that has it: what remains is an error that says which one to look at.
#[tokio::test]
async fn a_process_that_is_stopped_in_the_middle_of_a_write_is_named() {
    let place = Place::new();
    let store = place.try_open(&Options::new().patience(Duration::from_millis(100))).unwrap();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    let mut other = Other::start(Part::Hold, &place.path());
    assert_eq!(other.says().as_deref(), Some("in a transaction"));
    let id = other.id();
    for (stops, expected) in [
        (false, format!("process {id} has been writing for too long")),
        (
            true,
            format!(
                "process {id} is stopped in the middle of a write: let it go on (`kill -CONT {id}`) or end it"
            ),
        ),
    ] {
        if stops {
            other.stop();
        }
        let error = store.send(command("a")).await.unwrap_err();
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), expected);
        assert_eq!(obstacle::<()>(Err(error)), Some(Unavailable::Busy));
        // Readers are not held up.
        assert!(store.find(&RunId::new("a")).await.unwrap().is_some());
    }
    other.go_on();
    assert!(other.ended_well());
    store.send(command("a")).await.unwrap().unwrap();
}

/// Wherever it stands: nothing waits for ever, and all goes on when it does.
#[tokio::test]
async fn a_process_that_is_stopped_anywhere_holds_up_no_other_for_ever() {
    let stops: usize = std::env::var("TIDEWHEEL_TEST_STOPS").map_or(20, |text| text.parse().unwrap());
    let place = Place::new();
    let store = place.try_open(&Options::new().patience(Duration::from_millis(200))).unwrap();
    write(&store, new_run("a", None)).await.unwrap().unwrap();
    let mut hog = Other::start(Part::Hog, &place.path());
    assert_eq!(hog.says().as_deref(), Some("busy"));
    let mut named = 0;
    for stop in 0..stops {
        hog.stop();
        match store.send(command("a")).await {
            Ok(sent) => drop(sent.unwrap()),
            Err(error) => {
                let said = std::error::Error::source(&error).unwrap().to_string();
                assert!(said.contains(&format!("process {} is stopped", hog.id())), "stop {stop}: {said}");
                named += 1;
                assert_eq!(obstacle::<()>(Err(error)), Some(Unavailable::Busy), "stop {stop}: {said}");
            }
        }
        hog.go_on();
        while let Err(error) = store.send(command("a")).await {
            assert_eq!(obstacle::<()>(Err(error)), Some(Unavailable::Busy), "stop {stop}");
        }
    }
    println!("of {stops} stops, {named} were in the middle of a write and named");
    tidewheel_testkit::figure::counted("stops of writers of a store", stops);
}

#[tokio::test]
async fn a_run_of_a_killed_process_can_be_claimed_by_its_id() {
    let place = Place::new();
    let mut other = Other::start(Part::Own, &place.path());
    other.says().unwrap();
    other.kill();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    let wanted = Wanted::Run(RunId::new("owned"));
    assert_eq!(store.claim(Claim { owner, wanted }).await.unwrap().runs.len(), 1);
}
