//! The store is the clock: processes whose clocks disagree mean the same instant by a due time, and none of them takes
//! what is another's.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::sync::Arc;

use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Claim, Claimed, OwnerId, Store, Wanted};

use crate::VirtualClock;
use crate::store_suite::World;
use crate::store_suite::world::{LEASE, Vary as _, WORKFLOW, more, new_run};

const HOUR: u64 = 3_600;
const THIRD: Span = Span::from_secs(10);

/// A process with a clock of its own that drives runs.
struct Process {
    store: Arc<dyn Store>,
    clock: VirtualClock,
    owner: OwnerId,
    /// The store's time when it joined.
    joined: Timestamp,
}

impl Process {
    async fn begin(world: &World, clock: Timestamp) -> Self {
        let clock = VirtualClock::new(clock);
        let store = (world.process)(clock.clone());
        let joined = store.join(LEASE).await.unwrap();
        Self { store, clock, owner: joined.owner, joined: joined.now }
    }

    /// Renews, and returns the store's time.
    async fn renew(&self) -> Timestamp {
        self.store.renew(self.owner, LEASE).await.unwrap().unwrap().now
    }

    async fn claim_due(&self) -> Claimed {
        let wanted = Wanted::Due { workflows: vec![(WORKFLOW.to_owned(), 1)], limit: 9 };
        self.store.claim(Claim { owner: self.owner, wanted }).await.unwrap()
    }
}

/// Returns the clocks of the cases: right, an hour behind and an hour ahead.
fn clocks() -> [Timestamp; 3] {
    let noon = 1_700_000_000;
    [noon, noon - HOUR, noon + HOUR].map(|second| Timestamp::from_millis(second * 1_000))
}

pub async fn the_store_says_what_time_it_is(world: World) {
    let joined = world.store.join(LEASE).await.unwrap();
    assert_eq!(joined.now, world.now());
    world.clock.advance(THIRD);
    let renewed = world.store.renew(joined.owner, LEASE).await.unwrap().unwrap();
    assert_eq!(renewed.now, world.now());
}

pub async fn the_time_never_goes_back(world: World) {
    let [noon, behind, _] = clocks();
    let first = Process::begin(&world, noon).await;
    first.store.leave(first.owner).await.unwrap();
    // No other process is left, and the clock of the next one is behind.
    let next = Process::begin(&world, behind).await;
    assert_eq!(next.joined, noon);
    next.clock.advance(THIRD);
    assert_eq!(next.renew().await, noon.saturating_add(THIRD));
}

pub async fn a_clock_that_is_wrong_does_not_move_the_time_of_others(world: World) {
    let [noon, behind, ahead] = clocks();
    for wrong in [behind, ahead] {
        let first = Process::begin(&world, noon).await;
        let began = first.joined;
        let second = Process::begin(&world, wrong).await;
        assert_eq!(second.joined, began);
        for third in 1..10 {
            let now = began.saturating_add(Span::from_secs(10 * third));
            first.clock.advance(THIRD);
            second.clock.advance(THIRD);
            assert_eq!((first.renew().await, second.renew().await), (now, now));
        }
        for process in [first, second] {
            process.store.leave(process.owner).await.unwrap();
        }
    }
}

pub async fn a_due_time_is_the_same_instant_for_every_process(world: World) {
    let [noon, behind, ahead] = clocks();
    let first = Process::begin(&world, noon).await;
    let others = [Process::begin(&world, behind).await, Process::begin(&world, ahead).await];
    let all = [&first, &others[0], &others[1]];
    let at = noon.saturating_add(THIRD);
    world.write(new_run("a", None).due(at)).await.unwrap();
    for process in all {
        let claimed = process.claim_due().await;
        assert_eq!((claimed.runs.len(), claimed.next_due), (0, Some(at)));
    }
    for process in all {
        process.clock.advance(THIRD);
        process.renew().await;
    }
    for process in &others {
        let (lease, ..) = process.claim_due().await.runs.remove(0);
        process.store.release(vec![lease]).await.unwrap();
    }
}

pub async fn clocks_that_disagree_take_nothing_from_either_process(world: World) {
    let mut processes = Vec::new();
    for (number, clock) in clocks().into_iter().enumerate() {
        let process = Process::begin(&world, clock).await;
        let due = Timestamp::from_nanos(0);
        let new = new_run(&format!("run {number}"), Some(process.owner)).due(due);
        let lease = process.store.append(vec![new]).await.unwrap().remove(0).unwrap();
        processes.push((process, lease));
    }
    for expected in 1..20 {
        for (process, lease) in &processes {
            process.renew().await;
            assert_eq!(process.claim_due().await.runs, []);
            let next = more(lease, expected).due(Timestamp::from_nanos(0));
            process.store.append(vec![next]).await.unwrap().remove(0).unwrap();
        }
        processes.iter().for_each(|(process, _)| process.clock.advance(THIRD));
    }
}

/// As after a suspend: a process comes back with a clock that went on, and the others were not there either.
pub async fn whoever_was_suspended_finds_the_time_gone_by(world: World) {
    let [noon, behind, _] = clocks();
    let (first, second) = (Process::begin(&world, noon).await, Process::begin(&world, behind).await);
    let (due, night) = (noon.saturating_add(Span::from_secs(HOUR)), Span::from_secs(8 * HOUR));
    let held = new_run("held", Some(second.owner)).due(due);
    let lease = second.store.append(vec![held]).await.unwrap().remove(0).unwrap();
    world.write(new_run("free", None).due(due)).await.unwrap();
    for process in [&first, &second] {
        process.clock.advance(night);
    }
    assert_eq!(first.renew().await, noon.saturating_add(night));
    let claimed = first.claim_due().await.runs;
    let runs: Vec<&str> = claimed.iter().map(|(lease, ..)| lease.run.as_str()).collect();
    assert_eq!(runs, ["free"], "what became due is taken, and what is another's is not");
    assert_eq!(second.renew().await, noon.saturating_add(night));
    second.store.append(vec![more(&lease, 1)]).await.unwrap().remove(0).unwrap();
}
