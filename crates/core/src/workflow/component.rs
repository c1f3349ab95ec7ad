//! Components: what people put into a workflow, each with its name, what it comes after, and its function.

use super::extras::Extras;
use super::parents::IntoParents;
use super::rule::{IntoReducer, Reducer, Stateful, Test, rule};
use crate::fact::Payload;
use crate::policy::{Kind, NodeInfo};
use crate::work::{IntoWork, PortType, Work};

/// One component, to be added to a workflow.
#[derive(Clone, Debug)]
pub struct Component {
    pub(crate) name: String,
    pub(crate) after: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) version: u32,
    pub(crate) body: Body,
    pub(crate) extras: Extras,
    /// Components that belong to this one and come right after it.
    pub(crate) attached: Vec<Self>,
}

/// What a component does.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Step(Work),
    Condition(Work),
    Rule { test: Option<Test>, reaction: Work },
    Map(Work),
    Reduce { reducer: Reducer, takes: PortType, gives: PortType },
    Accumulator { stateful: Stateful, takes: PortType, gives: PortType, kind: Kind },
    Compensation(Work),
}

/// Ordinary work: a function of what it comes after.
///
/// With several parents, the function takes as many arguments, in their order, or one list or tuple.
///
/// The function may return a `Result`. If its error is a Rust error, a boxed error, a
/// [`Failure`](crate::policy::Failure) or a `String`, what comes next gets the very value of the `Ok`. If it is another
/// serde type, what comes next gets what serde makes of the value: fields with `#[serde(skip)]` have their default.
///
/// What flows is any serde type; one that is none, or cannot go to another thread, does not compile:
///
/// ```compile_fail
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::step;
///
/// let _ = step("handle", |x: i64| std::thread::spawn(move || x)); // a thread is no value
/// ```
///
/// ```compile_fail
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::step;
///
/// let shared = std::rc::Rc::new(1_i64);
/// let _ = step("shared", move |x: i64| x + *shared); // an Rc stays on its thread
/// ```
pub fn step<M>(name: impl Into<String>, work: impl IntoWork<M>) -> Component {
    Component::new(name, Body::Step(work.into_work()))
}

/// Undoes what another component did. It takes no input and comes after nothing: it runs when what an input caused
/// is undone, on what the component produced whose policy names it, or on what work said with
/// [`Context::register_compensation`](crate::work::Context::register_compensation).
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{OnFailure, Policy, name};
/// use tidewheel::workflow::{Workflow, compensation, step};
///
/// let workflow = Workflow::new("trip")
///     .add(step("book", |trip: String| format!("booking of {trip}")))
///     .add(step("pay", |_: String| Err::<u32, _>("no money".to_owned())).after("book"))
///     .add(compensation("cancel_booking", |booking: String| drop(booking)))
///     .policy(name("book"), Policy::new().compensation_node("cancel_booking"))
///     .policy(name("pay"), Policy::new().on_failure(OnFailure::Compensate))
///     .build()?;
/// assert!(workflow.has_compensations());
/// # Ok::<(), tidewheel::workflow::BuildErrors>(())
/// ```
pub fn compensation<M>(name: impl Into<String>, undo: impl IntoWork<M>) -> Component {
    Component::new(name, Body::Compensation(undo.into_work()))
}

/// A question about a fact, evaluated once per fact: a gate for what comes after it, and a name for rules.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, condition, step};
///
/// let workflow = Workflow::new("orders")
///     .add(condition("large", |cents: &i64| *cents > 10_000))
///     .add(step("thank", |cents: i64| format!("{cents} is a lot!")).after("large"))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(500_i64)?;
/// run.react_until_satisfied(20_000_i64)?;
/// assert_eq!(run.results::<String>("thank")?, ["20000 is a lot!"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn condition<M>(name: impl Into<String>, test: impl IntoWork<M>) -> Component {
    Component::new(name, Body::Condition(test.into_work()))
}

/// Runs a function for each item of a list. What comes after it runs for each item too, until a reduce.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, map, step};
///
/// let workflow = Workflow::new("words")
///     .add(map("length", |word: String| word.len()))
///     .add(step("square", |length: usize| length * length).after("length"))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(vec!["a".to_owned(), "big".to_owned()])?;
/// assert_eq!(run.results::<usize>("square")?, [1, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn map<M>(name: impl Into<String>, work: impl IntoWork<M>) -> Component {
    Component::new(name, Body::Map(work.into_work()))
}

/// Folds the items of the map it comes after, in their order, or of a list where there is no map. A function that returns
/// [`Fold::Halt`](super::Fold::Halt) ends it there: the result waits for no item behind, and it does not matter what
/// becomes of those.
///
/// The function takes the accumulator and an item, and a [`Context`](crate::work::Context) before them if it
/// wants one.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, map, reduce};
///
/// let workflow = Workflow::new("numbers")
///     .add(map("double", |x: i64| 2 * x))
///     .add(reduce("sum", 0, |sum: i64, x: i64| sum + x).after("double"))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(vec![1_i64, 2, 3])?;
/// assert_eq!(run.result::<i64>("sum")?, Some(12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reduce<A: Payload, M>(
    name: impl Into<String>,
    initial: A,
    reducer: impl IntoReducer<A, M>,
) -> Component {
    let reducer = reducer.into_reducer(initial);
    let takes = reducer.takes.clone();
    Component::new(name, Body::Reduce { reducer, takes, gives: PortType::of::<A>() })
}

/// Keeps a state over facts: a function of the state and the fact gives the next state.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, accumulator};
///
/// let workflow = Workflow::new("bank")
///     .add(accumulator("balance", 0, |balance: i64, cents: i64| balance + cents))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(500_i64)?;
/// run.react_until_satisfied(-200_i64)?;
/// assert_eq!(run.result::<i64>("balance")?, Some(300));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accumulator<S, I, F>(name: impl Into<String>, initial: S, next: F) -> Component
where
    S: Payload,
    I: Payload,
    F: Fn(S, I) -> S + Send + Sync + 'static,
{
    stateful(
        name,
        Stateful::new::<S, I, F>(initial, next),
        PortType::of::<I>(),
        PortType::of::<S>(),
        Kind::Accumulator,
    )
}

/// Keeps a state over facts and reacts to it; see [`Component::reactor`].
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, state_machine};
///
/// let workflow = Workflow::new("tank")
///     .add(
///         state_machine("level", 0, |level: i64, litres: i64| level + litres)
///             .reactor("full", |level: &i64| *level >= 100, |level: i64| format!("{level} litres")),
///     )
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(60_i64)?;
/// run.react_until_satisfied(50_i64)?;
/// assert_eq!(run.results::<String>("level.full")?, ["110 litres"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn state_machine<S, I, F>(name: impl Into<String>, initial: S, next: F) -> Component
where
    S: Payload,
    I: Payload,
    F: Fn(S, I) -> S + Send + Sync + 'static,
{
    let body = Stateful::new::<S, I, F>(initial, next);
    stateful(name, body, PortType::of::<I>(), PortType::of::<S>(), Kind::StateMachine)
}

fn stateful(
    name: impl Into<String>,
    stateful: Stateful,
    takes: PortType,
    gives: PortType,
    kind: Kind,
) -> Component {
    Component::new(name, Body::Accumulator { stateful, takes, gives, kind })
}

impl Component {
    pub(crate) fn new(name: impl Into<String>, body: Body) -> Self {
        Self {
            name: name.into(),
            after: Vec::new(),
            tags: Vec::new(),
            version: 1,
            body,
            extras: Extras::default(),
            attached: Vec::new(),
        }
    }

    /// What it comes after: one name, or several in order; several calls add up. Without it, the component takes the
    /// input.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .add(step("inc", |x: i64| x + 1))
    ///     .add(step("double", |x: i64| x * 2))
    ///     .add(step("pair", |one: i64, two: i64| (one, two)).after(["inc", "double"]))
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied(20_i64)?;
    /// assert_eq!(run.result::<(i64, i64)>("pair")?, Some((21, 40)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn after(mut self, parents: impl IntoParents) -> Self {
        self.after.extend(parents.into_parents());
        self
    }

    /// Puts a tag on it, for policies to match.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Policy, tag};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("rates")
    ///     .add(step("fetch", |url: String| url.len()).tag("network"))
    ///     .policy(tag("network"), Policy::io())
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Says that its function is not what it was before, so that stored runs notice.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let before = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let after = Workflow::new("numbers").add(step("inc", |x: i64| x + 2).version(2)).build()?;
    /// let changes = after.changes_since(&before.signature());
    /// assert_eq!(changes[0].to_string(), "`inc` is not what it was");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a reaction to the state: a rule named `machine.name` that comes after it.
    #[must_use]
    pub fn reactor<M, N>(mut self, name: &str, when: impl IntoWork<M>, then: impl IntoWork<N>) -> Self {
        let reaction = rule(format!("{}.{name}", self.name)).when(when).then(then).after(self.name.clone());
        self.attached.push(reaction);
        self
    }

    /// Returns what policies see of it.
    pub(super) fn info(&self) -> NodeInfo<'_> {
        NodeInfo { name: Some(&self.name), kind: self.kind(), tags: &self.tags }
    }

    pub(crate) const fn kind(&self) -> Kind {
        match &self.body {
            Body::Step(_) => Kind::Step,
            Body::Condition(_) => Kind::Condition,
            Body::Rule { .. } => Kind::Rule,
            Body::Map(_) => Kind::Map,
            Body::Reduce { .. } => Kind::Reduce,
            Body::Accumulator { kind, .. } => *kind,
            Body::Compensation(_) => Kind::Compensation,
        }
    }
}
