//! What waits for a slot and what has one: all that changes while a pool works. It starts nothing and tells nobody.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tidewheel_core::time::Timestamp;
use tidewheel_core::work::Cancellation;
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
        self.out.insert(place, Out { sink, begun, on, timer: None, cancellation });
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
        self.out.len().saturating_add(left_to_threads) < limit
    }

    /// Takes a piece out that is over, unless it was given up: its place may be that of the next attempt now.
    pub(super) fn remove(&mut self, begun: Begun) -> Option<Out> {
        match self.out.entry(begun.place) {
            Entry::Occupied(out) if out.get().begun == begun.begun => Some(out.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        }
    }
}
