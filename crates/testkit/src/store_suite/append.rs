//! Logs: they begin once, grow at their end only, by whoever has the right, and come back as they were written.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_store::{Guard, Lease, Refused, Status, Stored};

use crate::store_suite::World;
use crate::store_suite::world::{Vary as _, events, more, new_run};

/// Returns the texts of the events.
fn texts(stored: &[Stored]) -> Vec<String> {
    stored.iter().flat_map(|batch| batch.events.events().unwrap()).map(str::to_owned).collect()
}

fn numbered(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|n| format!(r#"{{"n":{n}}}"#)).collect()
}

pub async fn a_new_run_gives_its_lease(world: World) {
    let owner = world.join().await;
    let lease = world.start("owned", owner).await;
    assert_eq!((lease.run.as_str(), lease.fence), ("owned", 1));
    let unowned = world.queue("queued").await;
    assert_eq!((unowned.run.as_str(), unowned.fence), ("queued", 0));
    assert_ne!(unowned.key, lease.key);

    let record = world.found("owned").await;
    assert_eq!((record.owner, record.fence, record.version), (Some(owner), 1, 1));
    assert_eq!((record.workflow.as_str(), record.workflow_version), ("flow", 1));
    assert_eq!((record.created_at, record.updated_at), (world.now(), world.now()));
    assert_eq!((world.found("queued").await.owner, world.found("queued").await.fence), (None, 0));
    let definition = world.other.definition(&RunId::new("owned")).await.unwrap();
    assert_eq!(definition.as_deref(), Some(r#"{"of":"owned"}"#));
}

pub async fn a_run_is_created_once(world: World) {
    world.queue("a").await;
    let refused = world.write(new_run("a", None).events([7, 8])).await;
    assert_eq!(refused, Err(Refused::Exists { run: RunId::new("a") }));
    let read = world.store.read(&RunId::new("a"), 0).await.unwrap();
    assert_eq!(texts(&read), numbered(0..1));
}

pub async fn a_run_is_created_by_an_owner_that_is_one(world: World) {
    let gone = world.join().await;
    world.store.leave(gone).await.unwrap();
    assert_eq!(world.write(new_run("a", Some(gone))).await, Err(Refused::LeaseOver));
    assert_eq!(world.store.find(&RunId::new("a")).await.unwrap(), None);
}

pub async fn a_new_run_begins_at_zero(world: World) {
    let mut late = new_run("a", None);
    late.expected = 3;
    let refused = world.write(late).await;
    assert_eq!(refused, Err(Refused::Conflict { run: RunId::new("a"), expected: 3, found: 0 }));
    assert_eq!(world.store.find(&RunId::new("a")).await.unwrap(), None);
}

pub async fn a_log_that_ends_elsewhere_is_a_conflict(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    for expected in [0, 2] {
        let refused = world.write(more(&lease, expected)).await;
        assert_eq!(refused, Err(Refused::Conflict { run: lease.run.clone(), expected, found: 1 }));
    }
    assert_eq!(world.found("a").await.version, 1);
}

pub async fn another_fence_is_refused(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    for fence in [0, 2] {
        let refused = world.write(more(&lease, 1).fence(fence)).await;
        assert_eq!(refused, Err(Refused::Fenced { run: lease.run.clone() }));
    }
    // The fence is looked at first: whoever lost the run need not hear where its log ends.
    let refused = world.write(more(&lease, 9).fence(0)).await;
    assert_eq!(refused, Err(Refused::Fenced { run: lease.run.clone() }));
}

pub async fn an_unknown_run_is_not_found(world: World) {
    let lease = Lease { run: RunId::new("nobody"), key: 4711, fence: 1 };
    assert_eq!(world.write(more(&lease, 0)).await, Err(Refused::NotFound { run: lease.run.clone() }));
    let known = world.queue("known").await;
    let mixed = Lease { run: RunId::new("nobody"), ..known };
    assert_eq!(world.write(more(&mixed, 1)).await, Err(Refused::NotFound { run: mixed.run.clone() }));
    let run = RunId::new("nobody");
    assert_eq!(world.store.read(&run, 0).await.unwrap(), []);
    assert_eq!(world.store.find(&run).await.unwrap(), None);
    assert_eq!(world.store.definition(&run).await.unwrap(), None);
    assert_eq!(world.store.checkpoint(&run).await.unwrap(), None);
    assert_eq!(world.store.commands_of(&run).await.unwrap(), []);
}

pub async fn each_part_of_a_call_is_taken_or_refused_by_itself(world: World) {
    let owner = world.join().await;
    let a = world.start("a", owner).await;
    let b = world.start("b", owner).await;
    let answers = world
        .store
        .append(vec![
            more(&a, 1),
            more(&b, 5),
            new_run("a", None),
            new_run("c", None),
            new_run("c", None),
            more(&a, 2),
            more(&b, 1),
        ])
        .await
        .unwrap();
    let taken: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, false, true, false, true, true]);
    assert_eq!(answers[0], Ok(a));
    assert_eq!(world.found("a").await.version, 3);
    assert_eq!(world.found("b").await.version, 2);
    assert_eq!(world.found("c").await.version, 1);
    assert_eq!(world.store.append(Vec::new()).await.unwrap(), []);
}

pub async fn events_come_back_in_order(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    world.write(more(&lease, 1).events(1..4)).await.unwrap();
    world.clock.advance(tidewheel_core::time::Span::from_secs(1));
    world.write(more(&lease, 4).events([])).await.unwrap();
    world.write(more(&lease, 4).events(4..6)).await.unwrap();

    let read = world.other.read(&lease.run, 0).await.unwrap();
    let shape: Vec<(u64, u32)> = read.iter().map(|batch| (batch.first, batch.events.len())).collect();
    assert_eq!(shape, [(0, 1), (1, 3), (4, 2)]);
    assert_eq!(texts(&read), numbered(0..6));
    assert_eq!(read[2].at, world.now());
    assert!(read[1].at < read[2].at);
    assert_eq!(world.found("a").await.version, 6);
}

/// A batch is never cut: what comes back begins with the batch that holds the first event that was asked for.
pub async fn a_read_from_inside_a_batch_gives_the_whole_batch(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    world.write(more(&lease, 1).events(1..4)).await.unwrap();
    world.write(more(&lease, 4).events(4..6)).await.unwrap();
    for (from, firsts) in [
        (0, vec![0, 1, 4]),
        (1, vec![1, 4]),
        (3, vec![1, 4]),
        (4, vec![4]),
        (5, vec![4]),
        (6, vec![]),
        (99, vec![]),
    ] {
        let read = world.store.read(&lease.run, from).await.unwrap();
        assert_eq!(read.iter().map(|batch| batch.first).collect::<Vec<_>>(), firsts, "from {from}");
    }
    assert_eq!(world.store.read(&lease.run, u64::MAX).await.unwrap(), []);
}

pub async fn all_of_a_write_happens_together(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    let first = world.send("a", "pause").await.unwrap();
    let second = world.send("a", "signal").await.unwrap();
    let mut write = more(&lease, 1).events(1..3).status(Status::Paused).due(world.after(60)).release();
    write.reason = Some("asked".to_owned());
    write.handled = vec![first, second];
    write.checkpoint = Some(r#"{"state":1}"#.to_owned());

    let mut refused = write.clone();
    refused.expected = 7;
    assert!(world.write(refused).await.is_err());
    assert_eq!(world.store.commands_of(&lease.run).await.unwrap().len(), 2);
    assert_eq!(world.store.checkpoint(&lease.run).await.unwrap(), None);

    world.write(write).await.unwrap();
    let record = world.found("a").await;
    assert_eq!((record.status, record.reason.as_deref()), (Status::Paused, Some("asked")));
    assert_eq!((record.version, record.owner), (3, None));
    assert_eq!(record.wake_at, Some(world.after(60)));
    assert_eq!(world.store.commands_of(&lease.run).await.unwrap(), []);
    let checkpoint = world.store.checkpoint(&lease.run).await.unwrap();
    assert_eq!(checkpoint, Some((3, r#"{"state":1}"#.to_owned())));
}

pub async fn a_checkpoint_replaces_the_one_before(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    for (expected, state) in [(1, "one"), (2, "two")] {
        let mut write = more(&lease, expected);
        write.checkpoint = Some(state.to_owned());
        world.write(write).await.unwrap();
    }
    world.write(more(&lease, 3)).await.unwrap();
    assert_eq!(world.store.checkpoint(&lease.run).await.unwrap(), Some((3, "two".to_owned())));
}

pub async fn status_and_due_time_follow_the_last_write(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    for (expected, status) in (1..).zip(Status::ALL) {
        world.clock.advance(tidewheel_core::time::Span::from_secs(1));
        world.write(more(&lease, expected).status(status).due(world.after(expected))).await.unwrap();
        let record = world.found("a").await;
        assert_eq!((record.status, record.wake_at), (status, Some(world.after(expected))));
        assert_eq!(record.updated_at, world.now());
        assert!(record.created_at < record.updated_at);
    }
    world.write(more(&lease, 9).status(Status::Completed)).await.unwrap();
    assert_eq!(world.found("a").await.wake_at, None);
}

pub async fn a_run_may_be_created_and_released_at_once(world: World) {
    let owner = world.join().await;
    let lease = world.write(new_run("a", Some(owner)).release().due(world.now())).await.unwrap();
    assert_eq!((lease.fence, world.found("a").await.owner), (1, None));
    assert_eq!(world.claim_due(owner, 9).await.runs[0].0.fence, 2);
}

pub async fn the_right_to_write_lasts_until_somebody_else_claims(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    world.write(more(&lease, 1).release()).await.unwrap();
    world.write(more(&lease, 2)).await.unwrap();
    let other = world.join_other().await;
    let claimed = world.claim_run(other, "a").await.unwrap();
    assert_eq!(world.write(more(&lease, 3)).await, Err(Refused::Fenced { run: lease.run }));
    world.write(more(&claimed, 3)).await.unwrap();
}

pub async fn ids_may_be_any_text(world: World) {
    let owner = world.join().await;
    let long = "x".repeat(1_000);
    let ids = ["", " ", "'; DROP TABLE runs; --", "\"", "ä/ö\\ü", "%_", "🐚", "\u{10FFFF}", "a\nb", &long];
    for id in ids {
        let lease = world.start(id, owner).await;
        world.write(more(&lease, 1)).await.unwrap();
    }
    for id in ids {
        let record = world.found(id).await;
        assert_eq!((record.id.as_str(), record.version), (id, 2));
        assert_eq!(world.store.read(&RunId::new(id), 0).await.unwrap().len(), 2, "{id:?}");
    }
}

pub async fn any_json_comes_back_byte_for_byte(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    let texts = [
        r#"{"text":"quote \" and \\ and \n","ü":"🐚"}"#.to_owned(),
        "null".to_owned(),
        "[1, 2.50, -0.0, 1e400]".to_owned(),
        format!("\"{}\"", "y".repeat(200_000)),
    ];
    let mut write = more(&lease, 1);
    write.events = tidewheel_store::Batch::new();
    for text in &texts {
        write.events.push(text);
    }
    world.write(write).await.unwrap();
    let read = world.store.read(&lease.run, 1).await.unwrap();
    assert_eq!(read[0].events.events().unwrap(), texts);
}

pub async fn many_writers_do_not_disturb_each_other(world: World) {
    const WRITERS: u64 = 20;
    const WRITES: u64 = 10;
    let owner = world.join().await;
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = Arc::clone(if writer.is_multiple_of(2) { &world.store } else { &world.other });
            tokio::spawn(async move {
                let id = format!("run {writer}");
                let mut lease =
                    store.append(vec![new_run(&id, Some(owner))]).await.unwrap().remove(0).unwrap();
                for version in 1..WRITES {
                    lease = store.append(vec![more(&lease, version)]).await.unwrap().remove(0).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for writer in 0..WRITERS {
        let read = world.store.read(&RunId::new(&format!("run {writer}")), 0).await.unwrap();
        assert_eq!(texts(&read), numbered(0..WRITES), "{writer}");
    }
}

/// Of several who write to the same place of one log, one is taken and the others learn it.
pub async fn of_two_writers_at_one_place_one_is_refused(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    let tasks: Vec<_> = (0..10)
        .map(|writer: u64| {
            let store = Arc::clone(if writer.is_multiple_of(2) { &world.store } else { &world.other });
            let mut write = more(&lease, 1);
            write.events = events([writer]);
            tokio::spawn(async move { store.append(vec![write]).await.unwrap().remove(0) })
        })
        .collect();
    let mut taken = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => taken += 1,
            Err(refused) => assert!(matches!(refused, Refused::Conflict { found: 2, .. }), "{refused}"),
        }
    }
    assert_eq!(taken, 1);
    assert_eq!(world.store.read(&lease.run, 0).await.unwrap().len(), 2);
}

pub async fn a_deleted_run_is_gone_with_all_that_was_its(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    let mut write = more(&lease, 1).release();
    write.checkpoint = Some("1".to_owned());
    world.write(write).await.unwrap();
    world.send("a", "pause").await.unwrap();
    let kept = world.queue("b").await;

    assert_eq!(world.store.delete(&lease.run).await.unwrap(), Ok(true));
    assert_eq!(world.store.delete(&lease.run).await.unwrap(), Ok(false));
    assert_eq!(world.store.find(&lease.run).await.unwrap(), None);
    assert_eq!(world.store.read(&lease.run, 0).await.unwrap(), []);
    assert_eq!(world.store.definition(&lease.run).await.unwrap(), None);
    assert_eq!(world.store.checkpoint(&lease.run).await.unwrap(), None);
    assert_eq!(world.store.commands_of(&lease.run).await.unwrap(), []);
    assert_eq!(world.write(more(&lease, 2)).await, Err(Refused::NotFound { run: lease.run.clone() }));
    assert_eq!(world.found("b").await.version, 1);

    // A run of the same id is another one: what was written for the first does not reach it.
    let again = world.queue("a").await;
    assert_ne!(again.key, lease.key);
    assert_eq!(world.write(more(&lease, 1)).await, Err(Refused::NotFound { run: lease.run.clone() }));
    assert_eq!(world.store.read(&lease.run, 0).await.unwrap().len(), 1);
    assert_eq!(world.store.checkpoint(&lease.run).await.unwrap(), None);
    assert!(kept.key < again.key);
}

pub async fn a_run_that_somebody_drives_is_not_deleted(world: World) {
    let owner = world.join_other().await;
    let lease = world.start("a", owner).await;
    let refused = world.store.delete(&lease.run).await.unwrap();
    assert_eq!(refused, Err(Refused::Owned { run: lease.run.clone(), owner }));
    assert!(matches!(more(&lease, 1).guard, Guard::Held { .. }));
    world.write(more(&lease, 1)).await.unwrap();
    world.pass(crate::store_suite::world::LEASE).await;
    assert_eq!(world.store.delete(&lease.run).await.unwrap(), Ok(true));
}
