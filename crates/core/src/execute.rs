//! Work by itself: a piece that was handed out knows all it needs and can run anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};

use serde::{Deserialize, Serialize};

use crate::event::{ActIx, FailedAttempt, Phase};
use crate::fact::{FactId, NodeId, RunId, RunnableId, Value};
use crate::policy::{Compensation, Failure, Kind, NodeInfo, Overrides, Resolved};
use crate::prepare::verdict;
use crate::time::Timestamp;
use crate::work::{Cancellation, Context, ContextParts, RunContext, Running, Signals, Work, panicked};
use crate::workflow::{Assigned, Check, Graph, NodeIx, Op, Reducer};

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
    pub(crate) meta: BTreeMap<String, Value>,
    pub(crate) context: Arc<RunContext>,
    pub(crate) assigned: Arc<Assigned>,
    /// `None` as long as nobody asked for something special.
    pub(crate) special: Option<Box<Special>>,
}

/// What is different in this piece of work from others of its node.
#[derive(Clone, Default)]
pub(crate) struct Special {
    overrides: Overrides,
    /// Other work in place of the node's own.
    instead: Option<Work>,
    cancellation: Option<Cancellation>,
    signals: Option<Arc<dyn Signals>>,
    key: Option<Arc<str>>,
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
    State { state: Value, input: Value },
}

/// A piece of work that was run.
#[derive(Debug)]
pub struct Executed {
    pub(crate) run: RunId,
    pub(crate) act: ActIx,
    pub(crate) outcome: Outcome,
    pub(crate) attempts: u32,
    /// The attempts before, where whoever ran it made several.
    pub(crate) failed: Vec<FailedAttempt>,
    /// The last attempt, if it failed and somebody decided what follows.
    pub(crate) last: Option<Box<FailedAttempt>>,
    /// When it was over, where somebody knows the time.
    pub(crate) at: Option<Timestamp>,
    /// Whether what its input caused is to be undone.
    pub(crate) undoes: bool,
}

/// The right to end a piece of work that was handed out, apart from the work itself.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(crate) run: RunId,
    pub(crate) act: ActIx,
    pub(crate) attempts: u32,
    pub(crate) round: u32,
}

impl Ticket {
    /// Tells whether both are of the same piece of work.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.act == other.act && self.run == other.run
    }

    /// Returns its number: no other piece of work of its run has it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.act
    }

    /// Returns the attempt, counted from zero.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }

    /// Returns how often the work was given all its attempts again.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Ends the piece of work with a given outcome.
    #[must_use]
    pub fn executed(self, outcome: Outcome) -> Executed {
        let Self { run, act, attempts, round: _ } = self;
        Executed { run, act, outcome, attempts, failed: Vec::new(), last: None, at: None, undoes: false }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A value.
    Completed(Value),
    /// A list taken apart.
    FannedOut(Vec<Value>),
    /// Nothing: it failed.
    Failed(Failure),
    /// Nothing: it failed, and its policy lets that pass.
    Skipped(Failure),
}

impl Executed {
    /// Returns what came of it.
    #[must_use]
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns what came of it, by itself.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Puts another outcome in place of what came of it, as a fallback does.
    #[must_use]
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Says when it was over. The run tells it in its events.
    #[must_use]
    pub fn ended_at(self, at: Timestamp) -> Self {
        Self { at: Some(at), ..self }
    }

    /// Says what was decided after the last attempt, which failed: the reason of a failure, or what a fallback
    /// helped out of.
    #[must_use]
    pub fn decided(self, last: FailedAttempt) -> Self {
        Self { last: Some(Box::new(last)), ..self }
    }

    /// Says that what its input caused is to be undone.
    #[must_use]
    pub fn and_undo(self) -> Self {
        Self { undoes: true, ..self }
    }

    /// Adds the attempts that failed before, in order.
    #[must_use]
    pub fn after_attempts(self, failed: Vec<FailedAttempt>) -> Self {
        let before = failed.last().map_or(0, |last| last.decided.decision.attempt_next);
        Self { attempts: self.attempts.max(before + 1), failed, ..self }
    }
}

impl Runnable {
    /// Returns the id: the same over attempts and restarts.
    #[must_use]
    pub fn id(&self) -> RunnableId {
        runnable_id(&self.run, self.graph.node(self.node).id, self.fact, self.phase)
    }

    /// Returns what pieces of work of its node share that have this key, in all runs.
    #[must_use]
    pub fn shared_id(&self, key: &str) -> RunnableId {
        RunnableId::hashed(&[b"key\0", &self.graph.node(self.node).id.to_bytes(), key.as_bytes()])
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

    fn instead(&self) -> Option<&Work> {
        self.special.as_ref().and_then(|special| special.instead.as_ref())
    }

    fn start(&self) -> Started {
        if let Some(failure) = self.before_hooks() {
            return Started::Over(Outcome::Failed(failure));
        }
        if let Some(work) = self.instead() {
            return match self.call(work, &self.input.whole()) {
                Running::Done(result) => Started::Over(completed(result)),
                Running::Later(later) => Started::Later(later),
            };
        }
        if let (Phase::Undo, Input::Value(value)) = (self.phase, &self.input)
            && self.node().kind != Kind::Compensation
        {
            // Rules that changed meanwhile may know no function any more; the work itself would not undo it.
            let Some(Compensation::Function(undo)) = &self.policy().compensation else {
                let failure =
                    Failure::new("nothing is known any more that undoes it").code("no_compensation");
                return Started::Over(Outcome::Failed(failure.non_retryable()));
            };
            let undo = || undo.call()(&self.node(), value).map(Value::new);
            return Started::Over(caught(undo));
        }
        if let (Phase::Match, Input::Value(value)) = (self.phase, &self.input) {
            let check = match &self.graph.node(self.node).op {
                Op::Rule { test, .. } => test.clone(),
                Op::Condition(work) => Check::Inline(work.clone()),
                _ => Check::All(Vec::new()),
            };
            let asked =
                Asked { graph: Arc::clone(&self.graph), context: self.context_here(), value: value.clone() };
            return Started::Later(Box::pin(async move { asked.is_true(check).await.map(Value::new) }));
        }
        match (&self.graph.node(self.node).op, &self.input) {
            (Op::Step(work) | Op::Condition(work) | Op::Rule { reaction: work, .. }, Input::Value(value)) => {
                match self.call(work, value) {
                    Running::Done(result) => Started::Over(completed(result)),
                    Running::Later(later) => Started::Later(later),
                }
            }
            (Op::Join, Input::Values(values)) => {
                Started::Over(Outcome::Completed(Value::several(values.clone())))
            }
            (Op::FanOut { work, .. }, Input::Value(list)) => {
                Started::Over(work.split(list).map_or_else(Outcome::Failed, Outcome::FannedOut))
            }
            (Op::FanIn { reducer, .. }, Input::Values(items)) => {
                Started::Over(caught(|| (reducer.fold)(&self.context_of(reducer), items)))
            }
            (Op::FanIn { reducer, .. }, Input::Value(list)) => {
                Started::Over(caught(|| (reducer.fold)(&self.context_of(reducer), &(reducer.split)(list)?)))
            }
            (Op::State(stateful), Input::State { state, input }) => {
                Started::Over(caught(|| (stateful.next)(state, input)))
            }
            _ => Started::Over(Outcome::Failed(
                Failure::new("the node does not take such an input").non_retryable(),
            )),
        }
    }

    fn call(&self, work: &Work, value: &Value) -> Running {
        if work.wants_context() {
            work.start_on(&self.context_here(), value)
        } else {
            work.start_on(Context::unused(), value)
        }
    }

    fn context_of(&self, reducer: &Reducer) -> Context {
        if reducer.wants_context { self.context_here() } else { Context::empty() }
    }

    fn context_here(&self) -> Context {
        let node = self.graph.node(self.node);
        let mut parts = ContextParts {
            node: node.name.clone(),
            runnable: self.id(),
            attempt: self.attempt,
            round: self.round,
            meta: self.meta.clone(),
            defaults: node.extras.defaults(),
            ..ContextParts::of(&self.run, &self.context)
        };
        if let Some(special) = &self.special {
            parts.overrides.clone_from(&special.overrides);
            parts.key.clone_from(&special.key);
            if let Some(cancellation) = &special.cancellation {
                parts.cancellation = cancellation.clone();
            }
            if let Some(signals) = &special.signals {
                parts.signals = Arc::clone(signals);
            }
        }
        Context::new(parts)
    }
}

/// A condition that was handed out, with what it is asked about.
struct Asked {
    graph: Arc<Graph>,
    context: Context,
    value: Value,
}

impl Asked {
    /// Evaluates a test, each part only if it matters. The depth is that of the expression, which a person
    /// wrote.
    fn is_true(&self, check: Check) -> Pin<Box<dyn Future<Output = Result<bool, Failure>> + Send + '_>> {
        Box::pin(async move {
            match check {
                Check::Named(node) => match &self.graph.node(node).op {
                    Op::Condition(work) => self.ask(work).await,
                    _ => Ok(false),
                },
                Check::Inline(work) => self.ask(&work).await,
                Check::Not(check) => self.is_true(*check).await.map(|answer| !answer),
                Check::All(checks) => {
                    for check in checks {
                        if !self.is_true(check).await? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
                Check::Any(checks) => {
                    for check in checks {
                        if self.is_true(check).await? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
            }
        })
    }

    async fn ask(&self, work: &Work) -> Result<bool, Failure> {
        verdict(match work.start_on(&self.context, &self.value) {
            Running::Done(result) => result,
            Running::Later(later) => later.await,
        })
    }
}

impl Runnable {
    /// Tells whether this is what hooks are about: the work of a rule, not the look at its condition; what a
    /// component does, not how it is undone.
    fn has_hooks(&self) -> bool {
        match self.phase {
            Phase::Match => matches!(self.graph.node(self.node).op, Op::Condition(_)),
            Phase::Work => true,
            Phase::Undo => self.node().kind == Kind::Compensation,
        }
    }

    fn before_hooks(&self) -> Option<Failure> {
        let hooks = &self.graph.node(self.node).extras.before;
        if hooks.is_empty() || !self.has_hooks() {
            return None;
        }
        let input = self.input.whole();
        let call = || hooks.iter().try_for_each(|hook| hook(&self.node(), &input));
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => result.err(),
            Err(payload) => Some(panicked(payload.as_ref())),
        }
    }

    fn after_hooks(&self, outcome: Outcome) -> Outcome {
        let hooks = &self.graph.node(self.node).extras.after;
        let Outcome::Completed(output) = &outcome else { return outcome };
        if hooks.is_empty() || !self.has_hooks() {
            return outcome;
        }
        let input = self.input.whole();
        let call = || hooks.iter().try_for_each(|hook| hook(&self.node(), &input, output));
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(())) => outcome,
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(payload) => Outcome::Failed(panicked(payload.as_ref())),
        }
    }
}

impl Input {
    /// Returns the input as one value.
    fn whole(&self) -> Value {
        match self {
            Self::Value(value) | Self::State { input: value, .. } => value.clone(),
            Self::Values(values) => Value::several(values.clone()),
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

enum Started {
    Over(Outcome),
    Later(Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>),
}

fn completed(result: Result<Value, Failure>) -> Outcome {
    match result {
        Ok(value) => Outcome::Completed(value),
        Err(failure) => Outcome::Failed(failure),
    }
}

fn caught(work: impl FnOnce() -> Result<Value, Failure>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => completed(result),
        Err(payload) => Outcome::Failed(panicked(payload.as_ref())),
    }
}

/// Waits for a future with nothing but the standard library: it sleeps until it is woken.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    #[derive(Default)]
    struct Bell {
        rung: Mutex<bool>,
        changed: Condvar,
    }
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.changed.notify_one();
        }
    }
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut task = std::task::Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut task) {
            return value;
        }
        let mut rung = bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            rung = bell.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
    }
}
