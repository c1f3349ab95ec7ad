//! All that the store in memory keeps, and how it changes: the plainest reading of what a store promises. It has no
//! lock and no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tokio::sync::Notify;

use crate::page::{page, place, rows_of_page};
use crate::record::{
    Command, CommandId, DeadLetter, DeadLetterId, Filter, Lease, Letter, NewCommand, NewDeadLetter, NewRun,
    OwnerId, Page, PutShared, RunRecord, Shared, Stored, Version,
};
use crate::store::{Append, Claim, Claimed, Guard, Refused, StoreError, Wanted};
use crate::time::StoreTime;
use crate::watch::{Renewal, Watch};

#[derive(Default)]
pub(super) struct State {
    pub(super) runs: BTreeMap<i64, Run>,
    pub(super) keys: BTreeMap<RunId, i64>,
    /// The runs that nobody drives and that somebody has to look at some time, by workflow.
    pub(super) due: BTreeMap<(String, u32), BTreeSet<(Timestamp, i64)>>,
    pub(super) owners: BTreeMap<OwnerId, Owner>,
    /// What each process that sees the store has seen of it.
    views: Vec<View>,
    /// The store's time when it was asked something last.
    time: Timestamp,
    /// What was noted as being executed.
    pub(super) executions: BTreeSet<(i64, String)>,
    pub(super) commands: BTreeMap<CommandId, (i64, Command)>,
    pub(super) shared: BTreeMap<String, BTreeMap<String, Shared>>,
    /// The highest version that a shared state had when it was removed.
    pub(super) last_removed: u64,
    pub(super) letters: BTreeMap<DeadLetterId, DeadLetter>,
    pub(super) last_key: i64,
    pub(super) last_owner: i64,
    pub(super) last_command: i64,
    pub(super) last_letter: i64,
}

/// What one process has seen.
#[derive(Default)]
struct View {
    watch: Watch,
    time: StoreTime,
}

/// When something is asked, and by which process.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) view: usize,
    /// The store's time.
    pub(super) now: Timestamp,
    /// The time of the process, by which leases are watched.
    local: Timestamp,
    /// The store's time before.
    before: Timestamp,
}

pub(super) struct Run {
    pub(super) record: RunRecord,
    pub(super) definition: String,
    pub(super) log: Vec<Stored>,
    pub(super) commands: BTreeSet<CommandId>,
    /// By the piece of work.
    pub(super) letters: BTreeMap<String, DeadLetterId>,
    pub(super) checkpoint: Option<(Version, String)>,
}

pub(super) struct Owner {
    pub(super) renewal: Renewal,
    pub(super) lease: Span,
    pub(super) runs: BTreeSet<i64>,
    pub(super) bell: Arc<Notify>,
    /// Which process it belongs to.
    pub(super) view: usize,
}

impl State {
    /// Lets another process see the store, and returns its number.
    pub(super) fn add_view(&mut self) -> usize {
        self.views.push(View::default());
        self.views.len() - 1
    }

    /// Returns the moment at which a process asks something.
    pub(super) fn moment(&mut self, view: usize, local: Timestamp) -> Moment {
        let before = self.time;
        if !self.views[view].time.is_set() {
            self.meet(Moment { view, now: before, local, before });
        }
        let now = self.views[view].time.now(local, before);
        self.time = now;
        Moment { view, now, local, before }
    }

    /// Looks who else keeps the store's time, and returns it.
    pub(super) fn meet(&mut self, moment: Moment) -> Timestamp {
        let others = self.owners.values().filter(|owner| owner.view != moment.view);
        let longest_lease = others.map(|owner| owner.lease).max();
        let time = &mut self.views[moment.view].time;
        time.meet(moment.local, moment.before, longest_lease);
        self.time = time.now(moment.local, moment.before);
        self.time
    }

    pub(super) fn append(&mut self, append: Append, now: Timestamp) -> Result<Lease, Refused> {
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
            let runs = &mut self.owners.get_mut(&owner).ok_or(Refused::LeaseOver)?.runs;
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
    pub(super) fn free(&mut self, key: i64, now: Timestamp) {
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

    /// Frees the runs of owners that were seen not to renew for a lease.
    pub(super) fn reap(&mut self, moment: Moment) {
        for id in self.late(moment) {
            self.leave(id, moment.now);
        }
    }

    /// Looks at all owners, and returns those that were seen not to renew for a lease.
    pub(super) fn late(&mut self, moment: Moment) -> BTreeSet<OwnerId> {
        let Self { owners, views, .. } = self;
        let watch = &mut views[moment.view].watch;
        // Who renews each third of a long lease looks no more often than that.
        let longest = owners.values().map(|owner| owner.lease).max().unwrap_or_default();
        let mut is_late =
            |id: OwnerId, owner: &Owner| watch.is_late(id, owner.renewal, longest, moment.local);
        owners.iter().filter(|(id, owner)| is_late(**id, owner)).map(|(id, _)| *id).collect()
    }

    pub(super) fn leave(&mut self, id: OwnerId, now: Timestamp) {
        let Some(owner) = self.owners.remove(&id) else { return };
        self.views.iter_mut().for_each(|view| view.watch.forget(id));
        for key in owner.runs {
            self.free(key, now);
        }
        // Whoever waits as this owner learns that it is none any more.
        owner.bell.notify_one();
    }

    pub(super) fn take_executions(&mut self, key: i64) -> Vec<String> {
        let taken = self.executions.extract_if((key, String::new())..(key + 1, String::new()), |_| true);
        taken.map(|(_, work)| work).collect()
    }

    fn ring_all(&self) {
        for owner in self.owners.values() {
            owner.bell.notify_one();
        }
    }

    pub(super) fn claim(&mut self, claim: Claim, moment: Moment) -> Claimed {
        self.reap(moment);
        let mut claimed = Claimed { runs: Vec::new(), next_due: None };
        if !self.owners.contains_key(&claim.owner) {
            return claimed;
        }
        let keys = match &claim.wanted {
            Wanted::Run(run) | Wanted::Again(run) => self.keys.get(run).copied().into_iter().collect(),
            Wanted::Due { workflows, limit } => self.longest_due(workflows, *limit, moment.now),
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

    pub(super) fn take(
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

    pub(super) fn send(&mut self, new: NewCommand, now: Timestamp) -> Result<CommandId, Refused> {
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

    pub(super) fn delete(&mut self, id: &RunId, moment: Moment) -> Result<bool, Refused> {
        self.reap(moment);
        let Some(&key) = self.keys.get(id) else { return Ok(false) };
        if let Some(owner) = self.runs.get(&key).and_then(|run| run.record.owner) {
            return Err(Refused::Owned { run: id.clone(), owner });
        }
        self.keys.remove(id);
        self.take_executions(key);
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

    pub(super) fn list(&self, filter: &Filter) -> Result<Page<RunRecord>, StoreError> {
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

    pub(super) fn put_shared(&mut self, puts: Vec<PutShared>) -> bool {
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

    pub(super) fn run(&self, id: &RunId) -> Option<&Run> {
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
