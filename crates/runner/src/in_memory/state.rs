//! What a run in memory has while it is driven: its facts, and all of its work that is not over. It changes nothing of
//! it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::event::FailedAttempt;
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::{Outcome, Runnable, Ticket};
use tidewheel_store::Clock;
use tokio::sync::Notify;

use crate::driver::Course;
use crate::ear::Ear;
use crate::limits::{Ask, Limits, Permits};
use crate::pool::{ByNumber, Job, Place, Pool};
use crate::react::Checkpoint;
use crate::timers::Timers;

/// All pieces are of one run.
pub(super) const GROUP: u64 = 0;

pub(super) struct Shared {
    pub(super) this: Weak<Self>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) began_at: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) pool: Arc<Pool>,
    pub(super) timers: Arc<Timers>,
    pub(super) limits: Arc<Limits>,
    /// Whether some work may not begin as it is.
    pub(super) has_gates: bool,
    /// Whether something can be undone.
    pub(super) has_compensations: bool,
    pub(super) workflow_name: Arc<str>,
    /// Told when nothing is left to do.
    pub(super) satisfied: Notify,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// `None` when the owner has it back.
    pub(super) run: Option<Run>,
    /// What is under way.
    pub(super) out: ByNumber<Out>,
    /// What waits for its next attempt, and has no slot.
    pub(super) waiting: ByNumber<Box<Driven>>,
    /// What waits for its first attempt, and has no slot.
    pub(super) held: ByNumber<Waiting>,
    /// What ended an attempt, of which it is not known yet what follows.
    pub(super) deciding: BTreeMap<Place, Ticket>,
}

pub(super) struct Out {
    pub(super) ticket: Ticket,
    /// `None` under a policy that changes nothing.
    pub(super) driven: Option<Box<Driven>>,
    /// Who heard what it wants to have undone, where something can be.
    pub(super) ear: Option<Arc<Ear>>,
}

/// A piece of work that waits for its first attempt.
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    /// When it has to have begun, if it could already.
    pub(super) queue_until: Option<Timestamp>,
}

/// A piece of work under a policy.
pub(super) struct Driven {
    pub(super) runnable: Runnable,
    pub(super) course: Course,
    pub(super) failed: Vec<FailedAttempt>,
    pub(super) permits: Option<Permits>,
    /// Whether it waits to be let in.
    pub(super) is_asking: bool,
    /// When it has to have begun, since it could.
    pub(super) queue_until: Option<Timestamp>,
}

impl State {
    pub(super) fn is_satisfied(&self) -> bool {
        self.out.is_empty() && self.waiting.is_empty() && self.held.is_empty() && self.deciding.is_empty()
    }
}

/// What is left to do when no lock is held.
#[derive(Default)]
pub(super) struct Afterwards {
    pub(super) jobs: Vec<Job>,
    pub(super) asks: Vec<Ask>,
    pub(super) unwanted: Vec<Permits>,
    /// Attempts that ended although they did not begin.
    pub(super) ends: Vec<(Place, Box<Driven>, Outcome)>,
    /// Whether a result was applied, of which nobody knows yet what it woke.
    pub(super) is_changed: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sink(&self) -> Arc<Self> {
        self.this.upgrade().expect("invariant: whoever calls holds it")
    }

    /// Returns when a piece must be over. Nobody said when its input was accepted: when the run was driven, at
    /// the latest.
    pub(super) fn deadline_of(&self, runnable: &Runnable) -> Option<Timestamp> {
        let own = runnable.policy().deadline.span().filter(|_| runnable.accepted_at().is_none());
        let own = own.map(|span| self.began_at.saturating_add(span));
        own.into_iter().chain(self.deadline).min()
    }

    pub(super) fn hears(&self, runnable: &Runnable) -> bool {
        self.has_compensations && runnable.wants_context()
    }

    pub(super) fn job(&self, place: Place, runnable: Runnable) -> Job {
        self.pool.job(self.sink(), GROUP, place, runnable)
    }
}
