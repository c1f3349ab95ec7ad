//! Work that failed gets another chance: what was marked absent because of it is awaited again, and the run goes on
//! from there as if it had not failed yet.

use std::collections::BTreeSet;

use crate::event::{Absence, ActIx, Event, Hold, LineageIx, Phase};
use crate::execute::Ticket;
use crate::fact::RunnableId;
use crate::run::{FoldRow, Item, Run, Status};
use crate::time::Timestamp;
use crate::workflow::{NodeIx, Op};

/// Why work gets no other chance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReopenError {
    /// It did not fail.
    #[error("there is no such work that failed or waits for a person")]
    NotFailed,
    /// What its input caused was undone.
    #[error("what its input caused was undone")]
    Undone,
    /// Something after it was made without it.
    #[error("`{component}` went on without it")]
    WentOn {
        /// What.
        component: String,
    },
}

impl Run {
    /// Returns the pieces of work that failed for good or were skipped, in the order in which they were woken.
    #[must_use]
    pub fn failed_works(&self) -> Vec<RunnableId> {
        let failed = self.failures.keys().copied();
        let is_open =
            |act: &ActIx| self.can_reopen(*act) && !self.is_undone(self.acts[*act as usize].lineage);
        failed.filter(is_open).map(|act| self.runnable_id(act)).collect()
    }

    /// Gives work that failed all its attempts again. What comes after it waits for it again; a state takes it when
    /// it comes.
    ///
    /// # Errors
    /// It did not fail, or cannot be taken up again.
    pub fn reopen(&mut self, id: RunnableId, at: Option<Timestamp>) -> Result<&[Event], ReopenError> {
        self.events.clear();
        let acts = self.failures.keys().chain(self.tries.keys()).copied();
        let mut acts = acts.filter(|act| self.can_reopen(*act) && self.runnable_id(*act) == id);
        let act = acts.next().ok_or(ReopenError::NotFailed)?;
        let row = self.acts[act as usize];
        if row.status == Status::Over {
            if self.is_undone(row.lineage) {
                return Err(ReopenError::Undone);
            }
            self.check_reopening(row.node, row.lineage)?;
        }
        self.emit(Event::RunnableReopened { act, at });
        if let Op::State(_) = self.graph.node(row.node).op {
            self.advance_state(row.node);
        }
        Ok(&self.events)
    }

    /// Gives everything that waits for a person all its attempts again.
    pub fn reopen_paused(&mut self, at: Option<Timestamp>) -> &[Event] {
        self.events.clear();
        let acts: Vec<ActIx> = self.tries.keys().copied().filter(|act| self.is_paused(*act)).collect();
        for act in acts {
            self.emit(Event::RunnableReopened { act, at });
        }
        &self.events
    }

    pub(crate) fn can_reopen(&self, act: ActIx) -> bool {
        let Some(row) = self.acts.get(act as usize) else { return false };
        match row.status {
            Status::Over => self.failures.contains_key(&act) && row.phase != Phase::Undo,
            Status::Pending | Status::Dispatched | Status::Delayed => self.is_paused(act),
        }
    }

    /// Tells whether work waits for a person.
    fn is_paused(&self, act: ActIx) -> bool {
        let waits = self.acts[act as usize].status == Status::Delayed;
        waits && self.tries.get(&act).is_some_and(|tries| tries.held == Some(Hold::Pause))
    }

    /// Returns the ticket of work that failed, to say something of it.
    #[must_use]
    pub fn ticket_of_failed(&self, id: RunnableId) -> Option<Ticket> {
        let act = self.failures.keys().rev().find(|act| self.runnable_id(**act) == id)?;
        Some(self.ticket(*act))
    }

    /// Checks that nothing was made without what is awaited again.
    fn check_reopening(&self, node: NodeIx, lineage: LineageIx) -> Result<(), ReopenError> {
        let mut seen = BTreeSet::new();
        let mut told = vec![(node, lineage)];
        while let Some((node, lineage)) = told.pop() {
            if !self.absent.contains_key(&(node, lineage)) || !seen.insert((node, lineage)) {
                continue;
            }
            for (to, list) in self.awaiting(node, lineage) {
                let is_whole = |fold: &FoldRow| fold.left == 0 || fold.halted.is_some();
                let is_whole = self.folds.get(&(to, list)).is_some_and(is_whole);
                // One that failed by itself was made of the others, too.
                let was_made = match self.absent.get(&(to, list)) {
                    None | Some(Absence::Failed | Absence::Skipped) => true,
                    Some(Absence::Unsatisfied | Absence::UpstreamFailed | Absence::UpstreamSkipped) => false,
                };
                if is_whole && was_made {
                    let component = self.graph.node(to).label().to_owned();
                    return Err(ReopenError::WentOn { component });
                }
                told.push((to, list));
            }
        }
        Ok(())
    }

    /// Returns what learnt that nothing comes from a node, with the lineage in which it did.
    fn awaiting(&self, node: NodeIx, lineage: LineageIx) -> Vec<(NodeIx, LineageIx)> {
        let mut awaiting = Vec::new();
        let row = self.graph.node(node);
        if let Op::FanOut { fan_ins, .. } = &row.op {
            // A list that was not taken apart: its items never were.
            awaiting.extend(fan_ins.iter().map(|fan_in| (*fan_in, lineage)));
            return awaiting;
        }
        for edge in row.children.iter().filter(|edge| self.sees(edge.to, lineage)) {
            match &self.graph.node(edge.to).op {
                Op::Step(_)
                | Op::Condition(_)
                | Op::Rule { .. }
                | Op::Join
                | Op::State(_)
                | Op::FanIn { fan_out: None, .. } => awaiting.push((edge.to, lineage)),
                Op::FanOut { fan_ins, .. } => {
                    let seen = fan_ins.iter().filter(|fan_in| self.sees(**fan_in, lineage));
                    awaiting.extend(seen.map(|fan_in| (*fan_in, lineage)));
                }
                Op::FanIn { fan_out: Some(_), .. } => {
                    let item = self.lineages[lineage as usize];
                    let list = item.parent.unwrap_or(lineage);
                    let halted = self.folds.get(&(edge.to, list)).and_then(|fold| fold.halted);
                    // An item behind a halt is awaited by nothing.
                    if halted.is_none_or(|count| item.index < count) {
                        awaiting.push((edge.to, list));
                    }
                }
            }
        }
        awaiting
    }

    pub(crate) fn absorb_reopening(&mut self, act: ActIx) {
        let row = self.acts[act as usize];
        self.failures.remove(&act);
        if row.status == Status::Over {
            self.await_again(row.node, row.lineage);
            if let Op::State(_) = self.graph.node(row.node).op {
                // Others may have had their turn since: it gets another one, as a new activation.
                let state = self.states.entry(row.node).or_default();
                state.waiting.insert(row.lineage, Some(row.fact));
                state.late.insert(row.lineage);
                return;
            }
            self.count_open(act, true);
        }
        self.leave_queue(act);
        self.tries.remove(&act);
        self.acts[act as usize].status = Status::Pending;
        self.queue_of(row.node, row.phase).push_back(act);
    }

    /// Takes back what was said of a node in a lineage, and everything that followed from it.
    fn await_again(&mut self, node: NodeIx, lineage: LineageIx) {
        let graph = std::sync::Arc::clone(&self.graph);
        let mut told = vec![(node, lineage)];
        while let Some((node, lineage)) = told.pop() {
            let Some(why) = self.absent.remove(&(node, lineage)) else { continue };
            told.extend(self.awaiting(node, lineage));
            if let Op::FanOut { .. } = graph.node(node).op {
                self.await_list(node, lineage);
                continue;
            }
            for edge in &graph.node(node).children {
                match &graph.node(edge.to).op {
                    _ if !self.sees(edge.to, lineage) => {}
                    Op::Join => {
                        if let Some(join) = self.joins.get_mut(&(edge.to, lineage)) {
                            join.left += 1;
                            join.parts[edge.slot as usize] = None;
                        }
                    }
                    Op::FanOut { .. } => self.await_list(edge.to, lineage),
                    Op::FanIn { fan_out: Some(_), .. } => {
                        let list = self.lineages[lineage as usize].parent.unwrap_or(lineage);
                        let place = self.lineages[lineage as usize].index as usize;
                        if let Some(fold) = self.folds.get_mut(&(edge.to, list)) {
                            fold.left += 1;
                            fold.failed = fold.failed.saturating_sub(u32::from(why.is_failure()));
                            fold.items[place] = Item::Awaited;
                        }
                        self.looks.forget(edge.to, list);
                    }
                    Op::State(_) => {
                        // If it had its turn without a value, it has another one when the value comes.
                        if let Some(state) = self.states.get_mut(&edge.to) {
                            state.waiting.remove(&lineage);
                        }
                    }
                    Op::Step(_) | Op::Condition(_) | Op::Rule { .. } | Op::FanIn { fan_out: None, .. } => {}
                }
            }
        }
    }

    /// Forgets that a list has no items. States inside of its map look for them again.
    fn await_list(&mut self, fan_out: NodeIx, lineage: LineageIx) {
        self.fans.remove(&(fan_out, lineage));
        self.next_input.clear();
    }
}
