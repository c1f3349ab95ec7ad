//! What happens in a run: every change is one of these, in order. Indexes are dense and count up from zero,
//! so the same events give the same state everywhere.

use serde::{Deserialize, Serialize};

use crate::decide::Record;
use crate::fact::Value;
use crate::policy::Failure;
use crate::time::Timestamp;
use crate::workflow::NodeIx;

/// A fact by its place in the run.
pub type FactIx = u32;
/// A lineage by its place in the run: an input, or an item of a map over something of a lineage.
pub type LineageIx = u32;
/// An activation by its place in the run: a node that a fact woke.
pub type ActIx = u32;

/// A fact that came, or why it will not come.
pub type Arrival = Result<FactIx, Absence>;

/// One change of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// A value came in or was produced.
    FactProduced {
        /// Its place.
        fact: FactIx,
        /// Who produced it; `None` for an input.
        node: Option<NodeIx>,
        /// What it was produced from.
        parent: Option<FactIx>,
        /// Its lineage; an input begins one.
        lineage: LineageIx,
        /// The value.
        value: Value,
    },
    /// There is more to say of an input.
    InputAccepted {
        /// Which input, counted from zero.
        input: u32,
        /// When it was accepted, if somebody knows the time.
        at: Option<Timestamp>,
        /// What makes another input the same one.
        key: Option<String>,
        /// The one component that it is for; `None` for all that take the input.
        to: Option<NodeIx>,
    },
    /// Components were added to the run.
    ComponentsAdded {
        /// Their nodes.
        nodes: Vec<NodeIx>,
        /// The first input in which they take part, counted from zero.
        since: u32,
    },
    /// A fact woke a node.
    RunnableActivated {
        /// Its place.
        act: ActIx,
        /// The node.
        node: NodeIx,
        /// What woke it.
        fact: FactIx,
        /// In which lineage.
        lineage: LineageIx,
        /// Whether a condition is to be looked at first.
        phase: Phase,
    },
    /// An activation is over.
    ActivationConsumed {
        /// Which.
        act: ActIx,
    },
    /// A condition or the condition of a rule is true for a fact.
    ConditionSatisfied {
        /// Which.
        node: NodeIx,
        /// For which fact.
        fact: FactIx,
    },
    /// A join got one of its parts, or learnt that it will not come.
    JoinFactReceived {
        /// The join.
        node: NodeIx,
        /// Which part.
        slot: u32,
        /// In which lineage.
        lineage: LineageIx,
        /// The part, or why it will not come.
        part: Arrival,
    },
    /// A join has all its parts and gave its list.
    JoinCompleted {
        /// The join.
        node: NodeIx,
        /// In which lineage.
        lineage: LineageIx,
    },
    /// A map took a list apart: as many lineages begin.
    FannedOut {
        /// The map.
        node: NodeIx,
        /// The lineage of the list.
        lineage: LineageIx,
        /// The list; `None` if it will not come.
        fact: Option<FactIx>,
        /// How many items it has.
        count: u32,
    },
    /// A reduce got an item, or learnt that it will not come.
    FanInReceived {
        /// The reduce.
        node: NodeIx,
        /// The lineage of the item.
        lineage: LineageIx,
        /// The item, or why it will not come.
        item: Arrival,
    },
    /// A reduce halts: it has its result, and the items behind these no longer count.
    FanInHalted {
        /// The reduce.
        node: NodeIx,
        /// The lineage of the list.
        lineage: LineageIx,
        /// How many items count.
        items: u32,
    },
    /// A reduce has seen all items that count.
    FanInCompleted {
        /// The reduce.
        node: NodeIx,
        /// The lineage of the list.
        lineage: LineageIx,
    },
    /// A fact waits for its turn at a state, or will not come.
    StateQueued {
        /// The node with the state.
        node: NodeIx,
        /// In which lineage.
        lineage: LineageIx,
        /// What waits, or why it will not come.
        input: Arrival,
    },
    /// A lineage had its turn at a state.
    StateAdvanced {
        /// The node with the state.
        node: NodeIx,
        /// Which lineage.
        lineage: LineageIx,
    },
    /// A state has its first value.
    StateInitiated {
        /// The node with the state.
        node: NodeIx,
        /// The fact of the first value.
        fact: FactIx,
    },
    /// Nothing will come from a node in a lineage.
    NodeSettled {
        /// The node.
        node: NodeIx,
        /// In which lineage.
        lineage: LineageIx,
        /// Why.
        why: Absence,
    },
    /// Work was handed out. The same attempt comes again when whoever had it was lost.
    RunnableDispatched {
        /// Which.
        act: ActIx,
        /// The attempt, counted from zero.
        attempt: u32,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
    },
    /// An attempt failed, and another one follows.
    AttemptFailed {
        /// Which.
        act: ActIx,
        /// Why, and what was decided.
        failed: Box<FailedAttempt>,
    },
    /// Work gave its result, and there is something to tell of it.
    RunnableCompleted {
        /// Which.
        act: ActIx,
        /// How many attempts were made.
        attempts: u32,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
        /// The last failure, if a fallback gave the result.
        recovered: Option<Box<FailedAttempt>>,
    },
    /// Work that was handed out is offered again.
    RunnableReleased {
        /// Which.
        act: ActIx,
    },
    /// Work waits before an attempt, or in the middle of one that somebody outside ends.
    RunnableHeld {
        /// Which.
        act: ActIx,
        /// For what.
        why: Hold,
        /// The name of what it waits for, where it has one.
        on: Option<String>,
        /// When somebody looks at it again; `None` if somebody else says so.
        until: Option<Timestamp>,
        /// When it began to wait, if somebody knows the time.
        at: Option<Timestamp>,
    },
    /// Somebody gives work that failed, or that waits for a person, all its attempts again.
    RunnableReopened {
        /// Which.
        act: ActIx,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
    },
    /// Something that somebody asked of the run was not done.
    CommandRefused {
        /// Its number.
        command: i64,
        /// Why.
        why: String,
    },
    /// Work said how to undo what it did.
    UndoRegistered {
        /// Which.
        act: ActIx,
        /// The component that undoes it.
        node: NodeIx,
        /// What that is given.
        value: Value,
    },
    /// What an input caused is to be undone.
    UndoBegun {
        /// Which input, counted from zero.
        input: u32,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
    },
    /// Something is undone next.
    UndoActivated {
        /// The place of the work that undoes it.
        act: ActIx,
        /// The component whose work that is.
        node: NodeIx,
        /// What is undone.
        undo: Undo,
        /// In which lineage.
        lineage: LineageIx,
    },
    /// Everything that an input caused and that can be undone is undone.
    UndoEnded {
        /// Which input, counted from zero.
        input: u32,
    },
    /// Work failed for good.
    RunnableFailed {
        /// Which.
        act: ActIx,
        /// Why.
        failure: Box<Failure>,
        /// How many attempts were made.
        attempts: u32,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
        /// What was decided after the last attempt, if somebody decided.
        decided: Option<Box<Record>>,
    },
    /// Work failed and its policy lets it pass.
    RunnableSkipped {
        /// Which.
        act: ActIx,
        /// Why.
        failure: Box<Failure>,
        /// How many attempts were made.
        attempts: u32,
        /// When, if somebody knows the time.
        at: Option<Timestamp>,
        /// What was decided after the last attempt, if somebody decided.
        decided: Option<Box<Record>>,
    },
}

/// An attempt that failed, and what was decided then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Why it failed.
    pub failure: Failure,
    /// What was decided, with all that the decision was made of.
    pub decided: Record,
}

impl FailedAttempt {
    /// Returns when the next attempt is due.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        let now = self.decided.situation.now;
        let action = self.decided.decision.action;
        action.due().or_else(|| action.wake()).unwrap_or(now)
    }
}

/// What work waits for that is under way to no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Somebody finds out whether it may begin.
    Admission,
    /// Its policy lets it begin later.
    Delay,
    /// Its policy lets it begin at an instant.
    Schedule,
    /// As many have begun as may in a while.
    RateLimit,
    /// As many are under way as may be.
    ConcurrencyLimit,
    /// What it calls keeps failing.
    CircuitBreaker,
    /// Another piece of work does the same.
    Duplicate,
    /// Somebody outside ends it.
    External,
    /// It failed, and a person is to say how it goes on.
    Pause,
}

impl Hold {
    /// Returns the word that logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Delay => "delay",
            Self::Schedule => "schedule",
            Self::RateLimit => "rate_limit",
            Self::ConcurrencyLimit => "concurrency_limit",
            Self::CircuitBreaker => "circuit_breaker",
            Self::Duplicate => "duplicate",
            Self::External => "external",
            Self::Pause => "pause",
        }
    }
}

/// What is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// What a component produced.
    Fact(FactIx),
    /// What work said, by its place among all that was said.
    Registered(u32),
}

/// What an activation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A condition is looked at.
    Match,
    /// Work is done.
    Work,
    /// Work is undone.
    Undo,
}

/// Why nothing will come from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// A condition was not true.
    Unsatisfied,
    /// Its own work failed.
    Failed,
    /// Its own work was skipped.
    Skipped,
    /// Something before it failed.
    UpstreamFailed,
    /// Something before it was skipped.
    UpstreamSkipped,
}

impl Absence {
    /// What this is for what comes after.
    pub(crate) const fn downstream(self) -> Self {
        match self {
            Self::Unsatisfied => Self::Unsatisfied,
            Self::Failed | Self::UpstreamFailed => Self::UpstreamFailed,
            Self::Skipped | Self::UpstreamSkipped => Self::UpstreamSkipped,
        }
    }

    /// Whether something went wrong.
    pub(crate) const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::UpstreamFailed)
    }

    /// The graver of two reasons, which is the one that people should hear.
    pub(crate) const fn graver(self, other: Option<Self>) -> Self {
        match (self, other) {
            (one, None) => one,
            (one, Some(_)) if one.is_failure() => one,
            (_, Some(other)) if other.is_failure() => other,
            (Self::Unsatisfied, Some(other)) => other,
            (one, Some(_)) => one,
        }
    }
}
