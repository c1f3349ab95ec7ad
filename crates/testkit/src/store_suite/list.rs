//! Lists: newest first, by what people ask for, in pages that do not shift while runs are added.
#![expect(missing_docs, clippy::unwrap_used, reason = "each case is a test: its name says what it shows")]

use tidewheel_core::fact::RunId;
use tidewheel_store::{Filter, Page, RunRecord, Status};

use crate::store_suite::World;
use crate::store_suite::world::{Vary as _, new_run};

fn ids(page: &Page<RunRecord>) -> Vec<&str> {
    page.rows.iter().map(|record| record.id.as_str()).collect()
}

pub async fn the_newest_come_first(world: World) {
    let empty = world.store.list(Filter::default()).await.unwrap();
    assert_eq!((ids(&empty), &empty.next), (vec![], &None));
    for id in ["b", "c", "a"] {
        world.queue(id).await;
    }
    let page = world.other.list(Filter::default()).await.unwrap();
    assert_eq!((ids(&page), page.next.as_deref()), (vec!["a", "c", "b"], None));
    assert_eq!(page.rows[2], world.found("b").await);
}

pub async fn pages_do_not_shift_while_runs_are_added(world: World) {
    for run in 0..5 {
        world.queue(&format!("run {run}")).await;
    }
    let mut filter = Filter { limit: Some(2), ..Filter::default() };
    let mut seen = Vec::new();
    for _ in 0..3 {
        let page = world.store.list(filter.clone()).await.unwrap();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        filter.after = page.next;
        world.queue(&format!("new {}", seen.len())).await;
    }
    assert_eq!(seen, ["run 4", "run 3", "run 2", "run 1", "run 0"]);
    assert_eq!(filter.after, None);

    // A page that ends with the last row says that it is the last.
    let all = world.store.list(Filter { limit: Some(8), ..Filter::default() }).await.unwrap();
    assert_eq!((all.rows.len(), all.next), (8, None));
    assert!(world.store.delete(&RunId::new("run 3")).await.unwrap().unwrap());
    let page = world.store.list(Filter { limit: Some(5), ..Filter::default() }).await.unwrap();
    let rest = world.store.list(Filter { after: page.next, ..Filter::default() }).await.unwrap();
    assert_eq!(ids(&rest), ["run 1", "run 0"]);
}

pub async fn a_place_that_no_page_gave_is_an_error(world: World) {
    world.queue("a").await;
    for after in ["", "x", "1 OR 1=1"] {
        let filter = Filter { after: Some(after.to_owned()), ..Filter::default() };
        assert!(world.store.list(filter).await.is_err(), "{after:?}");
    }
}

pub async fn a_list_keeps_to_its_filter(world: World) {
    for (id, workflow, status) in [
        ("a1", "a", Status::Running),
        ("b1", "b", Status::Waiting),
        ("a2", "a", Status::Failed),
        ("b2", "b", Status::Running),
        ("a3", "a", Status::Completed),
    ] {
        world.write(new_run(id, None).workflow(workflow, 1).status(status)).await.unwrap();
    }
    let list = |filter: Filter| async { world.store.list(filter).await.unwrap() };
    let of = |name: &str| Some(name.to_owned());
    let running = Filter { statuses: vec![Status::Running], ..Filter::default() };
    assert_eq!(ids(&list(running).await), ["b2", "a1"]);
    let two = Filter { statuses: vec![Status::Running, Status::Failed], ..Filter::default() };
    assert_eq!(ids(&list(two.clone()).await), ["b2", "a2", "a1"]);
    assert_eq!(ids(&list(Filter { workflow: of("a"), ..two.clone() }).await), ["a2", "a1"]);
    assert_eq!(ids(&list(Filter { workflow: of("b"), ..Filter::default() }).await), ["b2", "b1"]);
    assert_eq!(ids(&list(Filter { workflow: of("c"), ..Filter::default() }).await), [""; 0]);
    assert_eq!(ids(&list(Filter { id_prefix: of("a"), ..two.clone() }).await), ["a2", "a1"]);

    let first = list(Filter { limit: Some(2), ..two.clone() }).await;
    assert_eq!(ids(&first), ["b2", "a2"]);
    let second = list(Filter { after: first.next, ..two }).await;
    assert_eq!((ids(&second), &second.next), (vec!["a1"], &None));
}

pub async fn a_prefix_is_taken_literally(world: World) {
    let all = ["ab", "a%", "a%b", "a_", "a_b", "äb", "ä", "a\u{10FFFF}", "a\u{10FFFF}x", "B", "a'*?[x]", ""];
    for id in all {
        world.write(new_run(id, None)).await.unwrap();
    }
    for prefix in ["", "a", "a%", "a_", "ä", "a\u{10FFFF}", "\u{10FFFF}", "b", "A", "a'*", "a\u{D7FF}", "z"]
    {
        let filter = Filter { id_prefix: Some(prefix.to_owned()), ..Filter::default() };
        let page = world.store.list(filter).await.unwrap();
        let expected: Vec<&str> = all.into_iter().rev().filter(|id| id.starts_with(prefix)).collect();
        assert_eq!(ids(&page), expected, "{prefix:?}");
    }
}

pub async fn a_page_has_a_bound_of_its_own(world: World) {
    const RUNS: usize = 1_500;
    let appends = (0..RUNS).map(|run| new_run(&format!("run {run}"), None)).collect();
    assert!(world.store.append(appends).await.unwrap().iter().all(Result::is_ok));
    let mut filter = Filter { limit: Some(u32::MAX), ..Filter::default() };
    let mut seen = 0;
    loop {
        let page = world.store.list(filter.clone()).await.unwrap();
        assert!(page.rows.len() <= 1_000, "{} rows", page.rows.len());
        seen += page.rows.len();
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!(seen, RUNS);
    let none = world.store.list(Filter { limit: Some(0), ..Filter::default() }).await.unwrap();
    assert_eq!((none.rows.len(), none.next), (0, None));
}
