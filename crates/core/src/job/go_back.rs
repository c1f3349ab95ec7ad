//! Loops: a job that ended goes back to a node before it, as often as it may. Which jobs are rewound then is not its
//! business.

use super::ended::Ended;
use super::finish::{Finish, Finished, policy_of};
use super::id::NodeId;
use super::manifest::ManifestNode;
use super::metadata::Metadata;
use super::outcome::NodeOutcome;
use super::record::Record;
use crate::time::Timestamp;

/// Where a loop goes: the jobs of these nodes, and all that is after them, are to be rewound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoBack {
    /// The nodes.
    pub to: Vec<NodeId>,
    /// Before this instant they do not start again.
    pub not_before: Option<Timestamp>,
}

/// Takes the loop of a job that ended without an attempt of its own, if it has one for that end: a gate blocked it, or a
/// person rejected or cancelled it.
pub fn loop_back(record: &mut Record, node: &ManifestNode, at: Timestamp) -> Option<GoBack> {
    let outcome = NodeOutcome::of(record.status)?;
    let policy = policy_of(Some(node));
    let ended = Ended { outcome, ..Ended::exited(1, at) };
    let mut end =
        Finish { record, node: Some(node), policy: &policy, ended: &ended, finished: Finished::default() };
    end.loop_back(outcome);
    end.finished.go_back
}

/// Lets a job that ended stay where it is: the loop that it was about to take is not taken, and does not count.
pub fn stay(record: &mut Record) {
    if record.loop_targets().is_empty() {
        return;
    }
    let metadata = &mut record.metadata;
    metadata.clear(Metadata::LOOP_TO);
    match metadata.number(Metadata::LOOP_COUNT).unwrap_or(0) {
        0 | 1 => metadata.clear(Metadata::LOOP_COUNT),
        count => metadata.set(Metadata::LOOP_COUNT, count - 1),
    }
    record.schedule.not_before = None;
}

/// Says that a job may not go back any more, where the summary of its end says so.
#[must_use]
pub fn budget_told(summary: &str) -> Option<String> {
    let (failed, budget) = summary.strip_suffix(')')?.split_once(EXHAUSTED)?;
    let (what, attempt) = failed.split_once(ON_ATTEMPT)?;
    let budget: u32 = budget.parse().ok()?;
    attempt.parse::<u32>().ok()?;
    // A stop condition counts its own attempts, and others the ways back.
    let (one, many) = match what {
        STOP_FAILED => ("retry", "retries"),
        FAILED => ("round", "rounds"),
        _ => return None,
    };
    Some(match budget {
        0 => format!("its `retry.budget` allows no {one}"),
        1 => format!("the 1 {one} that its `retry.budget` allows was used"),
        more => format!("the {more} {many} that its `retry.budget` allows were used"),
    })
}

const STOP_FAILED: &str = "stop-condition failed";
const FAILED: &str = "failed";
const ON_ATTEMPT: &str = " on attempt ";
const EXHAUSTED: &str = "; retry budget exhausted (";

impl Finish<'_> {
    /// Takes the loop of an outcome, if there is one and it may still be taken.
    pub(super) fn loop_back(&mut self, outcome: NodeOutcome) {
        let count = self.loops();
        if !self.has_loop(outcome) || count >= self.budget() {
            return;
        }
        let edges = self.node.into_iter().flat_map(|node| &node.loops).filter(|edge| edge.on == outcome);
        let to: Vec<NodeId> = edges.map(|edge| edge.to.clone()).collect();
        let delay = self.policy.delays.after(count, self.seed());
        let not_before = (!delay.is_zero()).then(|| self.ended.at.saturating_add(delay));
        self.record.metadata.set(Metadata::LOOP_COUNT, count.saturating_add(1));
        self.record.metadata.set(Metadata::LOOP_TO, to.iter().map(NodeId::as_str).collect::<Vec<_>>());
        // The instant is kept with the record until the jobs are rewound.
        self.record.schedule.not_before = not_before;
        self.finished.go_back = Some(GoBack { to, not_before });
    }

    /// Returns what to say of a failure after which the job may not go back any more.
    pub(super) fn exhausted(&self) -> Option<String> {
        let (attempt, budget) = (self.attempt(), self.budget());
        let starts = self.record.starts_since_retry();
        let is_stop = self.node.is_some_and(|node| node.uses == "control.gate.stop_condition");
        let retry = self.node.and_then(|node| node.retry.as_ref());
        // A stop condition counts its attempts, however it came to them, unless its policy makes some of its own.
        let counts = is_stop
            && retry.is_some_and(|retry| retry.mode == "until_gate")
            && self.policy.max_retries == 0
            && starts > budget.saturating_add(1);
        let is_spent = self.has_loop(NodeOutcome::Failed) && self.loops() >= budget && starts > budget;
        let what = if is_stop { STOP_FAILED } else { FAILED };
        (counts || is_spent).then(|| format!("{what}{ON_ATTEMPT}{attempt}{EXHAUSTED}{budget})"))
    }

    pub(super) fn has_loop(&self, outcome: NodeOutcome) -> bool {
        self.node.is_some_and(|node| node.loops.iter().any(|edge| edge.on == outcome)) && !self.never_loops()
    }

    fn never_loops(&self) -> bool {
        self.node.and_then(|node| node.retry.as_ref()).is_some_and(|retry| retry.mode == "never")
    }

    fn budget(&self) -> u32 {
        // A loop that nobody bounded is taken once.
        self.node.and_then(|node| node.retry.as_ref()).map_or(1, |retry| retry.budget)
    }

    fn loops(&self) -> u32 {
        self.record.metadata.number(Metadata::LOOP_COUNT).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_is_told_in_words() {
        let told = |summary: &str| budget_told(summary);
        let used = "the 1 round that its `retry.budget` allows was used";
        assert_eq!(told("failed on attempt 2; retry budget exhausted (1)").as_deref(), Some(used));
        let used = "the 3 retries that its `retry.budget` allows were used";
        assert_eq!(
            told("stop-condition failed on attempt 5; retry budget exhausted (3)").as_deref(),
            Some(used)
        );
        let none = "its `retry.budget` allows no round";
        assert_eq!(told("failed on attempt 1; retry budget exhausted (0)").as_deref(), Some(none));
        // What others say in such words is theirs.
        for other in ["", "failed", "x failed on attempt 2; retry budget exhausted (1)", "failed on attempt"]
        {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
