//! Claims: runs that nobody drives find somebody, the longest due first, and never two at once.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::collections::BTreeSet;
use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Claim, Claimed, Wanted};

use crate::store_suite::World;
use crate::store_suite::world::{LEASE, Vary as _, WORKFLOW, more, new_run};

fn ids(claimed: &Claimed) -> Vec<&str> {
    claimed.runs.iter().map(|(lease, ..)| lease.run.as_str()).collect()
}

pub async fn a_run_is_claimed_by_its_id_whether_it_is_due_or_not(world: World) {
    world.write(new_run("a", None)).await.unwrap();
    let owner = world.join().await;
    let claimed = world.store.claim(Claim { owner, wanted: Wanted::Run(RunId::new("a")) }).await.unwrap();
    let [(lease, record, definition)] = &claimed.runs[..] else { panic!("one run is claimed") };
    assert_eq!((lease.fence, record.fence, record.owner), (1, 1, Some(owner)));
    assert_eq!(definition, r#"{"of":"a"}"#);
    assert_eq!(*record, world.found("a").await);
    world.write(more(lease, 1)).await.unwrap();
}

pub async fn a_run_that_somebody_drives_is_not_claimed(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    world.write(new_run("a", Some(owner)).due(world.now())).await.unwrap();
    for claimer in [other, owner] {
        assert_eq!(world.claim_run(claimer, "a").await, None);
        let claimed = world.claim_due(claimer, 9).await;
        assert_eq!((ids(&claimed), claimed.next_due), (vec![], None));
    }
    assert_eq!(world.claim_run(owner, "unknown").await, None);
    assert_eq!(world.found("a").await.fence, 1);
}

pub async fn an_owner_that_forgot_its_lease_gets_another_one(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    let before = world.write(new_run("a", Some(owner))).await.unwrap();
    let again = |owner| world.store.claim(Claim { owner, wanted: Wanted::Again(RunId::new("a")) });
    assert_eq!(ids(&again(other).await.unwrap()), [""; 0]);
    let claimed = again(owner).await.unwrap();
    let [(lease, record, _)] = &claimed.runs[..] else { panic!("one run is claimed") };
    assert_eq!((lease.fence, record.fence, record.owner), (2, 2, Some(owner)));
    assert_eq!(*record, world.found("a").await);
    assert!(world.write(more(&before, 1)).await.is_err());
    world.write(more(lease, 1)).await.unwrap();
    world.store.release(vec![lease.clone()]).await.unwrap();
    assert_eq!(ids(&again(owner).await.unwrap()), [""; 0]);
}

pub async fn those_that_are_due_longest_come_first(world: World) {
    let owner = world.join().await;
    for (id, at) in [("late", 900), ("early", 100), ("middle", 500), ("tomorrow", 90_000), ("now", 1_000)] {
        world.write(new_run(id, None).due(Timestamp::from_millis(at))).await.unwrap();
    }
    world.write(new_run("never", None)).await.unwrap();

    let first = world.claim_due(owner, 2).await;
    assert_eq!(ids(&first), ["early", "middle"]);
    // What is left over is named, too: there is more to claim at once.
    assert_eq!(first.next_due, Some(Timestamp::from_millis(900)));
    let second = world.claim_due(owner, 9).await;
    assert_eq!(ids(&second), ["late", "now"]);
    assert_eq!(second.next_due, Some(Timestamp::from_millis(90_000)));
    world.pass(Span::from_secs(89)).await;
    assert_eq!(world.now(), Timestamp::from_millis(90_000));
    let owner = world.join().await;
    let third = world.claim_due(owner, 9).await;
    // The first owner is gone by now, and what it had is due as it was.
    assert_eq!(ids(&third), ["early", "middle", "late", "now", "tomorrow"]);
    assert_eq!(third.next_due, None);
}

pub async fn equally_due_runs_come_in_the_order_of_their_creation(world: World) {
    let owner = world.join().await;
    for id in ["c", "a", "b"] {
        world.queue(id).await;
    }
    assert_eq!(ids(&world.claim_due(owner, 2).await), ["c", "a"]);
    assert_eq!(ids(&world.claim_due(owner, 2).await), ["b"]);
}

pub async fn only_runs_of_known_workflows_are_claimed(world: World) {
    let owner = world.join().await;
    for (id, name, version) in [("a1", "a", 1), ("a2", "a", 2), ("b1", "b", 1), ("c1", "c", 1)] {
        world.write(new_run(id, None).workflow(name, version).due(world.now())).await.unwrap();
    }
    let claim = |workflows: &[(&str, u32)], limit| {
        let workflows = workflows.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect();
        world.store.claim(Claim { owner, wanted: Wanted::Due { workflows, limit } })
    };
    let none = claim(&[], 9).await.unwrap();
    assert_eq!((ids(&none), none.next_due), (vec![], None));
    assert_eq!(ids(&claim(&[("b", 2), ("d", 1)], 9).await.unwrap()), [""; 0]);
    let none = claim(&[("a", 2), ("b", 1)], 0).await.unwrap();
    assert_eq!((ids(&none), none.next_due), (vec![], Some(world.now())));
    let two = claim(&[("b", 1), ("a", 2), ("a", 2)], 9).await.unwrap();
    assert_eq!((ids(&two), two.next_due), (vec!["a2", "b1"], None));
    assert_eq!(ids(&claim(&[("a", 1), ("c", 1)], 9).await.unwrap()), ["a1", "c1"]);
}

pub async fn each_claim_raises_the_fence(world: World) {
    let owner = world.join().await;
    world.queue("a").await;
    for fence in 1..4 {
        let claimed = world.claim_due(owner, 1).await;
        let (lease, record, _) = &claimed.runs[0];
        assert_eq!((lease.fence, record.fence), (fence, fence));
        world.store.release(vec![lease.clone()]).await.unwrap();
    }
    assert_eq!(world.found("a").await.fence, 3);
}

pub async fn nothing_is_claimed_for_an_owner_that_is_gone(world: World) {
    world.queue("a").await;
    let left = world.join().await;
    world.store.leave(left).await.unwrap();
    let late = world.join().await;
    world.pass(LEASE).await;
    for owner in [left, late] {
        assert_eq!(world.claim_run(owner, "a").await, None);
        assert_eq!(ids(&world.claim_due(owner, 9).await), [""; 0]);
    }
    assert_eq!(world.found("a").await.fence, 0);
}

pub async fn no_run_is_claimed_twice(world: World) {
    const RUNS: usize = 60;
    let mut appends = Vec::new();
    for run in 0..RUNS {
        appends.push(new_run(&format!("run {run}"), None).due(world.now()));
    }
    world.store.append(appends).await.unwrap();
    let mut tasks = Vec::new();
    for claimer in 0..6 {
        let store = Arc::clone(if claimer % 2 == 0 { &world.store } else { &world.other });
        tasks.push(tokio::spawn(async move {
            let owner = store.join(LEASE).await.unwrap().owner;
            let mut claimed = Vec::new();
            loop {
                let wanted = Wanted::Due { workflows: vec![(WORKFLOW.to_owned(), 1)], limit: 7 };
                let some = store.claim(Claim { owner, wanted }).await.unwrap();
                if some.runs.is_empty() {
                    return claimed;
                }
                claimed.extend(some.runs.into_iter().map(|(lease, ..)| (lease.run, lease.fence)));
            }
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (RUNS, RUNS));
    assert!(all.iter().all(|(_, fence)| *fence == 1));
}

pub async fn a_released_run_waits_for_somebody_else(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    let lease = world.write(new_run("a", Some(owner)).due(world.after(5))).await.unwrap();
    world.store.release(vec![lease.clone()]).await.unwrap();
    assert_eq!((world.found("a").await.owner, world.found("a").await.wake_at), (None, Some(world.after(5))));
    let claimed = world.claim_due(other, 9).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![], Some(world.after(5))));
    world.clock.advance(Span::from_secs(5));
    assert_eq!(ids(&world.claim_due(other, 9).await), ["a"]);

    // The lease of the first owner is over, and changes nothing any more.
    world.store.release(vec![lease]).await.unwrap();
    assert_eq!(world.found("a").await.owner, Some(other));
}

pub async fn a_run_that_was_claimed_by_id_can_be_given_back(world: World) {
    let owner = world.join().await;
    world.queue("a").await;
    let lease = world.claim_run(owner, "a").await.unwrap();
    assert_eq!(ids(&world.claim_due(owner, 9).await), [""; 0]);
    world.store.release(vec![lease.clone(), lease]).await.unwrap();
    world.store.release(Vec::new()).await.unwrap();
    assert_eq!(ids(&world.claim_due(owner, 9).await), ["a"]);
}
