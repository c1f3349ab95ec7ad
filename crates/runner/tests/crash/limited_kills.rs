//! Work under limits, killed again and again at random moments and started again: the limits hold over all processes
//! together, nothing that was lent is lost, and what is undone is undone in order.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidewheel_core::event::{Event, Hold};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{Status, Store};
use tidewheel_testkit::{Dice, figure};

use crate::limited::{DELAY, Line, RATE, RUNS, SLOTS, WORKFLOW, given, is_undone, lines};
use crate::other::{Folder, Other, Part, run_id, store_in};
use crate::proof::{Lives, Log};

/// So many kills if nobody says otherwise.
const KILLS: usize = 60;

/// Between the write that lets work in and what the work writes lie a commit and a thread that has its turn.
const SLACK: Span = Span::from_millis(400);

#[test]
fn limits_hold_and_nothing_is_lost_however_often_the_process_is_killed() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("TIDEWHEEL_CRASH_KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    let seed = number("TIDEWHEEL_CRASH_SEED")
        .unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()));
    eprintln!("seed: TIDEWHEEL_CRASH_SEED={seed}, {kills} kills");
    let mut dice = Dice::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let mut lives = Lives::default();
    let began = Instant::now();
    for _ in 0..kills {
        let mut other = Other::start(Part::Limited, &folder, lives.begin());
        assert_eq!(other.says().as_deref(), Some("open"));
        sleep(Duration::from_micros(dice.roll() % 300_000));
        other.kill();
    }
    let killed_in = began.elapsed();
    let mut last = Other::start(Part::LimitedFinish, &folder, lives.begin());
    assert!(last.ended_well(), "the last one comes to its end");
    lives.begin();

    let lines = lines(&folder);
    let generations = folder.generation();
    let repeated = check_repeats(&lines);
    check_rate(&lines);
    let most = check_slots(&lines, &lives);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = store_in(&folder.0);
    for generation in 0..generations {
        for number in 0..RUNS {
            let id = run_id(generation, number);
            let own: Vec<&Line> = lines.iter().filter(|line| line.run == id).collect();
            runtime.block_on(check_run(&store, &id, number, &own));
        }
    }
    eprintln!(
        "{kills} kills in {killed_in:.1?}, {generations} generations of {RUNS} runs, {} beginnings, {repeated} of \
         them again after a kill; at most {most} at once",
        lines.iter().filter(|line| !line.is_end).count(),
    );
    figure::counted("kills of library workers under limits", kills);
    assert!(repeated > 0 && most > 1, "the kills land in the middle of work");
}

/// Checks that an attempt begins again only in a later process. Returns how often one did.
fn check_repeats(lines: &[Line]) -> usize {
    let mut begun: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    // What waits for a breaker begins the same attempt again.
    for line in lines.iter().filter(|line| !line.is_end && line.node != "flaky") {
        begun.entry((&line.run, &line.node, line.work, line.attempt)).or_default().push(line.process);
    }
    for (work, processes) in &begun {
        assert!(processes.is_sorted_by(|one, next| one < next), "{work:?} was begun by {processes:?}");
    }
    begun.values().map(|processes| processes.len() - 1).sum()
}

/// Checks that not more began in any while than may.
fn check_rate(lines: &[Line]) {
    let mut begun: Vec<Timestamp> =
        lines.iter().filter(|line| line.node == "rated").map(|line| line.at).collect();
    begun.sort_unstable();
    let (count, window) = (u64::from(RATE.0), RATE.1.as_millis() * 1_000_000);
    for (first, from) in begun.iter().enumerate() {
        for (last, to) in begun.iter().enumerate().skip(first) {
            let took = to.as_nanos() - from.as_nanos() + SLACK.as_millis() * 1_000_000;
            let most = count * (took / window + 1);
            let found = (last - first + 1) as u64;
            assert!(found <= most, "{found} began within {} ms", took / 1_000_000);
        }
    }
}

/// Checks that not more were under way at any moment than may. Returns the most.
fn check_slots(lines: &[Line], lives: &Lives) -> i32 {
    let mut changes = Vec::new();
    let slotted: Vec<&Line> = lines.iter().filter(|line| line.node == "slotted").collect();
    for begin in slotted.iter().filter(|line| !line.is_end) {
        let is_its = |line: &&&Line| {
            line.is_end
                && (line.process, line.work, line.attempt) == (begin.process, begin.work, begin.attempt)
        };
        // What has no end ended with its process, before the next one began.
        let end = slotted.iter().find(is_its).map_or_else(|| lives.began(begin.process + 1), |end| end.at);
        changes.push((begin.at, 1));
        changes.push((end, -1));
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    assert!(most <= i32::try_from(SLOTS).unwrap(), "{most} were under way at once");
    most
}

async fn check_run(store: &dyn Store, id: &str, number: usize, own: &[&Line]) {
    let run = RunId::new(id);
    let record = store.find(&run).await.unwrap().unwrap();
    let expected = if is_undone(number) { Status::Failed } else { Status::Completed };
    assert_eq!((record.status, record.reason.as_deref()), (expected, None), "{id}");
    let log = Log::read(store, &run, &WORKFLOW).await;
    let state = log.replayed(&run, &WORKFLOW, |_| true);
    assert!(!state.is_runnable(), "{id}");
    let input = i64::try_from(number).unwrap();
    let results = [("late", input), ("rated", input + 1), ("slotted", input + 2), ("flaky", input + 3)];
    for (node, value) in results.into_iter().chain([("ask", given(number))]) {
        assert_eq!(state.results::<i64>(node).unwrap(), [value], "{id}: {node}");
    }
    let shipped = if is_undone(number) { vec![] } else { vec![given(number) + 1] };
    assert_eq!(state.results::<i64>("ship").unwrap(), shipped, "{id}");
    assert_eq!(state.failures().len(), usize::from(is_undone(number)), "{id}");

    let delayed = log.events.iter().find_map(|(_, event)| match event {
        Event::RunnableHeld { why: Hold::Delay, until, at, .. } => at.zip(*until),
        _ => None,
    });
    let (from, until) = delayed.unwrap_or_else(|| panic!("{id} was not delayed"));
    assert_eq!(until, from.saturating_add(DELAY), "{id}");
    let late = own.iter().find(|line| line.node == "late").unwrap();
    assert!(late.at >= until, "{id} began before its time");
    let is_undo = |line: &&&Line| ["refund", "unbook"].contains(&line.node.as_str());
    let mut undone: Vec<&str> = own.iter().filter(is_undo).map(|line| line.node.as_str()).collect();
    // The one under way when a process ended is done again.
    undone.dedup();
    let expected = if is_undone(number) { vec!["refund", "unbook"] } else { vec![] };
    assert_eq!(undone, expected, "{id}");
}
