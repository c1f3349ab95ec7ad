//! A run from its events: nothing is evaluated, nothing is called; the same events give the same run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compose::NOT_YET;
use crate::event::{Event, Undo};
use crate::event_json::EventError;
use crate::fact::{NodeId, RunId};
use crate::run::{Run, Status};
use crate::workflow::{Op, Workflow};

/// Why a log is none of a run of a workflow.
#[derive(Debug, thiserror::Error)]
#[error("event {index} of the log cannot be replayed")]
pub struct ReplayError {
    /// Which event, counted from zero.
    pub index: usize,
    /// What is wrong with it.
    #[source]
    pub source: EventError,
}

impl Run {
    /// Makes a run from the events of another, of the same workflow: the one that [`Run::workflow`] of that run
    /// gives, if components were added.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::run::Run;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let mut run = workflow.run("run-1");
    /// let mut log = run.plan(41_i64).to_vec();
    /// for runnable in run.prepare() {
    ///     log.extend_from_slice(run.last_events());
    ///     run.apply(runnable.execute());
    ///     log.extend_from_slice(run.last_events());
    /// }
    /// let again = Run::replay(&workflow, "run-1", &log)?; // no work is done
    /// assert_eq!(again.result::<i64>("inc")?, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An event speaks of something that does not exist at that point: the log is not whole, or not of this
    /// workflow.
    pub fn replay<'e>(
        workflow: &Workflow,
        id: impl Into<RunId>,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Self, ReplayError> {
        workflow.run(id).replayed(events)
    }

    /// Brings a run, which may have its own context and rules, to where events lead.
    ///
    /// # Errors
    /// An event speaks of something that does not exist at that point.
    pub fn replayed<'e>(mut self, events: impl IntoIterator<Item = &'e Event>) -> Result<Self, ReplayError> {
        for (index, event) in events.into_iter().enumerate() {
            self.replay_one(event).map_err(|source| ReplayError { index, source })?;
        }
        Ok(self)
    }

    /// Makes a run from the lines of a log.
    ///
    /// # Errors
    /// A line is no event, or not one that can follow here.
    pub fn replay_json<'l>(
        workflow: &Workflow,
        id: impl Into<RunId>,
        lines: impl IntoIterator<Item = &'l str>,
    ) -> Result<Self, ReplayError> {
        workflow.run(id).replayed_json(lines)
    }

    /// Brings a run, which may have its own context and rules, to where the lines of a log lead.
    ///
    /// # Errors
    /// A line is no event, or not one that can follow here.
    pub fn replayed_json<'l>(
        mut self,
        lines: impl IntoIterator<Item = &'l str>,
    ) -> Result<Self, ReplayError> {
        let workflow = self.workflow();
        for (index, line) in lines.into_iter().enumerate() {
            let event = Event::from_json(line, &workflow);
            event
                .and_then(|event| self.replay_one(&event))
                .map_err(|source| ReplayError { index, source })?;
        }
        Ok(self)
    }

    fn replay_one(&mut self, event: &Event) -> Result<(), EventError> {
        if self.follows(event) {
            self.absorb(event);
            Ok(())
        } else {
            Err(EventError::OutOfOrder)
        }
    }

    /// Tells whether everything that an event speaks of exists. A log from outside is never trusted.
    fn follows(&self, event: &Event) -> bool {
        let fact = |ix: &u32| (*ix as usize) < self.facts.len();
        let lineage = |ix: &u32| (*ix as usize) < self.lineages.len();
        let status = |ix: &u32| self.acts.get(*ix as usize).map(|row| row.status);
        let op = |ix: &u32| self.graph.nodes.get(*ix as usize).map(|node| &node.op);
        let node = |ix: &u32| op(ix).is_some();
        let arrived = |arrival: &Result<u32, _>| arrival.as_ref().is_ok_and(fact) || arrival.is_err();
        match event {
            Event::FactProduced { fact: ix, node: None, parent, lineage, .. } => {
                *ix as usize == self.facts.len()
                    && parent.is_none()
                    && *lineage as usize == self.lineages.len()
            }
            Event::FactProduced { fact: ix, node: Some(by), parent, lineage: of, .. } => {
                *ix as usize == self.facts.len()
                    && node(by)
                    && parent.as_ref().is_some_and(fact)
                    && lineage(of)
            }
            Event::RunnableActivated { act, node: by, fact: woke, lineage: of, .. } => {
                *act as usize == self.acts.len() && node(by) && fact(woke) && lineage(of)
            }
            Event::InputAccepted { input, to, .. } => {
                (*input as usize) < self.inputs.len() && to.as_ref().is_none_or(node)
            }
            Event::ComponentsAdded { nodes, since } => {
                let is_new = |ix: &u32| node(ix) && self.since.get(ix).is_none_or(|since| *since == NOT_YET);
                *since as usize == self.inputs.len() && !nodes.is_empty() && nodes.iter().all(is_new)
            }
            Event::RunnableDispatched { act, .. } => status(act).is_some_and(|status| status != Status::Over),
            Event::RunnableReleased { act } => {
                matches!(status(act), Some(Status::Dispatched | Status::Delayed))
            }
            Event::RunnableReopened { act, .. } => {
                let is_undone = |ix: &u32| self.is_undone(self.acts[*ix as usize].lineage);
                self.can_reopen(*act) && (status(act) != Some(Status::Over) || !is_undone(act))
            }
            Event::UndoRegistered { act, node: by, .. } => {
                status(act).is_some_and(|status| status != Status::Over) && node(by)
            }
            Event::UndoBegun { input, .. } => {
                (*input as usize) < self.inputs.len() && !self.undoing.contains_key(input)
            }
            Event::UndoActivated { act, node: by, undo, lineage: of } => {
                let done_in = match undo {
                    Undo::Fact(ix) => self.facts.get(*ix as usize).map(|row| row.lineage),
                    Undo::Registered(place) => {
                        let row = self.registered.get(*place as usize);
                        row.map(|row| self.acts[row.act as usize].lineage)
                    }
                };
                let undoes = lineage(of) && self.can_go_on_undoing(self.lineages[*of as usize].input);
                *act as usize == self.acts.len() && node(by) && done_in == Some(*of) && undoes
            }
            Event::CommandRefused { .. } => true,
            Event::UndoEnded { input } => self.can_go_on_undoing(*input),
            Event::ActivationConsumed { act }
            | Event::RunnableHeld { act, .. }
            | Event::AttemptFailed { act, .. }
            | Event::RunnableCompleted { act, .. }
            | Event::RunnableFailed { act, .. }
            | Event::RunnableSkipped { act, .. } => status(act).is_some_and(|status| status != Status::Over),
            Event::ConditionSatisfied { node: by, fact: of } => node(by) && fact(of),
            Event::JoinFactReceived { node: join, slot, lineage: of, part } => {
                matches!(op(join), Some(Op::Join))
                    && *slot < self.graph.node(*join).parents
                    && lineage(of)
                    && arrived(part)
            }
            Event::FannedOut { node: map, lineage: of, fact: list, count } => {
                let room = (u32::MAX as usize - self.lineages.len()) >= *count as usize;
                matches!(op(map), Some(Op::FanOut { .. }))
                    && lineage(of)
                    && list.as_ref().is_none_or(fact)
                    && room
            }
            Event::FanInReceived { node: reduce, lineage: of, item } => {
                let list = self.lineages.get(*of as usize).and_then(|row| Some((row.parent?, row.index)));
                let fold = list.and_then(|(list, index)| Some((self.folds.get(&(*reduce, list))?, index)));
                fold.is_some_and(|(fold, index)| (index as usize) < fold.items.len()) && arrived(item)
            }
            Event::FanInHalted { node: reduce, lineage: of, items } => {
                self.folds.get(&(*reduce, *of)).is_some_and(|fold| *items as usize <= fold.items.len())
            }
            Event::StateQueued { node: state, lineage: of, input } => {
                matches!(op(state), Some(Op::State(_))) && lineage(of) && arrived(input)
            }
            Event::StateInitiated { node: state, fact: of } => {
                matches!(op(state), Some(Op::State(_))) && fact(of)
            }
            Event::JoinCompleted { node: by, lineage: of }
            | Event::FanInCompleted { node: by, lineage: of }
            | Event::StateAdvanced { node: by, lineage: of }
            | Event::NodeSettled { node: by, lineage: of, .. } => node(by) && lineage(of),
        }
    }
}

/// What a definition consists of: its nodes and their ids. A stored run keeps it, to notice a changed
/// definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The name of the workflow.
    pub workflow: String,
    /// Each node by its name, and what it is.
    pub nodes: BTreeMap<String, NodeId>,
}

/// How a node differs between two definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// It is new.
    #[error("`{0}` is new")]
    Added(String),
    /// It is gone.
    #[error("`{0}` is gone")]
    Removed(String),
    /// It has another kind, version, type or comes after something else.
    #[error("`{0}` is not what it was")]
    Changed(String),
}

impl Workflow {
    /// Returns what the definition consists of.
    #[must_use]
    pub fn signature(&self) -> Signature {
        let named = self.0.by_name.iter().map(|(name, ix)| (name.to_string(), self.0.node(*ix).id));
        Signature { workflow: self.name().to_owned(), nodes: named.collect() }
    }

    /// Returns how this definition differs from the one that a run was stored with, node by node.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let before = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let after = Workflow::new("numbers").add(step("double", |x: i64| x * 2)).build()?;
    /// let changes: Vec<String> = after.changes_since(&before.signature()).iter().map(ToString::to_string).collect();
    /// assert_eq!(changes, ["`inc` is gone", "`double` is new"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn changes_since(&self, stored: &Signature) -> Vec<Change> {
        let now = self.signature();
        let gone =
            stored.nodes.keys().filter(|name| !now.nodes.contains_key(*name)).cloned().map(Change::Removed);
        let other = now.nodes.iter().filter_map(|(name, id)| match stored.nodes.get(name) {
            None => Some(Change::Added(name.clone())),
            Some(before) if before != id => Some(Change::Changed(name.clone())),
            Some(_) => None,
        });
        gone.chain(other).collect()
    }
}
