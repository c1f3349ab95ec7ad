//! What all parts of a runner share: the store, the definitions, the runs that are held here, and who does the
//! work.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::NodeInfo;
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{Clock, Lease, OwnerId, Store};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, broadcast};

use super::active::{Active, Lost, Rest};
use super::commit::Committer;
use super::definition::Definition;
use super::error::StartError;
use super::hooks::RunEvent;
use super::keys::Keys;
use super::options::{Executor, RunnerOptions, StartOptions};
use crate::driver::{Home, check_run};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::react::SyncWork;
use crate::telemetry::{Gauges, Metrics};
use crate::timers::Timers;

pub(super) struct Core {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    options: RunnerOptions,
    /// Who this process is for the store.
    owner: AtomicI64,
    registry: Mutex<BTreeMap<(String, u32), Arc<Registered>>>,
    runs: Mutex<Runs>,
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
    /// Told when the store said that the lease is over.
    pub(super) late: Notify,
    /// Told when there is room, a new definition, or a reason to look at the store.
    pub(super) look: Notify,
    /// Told when a run has left or rests.
    pub(super) changed: Notify,
}

/// A definition that runs of this process may have.
pub(super) struct Registered {
    pub(super) workflow: Workflow,
    /// What runs are given that nobody started here by hand.
    pub(super) options: StartOptions,
    /// What is stored with a run that is started without options.
    pub(super) definition: Arc<str>,
}

#[derive(Default)]
struct Runs {
    held: HashMap<RunId, Held>,
    /// What runs were started with here that is never stored.
    given: HashMap<RunId, Arc<StartOptions>>,
    /// Runs with nothing to do, those that rest longest first.
    resting: BTreeMap<u64, Arc<Active>>,
    /// Runs that wait to be let in, those that wait longest first.
    in_line: BTreeMap<u64, Arc<Active>>,
    /// Their places among those that rest, by their numbers in the pool.
    places: HashMap<u64, u64>,
    next_place: u64,
    /// What is to be given back to the store and could not be yet.
    leases: Vec<Lease>,
    /// How often a run went wrong in this process since it last got on.
    crashes: HashMap<RunId, u32>,
}

enum Held {
    /// Somebody loads it; others wait.
    Loading(Arc<Semaphore>),
    Here(Arc<Active>),
}

/// Whether somebody has a run, or whoever asked has to load it.
pub(super) enum Found {
    Here(Arc<Active>),
    /// It is over when the semaphore is closed.
    Wait(Arc<Semaphore>),
    Mine(Arc<Semaphore>),
}

/// Listeners that are slower than this miss events, and are told how many.
const EVENTS_KEPT: usize = 4_096;

impl Core {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        owner: OwnerId,
        options: RunnerOptions,
    ) -> Arc<Self> {
        let timers = Timers::new(Arc::clone(&clock), Handle::current());
        let pool = Pool::new(options.max_concurrency, SyncWork::Threads, Arc::clone(&timers));
        let metrics = Metrics::new();
        let committer =
            Arc::new(Committer::new(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&metrics)));
        pool.do_meanwhile(Arc::<Committer>::clone(&committer));
        pool.measure(Arc::clone(&metrics));
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
            late: Notify::new(),
            look: Notify::new(),
            changed: Notify::new(),
        })
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
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

    pub(super) const fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    pub(super) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Lets something happen beside all else.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
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

    /// Says whether runs may wait in the store for room: then whoever rests says so.
    pub(super) fn want_room(&self, is_wanted: bool) {
        self.wants_room.store(is_wanted, Ordering::Release);
    }

    /// Says that a run of this process is about to be claimed again.
    pub(super) fn claims_again(&self) {
        self.claimed_again.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often runs of this process were claimed again.
    pub(super) fn claimed_again(&self) -> u64 {
        self.claimed_again.load(Ordering::Acquire)
    }

    /// Remembers what is to be given back to the store. Whoever looks around does it, until it is done.
    pub(super) fn give_back(&self, leases: Vec<Lease>) {
        self.lock_runs().leases.extend(leases);
        self.look.notify_one();
    }

    /// Returns what is to be given back to the store.
    pub(super) fn take_leases(&self) -> Vec<Lease> {
        std::mem::take(&mut self.lock_runs().leases)
    }

    /// Makes a definition known, so that its runs can be driven here.
    pub(super) fn register(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        if let Some(known) = self.registered(workflow.name(), workflow.version()) {
            return check_unchanged(&known.workflow, workflow);
        }
        self.check(workflow, &StartOptions { policies: None, ..options.clone() })?;
        let definition = Definition::written(workflow, &StartOptions::new()).into();
        let new = Registered { workflow: workflow.clone(), options: options.clone(), definition };
        let key = (workflow.name().to_owned(), workflow.version());
        let known = Arc::clone(self.lock_registry().entry(key).or_insert_with(|| Arc::new(new)));
        self.look.notify_one();
        check_unchanged(&known.workflow, workflow)
    }

    /// Takes a definition back that no run has.
    pub(super) fn unregister(&self, workflow: &Workflow) {
        let mut registry = self.lock_registry();
        let key = (workflow.name().to_owned(), workflow.version());
        if registry.get(&key).is_some_and(|known| known.workflow.is_same(workflow)) {
            registry.remove(&key);
        }
    }

    /// Checks that everything that a run would be given can act.
    pub(super) fn check(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        let missing = |missing| StartError::Context { missing };
        workflow.check_context(&options.context).map_err(missing)?;
        // Without rules of its own it was checked when it was registered.
        let is_known = |known: Arc<Registered>| known.workflow.is_same(workflow);
        if options.policies.is_none()
            && self.registered(workflow.name(), workflow.version()).is_some_and(is_known)
        {
            return Ok(());
        }
        let mut run = workflow.run("");
        if let Some((rules, overlay)) = &options.policies {
            run = run.with_policies(rules.clone(), *overlay);
        }
        let is_inline = |node: &NodeInfo<'_>| self.options.executor_of(node) != Executor::Threads;
        check_run(
            &run,
            Home::Store,
            |node| if is_inline(node) { SyncWork::Inline } else { SyncWork::Threads },
        )
        .map_err(StartError::Policies)
    }

    /// Writes down what a run of a registered workflow is created with.
    pub(super) fn written(&self, workflow: &Workflow, options: &StartOptions) -> String {
        let known = self.registered(workflow.name(), workflow.version());
        match known.filter(|known| options.is_plain() && known.workflow.is_same(workflow)) {
            Some(known) => known.definition.as_ref().to_owned(),
            None => Definition::written(workflow, options),
        }
    }

    pub(super) fn registered(&self, workflow: &str, version: u32) -> Option<Arc<Registered>> {
        self.lock_registry().get(&(workflow.to_owned(), version)).cloned()
    }

    fn lock_registry(&self) -> MutexGuard<'_, BTreeMap<(String, u32), Arc<Registered>>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn registered_names(&self) -> Vec<(String, u32)> {
        self.lock_registry().keys().cloned().collect()
    }

    /// Finds a run that is held here; otherwise whoever asks has to load it and to say so with [`Core::hold`] or
    /// [`Core::give_up_loading`].
    pub(super) fn find_or_load(&self, id: &RunId) -> Found {
        let mut runs = self.lock_runs();
        match runs.held.get(id) {
            Some(Held::Here(active)) => Found::Here(Arc::clone(active)),
            Some(Held::Loading(done)) => Found::Wait(Arc::clone(done)),
            None => {
                let done = Arc::new(Semaphore::new(0));
                runs.held.insert(id.clone(), Held::Loading(Arc::clone(&done)));
                Found::Mine(done)
            }
        }
    }

    pub(super) fn held(&self, id: &RunId) -> Option<Arc<Active>> {
        match self.lock_runs().held.get(id) {
            Some(Held::Here(active)) => Some(Arc::clone(active)),
            Some(Held::Loading(_)) | None => None,
        }
    }

    pub(super) fn hold(&self, active: Arc<Active>) {
        let before = self.lock_runs().held.insert(active.id().clone(), Held::Here(active));
        if let Some(Held::Loading(done)) = before {
            done.close();
        }
    }

    /// Stops loading a run. One that is here by now, or that somebody else loads after it was here, stays.
    pub(super) fn give_up_loading(&self, id: &RunId, done: &Arc<Semaphore>) {
        done.close();
        let mut runs = self.lock_runs();
        let is_it = matches!(runs.held.get(id), Some(Held::Loading(other)) if Arc::ptr_eq(other, done));
        if is_it {
            runs.held.remove(id);
        }
    }

    pub(super) fn all_held(&self) -> Vec<Arc<Active>> {
        let runs = self.lock_runs();
        let here = runs.held.values().filter_map(|held| match held {
            Held::Here(active) => Some(Arc::clone(active)),
            Held::Loading(_) => None,
        });
        here.collect()
    }

    /// Tells for how many more runs there is room.
    pub(super) fn room(&self) -> usize {
        let runs = self.lock_runs();
        let busy = runs.held.len().saturating_sub(runs.resting.len() + runs.in_line.len());
        self.options.max_active_runs.saturating_sub(busy)
    }

    /// A run has left.
    pub(super) fn forget(&self, active: &Active) {
        let mut runs = self.lock_runs();
        let is_it = matches!(runs.held.get(active.id()), Some(Held::Here(here)) if std::ptr::eq(here.as_ref(), active));
        if is_it {
            runs.held.remove(active.id());
        }
        runs.wakes(active);
        drop(runs);
        self.changed.notify_waiters();
        self.look.notify_one();
    }

    /// Remembers what a run was started with that is never stored: it is the run's whenever it is loaded again.
    pub(super) fn give(&self, id: &RunId, options: &StartOptions) {
        if options.holds_what_is_not_stored() {
            self.lock_runs().given.insert(id.clone(), Arc::new(options.clone()));
        }
    }

    /// Returns what a run was started with here.
    pub(super) fn given(&self, id: &RunId) -> Option<Arc<StartOptions>> {
        self.lock_runs().given.get(id).cloned()
    }

    /// Forgets all runs, as the end of the process would.
    pub(super) fn drop_all(&self) {
        for active in self.all_held() {
            active.lose(&Lost::Otherwise("the runner is gone".to_owned()));
        }
        self.committer.clear();
        let runs = std::mem::take(&mut *self.lock_runs());
        drop(runs);
    }

    /// A run has nothing to do. It stays here for the next input, until others need its place.
    pub(super) fn rests(&self, active: Arc<Active>) {
        let mut runs = self.lock_runs();
        let is_here =
            matches!(runs.held.get(active.id()), Some(Held::Here(here)) if Arc::ptr_eq(here, &active));
        if !is_here {
            return;
        }
        runs.crashes.remove(active.id());
        runs.rests(active);
        let is_full = runs.resting.len() > self.options.max_active_runs.min(MOST_RESTING)
            || runs.in_line.len() > self.options.max_active_runs;
        drop(runs);
        self.changed.notify_waiters();
        // To look costs a write: nobody does it for a run that rests while none waits for its place.
        if is_full || self.wants_room.load(Ordering::Acquire) {
            self.look.notify_one();
        }
    }

    /// A run that rested has something to do.
    pub(super) fn wakes(&self, active: &Active) {
        self.lock_runs().wakes(active);
    }

    /// Gives up runs that rest, those that rest longest first, until so few rest here. Those that wait to be let in
    /// keep their places in the line; where there are too many, the last ones come again when it may be their turn.
    /// Tells whether there is something to give back to the store.
    pub(super) fn give_up_resting(&self, left: usize) -> bool {
        let runs = self.lock_runs();
        let count = runs.resting.len().saturating_sub(left);
        let longest = runs.resting.values().take(count);
        let too_many = runs.in_line.len().saturating_sub(self.options.max_active_runs);
        let last = runs.in_line.values().rev().take(too_many);
        let given_up: Vec<Arc<Active>> = longest.chain(last).map(Arc::clone).collect();
        drop(runs);
        for active in given_up {
            match active.rest() {
                Rest::Over(lease) => {
                    let mut runs = self.lock_runs();
                    let is_it = matches!(runs.held.get(active.id()), Some(Held::Here(here)) if Arc::ptr_eq(here, &active));
                    if is_it {
                        runs.held.remove(active.id());
                    }
                    runs.wakes(&active);
                    runs.leases.push(lease);
                    drop(runs);
                    active.leave_lines();
                }
                // One that is busy says so when it rests again.
                Rest::Awaited | Rest::Busy => {}
            }
        }
        !self.lock_runs().leases.is_empty()
    }

    /// A run went wrong in a way that is not its own failure. Returns how often that happened since it got on.
    pub(super) fn count_crash(&self, id: &RunId) -> u32 {
        let mut runs = self.lock_runs();
        let count = runs.crashes.entry(id.clone()).or_default();
        *count += 1;
        *count
    }

    /// Begins to count anew how often a run went wrong.
    pub(super) fn forget_crashes(&self, id: &RunId) {
        self.lock_runs().crashes.remove(id);
    }

    fn lock_runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registry may outlive the runner whose numbers it shows.
impl Gauges for Weak<Core> {
    fn now(&self) -> Option<[usize; 3]> {
        let core = self.upgrade()?;
        let is_here = |held: &&Held| matches!(held, Held::Here(_));
        let held = core.lock_runs().held.values().filter(is_here).count();
        Some([core.pool.abandoned(), core.pool.slots_in_use(), held])
    }
}

impl Runs {
    fn rests(&mut self, active: Arc<Active>) {
        let (group, place) = (active.group(), self.next_place);
        self.next_place += 1;
        if let Some(before) = self.places.insert(group, place) {
            self.resting.remove(&before);
            self.in_line.remove(&before);
        }
        let among = if active.is_in_line() { &mut self.in_line } else { &mut self.resting };
        among.insert(place, active);
    }

    fn wakes(&mut self, active: &Active) {
        if let Some(place) = self.places.remove(&active.group()) {
            self.in_line.remove(&place);
            self.resting.remove(&place);
        }
    }
}

/// More runs with nothing to do are not held, only to be quick if something comes for them.
pub(super) const MOST_RESTING: usize = 1_000;

/// Two definitions of one name and version must have the same nodes.
fn check_unchanged(known: &Workflow, given: &Workflow) -> Result<(), StartError> {
    if known.is_same(given) {
        return Ok(());
    }
    let changes = given.changes_since(&known.signature());
    if changes.is_empty() {
        return Ok(());
    }
    let (workflow, version) = (given.name().to_owned(), given.version());
    Err(StartError::Registered { workflow, version, changes })
}
