//! An explanation as people read it: parts with headings, and in them sentences, commands to type and lines of output.

use std::fmt::Write as _;

use super::attempt::{AttemptOutcome, AttemptTold, NoteKind, OutputLine};
use super::chain::Words;
use super::job::{Explanation, GateState, GateTold};
use super::text::exit_beside;
use crate::job::JobStatus;
use crate::time::Timestamp;
use crate::view::{between, long, moment};

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What stands above it; nothing above the first.
    pub heading: Option<&'static str>,
    /// What it says.
    pub lines: Vec<Line>,
}

/// A line of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A sentence, to be broken where it is too long.
    Sentence(String),
    /// A command to type, never broken.
    Command(String),
    /// Something that belongs to the sentence before it.
    Detail(String),
    /// A line of output, never broken.
    Output {
        /// The stream.
        stream: &'static str,
        /// The line.
        text: String,
    },
    /// Cells of a table: a gate, how it is, and what it says.
    Row([String; 3]),
}

/// So many attempts are told; programs get all of them.
const MOST_ATTEMPTS: usize = 5;

impl Explanation {
    /// Returns the parts of the page.
    pub(super) fn parts(&self, words: Words<'_>) -> Vec<Part> {
        let sentence = |text: &str| Line::Sentence(text.to_owned());
        let mut parts = vec![Part { heading: None, lines: vec![sentence(&self.summary)] }];
        let mut add = |heading: &'static str, lines: Vec<Line>| {
            if !lines.is_empty() {
                parts.push(Part { heading: Some(heading), lines });
            }
        };
        add(self.question(), words.why(&self.causes));
        let is_held = self.status.is_active() && self.status != JobStatus::Running;
        add("Gates", if is_held || self.is_ended_by_gate() { self.gate_rows() } else { Vec::new() });
        add("Attempts", self.attempt_lines(words.now));
        let mut next = vec![sentence(&self.next.text)];
        next.extend(self.next.commands.iter().cloned().map(Line::Command));
        next.extend(self.next.dependents.said(words).into_iter().map(Line::Sentence));
        add("Next", next);
        parts
    }

    /// Returns the question that the causes answer.
    const fn question(&self) -> &'static str {
        match self.status {
            JobStatus::Skipped => "Why it was skipped",
            JobStatus::Failed => "Why it failed",
            JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => "Why it is blocked",
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running
            | JobStatus::Succeeded
            | JobStatus::Cancelled => "Why it is not running",
        }
    }

    fn is_ended_by_gate(&self) -> bool {
        self.gates.iter().any(|gate| match gate.state {
            GateState::Blocked | GateState::Failed | GateState::Skipped => true,
            GateState::NotSet
            | GateState::Passed
            | GateState::Waiting
            | GateState::NotReached
            | GateState::Unknown => false,
        })
    }

    fn gate_rows(&self) -> Vec<Line> {
        // Every job wants a slot and has something to start; that is told where it matters.
        let is_told = |gate: &&GateTold| match gate.state {
            GateState::NotSet => false,
            GateState::Passed | GateState::NotReached => !gate.detail.is_empty(),
            GateState::Waiting
            | GateState::Blocked
            | GateState::Failed
            | GateState::Skipped
            | GateState::Unknown => true,
        };
        let shown = self.gates.iter().filter(is_told);
        shown
            .map(|gate| {
                let word = |text: &str| text.replace('_', " ");
                Line::Row([word(gate.gate.name()), word(gate.state.name()), gate.detail.clone()])
            })
            .collect()
    }

    fn attempt_lines(&self, now: Timestamp) -> Vec<Line> {
        let mut lines = Vec::new();
        let first = self.attempts.len().saturating_sub(MOST_ATTEMPTS);
        if first > 0 {
            let earlier = if first == 1 {
                "1 earlier attempt is".to_owned()
            } else {
                format!("{first} earlier attempts are")
            };
            lines.push(Line::Sentence(format!("{earlier} left out; --format json has all of them.")));
        }
        for place in first..=self.attempts.len() {
            for note in self.notes.iter().filter(|note| note.after == place) {
                let what = match note.what {
                    NoteKind::Approved => "approved it",
                    NoteKind::Rejected => "rejected it",
                    NoteKind::Rewound => "had it done again",
                };
                let at = note.at.map(|at| format!(" {}", moment(at, now))).unwrap_or_default();
                lines.push(Line::Sentence(format!("{} {what}{at}.", note.by)));
            }
            let Some(attempt) = self.attempts.get(place) else { continue };
            lines.push(Line::Sentence(attempt.said(now)));
            if let Some(decision) = &attempt.decision {
                let text = format!("{}: {} ({}).", decision.action, decision.reason, decision.reason_code);
                lines.push(Line::Detail(text));
            }
            // What succeeded has nothing to account for.
            let output = attempt.output.iter().filter(|_| attempt.outcome != AttemptOutcome::Succeeded);
            lines.extend(output.map(|line| match line.stream {
                // What was in its way is in the middle of a sentence, which is not to be cut.
                OutputLine::SUPERVISOR => Line::Detail(format!("Its supervisor said: {}", line.text)),
                stream => Line::Output { stream, text: line.text.clone() },
            }));
        }
        lines
    }
}

impl AttemptTold {
    fn said(&self, now: Timestamp) -> String {
        let mut text = format!("Attempt {}", self.attempt);
        if let Some(at) = self.started_at {
            let _ = write!(text, " began {}", moment(at, now));
        }
        let and = if self.started_at.is_some() { " and" } else { "" };
        let took = match (self.started_at, self.ended_at) {
            (Some(start), Some(end)) => format!(" after {}", long(between(start, end))),
            _ => String::new(),
        };
        let code = self.exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
        let killed = exit_beside(self.exit_code, self.message.as_deref());
        let ended = match self.outcome {
            AttemptOutcome::Running => format!("{and} is under way"),
            AttemptOutcome::Succeeded => format!("{and} succeeded{took}"),
            AttemptOutcome::Failed => format!("{and} failed{took}{killed}"),
            AttemptOutcome::TimedOut => format!("{and} was ended{took} by its timeout{code}"),
            AttemptOutcome::Lost => {
                format!("{and} was lost: its supervisor was gone, which was found{took}")
            }
            AttemptOutcome::Blocked => format!("{and} ended as blocked{took}{code}"),
            AttemptOutcome::Cancelled => format!("{and} was ended by a person{took}{code}"),
            AttemptOutcome::Skipped => format!("{and} failed{took}{killed}, which was passed over"),
            AttemptOutcome::Withdrawn => format!("{and} did not come about"),
            AttemptOutcome::Unknown => format!("{and} ended in a way that is not on record"),
        };
        text.push_str(&ended);
        let is_told = match self.outcome {
            AttemptOutcome::Lost => true,
            // An operation says of itself that it succeeded.
            AttemptOutcome::Succeeded => {
                self.message.as_deref().is_some_and(|said| said.ends_with(" succeeded"))
            }
            AttemptOutcome::Running
            | AttemptOutcome::Failed
            | AttemptOutcome::TimedOut
            | AttemptOutcome::Blocked
            | AttemptOutcome::Cancelled
            | AttemptOutcome::Skipped
            | AttemptOutcome::Withdrawn
            | AttemptOutcome::Unknown => false,
        };
        if let Some(message) = told(self.message.as_deref(), self.exit_code).filter(|_| !is_told) {
            text.push_str(": ");
            text.push_str(&message);
        }
        text.push('.');
        text
    }
}

/// Returns what a message says beside the exit code, which is told already.
pub(super) fn told(message: Option<&str>, exit_code: Option<i32>) -> Option<String> {
    let mut text = message?.trim().to_owned();
    if let Some(code) = exit_code {
        text = text.replacen(&format!(" (exit {code})"), "", 1);
        text = text.strip_prefix(&format!("exit code {code}")).map(str::to_owned).unwrap_or(text);
    }
    let text = text.strip_prefix("took too long").unwrap_or(&text);
    let text = text.trim_start_matches(':').trim().trim_end_matches('.');
    (!text.is_empty()).then(|| text.to_owned())
}
