//! The written form of events: what stands in a line, field by field. It is read for ever, so that a field may come with a
//! default and none may go.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::event::{Absence, Arrival, Hold};
use crate::time::Timestamp;

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
    FanInHalted {
        node: Cow<'a, str>,
        lineage: u32,
        items: u32,
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
    pub(super) failure: Box<RawValue>,
    pub(super) decided: Box<RawValue>,
}
