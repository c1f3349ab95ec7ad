//! How long one pass over jobs takes.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tidewheel_core::job::{
    After, AfterPolicy, Answer, Artifact, Brief, Facts, JobId, JobStatus, Lock, LockMode, Needed, NodeId,
    Question, Record, RunId, Shared, World, rewind, settle,
};
use tidewheel_core::time::Timestamp;
use tidewheel_testkit::figure;

type Jobs = BTreeMap<JobId, Brief>;

/// Each job may take this many nanoseconds, however they hang together.
const GOAL_NS: f64 = 1_000.0;

/// For comparison in the same run: one walk over the same map, which looks up the job before and decides nothing.
fn pass(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settle");
    for count in [100, 1_000, 10_000] {
        group.throughput(Throughput::Elements(u64::try_from(count).unwrap()));
        for (name, mut jobs) in [
            ("nothing_changes_in_a_chain", chain(count, JobStatus::Running)),
            ("nothing_changes_at_a_lock", locked(count)),
            ("nothing_changes_with_artifacts", artifacts(count)),
        ] {
            settled(&mut jobs);
            let facts = facts(count);
            figure::goal(&format!("settle/{name}/{count}"), GOAL_NS);
            group.bench_with_input(BenchmarkId::new(name, count), &count, |bencher, _| {
                bencher.iter(|| with(black_box(&mut jobs), &facts));
            });
        }
        for name in ["a_chain_is_blocked", "rewind_a_chain"] {
            figure::goal(&format!("settle/{name}/{count}"), GOAL_NS);
        }
        let blocked = chain(count, JobStatus::Failed);
        group.bench_with_input(BenchmarkId::new("a_chain_is_blocked", count), &count, |bencher, _| {
            let fresh = || blocked.clone();
            bencher.iter_batched_ref(fresh, settled, BatchSize::LargeInput);
        });
        let jobs = chain(count, JobStatus::Failed);
        group.bench_with_input(BenchmarkId::new("rewind_a_chain", count), &count, |bencher, _| {
            bencher.iter(|| rewind(black_box(&jobs), &id(0)).unwrap().set.len());
        });
        let by_hand = BenchmarkId::new("comparison_walk_by_hand", count);
        group.bench_with_input(by_hand, &count, |bencher, _| {
            bencher.iter(|| walk(black_box(&jobs)));
        });
    }
    group.finish();
}

/// Counts the jobs whose jobs before are over.
fn walk(jobs: &Jobs) -> usize {
    let is_over =
        |after: &After| jobs.get(&after.job_id).is_some_and(|job| job.status == JobStatus::Succeeded);
    jobs.values().filter(|job| job.schedule.after.iter().all(is_over)).count()
}

fn settled(jobs: &mut Jobs) {
    let facts = facts(jobs.len());
    with(jobs, &facts);
}

fn with(jobs: &mut Jobs, facts: &Facts) {
    let settled = settle(&mut World {
        jobs,
        unreadable: &BTreeMap::new(),
        facts,
        shared: &mut Shared::default(),
        capacity: 0,
        now: Timestamp::from_millis(1_000),
    });
    assert!(settled.questions.is_empty() && settled.starts.is_empty());
}

fn id(index: usize) -> JobId {
    let run = RunId::of_bits(u128::from(u64::try_from(index / 100).unwrap()));
    JobId::of_node(&run, &NodeId::new(&format!("node_{index:06}")).unwrap()).unwrap()
}

fn job(index: usize) -> Brief {
    let at = Timestamp::from_millis(u64::try_from(index).unwrap());
    let mut record = Record::new(id(index), at);
    record.child_args = vec!["true".into()];
    Brief::from(&record)
}

fn jobs(count: usize, change: impl Fn(usize, &mut Brief)) -> Jobs {
    let one = |index| {
        let mut job = job(index);
        change(index, &mut job);
        (job.id.clone(), job)
    };
    (0..count).map(one).collect()
}

fn chain(count: usize, root: JobStatus) -> Jobs {
    jobs(count, |index, job| match index {
        0 => job.status = root,
        index => job.schedule.after = vec![After { job_id: id(index - 1), policy: AfterPolicy::Success }],
    })
}

fn locked(count: usize) -> Jobs {
    jobs(count, |index, job| {
        job.status = if index == 0 { JobStatus::Running } else { JobStatus::Queued };
        job.schedule.locks = vec![Lock { key: "repository".into(), mode: LockMode::Exclusive }];
    })
}

fn artifact(index: usize) -> Artifact {
    Artifact::Custom { type_id: "package".into(), key: format!("key_{index}") }
}

fn artifacts(count: usize) -> Jobs {
    jobs(count, |index, job| {
        job.schedule.artifacts = vec![artifact(index)];
        match index {
            0 => job.status = JobStatus::Running,
            index => job.schedule.dependencies = vec![Needed { artifact: artifact(index - 1) }],
        }
    })
}

fn facts(count: usize) -> Facts {
    let none = |index| {
        let Artifact::Custom { type_id, key } = artifact(index) else { unreachable!("it is a custom one") };
        (Question::Marker { type_id, key, of: None }, Answer::No)
    };
    (0..count).map(none).collect()
}

criterion_group!(benches, pass);
criterion_main!(benches);
