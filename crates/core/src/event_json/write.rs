//! Events to lines of JSON.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::form::{FailedForm, Form, PhaseForm, UndoForm};
use crate::decide::Record;
use crate::event::{Event, FailedAttempt, Phase, Undo};
use crate::fact::ValueError;
use crate::policy::Failure;
use crate::workflow::{NodeIx, Workflow};

impl Event {
    /// Returns the event as one line of JSON.
    ///
    /// # Errors
    /// A value in it cannot be written as JSON.
    pub fn to_json(&self, workflow: &Workflow) -> Result<String, ValueError> {
        let form = Form::of(self, workflow)?;
        Ok(serde_json::to_string(&form).expect("invariant: an event has no key that is not a string"))
    }

    /// Writes the event as JSON to the end of a text, which does not change if that fails.
    ///
    /// # Errors
    /// A value in it cannot be written as JSON.
    pub fn write_json(&self, workflow: &Workflow, text: &mut Vec<u8>) -> Result<(), ValueError> {
        let form = Form::of(self, workflow)?;
        serde_json::to_writer(text, &form).expect("invariant: an event has no key that is not a string");
        Ok(())
    }
}

impl<'a> Form<'a> {
    fn of(event: &Event, workflow: &'a Workflow) -> Result<Self, ValueError> {
        let name = |node: NodeIx| {
            let node = workflow.0.node(node);
            node.name.as_deref().map_or_else(|| Cow::Owned(node.id.to_string()), Cow::Borrowed)
        };
        Ok(match event {
            Event::FactProduced { fact, node, parent, lineage, value } => Self::FactProduced {
                fact: *fact,
                node: node.map(name),
                parent: *parent,
                lineage: *lineage,
                value: value.to_text()?,
            },
            Event::InputAccepted { input, at, key, to } => Self::InputAccepted {
                input: *input,
                at: *at,
                key: key.as_ref().map(|key| Cow::Owned(key.clone())),
                to: to.map(name),
            },
            Event::ComponentsAdded { nodes, since } => {
                Self::ComponentsAdded { nodes: nodes.iter().copied().map(name).collect(), since: *since }
            }
            Event::RunnableActivated { act, node, fact, lineage, phase } => Self::RunnableActivated {
                act: *act,
                node: name(*node),
                fact: *fact,
                lineage: *lineage,
                phase: match phase {
                    Phase::Match => PhaseForm::Match,
                    Phase::Work => PhaseForm::Work,
                    Phase::Undo => PhaseForm::Undo,
                },
            },
            Event::ActivationConsumed { act } => Self::ActivationConsumed { act: *act },
            Event::ConditionSatisfied { node, fact } => {
                Self::ConditionSatisfied { node: name(*node), fact: *fact }
            }
            Event::JoinFactReceived { node, slot, lineage, part } => Self::JoinFactReceived {
                node: name(*node),
                slot: *slot,
                lineage: *lineage,
                part: (*part).into(),
            },
            Event::JoinCompleted { node, lineage } => {
                Self::JoinCompleted { node: name(*node), lineage: *lineage }
            }
            Event::FannedOut { node, lineage, fact, count } => {
                Self::FannedOut { node: name(*node), lineage: *lineage, fact: *fact, count: *count }
            }
            Event::FanInReceived { node, lineage, item } => {
                Self::FanInReceived { node: name(*node), lineage: *lineage, item: (*item).into() }
            }
            Event::FanInHalted { node, lineage, items } => {
                Self::FanInHalted { node: name(*node), lineage: *lineage, items: *items }
            }
            Event::FanInCompleted { node, lineage } => {
                Self::FanInCompleted { node: name(*node), lineage: *lineage }
            }
            Event::StateQueued { node, lineage, input } => {
                Self::StateQueued { node: name(*node), lineage: *lineage, input: (*input).into() }
            }
            Event::StateAdvanced { node, lineage } => {
                Self::StateAdvanced { node: name(*node), lineage: *lineage }
            }
            Event::StateInitiated { node, fact } => Self::StateInitiated { node: name(*node), fact: *fact },
            Event::NodeSettled { node, lineage, why } => {
                Self::NodeSettled { node: name(*node), lineage: *lineage, why: (*why).into() }
            }
            Event::RunnableDispatched { act, attempt, at } => {
                Self::RunnableDispatched { act: *act, attempt: *attempt, at: *at }
            }
            Event::AttemptFailed { act, failed } => {
                Self::AttemptFailed { act: *act, failed: FailedForm::of(failed) }
            }
            Event::RunnableCompleted { act, attempts, at, recovered } => Self::RunnableCompleted {
                act: *act,
                attempts: *attempts,
                at: *at,
                recovered: recovered.as_deref().map(FailedForm::of),
            },
            Event::RunnableReleased { act } => Self::RunnableReleased { act: *act },
            Event::RunnableHeld { act, why, on, until, at } => Self::RunnableHeld {
                act: *act,
                why: *why,
                on: on.as_ref().map(|on| Cow::Owned(on.clone())),
                until: *until,
                at: *at,
            },
            Event::RunnableReopened { act, at } => Self::RunnableReopened { act: *act, at: *at },
            Event::CommandRefused { command, why } => {
                Self::CommandRefused { command: *command, why: Cow::Owned(why.clone()) }
            }
            Event::UndoRegistered { act, node, value } => {
                Self::UndoRegistered { act: *act, node: name(*node), value: value.to_text()? }
            }
            Event::UndoBegun { input, at } => Self::UndoBegun { input: *input, at: *at },
            Event::UndoActivated { act, node, undo, lineage } => Self::UndoActivated {
                act: *act,
                node: name(*node),
                undo: match undo {
                    Undo::Fact(fact) => UndoForm::Fact(*fact),
                    Undo::Registered(place) => UndoForm::Registered(*place),
                },
                lineage: *lineage,
            },
            Event::UndoEnded { input } => Self::UndoEnded { input: *input },
            Event::RunnableFailed { act, failure, attempts, at, decided } => Self::RunnableFailed {
                act: *act,
                failure: written(failure),
                attempts: *attempts,
                at: *at,
                decided: decided.as_deref().map(logged),
            },
            Event::RunnableSkipped { act, failure, attempts, at, decided } => Self::RunnableSkipped {
                act: *act,
                failure: written(failure),
                attempts: *attempts,
                at: *at,
                decided: decided.as_deref().map(logged),
            },
        })
    }
}

impl FailedForm {
    fn of(attempt: &FailedAttempt) -> Self {
        Self { failure: written(&attempt.failure), decided: logged(&attempt.decided) }
    }
}

fn written(failure: &Failure) -> Box<RawValue> {
    serde_json::value::to_raw_value(failure).expect("invariant: a failure has no key that is not a string")
}

fn logged(record: &Record) -> Box<RawValue> {
    RawValue::from_string(record.to_json()).expect("invariant: a record is written as JSON")
}
