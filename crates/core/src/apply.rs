//! What an outcome means for the run: facts, the end of an activation, and what wakes next.

use std::sync::Arc;

use crate::condition::verdict;
use crate::event::{Absence, ActIx, Event, FactIx, FailedAttempt, Hold, Phase};
use crate::execute::{Executed, Outcome, Ticket};
use crate::fact::Value;
use crate::policy::Failure;
use crate::run::{ActRow, Run, Status, index};
use crate::time::Timestamp;
use crate::workflow::Op;

/// What is known of the attempts at work that is over.
pub(crate) struct Told {
    pub(crate) attempts: u32,
    pub(crate) at: Option<Timestamp>,
    /// The last attempt, if it failed and somebody decided.
    pub(crate) last: Option<Box<FailedAttempt>>,
}

impl Run {
    /// Takes back a piece of work that was run. One that is not out, or is of another run, changes nothing: a
    /// result is applied exactly once.
    ///
    /// Returns the events.
    pub fn apply(&mut self, executed: Executed) -> &[Event] {
        self.events.clear();
        let Executed { run, act, outcome, attempts, failed, last, at, undoes, is_unbegun } = executed;
        let is_open = self.is_out(act) || is_unbegun && self.is_open(act);
        if !is_open || run != self.id {
            return &self.events;
        }
        let row = self.acts[act as usize];
        for failed in failed {
            let (attempt, due) = (failed.decided.decision.attempt_next, failed.due());
            self.emit(Event::AttemptFailed { act, failed: Box::new(failed) });
            self.emit(Event::RunnableDispatched { act, attempt, at: Some(due) });
        }
        self.end(act, row, outcome, Told { attempts, at, last });
        if undoes {
            self.begin_undo(row, at);
        }
        self.after_end(row);
        &self.events
    }

    /// Tells whether a piece of work was handed out: somebody here has it, or somebody outside ends it.
    pub(crate) fn is_out(&self, act: ActIx) -> bool {
        match self.acts.get(act as usize).map(|row| row.status) {
            Some(Status::Dispatched) => true,
            Some(Status::Delayed) => {
                self.tries.get(&act).is_some_and(|tries| tries.held == Some(Hold::External))
            }
            Some(Status::Pending | Status::Over) | None => false,
        }
    }

    fn is_open(&self, act: ActIx) -> bool {
        self.acts.get(act as usize).is_some_and(|row| row.status != Status::Over)
    }

    /// Undoes what comes next, where the end of a piece of work was waited for.
    fn after_end(&mut self, row: ActRow) {
        if self.is_undone(row.lineage) {
            self.go_on_undoing(self.lineages[row.lineage as usize].input);
        }
    }

    /// Ends an attempt that failed and is to be followed by another one. Work that is not out changes nothing.
    pub fn fail_attempt(&mut self, ticket: &Ticket, failed: FailedAttempt) -> &[Event] {
        self.events.clear();
        if self.is_out(ticket.act) && ticket.run == self.id {
            self.emit(Event::AttemptFailed { act: ticket.act, failed: Box::new(failed) });
        }
        &self.events
    }

    /// Ends a piece of work that is not over, wherever it is: out, waiting for an attempt, or not begun.
    pub fn cancel(&mut self, ticket: &Ticket, failure: Failure, at: Option<Timestamp>) -> &[Event] {
        self.events.clear();
        let row = self.acts.get(ticket.act as usize).copied();
        if let Some(row) = row.filter(|row| row.status != Status::Over && ticket.run == self.id) {
            self.end(
                ticket.act,
                row,
                Outcome::Failed(failure),
                Told { attempts: ticket.attempts, at, last: None },
            );
            self.after_end(row);
        }
        &self.events
    }

    /// Ends a piece of work that has not begun, or waits.
    pub(crate) fn end_early(&mut self, act: ActIx, row: ActRow, outcome: Outcome, at: Option<Timestamp>) {
        let attempts = self.tries.get(&act).map_or(0, |tries| tries.attempt);
        self.end(act, row, outcome, Told { attempts, at, last: None });
    }

    /// Ends everything that is not over, also what undoes something: nothing more of it is undone then.
    pub fn cancel_all(&mut self, failure: &Failure, at: Option<Timestamp>) -> &[Event] {
        self.events.clear();
        // Whatever ends may wake or settle other activations, so each round looks again from where it stopped.
        let mut act: ActIx = 0;
        while let Some(row) = self.acts.get(act as usize).copied() {
            if row.status != Status::Over {
                let attempts = self.tries.get(&act).map_or(0, |tries| tries.attempt + 1);
                self.end(act, row, Outcome::Failed(failure.clone()), Told { attempts, at, last: None });
            }
            act += 1;
        }
        let left: Vec<u32> =
            self.undoing.iter().filter(|(_, undo)| !undo.is_over).map(|(input, _)| *input).collect();
        for input in left {
            self.emit(Event::UndoEnded { input });
        }
        &self.events
    }

    fn end(&mut self, act: ActIx, row: ActRow, outcome: Outcome, told: Told) {
        if row.phase == Phase::Undo {
            match outcome {
                Outcome::Completed(_) | Outcome::FannedOut(_) => self.tell_completed(act, told),
                Outcome::Failed(failure) => self.tell_failed(act, failure, told),
                Outcome::Skipped(failure) => self.tell_skipped(act, failure, told),
            }
            self.emit(Event::ActivationConsumed { act });
            return;
        }
        if row.phase == Phase::Match {
            match outcome {
                Outcome::Completed(answer) => self.conclude(act, verdict(Ok(answer)), told),
                Outcome::Failed(failure) => self.conclude(act, Err(failure), told),
                Outcome::Skipped(failure) => {
                    self.tell_skipped(act, failure, told);
                    self.end_without_value(act, row, Absence::Skipped);
                }
                Outcome::FannedOut(_) => self.conclude(act, Ok(false), told),
            }
            return;
        }
        match outcome {
            // A fallback gave a list in place of what could not be taken apart.
            Outcome::Completed(list) if let Op::FanOut { work, .. } = &self.graph.node(row.node).op => {
                match work.split(&list) {
                    Ok(items) => {
                        self.tell_completed(act, told);
                        self.fan_out(act, row, items);
                    }
                    Err(failure) => {
                        self.tell_failed(act, failure, told);
                        self.end_without_value(act, row, Absence::Failed);
                    }
                }
            }
            Outcome::Completed(value) => {
                self.tell_completed(act, told);
                self.complete(act, row, value);
            }
            Outcome::FannedOut(items) => {
                self.tell_completed(act, told);
                self.fan_out(act, row, items);
            }
            Outcome::Failed(failure) => {
                self.tell_failed(act, failure, told);
                self.end_without_value(act, row, Absence::Failed);
            }
            Outcome::Skipped(failure) => {
                self.tell_skipped(act, failure, told);
                self.end_without_value(act, row, Absence::Skipped);
            }
        }
    }

    /// Says that work gave its result, if there is something to tell of it.
    pub(crate) fn tell_completed(&mut self, act: ActIx, told: Told) {
        let Told { attempts, at, last: recovered } = told;
        if at.is_some() || recovered.is_some() {
            self.emit(Event::RunnableCompleted { act, attempts, at, recovered });
        }
    }

    pub(crate) fn tell_failed(&mut self, act: ActIx, failure: Failure, told: Told) {
        let Told { attempts, at, last } = told;
        let (failure, decided) = (Box::new(failure), last.map(|last| Box::new(last.decided)));
        self.emit(Event::RunnableFailed { act, failure, attempts, at, decided });
    }

    fn tell_skipped(&mut self, act: ActIx, failure: Failure, told: Told) {
        let Told { attempts, at, last } = told;
        let (failure, decided) = (Box::new(failure), last.map(|last| Box::new(last.decided)));
        self.emit(Event::RunnableSkipped { act, failure, attempts, at, decided });
    }

    fn complete(&mut self, act: u32, row: ActRow, value: Value) {
        match &self.graph.node(row.node).op {
            Op::Join => self.emit(Event::JoinCompleted { node: row.node, lineage: row.lineage }),
            Op::FanIn { fan_out: Some(_), .. } => {
                self.emit(Event::FanInCompleted { node: row.node, lineage: row.lineage });
            }
            Op::State(stateful) if self.states.get(&row.node).is_none_or(|state| state.fact.is_none()) => {
                let initial = stateful.initial.clone();
                let fact = self.produce(row, initial);
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
        self.settle_work(row.node, row.lineage, why);
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
