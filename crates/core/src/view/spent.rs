//! Where the time of a run went: by the clock on the wall, and summed over its pieces of work.

use serde::Serialize;

use super::story::{Doing, Story, Stretch};
use crate::time::Timestamp;

/// Where the time of a run went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Each way to spend time that occurred.
    pub rows: Vec<SpentRow>,
    /// By the clock on the wall, the time in which no piece of work was there at all, in nanoseconds.
    pub idle_ns: u64,
    /// All of it, in nanoseconds.
    pub total_ns: u64,
}

/// One way to spend time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpentRow {
    /// Which.
    pub doing: Doing,
    /// By the clock on the wall, in nanoseconds: where several things went on at once, the one that gets on best
    /// counts, so that these add up to the whole.
    pub wall_ns: u64,
    /// Summed over all pieces, in nanoseconds: what goes on at once counts as often.
    pub sum_ns: u64,
}

impl Spent {
    /// Looks at a run between two instants. What is not over goes on until the second.
    #[must_use]
    pub fn of(story: &Story, from: Timestamp, to: Timestamp) -> Self {
        Self::over(story.works.iter().flat_map(|work| &work.stretches), from, to)
    }

    /// Looks at stretches of time between two instants. What is not over goes on until the second.
    #[must_use]
    pub fn over<'a>(
        stretches: impl IntoIterator<Item = &'a Stretch>,
        from: Timestamp,
        to: Timestamp,
    ) -> Self {
        let (from, to) = (from.as_nanos(), to.as_nanos().max(from.as_nanos()));
        let mut changes: Vec<(u64, usize, bool)> = Vec::new();
        let mut sums = [0_u64; Doing::ALL.len()];
        for stretch in stretches {
            let begin = stretch.from.as_nanos().clamp(from, to);
            let end = stretch.to.map_or(to, Timestamp::as_nanos).clamp(begin, to);
            if begin == end {
                continue;
            }
            let place = stretch.doing.place();
            sums[place] = sums[place].saturating_add(end - begin);
            changes.extend([(begin, place, true), (end, place, false)]);
        }
        changes.sort_unstable();
        let mut walls = [0_u64; Doing::ALL.len()];
        let mut open = [0_u64; Doing::ALL.len()];
        let (mut idle_ns, mut at) = (0, from);
        for (next, place, begins) in changes.into_iter().chain([(to, 0, true)]) {
            match open.iter().position(|count| *count > 0) {
                Some(best) => walls[best] += next - at,
                None => idle_ns += next - at,
            }
            at = next;
            open[place] = if begins { open[place] + 1 } else { open[place].saturating_sub(1) };
        }
        let rows = Doing::ALL.into_iter().zip(walls.into_iter().zip(sums));
        let rows = rows.filter(|(_, (_, sum))| *sum > 0);
        Self {
            rows: rows.map(|(doing, (wall_ns, sum_ns))| SpentRow { doing, wall_ns, sum_ns }).collect(),
            idle_ns,
            total_ns: to - from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::story::WorkLine;

    fn work(stretches: &[(Doing, u64, Option<u64>)]) -> WorkLine {
        let stretch = |(doing, from, to): &(Doing, u64, Option<u64>)| Stretch {
            doing: *doing,
            hold: None,
            from: Timestamp::from_nanos(*from),
            to: to.map(Timestamp::from_nanos),
        };
        let mut work = WorkLine::woken("n".to_owned(), 0, Vec::new(), None);
        work.stretches.extend(stretches.iter().map(stretch));
        work
    }

    #[test]
    fn the_wall_clock_adds_up_and_counts_what_gets_on_best() {
        let works = [
            work(&[
                (Doing::Queue, 10, Some(20)),
                (Doing::Attempt, 20, Some(50)),
                (Doing::Backoff, 50, Some(90)),
            ]),
            work(&[(Doing::Queue, 30, Some(30)), (Doing::Attempt, 40, Some(60))]),
            work(&[(Doing::Queue, 95, None)]),
        ];
        let mut story = Story::default();
        story.works.extend(works);
        let spent = Spent::of(&story, Timestamp::from_nanos(0), Timestamp::from_nanos(100));
        let row = |doing, wall_ns, sum_ns| SpentRow { doing, wall_ns, sum_ns };
        let rows = vec![row(Doing::Attempt, 40, 50), row(Doing::Queue, 15, 15), row(Doing::Backoff, 30, 40)];
        assert_eq!(spent, Spent { rows, idle_ns: 15, total_ns: 100 });
        let wall: u64 = spent.rows.iter().map(|row| row.wall_ns).sum();
        assert_eq!(wall + spent.idle_ns, spent.total_ns);
    }

    #[test]
    fn a_run_of_no_time_spent_none() {
        let mut story = Story::default();
        story.works.push(work(&[(Doing::Attempt, 5, None)]));
        let at = Timestamp::from_nanos(5);
        assert_eq!(Spent::of(&story, at, at), Spent::default());
    }
}
