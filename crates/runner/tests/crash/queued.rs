//! Runs that wait in the store cost no memory in the process.

use std::time::Instant;

use tidewheel_store::{Filter, Store as _};

use crate::other::{Folder, Other, Part, store_in};
use crate::proof::Lives;

#[expect(clippy::print_stdout, reason = "the figures are what the long test is for")]
fn queue(count: usize) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let began = Instant::now();
    let mut other = Other::start(Part::Queue { from: 0, count }, &folder, Lives::default().begin());
    let bytes: usize = other.says().unwrap().parse().unwrap();
    println!("{count} runs queued in {:.1?}, {bytes} bytes of memory for each", began.elapsed());
    // What the process needs whatever it does is counted, too.
    assert!(bytes < 2_048, "{bytes} bytes");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listed = runtime.block_on(async {
        let store = store_in(&folder.0);
        let (mut listed, mut filter) = (0, Filter { limit: Some(1_000), ..Filter::default() });
        let began = Instant::now();
        loop {
            let page = store.list(filter.clone()).await.unwrap();
            listed += page.rows.len();
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        println!("{listed} runs listed in {:.1?}", began.elapsed());
        listed
    });
    assert_eq!(listed, count + 1);
    other.kill();
}

#[test]
fn twenty_thousand_runs_wait_in_the_store_and_not_in_memory() {
    queue(20_000);
}

/// `cargo test --release -p tidewheel-runner --test crash -- --ignored --nocapture a_million`
#[test]
#[ignore = "it takes minutes"]
fn a_million_runs_wait_in_the_store_and_not_in_memory() {
    queue(1_000_000);
}
