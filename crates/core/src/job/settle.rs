//! One pass over all jobs: which of them wait and for what, which can never run, and which start now. It changes briefs and
//! starts nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::brief::Brief;
use super::ended::CANCELLED;
use super::gate::{
    self, Afters, End, Keys, Locks, Needs, Patience, Rates, Refusal, Slots, Verdict, View, Wait,
};
use super::id::JobId;
use super::outcome::{JobOutcome, NodeOutcome};
use super::question::{Facts, Question};
use super::schedule::WaitKind;
use super::shared::Shared;
use super::status::JobStatus;
use crate::policy::{Admission, Permit};
use crate::time::Timestamp;

/// What a pass looks at and changes.
pub struct World<'a> {
    /// The active jobs, and all that they need to know of others.
    pub jobs: &'a mut BTreeMap<JobId, Brief>,
    /// Records that cannot be read, and why.
    pub unreadable: &'a BTreeMap<String, String>,
    /// What is known of the world.
    pub facts: &'a Facts,
    /// What jobs share by name.
    pub shared: &'a mut Shared,
    /// How many jobs may run at once.
    pub capacity: u32,
    /// The present.
    pub now: Timestamp,
}

/// What came of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// What has to be known first. If there is anything, nothing else was done: ask again with the answers.
    pub questions: BTreeSet<Question>,
    /// The jobs that stand elsewhere or wait for something else than before; those that start are not among them.
    pub changed: BTreeSet<JobId>,
    /// The jobs that start now, in this order. Their briefs are as they were: see [`start`](super::start()).
    pub starts: Vec<JobId>,
    /// What the circuit breakers of those that start gave them.
    pub permits: BTreeMap<JobId, Permit>,
    /// How jobs ended that the pass itself ended: what cannot start has failed.
    pub outcomes: Vec<JobOutcome>,
    /// Jobs that succeeded because another one had done their work: they take over its markers and payloads.
    pub adopted: Vec<(JobId, JobId)>,
    /// Jobs whose loop goes back and that are not rewound yet.
    pub loops: Vec<JobId>,
    /// Jobs that may not start any more, and whose policy says what becomes of them: see [`refuse`](super::refuse()).
    /// Until somebody has asked it, nothing is changed in them.
    pub refused: Vec<(JobId, Refusal, String)>,
    /// When to look again.
    pub wake_at: Option<Timestamp>,
    /// Whether a job waits for something in the world that nobody tells us of.
    pub watches: bool,
    /// Whether a job is running, or will be.
    pub runs: bool,
}

/// Asks the gates of all jobs until nothing changes any more, and decides which jobs start.
///
/// The gates are asked in their order: other jobs, artifacts, pinned head, preconditions, approval, locks; then times,
/// slots, circuit breakers, keys and rates. What ends in the pass has ended for all others in it. The work grows with the
/// number of jobs and edges, however long the chains are.
///
/// If a gate has to know something of the world, only [`Settled::questions`] is set, and nothing was changed.
pub fn settle(world: &mut World<'_>) -> Settled {
    world.shared.begin();
    let view = View::new(world.jobs, world.unreadable, world.facts, world.now);
    let (mut settled, decided) = Pass::new(view, world.capacity, world.shared).run();
    if !settled.questions.is_empty() {
        world.shared.put_back();
        return Settled { questions: settled.questions, ..Settled::default() };
    }
    world.shared.keep();
    for (job, decided) in world.jobs.values_mut().zip(decided) {
        settled.runs |= job.status == JobStatus::Running;
        if job.goes_back.is_some() && job.status.is_terminal() {
            settled.loops.push(job.id.clone());
        }
        let is_changed = match decided {
            None => false,
            Some(Decided::Start) => {
                settled.runs = true;
                false
            }
            Some(Decided::Wait(wait)) => settled.wait(job, wait, world.now),
            Some(Decided::End(End { refusal: Some(refusal), reason, .. })) if has_recourse(job) => {
                settled.refused.push((job.id.clone(), refusal, reason.detail));
                false
            }
            Some(Decided::End(end)) => {
                settled.end(job, end, world.now);
                true
            }
        };
        if is_changed {
            settled.changed.insert(job.id.clone());
        }
    }
    settled
}

impl Settled {
    /// Writes into a brief what its job waits for. Tells whether that is something else than before.
    fn wait(&mut self, job: &mut Brief, wait: Wait, now: Timestamp) -> bool {
        let deadline = job.schedule.limits.as_deref().and_then(|limits| limits.deadline);
        for at in [wait.wake_at, deadline].into_iter().flatten() {
            self.wake(at);
        }
        self.watches |= wait.watches;
        let schedule = &mut job.schedule;
        let kind = wait.reason.kind;
        let ready_at = wait.is_ready.then(|| schedule.ready_at.unwrap_or(now));
        // Whoever wrote the record by hand need not know when it became ready, as long as nothing depends on it.
        let is_timed = schedule.limits.is_some() || schedule.not_before.is_some();
        let is_known = job.status == wait.status
            && schedule.wait_reason.as_ref() == Some(&wait.reason)
            && (schedule.ready_at == ready_at || (schedule.ready_at.is_none() && !is_timed));
        if is_known {
            return false;
        }
        job.status = wait.status;
        schedule.wait_reason = Some(wait.reason);
        schedule.ready_at = ready_at;
        note(&mut schedule.waited_on, kind);
        true
    }

    /// Writes into a brief that its job is over before it began.
    fn end(&mut self, job: &mut Brief, end: End, now: Timestamp) {
        job.status = end.status;
        job.schedule.ready_at = None;
        job.schedule.skipped_failure = end.skips_failure;
        let exit_code = match end.status {
            JobStatus::Failed => Some(1),
            JobStatus::Succeeded => Some(0),
            JobStatus::Cancelled => Some(CANCELLED),
            JobStatus::BlockedByDependency | JobStatus::BlockedByApproval | JobStatus::Skipped => {
                note(&mut job.schedule.waited_on, end.reason.kind);
                None
            }
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running => unreachable!("invariant: no gate ends a job like that"),
        };
        if exit_code.is_some() {
            let made =
                if end.status == JobStatus::Succeeded { job.schedule.artifacts.clone() } else { Vec::new() };
            job.exit_code = exit_code;
            job.finished_at = Some(now);
            self.outcomes.push(JobOutcome {
                version: JobOutcome::VERSION,
                job_id: job.id.clone(),
                attempt: job.attempt,
                status: job.status,
                outcome: NodeOutcome::of(job.status).expect("invariant: it has ended"),
                exit_code,
                code: None,
                non_retryable: false,
                complaint: None,
                started_at: job.started_at,
                finished_at: now,
                summary: Some(end.reason.detail.clone()),
                artifacts: made,
            });
        }
        job.schedule.wait_reason = (end.status != JobStatus::Succeeded).then_some(end.reason);
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Remembers that a job has waited for something, once.
pub(super) fn note(waited_on: &mut Vec<WaitKind>, kind: WaitKind) {
    if !waited_on.contains(&kind) {
        waited_on.push(kind);
    }
}

/// What was decided about a job.
enum Decided {
    Start,
    Wait(Wait),
    End(End),
}

/// How far a job has come in the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits at a gate, or was not looked at yet.
    Waiting,
    /// Its gates up to the approval are open.
    Ready,
    /// It starts, has ended, or is none of our business.
    Settled,
}

struct Pass<'a, 's> {
    view: View<'a>,
    shared: &'s mut Shared,
    afters: Afters<'a>,
    needs: Needs<'a>,
    locks: Locks<'a>,
    slots: Slots<'a>,
    keys: Keys<'a>,
    rates: Rates<'a>,
    decided: Vec<Option<Decided>>,
    stages: Vec<Stage>,
    /// Those that are ready, in the order in which they start.
    ready: BTreeSet<(u8, Timestamp, usize)>,
    starts: Vec<(u8, Timestamp, usize)>,
    woken: Vec<usize>,
    settled: Settled,
}

impl<'a, 's> Pass<'a, 's> {
    fn new(view: View<'a>, capacity: u32, shared: &'s mut Shared) -> Self {
        let count = view.jobs.len();
        Self {
            shared,
            afters: Afters::new(&view),
            needs: Needs::new(&view),
            locks: Locks::new(&view),
            slots: Slots::new(&view, capacity),
            keys: Keys::new(&view),
            rates: Rates::default(),
            decided: std::iter::repeat_with(|| None).take(count).collect(),
            stages: vec![Stage::Settled; count],
            ready: BTreeSet::new(),
            starts: Vec::new(),
            woken: Vec::new(),
            settled: Settled::default(),
            view,
        }
    }

    fn run(mut self) -> (Settled, Vec<Option<Decided>>) {
        for job in 0..self.view.jobs.len() {
            if !self.view.is_waiting(job) {
                continue;
            }
            if let Some(external) = &self.view.jobs[job].schedule.external {
                // Its gates are behind it, and a worker outside has it in hand.
                external.due().into_iter().for_each(|at| self.settled.wake(at));
                continue;
            }
            match retry_at(self.view.jobs[job], self.view.now) {
                // Between two attempts nothing is looked at.
                Some(at) => self.settled.wake(at),
                None => self.stages[job] = Stage::Waiting,
            }
        }
        for job in 0..self.view.jobs.len() {
            self.look_at(job);
            self.look_at_woken();
        }
        // Without the answers nobody knows who is ready.
        while self.settled.questions.is_empty()
            && let Some(next) = self.ready.pop_first()
        {
            self.let_start(next);
            self.look_at_woken();
        }
        self.starts.sort_unstable();
        self.settled.starts = self.starts.iter().map(|(.., job)| self.view.jobs[*job].id.clone()).collect();
        (self.settled, self.decided)
    }

    fn look_at_woken(&mut self) {
        while let Some(job) = self.woken.pop() {
            self.look_at(job);
        }
    }

    /// Asks the gates that depend on others and on the world.
    fn look_at(&mut self, job: usize) {
        if self.stages[job] != Stage::Waiting {
            return;
        }
        let verdict = match (self.first_unmet(job), gate::deadline(job, &self.view)) {
            (Verdict::Open | Verdict::Wait(_), Verdict::End(late)) => Verdict::End(late),
            (verdict, _) => verdict,
        };
        match verdict {
            Verdict::Ask(questions) => self.settled.questions.extend(questions),
            Verdict::Wait(wait) => self.decided[job] = Some(Decided::Wait(wait)),
            Verdict::End(end) => self.end(job, without_its_loop(self.view.jobs[job], end)),
            Verdict::Open => {
                let brief = self.view.jobs[job];
                self.stages[job] = Stage::Ready;
                let rank = Patience::of(brief, self.view.now).rank;
                self.ready.insert((rank, brief.created_at, job));
            }
        }
    }

    fn first_unmet(&mut self, job: usize) -> Verdict {
        let verdict = self.afters.judge(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        let verdict = self.needs.judge(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        let view = &self.view;
        for judge in [gate::pinned_head, gate::precondition, gate::approval] {
            let verdict = judge(job, view);
            if verdict != Verdict::Open {
                return verdict;
            }
        }
        Verdict::Open
    }

    /// Asks the gates at which jobs are in each other's way, and lets a job start if they are open.
    fn let_start(&mut self, next: (u8, Timestamp, usize)) {
        let (_, _, job) = next;
        let brief = self.view.jobs[job];
        let patience = Patience::of(brief, self.view.now);
        let delay = gate::delay(job, &self.view);
        let is_due = delay == Verdict::Open;
        match self.first_closed(job) {
            Verdict::Ask(questions) => self.settled.questions.extend(questions),
            Verdict::End(end) => {
                self.settled.adopted.extend(
                    (end.status == JobStatus::Succeeded)
                        .then(|| Keys::owner(job, &self.view))
                        .flatten()
                        .map(|owner| (brief.id.clone(), owner)),
                );
                self.end(job, end);
            }
            Verdict::Wait(wait) if !is_due => {
                // Whoever could not start anyway has no place in the queue, and is in nobody's way.
                // A delay counts from when it could, though, and that is to be remembered.
                let (is_ready, due) = match delay {
                    Verdict::Wait(delay) if delay.is_ready => (true, delay.wake_at),
                    Verdict::Wait(_) | Verdict::Open | Verdict::Ask(_) | Verdict::End(_) => (false, None),
                };
                let wake_at = wait.wake_at.into_iter().chain(due).min();
                self.decided[job] = Some(Decided::Wait(Wait { is_ready, wake_at, ..wait }));
            }
            Verdict::Wait(wait) => {
                let waits_for_others = matches!(wait.reason.kind, WaitKind::Locks | WaitKind::Capacity);
                match patience.judge(wait) {
                    Verdict::End(end) => self.end(job, end),
                    Verdict::Wait(wait) => {
                        if waits_for_others {
                            self.locks.keep(&brief.schedule.locks, patience.is_over);
                        }
                        self.decided[job] = Some(Decided::Wait(wait));
                    }
                    Verdict::Open | Verdict::Ask(_) => unreachable!("invariant: patience waits or ends"),
                }
            }
            Verdict::Open => {
                self.take_permit(job);
                self.locks.take(&brief.schedule.locks);
                self.slots.take(brief);
                self.keys.take(brief);
                self.stages[job] = Stage::Settled;
                self.decided[job] = Some(Decided::Start);
                self.starts.push(next);
            }
        }
    }

    fn first_closed(&mut self, job: usize) -> Verdict {
        let verdict = self.locks.judge(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        let verdict = gate::delay(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        let verdict = self.slots.judge(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        let verdict = gate::breaker(job, &self.view, self.shared);
        if verdict != Verdict::Open {
            return verdict;
        }
        let verdict = self.keys.judge(job, &self.view);
        if verdict != Verdict::Open {
            return verdict;
        }
        if !self.view.jobs[job].is_runnable {
            return Verdict::end(JobStatus::Failed, WaitKind::Dependencies, "missing child args");
        }
        self.rates.judge(job, &self.view, self.shared)
    }

    fn take_permit(&mut self, job: usize) {
        let brief = self.view.jobs[job];
        let limits = brief.schedule.limits.as_deref();
        let Some(config) = limits.and_then(|limits| limits.breaker.as_ref()) else { return };
        let now = self.view.now;
        if let Admission::Admitted(permit) =
            self.shared.breaker(&config.name, |breaker| breaker.admit(config, now))
        {
            self.settled.permits.insert(brief.id.clone(), permit);
        }
    }

    /// A job is over: whoever waits for it is looked at again.
    fn end(&mut self, job: usize, end: End) {
        let is_refused = end.refusal.is_some() && has_recourse(self.view.jobs[job]);
        self.stages[job] = Stage::Settled;
        if is_refused {
            // What comes of it is not known yet.
            self.decided[job] = Some(Decided::End(end));
            return;
        }
        self.view.end(job, end.status);
        self.decided[job] = Some(Decided::End(end));
        self.afters.ended(job, &self.view, &mut self.woken);
        self.needs.ended(job, &self.view, &mut self.woken);
    }
}

/// Returns how a job ends that never starts again after its loop went back: what it had come to before counts, so that
/// neither its cancellation nor its failure is passed over.
fn without_its_loop(job: &Brief, end: End) -> End {
    let status = match (job.schedule.looped_on, end.status) {
        (Some(NodeOutcome::Cancelled), status) if status == JobStatus::Skipped || status.is_blocked() => {
            JobStatus::Cancelled
        }
        (Some(_), JobStatus::Skipped) => JobStatus::BlockedByDependency,
        (_, status) => status,
    };
    End { status, ..end }
}

/// Tells whether the policy of a job says what becomes of it where it may not start any more.
fn has_recourse(job: &Brief) -> bool {
    job.schedule.limits.as_deref().is_some_and(|limits| limits.has_recourse)
}

/// Returns when the next attempt of a job is due, if it waits for that.
pub(super) fn retry_at(job: &Brief, now: Timestamp) -> Option<Timestamp> {
    let waits = job.schedule.wait_reason.as_ref().is_some_and(|reason| reason.kind == WaitKind::Schedule);
    let at = job.schedule.not_before.filter(|at| *at > now)?;
    (waits && job.status == JobStatus::Queued && job.started_at.is_some()).then_some(at)
}
