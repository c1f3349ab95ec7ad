//! What waits for a slot and what has one: all that changes while a pool works. It starts nothing and tells nobody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidewheel_core::time::Timestamp;
use tidewheel_core::work::Cancellation;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::attempt::{Attempt, Begun};
use super::job::{Job, Place, Sink};
use super::number::ByNumber;
use super::queue::{MOST_PREFERRED, Queue, Spot};
use crate::timers::TimerKey;

#[derive(Default)]
pub(super) struct State {
    /// What may begin when there is room, and needs a thread.
    pub(super) ready: Queue,
    /// What may begin when there is room, and needs a task.
    pub(super) later: Queue,
    /// Where those wait that have to have a slot in time, the first of them first.
    pub(super) impatient: BTreeMap<(Timestamp, Place), Spot>,
    /// When somebody looks after them.
    pub(super) impatience: Option<TimerKey>,
    pub(super) out: ByNumber<Out>,
    /// How many pieces began, which tells one attempt at a place from the next.
    begun: u64,
    /// What began last, and how many of the same sort in a row.
    last: Row,
    /// Whether nobody wants anything any more.
    pub(super) is_closed: bool,
    /// Workers that will look for a piece next.
    pub(super) searching: usize,
    /// Threads whose work was given up and goes on nevertheless.
    pub(super) abandoned: usize,
    /// How many of those that are out have lent their slot.
    pub(super) lent: usize,
    /// Those that want their slot back, in this order and before anything new begins.
    pub(super) returning: VecDeque<(Begun, oneshot::Sender<()>)>,
}

/// Pieces of one sort that began one after the other.
#[derive(Default)]
struct Row {
    are_tasks: bool,
    count: u32,
}

pub(super) struct Out {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) begun: u64,
    pub(super) on: On,
    pub(super) timer: Option<TimerKey>,
    pub(super) cancellation: Option<Cancellation>,
    /// How often it waits for another run at the moment.
    loans: u32,
    /// Whether its slot is lent out.
    is_lent: bool,
}

/// Where a piece runs.
pub(super) enum On {
    Thread,
    /// `None` until the task is there.
    Task(Option<AbortHandle>),
}

impl State {
    pub(super) fn begin(&mut self, job: Job, on: On) -> Attempt {
        self.waits_no_more(&job);
        let Job { sink, place, runnable, handed_in, terms, .. } = job;
        let cancellation = terms.as_ref().and_then(|terms| terms.cancellation.clone());
        self.begun += 1;
        let are_tasks = matches!(on, On::Task(_));
        let before = if self.last.are_tasks == are_tasks { self.last.count } else { 0 };
        self.last = Row { are_tasks, count: before.saturating_add(1) };
        let begun = self.begun;
        let tells = terms.as_ref().is_some_and(|terms| terms.tells_beginning);
        let told = tells.then(|| Arc::clone(&sink));
        let (timer, loans, is_lent) = (None, 0, false);
        self.out.insert(place, Out { sink, begun, on, timer, cancellation, loans, is_lent });
        Attempt { begun: Begun { place, begun }, runnable, handed_in, terms, told }
    }

    /// A piece has a slot, or needs none any more.
    pub(super) fn waits_no_more(&mut self, job: &Job) {
        if let Some(until) = job.queue_until() {
            self.impatient.remove(&(until, job.place));
        }
    }

    /// Tells whether the next task may begin. Where room is short, it leaves that to threads whose pieces are more
    /// urgent or, among equals, have not had their turn; neither sort waits for ever.
    pub(super) fn has_room_for_task(&self, limit: usize) -> bool {
        let Some(task) = self.later.next_level() else { return false };
        let left_to_threads = match self.ready.next_level() {
            None => 0,
            Some(thread) if thread < task => {
                let had_enough = !self.last.are_tasks && self.last.count >= MOST_PREFERRED;
                if had_enough { 0 } else { self.ready.len() }
            }
            Some(thread) if thread == task => usize::from(self.last.are_tasks),
            Some(_) => usize::from(self.last.are_tasks && self.last.count >= MOST_PREFERRED),
        };
        self.taken().saturating_add(left_to_threads) < limit
    }

    /// Returns how many pieces have a slot.
    pub(super) fn in_use(&self) -> usize {
        self.out.len() - self.lent
    }

    /// Returns how many slots new work has to leave to others: those that have one, and those that want theirs back.
    pub(super) fn taken(&self) -> usize {
        self.in_use() + self.returning.len()
    }

    /// Lends the slot of a piece out, unless it is.
    pub(super) fn lend(&mut self, begun: Begun) {
        let Some(out) = self.begun_out(begun) else { return };
        out.loans += 1;
        let is_first = !std::mem::replace(&mut out.is_lent, true);
        self.lent += usize::from(is_first);
    }

    /// A piece waits no more in one place; returns who says that it has its slot back, where it needs it.
    pub(super) fn want_back(&mut self, begun: Begun) -> Option<oneshot::Receiver<()>> {
        let out = self.begun_out(begun)?;
        out.loans = out.loans.saturating_sub(1);
        if out.loans > 0 || !out.is_lent {
            return None;
        }
        let (give, given) = oneshot::channel();
        self.returning.push_back((begun, give));
        Some(given)
    }

    /// A piece goes on at once, whether there is room or not.
    pub(super) fn take_slot(&mut self, begun: Begun) {
        let Some(out) = self.begun_out(begun) else { return };
        out.loans = out.loans.saturating_sub(1);
        if out.loans == 0 && std::mem::take(&mut out.is_lent) {
            self.lent -= 1;
        }
    }

    /// Gives slots back to those that lent theirs, as far as there is room; returns whom to tell.
    pub(super) fn give_slots_back(&mut self, limit: usize) -> Vec<oneshot::Sender<()>> {
        let mut given = Vec::new();
        while self.in_use() < limit
            && let Some((begun, give)) = self.returning.pop_front()
        {
            // One that was taken back needs none, and one that waits again will ask again.
            let is_wanted = self.begun_out(begun).is_some_and(|out| out.is_lent && out.loans == 0);
            if is_wanted {
                self.begun_out(begun).into_iter().for_each(|out| out.is_lent = false);
                self.lent -= 1;
            }
            given.push(give);
        }
        given
    }

    fn begun_out(&mut self, begun: Begun) -> Option<&mut Out> {
        self.out.get_mut(&begun.place).filter(|out| out.begun == begun.begun)
    }

    /// Takes out what is at a place.
    pub(super) fn take_out(&mut self, place: Place) -> Option<Out> {
        let out = self.out.remove(&place)?;
        self.lent -= usize::from(out.is_lent);
        Some(out)
    }

    /// Takes a piece out that is over, unless it was given up: its place may be that of the next attempt now.
    pub(super) fn remove(&mut self, begun: Begun) -> Option<Out> {
        self.begun_out(begun)?;
        self.take_out(begun.place)
    }
}
