//! Random lives of jobs: whatever happens, every change is in the table, locks and slots hold, and all comes to an end.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    After, AfterPolicy, Approval, ApprovalState, Artifact, Brief, By, Cause, Cleanup, Ended, JobId,
    JobStatus, Liveness, Lock, LockMode, Loop, ManifestNode, Needed, NodeId, NodeOutcome, Record, Retry,
    approve, cancel, finish, reject, reset, rewind, start,
};
use tidewheel_core::policy::{Backoff, OnFailure, Policy};
use tidewheel_core::time::Span;
use tidewheel_testkit::Dice;

use crate::finishing::node;
use crate::world::{Scene, at, custom, id, scene};

#[test]
fn whatever_happens_to_jobs_they_come_to_an_end() {
    let mut ways = BTreeSet::new();
    for seed in 0..400 {
        let mut life = Life::new(seed);
        for step in 0..2_000 {
            life.tick();
            if life.records.values().all(|record| !Brief::from(record).is_open()) {
                break;
            }
            life.happen(step < 60);
            assert!(step < 1_999, "seed {seed}: {:#?}", life.statuses());
        }
        ways.extend(life.ways);
    }
    assert!(ways.len() > 25, "{ways:?}");
}

struct Life {
    seed: u64,
    dice: Dice,
    records: BTreeMap<JobId, Record>,
    nodes: BTreeMap<JobId, ManifestNode>,
    scene: Scene,
    wake_at: Option<tidewheel_core::time::Timestamp>,
    ways: BTreeSet<(JobStatus, JobStatus)>,
}

fn name(index: usize) -> String {
    format!("n{index}")
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let count = 3 + dice.below(7);
        let (mut records, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for index in 0..count {
            let mut record = Record::new(id(&name(index)), at(u64::try_from(index).unwrap()));
            record.child_args = vec!["true".into()];
            let schedule = &mut record.schedule;
            for _ in 0..dice.below(3).min(index) {
                let policy = AfterPolicy::ALL[if dice.chance(60) { 0 } else { dice.below(6) }];
                schedule.after.push(After { job_id: id(&name(dice.below(index))), policy });
            }
            for _ in 0..dice.below(3) {
                let mode = if dice.chance(50) { LockMode::Shared } else { LockMode::Exclusive };
                schedule.locks.push(Lock { key: format!("k{}", dice.below(3)), mode });
            }
            if dice.chance(30) {
                schedule.artifacts.push(custom(&name(index)));
            }
            if index > 0 && dice.chance(20) {
                schedule.dependencies.push(Needed { artifact: custom(&name(dice.below(index))) });
            }
            if dice.chance(15) {
                schedule.approval = Some(Approval::pending("x", at(0)));
            }
            let on_failure = [OnFailure::Halt, OnFailure::Skip, OnFailure::Pause, OnFailure::DeadLetter];
            let policy = Policy::new()
                .max_retries(u32::try_from(dice.below(3)).unwrap())
                .backoff(Backoff::Fixed)
                .base_delay("3s")
                .on_failure(on_failure[dice.below(4)]);
            let mut node = ManifestNode { job_id: record.id.clone(), ..node(&policy) };
            node.produces.insert(NodeOutcome::Succeeded, record.schedule.artifacts.clone());
            if index > 0 && dice.chance(20) {
                node.loops = vec![Loop { on: NodeOutcome::Failed, to: NodeId::new(&name(0)).unwrap() }];
                // The target comes before: otherwise it would not be a loop.
                record.schedule.after.push(After { job_id: id(&name(0)), policy: AfterPolicy::Completion });
                node.retry = Some(Retry { mode: "on_failure".into(), budget: 1 });
            }
            nodes.insert(record.id.clone(), node);
            records.insert(record.id.clone(), record);
        }
        let mut scene = scene([]);
        scene.capacity = 1 + u32::try_from(dice.below(3)).unwrap();
        Self { seed, dice, records, nodes, scene, wake_at: None, ways: BTreeSet::new() }
    }

    fn statuses(&self) -> Vec<String> {
        let of =
            |record: &Record| format!("{} {} {:?}", record.id, record.status, record.schedule.wait_reason);
        self.records.values().map(of).collect()
    }

    fn change<T>(
        &mut self,
        id: &JobId,
        change: impl FnOnce(&mut Record, &ManifestNode, &mut Scene) -> T,
    ) -> T {
        let record = self.records.get_mut(id).unwrap();
        let from = record.status;
        let answer = change(record, &self.nodes[id], &mut self.scene);
        if record.status != from {
            assert!(from.way_to(record.status).is_some(), "seed {}: {from} to {}", self.seed, record.status);
            self.ways.insert((from, record.status));
        }
        answer
    }

    fn briefs(&self) -> BTreeMap<JobId, Brief> {
        self.records.iter().map(|(id, record)| (id.clone(), Brief::from(record))).collect()
    }

    fn tick(&mut self) {
        self.scene.jobs = self.briefs();
        let settled = self.scene.settle();
        self.wake_at = settled.wake_at;
        let now = self.scene.now;
        for id in &settled.changed {
            let brief = self.scene.jobs[id].clone();
            self.change(id, |record, _, _| record.take_over(&brief));
            assert_eq!(Brief::from(&self.records[id]), brief, "a record takes over all that a pass changes");
        }
        for id in &settled.starts {
            for after in &self.records[id].schedule.after {
                let before = &self.records[&after.job_id];
                let is_met = before.status.is_terminal() && after.policy.is_met_by(before.status);
                let is_handler = !matches!(after.policy, AfterPolicy::Success | AfterPolicy::Completion);
                assert!(is_met || is_handler, "seed {}: {id} starts too early", self.seed);
            }
            self.change(id, |record, _, _| start(record, None, now));
        }
        self.check_running();
        for id in settled.loops {
            let target = JobId::new(self.nodes[&id].loops[0].to.as_str()).unwrap();
            self.rewind(&target, true);
        }
    }

    fn check_running(&self) {
        let running: Vec<&Record> =
            self.records.values().filter(|record| record.status == JobStatus::Running).collect();
        assert!(running.len() <= usize::try_from(self.scene.capacity).unwrap(), "seed {}", self.seed);
        for (index, one) in running.iter().enumerate() {
            for other in &running[index + 1..] {
                for (a, b) in
                    one.schedule.locks.iter().flat_map(|a| other.schedule.locks.iter().map(move |b| (a, b)))
                {
                    let is_shared = a.mode == LockMode::Shared && b.mode == LockMode::Shared;
                    assert!(a.key != b.key || is_shared, "seed {}: {} and {}", self.seed, one.id, other.id);
                }
            }
        }
    }

    fn rewind(&mut self, root: &JobId, is_loop: bool) {
        let Ok(plan) = rewind(&self.briefs(), root) else { return };
        let cause = Cause { by: "somebody", is_loop, not_before: None, asks_first: None, at: self.scene.now };
        for id in plan.set {
            let unmarks = self.change(&id, |record, _, _| reset(record, &Cleanup::Skipped, cause).unmarks);
            self.unmark(&id, &unmarks);
        }
    }

    fn unmark(&mut self, id: &JobId, artifacts: &[Artifact]) {
        self.scene.marks.retain(|(maker, made)| maker != id || !artifacts.contains(made));
    }

    /// Lets something happen; while `is_wild` also what brings jobs back.
    fn happen(&mut self, is_wild: bool) {
        let now = self.scene.now;
        let by = By { actor: "somebody", at: now };
        let pick = |dice: &mut Dice, ids: &[JobId]| ids[dice.below(ids.len())].clone();
        let ids = |test: &dyn Fn(&Record) -> bool| -> Vec<JobId> {
            self.records.values().filter(|record| test(record)).map(|record| record.id.clone()).collect()
        };
        let running = ids(&|record| record.status == JobStatus::Running);
        let pending = ids(&|record| record.status == JobStatus::WaitingOnApproval);
        let active = ids(&|record| record.status.is_active());
        let all = ids(&|_| true);
        if is_wild && self.dice.chance(10) {
            let root = pick(&mut self.dice, &all);
            self.rewind(&root, false);
        } else if is_wild && !active.is_empty() && self.dice.chance(5) {
            let id = pick(&mut self.dice, &active);
            self.change(&id, |record, _, _| cancel(record, &Cleanup::Skipped, now).unwrap());
        } else if !pending.is_empty() && (running.is_empty() || self.dice.chance(30)) {
            let id = pick(&mut self.dice, &pending);
            let is_approved = self.dice.chance(60);
            self.change(&id, |record, _, _| {
                if is_approved {
                    approve(record, by).unwrap();
                } else {
                    reject(record, None, by).unwrap();
                }
            });
            let state = self.records[&id].schedule.approval.as_ref().unwrap().state;
            assert_ne!(state, ApprovalState::Pending);
        } else if !running.is_empty() && self.dice.chance(80) {
            let id = pick(&mut self.dice, &running);
            let ended = match self.dice.below(12) {
                0..=4 => Ended::exited(0, now),
                5..=8 => Ended::exited(3, now),
                9 => Ended::timed_out(now),
                10 => Ended::lost(Liveness::NotRunning, now),
                _ => Ended::blocked("x", now),
            };
            let finished = self.change(&id, |record, node, scene| {
                finish(record, Some(node), None, &ended, &mut scene.shared)
            });
            self.unmark(&id, &finished.unmarks);
            self.scene.marks.extend(finished.marks.into_iter().map(|made| (id.clone(), made)));
        } else {
            let waits = running.is_empty() && pending.is_empty();
            let goes_back = self.records.values().any(|record| Brief::from(record).goes_back.is_some());
            assert!(
                !waits || self.wake_at.is_some() || goes_back || active.iter().any(|id| self.may_start(id)),
                "seed {}: nobody will ever look again: {:#?}",
                self.seed,
                self.statuses()
            );
            let later = now.saturating_add(Span::from_secs(1));
            self.scene.now = if waits { self.wake_at.map_or(later, |at| at.max(later)) } else { later };
        }
    }

    /// Tells whether a job has not been looked at since it was changed.
    fn may_start(&self, id: &JobId) -> bool {
        self.records[id].schedule.wait_reason.is_none()
    }
}
