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
        let is_stop = self.node.is_some_and(|node| node.uses == "control.gate.stop_condition");
        let retry = self.node.and_then(|node| node.retry.as_ref());
        // A stop condition counts its attempts, however it came to them, unless its policy makes some of its own.
        let counts = is_stop
            && retry.is_some_and(|retry| retry.mode == "until_gate")
            && self.policy.max_retries == 0
            && attempt > budget.saturating_add(1);
        let is_spent = self.has_loop(NodeOutcome::Failed) && self.loops() >= budget && attempt > budget;
        let what = if is_stop { "stop-condition failed" } else { "failed" };
        (counts || is_spent)
            .then(|| format!("{what} on attempt {attempt}; retry budget exhausted ({budget})"))
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
