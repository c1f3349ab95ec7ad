//! Lines of JSON to events. What a line says is looked up in its workflow, and whether it follows from those before it is
//! not asked here.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::form::{FailedForm, Form, PhaseForm, UndoForm};
use crate::decide::{Record, RecordError};
use crate::event::{Event, FailedAttempt, Phase, Undo};
use crate::fact::{NodeId, Value};
use crate::policy::Failure;
use crate::workflow::Workflow;

/// Why a line is no event of a workflow.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// It is not JSON, or of another shape.
    #[error("the line is no event")]
    Malformed(#[source] serde_json::Error),
    /// It tells of a decision that cannot be read.
    #[error("the decision of the event cannot be read")]
    Decision(#[source] RecordError),
    /// It speaks of a node that the workflow does not have.
    #[error("the event is about `{node}`, which the workflow does not have")]
    UnknownNode {
        /// The node.
        node: String,
    },
    /// It speaks of a fact, a lineage or an activation that does not exist yet.
    #[error("the event does not follow from the ones before it")]
    OutOfOrder,
}

impl Event {
    /// Reads a line. Values are kept as text until somebody wants them.
    ///
    /// # Errors
    /// The line is no event of this workflow.
    pub fn from_json(line: &str, workflow: &Workflow) -> Result<Self, EventError> {
        let form: Form<'_> = serde_json::from_str(line).map_err(EventError::Malformed)?;
        form.event(workflow)
    }
}

impl Form<'_> {
    fn event(self, workflow: &Workflow) -> Result<Event, EventError> {
        let found = |name: Cow<'_, str>| {
            let graph = &workflow.0;
            let by_id = || NodeId::parse(&name).and_then(|id| graph.by_id.get(&id).copied());
            let node = graph.by_name.get(name.as_ref()).copied().or_else(by_id);
            node.ok_or_else(|| EventError::UnknownNode { node: name.into_owned() })
        };
        Ok(match self {
            Self::FactProduced { fact, node, parent, lineage, value } => Event::FactProduced {
                fact,
                node: node.map(found).transpose()?,
                parent,
                lineage,
                value: Value::stored(value),
            },
            Self::InputAccepted { input, at, key, to } => Event::InputAccepted {
                input,
                at,
                key: key.map(Cow::into_owned),
                to: to.map(found).transpose()?,
            },
            Self::ComponentsAdded { nodes, since } => Event::ComponentsAdded {
                nodes: nodes.into_iter().map(found).collect::<Result<_, _>>()?,
                since,
            },
            Self::RunnableActivated { act, node, fact, lineage, phase } => Event::RunnableActivated {
                act,
                node: found(node)?,
                fact,
                lineage,
                phase: match phase {
                    PhaseForm::Match => Phase::Match,
                    PhaseForm::Work => Phase::Work,
                    PhaseForm::Undo => Phase::Undo,
                },
            },
            Self::ActivationConsumed { act } => Event::ActivationConsumed { act },
            Self::ConditionSatisfied { node, fact } => Event::ConditionSatisfied { node: found(node)?, fact },
            Self::JoinFactReceived { node, slot, lineage, part } => {
                Event::JoinFactReceived { node: found(node)?, slot, lineage, part: part.into() }
            }
            Self::JoinCompleted { node, lineage } => Event::JoinCompleted { node: found(node)?, lineage },
            Self::FannedOut { node, lineage, fact, count } => {
                Event::FannedOut { node: found(node)?, lineage, fact, count }
            }
            Self::FanInReceived { node, lineage, item } => {
                Event::FanInReceived { node: found(node)?, lineage, item: item.into() }
            }
            Self::FanInHalted { node, lineage, items } => {
                Event::FanInHalted { node: found(node)?, lineage, items }
            }
            Self::FanInCompleted { node, lineage } => Event::FanInCompleted { node: found(node)?, lineage },
            Self::StateQueued { node, lineage, input } => {
                Event::StateQueued { node: found(node)?, lineage, input: input.into() }
            }
            Self::StateAdvanced { node, lineage } => Event::StateAdvanced { node: found(node)?, lineage },
            Self::StateInitiated { node, fact } => Event::StateInitiated { node: found(node)?, fact },
            Self::NodeSettled { node, lineage, why } => {
                Event::NodeSettled { node: found(node)?, lineage, why: why.into() }
            }
            Self::RunnableDispatched { act, attempt, at } => Event::RunnableDispatched { act, attempt, at },
            Self::AttemptFailed { act, failed } => {
                Event::AttemptFailed { act, failed: Box::new(failed.read()?) }
            }
            Self::RunnableCompleted { act, attempts, at, recovered } => Event::RunnableCompleted {
                act,
                attempts,
                at,
                recovered: recovered.map(|failed| failed.read().map(Box::new)).transpose()?,
            },
            Self::RunnableReleased { act } => Event::RunnableReleased { act },
            Self::RunnableHeld { act, why, on, until, at } => {
                Event::RunnableHeld { act, why, on: on.map(Cow::into_owned), until, at }
            }
            Self::RunnableReopened { act, at } => Event::RunnableReopened { act, at },
            Self::CommandRefused { command, why } => Event::CommandRefused { command, why: why.into_owned() },
            Self::UndoRegistered { act, node, value } => {
                Event::UndoRegistered { act, node: found(node)?, value: Value::stored(value) }
            }
            Self::UndoBegun { input, at } => Event::UndoBegun { input, at },
            Self::UndoActivated { act, node, undo, lineage } => Event::UndoActivated {
                act,
                node: found(node)?,
                undo: match undo {
                    UndoForm::Fact(fact) => Undo::Fact(fact),
                    UndoForm::Registered(place) => Undo::Registered(place),
                },
                lineage,
            },
            Self::UndoEnded { input } => Event::UndoEnded { input },
            Self::RunnableFailed { act, failure, attempts, at, decided } => Event::RunnableFailed {
                act,
                failure: Box::new(failed(&failure)?),
                attempts,
                at,
                decided: decided.map(|decided| record(&decided).map(Box::new)).transpose()?,
            },
            Self::RunnableSkipped { act, failure, attempts, at, decided } => Event::RunnableSkipped {
                act,
                failure: Box::new(failed(&failure)?),
                attempts,
                at,
                decided: decided.map(|decided| record(&decided).map(Box::new)).transpose()?,
            },
        })
    }
}

impl FailedForm {
    pub(crate) fn read(&self) -> Result<FailedAttempt, EventError> {
        Ok(FailedAttempt { failure: failed(&self.failure)?, decided: record(&self.decided)? })
    }
}

pub(crate) fn failed(text: &RawValue) -> Result<Failure, EventError> {
    Failure::from_json(text.get()).map_err(EventError::Malformed)
}

pub(crate) fn record(text: &RawValue) -> Result<Record, EventError> {
    Record::from_json(text.get()).map_err(EventError::Decision)
}
