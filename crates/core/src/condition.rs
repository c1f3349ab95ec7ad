//! Conditions that are looked at where they stand, each once per fact, and what their answers mean for the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::apply::Told;
use crate::event::{Absence, ActIx, Event, FactIx, Phase};
use crate::fact::Value;
use crate::policy::Failure;
use crate::run::Run;
use crate::work::{Context, Running, Work};
use crate::workflow::{Check, NodeIx, Op};

impl Run {
    /// Looks at every condition that a fact woke, once per fact and condition.
    pub(crate) fn look_at_conditions(&mut self) {
        if self.matches.is_empty() {
            return;
        }
        let mut known: BTreeMap<(NodeIx, FactIx), Result<bool, Failure>> = BTreeMap::new();
        let graph = Arc::clone(&self.graph);
        while let Some(act) = self.matches.front().copied() {
            let row = self.acts[act as usize];
            let value = self.facts[row.fact as usize].value.clone();
            let mut look = |node: NodeIx, work: &Work| {
                let ask = || {
                    let kept = self.verdicts.of(row.fact).and_then(|verdicts| verdicts.known(node));
                    kept.unwrap_or_else(|| self.is_true(node, work, &value))
                };
                known.entry((node, row.fact)).or_insert_with(ask).clone()
            };
            let verdict = match &graph.node(row.node).op {
                Op::Condition(work) => look(row.node, work),
                Op::Rule { test, .. } => {
                    let inline = |work: &Work| self.is_true(row.node, work, &value);
                    let mut named = |node: NodeIx| match &graph.node(node).op {
                        Op::Condition(work) => look(node, work),
                        _ => Ok(false),
                    };
                    evaluate(test, &inline, &mut named)
                }
                Op::Step(_) | Op::Join | Op::FanOut { .. } | Op::FanIn { .. } | Op::State(_) => Ok(true),
            };
            self.conclude(act, verdict, Told { attempts: 1, at: None, last: None });
        }
        if self.assigned.hands_out_conditions {
            for ((node, fact), answer) in &known {
                if let Some(verdicts) = self.verdicts.of(*fact) {
                    verdicts.keep(*node, answer);
                }
            }
        }
    }

    /// Ends a look at a condition. `Told` says what is known of its attempts.
    pub(crate) fn conclude(&mut self, act: ActIx, verdict: Result<bool, Failure>, told: Told) {
        let row = self.acts[act as usize];
        let is_rule = matches!(self.graph.node(row.node).op, Op::Rule { .. });
        match verdict {
            Ok(true) => {
                self.tell_completed(act, told);
                self.emit(Event::ConditionSatisfied { node: row.node, fact: row.fact });
                self.emit(Event::ActivationConsumed { act });
                if is_rule {
                    self.activate(row.node, row.fact, row.lineage, Phase::Work);
                } else {
                    self.spread(row.node, row.fact, row.lineage);
                }
            }
            Ok(false) => {
                self.tell_completed(act, told);
                self.emit(Event::ActivationConsumed { act });
                self.settle(row.node, row.lineage, Absence::Unsatisfied);
            }
            Err(failure) => {
                self.tell_failed(act, failure, told);
                self.emit(Event::ActivationConsumed { act });
                self.settle(row.node, row.lineage, Absence::Failed);
            }
        }
    }

    /// Asks a function about a value.
    fn is_true(&self, node: NodeIx, work: &Work, value: &Value) -> Result<bool, Failure> {
        let running = if work.wants_context() {
            work.start_on(&self.plain_context(node), value)
        } else {
            work.start_on(Context::unused(), value)
        };
        let result = match running {
            Running::Done(result) => result,
            Running::Later(later) => crate::execute::wait_for(later),
        };
        verdict(result)
    }
}

/// Reads the answer of a condition. A value that is not of its type is not what the condition is about.
pub(crate) fn verdict(answer: Result<Value, Failure>) -> Result<bool, Failure> {
    match answer {
        Ok(answer) => answer.get::<bool>().map_err(|error| Failure::of(&error).non_retryable()),
        Err(failure) if failure.code == Some("type".into()) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Evaluates a test, each part only if it matters. The depth is that of the expression, which a person wrote.
fn evaluate(
    check: &Check,
    inline: &impl Fn(&Work) -> Result<bool, Failure>,
    named: &mut impl FnMut(NodeIx) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    match check {
        Check::Named(node) => named(*node),
        Check::Inline(work) => inline(work),
        Check::Not(check) => evaluate(check, inline, named).map(|answer| !answer),
        Check::All(checks) => {
            for check in checks {
                if !evaluate(check, inline, named)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Check::Any(checks) => {
            for check in checks {
                if evaluate(check, inline, named)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}
