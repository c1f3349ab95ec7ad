//! What is to be run now? Conditions are looked at first; work is handed out as pieces that need nothing of the run any
//! more.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{ActIx, Event, FactIx, Hold, Phase};
use crate::execute::{Input, Runnable, RunnableRef, Ticket};
use crate::fact::{RunnableId, Value};
use crate::policy::Resolved;
use crate::query::QueryError;
use crate::run::{ActRow, FoldRow, JoinRow, Run, Status};
use crate::time::{Span, Timestamp};
use crate::work::{Context, ContextParts};
use crate::workflow::{Meta, Node, NodeIx, Op};

/// What was handed out, and what waits instead.
#[derive(Debug, Default)]
pub struct Prepared {
    /// What was handed out.
    pub runnables: Vec<Runnable>,
    /// What waits until its time, or until somebody found out whether it may begin.
    pub held: Vec<Wait>,
    /// What it is too late for, and was not handed out: it is to be ended, as [`Executed::unbegun`](crate::Executed::unbegun)
    /// says.
    pub late: Vec<Runnable>,
}

/// A piece of work that waits for a time or for somebody.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Which.
    pub ticket: Ticket,
    /// What for; `None` for its next attempt.
    pub why: Option<Hold>,
    /// Until when; `None` if somebody else says so.
    pub until: Option<Timestamp>,
    /// Since when it could have begun, had there been room for it, or somebody outside has it.
    pub wanted_at: Option<Timestamp>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When the input that caused it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// What it runs under.
    pub policy: Arc<Resolved>,
}

impl Run {
    /// Hands out everything that can run now, each piece once.
    ///
    /// A piece is handed out again only after [`Run::release`].
    pub fn prepare(&mut self) -> Vec<Runnable> {
        self.hand_out(None)
    }

    /// Hands out everything that can run now, for somebody who knows the time and keeps it with the events.
    pub fn prepare_at(&mut self, now: Timestamp) -> Vec<Runnable> {
        self.hand_out(Some(now))
    }

    /// Hands out everything that can run now and whose policy lets it begin as it is. The rest waits until somebody
    /// found out whether it may begin, or until its time, and is handed out by [`Run::prepare_retry`].
    pub fn prepare_admitted(&mut self, now: Timestamp, at: Option<Timestamp>) -> Prepared {
        self.prepare_admitted_by(now, at, |_| false)
    }

    /// Does the same for somebody who may know at once that work may begin: what is let in so is handed out, in the
    /// order in which it was asked for.
    pub fn prepare_admitted_by(
        &mut self,
        now: Timestamp,
        at: Option<Timestamp>,
        lets_in: impl FnMut(&Arc<Resolved>) -> bool,
    ) -> Prepared {
        self.prepare_unless(now, at, |_, _| false, lets_in)
    }

    /// Does the same as [`Run::prepare_admitted`] for a run that has so much time for what each input causes. What it is
    /// too late for is not handed out: nothing of it would run.
    pub fn prepare_in_time(
        &mut self,
        now: Timestamp,
        at: Option<Timestamp>,
        deadline: Option<Span>,
    ) -> Prepared {
        self.prepare_unless(now, at, |run, act| run.is_too_late(act, now, deadline), |_| false)
    }

    /// Returns whether it is too late for a piece of work, and nothing else would run in its place.
    fn is_too_late(&self, act: ActIx, now: Timestamp, deadline: Option<Span>) -> bool {
        let row = self.acts[act as usize];
        if deadline.is_none() && self.assigned.is_plain(row.node)
            || matches!(self.graph.node(row.node).op, Op::Join)
        {
            return false;
        }
        let policy = self.assigned.policy(row.node);
        let accepted_at = self.accepted.get(&self.lineages[row.lineage as usize].input).copied();
        let started_at = self.tries.get(&act).and_then(|tries| tries.started_at);
        let run_deadline = accepted_at.and_then(|at| Some(at.saturating_add(deadline?)));
        let limit = policy.limit(accepted_at, started_at, run_deadline);
        policy.only_fails_when_late() && limit.is_some_and(|limit| limit <= now)
    }

    fn prepare_unless(
        &mut self,
        now: Timestamp,
        at: Option<Timestamp>,
        is_late: impl Fn(&Self, ActIx) -> bool,
        mut lets_in: impl FnMut(&Arc<Resolved>) -> bool,
    ) -> Prepared {
        self.events.clear();
        self.look_at_conditions();
        self.verdicts.forget_idle();
        let runnables = Vec::with_capacity(self.ready.len());
        let mut prepared = Prepared { runnables, ..Prepared::default() };
        while let Some(act) = self.ready.get(prepared.late.len()).copied() {
            let node = self.acts[act as usize].node;
            if is_late(self, act) {
                prepared.late.push(self.runnable(act));
                continue;
            }
            if self.assigned.is_gated(node) {
                let policy = self.assigned.policy(node);
                let is_plain = policy.delay.is_none() && policy.scheduled_at.is_none();
                if !(is_plain && lets_in(policy)) {
                    prepared.held.push(self.hold_back(act, now));
                    continue;
                }
            }
            let attempt = self.tries.get(&act).map_or(0, |tries| tries.attempt);
            self.emit(Event::RunnableDispatched { act, attempt, at });
            prepared.runnables.push(self.runnable(act));
        }
        prepared
    }

    /// Lets work wait that its policy does not let begin as it is.
    fn hold_back(&mut self, act: ActIx, now: Timestamp) -> Wait {
        let policy = self.assigned.policy(self.acts[act as usize].node);
        let has_begun = self.tries.get(&act).is_some_and(|tries| tries.started_at.is_some());
        let later = if has_begun { None } else { policy.begins_later(now) };
        let (why, until) = later.unwrap_or((Hold::Admission, now));
        self.emit(Event::RunnableHeld { act, why, on: None, until: Some(until), at: Some(now) });
        self.wait_of(act)
    }

    /// Lets a piece of work wait that is out or waits already. One that is over or not begun changes nothing.
    pub fn hold(
        &mut self,
        ticket: &Ticket,
        why: Hold,
        on: Option<String>,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> &[Event] {
        self.events.clear();
        let status = self.acts.get(ticket.act as usize).map(|row| row.status);
        let can_wait = matches!(status, Some(Status::Dispatched | Status::Delayed));
        if can_wait && ticket.run == self.id {
            self.emit(Event::RunnableHeld { act: ticket.act, why, on, until, at: Some(now) });
        }
        &self.events
    }

    fn wait_of(&self, act: ActIx) -> Wait {
        let tries = self.tries.get(&act).copied().unwrap_or_default();
        let row = self.acts[act as usize];
        Wait {
            ticket: self.ticket(act),
            why: tries.held,
            until: tries.due,
            wanted_at: tries.wanted_at,
            started_at: tries.started_at,
            accepted_at: self.accepted.get(&self.lineages[row.lineage as usize].input).copied(),
            policy: Arc::clone(self.assigned.policy(row.node)),
        }
    }

    /// Keeps in the log that something that somebody asked of the run was not done.
    pub fn refuse_command(&mut self, command: i64, why: String) -> &[Event] {
        self.events.clear();
        self.emit(Event::CommandRefused { command, why });
        &self.events
    }

    /// Returns everything that waits for a time or for somebody, in the order in which it was woken.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let waits = |act: &ActIx| self.acts[*act as usize].status == Status::Delayed;
        self.tries.keys().copied().filter(waits).map(|act| self.wait_of(act)).collect()
    }

    /// Returns a piece of work that waits, as it is now; `None` if it does not.
    #[must_use]
    pub fn wait(&self, ticket: &Ticket) -> Option<Wait> {
        let row = self.acts.get(ticket.act as usize)?;
        (row.status == Status::Delayed && ticket.run == self.id).then(|| self.wait_of(ticket.act))
    }

    /// Returns a piece of work that waits, to be looked at: it is not handed out.
    #[must_use]
    pub fn waiting_runnable(&self, ticket: &Ticket) -> Option<Runnable> {
        self.wait(ticket).map(|wait| self.runnable(wait.ticket.act))
    }

    fn hand_out(&mut self, at: Option<Timestamp>) -> Vec<Runnable> {
        self.events.clear();
        self.look_at_conditions();
        self.verdicts.forget_idle();
        let mut runnables = Vec::with_capacity(self.ready.len());
        while let Some(act) = self.ready.front().copied() {
            let attempt = self.tries.get(&act).map_or(0, |tries| tries.attempt);
            self.emit(Event::RunnableDispatched { act, attempt, at });
            runnables.push(self.runnable(act));
        }
        runnables
    }

    /// Returns what can run now without handing it out: the node's name and the id of the piece of work.
    pub fn next_runnables(&mut self) -> Vec<(Option<&str>, RunnableId)> {
        self.events.clear();
        self.look_at_conditions();
        let row = |act: &ActIx| {
            let node = self.graph.node(self.acts[*act as usize].node);
            (node.name.as_deref(), self.runnable_id(*act))
        };
        self.ready.iter().map(row).collect()
    }

    /// Returns what was handed out and has not come back.
    #[must_use]
    pub fn pending_runnables(&self) -> Vec<RunnableId> {
        let acts = (0..).zip(&self.acts);
        acts.filter(|(_, row)| row.status == Status::Dispatched)
            .map(|(act, _)| self.runnable_id(act))
            .collect()
    }

    /// Offers a piece of work again that was handed out, as after a crash of whoever had it. An unknown id
    /// changes nothing.
    pub fn release(&mut self, id: RunnableId) -> &[Event] {
        self.events.clear();
        if let Some(act) = self.handed_out().into_iter().find(|act| self.runnable_id(*act) == id) {
            self.emit(Event::RunnableReleased { act });
        }
        &self.events
    }

    /// Makes a piece of work again that was handed out, from its record; `None` if it is not out in this run.
    #[must_use]
    pub fn prepare_again(&self, record: &RunnableRef) -> Option<Runnable> {
        if record.run != self.id.as_str() {
            return None;
        }
        let node = *self.graph.by_id.get(&record.node_id)?;
        let is_it = |act: ActIx, row: &ActRow| {
            row.status == Status::Dispatched
                && row.node == node
                && self.facts[row.fact as usize].id == record.fact
                && self.runnable_id(act) == record.runnable
        };
        let (act, _) = (0..).zip(&self.acts).find(|(act, row)| is_it(*act, row))?;
        Some(Runnable { attempt: record.attempt, ..self.runnable(act) })
    }

    /// Hands everything out again that is out, as after a crash of whoever had it: the same attempts, which
    /// count as dispatched once more. What needs to be let in waits for that again.
    pub fn prepare_lost(&mut self, now: Timestamp) -> Prepared {
        self.prepare_lost_if(now, |_, _| true)
    }

    /// As [`Run::prepare_lost`]; what was not lost, by its id and how often it was handed out, is offered anew.
    pub fn prepare_lost_if<F>(&mut self, now: Timestamp, mut is_lost: F) -> Prepared
    where
        F: FnMut(RunnableId, u32) -> bool,
    {
        self.events.clear();
        let mut prepared = Prepared::default();
        for act in self.handed_out() {
            if !is_lost(self.runnable_id(act), self.tries.get(&act).map_or(0, |tries| tries.dispatches)) {
                self.emit(Event::RunnableReleased { act });
            } else if self.assigned.is_gated(self.acts[act as usize].node) {
                prepared.held.push(self.hold_back(act, now));
            } else {
                prepared.runnables.push(self.dispatch_again(act, now));
            }
        }
        prepared
    }

    /// Offers everything again that is out, as when somebody gives it another chance: nothing of it counts as lost.
    pub fn release_all(&mut self) -> &[Event] {
        self.events.clear();
        for act in self.handed_out() {
            self.emit(Event::RunnableReleased { act });
        }
        &self.events
    }

    /// Returns what is out, in order.
    fn handed_out(&self) -> Vec<ActIx> {
        let acts = (0..).zip(&self.acts);
        acts.filter(|(_, row)| row.status == Status::Dispatched).map(|(act, _)| act).collect()
    }

    /// Hands out the next attempt at a piece of work that waits for it; `None` if none waits.
    pub fn prepare_retry(&mut self, ticket: &Ticket, now: Timestamp) -> Option<Runnable> {
        self.events.clear();
        let row = self.acts.get(ticket.act as usize)?;
        let waits = row.status == Status::Delayed && ticket.run == self.id;
        waits.then(|| self.dispatch_again(ticket.act, now))
    }

    fn dispatch_again(&mut self, act: ActIx, now: Timestamp) -> Runnable {
        let attempt = self.tries.get(&act).map_or(0, |tries| tries.attempt);
        self.emit(Event::RunnableDispatched { act, attempt, at: Some(now) });
        self.runnable(act)
    }

    /// Returns how often the attempt of a piece of work was handed out: more than once if it got lost.
    #[must_use]
    pub fn dispatches(&self, ticket: &Ticket) -> u32 {
        self.tries.get(&ticket.act).map_or(0, |tries| tries.dispatches)
    }

    /// Returns the ticket of a piece of work that is not over, by its id.
    #[must_use]
    pub fn ticket_of(&self, id: RunnableId) -> Option<Ticket> {
        let acts = (0..).zip(&self.acts);
        let open = acts.filter(|(_, row)| row.status != Status::Over).map(|(act, _)| act);
        open.into_iter().find(|act| self.runnable_id(*act) == id).map(|act| self.ticket(act))
    }

    /// Returns how often an activation was given all its attempts again.
    fn round_of(&self, act: ActIx) -> u32 {
        if self.rounds.is_empty() { 0 } else { self.rounds.get(&act).copied().unwrap_or(0) }
    }

    pub(crate) fn ticket(&self, act: ActIx) -> Ticket {
        let attempts = self.tries.get(&act).map_or(0, |tries| tries.attempt) + 1;
        Ticket { run: self.id.clone(), act, attempts, round: self.round_of(act) }
    }

    /// Offers a piece of work again whose ticket somebody has, or that waits. One that is over changes nothing.
    pub fn give_back(&mut self, ticket: &Ticket) -> &[Event] {
        self.events.clear();
        let status = self.acts.get(ticket.act as usize).map(|row| row.status);
        let is_out = matches!(status, Some(Status::Dispatched | Status::Delayed));
        if is_out && ticket.run == self.id {
            self.emit(Event::RunnableReleased { act: ticket.act });
        }
        &self.events
    }

    pub(crate) fn runnable(&self, act: ActIx) -> Runnable {
        let row = self.acts[act as usize];
        let value = |fact: FactIx| self.facts[fact as usize].value.clone();
        let input = match &self.graph.node(row.node).op {
            _ if row.phase == Phase::Undo => Input::Value(self.undone_value(act, row.fact)),
            Op::Join => {
                let join = self.joins.get(&(row.node, row.lineage));
                Input::Values(join.into_iter().flat_map(JoinRow::came).map(value).collect())
            }
            Op::FanIn { fan_out: Some(_), .. } => {
                let fold = self.folds.get(&(row.node, row.lineage));
                let is_whole = fold.is_none_or(|fold| fold.halted.is_none());
                let items = fold.into_iter().flat_map(FoldRow::came).map(value).collect();
                Input::Items { items, is_whole }
            }
            Op::State(stateful) => {
                let state = self.states.get(&row.node).and_then(|state| state.fact);
                let state = state.map_or_else(|| stateful.initial.clone(), value);
                Input::State { state, input: value(row.fact) }
            }
            Op::Step(_) | Op::Condition(_) | Op::Rule { .. } | Op::FanOut { .. } | Op::FanIn { .. } => {
                Input::Value(value(row.fact))
            }
        };
        let tries = if self.tries.is_empty() { None } else { self.tries.get(&act).copied() };
        let tries = tries.unwrap_or_default();
        Runnable {
            graph: Arc::clone(&self.graph),
            run: self.id.clone(),
            act,
            node: row.node,
            phase: row.phase,
            fact: self.facts[row.fact as usize].id,
            attempt: tries.attempt,
            round: self.round_of(act),
            started_at: tries.started_at,
            accepted_at: self.accepted.get(&self.lineages[row.lineage as usize].input).copied(),
            input,
            meta: self.meta_of(row.node),
            verdicts: self.verdicts.of(row.fact).filter(|_| row.phase == Phase::Match).map(Arc::clone),
            context: Arc::clone(&self.context),
            assigned: Arc::clone(&self.assigned),
            special: None,
        }
    }

    /// Returns the values of other components that a node reads, as they are now. A rule has those, too, that its named
    /// conditions read.
    fn meta_of(&self, node: NodeIx) -> BTreeMap<String, Option<Value>> {
        let own = self.graph.node(node);
        let mut read = BTreeMap::new();
        let mut note = |node: &Node| {
            // Invariant: what a component reads is there, or the definition would not have been built.
            let value = |meta: &Meta| self.meta(meta).ok().flatten();
            read.extend(node.extras.reads.iter().map(|meta| (meta.to_string(), value(meta))));
        };
        note(own);
        if let Op::Rule { test, .. } = &own.op {
            test.each_named(&mut |condition| note(self.graph.node(condition)));
        }
        read
    }

    /// Returns a value of a component as it is now; `None` if there is none.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Meta, Workflow, accumulator};
    ///
    /// let sold = accumulator("sold", 0, |sold: u32, more: u32| sold + more);
    /// let mut run = Workflow::new("shop").add(sold).build()?.run("run-1");
    /// run.react_until_satisfied(5_u32)?;
    /// let state = run.meta(&Meta::StateOf("sold".into()))?.expect("a state has a value");
    /// assert_eq!(state.get::<u32>()?, 5);
    /// let error = run.meta(&Meta::StateOf("slod".into())).unwrap_err();
    /// assert_eq!(error.to_string(), "there is no component `slod`; the nearest is `sold`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such component.
    pub fn meta(&self, meta: &Meta) -> Result<Option<Value>, QueryError> {
        let node = self.component(meta.component())?;
        if self.graph.node(node).is_read {
            return Ok(self.meta_from(node, meta, self.read.get(&node).map_or(&[], Vec::as_slice)));
        }
        // Facts that no component reads are not kept apart.
        let made = (0..).zip(&self.facts).filter(|(_, row)| row.node == Some(node));
        let facts: Vec<FactIx> = made.map(|(fact, _)| fact).collect();
        Ok(self.meta_from(node, meta, &facts))
    }

    /// Returns a value of a node that produced these facts.
    fn meta_from(&self, node: NodeIx, meta: &Meta, facts: &[FactIx]) -> Option<Value> {
        let value = |fact: FactIx| self.facts[fact as usize].value.clone();
        match meta {
            Meta::StateOf(_) => match &self.graph.node(node).op {
                Op::State(stateful) => {
                    let state = self.states.get(&node).and_then(|row| row.fact);
                    Some(state.map_or_else(|| stateful.initial.clone(), value))
                }
                _ => facts.last().map(|fact| value(*fact)),
            },
            Meta::LatestValueOf(_) => facts.last().map(|fact| value(*fact)),
            Meta::AllValuesOf(_) => Some(Value::several(facts.iter().map(|fact| value(*fact)).collect())),
            Meta::FactCount(_) => Some(Value::new(facts.len())),
            Meta::StepRan(_) => Some(Value::new(!facts.is_empty())),
        }
    }

    pub(crate) fn plain_context(&self, node: NodeIx) -> Context {
        Context::new(ContextParts {
            node: self.graph.node(node).name.clone(),
            meta: self.meta_of(node),
            defaults: self.graph.node(node).extras.defaults(),
            ..ContextParts::of(&self.id, &self.context)
        })
    }
}
