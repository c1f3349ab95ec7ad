//! The components of a workflow, and the workflow.
//!
//! ```
//! use tidewheel::workflow::{
//!     Component, Fold, IntoParents, Test, Workflow, WorkflowBuilder, accumulator, all, any, cond, condition, map, not,
//!     reduce, rule, state_machine, step, test,
//! };
//!
//! /// A function may make components, as any other value.
//! fn doubled(name: &str, after: impl IntoParents) -> Component {
//!     step(name, |x: i64| 2 * x).after(after)
//! }
//!
//! let odd: Test = any([not(cond("large")), all([cond("large"), test(|sum: &i64| sum % 3 == 0)])]);
//! let builder: WorkflowBuilder = Workflow::new("everything")
//!     .add(step("list", |text: String| text.split(' ').filter_map(|x| x.parse().ok()).collect::<Vec<i64>>()))
//!     .add(map("square", |x: i64| x * x).after("list"))
//!     .add(doubled("twice", "square"))
//!     .add(reduce("sum", 0, |sum: i64, x: i64| sum + x).after("twice"))
//!     .add(
//!         reduce("first_large", 0, |_: i64, x: i64| if x > 10 { Fold::Halt(x) } else { Fold::Continue(x) })
//!             .after("twice"),
//!     )
//!     .add(condition("large", |sum: &i64| *sum > 100).after("sum"))
//!     .add(
//!         rule("odd_one")
//!             .when_all(odd)
//!             .then(|sum: i64| format!("{sum} is odd"))
//!             .after("sum"),
//!     )
//!     .add(accumulator("total", 0, |total: i64, sum: i64| total + sum).after("sum"))
//!     .add(
//!         state_machine("level", 0, |level: i64, sum: i64| level.max(sum))
//!             .after("sum")
//!             .reactor("flood", |level: &i64| *level > 50, |level: i64| format!("{level} is high")),
//!     );
//! let workflow = builder.build()?;
//!
//! let mut run = workflow.run("run-1");
//! run.react_until_satisfied("1 2 3 four 5".to_owned())?;
//! assert_eq!(run.result::<i64>("sum")?, Some(78));
//! assert_eq!(run.result::<i64>("first_large")?, Some(18));
//! assert_eq!(run.result::<String>("odd_one")?.as_deref(), Some("78 is odd"));
//! assert_eq!(run.results::<String>("level.flood")?, ["78 is high"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is wrong is said when it is built, all of it at once:
//!
//! ```
//! use tidewheel::workflow::{BuildError, BuildErrors, ContextKey, Meta, PortChecks, Workflow, compensation, step};
//!
//! let wrong = Workflow::new("wrong")
//!     .add(step("count", |text: String| text.len()))
//!     .add(step("shout", |text: String| text.to_uppercase()).after("count"))
//!     .add(step("late", |x: u64| x).after("nobody").reads(Meta::StateOf("nothing".to_owned())));
//! let errors: BuildErrors = wrong.clone().build().unwrap_err();
//! assert_eq!(errors.all().len(), 3);
//! let is_mismatch = |error: &BuildError| matches!(error, BuildError::PortMismatch { component, .. } if component == "shout");
//! assert!(errors.all().iter().any(is_mismatch));
//!
//! // Types can be checked more gently.
//! let gentle = wrong.remove("late").port_checks(PortChecks::Warn).build()?;
//! assert_eq!(gentle.warnings().len(), 1);
//!
//! // What it needs from outside, and how it is undone, belongs to it.
//! let workflow = Workflow::new("payment")
//!     .add(step("charge", |cents: u64| cents).needs("api_key"))
//!     .add(compensation("refund", |_cents: u64| {}))
//!     .build()?;
//! let keys: &[ContextKey] = workflow.context_keys()["charge"];
//! assert_eq!((keys[0].key.as_str(), workflow.has_compensations()), ("api_key", true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A rule is a component once it has its reaction:
//!
//! ```
//! use tidewheel::workflow::{RuleBuilder, Workflow, rule};
//!
//! let large: RuleBuilder = rule("large").when(|cents: &u64| *cents > 10_000);
//! let workflow = Workflow::new("orders").add(large.then(|cents: u64| cents)).build()?;
//! let mut run = workflow.run("run-1");
//! run.react_until_satisfied(20_000_u64)?;
//! assert_eq!(run.result::<u64>("large")?, Some(20_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What folds may be a function of your own, too:
//!
//! ```
//! use tidewheel::workflow::{Component, IntoReducer, Reducer, reduce};
//!
//! fn sum<M>(name: &str, function: impl IntoReducer<i64, M>) -> Component {
//!     reduce(name, 0, function)
//! }
//! sum("sum", |sum: i64, x: i64| sum + x);
//! let reducer: Reducer = (|sum: i64, x: i64| sum + x).into_reducer(0);
//! assert!(format!("{reducer:?}").contains("Reducer"));
//! ```

pub use tidewheel_core::workflow::{
    BuildError, BuildErrors, Component, ContextKey, Fold, IntoParents, IntoReducer, Meta, PortChecks,
    Reducer, RuleBuilder, Test, Workflow, WorkflowBuilder, accumulator, all, any, compensation, cond,
    condition, map, not, reduce, rule, state_machine, step, test,
};
