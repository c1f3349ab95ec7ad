//! Keeps the lines and the shared states: in memory, or in a store for all its processes. What is let in was
//! written before, so that a limit holds however a process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::event::Hold;
use tidewheel_core::policy::Resolved;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Clock, OwnerId, PutShared, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::gates::{Gates, Name, Rows};
use super::line::{Ask, Asker, Entry, Granted, Held, Line, Permits, Report, Told, number_of};
use super::pass::{self, Here, LOOK_AGAIN, Passed, Verdict, Waiting};
use crate::driver::Known;
use crate::pool::ByNumber;
use crate::telemetry;
use crate::timers::Timers;

pub(crate) struct Limits {
    this: Weak<Self>,
    home: Home,
    timers: Arc<Timers>,
    runtime: Handle,
    /// Who has the slots that are taken here.
    owner: AtomicI64,
    /// Whether work begins when it is let in.
    begins_at_once: bool,
    lines: Mutex<Lines>,
}

enum Home {
    Memory,
    Store(Arc<dyn Store>),
}

#[derive(Default)]
struct Lines {
    /// The lines of policies that were here lately, by their addresses: those of policies that are held, if only
    /// weakly, are nobody else's.
    places: ByNumber<(Weak<Resolved>, Arc<str>, usize)>,
    by_gates: BTreeMap<Arc<Gates>, usize>,
    by_name: BTreeMap<Name, Vec<usize>>,
    all: Vec<Line>,
    /// How often lines had their turn.
    turns: u64,
    /// The shared states, where no store has them.
    rows: Rows,
    /// Lines with something to do.
    wanted: BTreeSet<usize>,
    /// Whether somebody does it.
    is_busy: bool,
}

/// As many are let in together: whoever has to write it down writes no more at once.
const MOST_AT_ONCE: usize = 256;
/// As many policies are remembered; runs may bring their own.
const MOST_PLACES: usize = 4_096;
/// Slots of others are looked for this rarely, at last.
const LOOK_RARELY: Span = Span::from_millis(2_000);
/// A store that failed is asked again after this.
const AGAIN_AFTER: Span = Span::from_millis(250);

/// What one line has to do, and what comes of it.
struct Batch {
    line: usize,
    gates: Arc<Gates>,
    reports: Vec<Report>,
    known: Vec<Known>,
    passed: Passed,
}

/// Those who wait in a line of which others may get to see more meanwhile.
struct InLine<'l> {
    limits: &'l Limits,
    line: usize,
}

impl Waiting for InLine<'_> {
    fn take(&mut self) -> Option<Ask> {
        loop {
            let ask = self.limits.lock().all[self.line].pop()?;
            // No lock is held: an asker has its own.
            if ask.is_wanted() {
                return Some(ask);
            }
        }
    }

    fn put_back(&mut self, ask: Ask) {
        self.limits.lock().all[self.line].put_back(ask);
    }
}

impl Waiting for Line {
    fn take(&mut self) -> Option<Ask> {
        loop {
            let ask = self.pop()?;
            // Whoever has not waited yet wants it.
            if ask.told.is_none() || ask.is_wanted() {
                return Some(ask);
            }
        }
    }

    fn put_back(&mut self, ask: Ask) {
        self.put_back(ask);
    }
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
            runtime: Handle::current(),
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
            None => {
                let line = self.lock().line(workflow, policy);
                let (policy, granted) = (Arc::clone(policy), Granted::default());
                self.report(line, Report { policy, granted, told: Told::Failed(tell) });
            }
        }
        told
    }

    /// Gives a token back that was taken for a retry that is not made.
    pub(crate) fn give_token_back(&self, workflow: &Arc<str>, policy: &Arc<Resolved>) {
        let line = self.lock().line(workflow, policy);
        let (policy, granted) = (Arc::clone(policy), Granted::default());
        self.report(line, Report { policy, granted, told: Told::TokenBack });
    }

    /// Tells how a piece of work ended outside, long after it was let in.
    pub(crate) fn ended_outside(&self, workflow: &Arc<str>, policy: &Arc<Resolved>, succeeded: bool) {
        let line = self.lock().line(workflow, policy);
        let (policy, granted) = (Arc::clone(policy), Granted::default());
        self.report(line, Report { policy, granted, told: Told::EndedOutside { succeeded } });
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

    fn clock(&self) -> &Arc<dyn Clock> {
        self.timers.clock()
    }

    fn here(&self) -> Here {
        let (now, owner) = (self.clock().now(), self.owner.load(Ordering::Acquire));
        Here { now, owner, begins_at_once: self.begins_at_once }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a line gets what it can.
    fn look_at<'l>(&'l self, mut lines: MutexGuard<'l, Lines>, line: usize) {
        lines.wanted.insert(line);
        if std::mem::replace(&mut lines.is_busy, true) {
            return;
        }
        match &self.home {
            Home::Memory => self.serve_here(lines),
            Home::Store(_) => {
                drop(lines);
                let Some(this) = self.this.upgrade() else { return };
                drop(self.runtime.spawn(async move { this.serve().await }));
            }
        }
    }

    fn entry(&self, line: usize, policy: &Arc<Resolved>, verdict: Verdict) -> Entry {
        match verdict {
            Verdict::Shut(until) => Entry::Shut(until),
            Verdict::In(granted) => {
                let (limits, policy) = (Weak::clone(&self.this), Arc::clone(policy));
                Entry::Admitted(Permits { limits, line, policy, granted })
            }
        }
    }

    /// Does all that is wanted, with the states that are here.
    fn serve_here<'l>(&'l self, mut lines: MutexGuard<'l, Lines>) {
        loop {
            let batches = lines.take_wanted();
            if batches.is_empty() {
                break;
            }
            let here = self.here();
            let mut told = Vec::with_capacity(batches.len());
            for batch in lines.pass_here(batches, here) {
                told.push(self.end(&mut lines, batch, here.now));
            }
            drop(lines);
            told.into_iter().for_each(Telling::tell);
            lines = self.lock();
        }
        lines.is_busy = false;
    }

    /// Does all that is wanted, with the states of the store: they are read, changed and written, and only then
    /// anybody is told.
    async fn serve(self: Arc<Self>) {
        let Home::Store(store) = &self.home else { return };
        loop {
            let batches = {
                let mut lines = self.lock();
                let batches = lines.take_wanted();
                if batches.is_empty() {
                    lines.is_busy = false;
                    return;
                }
                batches
            };
            match self.read(store.as_ref(), &batches).await {
                Ok(rows) => self.serve_batches(store.as_ref(), batches, rows).await,
                Err(StoreError::Closed | StoreError::Broken) => {
                    self.lock().is_busy = false;
                    return;
                }
                Err(error) => {
                    tracing::warn!(error = crate::words(&error), "limits cannot be read");
                    self.put_back(batches);
                    self.clock().sleep_until(self.clock().now().saturating_add(AGAIN_AFTER)).await;
                }
            }
        }
    }

    async fn read(&self, store: &dyn Store, batches: &[Batch]) -> Result<Rows, StoreError> {
        let names: BTreeSet<_> = batches.iter().flat_map(|batch| batch.gates.names()).collect();
        let mut rows = Rows::default();
        let own = self.here().owner;
        let mut has_others = false;
        for name in names {
            let found = store.shared(name.kind, &name.name).await?;
            let (version, body) = found.map_or((0, None), |found| (found.version, Some(found.body)));
            rows.put(name.clone(), version, body.as_deref());
        }
        let slots: BTreeSet<_> = batches.iter().filter_map(|batch| batch.gates.slots.as_ref()).collect();
        let rates: BTreeSet<_> = batches.iter().filter_map(|batch| batch.gates.rate.as_ref()).collect();
        for name in &slots {
            has_others |= rows.slots(name, |slots| (slots.holders().any(|holder| holder != own), false));
        }
        for name in &rates {
            has_others |= rows.rate(name, |rate| (rate.holders().any(|holder| holder != own), false));
        }
        if has_others {
            // Whoever is gone has given nothing back, and never will.
            let there = store.owners().await?;
            let is_there = |holder| holder == own || there.contains(&OwnerId(holder));
            for name in slots {
                rows.slots(name, |slots| {
                    let before = slots.taken();
                    slots.keep(is_there);
                    ((), slots.taken() != before)
                });
            }
            for name in rates {
                rows.rate(name, |rate| {
                    let is_gone = rate.holders().any(|holder| !is_there(holder));
                    rate.keep(is_there, self.clock().now());
                    ((), is_gone)
                });
            }
        }
        Ok(rows)
    }

    async fn serve_batches(&self, store: &dyn Store, mut batches: Vec<Batch>, mut rows: Rows) {
        let here = self.here();
        for batch in &mut batches {
            batch.count_reports(&mut rows, here);
        }
        let let_in = |batch: &mut Batch| {
            let Batch { line, gates, passed, .. } = batch;
            let mut waiting = InLine { limits: self, line: *line };
            pass::let_next_in(gates, &mut rows, &mut waiting, here, passed)
        };
        in_turns(&mut batches, let_in);
        let put = |(name, expected, body): (&Name, u64, String)| PutShared {
            kind: name.kind.to_owned(),
            name: name.name.clone(),
            expected,
            body: Some(body),
        };
        let puts: Vec<PutShared> = rows.changed().map(put).collect();
        let written = if puts.is_empty() { Ok(true) } else { store.put_shared(puts).await };
        if let Ok(true) = written {
            let mut lines = self.lock();
            let told: Vec<Telling> =
                batches.into_iter().map(|batch| self.end(&mut lines, batch, here.now)).collect();
            drop(lines);
            told.into_iter().for_each(Telling::tell);
            return;
        }
        // Somebody else was quicker, or nobody knows: all of it is looked at again.
        self.put_back(batches);
        if let Err(error) = written {
            tracing::warn!(error = crate::words(&error), "limits cannot be written");
            self.clock().sleep_until(self.clock().now().saturating_add(AGAIN_AFTER)).await;
        }
    }

    fn put_back(&self, batches: Vec<Batch>) {
        let mut lines = self.lock();
        for Batch { line, reports, passed, .. } in batches {
            let row = &mut lines.all[line];
            row.put_all_back(passed.admitted.into_iter().map(|(ask, _)| ask));
            let later = std::mem::replace(&mut row.reports, reports);
            row.reports.extend(later);
            lines.wanted.insert(line);
        }
    }

    /// Ends a look at a line: those who have to wait do, and somebody looks again when that may change.
    fn end(&self, lines: &mut Lines, batch: Batch, now: Timestamp) -> Telling {
        let Batch { line, reports, known, passed, gates: _ } = batch;
        let Passed { admitted, held, is_others, changes } = passed;
        let facts =
            reports.into_iter().zip(known).filter_map(|(one, known)| Some((one.told.asker()?, known)));
        let mut telling =
            Telling { entered: Vec::new(), waiting: Vec::new(), facts: facts.collect(), changes };
        for (ask, verdict) in admitted {
            let entry = self.entry(line, &ask.policy, verdict);
            telling.entered.push((ask, entry));
        }
        let is_let_in = !telling.entered.is_empty();
        let row = &mut lines.all[line];
        row.looks = if is_let_in { 0 } else { row.looks.saturating_add(1) };
        if let Some(timer) = row.timer.take() {
            self.timers.cancel(timer);
        }
        match held {
            Some(held) => {
                if let Some(ask) = row.first()
                    && ask.told.is_some_and(|told| told != held.why)
                {
                    ask.told = Some(held.why);
                    telling.waiting.push((Weak::clone(&ask.asker), ask.id, held.clone()));
                }
                row.tell_rest(held.why, |place, ask| {
                    let held = estimated(&held, &ask.policy, place);
                    telling.waiting.push((Weak::clone(&ask.asker), ask.id, held));
                });
                let at = match self.home {
                    // In memory only this process changes anything, and it says so.
                    Home::Memory => Some(held.until).filter(|_| held.why != Hold::ConcurrencyLimit),
                    Home::Store(_) if is_others => {
                        let wait = LOOK_AGAIN.as_millis().saturating_mul(u64::from(row.looks.max(1)));
                        let wait = Span::from_millis(wait.min(LOOK_RARELY.as_millis()));
                        let at = now.saturating_add(wait);
                        Some(if held.why == Hold::ConcurrencyLimit { at } else { at.min(held.until) })
                    }
                    Home::Store(_) => Some(held.until),
                };
                row.blocked = Some(held);
                row.timer = at.map(|at| self.look_later(line, at));
            }
            None => {
                row.blocked = None;
                if !row.is_empty() {
                    lines.wanted.insert(line);
                }
            }
        }
        if is_let_in {
            lines.turns += 1;
            lines.all[line].served = lines.turns;
        }
        telling
    }

    fn look_later(&self, line: usize, at: Timestamp) -> crate::timers::TimerKey {
        let this = Weak::clone(&self.this);
        self.timers.at(at, move || {
            if let Some(this) = this.upgrade() {
                let mut lines = this.lock();
                lines.all[line].timer = None;
                lines.all[line].blocked = None;
                this.look_at(lines, line);
            }
        })
    }
}

impl Lines {
    fn line(&mut self, workflow: &Arc<str>, policy: &Arc<Resolved>) -> usize {
        let address = Arc::as_ptr(policy).addr() as u64;
        if let Some((_, of, line)) = self.places.get(&address)
            && (Arc::ptr_eq(of, workflow) || of == workflow)
        {
            return *line;
        }
        let gates = Arc::new(Gates::of(workflow, policy));
        let next = self.all.len();
        let line = *self.by_gates.entry(Arc::clone(&gates)).or_insert(next);
        if line == next {
            let mut rivals = BTreeSet::new();
            for name in gates.contended() {
                let lines = self.by_name.entry(name.clone()).or_default();
                rivals.extend(lines.iter().copied());
                lines.push(next);
            }
            for rival in &rivals {
                self.all[*rival].rivals.push(next);
            }
            self.all.push(Line::new(gates, rivals.into_iter().collect()));
        }
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        self.places.insert(address, (Arc::downgrade(policy), Arc::clone(workflow), line));
        line
    }

    /// Tells whether nobody waits for what a line needs, and nobody does anything.
    fn is_quiet(&self, line: usize) -> bool {
        let row = &self.all[line];
        !self.is_busy && row.is_empty() && row.rivals.iter().all(|rival| self.all[*rival].is_empty())
    }

    /// Takes what is to be done. Whoever needs some of the same as somebody who has something to do gets a turn, too:
    /// what one gives back another may have.
    fn take_wanted(&mut self) -> Vec<Batch> {
        let mut wanted = std::mem::take(&mut self.wanted);
        let rivals = wanted.iter().flat_map(|line| &self.all[*line].rivals).copied();
        let waiting: Vec<usize> = rivals.filter(|rival| !self.all[*rival].is_empty()).collect();
        wanted.extend(waiting);
        let mut wanted: Vec<usize> = wanted.into_iter().collect();
        wanted.sort_by_key(|line| self.all[*line].served);
        wanted.into_iter().map(|line| self.take(line)).collect()
    }

    fn take(&mut self, line: usize) -> Batch {
        let row = &mut self.all[line];
        let reports = std::mem::take(&mut row.reports);
        Batch { line, gates: Arc::clone(&row.gates), reports, known: Vec::new(), passed: Passed::default() }
    }

    /// Does what is to be done with the states that are here.
    fn pass_here(&mut self, mut batches: Vec<Batch>, here: Here) -> Vec<Batch> {
        let Self { all, rows, .. } = self;
        for batch in &mut batches {
            batch.count_reports(rows, here);
        }
        in_turns(&mut batches, |batch| {
            let Batch { line, gates, passed, .. } = batch;
            pass::let_next_in(gates, rows, &mut all[*line], here, passed)
        });
        batches
    }
}

impl Batch {
    fn count_reports(&mut self, rows: &mut Rows, here: Here) {
        let Self { gates, reports, known, passed, .. } = self;
        known.extend(reports.iter().map(|one| pass::report(gates, rows, one, here, passed)));
    }
}

/// Lets one of each line in, and again, until nobody may begin any more.
fn in_turns(batches: &mut [Batch], mut let_in: impl FnMut(&mut Batch) -> bool) {
    let mut open: Vec<&mut Batch> = batches.iter_mut().collect();
    while !open.is_empty() {
        open.retain_mut(|batch| let_in(batch) && batch.passed.admitted.len() < MOST_AT_ONCE);
    }
}

/// Says when a piece may have its turn that so many are before.
fn estimated(held: &Held, policy: &Resolved, before: usize) -> Held {
    let before = u64::try_from(before).unwrap_or(u64::MAX);
    let later = match (held.why, &policy.rate_limit, &policy.concurrency_limit) {
        // Whatever stands in the way now, a rate is in the way of those behind.
        (_, Some(rate), _) => rate.window.as_millis().saturating_mul(before) / u64::from(rate.count.max(1)),
        (Hold::ConcurrencyLimit, _, Some(limit)) => {
            LOOK_AGAIN.as_millis().saturating_mul(before / u64::from(limit.limit.max(1)))
        }
        _ => 0,
    };
    Held { until: held.until.saturating_add(Span::from_millis(later)), ..held.clone() }
}

/// What is told when no lock is held.
struct Telling {
    entered: Vec<(Ask, Entry)>,
    waiting: Vec<(Weak<dyn Asker>, u64, Held)>,
    facts: Vec<(oneshot::Sender<Known>, Known)>,
    changes: Vec<(String, &'static str, &'static str)>,
}

impl Telling {
    fn tell(self) {
        tell_changes(self.changes);
        for (tell, facts) in self.facts {
            // Whoever does not wait any more has their reasons.
            let _told = tell.send(facts);
        }
        for (asker, id, held) in self.waiting {
            if let Some(asker) = asker.upgrade() {
                asker.waits(id, held);
            }
        }
        for (ask, entry) in self.entered {
            if let Some(asker) = ask.asker.upgrade() {
                asker.admitted(ask.id, entry);
            }
        }
    }
}

fn tell_changes(changes: Vec<(String, &'static str, &'static str)>) {
    for (name, before, after) in changes {
        telemetry::breaker_change(&name, before, after);
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
        let timers = || Timers::new(Arc::<RealClock>::clone(&clock), Handle::current());
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
