//! A store in memory: for tests, and for runs that need not survive. It answers at once, on the thread that asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::page::{page, place, rows_of_page};
use crate::record::{
    Command, CommandId, DeadLetter, DeadLetterId, Filter, Lease, Letter, NewCommand, NewDeadLetter, NewRun,
    OwnerId, Page, PutShared, RunRecord, Shared, Stored, Version,
};
use crate::store::{Answer, Append, Claim, Claimed, Guard, Refused, Renewed, Store, StoreError, Wanted};

/// Keeps runs as long as the process lives.
pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Memory {
    /// Makes an empty store.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Does some work on the state when somebody waits for it, and not before.
    fn answer<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut State, Timestamp) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let now = self.clock.now();
            work(&mut self.state(), now)
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

#[derive(Default)]
struct State {
    runs: BTreeMap<i64, Run>,
    keys: BTreeMap<RunId, i64>,
    /// The runs that nobody drives and that somebody has to look at some time, by workflow.
    due: BTreeMap<(String, u32), BTreeSet<(Timestamp, i64)>>,
    owners: BTreeMap<OwnerId, Owner>,
    commands: BTreeMap<CommandId, (i64, Command)>,
    shared: BTreeMap<String, BTreeMap<String, Shared>>,
    /// The highest version that a shared state had when it was removed.
    last_removed: u64,
    letters: BTreeMap<DeadLetterId, DeadLetter>,
    last_key: i64,
    last_owner: i64,
    last_command: i64,
    last_letter: i64,
}

struct Run {
    record: RunRecord,
    definition: String,
    log: Vec<Stored>,
    commands: BTreeSet<CommandId>,
    /// By the piece of work.
    letters: BTreeMap<String, DeadLetterId>,
    checkpoint: Option<(Version, String)>,
}

struct Owner {
    expires_at: Timestamp,
    runs: BTreeSet<i64>,
    bell: Arc<Notify>,
}

impl State {
    fn append(&mut self, append: Append, now: Timestamp) -> Result<Lease, Refused> {
        let (key, fence) = match append.guard {
            Guard::New(new) => {
                let begin = Begin { run: &append.run, expected: append.expected, now };
                self.begin(*new, &begin)?
            }
            Guard::Held { key, fence } => {
                let run = self.runs.get(&key).filter(|run| run.record.id == append.run);
                let Some(Run { record, .. }) = run else {
                    return Err(Refused::NotFound { run: append.run });
                };
                if record.fence != fence {
                    return Err(Refused::Fenced { run: append.run });
                }
                if record.version != append.expected {
                    let found = record.version;
                    return Err(Refused::Conflict { run: append.run, expected: append.expected, found });
                }
                (key, fence)
            }
        };
        let run = self.runs.get_mut(&key).expect("invariant: the run was found or created above");
        let was_waiting = run.waiting_since();
        let first = run.record.version;
        run.record.version += u64::from(append.events.len());
        if !append.events.is_empty() {
            run.log.push(Stored { first, at: now, events: append.events });
        }
        if let Some(checkpoint) = append.checkpoint {
            run.checkpoint = Some((run.record.version, checkpoint));
        }
        run.record.status = append.status;
        run.record.reason = append.reason;
        run.record.wake_at = append.wake_at;
        run.record.updated_at = now;
        for id in append.handled {
            if run.commands.remove(&id) {
                self.commands.remove(&id);
            }
        }
        for letter in append.letters {
            let (work, new) = match letter {
                Letter::Bury(new) => (new.work.clone(), Some(new)),
                Letter::Raise { work } => (work, None),
            };
            if let Some(before) = run.letters.remove(&work) {
                self.letters.remove(&before);
            }
            if let Some(NewDeadLetter { work, node, body }) = new {
                self.last_letter += 1;
                let id = DeadLetterId(self.last_letter);
                run.letters.insert(work.clone(), id);
                let run = append.run.clone();
                self.letters.insert(id, DeadLetter { id, run, work, node, body, at: now });
            }
        }
        if append.release || run.record.owner.is_none() {
            self.reindex(key, was_waiting);
            self.free(key, now);
        }
        Ok(Lease { run: append.run, key, fence })
    }

    fn begin(&mut self, new: NewRun, begin: &Begin<'_>) -> Result<(i64, u64), Refused> {
        let run = begin.run;
        if begin.expected != 0 {
            return Err(Refused::Conflict { run: run.clone(), expected: begin.expected, found: 0 });
        }
        let key = self.last_key + 1;
        if let Some(owner) = new.owner {
            let live = self.owners.get_mut(&owner).filter(|owner| owner.expires_at > begin.now);
            let runs = &mut live.ok_or(Refused::LeaseOver)?.runs;
            if !self.keys.contains_key(run) {
                runs.insert(key);
            }
        }
        // SQLite uses a key up here, too, and the two are compared answer by answer.
        self.last_key = key;
        if self.keys.contains_key(run) {
            return Err(Refused::Exists { run: run.clone() });
        }
        self.keys.insert(run.clone(), key);
        let fence = u64::from(new.owner.is_some());
        let record = RunRecord {
            id: run.clone(),
            workflow: new.workflow,
            workflow_version: new.workflow_version,
            status: crate::record::Status::Running,
            reason: None,
            version: 0,
            owner: new.owner,
            fence,
            wake_at: None,
            created_at: begin.now,
            updated_at: begin.now,
        };
        let definition = new.definition;
        let (log, commands, letters) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        self.runs.insert(key, Run { record, definition, log, commands, letters, checkpoint: None });
        Ok((key, fence))
    }

    /// Leaves a run to whoever wants it, and says so.
    fn free(&mut self, key: i64, now: Timestamp) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let was_waiting = run.waiting_since();
        if let Some(owner) = run.record.owner.take().and_then(|owner| self.owners.get_mut(&owner)) {
            owner.runs.remove(&key);
        }
        if !run.commands.is_empty() {
            run.record.wake_at = Some(run.record.wake_at.map_or(now, |at| at.min(now)));
        }
        let waits = run.record.wake_at.is_some();
        self.reindex(key, was_waiting);
        if waits {
            self.ring_all();
        }
    }

    /// Puts a run to its place among those that are due, after it was elsewhere.
    fn reindex(&mut self, key: i64, was: Option<Timestamp>) {
        let Some(run) = self.runs.get(&key) else { return };
        let is = run.waiting_since();
        if was == is {
            return;
        }
        let workflow = (run.record.workflow.clone(), run.record.workflow_version);
        let due = self.due.entry(workflow).or_default();
        if let Some(at) = was {
            due.remove(&(at, key));
        }
        if let Some(at) = is {
            due.insert((at, key));
        }
    }

    /// Frees the runs of owners that did not renew in time.
    fn reap(&mut self, now: Timestamp) {
        let gone = |owner: &Owner| owner.expires_at <= now;
        let ids: Vec<OwnerId> =
            self.owners.iter().filter(|(_, owner)| gone(owner)).map(|(id, _)| *id).collect();
        for id in ids {
            self.leave(id, now);
        }
    }

    fn leave(&mut self, id: OwnerId, now: Timestamp) {
        let Some(owner) = self.owners.remove(&id) else { return };
        for key in owner.runs {
            self.free(key, now);
        }
        // Whoever waits as this owner learns that it is none any more.
        owner.bell.notify_one();
    }

    fn ring_all(&self) {
        for owner in self.owners.values() {
            owner.bell.notify_one();
        }
    }

    fn claim(&mut self, claim: Claim, now: Timestamp) -> Claimed {
        self.reap(now);
        let mut claimed = Claimed { runs: Vec::new(), next_due: None };
        if !self.owners.contains_key(&claim.owner) {
            return claimed;
        }
        let keys = match &claim.wanted {
            Wanted::Run(run) | Wanted::Again(run) => self.keys.get(run).copied().into_iter().collect(),
            Wanted::Due { workflows, limit } => self.longest_due(workflows, *limit, now),
        };
        let from = matches!(claim.wanted, Wanted::Again(_)).then_some(claim.owner);
        for key in keys {
            claimed.runs.extend(self.take(key, from, claim.owner));
        }
        if let Wanted::Due { workflows, .. } = &claim.wanted {
            let firsts = workflows.iter().filter_map(|workflow| self.due.get(workflow)?.first());
            claimed.next_due = firsts.map(|(at, _)| *at).min();
        }
        claimed
    }

    fn longest_due(&self, workflows: &[(String, u32)], limit: u32, now: Timestamp) -> Vec<i64> {
        let limit = limit as usize;
        let mut due = BTreeSet::new();
        for workflow in workflows {
            let of_workflow = self.due.get(workflow).into_iter().flatten();
            due.extend(of_workflow.take_while(|(at, _)| *at <= now).take(limit).copied());
        }
        due.into_iter().take(limit).map(|(_, key)| key).collect()
    }

    fn take(
        &mut self,
        key: i64,
        from: Option<OwnerId>,
        owner: OwnerId,
    ) -> Option<(Lease, RunRecord, String)> {
        let run = self.runs.get_mut(&key).filter(|run| run.record.owner == from)?;
        let was_waiting = run.waiting_since();
        run.record.owner = Some(owner);
        run.record.fence += 1;
        let record = run.record.clone();
        let definition = run.definition.clone();
        self.reindex(key, was_waiting);
        self.owners.get_mut(&owner)?.runs.insert(key);
        Some((Lease { run: record.id.clone(), key, fence: record.fence }, record, definition))
    }

    fn send(&mut self, new: NewCommand, now: Timestamp) -> Result<CommandId, Refused> {
        let Some(&key) = self.keys.get(&new.run) else {
            return Err(Refused::NotFound { run: new.run });
        };
        let run = self.runs.get_mut(&key).expect("invariant: every id leads to a run");
        self.last_command += 1;
        let id = CommandId(self.last_command);
        let was_waiting = run.waiting_since();
        run.commands.insert(id);
        run.record.wake_at = Some(run.record.wake_at.map_or(now, |at| at.min(now)));
        let owner = run.record.owner;
        self.reindex(key, was_waiting);
        let NewCommand { run, kind, body } = new;
        self.commands.insert(id, (key, Command { id, run, kind, body, at: now }));
        match owner.and_then(|owner| self.owners.get(&owner)) {
            Some(owner) => owner.bell.notify_one(),
            None => self.ring_all(),
        }
        Ok(id)
    }

    fn delete(&mut self, id: &RunId, now: Timestamp) -> Result<bool, Refused> {
        self.reap(now);
        let Some(&key) = self.keys.get(id) else { return Ok(false) };
        if let Some(owner) = self.runs.get(&key).and_then(|run| run.record.owner) {
            return Err(Refused::Owned { run: id.clone(), owner });
        }
        self.keys.remove(id);
        let run = self.runs.remove(&key).expect("invariant: every id leads to a run");
        if let Some(at) = run.waiting_since() {
            let workflow = (run.record.workflow, run.record.workflow_version);
            self.due.entry(workflow).or_default().remove(&(at, key));
        }
        for command in run.commands {
            self.commands.remove(&command);
        }
        for letter in run.letters.values() {
            self.letters.remove(letter);
        }
        Ok(true)
    }

    fn list(&self, filter: &Filter) -> Result<Page<RunRecord>, StoreError> {
        let wanted = rows_of_page(filter.limit);
        let end = place(filter.after.as_deref())?.map_or(Bound::Unbounded, Bound::Excluded);
        if wanted == 0 {
            return Ok(Page { rows: Vec::new(), next: None });
        }
        let prefix = filter.id_prefix.as_deref().unwrap_or("");
        let fits = |record: &RunRecord| {
            (filter.statuses.is_empty() || filter.statuses.contains(&record.status))
                && filter.workflow.as_ref().is_none_or(|workflow| *workflow == record.workflow)
                && record.id.as_str().starts_with(prefix)
        };
        let newest = self.runs.range((Bound::Unbounded, end)).rev();
        let rows = newest.filter(|(_, run)| fits(&run.record)).take(wanted + 1).collect();
        let page = page(rows, wanted, |(key, _)| **key);
        Ok(Page { rows: page.rows.into_iter().map(|(_, run)| run.record.clone()).collect(), next: page.next })
    }

    fn put_shared(&mut self, puts: Vec<PutShared>) -> bool {
        let last_removed = self.last_removed;
        let mut before = Vec::new();
        for PutShared { kind, name, expected, body } in puts {
            let found = self.shared.get(&kind).and_then(|of_kind| of_kind.get(&name));
            if found.map_or(0, |shared| shared.version) != expected {
                for (kind, name, shared) in before.into_iter().rev() {
                    self.set_shared(kind, name, shared);
                }
                self.last_removed = last_removed;
                return false;
            }
            let begin = if expected == 0 { self.last_removed } else { expected };
            if body.is_none() {
                self.last_removed = self.last_removed.max(expected);
            }
            let shared = body.map(|body| Shared { version: begin + 1, body });
            before.push((kind.clone(), name.clone(), self.set_shared(kind, name, shared)));
        }
        true
    }

    /// Sets or removes a shared state and returns what it was before.
    fn set_shared(&mut self, kind: String, name: String, shared: Option<Shared>) -> Option<Shared> {
        let of_kind = self.shared.entry(kind).or_default();
        match shared {
            Some(shared) => of_kind.insert(name, shared),
            None => of_kind.remove(&name),
        }
    }

    fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.get(self.keys.get(id)?)
    }
}

/// What creating a run needs beside the run itself.
struct Begin<'a> {
    run: &'a RunId,
    expected: Version,
    now: Timestamp,
}

impl Run {
    /// Returns when somebody has to look at it, if nobody drives it.
    const fn waiting_since(&self) -> Option<Timestamp> {
        match self.record.owner {
            Some(_) => None,
            None => self.record.wake_at,
        }
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
        self.answer(move |state, now| Ok(state.delete(run, now)))
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        self.answer(move |state, _| Ok(state.run(run).and_then(|run| run.checkpoint.clone())))
    }

    fn join(&self, lease: Span) -> Answer<'_, OwnerId> {
        self.answer(move |state, now| {
            state.reap(now);
            state.last_owner += 1;
            let id = OwnerId(state.last_owner);
            let expires_at = now.saturating_add(lease);
            state.owners.insert(id, Owner { expires_at, runs: BTreeSet::new(), bell: Arc::default() });
            Ok(id)
        })
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.answer(move |state, now| {
            if let Some(live) = state.owners.get_mut(&owner).filter(|owner| owner.expires_at > now) {
                live.expires_at = now.saturating_add(lease);
                return Ok(Ok(Renewed { is_alone: state.owners.len() == 1 }));
            }
            state.leave(owner, now);
            Ok(Err(Refused::LeaseOver))
        })
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.answer(move |state, now| {
            state.leave(owner, now);
            Ok(())
        })
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        self.answer(move |state, now| {
            let live = state.owners.iter().filter(|(_, owner)| owner.expires_at > now);
            Ok(live.map(|(id, _)| *id).collect())
        })
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.answer(move |state, now| Ok(state.claim(claim, now)))
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
