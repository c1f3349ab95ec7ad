//! Who wants to be let in, in order, and what they are told.

use std::collections::VecDeque;
use std::collections::hash_map::Entry as Place;
use std::sync::{Arc, Weak};

use tidewheel_core::event::Hold;
use tidewheel_core::policy::{Failure, Permit, Priority, Resolved};
use tidewheel_core::time::{Span, Timestamp};
use tokio::sync::oneshot;

use super::gates::Gates;
use super::keeper::Limits;
use crate::driver::Known;
use crate::pool::ByNumber;
use crate::timers::TimerKey;

/// Who asks. It is told outside of all locks of the limits.
pub(crate) trait Asker: Send + Sync {
    /// A piece of work may begin, or never may while things are as they are. Permits that nobody wants any more are
    /// dropped.
    fn admitted(self: Arc<Self>, id: u64, entry: Entry);

    /// Tells whether a piece of work still wants to be let in. It is asked before anything is taken for it, and forgotten
    /// if it does not.
    fn wants(&self, id: u64) -> bool;

    /// A piece of work has to wait.
    fn waits(self: Arc<Self>, id: u64, held: Held);
}

/// A piece of work that wants to be let in.
pub(crate) struct Ask {
    pub(crate) asker: Weak<dyn Asker>,
    /// What the asker calls it.
    pub(crate) id: u64,
    pub(crate) policy: Arc<Resolved>,
    /// What it was told last.
    pub(super) told: Option<Hold>,
}

impl Ask {
    pub(crate) fn new(asker: Weak<dyn Asker>, id: u64, policy: Arc<Resolved>) -> Self {
        Self { asker, id, policy, told: None }
    }

    /// Tells whether it still wants to be let in.
    pub(super) fn is_wanted(&self) -> bool {
        self.asker.upgrade().is_some_and(|asker| asker.wants(self.id))
    }
}

/// What becomes of a piece of work that wanted to be let in.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It may begin.
    Admitted(Permits),
    /// Its breaker is open until then, and it does not wait for it.
    Shut(Timestamp),
}

/// Why and until when a piece of work waits, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) why: Hold,
    pub(crate) on: String,
    pub(crate) until: Timestamp,
}

/// Returns the failure of a piece of work that could not begin for too long.
pub(crate) fn waited_too_long(span: Span) -> Failure {
    Failure::new(format!("waited longer than {span} before it could begin")).code("queue_timeout")
}

/// What a piece of work was given on its way in. Whatever is not given back otherwise is when this is dropped, so
/// that nothing leaks.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(super) limits: Weak<Limits>,
    pub(super) line: usize,
    pub(super) policy: Arc<Resolved>,
    pub(super) granted: Granted,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Granted {
    pub(super) breaker: Option<Permit>,
    /// Who has the slot.
    pub(super) slot: Option<i64>,
    /// Who has the place among those that may begin in a while, until it has begun.
    pub(super) rate: Option<i64>,
}

impl Granted {
    pub(super) const fn is_empty(&self) -> bool {
        self.breaker.is_none() && self.slot.is_none() && self.rate.is_none()
    }
}

impl Permits {
    /// Tells whether somebody wants to know when the work begins.
    pub(crate) const fn wants_beginning(&self) -> bool {
        self.granted.rate.is_some()
    }

    /// Takes out what is to be said when the work begins. It is said when it is dropped, and no lock may be held then.
    pub(crate) fn begun(&mut self) -> Option<Beginning> {
        let rate = self.granted.rate.take()?;
        let limits = Weak::clone(&self.limits);
        Some(Beginning { limits, line: self.line, policy: Arc::clone(&self.policy), rate })
    }
}

/// A piece of work that was let in has begun.
pub(crate) struct Beginning {
    limits: Weak<Limits>,
    line: usize,
    policy: Arc<Resolved>,
    rate: i64,
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if let Some(limits) = self.limits.upgrade() {
            let granted = Granted { rate: Some(self.rate), ..Granted::default() };
            let policy = Arc::clone(&self.policy);
            limits.report(self.line, Report { policy, granted, told: Told::Began });
        }
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        let granted = std::mem::take(&mut self.granted);
        if !granted.is_empty()
            && let Some(limits) = self.limits.upgrade()
        {
            let policy = Arc::clone(&self.policy);
            limits.report(self.line, Report { policy, granted, told: Told::Released });
        }
    }
}

/// What came of a piece of work that was let in.
pub(super) struct Report {
    pub(super) policy: Arc<Resolved>,
    pub(super) granted: Granted,
    pub(super) told: Told,
}

pub(super) enum Told {
    Succeeded,
    /// Whoever decides what follows waits for what it has to know.
    Failed(oneshot::Sender<Known>),
    /// It ended outside, long after it was let in.
    EndedOutside {
        succeeded: bool,
    },
    /// It has begun.
    Began,
    /// There is no outcome.
    Released,
    /// A token that was taken for a retry is not needed.
    TokenBack,
}

impl Told {
    /// Returns who waits for what a decision has to know.
    pub(super) fn asker(self) -> Option<oneshot::Sender<Known>> {
        match self {
            Self::Failed(asker) => Some(asker),
            Self::Succeeded | Self::EndedOutside { .. } | Self::Began | Self::Released | Self::TokenBack => {
                None
            }
        }
    }
}

/// Work with the same gates, in the order in which it is let in: urgent work first and nobody for ever, and whoever
/// asks in turns.
pub(super) struct Line {
    pub(super) gates: Arc<Gates>,
    levels: [Turns; LEVELS],
    /// How often a level was passed over since it last had its turn.
    passed: [u32; LEVELS],
    /// The same before somebody was taken last.
    passed_before: [u32; LEVELS],
    /// Where those stand who were told nothing yet: behind all who were.
    untold: Vec<(usize, u64)>,
    pub(super) reports: Vec<Report>,
    /// What stands in the way of the first one.
    pub(super) blocked: Option<Held>,
    pub(super) timer: Option<TimerKey>,
    /// How often it was looked in vain for what others gave back.
    pub(super) looks: u32,
    /// Lines that need some of the same.
    pub(super) rivals: Vec<usize>,
    /// When it last let somebody in, among its rivals.
    pub(super) served: u64,
    /// Whether those who wait were told last that their breaker is open.
    was_shut: bool,
}

/// A level that was passed over so often goes before those above it.
const PASSED_OVER: u32 = 8;

const LEVELS: usize = Priority::ALL.len();

impl Line {
    pub(super) fn new(gates: Arc<Gates>, rivals: Vec<usize>) -> Self {
        Self {
            gates,
            levels: Default::default(),
            passed: [0; LEVELS],
            passed_before: [0; LEVELS],
            untold: Vec::new(),
            reports: Vec::new(),
            blocked: None,
            timer: None,
            looks: 0,
            rivals,
            served: 0,
            was_shut: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.len == 0)
    }

    pub(super) fn push(&mut self, ask: Ask) {
        let (level, group) = (level(&ask), group(&ask));
        if ask.told.is_none() {
            self.untold.push((level, group));
        }
        self.levels[level].push(group, ask);
    }

    /// Takes whoever is next.
    pub(super) fn pop(&mut self) -> Option<Ask> {
        let next = self.next()?;
        self.passed_before = self.passed;
        for (level, passed) in self.passed.iter_mut().enumerate() {
            if level == next {
                *passed = 0;
            } else if level > next && self.levels[level].len > 0 {
                *passed += 1;
            }
        }
        self.levels[next].pop()
    }

    /// Takes somebody out who does not wait any more, with all that they asked for.
    pub(super) fn remove(&mut self, asker: u64) {
        for level in &mut self.levels {
            level.remove(asker);
        }
    }

    /// Returns whoever is next.
    pub(super) fn first(&mut self) -> Option<&mut Ask> {
        let next = self.next()?;
        let Turns { groups, order, .. } = &mut self.levels[next];
        groups.get_mut(order.front()?)?.front_mut()
    }

    /// Returns the level whose turn it is.
    fn next(&self) -> Option<usize> {
        let waiting = |level: &usize| self.levels[*level].len > 0;
        let patient = (1..LEVELS).rev().filter(waiting).find(|level| self.passed[*level] >= PASSED_OVER);
        patient.or_else(|| (0..LEVELS).find(waiting))
    }

    /// Puts back whoever was taken last, as if nobody had been.
    pub(super) fn put_back(&mut self, ask: Ask) {
        self.passed = self.passed_before;
        self.put_first(ask);
    }

    /// Puts back those who were taken and not let in after all, in the order in which they were taken.
    pub(super) fn put_all_back(
        &mut self,
        asks: impl IntoIterator<Item = Ask, IntoIter: DoubleEndedIterator>,
    ) {
        asks.into_iter().rev().for_each(|ask| self.put_first(ask));
    }

    fn put_first(&mut self, ask: Ask) {
        let (level, group) = (level(&ask), group(&ask));
        if ask.told.is_none() {
            self.untold.push((level, group));
        }
        self.levels[level].put_back(group, ask);
    }

    /// Finds those who were told of another gate, when their breaker opened or lets them pass again, with about how many
    /// are before them. Which other gate is closed changes all the time, and is not told to all of them.
    pub(super) fn tell_again(&mut self, why: Hold, mut tell: impl FnMut(usize, &Ask)) {
        let is_shut = why == Hold::CircuitBreaker;
        if std::mem::replace(&mut self.was_shut, is_shut) == is_shut {
            return;
        }
        let mut above = 0;
        for level in &mut self.levels {
            let groups = level.order.len();
            for group in &level.order {
                let asks = level.groups.get_mut(group).into_iter().flatten().enumerate();
                for (place, ask) in asks {
                    if ask.told.is_some_and(|told| (told == Hold::CircuitBreaker) != is_shut) {
                        ask.told = Some(why);
                        tell(above + place.saturating_mul(groups), ask);
                    }
                }
            }
            above += level.len;
        }
    }

    /// Finds those who were told nothing yet, with about how many are before them; they count as told.
    pub(super) fn tell_rest(&mut self, why: Hold, mut tell: impl FnMut(usize, &Ask)) {
        for (level, group) in std::mem::take(&mut self.untold) {
            let above: usize = self.levels[..level].iter().map(|level| level.len).sum();
            let Turns { groups, order, .. } = &mut self.levels[level];
            let Some(asks) = groups.get_mut(&group) else { continue };
            // Invariant: whoever was told something stands before those who were not.
            let untold = asks.iter_mut().enumerate().rev().take_while(|(_, ask)| ask.told.is_none());
            for (place, ask) in untold {
                ask.told = Some(why);
                tell(above.saturating_add(place.saturating_mul(order.len())), ask);
            }
        }
    }
}

/// Those who wait, in turns: one of each asker, and again.
#[derive(Default)]
struct Turns {
    groups: ByNumber<VecDeque<Ask>>,
    order: VecDeque<u64>,
    len: usize,
    /// The room of an asker who has nobody here any more, for the next one who has: often it is the same one.
    spare: VecDeque<Ask>,
}

impl Turns {
    fn push(&mut self, group: u64, ask: Ask) {
        let asks = self.groups.entry(group).or_insert_with(|| std::mem::take(&mut self.spare));
        if asks.is_empty() {
            self.order.push_back(group);
        }
        asks.push_back(ask);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Ask> {
        let group = self.order.pop_front()?;
        let Place::Occupied(mut asks) = self.groups.entry(group) else { return None };
        let ask = asks.get_mut().pop_front();
        self.len -= usize::from(ask.is_some());
        if asks.get().is_empty() {
            self.spare = asks.remove();
        } else {
            self.order.push_back(group);
        }
        ask
    }

    fn remove(&mut self, group: u64) {
        let Some(asks) = self.groups.remove(&group) else { return };
        self.len -= asks.len();
        // Those who give up their places are mostly the last ones.
        if let Some(place) = self.order.iter().rposition(|other| *other == group) {
            self.order.remove(place);
        }
    }

    /// Puts somebody back who was taken, whose turn it is again then.
    fn put_back(&mut self, group: u64, ask: Ask) {
        let asks = self.groups.entry(group).or_insert_with(|| std::mem::take(&mut self.spare));
        if !asks.is_empty() {
            // It went to the end when somebody was taken; few have come since.
            let place = self.order.iter().rposition(|other| *other == group);
            place.and_then(|place| self.order.remove(place));
        }
        asks.push_front(ask);
        self.order.push_front(group);
        self.len += 1;
    }
}

fn level(ask: &Ask) -> usize {
    match ask.policy.priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

fn group(ask: &Ask) -> u64 {
    number_of(&ask.asker)
}

/// Returns who asks, as a number: nobody else has the same while the asker is held, if only weakly.
pub(super) fn number_of(asker: &Weak<dyn Asker>) -> u64 {
    asker.as_ptr().addr() as u64
}

#[cfg(test)]
mod tests {
    use tidewheel_core::policy::Policy;

    use super::*;

    /// It has a size, so that each has an address of its own.
    struct One(u64);

    impl Asker for One {
        fn admitted(self: Arc<Self>, _: u64, _: Entry) {}

        fn wants(&self, id: u64) -> bool {
            self.0 != id
        }

        fn waits(self: Arc<Self>, _: u64, _: Held) {}
    }

    fn ask(asker: &Arc<dyn Asker>, id: u64, priority: Priority) -> Ask {
        let policy = Policy::new().priority(priority).resolved().expect("it is sound");
        Ask::new(Arc::downgrade(asker), id, Arc::new(policy))
    }

    fn askers() -> [Arc<dyn Asker>; 3] {
        [u64::MAX; 3].map(|unwanted| Arc::new(One(unwanted)) as Arc<dyn Asker>)
    }

    fn line() -> Line {
        Line::new(Arc::default(), Vec::new())
    }

    fn drained(line: &mut Line) -> Vec<u64> {
        std::iter::from_fn(|| line.pop()).map(|ask| ask.id).collect()
    }

    #[test]
    fn whoever_leaves_is_not_counted_any_more() {
        let mut turns = Turns::default();
        let policy = Arc::new(Policy::new().resolved().unwrap());
        let ask = || Ask::new(Weak::<One>::new(), 0, Arc::clone(&policy));
        for group in [1, 2, 1, 3] {
            turns.push(group, ask());
        }
        turns.remove(1);
        turns.remove(9);
        assert_eq!((turns.len, &turns.order), (2, &VecDeque::from([2, 3])));
        assert!(turns.pop().is_some() && turns.pop().is_some() && turns.pop().is_none());
    }

    #[test]
    fn askers_take_turns_within_each_level() {
        let (mut line, [a, b, c]) = (line(), askers());
        for (asker, ids) in [(&a, 0..3), (&b, 10..11), (&c, 20..22)] {
            ids.for_each(|id| line.push(ask(asker, id, Priority::Normal)));
        }
        line.push(ask(&c, 100, Priority::High));
        assert_eq!((line.len(), line.first().map(|ask| ask.id)), (7, Some(100)));
        assert_eq!(drained(&mut line), [100, 0, 10, 20, 1, 21, 2]);
        assert!(line.is_empty());
    }

    #[test]
    fn whoever_is_put_back_is_next_and_nobody_loses_a_turn() {
        let (mut once, mut again, [a, b, _]) = (line(), line(), askers());
        for line in [&mut once, &mut again] {
            for id in 0..20 {
                line.push(ask(&a, id, Priority::High));
                line.push(ask(&b, 100 + id, Priority::Normal));
                line.push(ask(if id % 2 == 0 { &a } else { &b }, 200 + id, Priority::Low));
            }
        }
        let expected = drained(&mut once);
        let mut order = Vec::new();
        while let Some(ask) = again.pop() {
            // Somebody looked in vain in between, as often as they like.
            let id = ask.id;
            again.put_back(ask);
            let taken = again.pop().expect("it was put back");
            assert_eq!(taken.id, id);
            order.push(taken.id);
        }
        assert_eq!(order, expected);
        let lows = expected.iter().position(|id| *id >= 200);
        assert_eq!(lows, Some(8), "what is not urgent has its turn");
    }

    #[test]
    fn what_was_taken_together_is_put_back_in_its_order() {
        let (mut line, [a, b, c]) = (line(), askers());
        for id in 0..4 {
            line.push(ask(&a, id, Priority::Normal));
            line.push(ask(&b, 10 + id, Priority::Normal));
        }
        let taken: Vec<Ask> = (0..5).filter_map(|_| line.pop()).collect();
        line.push(ask(&c, 20, Priority::Normal));
        line.put_all_back(taken);
        assert_eq!(drained(&mut line), [0, 10, 20, 1, 11, 2, 12, 3, 13]);
    }

    #[test]
    fn each_is_told_once_and_only_those_are_looked_at_who_were_told_nothing() {
        let (mut line, [a, b, _]) = (line(), askers());
        let told = |line: &mut Line| {
            let mut ids = Vec::new();
            line.tell_rest(Hold::RateLimit, |_, ask| ids.push(ask.id));
            ids.sort_unstable();
            ids
        };
        for id in 0..3 {
            line.push(ask(&a, id, Priority::Normal));
        }
        assert_eq!(told(&mut line), [0, 1, 2]);
        line.push(ask(&a, 3, Priority::Normal));
        line.push(ask(&b, 4, Priority::High));
        let first = line.pop().expect("it is there");
        line.put_back(first);
        assert_eq!(told(&mut line), [3, 4]);
        assert!(told(&mut line).is_empty());
    }
}
