//! Does what can be done without a person: what loses nothing, and in an order in which one does not undo the other.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use tidewheel_runner::job::{Removes, remove_leftover_worktree};
use tidewheel_store::jobs::{Files, JobStore as _};

use super::facts::Facts;
use super::facts::TreeState;
use super::finding::{Check, Finding, Repair};
use super::judge::some;
use crate::error::cause;
use crate::jobs::{Opened, Place, Settings, refused, unfit};

/// What became of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repaired {
    pub(crate) check: Check,
    /// Whether it was done.
    pub(crate) is_done: bool,
    /// What was done, or why it was not.
    pub(crate) message: String,
}

/// Does what the findings ask for, each once.
pub(crate) fn repair(findings: &[Finding], facts: &Facts) -> Vec<Repaired> {
    let mut wanted: BTreeSet<Repair> = findings.iter().filter_map(|finding| finding.repair.clone()).collect();
    // One half of the index means nothing without the other.
    if wanted.iter().any(|repair| matches!(repair, Repair::Folder(_)) && repair.check() == Check::Index) {
        wanted.insert(Repair::Index);
    }
    // The lock itself may be what these are in the way of.
    let (folders, others): (Vec<Repair>, Vec<Repair>) =
        wanted.into_iter().partition(|repair| matches!(repair, Repair::Folder(_)));
    let mut repaired: Vec<Repaired> =
        folders.iter().map(|repair| became(repair, do_one(repair, facts))).collect();
    let needs_turn = others.iter().any(|repair| !matches!(repair, Repair::Worktree(_)));
    let refusal = if needs_turn { wait_for_turn(&facts.place).err() } else { None };
    let done = |repair: &Repair| match (&refusal, repair) {
        (Some(why), Repair::Sweep | Repair::Index | Repair::Unfinished | Repair::Tick) => Err(why.clone()),
        _ => do_one(repair, facts),
    };
    repaired.extend(others.iter().map(|repair| became(repair, done(repair))));
    repaired
}

fn became(repair: &Repair, done: Result<String, String>) -> Repaired {
    let (is_done, message) = match done {
        Ok(message) => (true, message),
        Err(why) => (false, why),
    };
    Repaired { check: repair.check(), is_done, message }
}

/// Waits until nobody else schedules, but not for ever: whoever has the turn may be stopped.
fn wait_for_turn(place: &Place) -> Result<(), String> {
    const TRIES: usize = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    let files = Files::open_existing(&place.data).map_err(|error| unfit(&error).message)?;
    for _ in 0..TRIES {
        match files.try_turn() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => thread::sleep(PAUSE),
            Err(error) => return Err(unfit(&error).message),
        }
    }
    Err("another process has had the turn to schedule for too long (`.tidewheel/jobs/scheduler.lock`)"
        .to_owned())
}

fn do_one(repair: &Repair, facts: &Facts) -> Result<String, String> {
    let place = &facts.place;
    let files = || Files::open_existing(&place.data).map_err(|error| unfit(&error).message);
    match repair {
        Repair::Folder(path) => {
            // Only an empty one goes.
            let removed = fs::remove_dir(place.data.join(path));
            removed.map_err(|error| format!(".tidewheel/{path}: {}", cause(&error)))?;
            Ok(format!("removed the empty directory .tidewheel/{path}"))
        }
        Repair::Sweep => {
            let removed = files()?.sweep_leftovers().map_err(|error| unfit(&error).message)?;
            let names: Vec<String> = removed.iter().map(|path| format!(".tidewheel/{path}")).collect();
            Ok(format!("removed what was left over: {}", none_or(&names)))
        }
        Repair::Index => {
            files()?.rebuild_index().map_err(|error| unfit(&error).message)?;
            Ok("built the index anew from the records".to_owned())
        }
        Repair::Unfinished => {
            // Nothing else is as old as that.
            let opened = opened(place)?;
            let scheduler = opened.scheduler().map_err(|error| error.message)?;
            let gone = scheduler.gc(u32::MAX, Removes::Old).map_err(|error| refused(&error).message)?;
            whole(&gone.errors)?;
            Ok(format!("removed what was enqueued and never finished: {}", none_or(&gone.jobs)))
        }
        Repair::Tick => {
            let ticked = opened(place)?.tick().map_err(|error| error.message)?;
            whole(&ticked.errors)?;
            let (started, updated) = (none_or(&ticked.started), none_or(&ticked.updated));
            Ok(format!("made one pass of the scheduler; settled {updated}; started {started}"))
        }
        Repair::Worktree(name) => {
            let is_empty = |tree: &&super::facts::Tree| tree.name == *name && tree.state == TreeState::Empty;
            let removed = if facts.trees.iter().any(|tree| is_empty(&tree)) {
                let path = place.data.join("tmp-worktrees").join(name);
                fs::remove_dir(path).map_err(|error| error.to_string())
            } else {
                remove_leftover_worktree(name, &place.root, &place.data).map_err(|error| error.to_string())
            };
            removed.map(|()| format!("removed .tidewheel/tmp-worktrees/{name}"))
        }
    }
}

/// Opens the jobs to schedule them, which needs a configuration that is in order.
fn opened(place: &Place) -> Result<Opened, String> {
    let settings = Settings::look(place).map_err(|error| error.message)?;
    let settings = settings.map_err(|_| "needs `.tidewheel/config.toml` to be in order first".to_owned())?;
    Opened::at(place.clone(), settings).map_err(|error| error.message)
}

fn whole(errors: &[String]) -> Result<(), String> {
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

fn none_or<T: ToString>(names: &[T]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { some(names) }
}
