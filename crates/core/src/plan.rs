//! What did a fact wake? Facts go to the nodes after their producer; absences go there too, so that whatever
//! waits for every lineage learns that it need not.

use crate::event::{Absence, ActIx, Event, FactIx, LineageIx, Phase};
use crate::fact::{Payload, Value};
use crate::query::{near, nearest_names};
use crate::run::{FanRow, Run, index};
use crate::time::Timestamp;
use crate::workflow::{Edge, NodeIx, Op};

/// Why a signal was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// There is no such component.
    #[error("the workflow has no component `{component}`{}", near(nearest))]
    NoComponent {
        /// The name.
        component: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// The component comes after others.
    #[error("`{component}` comes after other components, and a signal goes to one that takes the input")]
    TakesNoInput {
        /// The name.
        component: String,
    },
}

/// What is known of an input beside its value.
#[derive(Default)]
struct Told {
    at: Option<Timestamp>,
    key: Option<String>,
    to: Option<NodeIx>,
}

impl Run {
    /// Takes an input and finds what it wakes. Conditions that it wakes are looked at.
    ///
    /// Returns the events.
    pub fn plan<T: Payload>(&mut self, input: T) -> &[Event] {
        self.plan_value(Value::new(input))
    }

    /// Takes an input that is a value already.
    pub fn plan_value(&mut self, input: Value) -> &[Event] {
        self.take_in(input, Told::default())
    }

    /// Takes an input of which somebody knows when it was accepted: deadlines count from there. The same key
    /// twice is one input: the second one changes nothing.
    pub fn plan_accepted(&mut self, input: Value, at: Timestamp, key: Option<String>) -> &[Event] {
        if key.as_ref().is_some_and(|key| self.keys.contains_key(key)) {
            self.events.clear();
            return &self.events;
        }
        self.take_in(input, Told { at: Some(at), key, to: None })
    }

    /// Takes a signal: an input for one of the components that take the input. The others learn that nothing
    /// comes for them. It does not count as the last input of the run.
    ///
    /// # Errors
    /// There is no such component, or it takes no input.
    pub fn plan_signal(
        &mut self,
        component: &str,
        input: Value,
        at: Option<Timestamp>,
    ) -> Result<&[Event], SignalError> {
        let node = self.graph.by_name.get(component).copied().filter(|node| !self.is_left_out(*node));
        let Some(node) = node else {
            let nearest = nearest_names(component, self.graph.by_name.keys().map(AsRef::as_ref));
            return Err(SignalError::NoComponent { component: component.to_owned(), nearest });
        };
        let is_for = |edge: &Edge| {
            // A map stands behind what takes its list apart.
            let children = &self.graph.node(edge.to).children;
            edge.to == node
                || (self.graph.node(edge.to).name.is_none() && children.iter().any(|child| child.to == node))
        };
        match self.graph.roots.iter().find(|edge| is_for(edge)).map(|edge| edge.to) {
            Some(to) => Ok(self.take_in(input, Told { at, key: None, to: Some(to) })),
            None => Err(SignalError::TakesNoInput { component: component.to_owned() }),
        }
    }

    /// Returns the input that came under a key, counted from zero.
    #[must_use]
    pub fn input_of_key(&self, key: &str) -> Option<u32> {
        self.keys.get(key).copied()
    }

    fn take_in(&mut self, input: Value, told: Told) -> &[Event] {
        self.events.clear();
        let sequence = index(self.inputs.len());
        let (fact, lineage) = (self.next_fact(), index(self.lineages.len()));
        self.emit(Event::FactProduced { fact, node: None, parent: None, lineage, value: input });
        let Told { at, key, to } = told;
        if at.is_some() || key.is_some() || to.is_some() {
            self.emit(Event::InputAccepted { input: sequence, at, key, to });
        }
        for index in 0..self.graph.roots.len() {
            let edge = self.graph.roots[index];
            if to.is_none_or(|to| to == edge.to) {
                self.deliver(edge, fact, lineage);
            } else {
                let mut told = Vec::new();
                self.tell_absence(edge, lineage, Absence::Unsatisfied, &mut told);
                for (node, lineage, why) in told {
                    self.settle(node, lineage, why);
                }
            }
        }
        self.look_at_conditions();
        &self.events
    }

    /// Brings a fact to what comes after a node.
    pub(crate) fn spread(&mut self, node: NodeIx, fact: FactIx, lineage: LineageIx) {
        for index in 0..self.graph.node(node).children.len() {
            let edge = self.graph.node(node).children[index];
            self.deliver(edge, fact, lineage);
        }
    }

    fn deliver(&mut self, edge: Edge, fact: FactIx, lineage: LineageIx) {
        let node = edge.to;
        if !self.sees(node, lineage) {
            return;
        }
        match &self.graph.node(node).op {
            Op::Step(_) | Op::FanOut { .. } | Op::FanIn { fan_out: None, .. } => {
                self.activate(node, fact, lineage, Phase::Work);
            }
            Op::Condition(_) | Op::Rule { .. } => self.activate(node, fact, lineage, Phase::Match),
            Op::Join => {
                self.emit(Event::JoinFactReceived { node, slot: edge.slot, lineage, part: Ok(fact) });
                self.complete_join(node, lineage);
            }
            Op::FanIn { fan_out: Some(_), .. } => {
                self.emit(Event::FanInReceived { node, lineage, item: Ok(fact) });
                self.complete_fold(node, lineage);
            }
            Op::State(_) => {
                self.emit(Event::StateQueued { node, lineage, input: Ok(fact) });
                self.advance_state(node);
            }
        }
    }

    pub(crate) fn activate(&mut self, node: NodeIx, fact: FactIx, lineage: LineageIx, phase: Phase) {
        if self.is_undone(lineage) {
            self.settle_work(node, lineage, Absence::UpstreamFailed);
            return;
        }
        let act: ActIx = index(self.acts.len());
        self.emit(Event::RunnableActivated { act, node, fact, lineage, phase });
    }

    /// Says that nothing will come of work that was to be done, or failed.
    pub(crate) fn settle_work(&mut self, node: NodeIx, lineage: LineageIx, why: Absence) {
        let graph = std::sync::Arc::clone(&self.graph);
        let Op::FanOut { fan_ins, .. } = &graph.node(node).op else {
            return self.settle(node, lineage, why);
        };
        // A list that is not taken apart has no items, and nobody shall wait for them.
        self.emit(Event::NodeSettled { node, lineage, why });
        self.emit(Event::FannedOut { node, lineage, fact: None, count: 0 });
        for fan_in in fan_ins {
            if self.sees(*fan_in, lineage) {
                self.settle(*fan_in, lineage, why.downstream());
            }
        }
        self.advance_states_inside(node);
    }

    /// Says that nothing will come from a node in a lineage, to everything that has to know.
    pub(crate) fn settle(&mut self, node: NodeIx, lineage: LineageIx, why: Absence) {
        let graph = std::sync::Arc::clone(&self.graph);
        let mut told = vec![(node, lineage, why)];
        while let Some((node, lineage, why)) = told.pop() {
            let row = graph.node(node);
            // Nobody waits for what comes after a condition that was not true, unless something joins.
            if !why.is_failure() && !row.awaited && why == Absence::Unsatisfied {
                continue;
            }
            self.emit(Event::NodeSettled { node, lineage, why });
            let why = why.downstream();
            for edge in row.children.iter().rev() {
                self.tell_absence(*edge, lineage, why, &mut told);
            }
        }
    }

    fn tell_absence(
        &mut self,
        edge: Edge,
        lineage: LineageIx,
        why: Absence,
        told: &mut Vec<(NodeIx, LineageIx, Absence)>,
    ) {
        let node = edge.to;
        if !self.sees(node, lineage) {
            return;
        }
        let graph = std::sync::Arc::clone(&self.graph);
        match &graph.node(node).op {
            Op::Step(_) | Op::Condition(_) | Op::Rule { .. } | Op::FanIn { fan_out: None, .. } => {
                told.push((node, lineage, why));
            }
            Op::FanOut { fan_ins, .. } => {
                self.emit(Event::FannedOut { node, lineage, fact: None, count: 0 });
                let fan_ins = fan_ins.iter().filter(|fan_in| self.sees(**fan_in, lineage));
                told.extend(fan_ins.map(|fan_in| (*fan_in, lineage, why)));
                self.advance_states_inside(node);
            }
            Op::Join => {
                self.emit(Event::JoinFactReceived { node, slot: edge.slot, lineage, part: Err(why) });
                let row = self.joins.get(&(node, lineage)).filter(|row| row.left == 0);
                told.extend(row.map(|row| (node, lineage, why.graver(row.missed()))));
            }
            Op::FanIn { fan_out: Some(_), .. } => {
                self.emit(Event::FanInReceived { node, lineage, item: Err(why) });
                self.complete_fold(node, lineage);
            }
            Op::State(_) => {
                self.emit(Event::StateQueued { node, lineage, input: Err(why) });
                told.push((node, lineage, why));
                self.advance_state(node);
            }
        }
    }

    fn complete_join(&mut self, node: NodeIx, lineage: LineageIx) {
        let Some(row) = self.joins.get(&(node, lineage)) else { return };
        if row.left > 0 {
            return;
        }
        match (row.missed(), row.parts.first()) {
            (None, Some(Some(Ok(first)))) => self.activate(node, *first, lineage, Phase::Work),
            (missed, _) => self.settle(node, lineage, missed.unwrap_or(Absence::Unsatisfied)),
        }
    }

    /// Wakes a reduce that has seen every item, or all that count, or says that it has no result.
    fn complete_fold(&mut self, node: NodeIx, item: LineageIx) {
        let list = self.lineages[item as usize].parent.unwrap_or(item);
        self.complete_fold_of(node, list);
    }

    pub(crate) fn complete_fold_of(&mut self, node: NodeIx, list: LineageIx) {
        let Some(row) = self.folds.get(&(node, list)) else { return };
        if row.halted.is_some() {
            return;
        }
        let (fact, left, failed, count) = (row.fact, row.left, row.failed, row.items.len());
        // The same items count whatever came first, so that it is looked for also when all are there.
        if let Some(items) = self.halts_after(node, list).filter(|items| (*items as usize) < count) {
            self.emit(Event::FanInHalted { node, lineage: list, items });
            self.activate(node, fact, list, Phase::Work);
        } else if left == 0 && failed == 0 {
            self.activate(node, fact, list, Phase::Work);
        } else if left == 0 {
            self.settle(node, list, Absence::UpstreamFailed);
        }
    }

    /// Gives the next lineage its turn at a state, in the order of inputs and items, whatever came first.
    pub(crate) fn advance_state(&mut self, node: NodeIx) {
        loop {
            let Some(row) = self.states.get(&node) else { return };
            if row.turn.is_some() {
                return;
            }
            // Who missed their turn has it now, in order.
            let late = row.late.iter().find_map(|lineage| Some((*lineage, (*row.waiting.get(lineage)?)?)));
            if let Some((lineage, fact)) = late {
                if !self.is_undone(lineage) {
                    return self.activate(node, fact, lineage, Phase::Work);
                }
                self.pass_turn(node, lineage);
                continue;
            }
            let from = self.next_input.get(&node).copied().unwrap_or_else(|| self.since_of(node));
            let (turn, looked_at) = self.next_turn(node, row.last, from);
            self.next_input.insert(node, looked_at);
            let Turn::Now(lineage) = turn else { return };
            let Some(waiting) = self.states.get(&node).and_then(|row| row.waiting.get(&lineage).copied())
            else {
                return;
            };
            match waiting {
                Some(fact) if !self.is_undone(lineage) => {
                    return self.activate(node, fact, lineage, Phase::Work);
                }
                Some(_) => self.pass_turn(node, lineage),
                None => self.emit(Event::StateAdvanced { node, lineage }),
            }
        }
    }

    /// Lets a turn pass of what is undone. States further on wait for it, too, and shall not.
    fn pass_turn(&mut self, node: NodeIx, lineage: LineageIx) {
        self.emit(Event::StateAdvanced { node, lineage });
        self.settle(node, lineage, Absence::UpstreamFailed);
    }

    pub(crate) fn advance_states_inside(&mut self, fan_out: NodeIx) {
        let inside: Vec<NodeIx> = self
            .states
            .keys()
            .copied()
            .filter(|state| self.graph.node(*state).scope.contains(&fan_out))
            .collect();
        for state in inside {
            self.advance_state(state);
        }
    }

    /// Returns whose turn it is, and the input up to which everything is over. Inputs before `from` were found to
    /// be over before; without that, many empty lists would cost their square.
    fn next_turn(&self, node: NodeIx, last: Option<LineageIx>, from: u32) -> (Turn, u32) {
        let scope = &self.graph.node(node).scope;
        let Some(last) = last else { return self.first_of_inputs(scope, from) };
        let input = self.lineages[last as usize].input;
        let mut lineage = last;
        for level in (0..scope.len()).rev() {
            let row = self.lineages[lineage as usize];
            let Some(parent) = row.parent else { break };
            if let Some(fan) = self.fans.get(&(scope[level], parent)) {
                match self.first_of_items(scope, level, *fan, row.index + 1) {
                    Turn::None => {}
                    turn => return (turn, input),
                }
            }
            lineage = parent;
        }
        self.first_of_inputs(scope, from.max(input + 1))
    }

    fn first_of_inputs(&self, scope: &[NodeIx], from: u32) -> (Turn, u32) {
        for (input, lineage) in (from..).zip(self.inputs.iter().skip(from as usize)) {
            match self.first_in(scope, 0, *lineage) {
                Turn::None => {}
                turn => return (turn, input),
            }
        }
        (Turn::NotYet, from.max(index(self.inputs.len())))
    }

    /// Finds the first lineage below one. The depth is that of the nesting of maps, not of data.
    fn first_in(&self, scope: &[NodeIx], level: usize, lineage: LineageIx) -> Turn {
        match scope.get(level) {
            None => Turn::Now(lineage),
            Some(fan_out) => match self.fans.get(&(*fan_out, lineage)) {
                None => Turn::NotYet,
                Some(fan) => self.first_of_items(scope, level, *fan, 0),
            },
        }
    }

    fn first_of_items(&self, scope: &[NodeIx], level: usize, fan: FanRow, from: u32) -> Turn {
        for index in from..fan.count {
            match self.first_in(scope, level + 1, fan.first + index) {
                Turn::None => {}
                turn => return turn,
            }
        }
        Turn::None
    }
}

/// Whose turn it is at a state.
enum Turn {
    Now(LineageIx),
    /// Nobody can say yet.
    NotYet,
    /// Nobody here.
    None,
}
