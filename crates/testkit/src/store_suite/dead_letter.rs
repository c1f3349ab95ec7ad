//! Dead letters: work that was put aside with its log is kept until that goes on with it or somebody takes it away.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_store::{DeadLetter, DeadLetterId, Lease, Letter, NewDeadLetter, Refused};

use crate::store_suite::World;
use crate::store_suite::world::{Vary as _, more, new_run};

fn bury(work: &str) -> Letter {
    bury_with(work, r#"{"input":1}"#)
}

fn bury_with(work: &str, body: &str) -> Letter {
    Letter::Bury(NewDeadLetter {
        work: work.to_owned(),
        node: format!("node of {work}"),
        body: body.to_owned(),
    })
}

fn raise(work: &str) -> Letter {
    Letter::Raise { work: work.to_owned() }
}

/// Writes letters to a log of one event, with no event more.
async fn write(world: &World, lease: &Lease, letters: Vec<Letter>) {
    let mut write = more(lease, 1).events([]);
    write.letters = letters;
    world.write(write).await.unwrap();
}

async fn all(world: &World, run: Option<&str>) -> Vec<DeadLetter> {
    let run = run.map(RunId::new);
    let mut letters = Vec::new();
    let mut after = None;
    loop {
        let page = world.other.dead_letters(run.as_ref(), after).await.unwrap();
        letters.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return letters;
        }
    }
}

async fn works(world: &World, run: Option<&str>) -> Vec<String> {
    all(world, run).await.into_iter().map(|letter| letter.work).collect()
}

pub async fn what_was_put_aside_is_listed_oldest_first(world: World) {
    assert_eq!(all(&world, None).await, []);
    let mut begin = new_run("a", None);
    begin.letters = vec![bury("1")];
    let a = world.write(begin).await.unwrap();
    let b = world.queue("b").await;
    world.clock.advance(Span::from_secs(1));
    write(&world, &b, vec![bury("2")]).await;
    world.write(more(&b, 1)).await.unwrap();
    write(&world, &a, vec![bury("3"), bury("4")]).await;

    let found = all(&world, None).await;
    assert_eq!(works(&world, None).await, ["1", "2", "3", "4"]);
    assert!(found.is_sorted_by(|one, next| one.id < next.id && one.at <= next.at));
    assert_eq!((found[1].run.as_str(), found[1].at), ("b", world.now()));
    assert_eq!((found[1].node.as_str(), found[1].body.as_str()), ("node of 2", r#"{"input":1}"#));
    assert_eq!(works(&world, Some("a")).await, ["1", "3", "4"]);
    assert_eq!(all(&world, Some("c")).await, []);
    assert!(world.store.dead_letters(None, Some("x".to_owned())).await.is_err());
}

pub async fn a_write_that_is_refused_puts_nothing_aside(world: World) {
    let lease = world.queue("a").await;
    write(&world, &lease, vec![bury("kept")]).await;
    let with = |mut append: tidewheel_store::Append| {
        append.letters = vec![bury("1"), bury_with("kept", "2"), raise("kept")];
        append
    };
    let refused = vec![
        with(more(&lease, 1).fence(7)),
        with(more(&lease, 7)),
        with(new_run("a", None)),
        more(&lease, 1),
    ];
    let answers = world.store.append(refused).await.unwrap();
    assert_eq!(answers[0], Err(Refused::Fenced { run: lease.run.clone() }));
    assert_eq!(answers[1], Err(Refused::Conflict { run: lease.run.clone(), expected: 7, found: 1 }));
    assert_eq!(answers[2], Err(Refused::Exists { run: lease.run.clone() }));
    assert!(answers[3].is_ok());
    let found = all(&world, None).await;
    assert_eq!((found.len(), found[0].work.as_str()), (1, "kept"));
    assert_eq!(found[0].body, r#"{"input":1}"#);
}

pub async fn work_is_put_aside_once_and_the_last_time_counts(world: World) {
    let a = world.queue("a").await;
    let b = world.queue("b").await;
    write(&world, &a, vec![bury_with("1", "first"), bury("2")]).await;
    write(&world, &b, vec![bury_with("1", "of b")]).await;
    let seen = all(&world, Some("a")).await[0].clone();
    world.clock.advance(Span::from_secs(1));
    write(&world, &a, vec![bury_with("1", "second"), bury_with("1", "third")]).await;

    assert_eq!(works(&world, None).await, ["2", "1", "1"]);
    let found = all(&world, Some("a")).await;
    assert_eq!((found[1].work.as_str(), found[1].body.as_str()), ("1", "third"));
    assert_eq!(found[1].at, world.now());
    assert_eq!(all(&world, Some("b")).await[0].body, "of b");
    // Whoever saw the one before does not take the one away that replaced it.
    assert!(!world.store.unbury(seen.id).await.unwrap());
    assert_eq!(works(&world, Some("a")).await, ["2", "1"]);
}

pub async fn work_that_goes_on_is_put_aside_no_more(world: World) {
    let a = world.queue("a").await;
    let b = world.queue("b").await;
    write(&world, &a, vec![bury("1"), bury("2")]).await;
    write(&world, &b, vec![bury("1")]).await;
    write(&world, &a, vec![raise("1"), raise("unknown")]).await;
    assert_eq!(works(&world, Some("a")).await, ["2"]);
    assert_eq!(works(&world, Some("b")).await, ["1"]);
    // The order is that of the list.
    write(&world, &a, vec![raise("1"), bury("1"), bury("3"), raise("3")]).await;
    assert_eq!(works(&world, Some("a")).await, ["2", "1"]);
}

pub async fn what_was_taken_away_is_gone(world: World) {
    let lease = world.queue("a").await;
    write(&world, &lease, vec![bury("1"), bury("2")]).await;
    let [first, second] = &all(&world, None).await[..] else { panic!("two were put aside") };
    assert!(world.store.unbury(first.id).await.unwrap());
    assert!(!world.store.unbury(first.id).await.unwrap());
    assert!(!world.store.unbury(DeadLetterId(4711)).await.unwrap());
    assert_eq!(works(&world, None).await, ["2"]);
    write(&world, &lease, vec![bury("1")]).await;
    assert_eq!(works(&world, None).await, ["2", "1"]);
    assert!(world.store.unbury(second.id).await.unwrap());
    // Numbers are not given again, or somebody would take away what came later.
    write(&world, &lease, vec![bury("3")]).await;
    let third = all(&world, None).await.remove(1).id;
    assert!(world.store.unbury(third).await.unwrap());
    write(&world, &lease, vec![bury("4")]).await;
    assert!(all(&world, None).await.remove(1).id > third && third > second.id);
}

pub async fn many_come_in_pages(world: World) {
    let a = world.queue("a").await;
    let b = world.queue("b").await;
    for work in 0..250 {
        let lease = if work % 2 == 0 { &a } else { &b };
        write(&world, lease, vec![bury(&work.to_string())]).await;
    }
    let page = world.store.dead_letters(None, None).await.unwrap();
    assert!(page.rows.len() < 250 && page.next.is_some());
    assert_eq!(works(&world, None).await, (0..250).map(|work| work.to_string()).collect::<Vec<_>>());
    assert_eq!(all(&world, Some("b")).await.len(), 125);
}

pub async fn a_deleted_run_takes_its_dead_letters_along(world: World) {
    let a = world.queue("a").await;
    let b = world.queue("b").await;
    write(&world, &a, vec![bury("1"), bury("2")]).await;
    write(&world, &b, vec![bury("3")]).await;
    assert!(world.store.delete(&a.run).await.unwrap().unwrap());
    assert_eq!(works(&world, None).await, ["3"]);
    // A run of the same id is another one.
    let again = world.queue("a").await;
    assert_eq!(works(&world, Some("a")).await, Vec::<String>::new());
    write(&world, &again, vec![raise("2"), bury("1")]).await;
    assert_eq!(works(&world, None).await, ["3", "1"]);
}
