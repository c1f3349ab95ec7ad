//! What all parts of a runner share: the store, the clock, who does the work, who listens, and what was noticed that
//! others have to know. `registry` has the definitions, `held` the runs.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tidewheel_core::work::CaughtFuture;
use tidewheel_store::{Clock, OwnerId, Store};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, broadcast};

use super::commit::Committer;
use super::held::Runs;
use super::hooks::RunEvent;
use super::keys::Keys;
use super::options::RunnerOptions;
use super::registry::Registry;
use super::store_clock::StoreClock;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::react::SyncWork;
use crate::supervise::Supervisor;
use crate::telemetry::Metrics;
use crate::timers::Timers;

pub(super) struct Core {
    store: Arc<dyn Store>,
    clock: StoreClock,
    options: RunnerOptions,
    /// Who this process is for the store.
    owner: AtomicI64,
    pub(super) registry: Mutex<Registry>,
    pub(super) runs: Mutex<Runs>,
    pool: Arc<Pool>,
    timers: Arc<Timers>,
    limits: Arc<Limits>,
    keys: Keys,
    runtime: Handle,
    committer: Arc<Committer>,
    metrics: Arc<Metrics>,
    events: broadcast::Sender<RunEvent>,
    groups: AtomicU64,
    is_closing: AtomicBool,
    /// Whether runs wait in the store until there is room here.
    wants_room: AtomicBool,
    /// Whether runs may be this process's of which it knows nothing: the answer to a claim got lost.
    is_unsure: AtomicBool,
    /// How often runs were claimed again that were this process's: older leases of them are over.
    claimed_again: AtomicU64,
    /// What got lost with a process again and again is executed one piece at a time.
    quarantine: Arc<Semaphore>,
    /// For how many milliseconds the machine was suspended, as far as the lease was looked at since.
    suspended: AtomicU64,
    /// Told when the store said that the lease is over.
    pub(super) late: Notify,
    /// Told when there is room, a new definition, or a reason to look at the store.
    pub(super) look: Notify,
    /// Told when a run has left or rests.
    pub(super) changed: Notify,
}

/// Listeners that are slower than this miss events, and are told how many.
const EVENTS_KEPT: usize = 4_096;

impl Core {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: StoreClock,
        owner: OwnerId,
        options: RunnerOptions,
    ) -> Arc<Self> {
        let timers = Timers::new(Arc::new(clock.clone()), Handle::current());
        // What bounds an attempt is a duration in this process, whatever becomes of the store's time meanwhile.
        let pool_timers = timers.by_clock(Arc::clone(clock.local()));
        let pool = Pool::new(options.max_concurrency, SyncWork::Threads, pool_timers);
        let metrics = Metrics::new();
        let committer =
            Arc::new(Committer::new(Arc::clone(&store), Arc::clone(clock.local()), Arc::clone(&metrics)));
        pool.do_meanwhile(Arc::<Committer>::clone(&committer));
        pool.measure(Arc::clone(&metrics));
        timers.supervisor().measure(Arc::clone(&metrics));
        let suspended = clock.suspended();
        let limits = Limits::in_store(Arc::clone(&store), Arc::clone(&timers), owner);
        Arc::new(Self {
            committer,
            metrics,
            keys: Keys::new(Arc::clone(&store)),
            store,
            clock,
            options,
            owner: AtomicI64::new(owner.0),
            registry: Mutex::default(),
            runs: Mutex::default(),
            pool,
            timers,
            limits,
            runtime: Handle::current(),
            events: broadcast::Sender::new(EVENTS_KEPT),
            groups: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            is_unsure: AtomicBool::new(false),
            claimed_again: AtomicU64::new(0),
            quarantine: Arc::new(Semaphore::new(1)),
            suspended: AtomicU64::new(suspended.as_millis()),
            late: Notify::new(),
            look: Notify::new(),
            changed: Notify::new(),
        })
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Returns the store's time, against which due times are measured.
    pub(super) fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    pub(super) const fn store_clock(&self) -> &StoreClock {
        &self.clock
    }

    /// Returns the clock of this process, by which durations are measured.
    pub(super) fn local_clock(&self) -> &dyn Clock {
        self.clock.local().as_ref()
    }

    pub(super) const fn options(&self) -> &RunnerOptions {
        &self.options
    }

    pub(super) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(super) const fn timers(&self) -> &Arc<Timers> {
        &self.timers
    }

    /// Returns what keeps the tasks of the runner alive.
    pub(super) fn supervisor(&self) -> &Arc<Supervisor> {
        self.timers.supervisor()
    }

    pub(super) const fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    pub(super) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns what a piece of work needs that goes alone.
    pub(super) fn quarantine(&self) -> Arc<Semaphore> {
        Arc::clone(&self.quarantine)
    }

    /// Lets something happen beside all else. It ends if it panics: it is not long-lived.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let supervisor = Arc::clone(self.supervisor());
        drop(self.runtime.spawn(async move {
            if let Err(panic) = CaughtFuture::new(Box::pin(task)).await {
                supervisor.report("run tasks", &panic);
            }
        }));
    }

    pub(super) const fn committer(&self) -> &Arc<Committer> {
        &self.committer
    }

    pub(super) const fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(super) fn owner(&self) -> OwnerId {
        OwnerId(self.owner.load(Ordering::Acquire))
    }

    pub(super) fn set_owner(&self, owner: OwnerId) {
        self.owner.store(owner.0, Ordering::Release);
        self.limits.set_owner(owner);
    }

    pub(super) fn next_group(&self) -> u64 {
        self.groups.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells whether somebody listens to events.
    pub(super) fn is_heard(&self) -> bool {
        self.options.hooks.is_some() || self.events.receiver_count() > 0
    }

    pub(super) fn publish(&self, event: RunEvent) {
        // Nobody listens, and that is fine.
        drop(self.events.send(event));
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<RunEvent> {
        self.events.subscribe()
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.look.notify_waiters();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Remembers that the answer to a claim got lost, so that what it gave is looked for.
    pub(super) fn set_unsure(&self) {
        self.is_unsure.store(true, Ordering::Release);
    }

    /// Tells whether the answer to a claim got lost since this was asked last.
    pub(super) fn take_unsure(&self) -> bool {
        self.is_unsure.swap(false, Ordering::AcqRel)
    }

    /// Returns whether the machine was suspended since this was asked last.
    pub(super) fn was_suspended(&self) -> bool {
        let suspended = self.clock.suspended().as_millis();
        self.suspended.swap(suspended, Ordering::AcqRel) < suspended
    }

    /// Lets the last suspend be noticed again.
    pub(super) fn forget_suspend(&self) {
        self.suspended.store(0, Ordering::Release);
    }

    /// Says whether runs may wait in the store for room: then whoever rests says so.
    pub(super) fn want_room(&self, is_wanted: bool) {
        self.wants_room.store(is_wanted, Ordering::Release);
    }

    /// Tells whether runs may wait in the store for room.
    pub(super) fn wants_room(&self) -> bool {
        self.wants_room.load(Ordering::Acquire)
    }

    /// Says that a run of this process is about to be claimed again.
    pub(super) fn claims_again(&self) {
        self.claimed_again.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often runs of this process were claimed again.
    pub(super) fn claimed_again(&self) -> u64 {
        self.claimed_again.load(Ordering::Acquire)
    }
}
