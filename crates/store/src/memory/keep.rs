//! A store in memory: for tests, and for runs that need not survive. It answers at once, on the thread that asks.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};

use super::state::{Moment, Owner, State};
use crate::clock::{Clock, with_suspends};
use crate::page::{page, place, rows_of_page};
use crate::record::{
    Command, CommandId, DeadLetter, DeadLetterId, Filter, Lease, NewCommand, OwnerId, Page, PutShared,
    RunRecord, Shared, Stored, Version,
};
use crate::store::{Answer, Append, Claim, Claimed, Joined, Refused, Renewed, Store, StoreError};
use crate::watch::Renewal;

/// Keeps runs as long as the process lives.
pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
    /// Which of those that see the same runs.
    view: usize,
}

impl Memory {
    /// Makes an empty store.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::view(clock, Arc::default())
    }

    /// Returns the same store as another process with a clock of its own would see it: for simulations of processes
    /// whose clocks disagree.
    #[must_use]
    pub fn seen_by(&self, clock: Arc<dyn Clock>) -> Self {
        Self::view(clock, Arc::clone(&self.state))
    }

    fn view(clock: Arc<dyn Clock>, state: Arc<Mutex<State>>) -> Self {
        let view = state.lock().unwrap_or_else(PoisonError::into_inner).add_view();
        Self { clock, state, view }
    }

    /// Does some work on the state when somebody waits for it, and not before.
    fn answer<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut State, Timestamp) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        self.look(move |state, moment| work(state, moment.now))
    }

    /// Does some work for which it matters which process asks.
    fn look<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut State, Moment) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let local = with_suspends(self.clock.as_ref());
            let mut state = self.state();
            let moment = state.moment(self.view, local);
            work(&mut state, moment)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("runs", &self.state().runs.len()).finish_non_exhaustive()
    }
}

impl Store for Memory {
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>> {
        self.answer(move |state, now| {
            Ok(appends.into_iter().map(|append| state.append(append, now)).collect())
        })
    }

    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>> {
        self.answer(move |state, _| {
            let log = state.run(run).map_or(&[][..], |run| &run.log);
            let begin = log.partition_point(|batch| batch.first + u64::from(batch.events.len()) <= from);
            Ok(log[begin..].to_vec())
        })
    }

    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>> {
        self.answer(move |state, _| Ok(state.run(run).map(|run| run.record.clone())))
    }

    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>> {
        self.answer(move |state, _| Ok(state.run(run).map(|run| run.definition.clone())))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>> {
        self.answer(move |state, _| state.list(&filter))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>> {
        self.look(move |state, moment| Ok(state.delete(run, moment)))
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        self.answer(move |state, _| Ok(state.run(run).and_then(|run| run.checkpoint.clone())))
    }

    fn join(&self, lease: Span) -> Answer<'_, Joined> {
        self.look(move |state, moment| {
            state.reap(moment);
            let now = state.meet(moment);
            state.last_owner += 1;
            let owner = OwnerId(state.last_owner);
            let renewal = Renewal { count: 0, expires_at: now.saturating_add(lease) };
            let (runs, bell, view) = (BTreeSet::new(), Arc::default(), moment.view);
            state.owners.insert(owner, Owner { renewal, lease, runs, bell, view });
            Ok(Joined { owner, now })
        })
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.look(move |state, moment| {
            let now = state.meet(moment);
            let Some(live) = state.owners.get_mut(&owner) else { return Ok(Err(Refused::LeaseOver)) };
            live.renewal.count += 1;
            live.renewal.expires_at = now.saturating_add(lease);
            live.lease = lease;
            // Who renews looks at the others, too.
            state.late(moment);
            Ok(Ok(Renewed { now, is_alone: state.owners.len() == 1 }))
        })
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.answer(move |state, now| {
            state.leave(owner, now);
            Ok(())
        })
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        self.look(move |state, moment| {
            let late = state.late(moment);
            Ok(state.owners.keys().filter(|id| !late.contains(id)).copied().collect())
        })
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.look(move |state, moment| Ok(state.claim(claim, moment)))
    }

    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()> {
        self.answer(move |state, now| {
            for lease in leases {
                let run = state.runs.get(&lease.key);
                if run.is_some_and(|run| run.record.fence == lease.fence && run.record.owner.is_some()) {
                    state.free(lease.key, now);
                }
            }
            Ok(())
        })
    }

    fn note_execution(&self, key: i64, work: &str) {
        self.state().executions.insert((key, work.to_owned()));
    }

    fn forget_execution(&self, key: i64, work: &str) {
        self.state().executions.remove(&(key, work.to_owned()));
    }

    fn take_executions(&self, key: i64) -> Vec<String> {
        self.state().take_executions(key)
    }

    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>> {
        self.answer(move |state, now| Ok(state.send(command, now)))
    }

    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>> {
        self.answer(move |state, _| {
            let runs = state.owners.get(&owner).map(|owner| &owner.runs);
            let is_its = |key: &i64| runs.is_some_and(|runs| runs.contains(key));
            let commands = state.commands.values().filter(|(key, _)| is_its(key));
            Ok(commands.map(|(_, command)| command.clone()).collect())
        })
    }

    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>> {
        self.answer(move |state, _| {
            let ids = state.run(run).map(|run| &run.commands).into_iter().flatten();
            Ok(ids.filter_map(|id| state.commands.get(id)).map(|(_, command)| command.clone()).collect())
        })
    }

    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let bell = self.state().owners.get(&owner).map(|owner| Arc::clone(&owner.bell));
        Box::pin(async move {
            match bell {
                Some(bell) => bell.notified().await,
                None => std::future::pending().await,
            }
        })
    }

    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>> {
        self.answer(move |state, _| Ok(state.shared.get(kind).and_then(|of_kind| of_kind.get(name)).cloned()))
    }

    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>> {
        self.answer(move |state, _| {
            let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
            let of_kind = state.shared.get(kind).into_iter();
            let rows = of_kind.flat_map(|of_kind| of_kind.range((begin.clone(), Bound::Unbounded)));
            let wanted = rows_of_page(None);
            let rows = rows.take(wanted + 1).map(|(name, shared)| (name.clone(), shared.clone()));
            Ok(page(rows.collect(), wanted, |(name, _): &(String, Shared)| name.clone()))
        })
    }

    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool> {
        self.answer(move |state, _| Ok(state.put_shared(puts)))
    }

    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>> {
        self.answer(move |state, _| {
            let begin = place(after.as_deref())?
                .map_or(Bound::Unbounded, |after| Bound::Excluded(DeadLetterId(after)));
            let letters = state.letters.range((begin, Bound::Unbounded)).map(|(_, letter)| letter);
            let of_run = letters.filter(|letter| run.is_none_or(|run| letter.run == *run));
            let wanted = rows_of_page(None);
            Ok(page(of_run.take(wanted + 1).cloned().collect(), wanted, |letter: &DeadLetter| letter.id.0))
        })
    }

    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool> {
        self.answer(move |state, _| {
            let Some(letter) = state.letters.remove(&id) else { return Ok(false) };
            let run = state.keys.get(&letter.run).and_then(|key| state.runs.get_mut(key));
            run.expect("invariant: a run that is deleted takes its letters along")
                .letters
                .remove(&letter.work);
            Ok(true)
        })
    }
}
