//! A run: the facts of a workflow and what is pending. It changes by events alone: `Run::absorb` is the only
//! place that changes anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::decide::ReasonCode;
use crate::event::{Absence, ActIx, Event, FactIx, LineageIx, Phase};
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
    pub(crate) joins: BTreeMap<(NodeIx, LineageIx), JoinRow>,
    pub(crate) folds: BTreeMap<(NodeIx, LineageIx), FoldRow>,
    pub(crate) fans: BTreeMap<(NodeIx, LineageIx), FanRow>,
    pub(crate) states: BTreeMap<NodeIx, StateRow>,
    pub(crate) absent: BTreeMap<(NodeIx, LineageIx), Absence>,
    pub(crate) failures: BTreeMap<ActIx, FailureRow>,
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
}

#[derive(Clone, Debug)]
pub(crate) struct JoinRow {
    pub(crate) parts: Vec<Option<FactIx>>,
    pub(crate) left: u32,
    pub(crate) missed: Option<Absence>,
}

#[derive(Clone, Debug)]
pub(crate) struct FoldRow {
    /// The list.
    pub(crate) fact: FactIx,
    pub(crate) items: Vec<Option<FactIx>>,
    pub(crate) left: u32,
    pub(crate) failed: bool,
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
    /// Whether a turn is under way.
    pub(crate) busy: bool,
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
            accepted: BTreeMap::new(),
            keys: BTreeMap::new(),
            signals: BTreeSet::new(),
            acts: Vec::new(),
            tries: BTreeMap::new(),
            matches: VecDeque::new(),
            ready: VecDeque::new(),
            open: 0,
            joins: BTreeMap::new(),
            folds: BTreeMap::new(),
            fans: BTreeMap::new(),
            states: BTreeMap::new(),
            absent: BTreeMap::new(),
            failures: BTreeMap::new(),
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
                let row = ActRow {
                    node: *node,
                    fact: *fact,
                    lineage: *lineage,
                    phase: *phase,
                    status: Status::Pending,
                };
                self.acts.push(row);
                self.open += 1;
                self.queue_of(*node, *phase).push_back(*act);
                if matches!(self.graph.node(*node).op, Op::State(_)) {
                    self.states.entry(*node).or_default().busy = true;
                }
            }
            Event::ActivationConsumed { act } => self.close(*act),
            Event::ConditionSatisfied { .. } | Event::JoinCompleted { .. } | Event::FanInCompleted { .. } => {
            }
            Event::JoinFactReceived { node, slot, lineage, part } => {
                let parents = self.graph.node(*node).parents;
                let row = self.joins.entry((*node, *lineage)).or_insert_with(|| JoinRow {
                    parts: vec![None; parents as usize],
                    left: parents,
                    missed: None,
                });
                match part {
                    Ok(fact) => row.parts[*slot as usize] = Some(*fact),
                    Err(why) => row.missed = Some(why.graver(row.missed)),
                }
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
                        Err(why) => row.failed |= why.is_failure(),
                    }
                    row.left = row.left.saturating_sub(1);
                }
            }
            Event::StateQueued { node, lineage, input } => {
                self.states.entry(*node).or_default().waiting.insert(*lineage, input.ok());
            }
            Event::StateAdvanced { node, lineage } => {
                let row = self.states.entry(*node).or_default();
                row.waiting.remove(lineage);
                row.last = Some(*lineage);
                row.busy = false;
            }
            Event::StateInitiated { node, fact } => self.states.entry(*node).or_default().fact = Some(*fact),
            Event::NodeSettled { node, lineage, why } => {
                self.absent.insert((*node, *lineage), *why);
            }
            Event::RunnableDispatched { act, attempt, at } => self.absorb_dispatch(*act, *attempt, *at),
            Event::AttemptFailed { act, failed } => {
                self.leave_queue(*act);
                self.acts[*act as usize].status = Status::Delayed;
                let tries = self.tries.entry(*act).or_default();
                tries.attempt = failed.decided.decision.attempt_next;
                tries.dispatches = 0;
                tries.started_at.get_or_insert(failed.decided.situation.step_started_at);
                tries.due = Some(failed.due());
            }
            Event::RunnableCompleted { .. } => {}
            Event::RunnableReleased { act } => {
                let row = &mut self.acts[*act as usize];
                row.status = Status::Pending;
                // Rules that changed meanwhile may let a condition be looked at where it stands.
                let (node, phase) = (row.node, row.phase);
                self.queue_of(node, phase).push_back(*act);
                // Whoever gives work back did not lose it.
                if let Some(tries) = self.tries.get_mut(act) {
                    tries.dispatches = 0;
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
                self.lineages.push(LineageRow { parent: None, index: sequence, input: sequence });
                FactId::hashed(&[b"input\0", self.id.as_str().as_bytes(), b"\0", &sequence.to_le_bytes()])
            }
        };
        let depth = parent.map_or(0, |parent| self.facts[parent as usize].depth + 1);
        let fact = self.next_fact();
        self.facts.push(FactRow { id, value: value.clone(), node, parent, lineage, depth });
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
                    let row = FoldRow { fact, items: vec![None; count as usize], left: count, failed: false };
                    self.folds.insert((*fan_in, lineage), row);
                }
            }
        }
    }

    /// Returns where an activation waits: conditions that are looked at where they stand, or work to hand out.
    fn queue_of(&mut self, node: NodeIx, phase: Phase) -> &mut VecDeque<ActIx> {
        match phase {
            Phase::Match if self.assigned.looks_inline(node) => &mut self.matches,
            Phase::Match | Phase::Work => &mut self.ready,
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

    fn close(&mut self, act: ActIx) {
        if self.acts[act as usize].status == Status::Over {
            return;
        }
        self.leave_queue(act);
        self.acts[act as usize].status = Status::Over;
        self.open -= 1;
        if !self.tries.is_empty() {
            self.tries.remove(&act);
        }
    }

    fn leave_queue(&mut self, act: ActIx) {
        let row = self.acts[act as usize];
        if row.status == Status::Pending {
            remove_from(self.queue_of(row.node, row.phase), act);
        }
    }

    fn absorb_dispatch(&mut self, act: ActIx, attempt: u32, at: Option<Timestamp>) {
        self.leave_queue(act);
        self.acts[act as usize].status = Status::Dispatched;
        // In memory nobody tells the time, and the first attempt leaves nothing to remember.
        if at.is_some() || attempt > 0 {
            let tries = self.tries.entry(act).or_default();
            tries.dispatches = if tries.attempt == attempt { tries.dispatches + 1 } else { 1 };
            tries.attempt = attempt;
            tries.started_at = tries.started_at.or(at);
            tries.due = None;
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
