//! Where a job stands at each of its gates, for those who look: the gates are asked as in a pass, one job at a time, and
//! nothing is decided, counted or changed.

use std::collections::BTreeMap;

use super::artifact::Artifact;
use super::brief::Brief;
use super::gate::{self, Afters, Keys, Locks, Needs, Patience, Slots, Verdict, View, is_optional};
use super::id::JobId;
use super::question::{Facts, Question};
use super::schedule::{After, Lock, LockMode, WaitKind, WaitReason};
use super::settle::retry_at;
use super::status::JobStatus;
use crate::policy::word_enum;
use crate::time::Timestamp;

word_enum! {
    /// The gates before a job, in the order in which they are asked.
    pub enum Gate {
        /// Other jobs have to end first.
        After = "after",
        /// Artifacts have to be there.
        Artifacts = "artifacts",
        /// A branch has to stand where it stood.
        PinnedHead = "pinned_head",
        /// Something else has to be so in the repository.
        Preconditions = "preconditions",
        /// A person has to agree.
        Approval = "approval",
        /// Locks have to be free.
        Locks = "locks",
        /// Its time has to have come, and not to be over.
        Schedule = "schedule",
        /// There has to be a slot.
        Capacity = "capacity",
        /// Its circuit breaker has to let it in.
        CircuitBreaker = "circuit_breaker",
        /// Nobody else may be doing the same work.
        IdempotencyKey = "idempotency_key",
        /// There has to be something to start.
        Command = "command",
        /// Not too many may have started lately.
        RateLimit = "rate_limit",
    }
}

/// What a gate says to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The job asks nothing of it.
    NotSet,
    /// It is open.
    Open,
    /// It was not asked, since the job does not come so far.
    NotReached,
    /// The job waits at it.
    Waits {
        /// For what, as the scheduler says it.
        detail: String,
        /// Until then at most, if a time is what it waits for.
        until: Option<Timestamp>,
    },
    /// It never opens.
    Ends {
        /// Where the job stands then.
        status: JobStatus,
        /// Why, as the scheduler says it.
        detail: String,
    },
    /// It depends on the world.
    Asks(Vec<Question>),
}

/// A gate, what it says, and the jobs that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The gate.
    pub gate: Gate,
    /// What it says.
    pub finding: Finding,
    /// The jobs that are in the way, the one that decides first. Some may be none that there are.
    pub on: Vec<JobId>,
}

impl Look {
    /// Tells whether the job does not pass here.
    #[must_use]
    pub const fn is_in_the_way(&self) -> bool {
        match self.finding {
            Finding::Waits { .. } | Finding::Ends { .. } | Finding::Asks(_) => true,
            Finding::NotSet | Finding::Open | Finding::NotReached => false,
        }
    }
}

/// Jobs that somebody looks at. Building it takes as long as there are jobs; each look, as long as what is in the way.
pub struct Inspection<'a> {
    view: View<'a>,
    capacity: u32,
    afters: Afters<'a>,
    needs: Needs<'a>,
    locks: Locks<'a>,
    slots: Slots<'a>,
    keys: Keys<'a>,
    makers: BTreeMap<&'a Artifact, Vec<usize>>,
    /// The active jobs that hold or want each lock.
    by_lock: BTreeMap<&'a str, Vec<usize>>,
    running: Vec<usize>,
    /// Those that workers outside have in hand.
    outside: Vec<usize>,
}

impl<'a> Inspection<'a> {
    /// Prepares to look at jobs, with what is known of the world.
    #[must_use]
    pub fn new(
        jobs: &'a BTreeMap<JobId, Brief>,
        unreadable: &'a BTreeMap<String, String>,
        facts: &'a Facts,
        capacity: u32,
        now: Timestamp,
    ) -> Self {
        let view = View::new(jobs, unreadable, facts, now);
        let mut makers: BTreeMap<&Artifact, Vec<usize>> = BTreeMap::new();
        let mut by_lock: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let (mut running, mut outside) = (Vec::new(), Vec::new());
        for (place, job) in view.jobs.iter().enumerate() {
            for made in &job.schedule.artifacts {
                let of = makers.entry(made).or_default();
                // A job that lists an artifact twice makes it once.
                if of.last() != Some(&place) {
                    of.push(place);
                }
            }
            if job.status.is_active() {
                for lock in &job.schedule.locks {
                    by_lock.entry(&lock.key).or_default().push(place);
                }
            }
            if job.status == JobStatus::Running {
                running.push(place);
            } else if job.is_outside() {
                outside.push(place);
            }
        }
        Self {
            capacity,
            afters: Afters::new(&view),
            needs: Needs::new(&view),
            locks: Locks::new(&view),
            slots: Slots::new(&view, capacity),
            keys: Keys::new(&view),
            makers,
            by_lock,
            running,
            outside,
            view,
        }
    }

    /// Returns every gate of a job in order, and what it says; nothing for a job that is not there.
    ///
    /// The gates of a job that waits are asked. Of one that is over or runs, what the last pass found is told. A question
    /// about an artifact comes once, from the first job that has to know it.
    pub fn look(&mut self, id: &JobId) -> Vec<Look> {
        let Some(job) = self.view.find(id.as_str()) else { return Vec::new() };
        let brief = self.view.jobs[job];
        let (at, finding) = match self.view.is_waiting(job) {
            // Its gates are behind it.
            true if brief.is_outside() => (None, Finding::Open),
            true => self.first_closed(job),
            false => ended(brief),
        };
        let on = match at {
            Some(gate) => self.on(job, gate, &finding),
            None => Vec::new(),
        };
        let mut looks: Vec<Look> = Gate::ALL
            .iter()
            .map(|gate| {
                let finding = match at {
                    _ if !is_set(*gate, brief) && at != Some(*gate) => Finding::NotSet,
                    None => finding.clone(),
                    // Between two attempts nothing is asked.
                    Some(at) if *gate < at && !self.is_between(job) => Finding::Open,
                    Some(_) => Finding::NotReached,
                };
                Look { gate: *gate, finding, on: Vec::new() }
            })
            .collect();
        if let Some(look) = looks.iter_mut().find(|look| Some(look.gate) == at) {
            look.finding = finding;
            look.on = on;
        }
        looks
    }

    /// Returns when a job that waits is given up, if that is so: by its deadline, or by its queue timeout once only
    /// others keep it from starting.
    #[must_use]
    pub fn gives_up_at(&self, id: &JobId) -> Option<Timestamp> {
        let job = self.view.find(id.as_str()).filter(|job| self.view.is_waiting(*job))?;
        let brief = self.view.jobs[job];
        if let Some(external) = &brief.schedule.external {
            return external.due();
        }
        let deadline = brief.schedule.limits.as_deref().and_then(|limits| limits.deadline);
        let in_queue = brief.schedule.ready_at.and_then(|_| Patience::of(brief, self.view.now).queue_until);
        deadline.into_iter().chain(in_queue).min()
    }

    fn is_between(&self, job: usize) -> bool {
        retry_at(self.view.jobs[job], self.view.now).is_some()
    }

    /// Asks the gates of a job that waits, and returns the first that is not open.
    fn first_closed(&mut self, job: usize) -> (Option<Gate>, Finding) {
        let brief = self.view.jobs[job];
        if let Some(at) = retry_at(brief, self.view.now) {
            let detail = brief.schedule.wait_reason.as_ref().map(|reason| reason.detail.clone());
            return (
                Some(Gate::Schedule),
                Finding::Waits { detail: detail.unwrap_or_default(), until: Some(at) },
            );
        }
        let mut found = (None, Finding::Open);
        for gate in Gate::ALL {
            let finding = Finding::of(self.judge(*gate, job));
            if finding != Finding::Open {
                found = (Some(*gate), finding);
                break;
            }
        }
        // Whoever is too late is, whatever it waits for.
        if matches!(found.1, Finding::Open | Finding::Waits { .. })
            && let late @ Finding::Ends { .. } = Finding::of(gate::deadline(job, &self.view))
        {
            return (Some(Gate::Schedule), late);
        }
        found
    }

    fn judge(&mut self, gate: Gate, job: usize) -> Verdict {
        let view = &self.view;
        match gate {
            Gate::After => self.afters.judge(job, view),
            Gate::Artifacts => self.needs.judge(job, view),
            Gate::PinnedHead => gate::pinned_head(job, view),
            Gate::Preconditions => gate::precondition(job, view),
            Gate::Approval => gate::approval(job, view),
            Gate::Locks => match self.locks.judge(job, view) {
                // What is kept for those who wait for longer is known to the pass alone.
                Verdict::Open if !self.ahead(job).is_empty() => self.as_recorded(job, gate),
                verdict => verdict,
            },
            Gate::Schedule => gate::delay(job, view),
            Gate::Capacity => self.slots.judge(job, view),
            Gate::IdempotencyKey => self.keys.judge(job, view),
            Gate::Command if view.jobs[job].is_runnable => Verdict::Open,
            Gate::Command => Verdict::end(JobStatus::Failed, WaitKind::Dependencies, NO_COMMAND),
            // What is shared by name is known to whoever has the turn.
            Gate::CircuitBreaker | Gate::RateLimit => self.as_recorded(job, gate),
        }
    }

    /// Says what the last pass found at a gate.
    fn as_recorded(&self, job: usize, gate: Gate) -> Verdict {
        let brief = self.view.jobs[job];
        match brief.schedule.wait_reason.as_ref().filter(|reason| gate_of(brief, reason) == gate) {
            Some(reason) => gate::waits(brief.status, reason),
            None => Verdict::Open,
        }
    }

    /// Returns the jobs that a gate is about.
    fn on(&self, job: usize, gate: Gate, finding: &Finding) -> Vec<JobId> {
        let (detail, is_end) = match finding {
            Finding::Waits { detail, .. } => (detail, false),
            Finding::Ends { detail, .. } => (detail, true),
            Finding::NotSet | Finding::Open | Finding::NotReached | Finding::Asks(_) => return Vec::new(),
        };
        let brief = self.view.jobs[job];
        let places = match gate {
            Gate::After => return self.unmet(brief, is_end),
            Gate::Artifacts => self.makers_of(job, detail, is_end),
            Gate::Locks => {
                let holders = self.rivals(job, Brief::holds_locks);
                if holders.is_empty() { self.ahead(job) } else { holders }
            }
            Gate::Capacity => self.in_slots(brief),
            Gate::IdempotencyKey => return self.keys.worker(brief).cloned().into_iter().collect(),
            Gate::PinnedHead
            | Gate::Preconditions
            | Gate::Approval
            | Gate::Schedule
            | Gate::CircuitBreaker
            | Gate::Command
            | Gate::RateLimit => Vec::new(),
        };
        places.into_iter().map(|place| self.view.jobs[place].id.clone()).collect()
    }

    /// Returns the jobs that a job is after and that are not over, or have ended otherwise than they should.
    fn unmet(&self, brief: &Brief, is_end: bool) -> Vec<JobId> {
        let mut after: Vec<&After> = brief.schedule.after.iter().collect();
        after.sort_unstable();
        after.dedup();
        let is_unmet = |after: &&&After| match self.view.find(after.job_id.as_str()) {
            Some(on) if is_end => {
                let stands = self.view.stands(on);
                let is_optional = brief.run != self.view.jobs[on].run && is_optional(after, on, &self.view);
                stands.is_terminal() && !after.policy.is_met_by(stands) && !is_optional
            }
            Some(on) => self.view.stands(on).is_active(),
            None => is_end,
        };
        let mut ids: Vec<JobId> = after.iter().filter(is_unmet).map(|after| after.job_id.clone()).collect();
        ids.dedup();
        ids
    }

    /// Returns who makes the artifact that a detail names.
    fn makers_of(&self, job: usize, detail: &str, is_end: bool) -> Vec<usize> {
        let brief = self.view.jobs[job];
        let Some(artifact) = named_artifact(brief, detail) else { return Vec::new() };
        let all = self.makers.get(artifact).map_or(&[][..], Vec::as_slice);
        let is_own = |maker: &&usize| brief.run.is_some() && self.view.jobs[**maker].run == brief.run;
        let only_own = matches!(artifact, Artifact::Custom { .. }) && all.iter().any(|maker| is_own(&maker));
        all.iter()
            .filter(|maker| **maker != job && (!only_own || is_own(maker)))
            .filter(|maker| is_end || self.view.stands(**maker).is_active())
            .copied()
            .collect()
    }

    /// Returns the active jobs of some kind whose locks do not go with those of a job.
    fn rivals(&self, job: usize, is_meant: impl Fn(&Brief) -> bool) -> Vec<usize> {
        let mut rivals: Vec<usize> = Vec::new();
        for lock in &self.view.jobs[job].schedule.locks {
            let clashes = |other: &Lock| {
                let is_shared = lock.mode == LockMode::Shared && other.mode == LockMode::Shared;
                other.key == lock.key && !is_shared
            };
            for other in self.by_lock.get(lock.key.as_str()).into_iter().flatten() {
                let brief = self.view.jobs[*other];
                if *other != job && is_meant(brief) && brief.schedule.locks.iter().any(clashes) {
                    rivals.push(*other);
                }
            }
        }
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }

    /// Returns those who have waited for longer for locks that a job was found to wait for.
    fn ahead(&self, job: usize) -> Vec<usize> {
        let brief = self.view.jobs[job];
        if !waits_for_others(brief, &[WaitKind::Locks]) {
            return Vec::new();
        }
        let place = |job: &Brief| (Patience::of(job, self.view.now).rank, job.created_at);
        self.rivals(job, |other| {
            // Whoever waits for a slot may keep its locks for itself.
            waits_for_others(other, &[WaitKind::Locks, WaitKind::Capacity])
                && (place(other), &other.id) < (place(brief), &brief.id)
        })
    }

    /// Returns those who have the slots that a job waits for.
    fn in_slots(&self, brief: &Brief) -> Vec<usize> {
        let name = |job: &Brief| {
            let limit = job.schedule.limits.as_deref().and_then(|limits| limits.concurrency.as_ref());
            limit.map(|limit| limit.name.clone().unwrap_or_default())
        };
        let has_room = u32::try_from(self.running.len()).is_ok_and(|running| running < self.capacity);
        let own = name(brief);
        let takes = |place: &&usize| !has_room || name(self.view.jobs[**place]) == own;
        let outside = self.outside.iter().filter(|place| has_room && name(self.view.jobs[**place]) == own);
        self.running.iter().filter(takes).chain(outside).copied().collect()
    }
}

const NO_COMMAND: &str = "missing child args";

impl Finding {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Open => Self::Open,
            Verdict::Wait(wait) => Self::Waits { detail: wait.reason.detail, until: wait.wake_at },
            Verdict::End(end) => Self::Ends { status: end.status, detail: end.reason.detail },
            Verdict::Ask(questions) => Self::Asks(questions),
        }
    }
}

/// Tells whether a pass found that a job waits for others in one of these ways.
fn waits_for_others(job: &Brief, kinds: &[WaitKind]) -> bool {
    let is_waiting = job.status.is_active() && job.status != JobStatus::Running;
    is_waiting && job.schedule.wait_reason.as_ref().is_some_and(|reason| kinds.contains(&reason.kind))
}

/// Returns where a job that is over, or runs, came to: the gate that ended it, or past all of them.
fn ended(job: &Brief) -> (Option<Gate>, Finding) {
    let reason = job.schedule.wait_reason.as_ref().filter(|_| job.status.is_terminal());
    match reason {
        Some(reason) => {
            let finding = Finding::Ends { status: job.status, detail: reason.detail.clone() };
            (Some(gate_of(job, reason)), finding)
        }
        None if job.started_at.is_some() || job.status == JobStatus::Running => (None, Finding::Open),
        // It ended before anything of it began, and how far it had come is not kept.
        None if job.status == JobStatus::Cancelled => (None, Finding::NotReached),
        None => (None, Finding::Open),
    }
}

/// Returns the gate that a reason comes from.
fn gate_of(job: &Brief, reason: &WaitReason) -> Gate {
    let detail = reason.detail.as_str();
    match reason.kind {
        WaitKind::Dependencies if detail == NO_COMMAND => Gate::Command,
        WaitKind::Dependencies if named_artifact(job, detail).is_some() => Gate::Artifacts,
        WaitKind::Dependencies => Gate::After,
        WaitKind::PinnedHead => Gate::PinnedHead,
        WaitKind::Preconditions => Gate::Preconditions,
        WaitKind::Approval => Gate::Approval,
        WaitKind::Locks => Gate::Locks,
        WaitKind::Capacity if detail.ends_with("with the same idempotency key") => Gate::IdempotencyKey,
        WaitKind::Capacity => Gate::Capacity,
        WaitKind::Schedule if detail.starts_with("circuit breaker `") => Gate::CircuitBreaker,
        WaitKind::Schedule if detail.starts_with("waiting for rate limit `") => Gate::RateLimit,
        WaitKind::Schedule => Gate::Schedule,
        // It is past all gates.
        WaitKind::External => Gate::Command,
    }
}

/// Returns the artifact of a job that a detail names.
fn named_artifact<'j>(job: &'j Brief, detail: &str) -> Option<&'j Artifact> {
    const WORDS: [&str; 4] = ["waiting on ", "awaiting producer for ", "missing ", "dependency failed for "];
    let label = WORDS.iter().find_map(|words| detail.strip_prefix(words))?;
    let mut needed = job.schedule.dependencies.iter().map(|needed| &needed.artifact);
    needed.find(|artifact| artifact.to_string() == label)
}

/// Tells whether a job asks anything of a gate.
fn is_set(gate: Gate, job: &Brief) -> bool {
    let schedule = &job.schedule;
    let limits = schedule.limits.as_deref();
    match gate {
        Gate::After => !schedule.after.is_empty(),
        Gate::Artifacts => !schedule.dependencies.is_empty(),
        Gate::PinnedHead => schedule.pinned_head.is_some(),
        Gate::Preconditions => !schedule.preconditions.is_empty(),
        Gate::Approval => schedule.approval.as_ref().is_some_and(|approval| approval.required),
        Gate::Locks => !schedule.locks.is_empty(),
        Gate::Schedule => {
            schedule.not_before.is_some()
                || limits.is_some_and(|limits| limits.delay_ms.is_some() || limits.deadline.is_some())
        }
        Gate::Capacity | Gate::Command => true,
        Gate::CircuitBreaker => limits.is_some_and(|limits| limits.breaker.is_some()),
        Gate::IdempotencyKey => limits.is_some_and(|limits| limits.idempotency_key.is_some()),
        Gate::RateLimit => limits.is_some_and(|limits| limits.rate.is_some()),
    }
}
