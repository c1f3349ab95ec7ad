//! The thread that writes: what queued up while the last commit ran becomes one transaction, and everybody is
//! answered after its commit. One who comes alone does not wait for others.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, with_suspends};
use crate::record::OwnerId;
use crate::sqlite::acknowledged::{Acknowledged, LastCommit};
use crate::sqlite::failpoint::{self, AFTER_BEGIN, AFTER_COMMIT, AFTER_REQUEST, BEFORE_BEGIN, BEFORE_COMMIT};
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::holder::Holder;
use crate::sqlite::in_place::InPlace;
use crate::sqlite::owner;
use crate::sqlite::presence::Roster;
use crate::sqlite::transaction::{Effects, Transaction};
use crate::sqlite::turn::Turns;
use crate::store::{StoreError, Unavailable};
use crate::time::StoreTime;

/// The most writes in one transaction, so that other processes get their turn soon.
const WRITES_AT_MOST: usize = 2_000;

/// A request on its way to the thread.
pub(crate) enum Message {
    Write(Box<dyn Request>),
    /// Ends the thread after what was asked before.
    Close,
}

/// Something to write; it may have to be done more than once, if others in its group fail.
pub(crate) trait Request: Send {
    /// Returns how many writes it has.
    fn weight(&self) -> usize;
    /// Writes, and keeps what there is to answer.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Fault>;
    /// Answers.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A request as a function, and whoever waits for it.
pub(crate) struct Ask<T, F> {
    work: F,
    weight: usize,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Ask<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Transaction<'_>) -> Result<T, Fault> + Send + 'static,
{
    pub(crate) fn new(weight: usize, work: F) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { work, weight, done: None, reply }, answer)
    }
}

impl<T, F> Request for Ask<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Transaction<'_>) -> Result<T, Fault> + Send + 'static,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn run(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Fault> {
        self.done = Some((self.work)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        let answer = outcome.map(|()| done.expect("invariant: a request that was committed was run"));
        // Nobody listens any more where the caller gave up.
        let _unheard = reply.send(answer);
    }
}

/// What the thread shares with the store.
#[derive(Default)]
pub(crate) struct Gauges {
    pub(crate) commits: AtomicU64,
    /// Why the store can never be trusted again in this process, once that is so.
    pub(crate) broken: OnceLock<Fault>,
}

/// The thread that writes, with all that it needs.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) queue: mpsc::Receiver<Message>,
    /// Nobody takes turns where nobody may write.
    pub(crate) turns: Option<Turns>,
    pub(crate) patience: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: StoreTime,
    pub(crate) roster: Arc<Roster>,
    pub(crate) gauges: Arc<Gauges>,
    pub(crate) health: Arc<Health>,
    /// Where commits are noted before they are answered; not where no process may write.
    pub(crate) acknowledged: Option<Acknowledged>,
    /// The files of the database; not where no process may write.
    pub(crate) in_place: Option<InPlace>,
    /// Held for as long as the store is open, so that the next process knows whether it is the first.
    pub(crate) _opened: Option<File>,
    /// Those that read; their connections close before the one that writes.
    pub(crate) readers: Vec<JoinHandle<()>>,
}

impl Writer {
    /// Writes until nobody can ask any more.
    pub(crate) fn run(mut self) {
        while let Some(message) = self.queue.blocking_recv() {
            let mut group = Vec::new();
            let mut weight = 0;
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Write(request) => {
                        weight += request.weight();
                        group.push(request);
                    }
                    Message::Close => self.queue.close(),
                }
                next = if weight < WRITES_AT_MOST { self.queue.try_recv().ok() } else { None };
            }
            self.serve(group);
        }
        // Invariant: owners go after the last write; whoever sees them gone may take their runs.
        self.roster.clear();
        // The last connection that closes moves the log of the database into it; of two that close at once none does.
        for reader in self.readers.drain(..) {
            let _panicked = reader.join();
        }
    }

    fn serve(&mut self, mut group: Vec<Box<dyn Request>>) {
        if group.is_empty() {
            return;
        }
        match self.in_turn(|writer| writer.attempt(&mut group)) {
            Ok(effects) => {
                for request in group {
                    request.answer(Ok(()));
                }
                self.ring(effects);
            }
            Err(fault) if fault.is_of_request() && group.len() > 1 => {
                // One of them is to blame: each gets a transaction of its own.
                for request in group {
                    self.serve(vec![request]);
                }
            }
            Err(fault) => {
                if fault.is_final() && self.gauges.broken.set(fault.clone()).is_ok() {
                    tracing::error!(?fault, "the store failed and must be opened again");
                }
                self.health.note_error(&fault.error());
                for request in group {
                    request.answer(Err(fault.error()));
                }
            }
        }
    }

    fn in_turn<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(fault) = self.gauges.broken.get() {
            return Err(fault.clone());
        }
        let has_turn = match &mut self.turns {
            Some(turns) => turns.take(self.patience)?,
            None => false,
        };
        let outcome = work(self);
        if let Some(turns) = self.turns.as_ref().filter(|_| has_turn) {
            turns.give();
        }
        outcome.map_err(|fault| {
            // The process that writes is named: a person has to look at it.
            let holder = if fault.is_busy() { Holder::of_write(self.roster.database()) } else { None };
            holder.map_or(fault, |holder| Fault::new(Unavailable::Busy, holder.to_string()))
        })
    }

    /// Does all requests in one transaction; afterwards all or none of them happened.
    fn attempt(&mut self, group: &mut [Box<dyn Request>]) -> Result<(Effects, Vec<OwnerId>), Fault> {
        let outcome = self.transact(group);
        if outcome.is_err() && !self.connection.is_autocommit() {
            // What cannot be rolled back is not in the database either: it ends with the connection.
            if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                tracing::warn!(%error, "a transaction could not be rolled back");
            }
        }
        outcome
    }

    fn transact(&mut self, group: &mut [Box<dyn Request>]) -> Result<(Effects, Vec<OwnerId>), Fault> {
        if let Some(in_place) = &self.in_place {
            in_place.check()?;
        }
        failpoint::pass(BEFORE_BEGIN);
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        failpoint::pass(AFTER_BEGIN);
        let changes_before = self.connection.total_changes();
        let local = with_suspends(self.clock.as_ref());
        let last = LastCommit::read(&self.connection)?;
        let stored = last.at;
        if !self.time.is_set() {
            let owners = owner::all(&self.connection, &self.roster)?;
            self.time.meet(local, stored, owner::longest_lease_of_others(&owners, &self.roster));
        }
        let mut transaction = Transaction {
            connection: &self.connection,
            now: self.time.now(local, stored),
            local,
            stored,
            time: &mut self.time,
            roster: &self.roster,
            health: &self.health,
            effects: Effects::default(),
        };
        for request in group {
            request.run(&mut transaction)?;
            failpoint::pass(AFTER_REQUEST);
        }
        let (mut effects, now) = (transaction.effects, transaction.now);
        // What changed nothing needs no number, and its commit no wait for the disk.
        let has_changed = self.connection.total_changes() != changes_before;
        let number = if has_changed { last.next(&self.connection, now)? } else { None };
        let everybody = if effects.ring_all || !effects.ring.is_empty() {
            let mut owners = self.connection.prepare_cached("SELECT id FROM owners")?;
            owners.query_map([], |row| Ok(OwnerId(row.get(0)?)))?.collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        failpoint::pass(BEFORE_COMMIT);
        failpoint::sync().map_err(Fault::of_commit)?;
        self.connection.prepare_cached("COMMIT")?.execute([]).map_err(Fault::of_commit)?;
        failpoint::pass(AFTER_COMMIT);
        if let (Some(number), Some(acknowledged)) = (number, &self.acknowledged) {
            acknowledged.note(number, &effects.written);
        }
        // Nothing is answered that the next process could not find.
        if let Some(in_place) = &mut self.in_place {
            in_place.check_after_commit()?;
        }
        self.gauges.commits.fetch_add(1, Ordering::Relaxed);
        // Before anybody is answered: who became an owner may wait for its bell at once.
        for (owner, presence) in effects.joined.drain(..) {
            self.roster.add(owner, presence);
        }
        for key in effects.deleted.drain(..) {
            self.roster.take_executions(key);
        }
        for owner in effects.left.drain(..) {
            self.roster.remove(owner);
        }
        Ok((effects, everybody))
    }

    /// Rings for those whom a commit concerns.
    fn ring(&self, (effects, everybody): (Effects, Vec<OwnerId>)) {
        let mut ring_all = effects.ring_all;
        if !ring_all {
            for owner in effects.ring {
                // An owner that does not hear is gone, and its runs are everybody's.
                ring_all |= !self.roster.ring(owner);
            }
        }
        if ring_all {
            for owner in everybody {
                self.roster.ring(owner);
            }
        }
    }
}
