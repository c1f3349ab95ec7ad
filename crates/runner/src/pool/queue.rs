//! Who is next: pieces that wait for a slot, urgent ones first and nobody for ever, and groups in turns.

use std::collections::hash_map::Entry;
use std::collections::{HashSet, VecDeque};

use tidewheel_core::policy::Priority;
use tidewheel_core::time::Timestamp;

use super::job::{Job, Place};
use super::number::ByNumber;

/// So often in a row is a level preferred to what waits below it; then what is below has one turn. With all three
/// levels always full, of 81 turns 72 are high, 8 normal and 1 low.
pub(super) const MOST_PREFERRED: u32 = 8;

const LEVELS: usize = Priority::ALL.len();

/// Pieces that wait for a slot.
#[derive(Default)]
pub(super) struct Queue {
    /// From the most urgent to the least.
    levels: [Turns; LEVELS],
    /// How often in a row each level was preferred to what waits below it.
    preferred: [u32; LEVELS],
}

impl Queue {
    pub(super) fn push(&mut self, job: Job) {
        self.levels[level(job.priority)].push(job);
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        let chosen = self.next_level()?;
        for above in 0..chosen {
            self.preferred[above] = 0;
        }
        let is_preferred = self.is_waiting_below(chosen);
        self.preferred[chosen] = if is_preferred { self.preferred[chosen] + 1 } else { 0 };
        self.levels[chosen].pop()
    }

    /// Returns how urgent the next piece is: zero is the most urgent.
    pub(super) fn next_level(&self) -> Option<usize> {
        let is_next = |level: &usize| {
            !self.levels[*level].is_empty()
                && (self.preferred[*level] < MOST_PREFERRED || !self.is_waiting_below(*level))
        };
        (0..LEVELS).find(is_next)
    }

    fn is_waiting_below(&self, level: usize) -> bool {
        self.levels[level + 1..].iter().any(|below| !below.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(Turns::is_empty)
    }

    /// Returns how many wait.
    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.len).sum()
    }

    /// Takes out what may be given up while it runs.
    pub(super) fn take_bounded(&mut self) -> Vec<Job> {
        self.levels.iter_mut().flat_map(Turns::take_bounded).collect()
    }

    /// Takes pieces of a group back.
    pub(super) fn take_back(&mut self, group: u64, places: &HashSet<Place>) -> Vec<Job> {
        self.levels.iter_mut().flat_map(|level| level.take_back(group, places)).collect()
    }

    /// Takes the piece out that had to have a slot by now, if it is still here.
    pub(super) fn take_late(&mut self, spot: Spot, place: Place, until: Timestamp) -> Option<Job> {
        self.levels[level(spot.priority)].take_late(spot.group, place, until)
    }
}

const fn level(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

/// Where a piece waits.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) needs_task: bool,
    priority: Priority,
    group: u64,
}

impl Spot {
    pub(super) fn of(job: &Job) -> Self {
        Self { needs_task: job.needs_task(), priority: job.priority, group: job.group }
    }
}

/// Pieces in turns: one of each group, and again.
#[derive(Default)]
struct Turns {
    groups: ByNumber<VecDeque<Job>>,
    order: VecDeque<u64>,
    len: usize,
    /// The room of a group that has nothing any more, for the next one that has: often it is the same one.
    spare: VecDeque<Job>,
}

impl Turns {
    fn push(&mut self, job: Job) {
        let group = job.group;
        let jobs = self.groups.entry(group).or_insert_with(|| std::mem::take(&mut self.spare));
        if jobs.is_empty() {
            self.order.push_back(group);
        }
        jobs.push_back(job);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Job> {
        let group = self.order.pop_front()?;
        let Entry::Occupied(mut jobs) = self.groups.entry(group) else { return None };
        let job = jobs.get_mut().pop_front();
        self.len -= usize::from(job.is_some());
        if jobs.get().is_empty() {
            self.spare = jobs.remove();
        } else {
            self.order.push_back(group);
        }
        job
    }

    const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn take_bounded(&mut self) -> Vec<Job> {
        let mut bounded = Vec::new();
        let mut free = Vec::new();
        while let Some(job) = self.pop() {
            if job.is_bounded() { bounded.push(job) } else { free.push(job) }
        }
        free.into_iter().for_each(|job| self.push(job));
        bounded
    }

    fn take_back(&mut self, group: u64, places: &HashSet<Place>) -> VecDeque<Job> {
        let Some(jobs) = self.groups.remove(&group) else { return VecDeque::new() };
        let (taken, left): (VecDeque<Job>, VecDeque<Job>) =
            jobs.into_iter().partition(|job| places.contains(&job.place));
        self.len -= taken.len();
        if left.is_empty() {
            self.order.retain(|other| *other != group);
        } else {
            self.groups.insert(group, left);
        }
        taken
    }

    fn take_late(&mut self, group: u64, place: Place, until: Timestamp) -> Option<Job> {
        let jobs = self.groups.get_mut(&group)?;
        // Those that wait longest stand in front, so it is found soon. The place may be that of a later attempt.
        let is_it = |job: &Job| job.place == place && job.queue_until() == Some(until);
        let job = jobs.iter().position(is_it).and_then(|index| jobs.remove(index))?;
        self.len -= 1;
        if jobs.is_empty() {
            self.groups.remove(&group);
            self.order.retain(|other| *other != group);
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidewheel_core::policy::Priority::{High, Low, Normal};
    use tidewheel_core::workflow::{Workflow, map};
    use tidewheel_core::{Outcome, Runnable};
    use tidewheel_store::{Clock, RealClock};

    use super::super::job::Sink;
    use super::*;

    struct Nobody;

    impl Sink for Nobody {
        fn ended(self: Arc<Self>, _: Place, _: Outcome) {}
    }

    fn runnable() -> Runnable {
        let workflow = Workflow::new("w").add(map("each", |x: usize| x)).build().expect("it is whole");
        let mut run = workflow.run("r");
        run.plan(vec![1_usize]);
        run.prepare().remove(0)
    }

    fn job(runnable: &Runnable, group: u64, place: Place, priority: Priority) -> Job {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        Job { priority, ..Job::new(Arc::new(Nobody), group, place, runnable.clone(), &clock) }
    }

    fn drained(queue: &mut Queue) -> Vec<Job> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn groups_take_turns_within_each_level() {
        let (mut queue, runnable) = (Queue::default(), runnable());
        for priority in [Low, Normal, High] {
            for (group, count) in [(1, 3), (2, 1), (3, 2)] {
                (0..count).for_each(|place| queue.push(job(&runnable, group, place, priority)));
            }
        }
        assert_eq!(queue.len(), 18);
        let order: Vec<(Priority, u64)> =
            drained(&mut queue).iter().map(|job| (job.priority, job.group)).collect();
        let turns = [1, 2, 3, 1, 3, 1];
        let expected: Vec<(Priority, u64)> =
            [High, Normal, Low].into_iter().flat_map(|level| turns.map(|group| (level, group))).collect();
        assert_eq!(order, expected);
        assert!(queue.is_empty());
    }

    #[test]
    fn no_level_waits_for_ever_under_an_endless_stream_of_more_urgent_pieces() {
        let (mut queue, runnable) = (Queue::default(), runnable());
        for place in 0..4 {
            queue.push(job(&runnable, 0, place, Low));
            queue.push(job(&runnable, 0, place, Normal));
        }
        let mut taken = Vec::new();
        for _ in 0..9 * 9 * 5 {
            while queue.levels[0].len < 2 {
                queue.push(job(&runnable, 1, 0, High));
            }
            taken.push(queue.pop().expect("there are many").priority);
        }
        let at = |wanted: Priority| -> Vec<usize> {
            (0..taken.len()).filter(|index| taken[*index] == wanted).collect()
        };
        assert_eq!(at(Normal), [8, 17, 26, 35], "each ninth turn");
        assert_eq!(at(Low), [44, 53, 62, 71], "with nothing normal left, each ninth turn is theirs");
    }

    #[test]
    fn the_lowest_level_has_its_turn_while_both_others_are_always_full() {
        let (mut queue, runnable) = (Queue::default(), runnable());
        let mut counts = [0; LEVELS];
        for _ in 0..10 * 81 {
            for priority in [High, Normal, Low] {
                if queue.levels[level(priority)].is_empty() {
                    queue.push(job(&runnable, 0, 0, priority));
                }
            }
            counts[level(queue.pop().expect("there are three").priority)] += 1;
        }
        assert_eq!(counts, [720, 80, 10]);
    }

    #[test]
    fn what_is_taken_out_leaves_the_turns_of_others_alone() {
        let (mut queue, runnable) = (Queue::default(), runnable());
        let until = Timestamp::from_millis(7);
        for (group, place) in [(1, 10), (1, 11), (2, 20)] {
            let mut job = job(&runnable, group, place, Normal);
            job.terms().queue_until = Some(until);
            queue.push(job);
        }
        let spot = |group| Spot { needs_task: false, priority: Normal, group };
        assert!(queue.take_late(spot(1), 10, Timestamp::from_millis(6)).is_none(), "another attempt's time");
        assert_eq!(queue.take_late(spot(2), 20, until).map(|job| job.place), Some(20));
        assert_eq!(queue.take_late(spot(1), 10, until).map(|job| job.place), Some(10));
        assert!(queue.take_late(spot(1), 10, until).is_none(), "it is out");
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.take_back(1, &HashSet::from([11])).len(), 1);
        assert!(queue.is_empty());
        queue.push(job(&runnable, 2, 21, Normal));
        assert_eq!(drained(&mut queue).len(), 1);
    }
}
