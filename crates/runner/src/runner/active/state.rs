//! What a run has in this process beside its facts: what is to be stored, what is on its way, who waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Failure, Kind, Resolved};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::work::Token;
use tidewheel_core::{Runnable, Ticket};
use tidewheel_store::{Batch, CommandId, Lease, Letter, Status, Version};
use tokio::sync::oneshot;

use super::end::End;
use super::life::Right;
use super::outside::Said;
use super::seen::Seen;
use super::suspect::Suspect;
use crate::driver::Course;
use crate::ear::Ear;
use crate::limits::{Ask, Permits};
use crate::pool::Place;
use crate::runner::options::Checkpoints;
use crate::timers::TimerKey;

pub(super) struct State {
    pub(super) run: Run,
    pub(super) right: Right,
    pub(super) version: Version,
    pub(super) mode: Mode,
    /// What happened and is not on its way to the store yet.
    pub(super) fresh: Fresh,
    /// What is on its way to the store.
    pub(super) in_flight: Option<Flight>,
    pub(super) out: HashMap<Place, Out>,
    /// How many facts are stored; nobody outside sees others.
    pub(super) stored_facts: usize,
    pub(super) waiters: Vec<Waiter>,
    /// How many cycles went by since the last commit.
    pub(super) cycles: u32,
    /// Whether this process lets no new work start.
    pub(super) is_held_back: bool,
    /// Whether a change ended in a panic, and nobody has seen to it yet.
    pub(super) is_broken: bool,
    /// Work that it is too late for, which does not begin.
    pub(super) late: Vec<Runnable>,
    /// Attempts at work whose dispatch is not stored.
    pub(super) again: Vec<Piece>,
    /// Work that waits to be let in, by its number.
    pub(super) asking: Asking,
    /// When work that waits is looked at again, by its number.
    pub(super) looks: BTreeMap<u32, TimerKey>,
    /// What is to be asked next.
    pub(super) asks: Vec<Ask>,
    /// What makes work that waits to be let in the same as other work, by its number.
    pub(super) keys: BTreeMap<u32, Arc<str>>,
    /// What may be the same as other work, and wants to be let in next.
    pub(super) keyed: Vec<(Runnable, Arc<Resolved>)>,
    /// What ended outside and is to be looked at.
    pub(super) outside: Vec<End>,
    /// Work that ended outside and of which it is not stored yet, by its number.
    pub(super) ending: BTreeSet<u32>,
    /// What was said of work before its function handed it over, by its number.
    pub(super) early: BTreeMap<u32, Early>,
    /// Why it is paused, where there is something to say.
    pub(super) pause_reason: Option<String>,
    /// What was stored and not told yet, in order.
    pub(super) to_tell: VecDeque<Telling>,
    /// Whether somebody tells it at the moment; others leave it to them, so that it stays in order.
    pub(super) is_telling: bool,
    /// How many results are looked at by their policies, outside of the lock.
    pub(super) deciding: usize,
    /// Whether that was taken up again which was under way when the run was stored.
    pub(super) is_taken_up: bool,
    /// Whether some of that got lost with its process.
    pub(super) has_lost: bool,
    /// The last command that was obeyed. They come in order, and one may be seen twice until it is stored that it
    /// was handled.
    pub(super) last_command: Option<CommandId>,
}

/// How a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runner) enum Mode {
    Going,
    Paused,
    /// It was stopped, put aside or cancelled, and is here to be asked one thing; then it leaves again.
    Aside {
        status: Status,
        reason: Option<String>,
    },
    /// It leaves this process, and its status says why.
    Leaving {
        status: Status,
        reason: Option<String>,
    },
    /// It has left this process.
    Gone {
        status: Option<Status>,
        why: String,
    },
}

#[derive(Default)]
pub(super) struct Fresh {
    pub(super) events: Batch,
    /// The same events for those who listen, if somebody does.
    pub(super) heard: Vec<Heard>,
    pub(super) handled: Vec<CommandId>,
    pub(super) acks: Vec<Ack>,
    /// Work that may start when its dispatch is stored.
    pub(super) held: Vec<Piece>,
    /// Work that is put aside for people, or is not any more.
    pub(super) letters: Vec<Letter>,
    /// Whether it is to be stored even without events.
    pub(super) is_urgent: bool,
}

/// What somebody outside said of a piece of work before they had it.
pub(super) struct Early {
    pub(super) token: Token,
    pub(super) said: Said,
    pub(super) by: By,
}

pub(super) struct Flight {
    pub(super) heard: Vec<Heard>,
    pub(super) count: u32,
    pub(super) acks: Vec<Ack>,
    pub(super) held: Vec<Piece>,
    /// What claims its key then: others ask the store whether the run that has a key goes on.
    pub(super) keyed: Vec<(Runnable, Arc<Resolved>)>,
    pub(super) facts: usize,
}

/// Work that waits to be let in, by its number.
#[derive(Default)]
pub(super) struct Asking {
    tickets: BTreeMap<u32, (Ticket, bool)>,
    /// How many were not told yet that they have to wait.
    untold: usize,
}

impl Asking {
    pub(super) fn insert(&mut self, ticket: Ticket) {
        if let Some((_, false)) = self.tickets.insert(ticket.number(), (ticket, false)) {
            return;
        }
        self.untold += 1;
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.tickets.contains_key(&number)
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Ticket> {
        let (ticket, is_told) = self.tickets.remove(&number)?;
        self.untold -= usize::from(!is_told);
        Some(ticket)
    }

    /// Returns a piece that is told to wait.
    pub(super) fn tell(&mut self, number: u32) -> Option<Ticket> {
        let (ticket, is_told) = self.tickets.get_mut(&number)?;
        self.untold -= usize::from(!std::mem::replace(is_told, true));
        Some(ticket.clone())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Tells whether everybody knows that they have to wait.
    pub(super) const fn all_wait(&self) -> bool {
        self.untold == 0
    }
}

/// An attempt that was dispatched, and how it begins.
pub(super) struct Piece {
    pub(super) runnable: Runnable,
    pub(super) way: Way,
    /// When it has to have a slot, if that is not counted from now.
    pub(super) queue_until: Option<Timestamp>,
}

/// How an attempt begins.
pub(super) enum Way {
    /// As it is.
    Free,
    /// It was let in.
    In(Permits),
    /// Its breaker does not let it in, and it does not wait for that.
    Shut(Timestamp),
    /// It waited too long.
    Late(Failure),
    /// Another piece of work did the same, and this came of it.
    Done(Value),
}

impl Piece {
    pub(super) const fn free(runnable: Runnable) -> Self {
        Self { runnable, way: Way::Free, queue_until: None }
    }
}

/// What those who listen are to be told of one commit.
pub(super) struct Telling {
    /// The number of the first event of the commit.
    pub(super) first: Version,
    pub(super) heard: Vec<Heard>,
    /// How the run is, if nothing is left to do in it.
    pub(super) idle: Option<Status>,
}

/// An event for those who listen.
pub(super) struct Heard {
    /// Its place in its commit.
    pub(super) place: u32,
    pub(super) line: Arc<str>,
    /// What hooks are told, with the name and the kind of the node.
    pub(super) what: Option<(Option<String>, Kind, What)>,
}

pub(super) enum What {
    Dispatched(u32),
    Completed,
    Failed(Box<Failure>),
}

/// Who waits until something is stored.
pub(in crate::runner) type Ack = oneshot::Sender<Result<(), Lost>>;

/// Who asks something of a run.
pub(in crate::runner) enum By {
    /// Somebody who waits until it is stored.
    Caller(Ack),
    /// Somebody who asked through the store.
    Command(CommandId),
}

/// What becomes of a run with nothing to do.
pub(in crate::runner) enum Rest {
    /// It is not here any more, and its lease is to be given back.
    Over(Lease),
    /// Somebody waits for it here.
    Awaited,
    /// It has something to do.
    Busy,
}

/// Why something was not stored.
#[derive(Clone, Debug)]
pub(in crate::runner) enum Lost {
    /// A run of that id exists.
    Exists,
    /// A run of that id exists, and may be this one: the answer of the store got lost.
    PerhapsOurs,
    /// The run went wrong, and is taken up again.
    Crashed(String),
    /// Nobody waits for what was said.
    NotAwaited(Token),
    /// The lease of this process is over: another process may drive the run.
    Lease(String),
    /// Something else.
    Otherwise(String),
}

impl Lost {
    /// Tells whether it was asked of a run that was to be created and existed: the one that exists is asked next.
    pub(in crate::runner) const fn is_of_twin(&self) -> bool {
        matches!(self, Self::Exists | Self::PerhapsOurs)
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exists | Self::PerhapsOurs => f.write_str("a run of that id exists"),
            Self::NotAwaited(token) => write!(f, "nobody waits for `{token}`"),
            Self::Crashed(why) | Self::Lease(why) | Self::Otherwise(why) => f.write_str(why),
        }
    }
}

pub(super) struct Out {
    pub(super) ticket: Ticket,
    pub(super) is_durable: bool,
    /// `None` under a policy that changes nothing.
    pub(super) driven: Option<Box<(Runnable, Course)>>,
    pub(super) permits: Option<Permits>,
    /// Who heard what it wants to have undone, where something can be.
    pub(super) ear: Option<Arc<Ear>>,
    /// For work that got lost with a process before.
    pub(super) suspect: Option<Box<Suspect>>,
}

/// Who waits for a result.
pub(super) struct Waiter {
    /// `None` for the end of all work.
    pub(super) component: Option<String>,
    pub(super) tell: oneshot::Sender<()>,
}

impl State {
    /// Tells somebody when all that is there is stored.
    pub(super) fn when_stored(&mut self, ack: Ack) {
        if let Mode::Gone { why, .. } = &self.mode {
            drop(ack.send(Err(Lost::Otherwise(why.clone()))));
            return;
        }
        match (&mut self.in_flight, self.fresh.events.is_empty()) {
            (_, false) => {
                self.fresh.acks.push(ack);
                self.fresh.is_urgent = true;
            }
            (Some(flight), true) => flight.acks.push(ack),
            // Whoever does not wait any more has their reasons.
            (None, true) => drop(ack.send(Ok(()))),
        }
    }

    /// Tells whether this command was obeyed already; otherwise it is from now on.
    pub(super) fn is_known(&mut self, by: &By) -> bool {
        let By::Command(id) = by else { return false };
        if self.last_command.is_some_and(|last| *id <= last) {
            return true;
        }
        self.last_command = Some(*id);
        false
    }

    /// Answers whoever asked when everything so far is stored.
    pub(super) fn answer(&mut self, by: By) {
        match by {
            By::Caller(ack) => self.fresh.acks.push(ack),
            By::Command(id) => self.fresh.handled.push(id),
        }
        self.fresh.is_urgent = true;
    }

    /// Says of a piece of work that nobody outside ends it now, to whoever did too early.
    pub(super) fn refuse_early(&mut self, number: u32) {
        let Some(Early { token, by, .. }) = self.early.remove(&number) else { return };
        match by {
            // Whoever does not wait any more has their reasons.
            By::Caller(ack) => drop(ack.send(Err(Lost::NotAwaited(token)))),
            By::Command(_) => self.answer(by),
        }
    }

    pub(super) const fn is_gone(&self) -> bool {
        matches!(self.mode, Mode::Gone { .. })
    }

    /// Tells whether the run only changes hands.
    pub(super) const fn changes_hands(&self) -> bool {
        matches!(
            self.mode,
            Mode::Leaving {
                status: Status::Running | Status::Waiting | Status::Completed | Status::Failed,
                ..
            }
        )
    }

    /// Returns how the run is, when somebody has to look at it, and why.
    pub(super) fn condition(&self, now: Timestamp) -> (Status, Option<Timestamp>, Option<String>) {
        match &self.mode {
            Mode::Paused => (Status::Paused, None, self.pause_reason.clone()),
            Mode::Leaving { status, reason } | Mode::Aside { status, reason } => {
                // A run that only changes hands is due at once.
                let wake_at = match status {
                    Status::Running => Some(now),
                    Status::Waiting => self.run.next_due(),
                    _ => None,
                };
                (*status, wake_at, reason.clone())
            }
            Mode::Going | Mode::Gone { .. } => {
                if self.run.inputs_len() == 0 {
                    (Status::Waiting, None, None)
                } else if !self.run.is_runnable() {
                    match (self.run.has_failed(), self.run.skipped_failures()) {
                        (true, _) => (Status::Failed, None, None),
                        (false, skipped) => (Status::Completed, None, skipped_reason(skipped)),
                    }
                } else if self.run.only_waits() {
                    (Status::Waiting, self.run.next_due(), None)
                } else {
                    (Status::Running, Some(now), None)
                }
            }
        }
    }

    /// Tells whether everything that there was to do is done and stored.
    pub(super) fn is_over(&self) -> bool {
        !self.run.is_runnable() && self.is_quiet()
    }

    /// Tells whether nothing is under way or to be stored.
    pub(super) fn is_quiet(&self) -> bool {
        self.in_flight.is_none()
            && self.fresh.is_empty()
            && self.out.is_empty()
            && self.again.is_empty()
            && self.late.is_empty()
            && self.asks.is_empty()
            && self.keyed.is_empty()
            && self.outside.is_empty()
            && self.deciding == 0
    }

    /// Tells whether there is nothing to do now: the run waits for an input, for a time or for somebody.
    pub(super) fn is_idle(&self) -> bool {
        self.is_quiet()
            && match self.mode {
                Mode::Going => !self.run.is_runnable() || self.run.only_waits() && self.asking.all_wait(),
                Mode::Paused => true,
                Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => false,
            }
    }

    pub(super) fn has_left(&self) -> bool {
        matches!(self.mode, Mode::Leaving { .. })
            && self.in_flight.is_none()
            && self.fresh.is_empty()
            && self.deciding == 0
    }

    pub(super) fn wait_for(&mut self, component: Option<String>) -> Seen {
        match &self.mode {
            Mode::Paused if self.is_quiet() => return Seen::Over { status: Status::Paused },
            Mode::Going | Mode::Paused => {}
            Mode::Leaving { status, .. } | Mode::Aside { status, .. } => {
                return Seen::Over { status: *status };
            }
            Mode::Gone { status, .. } => return Seen::Over { status: status.unwrap_or(Status::Running) },
        }
        let (tell, told) = oneshot::channel();
        self.waiters.push(Waiter { component, tell });
        Seen::Wait(told)
    }

    /// Wakes whoever waits for something that was stored just now.
    pub(super) fn wake_waiters(&mut self, seen: usize) {
        if self.waiters.is_empty() {
            return;
        }
        let stored = self.stored_facts;
        let made: Vec<&str> = self
            .run
            .producers_from(seen)
            .take(stored.saturating_sub(seen))
            .filter_map(|(component, _)| component)
            .collect();
        let is_wanted =
            |waiter: &Waiter| waiter.component.as_deref().is_some_and(|name| made.contains(&name));
        let (wanted, others) = std::mem::take(&mut self.waiters).into_iter().partition(is_wanted);
        self.waiters = others;
        let woken: Vec<Waiter> = wanted;
        for waiter in woken {
            // Whoever does not wait any more has their reasons.
            let _woken = waiter.tell.send(());
        }
    }
}

impl Fresh {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.handled.is_empty()
            && self.acks.is_empty()
            && self.letters.is_empty()
            && !self.is_urgent
    }

    /// Tells whether it is time to store what is there.
    pub(super) fn is_due(&self, checkpoints: Checkpoints, cycles: u32, is_runnable: bool) -> bool {
        if self.is_empty() {
            return false;
        }
        let is_asked = self.is_urgent || !self.held.is_empty() || !self.acks.is_empty() || !is_runnable;
        is_asked
            || match checkpoints {
                Checkpoints::EveryCycle => true,
                Checkpoints::EveryN(n) => cycles >= n,
                Checkpoints::OnComplete | Checkpoints::Manual => false,
            }
    }
}

/// Says that a run completed without what failed and was skipped.
fn skipped_reason(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 failure was skipped".to_owned()),
        count => Some(format!("{count} failures were skipped")),
    }
}
