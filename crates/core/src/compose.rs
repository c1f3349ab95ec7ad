//! Components that are added to a run while it lives: they take part in the inputs that come afterwards, and
//! nothing of what came before learns of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::{Event, LineageIx};
use crate::replay::{Change, Signature};
use crate::run::{Run, index};
use crate::workflow::{Assigned, Graph, NodeIx, Workflow};

/// The input from which on a component takes part that is in the definition, but not in the run yet.
pub(crate) const NOT_YET: u32 = u32::MAX;

/// Why a definition was not taken: it is not the one of the run with something added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run keeps the components that it has: {}", listed(.changes))]
pub struct ComposeError {
    /// What is gone or changed, by component.
    pub changes: Vec<Change>,
}

fn listed(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Run {
    /// Adds the components to the run that a definition has beyond those of the run. They take part in inputs
    /// that come later, whatever is still under way of earlier ones. From here on the policies of the
    /// workflow are those of this definition; rules that the run was given stay over them.
    ///
    /// Returns the events; a definition with nothing new gives none.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let builder = Workflow::new("numbers").add(step("inc", |x: i64| x + 1));
    /// let mut run = builder.clone().build()?.run("first");
    /// run.react_until_satisfied(1_i64)?;
    ///
    /// let more = builder.add(step("double", |x: i64| x * 2).after("inc")).build()?;
    /// run.compose(&more)?;
    /// run.react_until_satisfied(20_i64)?;
    /// assert_eq!(run.results::<i64>("inc")?, [2, 21]);
    /// assert_eq!(run.results::<i64>("double")?, [42]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The definition lacks a component of the run, or has another one in its place. Nothing changes then.
    pub fn compose(&mut self, workflow: &Workflow) -> Result<&[Event], ComposeError> {
        let given = &workflow.0;
        let is_missing = |ix: &NodeIx| !given.by_id.contains_key(&self.graph.node(*ix).id);
        let before = index(self.graph.nodes.len());
        let missing: Vec<NodeIx> = (0..before).filter(is_missing).collect();
        if missing.is_empty() {
            self.define(given);
        } else {
            // The definition of the run may have more than the run: then a part of it is all there is to add.
            let is_part = given.nodes.iter().all(|node| self.graph.by_id.contains_key(&node.id));
            if !is_part || missing.iter().any(|ix| !self.is_left_out(*ix)) {
                return Err(ComposeError { changes: changes(&self.graph, &missing, given) });
            }
        }
        self.events.clear();
        let nodes: Vec<NodeIx> = (0..)
            .zip(self.graph.nodes.iter())
            .filter(|(ix, node)| {
                (*ix >= before || self.is_left_out(*ix)) && given.by_id.contains_key(&node.id)
            })
            .map(|(ix, _)| ix)
            .collect();
        if !nodes.is_empty() {
            let since = index(self.inputs.len());
            self.emit(Event::ComponentsAdded { nodes, since });
        }
        Ok(&self.events)
    }

    /// Leaves out the components that the definition of a stored run did not have, until its log or
    /// [`Run::compose`] adds them. Belongs before the first event.
    #[must_use]
    pub fn stored_with(mut self, stored: &Signature) -> Self {
        let is_new = |ix: &NodeIx| {
            self.graph.component_of(*ix).is_some_and(|component| !stored.nodes.contains_key(component))
        };
        let new: Vec<NodeIx> = (0..index(self.graph.nodes.len())).filter(is_new).collect();
        self.since.extend(new.into_iter().map(|ix| (ix, NOT_YET)));
        self
    }

    /// Returns the components that were added while the run lived.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        let added = self.since.iter().filter(|(_, since)| **since != NOT_YET);
        added.filter_map(|(ix, _)| self.graph.node(*ix).name.as_deref())
    }

    /// Tells whether a node takes part in a lineage. One that was added does so in later inputs only.
    #[inline]
    pub(crate) fn sees(&self, node: NodeIx, lineage: LineageIx) -> bool {
        // Nearly every run has the components that it began with, and must not pay for this.
        self.since.is_empty() || self.lineages[lineage as usize].input >= self.since_of(node)
    }

    /// Returns the first input in which a node takes part.
    pub(crate) fn since_of(&self, node: NodeIx) -> u32 {
        self.since.get(&node).copied().unwrap_or(0)
    }

    /// Tells whether a node is in the definition, but not in the run yet.
    pub(crate) fn is_left_out(&self, node: NodeIx) -> bool {
        self.since_of(node) == NOT_YET
    }

    /// Changes the run as the addition of nodes says.
    pub(crate) fn absorb_components(&mut self, nodes: &[NodeIx], since: u32) {
        self.since.extend(nodes.iter().map(|node| (*node, since)));
        // In a replay the definition had them all along; no list of an earlier input is theirs.
        self.folds.retain(|(node, _), _| self.since.get(node) != Some(&since));
        // They may read what nobody read before.
        if self.graph.nodes.iter().any(|node| node.is_read) {
            self.read.clear();
            for (fact, row) in (0..).zip(&self.facts) {
                if let Some(node) = row.node.filter(|node| self.graph.node(*node).is_read) {
                    self.read.entry(node).or_default().push(fact);
                }
            }
        }
        self.requeue();
    }

    /// Takes a definition that has all nodes of the one before. Those keep their places, because events and
    /// work that is out speak of them.
    fn define(&mut self, given: &Arc<Graph>) {
        let mut next = index(self.graph.nodes.len());
        let mut place = |known: Option<&NodeIx>| {
            known.copied().unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        let places: Vec<NodeIx> =
            given.nodes.iter().map(|node| place(self.graph.by_id.get(&node.id))).collect();
        let is_in_order = (0..).zip(&places).all(|(ix, place)| ix == *place);
        self.graph = if is_in_order { Arc::clone(given) } else { Arc::new(given.arranged(&places)) };
        self.assigned = Arc::clone(&self.graph.assigned);
        if !self.runtime.is_empty() {
            let overlaid =
                self.runtime.iter().fold(given.assigned.rules.clone(), |rules, (more, overlay)| {
                    rules.overlaid(Some(more.clone()), *overlay)
                });
            self.assigned = Arc::new(Assigned::new(overlaid, &self.graph.nodes));
        }
        self.requeue();
    }
}

/// Says what became of nodes that another definition does not have, each component once.
fn changes(graph: &Graph, missing: &[NodeIx], other: &Graph) -> Vec<Change> {
    let names: BTreeSet<&str> = missing.iter().filter_map(|ix| graph.component_of(*ix)).collect();
    let (changed, gone): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| other.by_name.contains_key(*name));
    let gone = gone.into_iter().map(|name| Change::Removed(name.to_owned()));
    gone.chain(changed.into_iter().map(|name| Change::Changed(name.to_owned()))).collect()
}
