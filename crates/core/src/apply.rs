//! What an outcome means for the run: facts, the end of an activation, and what wakes next.

use std::sync::Arc;

use crate::event::{Absence, Event, FactIx, Phase};
use crate::execute::{Executed, Outcome};
use crate::fact::Value;
use crate::prepare::verdict;
use crate::run::{ActRow, Run, Status, index};
use crate::workflow::Op;

impl Run {
    /// Takes back a piece of work that was run. One that is not out, or is of another run, changes nothing: a
    /// result is applied exactly once.
    ///
    /// Returns the events.
    pub fn apply(&mut self, executed: Executed) -> &[Event] {
        self.events.clear();
        let Executed { run, act, outcome, attempts } = executed;
        let is_out = self.acts.get(act as usize).is_some_and(|row| row.status == Status::Dispatched);
        if !is_out || run != self.id {
            return &self.events;
        }
        let row = self.acts[act as usize];
        if row.phase == Phase::Match {
            match outcome {
                Outcome::Completed(answer) => self.conclude(act, verdict(Ok(answer)), attempts),
                Outcome::Failed(failure) => self.conclude(act, Err(failure), attempts),
                Outcome::Skipped(failure) => {
                    self.emit(Event::RunnableSkipped { act, failure: Box::new(failure), attempts });
                    self.end_without_value(act, row, Absence::Skipped);
                }
                Outcome::FannedOut(_) => self.conclude(act, Ok(false), attempts),
            }
            return &self.events;
        }
        let graph = Arc::clone(&self.graph);
        match outcome {
            // A fallback gave a list in place of what could not be taken apart.
            Outcome::Completed(list) if let Op::FanOut { work, .. } = &graph.node(row.node).op => {
                match work.split(&list) {
                    Ok(items) => self.fan_out(act, row, items),
                    Err(failure) => {
                        self.emit(Event::RunnableFailed { act, failure: Box::new(failure), attempts });
                        self.end_without_value(act, row, Absence::Failed);
                    }
                }
            }
            Outcome::Completed(value) => self.complete(act, row, value),
            Outcome::FannedOut(items) => self.fan_out(act, row, items),
            Outcome::Failed(failure) => {
                self.emit(Event::RunnableFailed { act, failure: Box::new(failure), attempts });
                self.end_without_value(act, row, Absence::Failed);
            }
            Outcome::Skipped(failure) => {
                self.emit(Event::RunnableSkipped { act, failure: Box::new(failure), attempts });
                self.end_without_value(act, row, Absence::Skipped);
            }
        }
        &self.events
    }

    fn complete(&mut self, act: u32, row: ActRow, value: Value) {
        let graph = Arc::clone(&self.graph);
        match &graph.node(row.node).op {
            Op::Join => self.emit(Event::JoinCompleted { node: row.node, lineage: row.lineage }),
            Op::FanIn { fan_out: Some(_), .. } => {
                self.emit(Event::FanInCompleted { node: row.node, lineage: row.lineage });
            }
            Op::State(stateful) if self.states.get(&row.node).is_none_or(|state| state.fact.is_none()) => {
                let fact = self.produce(row, stateful.initial.clone());
                self.emit(Event::StateInitiated { node: row.node, fact });
            }
            Op::Step(_)
            | Op::Condition(_)
            | Op::Rule { .. }
            | Op::FanOut { .. }
            | Op::FanIn { fan_out: None, .. }
            | Op::State(_) => {}
        }
        let fact = self.produce(row, value);
        self.emit(Event::ActivationConsumed { act });
        self.spread(row.node, fact, row.lineage);
        self.end_turn(row);
    }

    fn fan_out(&mut self, act: u32, row: ActRow, items: Vec<Value>) {
        let count = index(items.len());
        let first = index(self.lineages.len());
        self.emit(Event::FannedOut { node: row.node, lineage: row.lineage, fact: Some(row.fact), count });
        let first_fact = self.next_fact();
        for (lineage, value) in (first..).zip(items) {
            let fact = self.next_fact();
            let (node, parent) = (Some(row.node), Some(row.fact));
            self.emit(Event::FactProduced { fact, node, parent, lineage, value });
        }
        self.emit(Event::ActivationConsumed { act });
        for item in 0..count {
            self.spread(row.node, first_fact + item, first + item);
        }
        if count == 0 {
            let graph = Arc::clone(&self.graph);
            if let Op::FanOut { fan_ins, .. } = &graph.node(row.node).op {
                for fan_in in fan_ins {
                    self.complete_fold_of(*fan_in, row.lineage);
                }
            }
            self.advance_states_inside(row.node);
        }
    }

    fn end_without_value(&mut self, act: u32, row: ActRow, why: Absence) {
        self.emit(Event::ActivationConsumed { act });
        let graph = Arc::clone(&self.graph);
        if let Op::FanOut { fan_ins, .. } = &graph.node(row.node).op {
            // A list that could not be taken apart has no items, and nobody shall wait for them.
            self.emit(Event::NodeSettled { node: row.node, lineage: row.lineage, why });
            self.emit(Event::FannedOut { node: row.node, lineage: row.lineage, fact: None, count: 0 });
            for fan_in in fan_ins {
                self.settle(*fan_in, row.lineage, why.downstream());
            }
            self.advance_states_inside(row.node);
        } else {
            self.settle(row.node, row.lineage, why);
        }
        self.end_turn(row);
    }

    /// Lets the next lineage have its turn at a state.
    fn end_turn(&mut self, row: ActRow) {
        if let Op::State(_) = self.graph.node(row.node).op {
            self.emit(Event::StateAdvanced { node: row.node, lineage: row.lineage });
            self.advance_state(row.node);
        }
    }

    fn produce(&mut self, row: ActRow, value: Value) -> FactIx {
        let fact = self.next_fact();
        let (node, parent) = (Some(row.node), Some(row.fact));
        self.emit(Event::FactProduced { fact, node, parent, lineage: row.lineage, value });
        fact
    }
}
