//! A great many jobs that end at once, while others look and tick.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::world::World;
use crate::{flow, is_full, size, tick};

#[test]
fn a_thousand_jobs_that_end_at_once_all_succeed() {
    for round in 0..if is_full() { 10 } else { 1 } {
        let world = World::new();
        let count = size(1_000);
        let node = |index: usize| {
            let lock = format!("locks = [{{ key = \"k{index}\", mode = \"exclusive\" }}]");
            (format!("n{index}"), "true".to_owned(), lock)
        };
        world.flow("wide", &flow((0..count).map(node)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    tick(&world);
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for arguments in
                        [&["jobs", "list", "--all"][..], &["jobs", "schedule", "--format", "json"]]
                    {
                        let ran = world.run(arguments);
                        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}");
                    }
                }
            });
            let ran = world.run(&["run", "wide", "--follow", "--format", "json"]);
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(ran.code, Some(0), "round {round}: {ran:?}");
            assert_eq!(ran.json()["succeeded"].as_array().unwrap().len(), count);
        });
        let ids = world.job_dirs();
        assert_eq!(ids.len(), count);
        for id in ids {
            let record = world.record(&id);
            assert_eq!(
                (&record["status"], &record["exit_code"]),
                (&json!("succeeded"), &json!(0)),
                "{record}"
            );
            let events = fs::read_to_string(world.in_jobs(&id).join("events.jsonl")).unwrap();
            assert_eq!(events.matches("dispatched").count(), 1, "{events}");
            assert!(!events.contains("attempt_failed") && !events.contains("failed"), "{events}");
        }
    }
}
