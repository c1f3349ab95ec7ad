//! Two processes that drive the runs of one database: each run is one's or the other's, and whoever comes too late
//! changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tidewheel_core::fact::RunnableId;
use tidewheel_store::{Filter, PutShared, Status, Store};

use crate::kills::look_at_all;
use crate::other::{Folder, Other, Part, run_id, store_in, with_one_input};
use crate::proof::{Lives, Seen, check, undisturbed};
use crate::work::{Effect, effects};

#[test]
fn two_processes_share_the_runs_and_do_nothing_twice() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let mut lives = Lives::default();
    let mut both = [0, 1].map(|_| Other::start(Part::Together, &folder, lives.begin()));
    for other in &mut both {
        assert_eq!(other.says().as_deref(), Some("open"));
    }
    for other in &mut both {
        other.finish();
    }
    for other in &mut both {
        assert!(other.ended_well());
    }
    look_at_all(&folder, 1, &lives);
    let mut executed: BTreeMap<(RunnableId, u32), Vec<u32>> = BTreeMap::new();
    let mut shares = [0, 0];
    for Effect { process, work, attempt, .. } in effects(&folder.effects()) {
        executed.entry((work, attempt)).or_default().push(process);
        shares[process as usize] += 1;
    }
    for ((work, attempt), processes) in executed {
        assert_eq!(processes.len(), 1, "attempt {attempt} of {work} was executed by {processes:?}");
    }
    // Who gets how many is a matter of luck.
    println!("executions of the two processes: {shares:?}");
}

/// So many runs wait at first, and so many later.
const QUEUED: (usize, usize) = (300, 60);

#[test]
fn a_process_that_was_stopped_past_its_lease_changes_nothing_and_works_again() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let mut lives = Lives::default();
    queue(&folder, &mut lives, 0, QUEUED.0);
    let mut first = Other::start(Part::Drive, &folder, lives.begin());
    assert_eq!(first.says().as_deref(), Some("open"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = store_in(&folder.0);
    while effects(&folder.effects()).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.block_on(stop_between_writes(&first, &folder));
    let done_by_first = effects(&folder.effects()).len();
    let mut second = Other::start(Part::Drive, &folder, lives.begin());
    // It takes over what the first one had, as soon as its lease is over.
    runtime.block_on(until_over(&store, QUEUED.0));
    let done_by_both = effects(&folder.effects()).len();
    first.signal(Signal::CONT);
    second.kill();
    queue(&folder, &mut lives, QUEUED.0, QUEUED.1);
    runtime.block_on(until_over(&store, QUEUED.0 + QUEUED.1));
    assert!(first.ended_well());
    println!("executions: {done_by_first} before the stop, {done_by_both} when all was over");
    assert!(done_by_first > 0 && done_by_both > done_by_first);

    let mut by_run: HashMap<String, Vec<Effect>> = HashMap::new();
    for effect in effects(&folder.effects()) {
        by_run.entry(effect.run.clone()).or_default().push(effect);
    }
    runtime.block_on(async {
        let numbers: Vec<usize> = with_one_input().take(QUEUED.0 + QUEUED.1).collect();
        let expected = undisturbed(numbers.last().unwrap() + 1).await;
        let mut seen = Seen::default();
        for number in numbers {
            let id = run_id(0, number);
            let effects = by_run.remove(&id).unwrap_or_default();
            check(&store, &id, number, &expected[number], &effects, &lives, &mut seen).await;
        }
        println!("{} attempts were lost with the process that was stopped", seen.lost);
    });
}

/// Stops a process while it does not write: one that is stopped in the middle of a write holds the database, and
/// everybody waits for it.
async fn stop_between_writes(process: &Other, folder: &Folder) {
    let options = tidewheel_store::sqlite::Options::new().patience(Duration::from_millis(100));
    let clock = Arc::new(tidewheel_store::RealClock::new());
    let store = tidewheel_store::Sqlite::open_with(folder.database(), clock, &options).unwrap();
    loop {
        process.stop();
        // One that waited for its turn when it was stopped gets it after the first write, and keeps it.
        let mut is_free = true;
        for _ in 0..3 {
            is_free &= store.put_shared(vec![turn()]).await.is_ok();
        }
        if is_free {
            return;
        }
        process.signal(Signal::CONT);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn turn() -> PutShared {
    PutShared { kind: "test".to_owned(), name: "turn".to_owned(), expected: 0, body: Some("1".to_owned()) }
}

fn queue(folder: &Folder, lives: &mut Lives, from: usize, count: usize) {
    let mut other = Other::start(Part::Queue { from, count }, folder, lives.begin());
    assert!(other.says().is_some());
    other.kill();
}

async fn until_over(store: &dyn Store, count: usize) {
    let began = Instant::now();
    loop {
        let mut over = 0;
        let mut filter = Filter { statuses: vec![Status::Completed], ..Filter::default() };
        loop {
            let page = store.list(filter.clone()).await.unwrap();
            over += page.rows.len();
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        if over >= count {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{over} of {count} are over");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
