//! Gated jobs that come in while others tick.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::random::Random;
use crate::world::World;
use crate::{flow, size, tick};

#[test]
fn no_gated_job_starts_before_its_approval() {
    let mut random = Random::new("approvals");
    let world = World::new();
    fs::create_dir(world.path("ran")).unwrap();
    let roots = 5;
    let node = |index: usize| (format!("n{index}"), "mkdir ran/$TIDEWHEEL_JOB_ID".to_owned(), String::new());
    world.flow("gated", &flow((0..roots).map(node)));
    let ran = || -> BTreeSet<String> {
        let names = fs::read_dir(world.path("ran")).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    };
    let left = AtomicUsize::new(size(500) / roots);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    world.enqueue(&["gated", "--require-approval"]);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while left.load(Ordering::Relaxed) > 0 {
                    tick(&world);
                    assert_eq!(ran(), BTreeSet::new());
                }
            });
        }
    });
    tick(&world);
    let all = world.job_dirs();
    assert_eq!(all.len(), size(500) / roots * roots);
    assert!(all.iter().all(|id| world.status(id) == "waiting_on_approval"));
    assert_eq!(ran(), BTreeSet::new());

    let approved: BTreeSet<String> = (0..size(100)).map(|_| random.one_of(&all).clone()).collect();
    for id in &approved {
        let said = world.run(&["jobs", "approve", id]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    for id in &approved {
        world.wait(id);
    }
    tick(&world);
    assert_eq!(ran(), approved);
}
