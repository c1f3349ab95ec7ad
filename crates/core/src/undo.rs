//! What an input caused is undone: what is not over ends, then each thing that was done and can be undone is, the
//! last first, one after the other. Each is a piece of work like others, under its own policy.

use crate::event::{ActIx, Event, FactIx, LineageIx, Phase, Undo};
use crate::execute::{Outcome, Ticket};
use crate::fact::Value;
use crate::policy::{Compensation, Failure, Kind};
use crate::run::{ActRow, RegisteredRow, Run, Status, index};
use crate::time::Timestamp;
use crate::workflow::{NodeIx, Op};

impl Run {
    /// Keeps what a piece of work said that would undo it.
    ///
    /// # Errors
    /// The workflow has no component of that name that undoes something.
    pub fn register_undo(
        &mut self,
        ticket: &Ticket,
        component: &str,
        value: Value,
    ) -> Result<&[Event], Failure> {
        self.events.clear();
        let node = self.graph.by_name.get(component).copied();
        let Some(node) = node.filter(|node| self.graph.node(*node).kind == Kind::Compensation) else {
            let message = format!("`{component}` is no component of the workflow that undoes something");
            return Err(Failure::new(message).code("no_compensation").non_retryable());
        };
        // Nobody undoes what undid something.
        let can_be = |row: &ActRow| row.status != Status::Over && row.phase != Phase::Undo;
        if self.acts.get(ticket.act as usize).is_some_and(can_be) && ticket.run == self.id {
            self.emit(Event::UndoRegistered { act: ticket.act, node, value });
        }
        Ok(&self.events)
    }

    /// Tells whether what an input caused is undone, or was.
    pub(crate) fn is_undone(&self, lineage: LineageIx) -> bool {
        !self.undoing.is_empty() && self.undoing.contains_key(&self.lineages[lineage as usize].input)
    }

    /// Begins to undo what the input of a piece of work caused.
    pub(crate) fn begin_undo(&mut self, row: ActRow, at: Option<Timestamp>) {
        let input = self.lineages[row.lineage as usize].input;
        if row.phase == Phase::Undo || self.undoing.contains_key(&input) {
            return;
        }
        self.emit(Event::UndoBegun { input, at });
        // What is under way, here or outside, comes to its end and is undone, too; all else need not begin.
        let mut not_begun = Vec::new();
        let mut next = self.caused[input as usize].act;
        while let Some(act) = next {
            let row = self.acts[act as usize];
            if row.status != Status::Over && !self.is_out(act) {
                not_begun.push((act, row));
            }
            next = row.before;
        }
        for (act, row) in not_begun.into_iter().rev() {
            let failure = Failure::new("what its input caused is undone").code("undone").non_retryable();
            self.end_early(act, row, Outcome::Skipped(failure), at);
        }
        self.go_on_undoing(input);
    }

    /// Tells whether an input is undone of which nothing is under way.
    pub(crate) fn can_go_on_undoing(&self, input: u32) -> bool {
        let is_undone = self.undoing.get(&input).is_some_and(|undo| !undo.is_over);
        is_undone && self.caused.get(input as usize).is_some_and(|caused| caused.open == 0)
    }

    /// Undoes what comes next, if nothing of the input is under way.
    pub(crate) fn go_on_undoing(&mut self, input: u32) {
        if !self.can_go_on_undoing(input) {
            return;
        }
        let act = index(self.acts.len());
        let (done, said) = self.last_done(input);
        let said = said.map(|place| (place, &self.registered[place as usize]));
        let event = match (done, said) {
            // What was said while work was under way comes before what it produced.
            (Some((fact, node)), said) if said.is_none_or(|(_, row)| row.after <= fact) => {
                let lineage = self.facts[fact as usize].lineage;
                Event::UndoActivated { act, node, undo: Undo::Fact(fact), lineage }
            }
            (_, Some((place, row))) => {
                let lineage = self.acts[row.act as usize].lineage;
                Event::UndoActivated { act, node: row.node, undo: Undo::Registered(place), lineage }
            }
            (_, None) => Event::UndoEnded { input },
        };
        self.emit(event);
    }

    /// Finds what was done last of what is left: a fact with the component that undoes it, and what was said.
    fn last_done(&self, input: u32) -> (Option<(FactIx, NodeIx)>, Option<u32>) {
        let caused = self.caused[input as usize];
        let left = self.undoing.get(&input).and_then(|undo| undo.left);
        let (mut fact, mut said) = left.unwrap_or((caused.fact, caused.said));
        let mut done = None;
        while let Some(ix) = fact.filter(|_| done.is_none()) {
            let row = &self.facts[ix as usize];
            done = row.node.and_then(|node| Some((ix, self.undone_by(node)?)));
            fact = row.before;
        }
        while let Some(row) = said.map(|place| &self.registered[place as usize])
            && row.value.is_none()
        {
            said = row.before;
        }
        (done, said)
    }

    /// Returns the component whose work undoes that of another.
    fn undone_by(&self, node: NodeIx) -> Option<NodeIx> {
        let can_be = matches!(self.graph.node(node).op, Op::Step(_) | Op::Rule { .. } | Op::FanIn { .. });
        match self.assigned.policy(node).compensation.as_ref().filter(|_| can_be)? {
            Compensation::Function(_) => Some(node),
            Compensation::Node(name) => self.graph.by_name.get(name.as_str()).copied(),
        }
    }

    pub(crate) fn absorb_said(&mut self, act: ActIx, node: NodeIx, value: &Value) {
        let place = index(self.registered.len());
        if let Some(earlier) = self.said.insert((act, node), place) {
            self.registered[earlier as usize].value = None;
        }
        let (after, value) = (self.next_fact(), Some(value.clone()));
        let before = self.caused_by_input_of(self.acts[act as usize].lineage).said.replace(place);
        self.registered.push(RegisteredRow { act, node, value, after, before });
    }

    pub(crate) fn absorb_undo(&mut self, act: ActIx, node: NodeIx, undo: Undo, lineage: LineageIx) {
        let input = self.lineages[lineage as usize].input;
        let (done, said) = self.last_done(input);
        let (fact, left) = match undo {
            Undo::Fact(fact) => (fact, (self.facts[fact as usize].before, said)),
            Undo::Registered(place) => {
                let row = &self.registered[place as usize];
                (self.acts[row.act as usize].fact, (done.map(|(fact, _)| fact), row.before))
            }
        };
        self.undoing.entry(input).or_default().left = Some(left);
        self.undos.insert(act, undo);
        self.absorb_activation(act, node, fact, (lineage, Phase::Undo));
    }

    /// Returns what a piece of work that undoes something is given.
    pub(crate) fn undone_value(&self, act: ActIx, fact: FactIx) -> Value {
        let said = match self.undos.get(&act) {
            Some(Undo::Registered(place)) => self.registered[*place as usize].value.clone(),
            Some(Undo::Fact(_)) | None => None,
        };
        said.unwrap_or_else(|| self.facts[fact as usize].value.clone())
    }
}
