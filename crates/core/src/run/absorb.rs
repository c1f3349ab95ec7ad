//! How an event changes a run: the only place that changes anything, for live runs and for replays.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::row::{
    ActRow, CausedRow, FactRow, FailureRow, FanRow, FoldRow, Item, JoinRow, LineageRow, Status, UndoRow,
};
use super::state::{Run, index};
use crate::event::{ActIx, Event, FactIx, Hold, LineageIx, Phase};
use crate::fact::{FactId, Value};
use crate::time::Timestamp;
use crate::workflow::{NodeIx, Op};

impl Run {
    /// Changes the run as an event says. The same events give the same run, live or replayed.
    pub(crate) fn absorb(&mut self, event: &Event) {
        match event {
            Event::FactProduced { node, parent, lineage, value, .. } => {
                self.absorb_fact(*node, *parent, *lineage, value);
            }
            Event::InputAccepted { input, at, key, to } => {
                if let Some(at) = at {
                    self.accepted.insert(*input, *at);
                }
                if to.is_some() {
                    self.signals.insert(*input);
                }
                if let Some(key) = key {
                    self.keys.insert(key.clone(), *input);
                }
            }
            Event::ComponentsAdded { nodes, since } => self.absorb_components(nodes, *since),
            Event::RunnableActivated { act, node, fact, lineage, phase } => {
                self.absorb_activation(*act, *node, *fact, (*lineage, *phase));
                if matches!(self.graph.node(*node).op, Op::State(_)) {
                    self.states.entry(*node).or_default().turn = Some(*lineage);
                }
            }
            Event::ActivationConsumed { act } => self.close(*act),
            Event::ConditionSatisfied { .. }
            | Event::JoinCompleted { .. }
            | Event::FanInCompleted { .. }
            | Event::CommandRefused { .. } => {}
            Event::JoinFactReceived { node, slot, lineage, part } => {
                let parents = self.graph.node(*node).parents;
                let row = self
                    .joins
                    .entry((*node, *lineage))
                    .or_insert_with(|| JoinRow { parts: vec![None; parents as usize], left: parents });
                row.parts[*slot as usize] = Some(*part);
                row.left = row.left.saturating_sub(1);
            }
            Event::FannedOut { node, lineage, fact, count } => {
                self.absorb_fan(*node, *lineage, *fact, *count);
            }
            Event::FanInReceived { node, lineage, item: arrival } => {
                let item = self.lineages[*lineage as usize];
                let list = item.parent.unwrap_or(*lineage);
                if let Some(row) = self.folds.get_mut(&(*node, list)) {
                    row.items[item.index as usize] = match arrival {
                        Ok(fact) => Item::Came(*fact),
                        Err(why) if why.is_failure() => Item::Failed,
                        Err(_) => Item::Absent,
                    };
                    row.failed += u32::from(row.items[item.index as usize] == Item::Failed);
                    row.left = row.left.saturating_sub(1);
                }
            }
            Event::FanInHalted { node, lineage, items } => {
                if let Some(row) = self.folds.get_mut(&(*node, *lineage)) {
                    row.halted = Some(*items);
                }
            }
            Event::StateQueued { node, lineage, input } => {
                self.absorb_queueing(*node, *lineage, input.ok());
            }
            Event::StateAdvanced { node, lineage } => {
                let row = self.states.entry(*node).or_default();
                row.waiting.remove(lineage);
                if !row.late.remove(lineage) {
                    row.last = Some(*lineage);
                }
                row.turn = None;
            }
            Event::StateInitiated { node, fact } => self.states.entry(*node).or_default().fact = Some(*fact),
            Event::NodeSettled { node, lineage, why } => {
                self.absent.insert((*node, *lineage), *why);
            }
            Event::RunnableDispatched { act, attempt, at } => self.absorb_dispatch(*act, *attempt, *at),
            Event::AttemptFailed { act, failed } => {
                self.delay(*act, Some(failed.due()));
                let tries = self.tries.entry(*act).or_default();
                tries.attempt = failed.decided.decision.attempt_next;
                tries.dispatches = 0;
                tries.started_at.get_or_insert(failed.decided.situation.step_started_at);
                tries.held = None;
                tries.wanted_at = None;
            }
            Event::RunnableCompleted { .. } => {}
            Event::RunnableReleased { act } => {
                self.leave_queue(*act);
                let row = &mut self.acts[*act as usize];
                row.status = Status::Pending;
                // Rules that changed meanwhile may let a condition be looked at where it stands.
                let (node, phase) = (row.node, row.phase);
                self.queue_of(node, phase).push_back(*act);
                // Whoever gives work back did not lose it, and it waits for nothing.
                if let Some(tries) = self.tries.get_mut(act) {
                    tries.dispatches = 0;
                    tries.held = None;
                }
            }
            Event::RunnableHeld { act, why, until, at, .. } => self.absorb_hold(*act, *why, *until, *at),
            Event::RunnableReopened { act, .. } => {
                *self.rounds.entry(*act).or_default() += 1;
                self.absorb_reopening(*act);
            }
            Event::UndoRegistered { act, node, value } => {
                self.absorb_said(*act, *node, value);
            }
            Event::UndoBegun { input, .. } => {
                self.undoing.insert(*input, UndoRow::default());
            }
            Event::UndoActivated { act, node, undo, lineage } => {
                self.absorb_undo(*act, *node, *undo, *lineage);
            }
            Event::UndoEnded { input } => {
                if let Some(row) = self.undoing.get_mut(input) {
                    row.is_over = true;
                }
            }
            Event::RunnableFailed { act, failure, attempts, decided, .. } => {
                let reason = decided.as_ref().map(|decided| decided.decision.reason);
                let (failure, attempts) = ((**failure).clone(), *attempts);
                self.failures.insert(*act, FailureRow { failure, attempts, skipped: false, reason });
            }
            Event::RunnableSkipped { act, failure, attempts, decided, .. } => {
                let reason = decided.as_ref().map(|decided| decided.decision.reason);
                let (failure, attempts) = ((**failure).clone(), *attempts);
                self.failures.insert(*act, FailureRow { failure, attempts, skipped: true, reason });
            }
        }
    }

    fn absorb_fact(
        &mut self,
        node: Option<NodeIx>,
        parent: Option<FactIx>,
        lineage: LineageIx,
        value: &Value,
    ) {
        let id = match (node, parent) {
            (Some(node), Some(parent)) => {
                let node_row = self.graph.node(node);
                let parent_id = self.facts[parent as usize].id.to_bytes();
                let emission = match node_row.op {
                    // Only the items of a list share producer and parent.
                    Op::FanOut { .. } => self.lineages[lineage as usize].index,
                    Op::State(_) => u32::from(self.states.get(&node).is_some_and(|row| row.fact.is_some())),
                    Op::Step(_) | Op::Condition(_) | Op::Rule { .. } | Op::Join | Op::FanIn { .. } => 0,
                };
                FactId::of_parts(node_row.id.to_bytes(), parent_id, emission)
            }
            _ => {
                let sequence = index(self.inputs.len());
                self.inputs.push(lineage);
                self.caused.push(CausedRow::default());
                self.lineages.push(LineageRow { parent: None, index: sequence, input: sequence });
                FactId::of_input(&self.id, sequence)
            }
        };
        let depth = parent.map_or(0, |parent| self.facts[parent as usize].depth + 1);
        let fact = self.next_fact();
        let before = self.caused_by_input_of(lineage).fact.replace(fact);
        self.facts.push(FactRow { id, value: value.clone(), node, parent, lineage, depth, before });
        if let Some(node) = node
            && self.graph.node(node).is_read
        {
            self.read.entry(node).or_default().push(fact);
        }
        if let Some(node) = node
            && let Op::State(_) = self.graph.node(node).op
            && let Some(row) = self.states.get_mut(&node)
            && row.fact.is_some()
        {
            row.fact = Some(fact);
        }
    }

    fn absorb_fan(&mut self, node: NodeIx, lineage: LineageIx, fact: Option<FactIx>, count: u32) {
        let first = index(self.lineages.len());
        let input = self.lineages[lineage as usize].input;
        let items = (0..count).map(|index| LineageRow { parent: Some(lineage), index, input });
        self.lineages.extend(items);
        self.fans.insert((node, lineage), FanRow { first, count });
        let Op::FanOut { fan_ins, .. } = &self.graph.node(node).op else { return };
        if let Some(fact) = fact {
            for fan_in in fan_ins {
                if self.sees(*fan_in, lineage) {
                    let items = vec![Item::Awaited; count as usize];
                    let row = FoldRow { fact, items, left: count, failed: 0, halted: None };
                    self.folds.insert((*fan_in, lineage), row);
                }
            }
        }
    }

    /// Adds an activation, which waits for somebody to take it.
    pub(crate) fn absorb_activation(
        &mut self,
        act: ActIx,
        node: NodeIx,
        fact: FactIx,
        (lineage, phase): (LineageIx, Phase),
    ) {
        let before = self.caused_by_input_of(lineage).act.replace(act);
        self.acts.push(ActRow { node, fact, lineage, phase, status: Status::Pending, before });
        self.count_open(act, true);
        if phase == Phase::Match && self.assigned.hands_out_conditions && !self.assigned.looks_inline(node) {
            self.verdicts.open(fact);
        }
        self.queue_of(node, phase).push_back(act);
    }

    /// Counts an activation that is open now, or is over.
    pub(crate) fn count_open(&mut self, act: ActIx, is_open: bool) {
        let caused = self.caused_by_input_of(self.acts[act as usize].lineage);
        if is_open {
            caused.open += 1;
            self.open += 1;
        } else {
            caused.open -= 1;
            self.open -= 1;
        }
    }

    /// Returns what the input of a lineage caused.
    pub(crate) fn caused_by_input_of(&mut self, lineage: LineageIx) -> &mut CausedRow {
        &mut self.caused[self.lineages[lineage as usize].input as usize]
    }

    /// Lets a fact wait for its turn at a state. Whose turn is over has another one: it was awaited again.
    fn absorb_queueing(&mut self, node: NodeIx, lineage: LineageIx, fact: Option<FactIx>) {
        let had = self.states.get(&node).map_or([None; 2], |row| [row.last, row.turn]);
        let is_late = had.iter().flatten().any(|had| self.order_of(lineage, *had) != Ordering::Greater);
        let row = self.states.entry(node).or_default();
        if is_late && fact.is_some() {
            row.late.insert(lineage);
        }
        if !is_late || fact.is_some() {
            row.waiting.insert(lineage, fact);
        }
    }

    /// Returns where an activation waits: conditions that are looked at where they stand, or work to hand out.
    pub(crate) fn queue_of(&mut self, node: NodeIx, phase: Phase) -> &mut VecDeque<ActIx> {
        match phase {
            Phase::Match if self.assigned.looks_inline(node) => &mut self.matches,
            Phase::Match | Phase::Work | Phase::Undo => &mut self.ready,
        }
    }

    /// Puts what is pending where it waits under the rules as they are, in the order in which it was woken.
    pub(crate) fn requeue(&mut self) {
        let matches = std::mem::take(&mut self.matches);
        let mut pending: Vec<ActIx> = matches.into_iter().chain(std::mem::take(&mut self.ready)).collect();
        pending.sort_unstable();
        for act in pending {
            let row = self.acts[act as usize];
            self.queue_of(row.node, row.phase).push_back(act);
        }
    }

    pub(crate) fn close(&mut self, act: ActIx) {
        if self.acts[act as usize].status == Status::Over {
            return;
        }
        self.leave_queue(act);
        let row = &mut self.acts[act as usize];
        row.status = Status::Over;
        let ActRow { node, fact, phase, .. } = *row;
        // Those that are looked at where they stand are not counted.
        if phase == Phase::Match && !self.assigned.looks_inline(node) {
            self.verdicts.close(fact);
        }
        self.count_open(act, false);
        if !self.tries.is_empty() {
            self.tries.remove(&act);
        }
    }

    /// Takes an activation from where it waits.
    pub(crate) fn leave_queue(&mut self, act: ActIx) {
        let row = self.acts[act as usize];
        match row.status {
            Status::Pending => remove_from(self.queue_of(row.node, row.phase), act),
            Status::Delayed => {
                self.delayed -= 1;
                if let Some(due) = self.tries.get_mut(&act).and_then(|tries| tries.due.take()) {
                    self.dues.remove(&(due, act));
                }
            }
            Status::Dispatched | Status::Over => {}
        }
    }

    /// Lets an activation wait for a time, or for somebody.
    fn delay(&mut self, act: ActIx, due: Option<Timestamp>) {
        self.leave_queue(act);
        self.acts[act as usize].status = Status::Delayed;
        self.delayed += 1;
        self.tries.entry(act).or_default().due = due;
        self.dues.extend(due.map(|due| (due, act)));
    }

    fn absorb_hold(&mut self, act: ActIx, why: Hold, until: Option<Timestamp>, at: Option<Timestamp>) {
        self.delay(act, until);
        let tries = self.tries.entry(act).or_default();
        tries.held = Some(why);
        // A delay is no queue, and what was wanted once is wanted since then.
        tries.wanted_at = match why {
            Hold::Delay | Hold::Schedule | Hold::Pause => None,
            Hold::External
            | Hold::Admission
            | Hold::RateLimit
            | Hold::ConcurrencyLimit
            | Hold::CircuitBreaker
            | Hold::Duplicate => tries.wanted_at.or(at),
        };
    }

    fn absorb_dispatch(&mut self, act: ActIx, attempt: u32, at: Option<Timestamp>) {
        self.leave_queue(act);
        self.acts[act as usize].status = Status::Dispatched;
        // In memory nobody tells the time, and the first attempt leaves nothing to remember.
        let is_known =
            at.is_some() || attempt > 0 || (!self.tries.is_empty() && self.tries.contains_key(&act));
        if is_known {
            let tries = self.tries.entry(act).or_default();
            tries.dispatches = if tries.attempt == attempt { tries.dispatches + 1 } else { 1 };
            tries.attempt = attempt;
            tries.started_at = tries.started_at.or(at);
            tries.held = None;
            tries.wanted_at = None;
        }
    }
}

/// Takes an activation out of a queue; it is nearly always the first.
fn remove_from(queue: &mut VecDeque<ActIx>, act: ActIx) {
    if queue.front() == Some(&act) {
        queue.pop_front();
    } else if let Some(place) = queue.iter().position(|other| *other == act) {
        queue.remove(place);
    }
}
