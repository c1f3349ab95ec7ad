//! Processes whose clocks disagree: none takes a run of another, and none keeps a run that it has lost.

use std::sync::Arc;

use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Append, OwnerId, Refused, Sqlite, Store as _};
use tidewheel_testkit::VirtualClock;

use crate::fixture::{Place, claim_due, more, new_run, write};

const LEASE: Span = Span::from_secs(30);
const THIRD: Span = Span::from_secs(10);
/// When the first process begins, by its own clock.
const NOON: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const HOUR: u64 = 3_600_000;

/// Two processes on one file, each with a clock of its own.
struct Pair {
    stores: [Sqlite; 2],
    clocks: [VirtualClock; 2],
    owners: [OwnerId; 2],
}

impl Pair {
    /// Returns two processes, of which the clock of the second shows another time.
    async fn new(place: &Place, second: Timestamp) -> Self {
        let clocks = [VirtualClock::new(NOON), VirtualClock::new(second)];
        let open = |clock: &VirtualClock| Sqlite::open(place.path(), Arc::new(clock.clone())).unwrap();
        let stores = [open(&clocks[0]), open(&clocks[1])];
        let owners = [stores[0].join(LEASE).await.unwrap().owner, stores[1].join(LEASE).await.unwrap().owner];
        Self { stores, clocks, owners }
    }

    fn advance(&self, span: Span) {
        self.clocks.iter().for_each(|clock| clock.advance(span));
    }

    async fn renew(&self, who: usize) -> bool {
        self.stores[who].renew(self.owners[who], LEASE).await.unwrap().is_ok()
    }
}

/// Makes a write leave its run with work to do.
fn due(append: Append) -> Append {
    Append { wake_at: Some(Timestamp::from_nanos(0)), ..append }
}

#[tokio::test]
async fn clocks_that_are_an_hour_apart_take_nothing_from_either_process() {
    for second in [NOON.as_nanos() / 1_000_000 - HOUR, NOON.as_nanos() / 1_000_000 + HOUR] {
        let place = Place::new();
        let pair = Pair::new(&place, Timestamp::from_millis(second)).await;
        let mut leases = Vec::new();
        for (store, owner) in pair.stores.iter().zip(pair.owners) {
            let new = due(new_run(&format!("of {}", owner.0), Some(owner)));
            leases.push(write(store, new).await.unwrap().unwrap());
        }
        for round in 0..20 {
            for (who, lease) in leases.iter().enumerate() {
                let (store, owner) = (&pair.stores[who], pair.owners[who]);
                assert!(pair.renew(who).await, "round {round}");
                assert_eq!(claim_due(store, owner).await.runs, [], "round {round}");
                assert_eq!(store.owners().await.unwrap(), pair.owners, "round {round}");
                write(store, due(more(lease, round + 1))).await.unwrap().unwrap();
            }
            pair.advance(THIRD);
        }
        // One that does not renew any more loses its run, whatever its clock shows.
        for _ in 0..3 {
            assert_eq!(claim_due(&pair.stores[0], pair.owners[0]).await.runs, []);
            pair.advance(THIRD);
            assert!(pair.renew(0).await);
        }
        let taken = claim_due(&pair.stores[0], pair.owners[0]).await.runs;
        assert_eq!(taken.len(), 1, "the second process is late");
        assert!(!pair.renew(1).await);
        let refused = write(&pair.stores[1], more(&leases[1], 21)).await.unwrap();
        assert!(matches!(refused, Err(Refused::Fenced { .. })), "{refused:?}");
    }
}

/// A process that was away finds others renewed, or not yet: it judges none of that before a lease went by.
#[tokio::test]
async fn a_process_that_was_suspended_takes_nothing_and_keeps_nothing() {
    let place = Place::new();
    let pair = Pair::new(&place, NOON).await;
    let lease = write(&pair.stores[1], due(new_run("a", Some(pair.owners[1])))).await.unwrap().unwrap();
    // Both were suspended together, and the first is awake first.
    pair.advance(Span::from_millis(8 * HOUR));
    assert!(pair.renew(0).await);
    assert_eq!(claim_due(&pair.stores[0], pair.owners[0]).await.runs, []);
    assert!(pair.renew(1).await);
    write(&pair.stores[1], due(more(&lease, 1))).await.unwrap().unwrap();
    // The second is suspended alone.
    for _ in 0..4 {
        assert_eq!(claim_due(&pair.stores[0], pair.owners[0]).await.runs, []);
        pair.advance(THIRD);
        assert!(pair.renew(0).await);
        if claim_due(&pair.stores[0], pair.owners[0]).await.runs.len() == 1 {
            break;
        }
    }
    assert_eq!(pair.stores[0].owners().await.unwrap(), [pair.owners[0]]);
    assert!(!pair.renew(1).await, "it learns that it was ended");
    let refused = write(&pair.stores[1], more(&lease, 2)).await.unwrap();
    assert!(matches!(refused, Err(Refused::Fenced { .. })), "{refused:?}");
    assert!(pair.renew(0).await);
}

/// A process that looks once and ends, as `runs gc` does, with a clock that is an hour ahead.
#[tokio::test]
async fn a_single_look_with_a_clock_ahead_deletes_nothing_of_a_healthy_owner() {
    let place = Place::new();
    let here = VirtualClock::new(NOON);
    let store = Sqlite::open(place.path(), Arc::new(here.clone())).unwrap();
    let owner = store.join(LEASE).await.unwrap().owner;
    let lease = write(&store, new_run("a", Some(owner))).await.unwrap().unwrap();
    for _ in 0..10 {
        let ahead = VirtualClock::new(NOON.saturating_add(Span::from_millis(HOUR)));
        let command = Sqlite::open(place.path(), Arc::new(ahead)).unwrap();
        let refused = command.delete(&lease.run).await.unwrap();
        assert_eq!(refused, Err(Refused::Owned { run: lease.run.clone(), owner }));
        command.close().await;
        here.advance(THIRD);
    }
    assert!(store.renew(owner, LEASE).await.unwrap().is_ok());
    write(&store, more(&lease, 1)).await.unwrap().unwrap();
}
