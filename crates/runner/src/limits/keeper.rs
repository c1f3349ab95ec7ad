//! Keeps the lines and the shared states: in memory, or in a store for all its processes. What is let in was
//! written before, so that a limit holds however a process ends.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::event::Hold;
use tidewheel_core::policy::Resolved;
use tidewheel_store::{Clock, OwnerId, Store};
use tokio::sync::oneshot;

use super::line::{Ask, Asker, Entry, Granted, Permits, Report, Told, number_of};
use super::lines::Lines;
use super::pass::{self, Here, Passed, Verdict};
use super::serve::{estimated, tell_changes};
use crate::driver::Known;
use crate::timers::Timers;

pub(crate) struct Limits {
    pub(super) this: Weak<Self>,
    pub(super) home: Home,
    pub(super) timers: Arc<Timers>,
    /// Who has the slots that are taken here.
    owner: AtomicI64,
    /// Whether work begins when it is let in.
    begins_at_once: bool,
    lines: Mutex<Lines>,
}

pub(super) enum Home {
    Memory,
    Store(Arc<dyn Store>),
}

impl Limits {
    /// Returns limits that hold in this process, as long as this is there.
    pub(crate) fn in_memory(timers: Arc<Timers>, begins_at_once: bool) -> Arc<Self> {
        Self::new(Home::Memory, timers, OwnerId(0), begins_at_once)
    }

    /// Returns the limits of all processes that use a store.
    pub(crate) fn in_store(store: Arc<dyn Store>, timers: Arc<Timers>, owner: OwnerId) -> Arc<Self> {
        Self::new(Home::Store(store), timers, owner, false)
    }

    fn new(home: Home, timers: Arc<Timers>, owner: OwnerId, begins_at_once: bool) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            home,
            timers,
            owner: AtomicI64::new(owner.0),
            begins_at_once,
            lines: Mutex::default(),
        })
    }

    /// Says who has the slots that are taken from now on.
    pub(crate) fn set_owner(&self, owner: OwnerId) {
        self.owner.store(owner.0, Ordering::Release);
    }

    /// Lets a piece of work in that nobody has to wait for: with states that are here, and nobody before it. It never
    /// waits for a lock, so that whoever asks may hold one of its own.
    pub(crate) fn enter_at_once(&self, workflow: &Arc<str>, policy: &Arc<Resolved>) -> Option<Entry> {
        let mut lines = self.lines.try_lock().ok()?;
        let line = lines.line(workflow, policy);
        self.let_in_quietly(lines, line, policy).ok()
    }

    /// Lets a piece of work in with states that are here, if nobody waits; otherwise whoever asks has the lock back.
    fn let_in_quietly<'l>(
        &self,
        mut lines: MutexGuard<'l, Lines>,
        line: usize,
        policy: &Arc<Resolved>,
    ) -> Result<Entry, MutexGuard<'l, Lines>> {
        if !matches!(self.home, Home::Memory) || !lines.is_quiet(line) {
            return Err(lines);
        }
        let Lines { all, rows, .. } = &mut *lines;
        let mut passed = Passed::default();
        match pass::ask_one(&all[line].gates, rows, policy, self.here(), &mut passed) {
            Ok(verdict) => {
                drop(lines);
                tell_changes(passed.changes);
                Ok(self.entry(line, policy, verdict))
            }
            Err(_) => Err(lines),
        }
    }

    /// Asks for a piece of work to be let in. Whoever is not let in at once is told, maybe before this returns.
    #[must_use]
    pub(crate) fn enter(&self, workflow: &Arc<str>, ask: Ask) -> Option<Entry> {
        let mut lines = self.lock();
        let line = lines.line(workflow, &ask.policy);
        match self.let_in_quietly(lines, line, &ask.policy) {
            Ok(entry) => Some(entry),
            Err(lines) => {
                self.wait(lines, line, ask);
                None
            }
        }
    }

    /// Takes an asker out of all lines: it does not wait any more, or comes again later.
    pub(crate) fn leave(&self, asker: &Weak<dyn Asker>) {
        let asker = number_of(asker);
        for line in &mut self.lock().all {
            line.remove(asker);
        }
    }

    /// Asks for a piece of work to be let in. The asker is told, maybe before this returns.
    pub(crate) fn ask(&self, workflow: &Arc<str>, ask: Ask) {
        let mut lines = self.lock();
        let line = lines.line(workflow, &ask.policy);
        self.wait(lines, line, ask);
    }

    /// Puts somebody into a line.
    fn wait<'l>(&'l self, mut lines: MutexGuard<'l, Lines>, line: usize, ask: Ask) {
        let now = self.clock().now();
        let blocked = lines.all[line].blocked.clone();
        // Somebody is there already who cannot begin: nobody looks again for those behind.
        if let Some(held) = blocked.filter(|held| now < held.until || held.why == Hold::ConcurrencyLimit) {
            let held = estimated(&held, &ask.policy, lines.all[line].len());
            let (asker, id) = (ask.asker.upgrade(), ask.id);
            lines.all[line].push(Ask { told: Some(held.why), ..ask });
            drop(lines);
            if let Some(asker) = asker {
                asker.waits(id, held);
            }
            return;
        }
        lines.all[line].push(ask);
        self.look_at(lines, line);
    }

    /// Tells that a piece of work succeeded.
    pub(crate) fn succeeded(&self, permits: Permits) {
        self.tell(permits, Told::Succeeded);
    }

    /// Tells that a piece of work failed, and finds out what a decision about it has to know. A token is taken for
    /// a retry, if there is one: whoever does not need it gives it back.
    pub(crate) fn failed(
        &self,
        workflow: &Arc<str>,
        policy: &Arc<Resolved>,
        permits: Option<Permits>,
    ) -> oneshot::Receiver<Known> {
        let (tell, told) = oneshot::channel();
        match permits {
            Some(permits) => self.tell(permits, Told::Failed(tell)),
            None => self.report_of(workflow, policy, Told::Failed(tell)),
        }
        told
    }

    /// Gives a token back that was taken for a retry that is not made.
    pub(crate) fn give_token_back(&self, workflow: &Arc<str>, policy: &Arc<Resolved>) {
        self.report_of(workflow, policy, Told::TokenBack);
    }

    /// Tells how a piece of work ended outside, long after it was let in.
    pub(crate) fn ended_outside(&self, workflow: &Arc<str>, policy: &Arc<Resolved>, succeeded: bool) {
        self.report_of(workflow, policy, Told::EndedOutside { succeeded });
    }

    /// Tells something of work that has no permits, or none any more.
    fn report_of(&self, workflow: &Arc<str>, policy: &Arc<Resolved>, told: Told) {
        let line = self.lock().line(workflow, policy);
        self.report(line, Report { policy: Arc::clone(policy), granted: Granted::default(), told });
    }

    fn tell(&self, mut permits: Permits, told: Told) {
        let (policy, granted) = (Arc::clone(&permits.policy), std::mem::take(&mut permits.granted));
        self.report(permits.line, Report { policy, granted, told });
    }

    pub(super) fn report(&self, line: usize, report: Report) {
        let mut lines = self.lock();
        if lines.is_quiet(line) && matches!(self.home, Home::Memory) {
            let Lines { all, rows, .. } = &mut *lines;
            let mut passed = Passed::default();
            let known = pass::report(&all[line].gates, rows, &report, self.here(), &mut passed);
            drop(lines);
            tell_changes(passed.changes);
            if let Some(asker) = report.told.asker() {
                // Whoever does not wait any more has their reasons.
                let _told = asker.send(known);
            }
            return;
        }
        let row = &mut lines.all[line];
        row.reports.push(report);
        row.blocked = None;
        self.look_at(lines, line);
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        self.timers.clock()
    }

    pub(super) fn here(&self) -> Here {
        let (now, owner) = (self.clock().now(), self.owner.load(Ordering::Acquire));
        Here { now, owner, begins_at_once: self.begins_at_once }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entry(&self, line: usize, policy: &Arc<Resolved>, verdict: Verdict) -> Entry {
        match verdict {
            Verdict::Shut(until) => Entry::Shut(until),
            Verdict::In(granted) => {
                let (limits, policy) = (Weak::clone(&self.this), Arc::clone(policy));
                Entry::Admitted(Permits { limits, line, policy, granted })
            }
        }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tidewheel_core::policy::Policy;
    use tidewheel_store::{Memory, RealClock};

    use super::*;
    use crate::limits::Held;

    /// Counts what it is told, and keeps what it is given.
    #[derive(Default)]
    struct Crowd {
        admitted: Mutex<Vec<Permits>>,
        entered: AtomicUsize,
        told: AtomicUsize,
        asked: AtomicUsize,
    }

    impl Asker for Crowd {
        fn admitted(self: Arc<Self>, _: u64, entry: Entry) {
            self.entered.fetch_add(1, Ordering::Relaxed);
            if let Entry::Admitted(permits) = entry {
                self.admitted.lock().expect("no panic").push(permits);
            }
        }

        fn wants(&self, _: u64) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed);
            true
        }

        fn waits(self: Arc<Self>, _: u64, _: Held) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn homes() -> [Arc<Limits>; 2] {
        let clock = Arc::new(RealClock::new());
        let timers = || Timers::new(Arc::<RealClock>::clone(&clock), tokio::runtime::Handle::current());
        let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::<RealClock>::clone(&clock)));
        [Limits::in_memory(timers(), true), Limits::in_store(store, timers(), OwnerId(1))]
    }

    const MANY: usize = 10_000;

    #[tokio::test(start_paused = true)]
    async fn each_of_many_who_wait_costs_a_look_or_two_and_not_one_for_each_other() {
        for policy in [Policy::new().concurrency_limit(10), Policy::new().rate_limit(10, "1s")] {
            for limits in homes() {
                let (crowd, policy) =
                    (Arc::new(Crowd::default()), Arc::new(policy.resolved().expect("sound")));
                let workflow: Arc<str> = "w".into();
                for id in 0..MANY as u64 {
                    let asker = Arc::downgrade(&(Arc::clone(&crowd) as Arc<dyn Asker>));
                    limits.ask(&workflow, Ask::new(asker, id, Arc::clone(&policy)));
                }
                while crowd.entered.load(Ordering::Relaxed) < MANY {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let ended = std::mem::take(&mut *crowd.admitted.lock().expect("no panic"));
                    ended.into_iter().for_each(|permits| limits.succeeded(permits));
                }
                let (told, asked) = (crowd.told.load(Ordering::Relaxed), crowd.asked.load(Ordering::Relaxed));
                assert!(told <= MANY && asked <= 3 * MANY, "{told} were told, {asked} were asked");
            }
        }
    }
}
