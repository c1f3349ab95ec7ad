//! What somebody who waits for jobs on a terminal sees of them at an instant: a line for each that moves, and the whole.
//! Pure: it reads nothing and draws nothing.

use std::fmt::Write as _;

use tidewheel_core::job::{Brief, JobStatus, WaitKind};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{between, long};

use crate::output::harmless;

/// A job that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followee<'a> {
    pub(super) job: &'a Brief,
    /// Which attempt its policy counts, from zero.
    pub(super) policy_attempt: u32,
    /// How many retries its policy has.
    pub(super) retries: Option<u32>,
    /// What it wrote last, fit to be shown.
    pub(super) latest: Option<&'a str>,
    /// Why its last attempt failed.
    pub(super) failure: Option<&'a str>,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Board {
    /// The jobs that move, in the order of how much there is to see of them.
    pub(super) lines: Vec<String>,
    /// All of them.
    pub(super) whole: Whole,
}

/// All jobs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) done: u64,
    pub(super) total: u64,
    /// What is said beside the numbers.
    pub(super) said: String,
}

impl Board {
    /// Says how the jobs are, in at most so many lines; there are `total` jobs, and they were begun to be waited for
    /// at an instant.
    pub(super) fn of(jobs: &[Followee<'_>], time: Time, room: usize) -> Self {
        let mut moving: Vec<(u8, &Followee<'_>)> =
            jobs.iter().filter_map(|followee| Some((rank(followee.job)?, followee))).collect();
        moving.sort_by_key(|(rank, _)| *rank);
        let mut lines: Vec<String> = moving.iter().map(|(_, followee)| line(followee, time.now)).collect();
        if lines.len() > room {
            let shown = room.saturating_sub(1);
            let more = lines.len() - shown;
            lines.truncate(shown);
            if room > 0 {
                lines.push(format!("and {more} more"));
            }
        }
        Self { lines, whole: Whole::of(jobs, time) }
    }
}

/// When it is, and since when somebody waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) began: Timestamp,
    pub(super) now: Timestamp,
}

impl Whole {
    fn of(jobs: &[Followee<'_>], time: Time) -> Self {
        let count = |is: fn(&Brief) -> bool| jobs.iter().filter(|followee| is(followee.job)).count() as u64;
        let failed = count(|job| {
            matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) || job.status.is_blocked()
        });
        let waiting = count(|job| job.status.is_active() && job.status != JobStatus::Running);
        let mut said = String::new();
        if failed > 0 {
            let _ = write!(said, "{failed} failed, ");
        }
        if waiting > 0 {
            let _ = write!(said, "{waiting} waiting, ");
        }
        said.push_str(&seconds(time.began, time.now));
        Self { done: count(|job| !job.is_open()), total: jobs.len() as u64, said }
    }
}

/// Says how much there is to see of a job, the least first; `None` if nothing.
fn rank(job: &Brief) -> Option<u8> {
    let kind = job.schedule.wait_reason.as_ref().map(|reason| reason.kind);
    match job.status {
        JobStatus::Running => Some(0),
        JobStatus::WaitingOnApproval => Some(2),
        JobStatus::WaitingOnLocks => Some(3),
        JobStatus::Queued | JobStatus::WaitingOnDeps => match kind {
            Some(WaitKind::External) => Some(0),
            Some(WaitKind::Schedule) => Some(1),
            Some(WaitKind::Approval) => Some(2),
            Some(WaitKind::Locks | WaitKind::PinnedHead | WaitKind::Preconditions) => Some(3),
            Some(WaitKind::Capacity) => Some(4),
            // Whoever waits for another job is counted; that one is shown.
            Some(WaitKind::Dependencies) | None => None,
        },
        JobStatus::Succeeded
        | JobStatus::Failed
        | JobStatus::Cancelled
        | JobStatus::BlockedByDependency
        | JobStatus::BlockedByApproval
        | JobStatus::Skipped => None,
    }
}

fn line(followee: &Followee<'_>, now: Timestamp) -> String {
    let job = followee.job;
    let name = job.node.as_ref().map_or(job.id.as_str(), |node| node.as_str());
    let mut words = vec![name.to_owned()];
    if job.status == JobStatus::Running {
        words.extend(job.started_at.map(|at| seconds(at, now)));
        words.extend(attempt(followee));
        // A tab would be written out, and there are no columns here.
        words.extend(followee.latest.map(|latest| latest.replace('\t', " ")));
    } else {
        words.push(waits(followee, now));
    }
    harmless(&words.join("  ")).into_owned()
}

/// Says which attempt it is, where there may be several.
fn attempt(followee: &Followee<'_>) -> Option<String> {
    let number = followee.policy_attempt.saturating_add(1);
    match followee.retries {
        Some(retries) if retries > 0 => Some(format!("attempt {number} of {}", retries.saturating_add(1))),
        Some(_) | None if followee.job.attempt > 1 => Some(format!("attempt {}", followee.job.attempt)),
        Some(_) | None => None,
    }
}

/// Says what a job waits for, and for how long yet.
fn waits(followee: &Followee<'_>, now: Timestamp) -> String {
    let job = followee.job;
    let wait = job.wait().unwrap_or_else(|| job.status.name());
    let Some(due) = job.schedule.not_before else { return wait.to_owned() };
    // The record has the instant; whoever waits wants to know how long.
    let what = wait.split(" at ").next().unwrap_or(wait);
    let mut said = format!("{what} in {}", seconds(now, due));
    if let Some(failure) = followee.failure {
        let _ = write!(said, ": {failure}");
    }
    said
}

/// Says how long something takes, in whole seconds: what changes with each look cannot be read.
fn seconds(from: Timestamp, to: Timestamp) -> String {
    const SECOND: u64 = 1_000_000_000;
    long(between(from, to) / SECOND * SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_progress() {
        let mut foreign = Foreign::new("progress");
        for _ in 0..foreign::count() / 2 {
            let (text, why) = (foreign.text(), foreign.text());
            let reason = json!({ "kind": "schedule", "detail": why });
            let schedule = json!({ "wait_reason": reason, "not_before": "2026-02-01T12:01:18Z" });
            let jobs = [
                job("a", "running", json!({ "started_at": "2026-02-01T12:01:00Z" })),
                job("b", "queued", json!({ "schedule": schedule })),
            ];
            let latest = crate::view::logs::plain(&text);
            let all = [
                Followee { latest: Some(&latest), ..followee(&jobs[0]) },
                Followee { failure: Some(&text), ..followee(&jobs[1]) },
            ];
            let lines = Board::of(&all, time(), 9).lines;
            Shown { text: &lines.join("\n"), lines: Some(2), ..Shown::default() }.check(&(text, why));
        }
    }
    use serde_json::{Value, json};

    fn job(id: &str, status: &str, rest: Value) -> Brief {
        let mut form = json!({ "id": id, "status": status, "created_at": "2026-02-01T12:00:00Z", "name": id,
            "is_runnable": true, "schedule": {} });
        form.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(form).unwrap()
    }

    const fn followee(job: &Brief) -> Followee<'_> {
        Followee { job, policy_attempt: 0, retries: None, latest: None, failure: None }
    }

    fn time() -> Time {
        let at = |text| Timestamp::parse(text).unwrap();
        Time { began: at("2026-02-01T12:00:00Z"), now: at("2026-02-01T12:01:05.9Z") }
    }

    #[test]
    fn a_running_job_has_its_time_its_attempt_and_its_last_line() {
        let job = job("a", "running", json!({ "started_at": "2026-02-01T12:01:00Z", "attempt": 4 }));
        let one =
            Followee { policy_attempt: 1, retries: Some(5), latest: Some("[stdout]\t50%"), ..followee(&job) };
        let board = Board::of(&[one], time(), 9);
        assert_eq!(board.lines, ["a  5s  attempt 2 of 6  [stdout] 50%"]);
        let board = Board::of(&[followee(&job)], time(), 9);
        assert_eq!(board.lines, ["a  5s  attempt 4"]);
    }

    #[test]
    fn a_retry_says_in_how_long_and_why() {
        let reason = json!({ "kind": "schedule", "detail": "retry 2 of 5 at 2026-02-01T12:01:18Z" });
        let schedule = json!({ "wait_reason": reason, "not_before": "2026-02-01T12:01:18Z" });
        let job = job("a", "queued", json!({ "schedule": schedule }));
        let board = Board::of(&[Followee { failure: Some("exit 75"), ..followee(&job) }], time(), 9);
        assert_eq!(board.lines, ["a  retry 2 of 5 in 12s: exit 75"]);
    }

    #[test]
    fn what_moves_comes_first_and_what_has_no_room_is_counted() {
        let wait = |kind: &str| json!({ "schedule": { "wait_reason": { "kind": kind, "detail": "" } } });
        let jobs = [
            job("deps", "waiting_on_deps", wait("dependencies")),
            job("locks", "waiting_on_locks", wait("locks")),
            job("asks", "waiting_on_approval", wait("approval")),
            job("over", "failed", json!({})),
            job("fine", "succeeded", json!({})),
            job("moves", "running", json!({})),
        ];
        let all: Vec<Followee<'_>> = jobs.iter().map(followee).collect();
        let board = Board::of(&all, time(), 9);
        assert_eq!(board.lines, ["moves", "asks  approval", "locks  locks"]);
        assert_eq!(board.whole, Whole { done: 2, total: 6, said: "1 failed, 3 waiting, 1m 5s".to_owned() });
        assert_eq!(Board::of(&all, time(), 2).lines, ["moves", "and 2 more"]);
        assert_eq!(Board::of(&all, time(), 0).lines, [""; 0]);
    }
}
