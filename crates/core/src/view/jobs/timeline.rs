//! Where the time of a run went, job by job: what each spent it with, and which of them the run as a whole waited for.
//!
//! Starts and ends are told by the events of jobs. What a job waited for in between is not on record for each instant:
//! it could start once all that it comes after had ended, a person's decision has its instant, and for the rest the
//! last gate counts that the job waited at.

use std::collections::BTreeMap;

use super::graph::{Graph, To, What};
use super::layers::Layers;
use super::runs::RunLine;
use crate::job::{Artifact, Brief, JobEvent, JobEventKind, JobId, JobStatus, NodeOutcome, RunId, WaitKind};
use crate::time::Timestamp;
use crate::view::moment::between;
use crate::view::spent::Spent;
use crate::view::story::{Doing, Stretch};

/// Where the time of a run went.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// The run.
    pub run: RunLine<'a>,
    /// When the first of its jobs was enqueued.
    pub from: Timestamp,
    /// When the last of them ended; now, while the run goes on.
    pub to: Timestamp,
    /// Its jobs in the order in which they started; those that did not, last.
    pub rows: Vec<TimelineRow<'a>>,
    /// The chain of jobs that took longest, each after the one before it, by their places in the rows.
    pub critical: Vec<usize>,
    /// How long that chain took, in nanoseconds.
    pub critical_ns: u64,
    /// What the time was spent with.
    pub spent: Spent,
}

/// One job.
#[derive(Clone, Debug)]
pub struct TimelineRow<'a> {
    /// The job.
    pub job: &'a Brief,
    /// Its attempts, in order.
    pub attempts: Vec<TimelineAttempt>,
    /// What it spent its time with since it could start, in order; the last one is open while it goes on.
    pub stretches: Vec<Stretch>,
    /// Whether it is one of the chain that took longest.
    pub is_critical: bool,
    /// How long it took since it could start, in nanoseconds.
    pub took_ns: u64,
}

/// One attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineAttempt {
    /// Its number over the life of the job, from one.
    pub number: u32,
    /// When it started.
    pub from: Timestamp,
    /// When it ended; `None` while it runs.
    pub to: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<NodeOutcome>,
    /// The exit code.
    pub exit_code: Option<i32>,
}

impl<'a> Timeline<'a> {
    /// Looks at a run at an instant. What happened to its jobs is given by job; a job without is told by its record.
    #[must_use]
    pub fn of(
        run: &'a RunId,
        briefs: &'a BTreeMap<JobId, Brief>,
        events: &BTreeMap<JobId, Vec<JobEvent>>,
        now: Timestamp,
    ) -> Self {
        let graph = Graph::of(briefs);
        let of_run = briefs.values().filter(|job| job.run.as_ref() == Some(run)).collect();
        let run = RunLine::of(run, of_run);
        let own: Vec<usize> = run.jobs.iter().filter_map(|job| graph.place(&job.id)).collect();
        let history = |job: &Brief| events.get(&job.id).map_or(&[][..], Vec::as_slice);
        let ends = Ends { graph: &graph, of: graph.jobs.iter().map(|job| ends(job, history(job))).collect() };
        let mut rows: Vec<TimelineRow<'a>> = own
            .iter()
            .map(|place| Walk::new(graph.jobs[*place], *place, &ends, now).row(history(graph.jobs[*place])))
            .collect();
        let from = run.created_at;
        let last = rows.iter().flat_map(|row| &row.stretches).filter_map(|stretch| stretch.to).max();
        let to = match run.status.is_over() {
            true => last.or(run.finished_at).unwrap_or(from),
            false => now,
        };
        let to = to.max(from);
        for row in &mut rows {
            let lengths = row.stretches.iter().map(|one| between(one.from, one.to.unwrap_or(to)));
            row.took_ns = lengths.fold(0, u64::saturating_add);
        }
        let mut numbers: Vec<Option<usize>> = vec![None; graph.jobs.len()];
        for (number, place) in own.iter().enumerate() {
            numbers[*place] = Some(number);
        }
        let before: Vec<Vec<usize>> = own.iter().map(|place| needed(&graph, *place, &numbers)).collect();
        let weights: Vec<u64> = rows.iter().map(|row| row.took_ns).collect();
        let (critical, critical_ns) = Layers::of(&before).heaviest(&before, &weights);
        for place in &critical {
            rows[*place].is_critical = true;
        }
        let spent = Spent::over(rows.iter().flat_map(|row| &row.stretches), from, to);
        // Among those that start at once the order of the run counts: the sort is stable.
        let start = |row: &TimelineRow<'_>| {
            let first = row.attempts.first().map(|first| first.from);
            (first.is_none(), first, row.stretches.is_empty())
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|place| start(&rows[*place]));
        let mut shown = vec![0; rows.len()];
        for (at, place) in order.iter().enumerate() {
            shown[*place] = at;
        }
        let mut places: Vec<Option<TimelineRow<'a>>> = rows.into_iter().map(Some).collect();
        let rows = order.into_iter().filter_map(|place| places[place].take()).collect();
        let critical = critical.into_iter().map(|place| shown[place]).collect();
        Self { run, from, to, rows, critical, critical_ns, spent }
    }
}

/// Returns the jobs of the run that a job needs, by their numbers in it, each once.
fn needed(graph: &Graph<'_>, place: usize, numbers: &[Option<usize>]) -> Vec<usize> {
    let jobs = graph.edges(place).iter().filter_map(|edge| match edge.to {
        To::Job(to) => numbers[to],
        To::Gone(_) | To::Nobody => None,
    });
    let mut jobs: Vec<usize> = jobs.collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// When jobs were over: several times if they were rewound.
struct Ends<'g, 'a> {
    graph: &'g Graph<'a>,
    of: Vec<Vec<Timestamp>>,
}

fn ends(job: &Brief, events: &[JobEvent]) -> Vec<Timestamp> {
    let told = events.iter().filter(|event| matches!(event.event, JobEventKind::Completed { .. }));
    let mut ends: Vec<Timestamp> = told.map(|event| event.at).collect();
    if ends.is_empty() {
        ends.extend(job.finished_at);
    }
    ends
}

impl Ends<'_, '_> {
    /// Returns when all that a job needs had ended, as far as it had before an instant.
    fn ready(&self, place: usize, before: Timestamp) -> Option<Timestamp> {
        let last = |job: usize| self.of[job].iter().copied().filter(|end| *end <= before).max();
        let mut ready: Option<Timestamp> = None;
        // Of those that make the same thing, the first is enough. They stand beside each other.
        let mut made: Option<(&Artifact, Option<Timestamp>)> = None;
        for edge in self.graph.edges(place) {
            let To::Job(to) = edge.to else { continue };
            match (edge.what, &mut made) {
                (What::After(_), _) => ready = ready.max(last(to)),
                (What::Artifact(artifact), Some((same, first))) if *same == artifact => {
                    *first = [*first, last(to)].into_iter().flatten().min();
                }
                (What::Artifact(artifact), made) => {
                    ready = ready.max(made.take().and_then(|(_, first)| first));
                    *made = Some((artifact, last(to)));
                }
            }
        }
        ready.max(made.and_then(|(_, first)| first))
    }
}

/// A job whose events are gone through.
struct Walk<'w, 'g, 'a> {
    job: &'a Brief,
    place: usize,
    ends: &'w Ends<'g, 'a>,
    now: Timestamp,
    /// Since when it waits for a start.
    since: Option<Timestamp>,
    /// When its next attempt is due.
    due: Option<Timestamp>,
    /// When a person decided since then.
    decided: Option<Timestamp>,
    /// The attempt that runs.
    open: Option<(u32, Timestamp)>,
    has_retried: bool,
    attempts: Vec<TimelineAttempt>,
    stretches: Vec<Stretch>,
}

/// How an attempt ended.
#[derive(Clone, Copy)]
struct End {
    at: Timestamp,
    outcome: NodeOutcome,
    exit_code: Option<i32>,
}

impl<'w, 'g, 'a> Walk<'w, 'g, 'a> {
    const fn new(job: &'a Brief, place: usize, ends: &'w Ends<'g, 'a>, now: Timestamp) -> Self {
        Self {
            job,
            place,
            ends,
            now,
            since: Some(job.created_at),
            due: None,
            decided: None,
            open: None,
            has_retried: false,
            attempts: Vec::new(),
            stretches: Vec::new(),
        }
    }

    fn row(mut self, events: &[JobEvent]) -> TimelineRow<'a> {
        let is_retry = |event: &JobEvent| match &event.event {
            JobEventKind::AttemptFailed { decision, .. } => decision.action.due().is_some(),
            JobEventKind::Dispatched { .. }
            | JobEventKind::Withdrawn { .. }
            | JobEventKind::Completed { .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => false,
        };
        self.has_retried = events.iter().any(is_retry);
        for event in events {
            self.take(event);
        }
        self.conclude();
        let Self { job, attempts, stretches, .. } = self;
        TimelineRow { job, attempts, stretches, is_critical: false, took_ns: 0 }
    }

    fn take(&mut self, event: &JobEvent) {
        let at = event.at;
        match &event.event {
            JobEventKind::Dispatched { .. } => {
                self.waited(Some(at));
                self.open = Some((event.attempt, at));
            }
            JobEventKind::AttemptFailed { exit_code, decision, .. } => {
                self.ended(End { at, outcome: NodeOutcome::Failed, exit_code: *exit_code });
                (self.since, self.due, self.decided) = (Some(at), decision.action.due(), None);
            }
            JobEventKind::Withdrawn { .. } => {
                // Nobody worked on it, so it waited all the time.
                self.since = self.open.take().map(|(_, from)| from).or(self.since);
            }
            JobEventKind::Completed { outcome, exit_code, .. } => {
                if self.open.is_some() {
                    self.ended(End { at, outcome: *outcome, exit_code: *exit_code });
                } else {
                    self.waited(Some(at));
                }
                self.since = None;
            }
            JobEventKind::Rewound { .. } => {
                self.ended(End { at, outcome: NodeOutcome::Cancelled, exit_code: None });
                self.waited(Some(at));
                (self.since, self.due, self.decided) = (Some(at), None, None);
            }
            JobEventKind::Decided { .. } => self.decided = Some(at),
        }
    }

    /// Adds what the record knows beyond the events: what goes on, and what nobody told.
    fn conclude(&mut self) {
        let job = self.job;
        if job.status == JobStatus::Running {
            if self.open.is_none() {
                let from = job.started_at.or(self.since).unwrap_or(job.created_at);
                self.waited(Some(from));
                self.open = Some((job.attempt.max(1), from));
            }
            if let Some((number, from)) = self.open.take() {
                self.attempts.push(TimelineAttempt {
                    number,
                    from,
                    to: None,
                    outcome: None,
                    exit_code: None,
                });
                self.stretches.push(stretch(Doing::Attempt, from, None));
            }
        } else if job.status.is_active() {
            self.waited(None);
        } else if let Some(at) = job.finished_at {
            if self.open.is_none() && self.attempts.is_empty() && self.since.is_some() {
                if let Some(from) = job.started_at {
                    self.waited(Some(from));
                    self.open = Some((job.attempt.max(1), from));
                } else {
                    self.waited(Some(at));
                }
            }
            let outcome = NodeOutcome::of(job.status).unwrap_or(NodeOutcome::Failed);
            self.ended(End { at, outcome, exit_code: job.exit_code });
        }
    }

    /// Closes the attempt that runs, if one does.
    fn ended(&mut self, end: End) {
        let Some((number, from)) = self.open.take() else { return };
        let to = end.at.max(from);
        let doing = match end.outcome {
            NodeOutcome::Succeeded | NodeOutcome::Skipped => Doing::Attempt,
            NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled => Doing::Failed,
        };
        self.stretches.push(stretch(doing, from, Some(to)));
        let (outcome, exit_code) = (Some(end.outcome), end.exit_code);
        self.attempts.push(TimelineAttempt { number, from, to: Some(to), outcome, exit_code });
    }

    /// Closes the wait for a start, if there is one; without an end it goes on.
    fn waited(&mut self, until: Option<Timestamp>) {
        let Some(since) = self.since.take() else { return };
        let stop = until.unwrap_or(self.now).max(since);
        let waits_now = self.job.schedule.wait_reason.as_ref().map(|reason| reason.kind);
        let waits_now = waits_now.filter(|_| until.is_none());
        let mut at = since;
        if let Some(due) = self.due.take() {
            let to = due.clamp(since, stop);
            let goes_on = until.is_none() && due > stop;
            self.spend(Doing::Backoff, at, if goes_on { None } else { Some(to) });
            at = to;
            if goes_on {
                return;
            }
        } else {
            if waits_now == Some(WaitKind::Dependencies) {
                return;
            }
            at = self.ends.ready(self.place, stop).map_or(at, |ready| ready.clamp(since, stop));
        }
        if let Some(decided) = self.decided.take().filter(|decided| *decided > at) {
            let to = decided.min(stop);
            self.spend(Doing::Approval, at, Some(to));
            at = to;
        }
        let doing = self.gate(waits_now);
        self.spend(doing, at, until.map(|_| stop));
    }

    /// Returns what the job waits for, or waited for last.
    fn gate(&self, waits_now: Option<WaitKind>) -> Doing {
        let told = |kind: &WaitKind| match kind {
            WaitKind::Dependencies | WaitKind::Approval => false,
            // Whoever was retried has waited for a time, whatever it waited for besides.
            WaitKind::Schedule => !self.has_retried || self.job.schedule.limits.is_some(),
            WaitKind::PinnedHead | WaitKind::Preconditions | WaitKind::Locks | WaitKind::Capacity => true,
            WaitKind::External => false,
        };
        let waited_on = || self.job.schedule.waited_on.iter().rev().copied().find(told);
        match waits_now.or_else(waited_on) {
            Some(WaitKind::Locks) => Doing::Locks,
            Some(WaitKind::Capacity) => Doing::Capacity,
            Some(WaitKind::Approval) => Doing::Approval,
            Some(WaitKind::PinnedHead | WaitKind::Preconditions) => Doing::World,
            Some(WaitKind::Schedule) => Doing::Waiting,
            Some(WaitKind::Dependencies | WaitKind::External) | None => Doing::Queue,
        }
    }

    fn spend(&mut self, doing: Doing, from: Timestamp, to: Option<Timestamp>) {
        if to.is_none_or(|to| to > from) {
            self.stretches.push(stretch(doing, from, to));
        }
    }
}

const fn stretch(doing: Doing, from: Timestamp, to: Option<Timestamp>) -> Stretch {
    Stretch { doing, hold: None, from, to }
}
