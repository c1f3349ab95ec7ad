//! A piece of work as it is handed in, and who is told what came of it.

use std::sync::Arc;

use tidewheel_core::policy::Priority;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Cancellation;
use tidewheel_core::{Outcome, Runnable};
use tidewheel_store::Clock;

use crate::driver::Until;
use crate::ear::Ear;

/// A piece of work in the pool, for as long as there is a pool.
pub(crate) type Place = u64;

/// Whoever hands pieces in.
pub(crate) trait Sink: Send + Sync + 'static {
    /// A piece that wants it begins now.
    fn began(self: Arc<Self>, _place: Place) {}

    /// Takes what came of a piece. It is told once for each piece that was not taken back.
    fn ended(self: Arc<Self>, place: Place, outcome: Outcome);
}

/// A piece of work to be run once.
pub(crate) struct Job {
    pub(crate) sink: Arc<dyn Sink>,
    /// Pieces of one group take turns with those of others.
    pub(crate) group: u64,
    pub(crate) place: Place,
    pub(crate) runnable: Runnable,
    /// Whether it goes before others that wait for a slot.
    pub(crate) priority: Priority,
    /// Whether it runs in a task, whatever it is.
    pub(crate) in_task: bool,
    /// When it was handed in, where somebody wants to know how long pieces wait.
    pub(super) handed_in: Option<Timestamp>,
    /// `None` for most: pieces are moved often, so that their size is what they cost.
    pub(super) terms: Option<Box<Terms>>,
}

/// On what terms a piece runs.
#[derive(Default)]
pub(crate) struct Terms {
    /// When it has to have a slot.
    pub(crate) queue_until: Option<Timestamp>,
    /// When it has to be over.
    pub(crate) until: Option<Until>,
    /// For how long it may give no sign of life.
    pub(crate) silence: Option<Span>,
    /// Who hears its signs of life. Without one it has to be over before its silence is too long.
    pub(crate) ear: Option<Arc<Ear>>,
    /// Who can ask it to stop.
    pub(crate) cancellation: Option<Cancellation>,
    /// Whether whoever handed it in wants to know when it begins.
    pub(crate) tells_beginning: bool,
}

impl Job {
    /// Returns a piece with what its policy says to the pool. Whoever hands it in adds when it has to be over.
    pub(crate) fn new(
        sink: Arc<dyn Sink>,
        group: u64,
        place: Place,
        runnable: Runnable,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let mut job = Self {
            sink,
            group,
            place,
            runnable,
            priority: Priority::Normal,
            in_task: false,
            handed_in: None,
            terms: None,
        };
        if !job.runnable.is_plain() {
            let policy = Arc::clone(job.runnable.policy());
            job.priority = policy.priority;
            if let Some(span) = policy.queue_timeout {
                job.terms().queue_until = Some(clock.now().saturating_add(span));
            }
            if policy.heartbeat.is_some() {
                let ear = Arc::new(Ear::for_heartbeats(Arc::clone(clock)));
                job.runnable = job.runnable.with_signals(Arc::<Ear>::clone(&ear));
                let terms = job.terms();
                (terms.silence, terms.ear) = (policy.heartbeat, Some(ear));
            }
        }
        job
    }

    /// Returns on what terms it runs, to change them.
    pub(crate) fn terms(&mut self) -> &mut Terms {
        self.terms.get_or_insert_default()
    }

    /// Lets somebody hear what it says, and returns who does.
    pub(crate) fn listen(&mut self) -> Arc<Ear> {
        if let Some(ear) = &self.terms().ear {
            return Arc::clone(ear);
        }
        let ear = Arc::new(Ear::default());
        self.runnable = self.runnable.clone().with_signals(Arc::<Ear>::clone(&ear));
        self.terms().ear = Some(Arc::clone(&ear));
        ear
    }

    /// Tells whether it may be given up while it runs.
    pub(crate) fn is_bounded(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_bounded())
    }

    /// Returns when it has to have a slot.
    pub(super) fn queue_until(&self) -> Option<Timestamp> {
        self.terms.as_ref().and_then(|terms| terms.queue_until)
    }

    /// Tells whether it needs a task and no thread.
    pub(super) fn needs_task(&self) -> bool {
        self.in_task || self.runnable.is_async()
    }
}

impl Terms {
    /// Tells whether it may be given up while it runs.
    pub(super) const fn is_bounded(&self) -> bool {
        self.until.is_some() || self.silence.is_some()
    }
}
