//! The same program, killed again and again at random moments and started again: in the end everything is done, and
//! nothing twice.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidewheel_testkit::{Dice, figure};

use crate::other::{Folder, Other, Part, RUNS, STANDS_STILL, run_id, store_in};
use crate::proof::{Lives, Seen, check, undisturbed};
use crate::work::{Effect, effects};

/// So many kills if nobody says otherwise.
const KILLS: usize = 300;

#[test]
fn nothing_is_lost_however_often_the_process_is_killed() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("TIDEWHEEL_CRASH_KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    let seed = number("TIDEWHEEL_CRASH_SEED")
        .unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()));
    eprintln!("seed: TIDEWHEEL_CRASH_SEED={seed}, {kills} kills");
    let mut dice = Dice::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let mut lives = Lives::default();
    let (began, mut chosen) = (Instant::now(), 0);

    for _ in 0..kills {
        let process = lives.begin();
        // Some die while they open the database, some at any moment while they work, and three of eight in the middle of an
        // execution that is chosen here, whatever else the machine does.
        let (kind, after) = (dice.roll() % 8, dice.roll() % 60);
        let after = (kind >= 5).then_some(after);
        let mut other = Other::start_standing_still(Part::Run, &folder, process, after);
        let longest = if kind == 0 {
            40_000
        } else {
            assert_eq!(other.says().as_deref(), Some("open"));
            150_000
        };
        if after.is_some() {
            chosen += 1;
            // Each generation opens the database anew, and says so, too.
            while other.says().expect("it lives until it is killed") != STANDS_STILL {}
        } else {
            sleep(Duration::from_micros(dice.roll() % longest));
        }
        other.kill();
    }
    let killed_in = began.elapsed();
    let process = lives.begin();
    let mut last = Other::start(Part::Finish, &folder, process);
    assert!(last.ended_well(), "the last one comes to its end");

    let generations = folder.generation();
    let (seen, looked_in) = look_at_all(&folder, generations, &lives);
    eprintln!(
        "{kills} kills in {killed_in:.1?}, {} of them while work was under way ({} attempts lost), {generations} \
         generations of {RUNS} runs, {} events, {} executions, {} retries due in a later process; checked in \
         {looked_in:.1?}",
        seen.interrupted.len(),
        seen.lost,
        seen.events,
        seen.executions,
        seen.retries_kept,
    );
    figure::counted("kills of library workers, 1 process", kills);
    assert!(seen.interrupted.len() >= chosen, "{chosen} kills were in the middle of an execution");
    assert!(seen.interrupted.len() * 4 >= kills, "the kills land in the middle of work");
}

/// Looks at every run of every generation.
pub(crate) fn look_at_all(folder: &Folder, generations: usize, lives: &Lives) -> (Seen, Duration) {
    let began = Instant::now();
    let mut by_run: HashMap<String, Vec<Effect>> = HashMap::new();
    for effect in effects(&folder.effects()) {
        by_run.entry(effect.run.clone()).or_default().push(effect);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut seen = Seen::default();
    runtime.block_on(async {
        let expected = undisturbed(RUNS).await;
        let store = store_in(&folder.0);
        for generation in 0..generations {
            for (number, expected) in expected.iter().enumerate() {
                let id = run_id(generation, number);
                let effects = by_run.remove(&id).unwrap_or_default();
                check(&store, &id, number, expected, &effects, lives, &mut seen).await;
            }
        }
    });
    assert!(by_run.is_empty(), "nothing is done that no run asked for");
    (seen, began.elapsed())
}
