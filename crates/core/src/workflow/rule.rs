//! Rules: conditions over a fact, named or inline, combined by and, or and not; and the reaction to them.

use std::fmt;
use std::sync::Arc;

use super::component::{Body, Component};
use crate::fact::{Payload, Value};
use crate::policy::{Failure, Function};
use crate::work::{Context, IntoWork, PortType, Work, split_list};

/// A test of a fact.
#[derive(Clone, Debug)]
pub enum Test {
    /// A condition component, by its name.
    Named(String),
    /// A function of the fact.
    Inline(Work),
    /// All of them.
    All(Vec<Self>),
    /// At least one of them.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

/// Refers to a condition by its name.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, cond, condition, rule};
///
/// let workflow = Workflow::new("parcels")
///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
///     .add(rule("letter").when_all(cond("heavy")).then(|grams: u32| grams))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(3_000_u32)?;
/// assert_eq!(run.result::<u32>("letter")?, Some(3_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cond(name: impl Into<String>) -> Test {
    Test::Named(name.into())
}

/// Makes a test of a function.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, condition, rule, test};
///
/// let workflow = Workflow::new("parcels")
///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
///     .add(rule("letter").when_all(test(|grams: &u32| *grams < 20)).then(|grams: u32| grams))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(15_u32)?;
/// assert_eq!(run.result::<u32>("letter")?, Some(15));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn test<M>(function: impl IntoWork<M>) -> Test {
    Test::Inline(function.into_work())
}

/// All of several tests.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, all, cond, condition, rule, test};
///
/// let workflow = Workflow::new("parcels")
///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
///     .add(rule("letter").when_all(all([cond("heavy"), test(|grams: &u32| *grams < 5_000)])).then(|grams: u32| grams))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(3_000_u32)?;
/// assert_eq!(run.result::<u32>("letter")?, Some(3_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn all(tests: impl IntoIterator<Item = Test>) -> Test {
    Test::All(tests.into_iter().collect())
}

/// At least one of several tests.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, any, cond, condition, rule, test};
///
/// let workflow = Workflow::new("parcels")
///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
///     .add(rule("letter").when_all(any([cond("heavy"), test(|grams: &u32| *grams < 20)])).then(|grams: u32| grams))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(15_u32)?;
/// assert_eq!(run.result::<u32>("letter")?, Some(15));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn any(tests: impl IntoIterator<Item = Test>) -> Test {
    Test::Any(tests.into_iter().collect())
}

/// The opposite of a test.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, cond, condition, not, rule};
///
/// let workflow = Workflow::new("parcels")
///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
///     .add(rule("letter").when_all(not(cond("heavy"))).then(|grams: u32| grams))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(15_u32)?;
/// assert_eq!(run.result::<u32>("letter")?, Some(15));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn not(test: Test) -> Test {
    Test::Not(Box::new(test))
}

/// Begins a rule: `rule("big").when(|x: &i64| *x > 5).then(|x: i64| x * 10)`.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, rule};
///
/// let workflow = Workflow::new("numbers")
///     .add(rule("big").when(|x: &i64| *x > 5).then(|x: i64| x * 10))
///     .build()?;
/// let mut run = workflow.run("run-1");
/// run.react_until_satisfied(3_i64)?;
/// run.react_until_satisfied(7_i64)?;
/// assert_eq!(run.results::<i64>("big")?, [70]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only a rule has conditions and a reaction; other components that were given some would not compile:
///
/// ```compile_fail,E0599
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::step;
///
/// let _ = step("big", |x: i64| x * 10).when(|x: &i64| *x > 5); // a step always runs
/// ```
///
/// ```compile_fail,E0599
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::condition;
///
/// let _ = condition("big", |x: &i64| *x > 5).then(|x: i64| x * 10); // say step(..).after("big")
/// ```
///
/// ```compile_fail,E0599
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{accumulator, cond};
///
/// let _ = accumulator("sum", 0, |sum: i64, x: i64| sum + x).when_all(cond("big")); // say .after("big")
/// ```
pub fn rule(name: impl Into<String>) -> RuleBuilder {
    RuleBuilder { name: name.into(), test: None }
}

/// A rule that is being written. [`RuleBuilder::then`] makes it a component, which alone can be added to a workflow, come
/// after others and have tags:
///
/// ```compile_fail,E0277
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::{Workflow, rule};
///
/// let _ = Workflow::new("numbers").add(rule("big").when(|x: &i64| *x > 5)); // and then what?
/// ```
///
/// A rule has one reaction:
///
/// ```compile_fail,E0599
/// # use tidewheel_core as tidewheel;
/// use tidewheel::workflow::rule;
///
/// let _ = rule("big").when(|x: &i64| *x > 5).then(|x: i64| x * 10).then(|x: i64| x + 1);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a rule is a component when it has its reaction: add .then(…)"]
pub struct RuleBuilder {
    name: String,
    test: Option<Test>,
}

impl RuleBuilder {
    /// When the rule fires: a function of the fact. Several calls must all be true.
    pub fn when<M>(self, function: impl IntoWork<M>) -> Self {
        self.when_all(test(function))
    }

    /// When the rule fires: a test of named and inline conditions. Several calls must all be true.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, all, cond, condition, not, rule};
    ///
    /// let workflow = Workflow::new("parcels")
    ///     .add(condition("heavy", |grams: &u32| *grams > 2_000))
    ///     .add(condition("huge", |grams: &u32| *grams > 20_000))
    ///     .add(rule("parcel").when_all(all([cond("heavy"), not(cond("huge"))])).then(|grams: u32| grams))
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied(3_000_u32)?;
    /// run.react_until_satisfied(30_000_u32)?;
    /// assert_eq!(run.results::<u32>("parcel")?, [3_000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn when_all(mut self, given: Test) -> Self {
        self.test = Some(match self.test.take() {
            None => given,
            Some(earlier) => Test::All(vec![earlier, given]),
        });
        self
    }

    /// What the rule does when it fires.
    pub fn then<M>(self, work: impl IntoWork<M>) -> Component {
        Component::new(self.name, Body::Rule { test: self.test, reaction: work.into_work() })
    }
}

/// What a reducer says: go on with this, or stop here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold<T> {
    /// Go on.
    Continue(T),
    /// This is the result, whatever is left.
    Halt(T),
}

type FoldFn = dyn Fn(&Context, &[Value]) -> Result<Fold<Value>, Failure> + Send + Sync;
type LookFn = dyn Fn() -> Look + Send + Sync;
/// Takes the items of a list one after the other, and says whether the reducer halts at one.
pub(crate) type Look = Box<dyn FnMut(&Context, &Value) -> Result<bool, Failure> + Send + Sync>;
type NextFn = dyn Fn(&Value, &Value) -> Result<Value, Failure> + Send + Sync;

/// A reducer with its types left out.
#[derive(Clone)]
pub struct Reducer {
    pub(crate) fold: Function<FoldFn>,
    /// Begins to look for the item at which it halts; `None` if it never does.
    pub(crate) look: Option<Function<LookFn>>,
    pub(crate) wants_context: bool,
    pub(crate) takes: PortType,
    /// Takes a list apart into values of the reducer's type.
    pub(crate) split: fn(&Value) -> Result<Vec<Value>, Failure>,
}

impl fmt::Debug for Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reducer")
    }
}

/// A state with its next-state function, types left out.
#[derive(Clone)]
pub(crate) struct Stateful {
    pub(crate) initial: Value,
    pub(crate) next: Function<NextFn>,
}

impl fmt::Debug for Stateful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stateful")
    }
}

/// What a reducer may return: the next accumulator, or a [`Fold`] of it.
pub trait IntoFold<T, Marker> {
    /// Whether it may say that the rest does not matter.
    const MAY_HALT: bool;

    /// Returns what to do next.
    fn into_fold(self) -> Fold<T>;
}

/// Marks a reducer that returns the accumulator.
#[derive(Debug)]
pub enum Always {}
/// Marks a reducer that may stop early.
#[derive(Debug)]
pub enum MayHalt {}

impl<T> IntoFold<T, Always> for T {
    const MAY_HALT: bool = false;

    fn into_fold(self) -> Fold<T> {
        Fold::Continue(self)
    }
}

impl<T> IntoFold<T, MayHalt> for Fold<T> {
    const MAY_HALT: bool = true;

    fn into_fold(self) -> Self {
        self
    }
}

/// Anything that can be a reducer: a function of the accumulator and an item, with or without a context
/// before them. The marker tells the shapes apart; nobody writes it.
pub trait IntoReducer<A, Marker> {
    /// Makes it a reducer that begins with a value.
    fn into_reducer(self, initial: A) -> Reducer;
}

/// Marks a reducer that is called with the accumulator and an item.
#[derive(Debug)]
pub enum Reduces {}
/// Marks a reducer that gets its context first.
#[derive(Debug)]
pub enum ReducesWithContext {}

impl<A, I, R, M, F> IntoReducer<A, (Reduces, I, R, M)> for F
where
    A: Payload,
    I: Payload,
    R: IntoFold<A, M>,
    F: Fn(A, I) -> R + Send + Sync + 'static,
{
    fn into_reducer(self, initial: A) -> Reducer {
        Reducer::new::<A, I, R, M>(initial, false, move |_, accumulator, item| self(accumulator, item))
    }
}

impl<A, I, R, M, F> IntoReducer<A, (ReducesWithContext, I, R, M)> for F
where
    A: Payload,
    I: Payload,
    R: IntoFold<A, M>,
    F: Fn(Context, A, I) -> R + Send + Sync + 'static,
{
    fn into_reducer(self, initial: A) -> Reducer {
        Reducer::new::<A, I, R, M>(initial, true, move |context: &Context, accumulator, item| {
            self(context.clone(), accumulator, item)
        })
    }
}

impl Reducer {
    fn new<A: Payload, I: Payload, R: IntoFold<A, M>, M>(
        initial: A,
        wants_context: bool,
        reduce: impl Fn(&Context, A, I) -> R + Send + Sync + 'static,
    ) -> Self {
        let reduce = Arc::new(move |context: &Context, accumulator: A, item: &Value| {
            let item = item.read::<I>().map_err(|error| Failure::of(&error).code("type").non_retryable())?;
            Ok::<_, Failure>(reduce(context, accumulator, item).into_fold())
        });
        let look: Option<Function<LookFn>> = R::MAY_HALT.then(|| {
            let (initial, reduce) = (initial.clone(), Arc::clone(&reduce));
            let begin: Arc<LookFn> = Arc::new(move || {
                let (mut accumulator, reduce) = (Some(initial.clone()), Arc::clone(&reduce));
                Box::new(move |context: &Context, item: &Value| {
                    let Some(before) = accumulator.take() else { return Ok(false) };
                    match reduce(context, before, item)? {
                        Fold::Continue(next) => accumulator = Some(next),
                        Fold::Halt(_) => return Ok(true),
                    }
                    Ok(false)
                }) as Look
            });
            Function::new(begin)
        });
        let fold = move |context: &Context, items: &[Value]| {
            let mut accumulator = initial.clone();
            for item in items {
                match reduce(context, accumulator, item)? {
                    Fold::Continue(next) => accumulator = next,
                    Fold::Halt(last) => return Ok(Fold::Halt(Value::new(last))),
                }
            }
            Ok(Fold::Continue(Value::new(accumulator)))
        };
        Self {
            fold: Function::new(Arc::new(fold)),
            look,
            wants_context,
            takes: PortType::of::<I>(),
            split: split_list::<I>,
        }
    }
}

impl Stateful {
    pub(crate) fn new<S, I, F>(initial: S, next: F) -> Self
    where
        S: Payload,
        I: Payload,
        F: Fn(S, I) -> S + Send + Sync + 'static,
    {
        let typed = |error: &crate::fact::ValueError| Failure::of(error).code("type").non_retryable();
        let next = move |state: &Value, input: &Value| {
            let state = state.read::<S>().map_err(|error| typed(&error))?;
            let input = input.read::<I>().map_err(|error| typed(&error))?;
            Ok(Value::new(next(state, input)))
        };
        Self { initial: Value::new(initial), next: Function::new(Arc::new(next)) }
    }
}
