//! The store in SQLite keeps what every store promises; the second handle is a second opening of the file.

use std::sync::Arc;

use tidewheel_store::{Filter, Sqlite, Status, Store};
use tidewheel_testkit::VirtualClock;
use tidewheel_testkit::store_suite::World;

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let clock = VirtualClock::default();
    let open = || Arc::new(Sqlite::open(&path, Arc::new(clock.clone())).unwrap());
    let (store, other) = (open(), open());
    let process =
        Box::new(move |clock| Arc::new(Sqlite::open(&path, Arc::new(clock)).unwrap()) as Arc<dyn Store>);
    World { store, other, clock, process, keeps: Box::new(folder) }
}

tidewheel_testkit::store_suite!(super::world);

/// Few ids with the same beginning are found in another way than many; both give the same pages.
#[tokio::test]
async fn lists_by_the_beginning_of_the_id_are_right_for_few_and_for_many() {
    const RUNS: usize = 6_000;
    let place = crate::fixture::Place::new();
    let store = place.open();
    let runs = (0..RUNS).map(|run| crate::fixture::new_run(&format!("run {run:04}"), None)).collect();
    assert!(store.append(runs).await.unwrap().iter().all(Result::is_ok));
    for (prefix, count) in [("run", RUNS), ("run 1", 1_000), ("run 59", 100), ("none", 0)] {
        for statuses in [vec![], vec![Status::Running, Status::Failed]] {
            let mut seen = Vec::new();
            let id_prefix = Some(prefix.to_owned());
            let mut filter = Filter { id_prefix, statuses, limit: Some(700), ..Filter::default() };
            loop {
                let page = store.list(filter.clone()).await.unwrap();
                seen.extend(page.rows.into_iter().map(|record| record.id));
                filter.after = page.next;
                if filter.after.is_none() {
                    break;
                }
            }
            assert!(seen.iter().all(|id| id.as_str().starts_with(prefix)) && seen.is_sorted_by(|a, b| a > b));
            assert_eq!(seen.len(), count, "{prefix}");
        }
    }
}

/// A million runs of one workflow need its definition once.
#[tokio::test]
async fn what_runs_were_created_with_is_stored_once_and_goes_with_the_last_of_them() {
    let place = crate::fixture::Place::new();
    let store = place.open();
    let texts =
        || -> i64 { place.bare().query_row("SELECT count(*) FROM texts", [], |row| row.get(0)).unwrap() };
    let mut runs: Vec<_> = ["a", "b", "c"].map(|id| crate::fixture::new_run(id, None)).to_vec();
    for (number, run) in runs.iter_mut().enumerate() {
        let tidewheel_store::Guard::New(new) = &mut run.guard else { panic!("a new run") };
        (if number < 2 { "{}" } else { "[]" }).clone_into(&mut new.definition);
    }
    let ids: Vec<_> = runs.iter().map(|run| run.run.clone()).collect();
    assert!(store.append(runs).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(texts(), 2);
    for (id, left, last) in [(&ids[0], 2, Some("{}")), (&ids[2], 1, Some("{}")), (&ids[1], 0, None)] {
        assert_eq!(store.delete(id).await.unwrap(), Ok(true));
        assert_eq!(texts(), left);
        assert_eq!(store.definition(&ids[1]).await.unwrap().as_deref(), last);
    }
}
