//! What work may know about itself and say to whoever runs it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::cancel::Cancellation;
use super::token::Token;
use crate::fact::{Payload, RunId, RunnableId, Value};
use crate::policy::Overrides;
use crate::workflow::Meta;

/// The optional first argument of work: where and why it runs.
///
/// Cheap to clone. In memory, with no runner there, nobody cancels, and heartbeats and compensations have no
/// effect.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::Failure;
/// use tidewheel::work::{Context, RunContext};
/// use tidewheel::workflow::{Workflow, step};
///
/// fn charge(context: Context, cents: u64) -> Result<String, Failure> {
///     let key = context.value("api_key").and_then(|key| key.as_str());
///     let key = key.ok_or_else(|| Failure::new("no api_key").non_retryable())?;
///     Ok(format!("{cents} cents with {key}, attempt {}", context.attempt()))
/// }
///
/// assert!(charge(Context::empty(), 500).is_err()); // by itself, as in a test
///
/// let workflow = Workflow::new("payment").add(step("charge", charge).needs("api_key")).build()?;
/// let context = RunContext::new().scoped("charge", "api_key", "sk_1");
/// let mut run = workflow.run("run-1").with_context(context);
/// run.react_until_satisfied(500_u64)?;
/// assert_eq!(run.result::<String>("charge")?.as_deref(), Some("500 cents with sk_1, attempt 0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Context(Arc<ContextParts>);

/// What a context is made of. Whoever runs work puts it together.
pub struct ContextParts {
    /// The run.
    pub run: RunId,
    /// The node, if it has a name.
    pub node: Option<Arc<str>>,
    /// The piece of work: the same over attempts and restarts, so it is the key of idempotency.
    pub runnable: RunnableId,
    /// What its policy says in place of that.
    pub key: Option<Arc<str>>,
    /// The attempt, counted from zero.
    pub attempt: u32,
    /// How often the work was given all its attempts again.
    pub round: u32,
    /// Values of other nodes that this one reads, by their expression; `None` where there is no value yet.
    pub meta: BTreeMap<String, Option<Value>>,
    /// Values from outside that never reach a log, with this node's own over the global ones.
    pub run_context: Arc<RunContext>,
    /// What is used of the outside where nobody gives it.
    pub defaults: BTreeMap<String, serde_json::Value>,
    /// What a fallback overrides.
    pub overrides: Overrides,
    /// The word to stop.
    pub cancellation: Cancellation,
    /// Who listens.
    pub signals: Arc<dyn Signals>,
}

impl ContextParts {
    /// Returns the parts of the plainest context: the first attempt of something, with nobody listening.
    #[must_use]
    pub fn of(run: &RunId, run_context: &Arc<RunContext>) -> Self {
        Self {
            run: run.clone(),
            node: None,
            runnable: RunnableId::default(),
            key: None,
            attempt: 0,
            round: 0,
            meta: BTreeMap::new(),
            run_context: Arc::clone(run_context),
            defaults: BTreeMap::new(),
            overrides: Overrides::new(),
            cancellation: Cancellation::default(),
            signals: Arc::new(Silence),
        }
    }
}

/// Who listens to running work.
pub trait Signals: Send + Sync {
    /// The work is alive.
    fn heartbeat(&self) {}

    /// The work did something that a component of the workflow undoes, given this value.
    fn register_compensation(&self, _component: &str, _value: Value) {}
}

/// Nobody listens.
struct Silence;

impl Signals for Silence {}

impl Context {
    /// Puts a context together.
    #[must_use]
    pub fn new(parts: ContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the context of work that is run by itself, as in a test.
    #[must_use]
    pub fn empty() -> Self {
        Self::unused().clone()
    }

    /// Returns a context for work that does not look at it. It is lent: threads that counted how many hold the
    /// one that all of them share would wait for each other.
    pub(crate) fn unused() -> &'static Self {
        static EMPTY: LazyLock<Context> =
            LazyLock::new(|| Context::new(ContextParts::of(&RunId::new(""), &Arc::default())));
        &EMPTY
    }

    /// Returns the run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.0.run
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// Returns the id of this piece of work, the same over attempts and restarts.
    #[must_use]
    pub fn runnable_id(&self) -> RunnableId {
        self.0.runnable
    }

    /// Returns what makes this work the same as other work, for whoever is asked to do something once: what its policy
    /// says, or the id of this piece of work.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::work::Context;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// // The same over attempts and restarts, so that whoever is asked twice can tell.
    /// let pay = step("pay", |context: Context, cents: u64| (context.idempotency_key(), cents));
    /// let mut run = Workflow::new("payment").add(pay).build()?.run("run-1");
    /// run.react_until_satisfied(500_u64)?;
    /// run.react_until_satisfied(500_u64)?;
    /// let paid = run.results::<(String, u64)>("pay")?;
    /// assert_ne!(paid[0].0, paid[1].0); // two inputs are two payments
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.0.key.as_deref().map_or_else(|| self.0.runnable.to_string(), str::to_owned)
    }

    /// Returns the attempt, counted from zero.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Returns what somebody outside ends this attempt with, where the policy says that somebody does.
    #[must_use]
    pub fn token(&self) -> Token {
        let ContextParts { run, runnable, attempt, round, .. } = &*self.0;
        Token { run: run.clone(), work: *runnable, attempt: *attempt, round: *round }
    }

    /// Returns a value from outside: this node's own, else the global one, else its default.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&serde_json::Value> {
        self.0.run_context.get(self.node(), key).or_else(|| self.0.defaults.get(key))
    }

    /// Returns what a fallback overrides.
    #[must_use]
    pub fn overridden(&self, key: &str) -> Option<&serde_json::Value> {
        self.0.overrides.get(key)
    }

    /// Returns a value of another component that this one reads; `None` if there is none yet, or none of that
    /// type.
    ///
    /// # Panics
    /// The component does not say that it reads it, with [`Component::reads`](crate::workflow::Component::reads): its
    /// value is not there to be found, and the work fails with a message that says what to write. A context without a
    /// component, as in a test of a function by itself, has no values.
    #[must_use]
    pub fn meta<T: Payload>(&self, meta: &Meta) -> Option<T> {
        match (self.0.meta.get(&meta.to_string()), self.node()) {
            (Some(value), _) => value.as_ref().and_then(|value| value.get().ok()),
            (None, None) => None,
            (None, Some(node)) => {
                panic!(
                    "`{node}` asks for {meta} without reading it: add .reads(Meta::{meta:?}) to the component"
                )
            }
        }
    }

    /// Returns the state of a component that this one reads.
    ///
    /// # Panics
    /// As of [`Context::meta`].
    #[must_use]
    pub fn state_of<T: Payload>(&self, component: &str) -> Option<T> {
        self.meta(&Meta::StateOf(component.to_owned()))
    }

    /// Returns the word to stop.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::work::Context;
    ///
    /// fn count(context: Context, to: u64) -> u64 {
    ///     (0..to).take_while(|_| !context.cancellation().is_cancelled()).count() as u64
    /// }
    ///
    /// let context = Context::empty();
    /// context.cancellation().cancel();
    /// assert_eq!(count(context, 1_000_000), 0);
    /// ```
    #[must_use]
    pub fn cancellation(&self) -> &Cancellation {
        &self.0.cancellation
    }

    /// Says that the work is alive.
    pub fn heartbeat(&self) {
        self.0.signals.heartbeat();
    }

    /// Says how to undo what the work did so far: the component of that name is given this value, should what the
    /// input caused be undone. Both are stored, so that it is undone after a crash, too; of one component, the
    /// value that was said last counts.
    pub fn register_compensation<T: Payload>(&self, component: &str, value: T) {
        self.0.signals.register_compensation(component, Value::new(value));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("run", &self.0.run)
            .field("node", &self.0.node)
            .field("attempt", &self.0.attempt)
            .finish_non_exhaustive()
    }
}

/// Values from outside for one run: secrets and configuration, in a global scope and one per component.
///
/// They never reach facts, events or hashes, and are not shown when somebody prints them.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::work::RunContext;
///
/// let context = RunContext::new().global("region", "eu").scoped("charge", "region", "ch");
/// assert_eq!(context.get(Some("charge"), "region"), Some(&"ch".into()));
/// assert_eq!(context.get(Some("refund"), "region"), Some(&"eu".into()));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct RunContext {
    global: BTreeMap<String, serde_json::Value>,
    scoped: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

impl RunContext {
    /// Returns a context with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives every component a value.
    #[must_use]
    pub fn global(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.global.insert(key.into(), value.into());
        self
    }

    /// Gives one component a value, over the global one.
    #[must_use]
    pub fn scoped(
        mut self,
        component: impl Into<String>,
        key: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) -> Self {
        self.scoped.entry(component.into()).or_default().insert(key.into(), value.into());
        self
    }

    /// Returns what a component sees under a key.
    #[must_use]
    pub fn get(&self, component: Option<&str>, key: &str) -> Option<&serde_json::Value> {
        let own = component.and_then(|name| self.scoped.get(name)).and_then(|scope| scope.get(key));
        own.or_else(|| self.global.get(key))
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("global", &self.global.keys().collect::<Vec<_>>())
            .field("scoped", &self.scoped.keys().collect::<Vec<_>>())
            .finish()
    }
}
