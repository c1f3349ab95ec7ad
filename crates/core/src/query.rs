//! What a run knows: productions, facts, failures, and where they come from.

use crate::event::{Absence, FactIx, LineageIx};
use crate::fact::{FactId, Payload, Value, ValueError};
use crate::policy::Failure;
use crate::run::{FactRow, Run, Status};
use crate::workflow::{NodeIx, Op};

/// A fact as people look at it.
#[derive(Clone, Debug)]
pub struct Fact<'r> {
    /// Its identity.
    pub id: FactId,
    /// The component that produced it; `None` for an input or a node without a name.
    pub producer: Option<&'r str>,
    /// Its value.
    pub value: &'r Value,
    /// How many productions lie between it and its input.
    pub depth: u32,
    /// The input it comes from, counted from zero.
    pub input: u32,
}

/// A failure as people look at it.
#[derive(Clone, Debug)]
pub struct Failed<'r> {
    /// The component that failed.
    pub component: Option<&'r str>,
    /// Why.
    pub failure: &'r Failure,
    /// How many attempts were made.
    pub attempts: u32,
    /// Whether its policy lets it pass.
    pub skipped: bool,
    /// The input it comes from, counted from zero.
    pub input: u32,
}

impl Run {
    /// Returns everything that was produced, in an order that does not depend on who ran what when: by input,
    /// by place in the graph, by place in a map.
    #[must_use]
    pub fn productions(&self) -> Vec<Fact<'_>> {
        self.sorted(|_, row| row.node.is_some_and(|node| self.is_production(node)))
    }

    /// Returns what a component produced, in the same order.
    #[must_use]
    pub fn productions_of(&self, component: &str) -> Vec<Fact<'_>> {
        let Some(node) = self.graph.by_name.get(component).copied() else { return Vec::new() };
        self.sorted(|_, row| row.node == Some(node))
    }

    /// Returns the inputs and everything that was produced.
    #[must_use]
    pub fn reactions(&self) -> Vec<Fact<'_>> {
        self.sorted(|_, row| row.node.is_none_or(|node| self.is_production(node)))
    }

    /// Returns what a component produced last: for the last input that it has something of.
    ///
    /// # Errors
    /// The value is not of that type.
    pub fn result<T: Payload>(&self, component: &str) -> Result<Option<T>, ValueError> {
        self.productions_of(component).last().map(|fact| fact.value.get::<T>()).transpose()
    }

    /// Returns everything that a component produced.
    ///
    /// # Errors
    /// A value is not of that type.
    pub fn results<T: Payload>(&self, component: &str) -> Result<Vec<T>, ValueError> {
        self.productions_of(component).into_iter().map(|fact| fact.value.get::<T>()).collect()
    }

    /// Returns everything that failed or was skipped, in the order of productions.
    #[must_use]
    pub fn failures(&self) -> Vec<Failed<'_>> {
        let mut acts: Vec<_> = self.failures.iter().collect();
        acts.sort_by_key(|(act, _)| {
            let row = &self.acts[**act as usize];
            let input = self.lineages[row.lineage as usize].input;
            (input, self.graph.node(row.node).rank, self.way_to(row.lineage), **act)
        });
        let failed = acts.into_iter().map(|(act, failure)| {
            let row = &self.acts[*act as usize];
            Failed {
                component: self.graph.node(row.node).name.as_deref(),
                failure: &failure.failure,
                attempts: failure.attempts,
                skipped: failure.skipped,
                input: self.lineages[row.lineage as usize].input,
            }
        });
        failed.collect()
    }

    /// Returns why nothing came from a component for an input, if that is so.
    #[must_use]
    pub fn absence(&self, component: &str, input: u32) -> Option<Absence> {
        let node = *self.graph.by_name.get(component)?;
        let lineage = *self.inputs.get(input as usize)?;
        self.absent.get(&(node, lineage)).copied()
    }

    /// Returns what an input caused.
    #[must_use]
    pub fn caused_by(&self, input: u32) -> Vec<Fact<'_>> {
        let is_of = |lineage: LineageIx| self.lineages[lineage as usize].input == input;
        self.sorted(|_, row| is_of(row.lineage) && row.node.is_some_and(|node| self.is_production(node)))
    }

    /// Returns the way from an input to a fact, the input first.
    #[must_use]
    pub fn ancestry(&self, fact: FactId) -> Vec<Fact<'_>> {
        let mut way = Vec::new();
        let mut at = self.facts.iter().position(|row| row.id == fact);
        while let Some(index) = at {
            way.push(self.shown(&self.facts[index]));
            at = self.facts[index].parent.map(|parent| parent as usize);
        }
        way.reverse();
        way
    }

    /// Returns how many facts a component produced.
    #[must_use]
    pub fn fact_count(&self, component: &str) -> usize {
        self.productions_of(component).len()
    }

    /// Returns how many facts there are, inputs and items of maps among them.
    #[must_use]
    pub const fn facts_len(&self) -> usize {
        self.facts.len()
    }

    /// Forgets every fact; the workflow stays.
    pub fn purge_memory(&mut self) {
        let fresh = crate::workflow::Workflow(std::sync::Arc::clone(&self.graph)).run(self.id.clone());
        let context = std::sync::Arc::clone(&self.context);
        // What is still out belongs to what was forgotten; it shall not come back to something new.
        let mut acts = std::mem::take(&mut self.acts);
        acts.iter_mut().for_each(|row| row.status = Status::Over);
        *self = Self { context, acts, ..fresh };
    }

    fn is_production(&self, node: NodeIx) -> bool {
        !matches!(self.graph.node(node).op, Op::FanOut { .. } | Op::Condition(_))
    }

    fn sorted(&self, wanted: impl Fn(FactIx, &FactRow) -> bool) -> Vec<Fact<'_>> {
        let rows = (0..).zip(&self.facts).filter(|(fact, row)| wanted(*fact, row));
        let mut keyed: Vec<_> = rows
            .map(|(fact, row)| {
                let rank = row.node.map_or(0, |node| self.graph.node(node).rank + 1);
                (self.lineages[row.lineage as usize].input, rank, self.way_to(row.lineage), fact, row)
            })
            .collect();
        keyed.sort_by(|one, other| (one.0, one.1, &one.2, one.3).cmp(&(other.0, other.1, &other.2, other.3)));
        keyed.into_iter().map(|(.., row)| self.shown(row)).collect()
    }

    /// Returns the places in the maps around a lineage, outermost first.
    fn way_to(&self, lineage: LineageIx) -> Vec<u32> {
        let mut way = Vec::new();
        let mut at = &self.lineages[lineage as usize];
        while let Some(parent) = at.parent {
            way.push(at.index);
            at = &self.lineages[parent as usize];
        }
        way.reverse();
        way
    }

    fn shown<'r>(&'r self, row: &'r FactRow) -> Fact<'r> {
        Fact {
            id: row.id,
            producer: row.node.and_then(|node| self.graph.node(node).name.as_deref()),
            value: &row.value,
            depth: row.depth,
            input: self.lineages[row.lineage as usize].input,
        }
    }
}
