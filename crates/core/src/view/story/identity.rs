//! The identities of pieces of work, computed from a log as the run computed them. Nodes come from elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Phase;
use crate::execute::runnable_id;
use crate::fact::{FactId, NodeId, RunId, RunnableId};

/// What it takes to tell the identities of pieces of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identities {
    pub(super) run: RunId,
    pub(super) nodes: BTreeMap<String, NodeId>,
    /// The facts so far; `None` where a node is not known.
    pub(super) facts: Vec<Option<FactId>>,
    /// The fact that woke each piece of work.
    pub(super) works: Vec<u32>,
    /// The nodes that take lists apart.
    pub(super) fans: BTreeSet<String>,
    /// The nodes with a state that has its first value.
    pub(super) initiated: BTreeSet<String>,
}

impl Identities {
    pub(super) fn add_input(&mut self, input: u32) {
        self.facts.push(Some(FactId::of_input(&self.run, input)));
    }

    pub(super) fn add_fact(&mut self, node: &str, parent: Option<u32>, item: Option<u32>) {
        let emission = if self.fans.contains(node) {
            item.unwrap_or(0)
        } else {
            u32::from(self.initiated.contains(node))
        };
        let parent = parent.and_then(|parent| self.facts.get(parent as usize).copied().flatten());
        let id = self
            .node(node)
            .zip(parent)
            .map(|(node, parent)| FactId::of_parts(node.to_bytes(), parent.to_bytes(), emission));
        self.facts.push(id);
    }

    pub(super) fn add_work(&mut self, node: &str, fact: u32, phase: Phase) -> Option<RunnableId> {
        self.works.push(fact);
        let fact = self.facts.get(fact as usize).copied().flatten()?;
        Some(runnable_id(&self.run, self.node(node)?, fact, phase))
    }

    fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.get(name).copied().or_else(|| NodeId::parse(name))
    }
}
