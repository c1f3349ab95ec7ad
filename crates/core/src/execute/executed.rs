//! What came of a piece of work, and the right to say so. It runs nothing.

use crate::event::{ActIx, FailedAttempt};
use crate::fact::{RunId, Value};
use crate::policy::Failure;
use crate::time::Timestamp;

/// A piece of work that was run.
#[derive(Debug)]
pub struct Executed {
    pub(crate) run: RunId,
    pub(crate) act: ActIx,
    pub(crate) outcome: Outcome,
    pub(crate) attempts: u32,
    /// The attempts before, where whoever ran it made several.
    pub(crate) failed: Vec<FailedAttempt>,
    /// The last attempt, if it failed and somebody decided what follows.
    pub(crate) last: Option<Box<FailedAttempt>>,
    /// When it was over, where somebody knows the time.
    pub(crate) at: Option<Timestamp>,
    /// Whether what its input caused is to be undone.
    pub(crate) undoes: bool,
    /// Whether its last attempt did not begin.
    pub(crate) is_unbegun: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A value.
    Completed(Value),
    /// A list taken apart.
    FannedOut(Vec<Value>),
    /// Nothing: it failed.
    Failed(Failure),
    /// Nothing: it failed, and its policy lets that pass.
    Skipped(Failure),
}

impl Outcome {
    /// Makes a value that no store can keep the failure of the work that gave it.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::Outcome;
    /// use tidewheel::fact::Value;
    ///
    /// let outcome = Outcome::Completed(Value::new(f64::NAN)).storable();
    /// assert!(matches!(outcome, Outcome::Failed(failure) if failure.code == Some("unserialisable".into())));
    /// ```
    #[must_use]
    pub fn storable(self) -> Self {
        let failure = match &self {
            Self::Completed(value) => value.unserialisable(),
            Self::FannedOut(values) => values.iter().find_map(Value::unserialisable),
            Self::Failed(_) | Self::Skipped(_) => None,
        };
        failure.map_or(self, Self::Failed)
    }
}

/// The right to end a piece of work that was handed out, apart from the work itself.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(crate) run: RunId,
    pub(crate) act: ActIx,
    pub(crate) attempts: u32,
    pub(crate) round: u32,
}

impl Executed {
    /// Returns what came of it.
    #[must_use]
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns what came of it, by itself.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Puts another outcome in place of what came of it, as a fallback does.
    #[must_use]
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Says when it was over. The run tells it in its events.
    #[must_use]
    pub fn ended_at(self, at: Timestamp) -> Self {
        Self { at: Some(at), ..self }
    }

    /// Says what was decided after the last attempt, which failed: the reason of a failure, or what a fallback
    /// helped out of.
    #[must_use]
    pub fn decided(self, last: FailedAttempt) -> Self {
        Self { last: Some(Box::new(last)), ..self }
    }

    /// Says that what its input caused is to be undone.
    #[must_use]
    pub fn and_undo(self) -> Self {
        Self { undoes: true, ..self }
    }

    /// Says that its last attempt did not begin, so that it does not count: it was too late for it. Work that was not
    /// handed out can be ended so.
    #[must_use]
    pub fn unbegun(self) -> Self {
        Self { attempts: self.attempts.saturating_sub(1), is_unbegun: true, ..self }
    }

    /// Adds the attempts that failed before, in order.
    #[must_use]
    pub fn after_attempts(self, failed: Vec<FailedAttempt>) -> Self {
        let before = failed.last().map_or(0, |last| last.decided.decision.attempt_next);
        Self { attempts: self.attempts.max(before + u32::from(!self.is_unbegun)), failed, ..self }
    }
}

impl Ticket {
    /// Tells whether both are of the same piece of work.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.act == other.act && self.run == other.run
    }

    /// Returns its number: no other piece of work of its run has it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.act
    }

    /// Returns the attempt, counted from zero.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }

    /// Returns how often the work was given all its attempts again.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Ends the piece of work with a given outcome.
    #[must_use]
    pub fn executed(self, outcome: Outcome) -> Executed {
        let Self { run, act, attempts, round: _ } = self;
        let (failed, last, at) = (Vec::new(), None, None);
        Executed { run, act, outcome, attempts, failed, last, at, undoes: false, is_unbegun: false }
    }
}
