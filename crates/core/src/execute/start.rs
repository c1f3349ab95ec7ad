//! How a piece of work is begun: its function, its condition, or what undoes it. Who waits for it is up to others.

use std::pin::Pin;
use std::sync::Arc;

use super::executed::Outcome;
use super::runnable::{Input, Runnable};
use crate::condition::verdict;
use crate::event::Phase;
use crate::fact::Value;
use crate::policy::{Compensation, Failure, Kind};
use crate::verdict::{Turn, Verdicts};
use crate::work::{Context, ContextParts, Running, Work, call_user};
use crate::workflow::{Check, Fold, Graph, Op, Reducer};

impl Runnable {
    pub(super) fn start(&self) -> Started {
        if let Some(failure) = self.assigned.refusal(self.node) {
            return Started::Over(Outcome::Failed(failure.clone()));
        }
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
                Op::Condition(_) => Check::Named(self.node),
                _ => Check::All(Vec::new()),
            };
            let asked = Asked {
                graph: Arc::clone(&self.graph),
                context: self.context_here(),
                value: value.clone(),
                verdicts: self.verdicts.clone(),
                turn: (self.round, self.attempt),
            };
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
            (Op::FanIn { reducer, .. }, Input::Items { items, is_whole }) => {
                Started::Over(caught(|| match reducer.fold.call()(&self.context_of(reducer), items)? {
                    Fold::Continue(_) if !is_whole => Err(unstable(items.len())),
                    Fold::Continue(value) | Fold::Halt(value) => Ok(value),
                }))
            }
            (Op::FanIn { reducer, .. }, Input::Value(list)) => Started::Over(caught(|| {
                match reducer.fold.call()(&self.context_of(reducer), &(reducer.split)(list)?)? {
                    Fold::Continue(value) | Fold::Halt(value) => Ok(value),
                }
            })),
            (Op::State(stateful), Input::State { state, input }) => {
                Started::Over(caught(|| stateful.next.call()(state, input)))
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

pub(super) enum Started {
    Over(Outcome),
    Later(Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>),
}

/// A condition that was handed out, with what it is asked about.
struct Asked {
    graph: Arc<Graph>,
    context: Context,
    value: Value,
    verdicts: Option<Arc<Verdicts>>,
    turn: Turn,
}

impl Asked {
    /// Evaluates a test, each part only if it matters. The depth is that of the expression, which a person
    /// wrote.
    fn is_true(&self, check: Check) -> Pin<Box<dyn Future<Output = Result<bool, Failure>> + Send + '_>> {
        Box::pin(async move {
            match check {
                Check::Named(node) => match &self.graph.node(node).op {
                    Op::Condition(work) => match &self.verdicts {
                        Some(verdicts) => verdicts.answer(node, self.turn, self.ask(work)).await,
                        None => self.ask(work).await,
                    },
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

pub(super) fn completed(result: Result<Value, Failure>) -> Outcome {
    match result {
        Ok(value) => Outcome::Completed(value),
        Err(failure) => Outcome::Failed(failure),
    }
}

/// Says that a reducer halted when it was looked at, and did not when it was run: the other items were not awaited.
fn unstable(items: usize) -> Failure {
    let message =
        format!("the reducer halted after {items} items and goes on now: it must answer the same each time");
    Failure::new(message).code("unstable")
}

fn caught(work: impl FnOnce() -> Result<Value, Failure>) -> Outcome {
    completed(call_user(work).flatten())
}
