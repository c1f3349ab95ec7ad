//! What stands around the work of a component: hooks, values of other components it reads, and values from
//! outside it needs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::component::Component;
use crate::fact::Value;
use crate::policy::{Failure, Function, NodeInfo};

type BeforeFn = dyn Fn(&NodeInfo<'_>, &Value) -> Result<(), Failure> + Send + Sync;
type AfterFn = dyn Fn(&NodeInfo<'_>, &Value, &Value) -> Result<(), Failure> + Send + Sync;

/// What stands around the work of a node.
#[derive(Clone, Default)]
pub(crate) struct Extras {
    pub(crate) before: Vec<Function<BeforeFn>>,
    pub(crate) after: Vec<Function<AfterFn>>,
    pub(crate) reads: Vec<Meta>,
    pub(crate) needs: Vec<ContextKey>,
}

impl Extras {
    /// Returns what is used of the outside where nobody gives it.
    pub(crate) fn defaults(&self) -> BTreeMap<String, serde_json::Value> {
        let given = self.needs.iter().filter_map(|key| Some((key.key.clone(), key.default.clone()?)));
        given.collect()
    }
}

impl fmt::Debug for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extras")
            .field("before", &self.before.len())
            .field("after", &self.after.len())
            .field("reads", &self.reads)
            .field("needs", &self.needs)
            .finish()
    }
}

/// A value of another component, as it is when the work is handed out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meta {
    /// The state of an accumulator or a state machine; its initial state before the first input.
    StateOf(String),
    /// What a component produced last.
    LatestValueOf(String),
    /// Everything that a component produced, as a list.
    AllValuesOf(String),
    /// How many facts a component produced.
    FactCount(String),
    /// Whether a component produced anything.
    StepRan(String),
}

impl Meta {
    /// Returns the component it is about.
    #[must_use]
    pub fn component(&self) -> &str {
        match self {
            Self::StateOf(name)
            | Self::LatestValueOf(name)
            | Self::AllValuesOf(name)
            | Self::FactCount(name)
            | Self::StepRan(name) => name,
        }
    }
}

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::StateOf(_) => "state_of",
            Self::LatestValueOf(_) => "latest_value_of",
            Self::AllValuesOf(_) => "all_values_of",
            Self::FactCount(_) => "fact_count",
            Self::StepRan(_) => "step_ran",
        };
        write!(f, "{word}({})", self.component())
    }
}

/// A value from outside that a component uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextKey {
    /// The key.
    pub key: String,
    /// What is used where nobody gives it; `None` if somebody has to.
    pub default: Option<serde_json::Value>,
}

impl Component {
    /// Calls a function before each attempt, with the node and its input. An error fails the attempt.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::Failure;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let charge = step("charge", |cents: u64| cents).hook_before(|_node, cents| match cents.get::<u64>() {
    ///     Ok(0) => Err(Failure::new("nothing to charge").non_retryable()),
    ///     _ => Ok(()),
    /// });
    /// let mut run = Workflow::new("payment").add(charge).build()?.run("run-1");
    /// run.react_until_satisfied(0_u64)?;
    /// assert_eq!(run.failures()[0].failure.message, "nothing to charge");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hook_before(
        mut self,
        hook: impl Fn(&NodeInfo<'_>, &Value) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.extras.before.push(Function::new(Arc::new(hook)));
        self
    }

    /// Calls a function after each attempt that succeeded, with the node, its input and its output. An error
    /// fails the attempt.
    #[must_use]
    pub fn hook_after(
        mut self,
        hook: impl Fn(&NodeInfo<'_>, &Value, &Value) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.extras.after.push(Function::new(Arc::new(hook)));
        self
    }

    /// Reads a value of another component; the work finds it in its context.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::work::Context;
    /// use tidewheel::workflow::{Meta, Workflow, accumulator, step};
    ///
    /// let workflow = Workflow::new("shop")
    ///     .add(accumulator("sold", 0, |sold: u32, more: u32| sold + more))
    ///     .add(
    ///         step("say", |context: Context, more: u32| {
    ///             format!("{more} more, {} before", context.state_of::<u32>("sold").unwrap_or(0))
    ///         })
    ///         .reads(Meta::StateOf("sold".into())),
    ///     )
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied(5_u32)?;
    /// assert_eq!(run.result::<String>("say")?.as_deref(), Some("5 more, 0 before"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reads(mut self, meta: Meta) -> Self {
        self.extras.reads.push(meta);
        self
    }

    /// Needs a value from outside; a run that does not have it is told so.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::work::RunContext;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("payment").add(step("charge", |cents: u64| cents).needs("api_key")).build()?;
    /// assert!(workflow.check_context(&RunContext::new()).is_err());
    /// assert!(workflow.check_context(&RunContext::new().global("api_key", "sk_1")).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn needs(mut self, key: impl Into<String>) -> Self {
        self.extras.needs.push(ContextKey { key: key.into(), default: None });
        self
    }

    /// Uses a value from outside, or this one where nobody gives it.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::work::Context;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let charge = step("charge", |context: Context, cents: u64| {
    ///     format!("{cents} cents, {}", context.value("region").and_then(|region| region.as_str()).unwrap_or("?"))
    /// });
    /// let mut run = Workflow::new("payment").add(charge.needs_or("region", "eu")).build()?.run("run-1");
    /// run.react_until_satisfied(500_u64)?;
    /// assert_eq!(run.result::<String>("charge")?.as_deref(), Some("500 cents, eu"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn needs_or(mut self, key: impl Into<String>, default: impl Into<serde_json::Value>) -> Self {
        self.extras.needs.push(ContextKey { key: key.into(), default: Some(default.into()) });
        self
    }
}
