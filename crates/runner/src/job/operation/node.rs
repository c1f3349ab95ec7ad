//! What an operation is given, and what it gives back.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Map, Value};
use tidewheel_core::job::{ManifestNode, NodeOutcome, Record, killed_by};
use tidewheel_core::policy::{ErrorCode, Failure};
use tidewheel_store::jobs::Payload;

use super::around::Around;
use super::execution_root::ExecutionRootError;
use super::task::Task;
use crate::job::attempt::{AttemptError, End, Ended};
use crate::process::{not_started, said};

/// Runs a program in the surroundings of the attempt, and comes back when nothing of it is left.
pub type Execute<'a> = dyn FnMut(Task) -> Result<Ended, AttemptError> + 'a;

/// The node that an attempt is of.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// What is kept of it with its run.
    pub node: &'a ManifestNode,
    /// The record of its job.
    pub record: &'a Record,
    /// The start that this is, counted from one over the life of the job.
    pub attempt: u32,
    /// The root of the repository.
    pub root: &'a Path,
    /// Arguments that this attempt has instead of some of its own.
    pub overrides: Option<&'a Map<String, Value>>,
    /// What it may ask, and where it may write down what it does.
    pub around: &'a dyn Around,
}

impl<'a> Node<'a> {
    /// Returns an argument; one that is null is none.
    pub(super) fn arg(&self, name: &str) -> Option<&'a Value> {
        let own = || {
            // What is to be run comes from one of the two, and whoever replaces one does not want the other.
            let is_replaced = RUN.contains(&name)
                && self
                    .overrides
                    .is_some_and(|overrides| RUN.iter().any(|name| overrides.contains_key(*name)));
            self.node.args.get(name).filter(|_| !is_replaced)
        };
        self.overrides.and_then(|overrides| overrides.get(name)).or_else(own).filter(|value| !value.is_null())
    }

    /// Returns an argument that says yes or no, as people write it.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.arg(name).and_then(flag)
    }

    /// Returns the first of its gates of a kind.
    pub(super) fn gate(&self, kind: &str) -> Option<Gate<'a>> {
        self.node.gates.iter().find_map(|gate| Gate::of(gate, kind))
    }
}

/// The arguments that say what to run.
pub(super) const RUN: [&str; 2] = ["command", "script"];

/// A gate of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate<'a>(&'a Map<String, Value>);

impl<'a> Gate<'a> {
    /// Reads `{ kind = "script", … }`, and `{ script = { … } }`, too.
    fn of(gate: &'a Value, kind: &str) -> Option<Self> {
        let fields = gate.as_object()?;
        if fields.get("kind").and_then(Value::as_str) == Some(kind) {
            return Some(Self(fields));
        }
        fields.get(kind).and_then(Value::as_object).filter(|_| fields.len() == 1).map(Self)
    }

    /// Returns a field that is there.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field that says yes or no.
    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.get(name).and_then(flag)
    }
}

fn flag(value: &Value) -> Option<bool> {
    if let Some(flag) = value.as_bool() {
        return Some(flag);
    }
    match value.as_str()?.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnd {
    /// How.
    pub outcome: NodeOutcome,
    /// The code.
    pub exit_code: Option<i32>,
    /// What it failed of, for policies to match.
    pub code: Option<ErrorCode>,
    /// What happened, in a line.
    pub summary: String,
    /// The last of what it complained about.
    pub complaint: Option<String>,
    /// What went wrong with its logs; some of its output is lost then.
    pub log_error: Option<String>,
    /// Whether another attempt is of no use.
    pub non_retryable: bool,
    /// What is in the artifacts that it made.
    pub payloads: Vec<Payload>,
    /// What else is to be known of it.
    pub metadata: Vec<(&'static str, Value)>,
}

impl NodeEnd {
    /// The code of what is blocked.
    pub const BLOCKED: i32 = 10;

    /// Returns a good end.
    pub fn succeeded(summary: impl Into<String>) -> Self {
        Self::new(NodeOutcome::Succeeded, 0, summary.into())
    }

    /// Returns a bad end, with the code of a process or one like it.
    pub fn failed(summary: impl Into<String>, exit_code: i32) -> Self {
        let code = Some(ErrorCode::Number(i64::from(exit_code)));
        Self { code, ..Self::new(NodeOutcome::Failed, exit_code, summary.into()) }
    }

    /// Returns the end of what somebody has to do something for first.
    pub fn blocked(summary: impl Into<String>) -> Self {
        Self::new(NodeOutcome::Blocked, Self::BLOCKED, summary.into())
    }

    fn new(outcome: NodeOutcome, exit_code: i32, summary: String) -> Self {
        Self {
            outcome,
            exit_code: Some(exit_code),
            code: None,
            summary,
            complaint: None,
            log_error: None,
            non_retryable: false,
            payloads: Vec::new(),
            metadata: Vec::new(),
        }
    }

    /// Says that another attempt would end alike.
    #[must_use]
    pub const fn non_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    /// Returns the failure that a policy decides about; `None` if it is no failure.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match self.outcome {
            NodeOutcome::Failed | NodeOutcome::Blocked => {}
            NodeOutcome::Succeeded | NodeOutcome::Cancelled | NodeOutcome::Skipped => return None,
        }
        let message = match &self.complaint {
            Some(complaint) => format!("{}: {complaint}", self.summary),
            None => self.summary.clone(),
        };
        let mut failure = Failure::new(message);
        failure.code.clone_from(&self.code);
        failure.non_retryable = self.non_retryable;
        Some(failure)
    }

    /// Returns the end of a node whose process did not succeed; `what` failed.
    pub(super) fn of(what: &str, ended: &Result<Ended, AttemptError>) -> Self {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Self::of_error(what, error),
        };
        let code = ended.end.exit_code();
        let (mut end, word) = match ended.end {
            End::Exited(0) => (Self::succeeded(format!("{what} succeeded")), None),
            End::Exited(_) => (Self::failed(format!("{what} failed (exit {code})"), code), None),
            End::Signalled(number) => {
                (Self::failed(format!("{what} {} (exit {code})", killed_by(number)), code), None)
            }
            End::TimedOut => (Self::failed(format!("{what} timed out (exit {code})"), code), Some("timeout")),
            End::Silent => {
                (Self::failed(format!("{what} gave no sign of life (exit {code})"), code), Some("heartbeat"))
            }
            End::Cancelled => (Self::new(NodeOutcome::Cancelled, code, format!("{what} cancelled")), None),
        };
        if let Some(word) = word {
            end.code = Some(ErrorCode::Word(Cow::Borrowed(word)));
        }
        end.complaint = said(&ended.stderr);
        end.log_error = ended.log_error.as_ref().map(ToString::to_string);
        end
    }

    /// Returns the end of a node whose process was not started or not seen to its end.
    fn of_error(what: &str, error: &AttemptError) -> Self {
        let AttemptError::Start(start) = error else {
            let failure = Failure::of(error);
            let end = Self::failed(format!("{what} failed: {}", failure.message), 1);
            // Two attempts of one job must not run at once.
            let is_left = matches!(error, AttemptError::Left { .. });
            return if is_left { end.non_retryable() } else { end };
        };
        let failure = not_started(start);
        // As a shell would say it.
        let code = if failure.code == Some("not_executable".into()) { 126 } else { 127 };
        let end = Self::failed(format!("{what} failed: {}", failure.message), code);
        if failure.non_retryable { end.non_retryable() } else { end }
    }
}

impl From<ExecutionRootError> for NodeEnd {
    fn from(error: ExecutionRootError) -> Self {
        Self::failed(error.to_string(), 1).non_retryable()
    }
}
