//! Owners: they have their runs while they renew in time; whoever is late loses them and is told.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::time::Duration;

use tidewheel_core::time::Span;
use tidewheel_store::{OwnerId, Refused, Renewed};
use tokio::time::timeout;

use crate::store_suite::World;
use crate::store_suite::world::{LEASE, Vary as _, more, new_run};

/// How long a case waits for what must come; only a failure takes that long.
const LONG: Duration = Duration::from_secs(10);

pub async fn every_owner_is_another(world: World) {
    let first = world.join().await;
    let second = world.join_other().await;
    world.store.leave(first).await.unwrap();
    let third = world.join().await;
    assert!(first != second && second != third && first != third);
}

pub async fn an_owner_that_is_late_loses_its_runs(world: World) {
    let late = world.join().await;
    let lease = world.write(new_run("a", Some(late)).due(world.now())).await.unwrap();
    world.pass(Span::from_millis(LEASE.as_millis() - 1)).await;
    let other = world.join_other().await;
    assert_eq!(world.claim_run(other, "a").await, None);
    world.pass(Span::from_millis(1)).await;
    let taken = world.claim_due(other, 1).await.runs.remove(0).0;
    assert_eq!(taken.fence, 2);

    assert_eq!(world.write(more(&lease, 1)).await, Err(Refused::Fenced { run: lease.run.clone() }));
    assert_eq!(world.store.renew(late, LEASE).await.unwrap(), Err(Refused::LeaseOver));
    world.store.release(vec![lease]).await.unwrap();
    assert_eq!(world.found("a").await.owner, Some(other));
    world.write(more(&taken, 1)).await.unwrap();
}

pub async fn a_late_owner_that_another_process_has_ended_is_told(world: World) {
    let late = world.join().await;
    world.start("a", late).await;
    world.pass(LEASE).await;
    let store = std::sync::Arc::clone(&world.store);
    let waiting = tokio::spawn(async move { store.alerted(late).await });
    tokio::task::yield_now().await;
    let other = world.join_other().await;
    assert_eq!(world.found("a").await.owner, None);
    assert_eq!(world.store.renew(late, LEASE).await.unwrap(), Err(Refused::LeaseOver));
    // A task that waits as this owner must not wait for ever.
    timeout(LONG, waiting).await.unwrap().unwrap();
    assert_eq!(world.claim_run(other, "a").await.unwrap().fence, 2);
}

/// Its runs are its own until another process has ended it, so that it has to give nothing up.
pub async fn a_late_owner_that_no_process_has_ended_stays_one(world: World) {
    let late = world.join().await;
    let lease = world.start("a", late).await;
    world.pass(LEASE).await;
    assert!(world.store.renew(late, LEASE).await.unwrap().is_ok());
    let other = world.join_other().await;
    assert_eq!(world.claim_run(other, "a").await, None);
    assert_eq!(world.store.owners().await.unwrap(), [late, other]);
    world.write(more(&lease, 1)).await.unwrap();
}

/// As after a suspend, or when the clock is set: all processes see the same jump, or only one of them.
pub async fn a_jump_of_the_clock_ends_no_owner(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    let lease = world.write(new_run("a", Some(owner)).due(world.now())).await.unwrap();
    for expected in 1..4 {
        world.clock.advance(Span::from_secs(3_600));
        assert_eq!(world.claim_run(other, "a").await, None);
        assert_eq!(world.claim_due(other, 9).await.runs, []);
        assert_eq!(world.other.owners().await.unwrap(), [owner, other]);
        let refused = world.other.delete(&lease.run).await.unwrap();
        assert_eq!(refused, Err(Refused::Owned { run: lease.run.clone(), owner }));
        world.write(more(&lease, expected)).await.unwrap();
    }
    // One that does not renew afterwards is noticed all the same.
    world.pass(LEASE).await;
    assert_eq!(world.store.owners().await.unwrap(), []);
}

/// One with a long lease looks seldom, and notices it all the same.
pub async fn a_late_owner_with_a_shorter_lease_is_noticed(world: World) {
    let late = world.store.join(Span::from_millis(10)).await.unwrap().owner;
    let owner = world.join().await;
    let lease = world.write(new_run("a", Some(late)).due(world.now())).await.unwrap();
    world.pass(Span::from_secs(20)).await;
    assert_eq!(world.claim_due(owner, 9).await.runs, []);
    world.write(more(&lease, 1).due(world.now())).await.unwrap();
    world.store.renew(owner, LEASE).await.unwrap().unwrap();
    world.pass(Span::from_secs(10)).await;
    assert_eq!(world.claim_due(owner, 9).await.runs.len(), 1);
}

/// A command that looks once and ends, such as one that deletes old runs, cannot know who renews.
pub async fn one_look_ends_no_owner(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    world.clock.advance(Span::from_secs(1_000_000));
    let refused = world.other.delete(&lease.run).await.unwrap();
    assert_eq!(refused, Err(Refused::Owned { run: lease.run.clone(), owner }));
    assert!(world.store.renew(owner, LEASE).await.unwrap().is_ok());
    world.write(more(&lease, 1)).await.unwrap();
}

pub async fn an_owner_that_renews_keeps_its_runs(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    let lease = world.start("a", owner).await;
    for _ in 0..3 {
        world.clock.advance(Span::from_secs(20));
        assert!(world.store.renew(owner, LEASE).await.unwrap().is_ok());
        assert!(world.store.renew(other, LEASE).await.unwrap().is_ok());
        assert_eq!(world.claim_run(other, "a").await, None);
    }
    world.write(more(&lease, 1)).await.unwrap();
}

pub async fn a_lease_may_be_as_long_as_time(world: World) {
    let owner = world.store.join(Span::LONGEST).await.unwrap().owner;
    let lease = world.start("a", owner).await;
    world.clock.advance(Span::from_secs(1_000_000_000));
    assert!(world.store.renew(owner, Span::from_millis(u64::MAX)).await.unwrap().is_ok());
    let other = world.join_other().await;
    assert_eq!(world.claim_run(other, "a").await, None);
    world.write(more(&lease, 1)).await.unwrap();
}

pub async fn whoever_leaves_frees_its_runs(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    let lease = world.write(new_run("a", Some(owner)).due(world.now())).await.unwrap();
    world.start("b", other).await;
    world.store.leave(owner).await.unwrap();
    world.store.leave(owner).await.unwrap();
    assert_eq!((world.found("a").await.owner, world.found("b").await.owner), (None, Some(other)));
    assert_eq!(world.store.renew(owner, LEASE).await.unwrap(), Err(Refused::LeaseOver));
    let claimed = world.claim_due(other, 9).await;
    assert_eq!((claimed.runs.len(), claimed.runs[0].0.fence), (1, 2));
    assert_eq!(world.write(more(&lease, 1)).await, Err(Refused::Fenced { run: lease.run }));
}

pub async fn the_owners_that_are_there_are_listed_and_no_others(world: World) {
    assert_eq!(world.store.owners().await.unwrap(), []);
    let late = world.join().await;
    let left = world.join_other().await;
    let here = world.join().await;
    let there = world.join_other().await;
    let lease = world.start("a", late).await;
    assert_eq!(world.store.owners().await.unwrap(), [late, left, here, there]);
    assert_eq!(world.other.owners().await.unwrap(), [late, left, here, there]);

    world.store.leave(left).await.unwrap();
    world.pass(Span::from_millis(LEASE.as_millis() - 1)).await;
    for owner in [there, here] {
        world.store.renew(owner, LEASE).await.unwrap().unwrap();
    }
    assert_eq!(world.store.owners().await.unwrap(), [late, here, there]);
    world.pass(Span::from_millis(1)).await;
    assert_eq!(world.store.owners().await.unwrap(), [here, there]);
    assert_eq!(world.other.owners().await.unwrap(), [here, there]);
    // Whoever looks changes nothing: the run of the one that is late is its own until somebody claims it.
    assert_eq!(world.found("a").await.owner, Some(late));
    world.write(more(&lease, 1)).await.unwrap();
}

pub async fn an_owner_that_renews_learns_whether_it_is_alone(world: World) {
    async fn is_alone(world: &World, owner: OwnerId) -> bool {
        let Renewed { is_alone, .. } = world.store.renew(owner, LEASE).await.unwrap().unwrap();
        is_alone
    }
    let owner = world.join().await;
    assert!(is_alone(&world, owner).await);
    let second = world.join_other().await;
    assert!(!is_alone(&world, owner).await && !is_alone(&world, second).await);
    world.other.leave(second).await.unwrap();
    assert!(is_alone(&world, owner).await);

    // One that is late has its runs until somebody claims them, so there is somebody to look for.
    let late = world.join_other().await;
    world.write(new_run("a", Some(late)).due(world.now())).await.unwrap();
    world.pass(Span::from_secs(20)).await;
    assert!(!is_alone(&world, owner).await);
    world.pass(Span::from_secs(20)).await;
    assert_eq!(world.store.owners().await.unwrap(), [owner]);
    assert!(!is_alone(&world, owner).await);
    assert_eq!(world.claim_due(owner, 1).await.runs.len(), 1);
    assert!(is_alone(&world, owner).await);
}

pub async fn an_owner_is_alerted_of_a_run_that_waits_for_somebody(world: World) {
    let here = world.join().await;
    let there = world.join_other().await;
    world.queue("a").await;
    timeout(LONG, world.store.alerted(here)).await.unwrap();
    timeout(LONG, world.other.alerted(there)).await.unwrap();
}

pub async fn an_owner_is_alerted_of_runs_that_were_given_back(world: World) {
    let here = world.join().await;
    let there = world.join_other().await;
    let lease = world.write(new_run("a", Some(here)).due(world.after(9))).await.unwrap();
    world.store.release(vec![lease]).await.unwrap();
    timeout(LONG, world.other.alerted(there)).await.unwrap();

    let lease = world.claim_run(here, "a").await.unwrap();
    world.write(more(&lease, 1).due(world.after(1)).release()).await.unwrap();
    timeout(LONG, world.other.alerted(there)).await.unwrap();

    world.claim_run(here, "a").await.unwrap();
    world.store.leave(here).await.unwrap();
    timeout(LONG, world.other.alerted(there)).await.unwrap();
}

/// What happened before somebody waits is not lost, and one who waits is woken.
pub async fn an_alert_is_not_lost(world: World) {
    let owner = world.join_other().await;
    world.start("a", owner).await;
    world.send("a", "one").await.unwrap();
    timeout(LONG, world.other.alerted(owner)).await.unwrap();
    let other = std::sync::Arc::clone(&world.other);
    let waiting = tokio::spawn(async move { other.alerted(owner).await });
    tokio::task::yield_now().await;
    world.send("a", "two").await.unwrap();
    timeout(LONG, waiting).await.unwrap().unwrap();
}
