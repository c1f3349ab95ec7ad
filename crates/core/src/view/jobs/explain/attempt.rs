//! What the attempts of a job came to, from its events alone: when each began and ended, what was decided and why, and
//! where its output is in the logs.

use serde::Serialize;

use super::text::instant;
use crate::decide::{Action, Decision};
use crate::job::{JobEvent, JobEventKind, JobStatus, LogExtent, NodeOutcome, budget_told};
use crate::policy::word_enum;
use crate::time::Timestamp;
use crate::view::explain::why;
use crate::view::{absolute, between};

word_enum! {
    /// What an attempt came to.
    pub enum AttemptOutcome {
        /// It is under way.
        Running = "running",
        /// It did what it should.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
        /// It took longer than its policy allows, and was ended.
        TimedOut = "timed_out",
        /// Its supervisor was gone.
        Lost = "lost",
        /// Somebody has to do something first.
        Blocked = "blocked",
        /// A person ended it.
        Cancelled = "cancelled",
        /// Its failure was passed over.
        Skipped = "skipped",
        /// It never came about.
        Withdrawn = "withdrawn",
        /// Nobody wrote down what came of it.
        Unknown = "unknown",
    }
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptTold {
    /// Its number over the life of the job, from one.
    pub attempt: u32,
    /// The number that its policy counts, from zero.
    pub policy_attempt: Option<u32>,
    /// When it began.
    #[serde(serialize_with = "instant")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "instant")]
    pub ended_at: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What it came to.
    pub outcome: AttemptOutcome,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// What happened.
    pub message: Option<String>,
    /// What was decided then.
    pub decision: Option<DecisionTold>,
    /// The last lines that it wrote.
    pub output: Vec<OutputLine>,
    /// Where its output begins in the logs; `None` if they were emptied since.
    #[serde(skip)]
    offsets: Option<[u64; 2]>,
}

/// What was decided about a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionTold {
    /// `RETRY_AT`, `FAIL` or `WAIT`.
    pub action: &'static str,
    /// When the next attempt is due.
    #[serde(serialize_with = "instant")]
    pub at: Option<Timestamp>,
    /// The reason as a code.
    pub reason_code: String,
    /// The reason in words.
    pub reason: String,
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputLine {
    /// `stdout` or `stderr`, or `supervisor` for what its supervisor said.
    pub stream: &'static str,
    /// The line, made harmless.
    pub text: String,
}

impl OutputLine {
    /// What its supervisor said, which is nothing unless it broke.
    pub const SUPERVISOR: &str = "supervisor";
}

word_enum! {
    /// What else happened to a job.
    pub enum NoteKind {
        /// A person let it go on.
        Approved = "approved",
        /// A person did not.
        Rejected = "rejected",
        /// It was done again from the beginning.
        Rewound = "rewound",
    }
}

/// Something that a person, or a loop, did to a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Note {
    /// When.
    #[serde(serialize_with = "instant")]
    pub at: Option<Timestamp>,
    /// What.
    pub what: NoteKind,
    /// Who.
    pub by: String,
    /// After how many attempts.
    #[serde(skip)]
    pub(super) after: usize,
}

/// What happened to a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Its attempts in order.
    pub attempts: Vec<AttemptTold>,
    /// What else happened.
    pub notes: Vec<Note>,
    /// Why it may not go back any more, if its end says so.
    pub(super) spent: Option<String>,
}

/// A part of a log: the file that is written, or the one that was put aside before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Whether it is in the file that was put aside.
    pub is_aside: bool,
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
}

impl Told {
    /// Tells what happened from the events of a job that stands so. Its policy allows so many retries, if that is known.
    #[must_use]
    pub fn of(events: &[JobEvent], status: JobStatus, retries_allowed: Option<u32>) -> Self {
        let mut told = Self::default();
        for event in events {
            told.add(event, retries_allowed);
        }
        let is_running = status == JobStatus::Running;
        if let Some(last) = told.attempts.last_mut()
            && is_running
            && last.outcome == AttemptOutcome::Unknown
        {
            last.outcome = AttemptOutcome::Running;
        }
        told
    }

    fn add(&mut self, event: &JobEvent, retries_allowed: Option<u32>) {
        let (attempt, at) = (event.attempt, event.at);
        match &event.event {
            JobEventKind::Dispatched { policy_attempt, stdout_offset, stderr_offset } => {
                self.attempts.push(AttemptTold {
                    policy_attempt: Some(*policy_attempt),
                    started_at: Some(at),
                    offsets: Some([*stdout_offset, *stderr_offset]),
                    ..AttemptTold::new(attempt)
                });
            }
            JobEventKind::AttemptFailed { exit_code, message, decision, .. } => {
                let told = self.open(attempt);
                told.end(at, failure(*exit_code, message), *exit_code, Some(message.clone()));
                told.decision = Some(DecisionTold::of(*decision, retries_allowed));
            }
            JobEventKind::Withdrawn { reason } => {
                self.open(attempt).end(at, AttemptOutcome::Withdrawn, None, Some(reason.clone()));
            }
            JobEventKind::Completed { outcome, exit_code, summary } => {
                self.spent = summary.as_deref().and_then(budget_told);
                // A cancellation of a job that was never started belongs to no attempt.
                if attempt == 0 || (self.attempts.is_empty() && *outcome == NodeOutcome::Cancelled) {
                    return;
                }
                let told = self.open(attempt);
                let is_judged = told.decision.is_some();
                match outcome {
                    // The attempt failed all the same, and only what follows from it is another matter.
                    NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Skipped if is_judged => {}
                    NodeOutcome::Succeeded if is_judged => told.message.clone_from(summary),
                    NodeOutcome::Succeeded => {
                        told.end(at, AttemptOutcome::Succeeded, *exit_code, summary.clone());
                    }
                    NodeOutcome::Failed => {
                        let how = failure(*exit_code, summary.as_deref().unwrap_or_default());
                        told.end(at, how, *exit_code, summary.clone());
                    }
                    NodeOutcome::Blocked => {
                        told.end(at, AttemptOutcome::Blocked, *exit_code, summary.clone());
                    }
                    // It was between two attempts, and the last one had ended before.
                    NodeOutcome::Cancelled if told.ended_at.is_some() => {}
                    NodeOutcome::Cancelled => {
                        told.end(at, AttemptOutcome::Cancelled, *exit_code, summary.clone());
                    }
                    NodeOutcome::Skipped => {
                        told.end(at, AttemptOutcome::Skipped, *exit_code, summary.clone());
                    }
                }
            }
            JobEventKind::Rewound { by } => {
                self.spent = None;
                // The logs are emptied then.
                for told in &mut self.attempts {
                    told.offsets = None;
                }
                self.note(at, NoteKind::Rewound, by);
            }
            JobEventKind::Decided { approved, by } => {
                let what = if *approved { NoteKind::Approved } else { NoteKind::Rejected };
                self.note(at, what, by);
            }
        }
    }

    /// Returns the attempt with a number; whoever wrote the events by hand may have left out its beginning.
    fn open(&mut self, attempt: u32) -> &mut AttemptTold {
        if self.attempts.last().is_none_or(|last| last.attempt != attempt) {
            self.attempts.push(AttemptTold::new(attempt));
        }
        self.attempts.last_mut().expect("invariant: one was put there just now")
    }

    fn note(&mut self, at: Timestamp, what: NoteKind, by: &str) {
        self.notes.push(Note { at: Some(at), what, by: by.to_owned(), after: self.attempts.len() });
    }

    /// Returns where the output of each attempt, or the last of it, is in the files of a log: `stdout` is stream 0,
    /// `stderr` 1.
    #[must_use]
    pub fn pieces(&self, stream: usize, log: LogExtent) -> Vec<Option<Piece>> {
        let offset = |attempt: &AttemptTold| attempt.offsets.and_then(|offsets| offsets.get(stream).copied());
        // Logs are emptied as a whole, so that what is known is known of the last attempts.
        let known = self.attempts.iter().rev().map_while(offset).count();
        let first = self.attempts.len() - known;
        let recorded: Vec<u64> = self.attempts[first..].iter().filter_map(offset).collect();
        let mut pieces = vec![None; self.attempts.len()];
        let mut end = log.end();
        for (index, place) in log.places(&recorded).into_iter().enumerate().rev() {
            pieces[first + index] = Piece::of(log, place, end);
            end = place.min(end);
        }
        pieces
    }
}

impl Piece {
    /// Returns the last file that something between two places is in, and where in it.
    fn of(log: LogExtent, from: u64, to: u64) -> Option<Self> {
        let base = log.base();
        if to > base || from >= base {
            return Some(Self {
                is_aside: false,
                from: from.saturating_sub(base),
                to: to.saturating_sub(base),
            });
        }
        let within = |place: u64| place.saturating_sub(log.dropped);
        (to > log.dropped).then(|| Self { is_aside: true, from: within(from), to: within(to) })
    }
}

impl AttemptTold {
    const fn new(attempt: u32) -> Self {
        Self {
            attempt,
            policy_attempt: None,
            started_at: None,
            ended_at: None,
            duration_ms: None,
            outcome: AttemptOutcome::Unknown,
            exit_code: None,
            message: None,
            decision: None,
            output: Vec::new(),
            offsets: None,
        }
    }

    fn end(&mut self, at: Timestamp, how: AttemptOutcome, exit_code: Option<i32>, message: Option<String>) {
        self.ended_at = Some(at);
        self.duration_ms = self.started_at.map(|start| between(start, at) / 1_000_000);
        self.outcome = how;
        self.exit_code = exit_code;
        self.message = message;
    }
}

impl DecisionTold {
    fn of(decision: Decision, retries_allowed: Option<u32>) -> Self {
        let at = match decision.action {
            Action::RetryAt(at) => Some(at),
            Action::Wait(at) => at,
            Action::Fail => None,
        };
        let reason = match (decision.action, at) {
            (Action::RetryAt(_), Some(at)) => {
                let of = retries_allowed.map(|allowed| format!(" of {allowed}")).unwrap_or_default();
                format!("retry {}{of} is due at {}", decision.attempt_next, absolute(at))
            }
            (Action::RetryAt(_) | Action::Wait(_) | Action::Fail, _) => why(decision.reason, retries_allowed),
        };
        Self { action: decision.action.name(), at, reason_code: decision.reason.to_string(), reason }
    }
}

/// Says how an attempt failed that ended so.
fn failure(exit_code: Option<i32>, message: &str) -> AttemptOutcome {
    if message.starts_with("its supervisor is gone") || message.starts_with("its supervisor was gone") {
        AttemptOutcome::Lost
    } else if exit_code == Some(124) && message.starts_with("took too long") {
        AttemptOutcome::TimedOut
    } else {
        AttemptOutcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(offsets: &[u64]) -> Told {
        let attempts = offsets.iter().enumerate().map(|(number, offset)| AttemptTold {
            offsets: Some([*offset, 0]),
            ..AttemptTold::new(u32::try_from(number).unwrap() + 1)
        });
        Told { attempts: attempts.collect(), ..Told::default() }
    }

    fn piece(is_aside: bool, from: u64, to: u64) -> Option<Piece> {
        Some(Piece { is_aside, from, to })
    }

    fn log(dropped: u64, aside: u64, length: u64) -> LogExtent {
        LogExtent { dropped, aside, length }
    }

    #[test]
    fn each_attempt_ends_where_the_next_begins() {
        assert_eq!(
            told(&[0, 10, 30]).pieces(0, log(0, 0, 45)),
            [piece(false, 0, 10), piece(false, 10, 30), piece(false, 30, 45)]
        );
    }

    #[test]
    fn a_log_that_was_put_aside_is_found_there_and_what_was_dropped_is_not() {
        // Put aside in the second attempt: it ends in the new file, and the first is in the old one.
        assert_eq!(
            told(&[0, 10, 25]).pieces(0, log(0, 20, 9)),
            [piece(true, 0, 10), piece(false, 0, 5), piece(false, 5, 9)]
        );
        // Put aside in the last one.
        assert_eq!(told(&[0, 10]).pieces(0, log(0, 12, 4)), [piece(true, 0, 10), piece(false, 0, 4)]);
        // Put aside twice, also where the places count from the file of their time.
        for offsets in [[0, 10, 35, 53], [0, 10, 5, 3]] {
            assert_eq!(
                told(&offsets).pieces(0, log(30, 20, 9)),
                [None, piece(true, 0, 5), piece(false, 0, 3), piece(false, 3, 9)],
                "{offsets:?}"
            );
        }
    }

    #[test]
    fn what_was_emptied_is_nowhere() {
        let mut told = told(&[0, 10, 30]);
        told.attempts[0].offsets = None;
        assert_eq!(told.pieces(0, log(0, 0, 45)), [None, piece(false, 10, 30), piece(false, 30, 45)]);
    }
}
