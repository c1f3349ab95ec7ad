//! A run: the facts of a workflow and what is pending. It changes by events alone, in `absorb`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::row::{
    ActRow, CausedRow, FactRow, FailureRow, FanRow, FoldRow, JoinRow, LineageRow, RegisteredRow, StateRow,
    Tries, UndoRow,
};
use crate::document::Problem;
use crate::event::{Absence, ActIx, Event, FactIx, LineageIx, Undo};
use crate::execute::runnable_id;
use crate::fact::{RunId, RunnableId};
use crate::fold::Looks;
use crate::policy::{NodeInfo, Overlay, Resolved, Rules};
use crate::time::Timestamp;
use crate::verdict::KeptVerdicts;
use crate::work::RunContext;
use crate::workflow::{Assigned, Graph, NodeIx, Workflow};

/// A run of a workflow, in memory.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, step};
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
    /// What named conditions said of facts that are still asked about, where some are handed out. A replay begins
    /// without it: conditions are asked again then.
    pub(crate) verdicts: KeptVerdicts,
    /// Where reducers that may halt were looked at up to. A replay begins without it: they are looked at again then.
    pub(crate) looks: Looks,
    /// What the last call changed.
    pub(crate) events: Vec<Event>,
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
            verdicts: KeptVerdicts::default(),
            looks: Looks::default(),
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
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Overlay, Policy, Rules, name};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let rules = Rules::new([(name("inc"), Policy::new().max_retries(5))])?;
    /// let run = workflow.run("run-1").with_policies(rules, Overlay::Merge);
    /// let (_, policy, _) = run.nodes().next().expect("it has a node");
    /// assert_eq!(policy.max_retries, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let nodes = (0..).zip(self.graph.nodes.iter());
        nodes.map(|(ix, node)| (node.info(), self.assigned.policy(ix), node.op.is_async()))
    }

    /// Returns every reason why the policy of a node is not known: a predicate panicked. The work of such a node fails.
    pub fn policy_problems(&self) -> impl Iterator<Item = &Problem> {
        self.assigned.problems()
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

pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).expect("invariant: a run has fewer than 2^32 of anything")
}
