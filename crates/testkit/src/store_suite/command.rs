//! Commands: what is asked of a run is found by whoever drives it, in order, until it is handled.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_store::{Command, Refused, Status};
use tokio::time::timeout;

use crate::store_suite::World;
use crate::store_suite::world::{LEASE, Vary as _, more, new_run};

const LONG: Duration = Duration::from_secs(10);

fn kinds(commands: &[Command]) -> Vec<&str> {
    commands.iter().map(|command| command.kind.as_str()).collect()
}

pub async fn nothing_is_asked_of_an_unknown_run(world: World) {
    let refused = world.send("nobody", "pause").await;
    assert_eq!(refused, Err(Refused::NotFound { run: RunId::new("nobody") }));
}

pub async fn commands_come_in_order_to_whoever_drives_the_run(world: World) {
    let owner = world.join().await;
    let other = world.join_other().await;
    world.start("a", owner).await;
    world.start("b", owner).await;
    world.start("c", other).await;
    world.queue("d").await;
    for (run, kind) in [("b", "1"), ("c", "2"), ("a", "3"), ("b", "4"), ("d", "5")] {
        world.send(run, kind).await.unwrap();
    }
    let commands = world.store.commands(owner).await.unwrap();
    assert_eq!(kinds(&commands), ["1", "3", "4"]);
    assert!(commands.is_sorted_by_key(|command| command.id));
    assert_eq!((commands[0].run.as_str(), commands[0].at), ("b", world.now()));
    assert_eq!(commands[0].body, r#"{"why":"asked"}"#);
    assert_eq!(kinds(&world.other.commands(other).await.unwrap()), ["2"]);
    assert_eq!(kinds(&world.store.commands_of(&RunId::new("b")).await.unwrap()), ["1", "4"]);
    assert_eq!(kinds(&world.store.commands_of(&RunId::new("d")).await.unwrap()), ["5"]);

    world.claim_run(owner, "d").await.unwrap();
    assert_eq!(kinds(&world.store.commands(owner).await.unwrap()), ["1", "3", "4", "5"]);
}

pub async fn a_run_of_which_something_is_asked_is_due(world: World) {
    let owner = world.join().await;
    let long_ago = tidewheel_core::time::Timestamp::from_millis(1);
    world.write(new_run("never", None).status(Status::Completed)).await.unwrap();
    world.write(new_run("later", None).due(world.after(60))).await.unwrap();
    world.write(new_run("before", None).due(long_ago)).await.unwrap();
    for run in ["never", "later", "before"] {
        world.send(run, "resume").await.unwrap();
    }
    assert_eq!(world.found("never").await.wake_at, Some(world.now()));
    assert_eq!(world.found("later").await.wake_at, Some(world.now()));
    assert_eq!(world.found("before").await.wake_at, Some(long_ago));
    assert_eq!(world.found("never").await.status, Status::Completed);
    assert_eq!(world.claim_due(owner, 9).await.runs.len(), 3);
}

pub async fn the_owner_is_told_at_once(world: World) {
    let owner = world.join_other().await;
    world.start("a", owner).await;
    let other = std::sync::Arc::clone(&world.other);
    let waiting = tokio::spawn(async move { other.alerted(owner).await });
    tokio::task::yield_now().await;
    world.send("a", "cancel").await.unwrap();
    timeout(LONG, waiting).await.unwrap().unwrap();
    assert_eq!(kinds(&world.other.commands(owner).await.unwrap()), ["cancel"]);
}

pub async fn what_is_asked_of_a_run_of_nobody_wakes_everybody(world: World) {
    world.write(new_run("a", None)).await.unwrap();
    let here = world.join().await;
    let there = world.join_other().await;
    world.send("a", "resume").await.unwrap();
    timeout(LONG, world.store.alerted(here)).await.unwrap();
    timeout(LONG, world.other.alerted(there)).await.unwrap();
}

pub async fn handled_commands_vanish_with_the_write(world: World) {
    let owner = world.join().await;
    let lease = world.start("a", owner).await;
    world.start("b", owner).await;
    let first = world.send("a", "first").await.unwrap();
    world.send("a", "second").await.unwrap();
    let foreign = world.send("b", "foreign").await.unwrap();

    let mut late = more(&lease, 1).fence(9);
    late.handled = vec![first];
    assert!(world.write(late).await.is_err());
    assert_eq!(kinds(&world.store.commands_of(&lease.run).await.unwrap()), ["first", "second"]);

    let mut write = more(&lease, 1);
    write.handled = vec![first, foreign];
    world.write(write).await.unwrap();
    assert_eq!(kinds(&world.store.commands_of(&lease.run).await.unwrap()), ["second"]);
    // A write handles what was asked of its own run, and of no other.
    assert_eq!(kinds(&world.store.commands_of(&RunId::new("b")).await.unwrap()), ["foreign"]);
}

/// A run that nobody drives is due as long as something is asked of it, whatever its last owner thought.
pub async fn what_is_not_handled_is_not_forgotten(world: World) {
    let owner = world.join().await;
    let lease = world.start("released with a write", owner).await;
    world.send("released with a write", "pause").await.unwrap();
    world.write(more(&lease, 1).release()).await.unwrap();

    let lease = world.start("released", owner).await;
    world.send("released", "pause").await.unwrap();
    world.write(more(&lease, 1).due(world.after(90))).await.unwrap();
    world.store.release(vec![lease]).await.unwrap();

    let lease = world.start("left", owner).await;
    world.send("left", "pause").await.unwrap();
    world.write(more(&lease, 1)).await.unwrap();
    world.store.leave(owner).await.unwrap();

    let lease = world.write(new_run("of nobody", None)).await.unwrap();
    world.send("of nobody", "pause").await.unwrap();
    world.write(more(&lease, 1)).await.unwrap();

    let late = world.join().await;
    let lease = world.start("lost", late).await;
    world.send("lost", "pause").await.unwrap();
    world.write(more(&lease, 1)).await.unwrap();
    world.pass(LEASE).await;

    let other = world.join_other().await;
    let mut claimed: Vec<String> =
        world.claim_due(other, 9).await.runs.into_iter().map(|(lease, ..)| lease.run.to_string()).collect();
    claimed.sort();
    assert_eq!(claimed, ["left", "lost", "of nobody", "released", "released with a write"]);
    assert_eq!(world.other.commands(other).await.unwrap().len(), 5);
}
