//! The graph that a workflow is lowered to: dense indexes, children with their slots, and what each node
//! does. It is immutable and shared; runs hold everything that changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::assign::Assigned;
use super::build::WorkflowBuilder;
use super::check::check_undoing;
use super::error::{BuildError, BuildErrors};
use super::extras::{ContextKey, Extras};
use super::ports::Ports;
use super::rule::{Reducer, Stateful};
use crate::document::Problems;
use crate::fact::{NodeId, Value};
use crate::policy::{Kind, Matcher, NodeInfo, Policy, Rule, Rules};
use crate::work::{PortType, RunContext, Work};

/// A node by its place in the graph.
pub(crate) type NodeIx = u32;

/// A definition of work: components and what they come after, with the policies they run under.
///
/// It is immutable and cheap to clone; a run holds the facts.
#[derive(Clone)]
pub struct Workflow(pub(crate) Arc<Graph>);

/// The lowered form. What does not depend on the rules is shared by definitions that differ in nothing else.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) nodes: Arc<[Node]>,
    pub(crate) by_name: Arc<BTreeMap<Arc<str>, NodeIx>>,
    pub(crate) by_id: Arc<BTreeMap<NodeId, NodeIx>>,
    /// What takes the input.
    pub(crate) roots: Arc<[Edge]>,
    /// The rules and what they give each node.
    pub(crate) assigned: Arc<Assigned>,
    pub(crate) ports: Ports,
}

/// A way from one node to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: NodeIx,
    /// Which of its parents this is.
    pub(crate) slot: u32,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) kind: Kind,
    pub(crate) tags: Vec<String>,
    pub(crate) op: Op,
    pub(crate) children: Vec<Edge>,
    /// How many nodes it comes after.
    pub(crate) parents: u32,
    /// The maps it runs inside of, outermost first.
    pub(crate) scope: Vec<NodeIx>,
    /// Its place in an order in which everything comes after its parents.
    pub(crate) rank: u32,
    /// Whether something after it waits for every lineage: a join, a reduce, a state.
    pub(crate) awaited: bool,
    pub(crate) gives: PortType,
    pub(crate) extras: Extras,
    /// Whether somebody reads what it produced.
    pub(crate) is_read: bool,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Step(Work),
    Condition(Work),
    Rule {
        test: Check,
        reaction: Work,
    },
    Join,
    /// Takes a list apart for the function that comes right after it.
    FanOut {
        work: Work,
        fan_ins: Vec<NodeIx>,
    },
    /// Folds the items of a map; without one, the list itself.
    FanIn {
        reducer: Reducer,
        fan_out: Option<NodeIx>,
    },
    State(Stateful),
}

/// A test whose named conditions are found.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    Named(NodeIx),
    Inline(Work),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
}

impl Op {
    /// Tells whether the function of its work is async.
    pub(crate) const fn is_async(&self) -> bool {
        match self {
            Self::Step(work) | Self::Condition(work) | Self::Rule { reaction: work, .. } => work.is_async(),
            Self::Join | Self::FanOut { .. } | Self::FanIn { .. } | Self::State(_) => false,
        }
    }
}

impl Check {
    /// Calls a function with each condition that it names. The depth is that of the expression, which a person wrote.
    pub(crate) fn each_named(&self, call: &mut impl FnMut(NodeIx)) {
        match self {
            Self::Named(ix) => call(*ix),
            Self::Inline(_) => {}
            Self::All(checks) | Self::Any(checks) => checks.iter().for_each(|check| check.each_named(call)),
            Self::Not(check) => check.each_named(call),
        }
    }

    /// Tells whether some part of it is async.
    pub(crate) fn is_async(&self, nodes: &[Node]) -> bool {
        match self {
            Self::Named(ix) => matches!(&nodes[*ix as usize].op, Op::Condition(work) if work.is_async()),
            Self::Inline(work) => work.is_async(),
            Self::All(checks) | Self::Any(checks) => checks.iter().any(|check| check.is_async(nodes)),
            Self::Not(check) => check.is_async(nodes),
        }
    }
}

impl Workflow {
    /// Begins a workflow.
    #[expect(clippy::new_ret_no_self, reason = "a workflow begins with its builder and ends with build()")]
    pub fn new(name: impl Into<String>) -> WorkflowBuilder {
        WorkflowBuilder::new(name)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Tells whether both are the very same definition: one is a clone of the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Returns the names of its components, sorted.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.by_name.keys().map(AsRef::as_ref)
    }

    /// Tells whether it has a component of that name.
    #[must_use]
    pub fn has_component(&self, name: &str) -> bool {
        self.0.by_name.contains_key(name)
    }

    /// Returns the names of components that are spelt like a name, for error messages.
    #[must_use]
    pub fn names_near(&self, name: &str) -> Vec<String> {
        crate::query::nearest_names(name, self.0.by_name.keys().map(AsRef::as_ref))
    }

    /// Tells whether it has components that undo what others did.
    #[must_use]
    pub fn has_compensations(&self) -> bool {
        self.0.nodes.iter().any(|node| node.kind == Kind::Compensation)
    }

    /// Returns what policies see of a component.
    #[must_use]
    pub fn node_info(&self, name: &str) -> Option<NodeInfo<'_>> {
        let ix = *self.0.by_name.get(name)?;
        Some(self.0.node(ix).info())
    }

    /// Returns the states that accumulators and state machines begin with, by component.
    pub fn initial_states(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.nodes.iter().filter_map(|node| match &node.op {
            Op::State(stateful) => Some((node.name.as_deref()?, &stateful.initial)),
            _ => None,
        })
    }

    /// Returns the values from outside that components use, by component.
    #[must_use]
    pub fn context_keys(&self) -> BTreeMap<&str, &[ContextKey]> {
        let named = self.0.nodes.iter().filter(|node| !node.extras.needs.is_empty());
        named.filter_map(|node| Some((node.name.as_deref()?, node.extras.needs.as_slice()))).collect()
    }

    /// Checks that a run context has everything that components need.
    ///
    /// # Errors
    /// What is missing, as pairs of component and key.
    pub fn check_context(&self, context: &RunContext) -> Result<(), Vec<(String, String)>> {
        let mut missing = Vec::new();
        for (component, keys) in self.context_keys() {
            for key in keys.iter().filter(|key| key.default.is_none()) {
                if context.get(Some(component), &key.key).is_none() {
                    missing.push((component.to_owned(), key.key.clone()));
                }
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Returns the policies.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.0.assigned.rules
    }

    /// Returns the same definition under these rules of policy in place of its own. It shares its graph.
    ///
    /// A runner knows one definition by its name and version, and refuses a second one with other rules: rules for one run
    /// are options of its start.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{NodeInfo, Policy, default, name};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let plain = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let patient = plain.with_policies([(name("inc"), Policy::new().max_retries(3))])?;
    /// let limited = patient.append_policy(default(), Policy::new().timeout("30s"))?;
    /// let hurried = limited.prepend_policy(name("inc"), Policy::fast_fail())?;
    /// let retries = |workflow: &Workflow| workflow.rules().resolve(&NodeInfo::step("inc")).policy.max_retries;
    /// assert_eq!([&plain, &patient, &limited, &hurried].map(retries), [0, 3, 3, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with the rules, as of
    /// [`WorkflowBuilder::build`](super::WorkflowBuilder::build).
    pub fn with_policies(
        &self,
        policies: impl IntoIterator<Item = (Matcher, Policy)>,
    ) -> Result<Self, BuildErrors> {
        self.under(policies, |_, _| true)
    }

    /// Returns the same definition with a rule of policy before its own. It may take the place of some of them.
    ///
    /// # Errors
    /// As of [`Workflow::with_policies`].
    pub fn prepend_policy(&self, matcher: Matcher, policy: Policy) -> Result<Self, BuildErrors> {
        let own = self.rules().as_slice().iter().map(Rule::written);
        self.under(std::iter::once((matcher, policy)).chain(own), |index, _| index == 0)
    }

    /// Returns the same definition with a rule of policy after its own.
    ///
    /// # Errors
    /// As of [`Workflow::with_policies`].
    pub fn append_policy(&self, matcher: Matcher, policy: Policy) -> Result<Self, BuildErrors> {
        let own = self.rules().as_slice().iter().map(Rule::written);
        self.under(own.chain(std::iter::once((matcher, policy))), |index, count| index + 1 == count)
    }

    /// Puts the nodes under other rules. Of those, the ones that `is_new` says may not be idle, by their index and the
    /// number of all rules.
    fn under(
        &self,
        policies: impl IntoIterator<Item = (Matcher, Policy)>,
        is_new: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, BuildErrors> {
        let refused = |problems| BuildErrors(vec![BuildError::Policies(problems)]);
        let rules = Rules::new(policies).map_err(refused)?;
        let running = self.0.nodes.iter().filter(|node| !matches!(node.op, Op::Join)).map(Node::info);
        let idle = rules.idle(running, 0).into_iter();
        let idle =
            idle.filter(|(index, _)| is_new(*index, rules.as_slice().len())).map(|(_, problem)| problem);
        Problems::check(idle.collect(), ()).map_err(refused)?;
        let mut errors = Vec::new();
        check_undoing(self.0.nodes.iter().map(Node::info), &rules, &mut errors);
        if !errors.is_empty() {
            return Err(BuildErrors(errors));
        }
        let assigned = Arc::new(Assigned::new(rules, &self.0.nodes));
        assigned.check().map_err(|problems| BuildErrors(vec![BuildError::Policies(problems)]))?;
        Ok(Self(Arc::new(Graph { assigned, ..(*self.0).clone() })))
    }
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflow")
            .field("name", &self.0.name)
            .field("components", &self.0.by_name.keys())
            .finish_non_exhaustive()
    }
}

impl Graph {
    pub(crate) fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix as usize]
    }
}

impl Node {
    pub(crate) fn info(&self) -> NodeInfo<'_> {
        NodeInfo { name: self.name.as_deref(), kind: self.kind, tags: &self.tags }
    }

    /// What people call it, also when it has no name.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.kind.name())
    }
}
