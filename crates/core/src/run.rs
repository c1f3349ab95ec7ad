//! A run: the facts of a workflow and what is pending. It changes by events alone: `Run::absorb` is the only
//! place that changes anything.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::decide::ReasonCode;
use crate::event::{Absence, ActIx, Arrival, Event, FactIx, Hold, LineageIx, Phase, Undo};
use crate::execute::runnable_id;
use crate::fact::{FactId, RunId, RunnableId, Value};
use crate::policy::{Failure, NodeInfo, Overlay, Resolved, Rules};
use crate::time::Timestamp;
use crate::work::RunContext;
use crate::workflow::{Assigned, Graph, NodeIx, Op, Workflow};

/// A run of a workflow, in memory.
///
/// ```
/// use tidewheel_core::workflow::{Workflow, step};
///
/// let workflow = Workflow::new("numbers")
///     .add(step("inc", |x: i64| x + 1))
///     .add(step("double", |x: i64| x * 2).after("inc"))
///     .build()?;
/// let mut run = workflow.run("first");
/// run.plan(20_i64);
/// while run.is_runnable() {
///     for runnable in run.prepare() {
///         let executed = runnable.execute(); // anywhere: another thread, another time
///         run.apply(executed);
///     }
/// }
/// assert_eq!(run.result::<i64>("double")?, Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Run {
    pub(crate) graph: Arc<Graph>,
    pub(crate) id: RunId,
    pub(crate) context: Arc<RunContext>,
    pub(crate) assigned: Arc<Assigned>,
    /// The rules of this run over those of its workflow, the first first: those of a workflow that grows change.
    pub(crate) runtime: Vec<(Rules, Overlay)>,
    /// The first input of each node that was added.
    pub(crate) since: BTreeMap<NodeIx, u32>,
    pub(crate) facts: Vec<FactRow>,
    pub(crate) lineages: Vec<LineageRow>,
    /// The lineage of each input.
    pub(crate) inputs: Vec<LineageIx>,
    /// What each input caused.
    pub(crate) caused: Vec<CausedRow>,
    /// When inputs were accepted, and under which key: those of which somebody said so.
    pub(crate) accepted: BTreeMap<u32, Timestamp>,
    pub(crate) keys: BTreeMap<String, u32>,
    /// The inputs that were for one component alone.
    pub(crate) signals: BTreeSet<u32>,
    pub(crate) acts: Vec<ActRow>,
    /// The attempts at work that is not over: those of which somebody knows the time, or that failed once.
    pub(crate) tries: BTreeMap<ActIx, Tries>,
    /// Conditions to look at, in order.
    pub(crate) matches: VecDeque<ActIx>,
    /// Work to hand out, in order.
    pub(crate) ready: VecDeque<ActIx>,
    /// Activations that are not over.
    pub(crate) open: usize,
    /// Those of them that wait for a time or for somebody.
    pub(crate) delayed: usize,
    /// When those are due that wait for a time.
    pub(crate) dues: BTreeSet<(Timestamp, ActIx)>,
    pub(crate) joins: BTreeMap<(NodeIx, LineageIx), JoinRow>,
    pub(crate) folds: BTreeMap<(NodeIx, LineageIx), FoldRow>,
    pub(crate) fans: BTreeMap<(NodeIx, LineageIx), FanRow>,
    pub(crate) states: BTreeMap<NodeIx, StateRow>,
    pub(crate) absent: BTreeMap<(NodeIx, LineageIx), Absence>,
    pub(crate) failures: BTreeMap<ActIx, FailureRow>,
    /// What work said that would undo it, in order.
    pub(crate) registered: Vec<RegisteredRow>,
    /// Where that stands by the work and the component that undoes it: what is said later takes its place.
    pub(crate) said: BTreeMap<(ActIx, NodeIx), u32>,
    /// The inputs whose consequences are undone.
    pub(crate) undoing: BTreeMap<u32, UndoRow>,
    /// How often work was given all its attempts again.
    pub(crate) rounds: BTreeMap<ActIx, u32>,
    /// What is undone by activations that undo.
    pub(crate) undos: BTreeMap<ActIx, Undo>,
    /// The facts of components that somebody reads.
    pub(crate) read: BTreeMap<NodeIx, Vec<FactIx>>,
    /// For each state, the first input that may still have a turn: what was found out once is not looked for
    /// again. It follows from the rest and is not part of what a replay must agree on.
    pub(crate) next_input: BTreeMap<NodeIx, u32>,
    /// What the last call changed.
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub(crate) struct FactRow {
    pub(crate) id: FactId,
    pub(crate) value: Value,
    pub(crate) node: Option<NodeIx>,
    pub(crate) parent: Option<FactIx>,
    pub(crate) lineage: LineageIx,
    pub(crate) depth: u32,
    /// The fact before it that the same input caused.
    pub(crate) before: Option<FactIx>,
}

/// What an input caused: each thing knows the one before it, so that undoing it looks at nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CausedRow {
    /// The last fact.
    pub(crate) fact: Option<FactIx>,
    /// The last activation.
    pub(crate) act: Option<ActIx>,
    /// The last of what work said that would undo it.
    pub(crate) said: Option<u32>,
    /// Activations that are not over.
    pub(crate) open: u32,
}

/// An input, or the place of an item in a list of the parent's lineage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineageRow {
    pub(crate) parent: Option<LineageIx>,
    pub(crate) index: u32,
    pub(crate) input: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ActRow {
    pub(crate) node: NodeIx,
    pub(crate) fact: FactIx,
    pub(crate) lineage: LineageIx,
    pub(crate) phase: Phase,
    pub(crate) status: Status,
    /// The activation before it that the same input caused.
    pub(crate) before: Option<ActIx>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Dispatched,
    /// An attempt failed, and the next one is not due yet.
    Delayed,
    Over,
}

/// What is known of the attempts at a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tries {
    /// The attempt that is out, or comes next.
    pub(crate) attempt: u32,
    /// How often this attempt was handed out.
    pub(crate) dispatches: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) due: Option<Timestamp>,
    /// What it waits for, if that is not its next attempt.
    pub(crate) held: Option<Hold>,
    /// When it could have begun, had there been room for it.
    pub(crate) wanted_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(crate) struct JoinRow {
    pub(crate) parts: Vec<Option<Arrival>>,
    pub(crate) left: u32,
}

impl JoinRow {
    /// Returns why it has nothing, if something will not come.
    pub(crate) fn missed(&self) -> Option<Absence> {
        let missed = self.parts.iter().flatten().filter_map(|part| part.err());
        missed.fold(None, |graver, why| Some(why.graver(graver)))
    }

    /// Returns the parts that came.
    pub(crate) fn came(&self) -> impl Iterator<Item = FactIx> {
        self.parts.iter().flatten().filter_map(|part| part.ok())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FoldRow {
    /// The list.
    pub(crate) fact: FactIx,
    pub(crate) items: Vec<Option<FactIx>>,
    pub(crate) left: u32,
    /// How many items failed.
    pub(crate) failed: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FanRow {
    pub(crate) first: LineageIx,
    pub(crate) count: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StateRow {
    /// The fact that holds the state; `None` before the first input.
    pub(crate) fact: Option<FactIx>,
    /// What waits for its turn.
    pub(crate) waiting: BTreeMap<LineageIx, Option<FactIx>>,
    /// The last lineage that had its turn.
    pub(crate) last: Option<LineageIx>,
    /// Whose turn is under way.
    pub(crate) turn: Option<LineageIx>,
    /// Lineages that missed their turn and come when they can.
    pub(crate) late: BTreeSet<LineageIx>,
}

/// What work said that would undo it.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredRow {
    pub(crate) act: ActIx,
    pub(crate) node: NodeIx,
    /// `None` if it said something else later.
    pub(crate) value: Option<Value>,
    /// How many facts there were.
    pub(crate) after: FactIx,
    /// What was said before it of what the same input caused.
    pub(crate) before: Option<u32>,
}

/// How far an input is undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndoRow {
    /// The last of what is left, by facts and by what was said; `None` before anything is undone.
    pub(crate) left: Option<(Option<FactIx>, Option<u32>)>,
    pub(crate) is_over: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FailureRow {
    pub(crate) failure: Failure,
    pub(crate) attempts: u32,
    pub(crate) skipped: bool,
    /// Why there was no further attempt, if somebody decided.
    pub(crate) reason: Option<ReasonCode>,
}

impl Workflow {
    /// Begins a run.
    pub fn run(&self, id: impl Into<RunId>) -> Run {
        Run {
            graph: Arc::clone(&self.0),
            id: id.into(),
            context: Arc::default(),
            assigned: Arc::clone(&self.0.assigned),
            runtime: Vec::new(),
            since: BTreeMap::new(),
            facts: Vec::new(),
            lineages: Vec::new(),
            inputs: Vec::new(),
            caused: Vec::new(),
            accepted: BTreeMap::new(),
            keys: BTreeMap::new(),
            signals: BTreeSet::new(),
            acts: Vec::new(),
            tries: BTreeMap::new(),
            matches: VecDeque::new(),
            ready: VecDeque::new(),
            open: 0,
            delayed: 0,
            dues: BTreeSet::new(),
            joins: BTreeMap::new(),
            folds: BTreeMap::new(),
            fans: BTreeMap::new(),
            states: BTreeMap::new(),
            absent: BTreeMap::new(),
            failures: BTreeMap::new(),
            registered: Vec::new(),
            said: BTreeMap::new(),
            undoing: BTreeMap::new(),
            rounds: BTreeMap::new(),
            undos: BTreeMap::new(),
            read: BTreeMap::new(),
            next_input: BTreeMap::new(),
            events: Vec::new(),
        }
    }
}

impl Run {
    /// Gives the run values from outside that never reach facts, events or hashes.
    #[must_use]
    pub fn with_context(mut self, context: RunContext) -> Self {
        self.context = Arc::new(context);
        self
    }

    /// Puts rules of this run over those of its workflow, or in their place. Belongs before the first input.
    #[must_use]
    pub fn with_policies(mut self, runtime: Rules, overlay: Overlay) -> Self {
        let rules = self.assigned.rules.overlaid(Some(runtime.clone()), overlay);
        self.assigned = Arc::new(Assigned::new(rules, &self.graph.nodes));
        self.runtime.push((runtime, overlay));
        self.requeue();
        self
    }

    /// Returns the definition of this run: the one that it began with, and what was added. Events of the run
    /// are written and replayed with it.
    #[must_use]
    pub fn workflow(&self) -> Workflow {
        Workflow(Arc::clone(&self.graph))
    }

    /// Returns the rules that hold in this run.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.assigned.rules
    }

    /// Returns each node with the policy that it runs under and whether its work is async.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeInfo<'_>, &Arc<Resolved>, bool)> {
        let nodes = (0..).zip(&self.graph.nodes);
        nodes.map(|(ix, node)| (node.info(), self.assigned.policy(ix), node.op.is_async()))
    }

    /// Returns the values from outside.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.context
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// Tells whether anything is pending or under way.
    #[must_use]
    pub const fn is_runnable(&self) -> bool {
        self.open > 0
    }

    /// Returns what the last call of `plan`, `prepare`, `apply` or `release` changed, in order: all that a log has
    /// to keep. A loop such as `react` makes many such calls, and only the last one is told.
    #[must_use]
    pub fn last_events(&self) -> &[Event] {
        &self.events
    }

    /// Changes the run and remembers the change.
    pub(crate) fn emit(&mut self, event: Event) {
        self.absorb(&event);
        self.events.push(event);
    }

    pub(crate) fn next_fact(&self) -> FactIx {
        index(self.facts.len())
    }

    /// Returns the identity of an activation: a node and what woke it, in this run.
    pub(crate) fn runnable_id(&self, act: ActIx) -> RunnableId {
        let row = &self.acts[act as usize];
        let (node, fact) = (self.graph.node(row.node).id, self.facts[row.fact as usize].id);
        runnable_id(&self.id, node, fact, row.phase)
    }

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
                    match arrival {
                        Ok(fact) => row.items[item.index as usize] = Some(*fact),
                        Err(why) => row.failed += u32::from(why.is_failure()),
                    }
                    row.left = row.left.saturating_sub(1);
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
                    let row = FoldRow { fact, items: vec![None; count as usize], left: count, failed: 0 };
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
        self.acts[act as usize].status = Status::Over;
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

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("workflow", &self.graph.name)
            .field("facts", &self.facts.len())
            .field("open", &self.open)
            .finish_non_exhaustive()
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

pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).expect("invariant: a run has fewer than 2^32 of anything")
}
