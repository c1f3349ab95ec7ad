//! The gates of time: not before an instant, not after another, and not for ever in the queue. Also, who has waited for
//! so long that it goes before others.

use super::verdict::{Refusal, Verdict, Wait};
use super::view::View;
use crate::job::brief::Brief;
use crate::job::schedule::{Approval, WaitKind};
use crate::job::status::JobStatus;
use crate::policy::Priority;
use crate::time::{Span, Timestamp};

/// As long as this a job is kept back by others; then it rises by one priority, and again after as long.
pub(super) const PATIENCE: Span = Span::from_secs(60);

/// Says whether the time of a job has come.
pub(in crate::job) fn judge(job: usize, view: &View<'_>) -> Verdict {
    let brief = view.jobs[job];
    // The delay counts from when the job could begin, which is remembered from now on.
    let since = brief.schedule.ready_at.unwrap_or(view.now);
    let delayed = delay_of(brief).map(|delay| since.saturating_add(delay));
    match brief.schedule.not_before.into_iter().chain(delayed).max().filter(|at| *at > view.now) {
        None => Verdict::Open,
        Some(at) => {
            let wait = Wait::new(JobStatus::Queued, WaitKind::Schedule, format!("not before {at}")).until(at);
            if delayed.is_some() { wait.ready() } else { Verdict::Wait(wait) }
        }
    }
}

/// Returns how long a job waits before its first attempt.
fn delay_of(job: &Brief) -> Option<Span> {
    let delay = job.schedule.limits.as_deref()?.delay_ms.map(Span::from_millis);
    delay.filter(|_| job.started_at.is_none())
}

/// Says whether it is too late for a job, whatever it waits for.
pub(in crate::job) fn judge_deadline(job: usize, view: &View<'_>) -> Verdict {
    let schedule = &view.jobs[job].schedule;
    // A person who is asked because of a failure has all the time.
    if schedule.approval.as_ref().is_some_and(Approval::is_of_pause) {
        return Verdict::Open;
    }
    let limits = schedule.limits.as_deref();
    match limits.and_then(|limits| limits.deadline).filter(|at| *at <= view.now) {
        None => Verdict::Open,
        Some(_) => Verdict::refuse(Refusal::Late, "deadline exceeded"),
    }
}

/// How long a job has been ready, and what follows from it.
#[derive(Clone, Copy)]
pub(in crate::job) struct Patience {
    /// When its place in the queue is lost.
    pub(in crate::job) queue_until: Option<Timestamp>,
    /// Who goes first: the lower number.
    pub(in crate::job) rank: u8,
    /// Whether it has waited for so long that others have to make way.
    pub(in crate::job) is_over: bool,
    now: Timestamp,
}

impl Patience {
    pub(in crate::job) fn of(job: &Brief, now: Timestamp) -> Self {
        let limits = job.schedule.limits.as_deref();
        // A record that was written by hand may say that the job waits, and not since when.
        let unknown = if job.status == JobStatus::WaitingOnLocks { job.created_at } else { now };
        // Who waits because its policy says so is not in the queue yet.
        let since =
            job.schedule.ready_at.unwrap_or(unknown).saturating_add(delay_of(job).unwrap_or_default());
        let timeout = limits.and_then(|limits| limits.queue_timeout_ms).map(Span::from_millis);
        let rank = match limits.and_then(|limits| limits.priority).unwrap_or(Priority::Normal) {
            Priority::High => 0,
            Priority::Normal => 1,
            Priority::Low => 2,
        };
        let rises = [PATIENCE, Span::from_millis(PATIENCE.as_millis() * 2)];
        let risen = rises.iter().filter(|span| now.has_reached(since, **span)).count();
        Self {
            queue_until: timeout.map(|span| since.saturating_add(span)),
            rank: u8::try_from(risen).map_or(0, |risen| u8::saturating_sub(rank, risen)),
            is_over: risen > 0,
            now,
        }
    }

    /// Says whether a job that would have to wait may still do so.
    pub(in crate::job) fn judge(&self, wait: Wait) -> Verdict {
        match self.queue_until {
            Some(until) if until <= self.now && wait.is_ready => {
                Verdict::end(JobStatus::Failed, WaitKind::Schedule, "queue timeout")
            }
            Some(until) if wait.is_ready => {
                let wake_at = Some(wait.wake_at.map_or(until, |at| at.min(until)));
                Verdict::Wait(Wait { wake_at, ..wait })
            }
            Some(_) | None => Verdict::Wait(wait),
        }
    }
}
