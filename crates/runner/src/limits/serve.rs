//! Gives lines what they can get, with the states that are here or with those of the store. What is let in was written
//! before, and nobody is told under the lock.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, Weak};

use tidewheel_core::event::Hold;
use tidewheel_core::policy::Resolved;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{OwnerId, PutShared, Store, StoreError};
use tokio::sync::oneshot;

use super::gates::{Name, Rows};
use super::keeper::{Home, Limits};
use super::line::{Ask, Asker, Entry, Held};
use super::lines::{Batch, Lines, in_turns};
use super::pass::{self, LOOK_AGAIN, Passed, Waiting};
use crate::driver::Known;
use crate::supervise::{Supervisor, ask_store};
use crate::telemetry;
use crate::timers::TimerKey;

/// What people know its task by.
const TASK: &str = "limiter";

/// Slots of others are looked for this rarely, at last.
const LOOK_RARELY: Span = Span::from_millis(2_000);
/// A store that failed is asked again after this.
const AGAIN_AFTER: Span = Span::from_millis(250);

impl Limits {
    /// Sees to it that a line gets what it can.
    pub(super) fn look_at<'l>(&'l self, mut lines: MutexGuard<'l, Lines>, line: usize) {
        lines.wanted.insert(line);
        if std::mem::replace(&mut lines.is_busy, true) {
            return;
        }
        match &self.home {
            Home::Memory => self.serve_here(lines),
            Home::Store(_) => {
                drop(lines);
                let Some(this) = self.this.upgrade() else { return };
                let serve = move |_| Arc::clone(&this).serve();
                drop(self.timers.supervisor().spawn(TASK, serve));
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
            told.into_iter().for_each(|telling| telling.tell(self.timers.supervisor()));
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
            match ask_store(self.read(store.as_ref(), &batches)).await {
                Ok(rows) => self.serve_batches(store.as_ref(), batches, rows).await,
                Err(StoreError::Closed | StoreError::Broken | StoreError::Moved { .. }) => {
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
        let written = if puts.is_empty() { Ok(true) } else { ask_store(store.put_shared(puts)).await };
        if let Ok(true) = written {
            let mut lines = self.lock();
            let told: Vec<Telling> =
                batches.into_iter().map(|batch| self.end(&mut lines, batch, here.now)).collect();
            drop(lines);
            told.into_iter().for_each(|telling| telling.tell(self.timers.supervisor()));
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
                row.tell_again(held.why, |place, ask| {
                    let held = estimated(&held, &ask.policy, place);
                    telling.waiting.push((Weak::clone(&ask.asker), ask.id, held));
                });
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

    fn look_later(&self, line: usize, at: Timestamp) -> TimerKey {
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

/// Says when a piece may have its turn that so many are before.
pub(super) fn estimated(held: &Held, policy: &Resolved, before: usize) -> Held {
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
    fn tell(self, supervisor: &Supervisor) {
        supervisor.call(TASK, || tell_changes(self.changes));
        for (tell, facts) in self.facts {
            // Whoever does not wait any more has their reasons.
            let _told = tell.send(facts);
        }
        for (asker, id, held) in self.waiting {
            if let Some(asker) = asker.upgrade() {
                supervisor.call(TASK, || asker.waits(id, held));
            }
        }
        for (ask, entry) in self.entered {
            if let Some(asker) = ask.asker.upgrade() {
                supervisor.call(TASK, || asker.admitted(ask.id, entry));
            }
        }
    }
}

pub(super) fn tell_changes(changes: Vec<(String, &'static str, &'static str)>) {
    for (name, before, after) in changes {
        telemetry::breaker_change(&name, before, after);
    }
}
