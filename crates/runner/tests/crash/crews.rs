//! Several processes on one file that are killed, or stopped and continued, at random moments while the others go on:
//! in the end every run is as if nothing had happened, and no process that slept wrote over another's work.
#![expect(clippy::print_stderr, reason = "a storm says its seed and how much it did")]

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use tidewheel_testkit::{Dice, figure};

use crate::kills::look_at_all;
use crate::other::{Folder, Other, Part, RUNS};
use crate::proof::Lives;

/// So many kills and stops if no number is given.
const FEW: usize = 30;
/// After so many in one generation, its processes come to their end.
const MOST_PER_GENERATION: usize = 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn dice() -> Dice {
    let seed = number("TIDEWHEEL_CRASH_SEED")
        .unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()));
    eprintln!("seed: TIDEWHEEL_CRASH_SEED={seed}");
    Dice::new(seed)
}

fn wanted() -> usize {
    number("TIDEWHEEL_CRASH_KILLS").map_or(FEW, |count| usize::try_from(count).unwrap())
}

/// Starts processes for one generation after the other until enough was done to them, and looks at all runs then.
fn storm(processes: usize, has_short_lease: bool, mut hurt: impl FnMut(&mut Other, &mut Dice) -> Hurt) {
    let (wanted, mut dice) = (wanted(), dice());
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let (mut lives, mut hurts, mut generation) = (Lives::default(), 0, 0);
    while hurts < wanted {
        let part = Part::Share { generation, has_short_lease };
        let mut crew: Vec<Other> =
            (0..processes).map(|_| Other::start(part, &folder, lives.begin())).collect();
        let mut left = MOST_PER_GENERATION.min(wanted - hurts);
        while left > 0 && !crew.is_empty() {
            sleep(Duration::from_micros(dice.roll() % 120_000));
            let at = dice.below(crew.len());
            if crew[at].is_over() {
                crew.swap_remove(at);
                continue;
            }
            match hurt(&mut crew[at], &mut dice) {
                Hurt::Dead => crew[at] = Other::start(part, &folder, lives.begin()),
                Hurt::Alive => {}
                Hurt::TooLate => {
                    crew.swap_remove(at);
                    continue;
                }
            }
            left -= 1;
            hurts += 1;
        }
        for mut other in crew {
            assert!(other.ended_well(), "generation {generation} comes to its end");
        }
        // Where all had come to their end before, the generation is over, too.
        generation += 1;
    }
    let (seen, _) = look_at_all(&folder, generation, &lives);
    eprintln!(
        "{hurts} of {processes} processes, {generation} generations of {RUNS} runs, {} attempts lost, {} executions",
        seen.lost, seen.executions
    );
}

/// What became of a process.
enum Hurt {
    Dead,
    Alive,
    /// It had come to its good end between the look and the signal.
    TooLate,
}

fn kill(other: &mut Other, _: &mut Dice) -> Hurt {
    other.signal(Signal::KILL);
    if other.has_died() { Hurt::Dead } else { Hurt::TooLate }
}

#[test]
fn two_processes_that_are_killed_again_and_again_lose_nothing() {
    storm(2, false, kill);
    figure::counted("kills of library workers, 2 processes", wanted());
}

#[test]
fn four_processes_that_are_killed_again_and_again_lose_nothing() {
    storm(4, false, kill);
    figure::counted("kills of library workers, 4 processes", wanted());
}

#[test]
fn processes_that_are_stopped_and_go_on_write_nothing_stale() {
    storm(2, true, |other, dice| {
        other.signal(Signal::STOP);
        // Some are stopped for longer than their lease, so that another takes over what they have.
        sleep(Duration::from_micros(dice.roll() % 900_000));
        other.signal(Signal::CONT);
        Hurt::Alive
    });
    figure::counted("stops of library workers", wanted());
}
