//! Work by itself: a piece that was handed out knows all it needs and can run anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::executed::{Executed, Outcome, Ticket};
use super::start::{Started, completed};
use super::wait::wait_for;
use crate::event::{ActIx, Phase};
use crate::fact::{FactId, NodeId, RunId, RunnableId, Value};
use crate::policy::{IdempotencyKey, NodeInfo, Overrides, Resolved};
use crate::time::Timestamp;
use crate::verdict::Verdicts;
use crate::work::{Cancellation, RunContext, Signals, Work};
use crate::workflow::{Assigned, Graph, NodeIx, Op};

/// A piece of work that was handed out.
#[derive(Clone)]
pub struct Runnable {
    pub(crate) graph: Arc<Graph>,
    pub(crate) run: RunId,
    pub(crate) act: ActIx,
    pub(crate) node: NodeIx,
    pub(crate) phase: Phase,
    pub(crate) fact: FactId,
    pub(crate) attempt: u32,
    pub(crate) round: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) accepted_at: Option<Timestamp>,
    pub(crate) input: Input,
    pub(crate) meta: BTreeMap<String, Option<Value>>,
    /// What named conditions said of its fact, where it is a condition or a rule that asks them.
    pub(crate) verdicts: Option<Arc<Verdicts>>,
    pub(crate) context: Arc<RunContext>,
    pub(crate) assigned: Arc<Assigned>,
    /// `None` as long as nobody asked for something special.
    pub(crate) special: Option<Box<Special>>,
}

/// What is different in this piece of work from others of its node.
#[derive(Clone, Default)]
pub(crate) struct Special {
    pub(super) overrides: Overrides,
    /// Other work in place of the node's own.
    pub(super) instead: Option<Work>,
    pub(super) cancellation: Option<Cancellation>,
    pub(super) signals: Option<Arc<dyn Signals>>,
    pub(super) key: Option<Arc<str>>,
}

/// A piece of work as a record: enough to find it again in a run that was replayed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnableRef {
    /// The run.
    pub run: String,
    /// The piece of work.
    pub runnable: RunnableId,
    /// The node, by its name where it has one.
    pub node: Option<String>,
    /// The node, by what it is.
    pub node_id: NodeId,
    /// What woke it.
    pub fact: FactId,
    /// The attempt, counted from zero.
    pub attempt: u32,
}

/// What a piece of work works on.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Value(Value),
    Values(Vec<Value>),
    /// The items of a list: all that came of it, or those up to where the reducer halted.
    Items {
        items: Vec<Value>,
        is_whole: bool,
    },
    State {
        state: Value,
        input: Value,
    },
}

impl Runnable {
    /// Returns the id: the same over attempts and restarts.
    #[must_use]
    pub fn id(&self) -> RunnableId {
        runnable_id(&self.run, self.graph.node(self.node).id, self.fact, self.phase)
    }

    /// Returns what pieces of work share that have this key, in all runs: those of its node in its workflow, or those of
    /// the scope that its policy names.
    #[must_use]
    pub fn shared_id(&self, key: &str) -> RunnableId {
        match self.policy().idempotency_key.as_ref().and_then(IdempotencyKey::scope) {
            Some(scope) => RunnableId::hashed(&[b"key of scope\0", scope.as_bytes(), b"\0", key.as_bytes()]),
            None => {
                let (workflow, node) = (self.workflow_name().as_bytes(), self.graph.node(self.node).id);
                RunnableId::hashed(&[b"key of node\0", workflow, b"\0", &node.to_bytes(), key.as_bytes()])
            }
        }
    }

    /// Returns what the same pieces of work shared in stores of releases before keys had scopes, in which workflows with
    /// equal nodes met.
    #[must_use]
    pub fn unscoped_id(&self, key: &str) -> RunnableId {
        RunnableId::hashed(&[b"key\0", &self.graph.node(self.node).id.to_bytes(), key.as_bytes()])
    }

    /// Returns the name of its workflow.
    #[must_use]
    pub fn workflow_name(&self) -> &str {
        &self.graph.name
    }

    /// Returns it as a record.
    #[must_use]
    pub fn to_ref(&self) -> RunnableRef {
        let node = self.graph.node(self.node);
        RunnableRef {
            run: self.run.to_string(),
            runnable: self.id(),
            node: node.name.as_deref().map(str::to_owned),
            node_id: node.id,
            fact: self.fact,
            attempt: self.attempt,
        }
    }

    /// Returns what policies see of its node.
    #[must_use]
    pub fn node(&self) -> NodeInfo<'_> {
        self.graph.node(self.node).info()
    }

    /// Returns the policy that it runs under.
    #[must_use]
    pub fn policy(&self) -> &Arc<Resolved> {
        self.assigned.policy(self.node)
    }

    /// Tells whether its policy changes nothing: one call, and its outcome counts.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.assigned.is_plain(self.node)
    }

    /// Returns the attempt, counted from zero.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns when its first attempt began, if somebody knows.
    #[must_use]
    pub const fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    /// Returns when the input that caused it was accepted, if somebody knows.
    #[must_use]
    pub const fn accepted_at(&self) -> Option<Timestamp> {
        self.accepted_at
    }

    /// Returns the run.
    #[must_use]
    pub const fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Returns what it works on, as one value.
    #[must_use]
    pub fn input(&self) -> Value {
        self.input.whole()
    }

    /// Makes it another attempt at the same work.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// Gives the work these overrides, as a fallback does.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.special.get_or_insert_default().overrides = overrides;
        self
    }

    /// Puts other work in place of the node's own, on the same input, as a fallback does.
    #[must_use]
    pub fn with_work(mut self, work: Work) -> Self {
        self.special.get_or_insert_default().instead = Some(work);
        self
    }

    /// Says who may stop it.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.special.get_or_insert_default().cancellation = Some(cancellation);
        self
    }

    /// Says what makes it the same as other work.
    #[must_use]
    pub fn with_key(mut self, key: Arc<str>) -> Self {
        self.special.get_or_insert_default().key = Some(key);
        self
    }

    /// Says who listens to it.
    #[must_use]
    pub fn with_signals(mut self, signals: Arc<dyn Signals>) -> Self {
        self.special.get_or_insert_default().signals = Some(signals);
        self
    }

    /// Tells whether its function looks at its context, and could learn there that it should stop.
    #[must_use]
    pub fn wants_context(&self) -> bool {
        match (self.instead(), &self.graph.node(self.node).op) {
            (Some(work), _)
            | (None, Op::Step(work) | Op::Condition(work) | Op::Rule { reaction: work, .. }) => {
                work.wants_context()
            }
            (None, Op::Join | Op::FanOut { .. } | Op::FanIn { .. } | Op::State(_)) => false,
        }
    }

    /// Tells whether its function is async; everything else is over when [`Runnable::execute`] returns.
    #[must_use]
    pub fn is_async(&self) -> bool {
        match (self.instead(), &self.graph.node(self.node).op) {
            (Some(work), _) => work.is_async(),
            (None, Op::Rule { test, .. }) if self.phase == Phase::Match => test.is_async(&self.graph.nodes),
            (None, op) => op.is_async(),
        }
    }

    /// Returns what ends it if it does not come back.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket { run: self.run.clone(), act: self.act, attempts: self.attempt + 1, round: self.round }
    }

    /// Runs it to its end, waiting for it if it is async. A panic is a failure.
    #[must_use]
    pub fn execute(self) -> Executed {
        let outcome = match self.start() {
            Started::Over(outcome) => outcome,
            Started::Later(later) => completed(wait_for(later)),
        };
        let outcome = self.after_hooks(outcome);
        self.executed(outcome)
    }

    /// Runs it to its end. Async work is awaited; other work is done at the first poll.
    pub async fn execute_async(self) -> Executed {
        let outcome = match self.start() {
            Started::Over(outcome) => outcome,
            Started::Later(later) => completed(later.await),
        };
        let outcome = self.after_hooks(outcome);
        self.executed(outcome)
    }

    /// Ends it with a given outcome instead of running it.
    #[must_use]
    pub fn executed(self, outcome: Outcome) -> Executed {
        let attempts = self.attempt + 1;
        Ticket { run: self.run, act: self.act, attempts, round: self.round }.executed(outcome)
    }

    pub(super) fn instead(&self) -> Option<&Work> {
        self.special.as_ref().and_then(|special| special.instead.as_ref())
    }
}

impl Input {
    /// Returns the input as one value.
    pub(super) fn whole(&self) -> Value {
        match self {
            Self::Value(value) | Self::State { input: value, .. } => value.clone(),
            Self::Values(values) | Self::Items { items: values, .. } => Value::several(values.clone()),
        }
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable")
            .field("run", &self.run)
            .field("node", &self.node().name)
            .finish_non_exhaustive()
    }
}

/// Returns the identity of a piece of work: a node and what woke it, in a run.
pub(crate) fn runnable_id(run: &RunId, node: NodeId, fact: FactId, phase: Phase) -> RunnableId {
    let phase: &[u8] = match phase {
        Phase::Match => b"match",
        Phase::Work => b"work",
        Phase::Undo => b"undo",
    };
    RunnableId::hashed(&[run.as_str().as_bytes(), b"\0", &node.to_bytes(), &fact.to_bytes(), phase])
}
