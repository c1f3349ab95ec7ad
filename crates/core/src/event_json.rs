//! Events as JSON, one line each: what a log keeps. Nodes are written by name, or by id where they have none.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::decide::{Record, RecordError};
use crate::event::{Absence, Arrival, Event, FailedAttempt, Hold, Phase, Undo};
use crate::fact::{NodeId, Value, ValueError};
use crate::policy::Failure;
use crate::time::Timestamp;
use crate::workflow::{NodeIx, Workflow};

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

    /// Reads a line. Values are kept as text until somebody wants them.
    ///
    /// # Errors
    /// The line is no event of this workflow.
    pub fn from_json(line: &str, workflow: &Workflow) -> Result<Self, EventError> {
        let form: Form<'_> = serde_json::from_str(line).map_err(EventError::Malformed)?;
        form.event(workflow)
    }
}

/// The written form of an event.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form<'a> {
    FactProduced {
        fact: u32,
        #[serde(borrow)]
        node: Option<Cow<'a, str>>,
        parent: Option<u32>,
        lineage: u32,
        value: Box<RawValue>,
    },
    InputAccepted {
        input: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Cow<'a, str>>,
    },
    ComponentsAdded {
        nodes: Vec<Cow<'a, str>>,
        since: u32,
    },
    RunnableActivated {
        act: u32,
        node: Cow<'a, str>,
        fact: u32,
        lineage: u32,
        phase: PhaseForm,
    },
    ActivationConsumed {
        act: u32,
    },
    ConditionSatisfied {
        node: Cow<'a, str>,
        fact: u32,
    },
    JoinFactReceived {
        node: Cow<'a, str>,
        slot: u32,
        lineage: u32,
        part: ArrivalForm,
    },
    JoinCompleted {
        node: Cow<'a, str>,
        lineage: u32,
    },
    FannedOut {
        node: Cow<'a, str>,
        lineage: u32,
        fact: Option<u32>,
        count: u32,
    },
    FanInReceived {
        node: Cow<'a, str>,
        lineage: u32,
        item: ArrivalForm,
    },
    FanInCompleted {
        node: Cow<'a, str>,
        lineage: u32,
    },
    StateQueued {
        node: Cow<'a, str>,
        lineage: u32,
        input: ArrivalForm,
    },
    StateAdvanced {
        node: Cow<'a, str>,
        lineage: u32,
    },
    StateInitiated {
        node: Cow<'a, str>,
        fact: u32,
    },
    NodeSettled {
        node: Cow<'a, str>,
        lineage: u32,
        why: AbsenceForm,
    },
    RunnableDispatched {
        act: u32,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    AttemptFailed {
        act: u32,
        failed: FailedForm,
    },
    RunnableCompleted {
        act: u32,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovered: Option<FailedForm>,
    },
    RunnableReleased {
        act: u32,
    },
    RunnableHeld {
        act: u32,
        why: Hold,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    RunnableReopened {
        act: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    CommandRefused {
        command: i64,
        why: Cow<'a, str>,
    },
    UndoRegistered {
        act: u32,
        node: Cow<'a, str>,
        value: Box<RawValue>,
    },
    UndoBegun {
        input: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    UndoActivated {
        act: u32,
        node: Cow<'a, str>,
        undo: UndoForm,
        lineage: u32,
    },
    UndoEnded {
        input: u32,
    },
    RunnableFailed {
        act: u32,
        failure: Box<RawValue>,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided: Option<Box<RawValue>>,
    },
    RunnableSkipped {
        act: u32,
        failure: Box<RawValue>,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided: Option<Box<RawValue>>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhaseForm {
    Match,
    Work,
    Undo,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UndoForm {
    Fact(u32),
    Registered(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AbsenceForm {
    Unsatisfied,
    Failed,
    Skipped,
    UpstreamFailed,
    UpstreamSkipped,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ArrivalForm {
    Fact(u32),
    Absent(AbsenceForm),
}

impl From<Absence> for AbsenceForm {
    fn from(absence: Absence) -> Self {
        match absence {
            Absence::Unsatisfied => Self::Unsatisfied,
            Absence::Failed => Self::Failed,
            Absence::Skipped => Self::Skipped,
            Absence::UpstreamFailed => Self::UpstreamFailed,
            Absence::UpstreamSkipped => Self::UpstreamSkipped,
        }
    }
}

impl From<AbsenceForm> for Absence {
    fn from(form: AbsenceForm) -> Self {
        match form {
            AbsenceForm::Unsatisfied => Self::Unsatisfied,
            AbsenceForm::Failed => Self::Failed,
            AbsenceForm::Skipped => Self::Skipped,
            AbsenceForm::UpstreamFailed => Self::UpstreamFailed,
            AbsenceForm::UpstreamSkipped => Self::UpstreamSkipped,
        }
    }
}

impl From<Arrival> for ArrivalForm {
    fn from(arrival: Arrival) -> Self {
        match arrival {
            Ok(fact) => Self::Fact(fact),
            Err(why) => Self::Absent(why.into()),
        }
    }
}

impl From<ArrivalForm> for Arrival {
    fn from(form: ArrivalForm) -> Self {
        match form {
            ArrivalForm::Fact(fact) => Ok(fact),
            ArrivalForm::Absent(why) => Err(why.into()),
        }
    }
}

/// The written form of an attempt that failed.
#[derive(Serialize, Deserialize)]
pub(crate) struct FailedForm {
    failure: Box<RawValue>,
    decided: Box<RawValue>,
}

impl FailedForm {
    fn of(attempt: &FailedAttempt) -> Self {
        Self { failure: written(&attempt.failure), decided: logged(&attempt.decided) }
    }

    pub(crate) fn read(&self) -> Result<FailedAttempt, EventError> {
        Ok(FailedAttempt { failure: failed(&self.failure)?, decided: record(&self.decided)? })
    }
}

fn written(failure: &Failure) -> Box<RawValue> {
    serde_json::value::to_raw_value(failure).expect("invariant: a failure has no key that is not a string")
}

pub(crate) fn failed(text: &RawValue) -> Result<Failure, EventError> {
    Failure::from_json(text.get()).map_err(EventError::Malformed)
}

fn logged(record: &Record) -> Box<RawValue> {
    RawValue::from_string(record.to_json()).expect("invariant: a record is written as JSON")
}

pub(crate) fn record(text: &RawValue) -> Result<Record, EventError> {
    Record::from_json(text.get()).map_err(EventError::Decision)
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
