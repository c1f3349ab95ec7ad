//! A piece of work in a story: its attempts, how it is, and how it turns from one to the next. It reads no log.

use serde::Serialize;

use super::stretch::{Doing, Stretch};
use crate::decide::{Decision, Record};
use crate::event::Hold;
use crate::fact::RunnableId;
use crate::policy::Failure;
use crate::time::Timestamp;

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkLine {
    /// Its component; an id where it has no name.
    pub node: String,
    /// Its identity, where the story knows the nodes of the run.
    pub id: Option<RunnableId>,
    /// Whether a condition was looked at.
    pub is_look: bool,
    /// The component whose work this one undoes.
    pub undoes: Option<String>,
    /// The input that caused it, counted from zero.
    pub input: u32,
    /// Its place in the maps around it, outermost first.
    pub items: Vec<u32>,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptLine>,
    /// How often a person gave it all its attempts again.
    pub round: u32,
    /// How it is.
    pub state: WorkState,
    /// The name of what it waits for, if it is held by something with a name; the token, if somebody outside ends
    /// it.
    pub held_on: Option<String>,
    /// When it was woken, if the story was told with times.
    pub woken_at: Option<Timestamp>,
    /// What it spent its time with, in order; the last one is open while it is not over.
    pub stretches: Vec<Stretch>,
    /// How many attempts its policy lets follow the first, if that was ever asked.
    pub retries_allowed: Option<u32>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The last failure, if it failed for good or a fallback helped.
    pub failure: Option<Failure>,
    /// Why no further attempt was made.
    pub decision: Option<Decision>,
}

/// How a piece of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkState {
    /// It has not begun.
    Pending,
    /// It is under way.
    Running,
    /// It waits for its next attempt.
    Waiting {
        /// When that is due.
        until: Timestamp,
    },
    /// Something holds it.
    Held {
        /// What.
        why: Hold,
        /// When somebody looks at it again; `None` if somebody else says so.
        until: Option<Timestamp>,
    },
    /// It gave its result, or needed none.
    Completed,
    /// A fallback gave its result.
    Recovered,
    /// It failed for good.
    Failed,
    /// It failed, and its policy lets that pass.
    Skipped,
    /// It failed and got another chance, as another piece of work.
    Replaced,
}

/// One attempt at a piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptLine {
    /// Its number, counted from zero.
    pub number: u32,
    /// How often a person had given the work all its attempts again by then.
    pub round: u32,
    /// When it was handed out; several times if it got lost with its process.
    pub dispatched_at: Vec<Timestamp>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What was decided then.
    pub decision: Option<Decision>,
    /// When that was decided.
    pub decided_at: Option<Timestamp>,
}

impl WorkLine {
    pub(in crate::view) fn woken(node: String, input: u32, items: Vec<u32>, at: Option<Timestamp>) -> Self {
        let mut work = Self {
            node,
            id: None,
            is_look: false,
            undoes: None,
            input,
            items,
            attempts: Vec::new(),
            round: 0,
            state: WorkState::Pending,
            held_on: None,
            woken_at: at,
            stretches: Vec::new(),
            retries_allowed: None,
            ended_at: None,
            failure: None,
            decision: None,
        };
        work.turn_to(Some(Doing::Queue), at);
        work
    }

    /// Ends what it does, and begins something else, if that is known. Clocks of several processes may differ, so
    /// an instant may be a little earlier than the one before.
    pub(super) fn turn_to(&mut self, doing: Option<Doing>, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let mut from = at;
        if let Some(last) = self.stretches.last_mut().filter(|last| last.to.is_none()) {
            from = at.max(last.from);
            last.to = Some(from);
        }
        self.stretches.extend(doing.map(|doing| Stretch { doing, hold: None, from, to: None }));
    }

    /// Marks the attempt that goes on, if one does, as one that failed.
    pub(super) fn was_in_vain(&mut self) {
        if let Some(last) = self.stretches.last_mut()
            && last.to.is_none()
            && last.doing == Doing::Attempt
        {
            last.doing = Doing::Failed;
        }
    }

    pub(super) fn end(&mut self, at: Option<Timestamp>) {
        self.ended_at = at;
        self.turn_to(None, at);
    }

    pub(super) fn attempt(&mut self, number: u32) -> &mut AttemptLine {
        let round = self.round;
        let is_it = |attempt: &AttemptLine| attempt.number == number && attempt.round == round;
        let place = self.attempts.iter().position(is_it);
        let place = place.unwrap_or_else(|| {
            self.attempts.push(AttemptLine {
                number,
                round,
                dispatched_at: Vec::new(),
                failure: None,
                decision: None,
                decided_at: None,
            });
            self.attempts.len() - 1
        });
        &mut self.attempts[place]
    }

    pub(super) fn end_badly(&mut self, state: WorkState, failure: Failure, decided: Option<Record>) {
        self.state = state;
        self.decision = decided.map(|decided| decided.decision);
        if let Some(decided) = decided {
            self.retries_allowed = Some(decided.policy.max_retries);
            let attempt = self.attempt(decided.situation.attempt);
            attempt.failure = Some(failure.clone());
            attempt.decision = Some(decided.decision);
            attempt.decided_at = Some(decided.situation.now);
        }
        self.failure = Some(failure);
    }
}

impl WorkState {
    /// Tells whether nothing more will happen to the work by itself.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Waiting { .. } | Self::Held { .. } => false,
            Self::Completed | Self::Recovered | Self::Failed | Self::Skipped | Self::Replaced => true,
        }
    }

    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting { .. } => "waiting",
            Self::Held { .. } => "held",
            Self::Completed => "completed",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Replaced => "replaced",
        }
    }
}
