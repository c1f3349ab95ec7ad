//! What a pass of the scheduler sees is what active jobs need, however long the history is.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use tidewheel_core::job::{After, AfterPolicy, Artifact, JobStatus, Needed, Record};

use super::world::{World, custom, job, job_id, member, names};

/// More than are looked at in one turn.
const MANY: usize = 300;

/// Jobs that are over and that nobody needs are not seen by a pass.
pub fn what_is_over_and_needed_by_nobody_is_not_active(world: World) {
    world.put(&over(MANY));
    assert_eq!(names(&world.active()), [""; 0]);
    world.put(&[job("z")]);
    assert_eq!(names(&world.active()), ["z"]);
    assert_eq!(world.other.jobs().unwrap().briefs.len(), MANY + 1);
    assert_eq!(world.all().briefs.len(), MANY + 1);
}

/// Whoever looked ahead sees what others wrote since.
pub fn what_was_read_ahead_is_brought_up_to_date(world: World) {
    world.put(&over(MANY));
    world.put(&[job("a"), job("b")]);
    world.other.look_ahead();
    let mut ended = job("a");
    ended.status = JobStatus::Succeeded;
    let mut next = job("c");
    next.schedule.after = vec![After { job_id: job_id("old-007"), policy: AfterPolicy::Success }];
    world.put(&[ended.clone(), next]);
    assert_eq!(names(&world.active()), ["b", "c", "old-007"]);
    world.other.look_ahead();
    for round in 0..MANY {
        ended.status = if round % 2 == 0 { JobStatus::Queued } else { JobStatus::Succeeded };
        world.put(&[ended.clone()]);
    }
    assert_eq!(names(&world.active()), ["b", "c", "old-007"]);
}

/// What a job is after comes along from history, and goes when the job is over.
pub fn what_a_job_is_after_comes_along(world: World) {
    world.put(&over(MANY));
    let mut record = job("z");
    record.schedule.after = vec![
        After { job_id: job_id("old-007"), policy: AfterPolicy::Success },
        After { job_id: job_id("ghost"), policy: AfterPolicy::Success },
    ];
    world.put(&[record.clone()]);
    assert_eq!(names(&world.active()), ["old-007", "z"]);
    // One that comes later is seen, too.
    let mut ghost = job("ghost");
    ghost.status = JobStatus::Failed;
    world.put(&[ghost]);
    assert_eq!(names(&world.active()), ["ghost", "old-007", "z"]);
    record.status = JobStatus::Succeeded;
    world.put(&[record]);
    assert_eq!(names(&world.active()), [""; 0]);
}

/// Producers of what a job needs come along from history.
pub fn producers_come_along(world: World) {
    let mut records = over(MANY);
    let doc = Artifact::PlanDoc { slug: "s".to_owned(), branch: String::new() };
    records[5].schedule.artifacts = vec![custom("t", "k")];
    records[6].schedule.artifacts = vec![doc];
    records[7].schedule.artifacts = vec![custom("t", "other")];
    world.put(&records);
    let mut record = job("z");
    let needed = |artifact| Needed { artifact };
    let doc = Artifact::PlanDoc { slug: "s".to_owned(), branch: "draft/s".to_owned() };
    let patch = Artifact::CommandPatch { job_id: "old-009".to_owned() };
    record.schedule.dependencies = vec![needed(custom("t", "k")), needed(doc), needed(patch)];
    world.put(&[record]);
    assert_eq!(names(&world.active()), ["old-005", "old-006", "old-009", "z"]);
}

/// If a node of the run makes a custom artifact, nobody else's counts, and none comes along.
pub fn producers_of_other_runs_do_not_come_along_where_the_own_run_has_one(world: World) {
    let mut records = over(MANY);
    records.iter_mut().for_each(|record| record.schedule.artifacts = vec![custom("t", "k")]);
    world.put(&records);
    let (mut a, mut b) = (member("r1", "a"), member("r1", "b"));
    a.schedule.artifacts = vec![custom("t", "k")];
    b.schedule.dependencies = vec![Needed { artifact: custom("t", "k") }];
    let manifest = Some(super::manifest("r1"));
    world.commit(tidewheel_store::jobs::Batch { records: vec![a, b], manifest, ..Default::default() });
    assert_eq!(names(&world.active()), ["wf-r1-a", "wf-r1-b"]);
}

/// The jobs of a run are seen as long as one of them is active, and again when one is rewound.
pub fn the_jobs_of_a_run_stay_together(world: World) {
    world.put(&over(MANY));
    let mut records = world.enqueue("r1", &["a", "b", "c"]);
    records.iter_mut().for_each(|record| record.status = JobStatus::Succeeded);
    world.put(&records[..2]);
    assert_eq!(names(&world.active()), ["wf-r1-a", "wf-r1-b", "wf-r1-c"]);
    world.put(&records[2..]);
    assert_eq!(names(&world.active()), [""; 0]);
    records[1].status = JobStatus::Queued;
    world.put(&records[1..2]);
    assert_eq!(names(&world.active()), ["wf-r1-a", "wf-r1-b", "wf-r1-c"]);
    assert_eq!(world.other.jobs().unwrap().briefs.len(), MANY + 3);
    assert_eq!(world.all().briefs.len(), MANY + 3);
}

/// Jobs of a long history can be removed, all but some.
pub fn history_can_be_removed(world: World) {
    let records = over(MANY);
    world.put(&records);
    let removed: Vec<_> = records[10..].iter().map(|record| record.id.clone()).collect();
    world.remove(None, &removed);
    assert_eq!(world.other.jobs().unwrap().briefs.len(), 10);
    assert_eq!(world.all().briefs.len(), 10);
    assert_eq!(names(&world.active()), [""; 0]);
}

fn over(count: usize) -> Vec<Record> {
    let one = |n: usize| {
        let mut record = job(&format!("old-{n:03}"));
        record.status = JobStatus::Succeeded;
        record
    };
    (0..count).map(one).collect()
}
