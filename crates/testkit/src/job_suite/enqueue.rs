//! A run is there as a whole or not at all.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use tidewheel_core::job::JobStatus;
use tidewheel_store::jobs::Batch;

use super::world::{World, job, job_id, manifest, member, names, run_id};

/// All jobs of a run are there with its manifest.
pub fn a_run_is_there_as_a_whole(world: World) {
    let records = world.enqueue("r1", &["a", "b", "c"]);
    assert_eq!(world.other.manifest(&run_id("r1")).unwrap(), Some(manifest("r1")));
    assert_eq!(world.active().briefs.len(), 3);
    assert_eq!(world.other.record(&records[1].id).unwrap().unwrap().to_json(), records[1].to_json());
}

/// Without its manifest a run was never enqueued: its jobs are not there, except for who cleans up.
pub fn jobs_of_a_run_without_a_manifest_are_not_there(world: World) {
    world.put(&[member("r1", "a"), job("b")]);
    let id = job_id("wf-r1-a");
    assert_eq!(world.other.record(&id).unwrap(), None);
    assert_eq!(names(&world.other.jobs().unwrap()), ["b"]);
    assert_eq!(names(&world.active()), ["b"]);
    assert_eq!(names(&world.all()), ["b", "wf-r1-a"]);
    world.commit(Batch { manifest: Some(manifest("r1")), ..Batch::default() });
    assert_eq!(names(&world.active()), ["b", "wf-r1-a"]);
    assert_eq!(names(&world.other.jobs().unwrap()), ["b", "wf-r1-a"]);
    assert!(world.other.record(&id).unwrap().is_some());
    world.remove(Some("r1"), &[]);
    assert_eq!(names(&world.active()), ["b"]);
    assert_eq!(names(&world.other.jobs().unwrap()), ["b"]);
    assert_eq!(names(&world.all()), ["b", "wf-r1-a"]);
}

/// A run is all or nothing: where one of its jobs cannot be written, none is.
pub fn a_run_that_cannot_be_written_leaves_nothing(world: World) {
    world.put(&[job("b")]);
    let mut turn = world.store.turn().unwrap();
    let batch = Batch {
        records: vec![member("r1", "a"), member("r1", "c")],
        rewound: vec![job_id("never-was")],
        manifest: Some(manifest("r1")),
        ..Batch::default()
    };
    assert!(turn.commit(batch).is_err());
    assert_eq!(names(&turn.all().unwrap()), ["b"]);
    drop(turn);
    assert_eq!(world.other.manifest(&run_id("r1")).unwrap(), None);
    assert_eq!(names(&world.all()), ["b"]);
}

/// A run of a thousand jobs is written as quickly as the disk lets us, and is there afterwards.
pub fn a_large_run_is_there_as_a_whole(world: World) {
    let nodes: Vec<String> = (0..1_000).map(|n| format!("n{n}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut records = world.enqueue("r1", &nodes);
    assert_eq!(world.active().briefs.len(), 1_000);
    for record in &mut records {
        record.status = JobStatus::Succeeded;
    }
    world.put(&records);
    assert_eq!(world.active().briefs.len(), 0);
    assert_eq!(world.other.jobs().unwrap().briefs.len(), 1_000);
    assert!(world.all().briefs.values().all(|brief| brief.status == JobStatus::Succeeded));
}
