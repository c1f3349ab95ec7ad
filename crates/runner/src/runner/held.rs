//! The runs that are held here: those that somebody loads, those that are driven, and those that rest until others need
//! their place. What happens to a run is its own business.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use tidewheel_core::fact::RunId;
use tidewheel_core::work::call_user;
use tidewheel_store::Lease;
use tokio::sync::Semaphore;

use super::active::{Active, Lost, Rest};
use super::core::Core;
use super::options::StartOptions;
use crate::telemetry::Gauges;

#[derive(Default)]
pub(super) struct Runs {
    held: HashMap<RunId, Held>,
    /// What runs were started with here that is never stored, until they are over or another process has them.
    given: BTreeMap<RunId, Arc<StartOptions>>,
    /// The last of those that was looked for elsewhere.
    looked_for: Option<RunId>,
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

/// More runs with nothing to do are not held, only to be quick if something comes for them.
pub(super) const MOST_RESTING: usize = 1_000;

impl Core {
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
        // A run whose work waits for another run must not keep that one out.
        let busy = busy.saturating_sub(self.pool().lent());
        self.options().max_active_runs.saturating_sub(busy)
    }

    /// A run has left.
    pub(super) fn forget(&self, active: &Active) {
        // The lock of a run comes before that of all runs.
        let is_over = active.is_over();
        let mut runs = self.lock_runs();
        runs.forget(active);
        drop(runs);
        if is_over {
            self.forget_given(active.id());
        }
        active.unlink();
        self.changed.notify_waiters();
        self.look.notify_one();
    }

    /// Remembers what a run was started with that is never stored: it is the run's whenever it is loaded again. Returns what
    /// it was started with before.
    pub(super) fn give(&self, id: &RunId, options: &StartOptions) -> Option<Arc<StartOptions>> {
        if !options.holds_what_is_not_stored() {
            return self.given(id);
        }
        self.lock_runs().given.insert(id.clone(), Arc::new(options.clone()))
    }

    /// Remembers what a run was started with before it was given something else, which it does not take.
    pub(super) fn give_again(&self, id: &RunId, before: Option<Arc<StartOptions>>) {
        let Some(before) = before else { return self.forget_given(id) };
        // No lock is held when the other is dropped.
        let other = self.lock_runs().given.insert(id.clone(), before);
        drop(other);
    }

    /// Returns some of the runs that were started here with something that is not stored, and are not here: in turns.
    pub(super) fn given_and_gone(&self, most: usize) -> Vec<RunId> {
        let mut runs = self.lock_runs();
        let after = match runs.looked_for.take() {
            Some(last) => (Bound::Excluded(last), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let is_gone = |id: &&RunId| !runs.held.contains_key(*id);
        let some: Vec<RunId> =
            runs.given.range(after).map(|(id, _)| id).filter(is_gone).take(most).cloned().collect();
        runs.looked_for = some.last().cloned().filter(|_| some.len() == most);
        some
    }

    /// Forgets what a run was started with.
    pub(super) fn forget_given(&self, id: &RunId) {
        let given = self.lock_runs().given.remove(id);
        // No lock is held: it may own functions of the user, whose destructors are code of the user, too.
        drop(call_user(|| drop(given)));
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
        self.committer().clear();
        let runs = std::mem::take(&mut *self.lock_runs());
        drop(runs);
    }

    /// A run has nothing to do. It stays here for the next input, until others need its place.
    pub(super) fn rests(&self, active: Arc<Active>) {
        let mut runs = self.lock_runs();
        if !runs.has(&active) {
            return;
        }
        runs.crashes.remove(active.id());
        runs.rests(active);
        let is_full = runs.resting.len() > self.options().max_active_runs.min(MOST_RESTING)
            || runs.in_line.len() > self.options().max_active_runs;
        drop(runs);
        self.changed.notify_waiters();
        // To look costs a write: nobody does it for a run that rests while none waits for its place.
        if is_full || self.wants_room() {
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
        let too_many = runs.in_line.len().saturating_sub(self.options().max_active_runs);
        let last = runs.in_line.values().rev().take(too_many);
        let given_up: Vec<Arc<Active>> = longest.chain(last).map(Arc::clone).collect();
        drop(runs);
        for active in given_up {
            match active.rest() {
                Rest::Over(lease) => {
                    let is_over = active.is_over();
                    let mut runs = self.lock_runs();
                    runs.forget(&active);
                    runs.leases.push(lease);
                    drop(runs);
                    if is_over {
                        self.forget_given(active.id());
                    }
                    active.unlink();
                    active.leave_lines();
                }
                // One that is busy says so when it rests again.
                Rest::Awaited | Rest::Busy => {}
            }
        }
        !self.lock_runs().leases.is_empty()
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
        Some([core.pool().abandoned(), core.pool().slots_in_use(), held])
    }
}

impl Runs {
    /// Tells whether it is this run that is here, and not another life of it.
    fn has(&self, active: &Active) -> bool {
        let here = self.held.get(active.id());
        matches!(here, Some(Held::Here(here)) if std::ptr::eq(here.as_ref(), active))
    }

    /// A run has left.
    fn forget(&mut self, active: &Active) {
        if self.has(active) {
            self.held.remove(active.id());
        }
        self.wakes(active);
    }

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
