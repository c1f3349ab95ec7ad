//! Dead letters: work that was put aside is kept until somebody takes it away.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use tidewheel_core::fact::RunId;
use tidewheel_store::{DeadLetter, DeadLetterId, NewDeadLetter};

use crate::store_suite::World;

fn letter(run: &str, node: &str) -> NewDeadLetter {
    NewDeadLetter { run: RunId::new(run), node: node.to_owned(), body: r#"{"input":1}"#.to_owned() }
}

async fn all(world: &World, run: Option<&RunId>) -> Vec<DeadLetter> {
    let mut letters = Vec::new();
    let mut after = None;
    loop {
        let page = world.store.dead_letters(run, after).await.unwrap();
        letters.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return letters;
        }
    }
}

pub async fn what_was_put_aside_is_listed_oldest_first(world: World) {
    world.queue("a").await;
    world.queue("b").await;
    assert_eq!(all(&world, None).await, []);
    for (run, node) in [("a", "1"), ("b", "2"), ("a", "3")] {
        world.other.bury(letter(run, node)).await.unwrap();
    }
    let nodes =
        |letters: &[DeadLetter]| -> Vec<String> { letters.iter().map(|one| one.node.clone()).collect() };
    let found = all(&world, None).await;
    assert_eq!(nodes(&found), ["1", "2", "3"]);
    assert_eq!((found[1].run.as_str(), found[1].at), ("b", world.now()));
    assert_eq!(found[1].body, r#"{"input":1}"#);
    assert_eq!(nodes(&all(&world, Some(&RunId::new("a"))).await), ["1", "3"]);
    assert_eq!(all(&world, Some(&RunId::new("c"))).await, []);
    assert!(world.store.dead_letters(None, Some("x".to_owned())).await.is_err());
}

pub async fn what_was_taken_away_is_gone(world: World) {
    world.queue("a").await;
    let first = world.store.bury(letter("a", "1")).await.unwrap();
    let second = world.store.bury(letter("a", "2")).await.unwrap();
    assert!(world.store.unbury(first).await.unwrap());
    assert!(!world.store.unbury(first).await.unwrap());
    assert!(!world.store.unbury(DeadLetterId(4711)).await.unwrap());
    let left: Vec<DeadLetterId> = all(&world, None).await.into_iter().map(|one| one.id).collect();
    assert_eq!(left, [second]);
    let third = world.store.bury(letter("a", "3")).await.unwrap();
    assert!(third > second && second > first);
}

pub async fn many_come_in_pages(world: World) {
    world.queue("a").await;
    for node in 0..250 {
        let run = if node % 2 == 0 { "a" } else { "b" };
        world.store.bury(letter(run, &node.to_string())).await.unwrap();
    }
    let page = world.store.dead_letters(None, None).await.unwrap();
    assert!(page.rows.len() < 250 && page.next.is_some());
    let nodes: Vec<String> = all(&world, None).await.into_iter().map(|one| one.node).collect();
    assert_eq!(nodes, (0..250).map(|node| node.to_string()).collect::<Vec<_>>());
    assert_eq!(all(&world, Some(&RunId::new("b"))).await.len(), 125);
}

pub async fn a_deleted_run_takes_its_dead_letters_along(world: World) {
    world.queue("a").await;
    world.queue("b").await;
    world.store.bury(letter("a", "1")).await.unwrap();
    world.store.bury(letter("b", "2")).await.unwrap();
    assert!(world.store.delete(&RunId::new("a")).await.unwrap().unwrap());
    let left: Vec<String> = all(&world, None).await.into_iter().map(|one| one.node).collect();
    assert_eq!(left, ["2"]);
}
