//! Schedulers that race for one directory, and die while they hold its lock.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::random::Random;
use crate::world::{World, eventually};
use crate::{flow, is_active, size, tick};

#[test]
fn schedulers_that_race_and_die_start_every_attempt_once() {
    let mut random = Random::new("racing schedulers");
    let world = World::new();
    let (kills, chains) = (size(100), size(400));
    fs::create_dir(world.path("ran")).unwrap();
    let nodes = (0..chains).flat_map(|chain| {
        (0..3).map(move |link| {
            let script = "echo $TIDEWHEEL_ATTEMPT >>ran/$TIDEWHEEL_JOB_ID".to_owned();
            let after =
                if link == 0 { String::new() } else { format!("after = [\"c{chain}-{}\"]", link - 1) };
            (format!("c{chain}-{link}"), script, after)
        })
    });
    // A scheduler that dies between its word and the start of the process costs an attempt, no more.
    let policy = "[[policies]]\nmatch = { default = true }\nmax_retries = 1000\nbackoff = \"none\"\n";
    world.flow("chains", &(flow(nodes) + policy));
    world.enqueue(&["chains"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    tick(&world);
                }
            });
        }
        for _ in 0..kills {
            let mut victim = world.command(&["tick"]).spawn().unwrap();
            std::thread::sleep(random.while_of(Duration::from_millis(60)));
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        let mut left = world.job_dirs();
        while !left.is_empty() {
            // However long it takes, it goes on.
            let before = left.len();
            eventually("another job is over", || {
                left.retain(|id| is_active(&world.status(id)));
                left.len() < before
            });
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("killed: {kills} racing schedulers");
    tidewheel_testkit::figure::counted("kills of racing schedulers", kills);
    let ids = world.job_dirs();
    assert_eq!(ids.len(), chains * 3);
    for id in ids {
        let record = world.record(&id);
        assert_eq!(record["status"], "succeeded", "{record}");
        let ran = fs::read_to_string(world.path("ran").join(&id)).unwrap();
        let attempts: BTreeSet<&str> = ran.lines().collect();
        assert_eq!(attempts.len(), ran.lines().count(), "{id} ran one attempt twice: {ran:?}");
        let last = record["metadata"]["workflow_node_attempt"].to_string();
        assert!(attempts.contains(last.as_str()), "{id}: {ran:?} without {last}");
    }
}
