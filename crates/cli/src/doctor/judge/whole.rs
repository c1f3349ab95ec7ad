//! All judgements together, in the order in which they are told.

use tidewheel_store::jobs::Trouble;

use super::{directory, jobs, records, store, surroundings, worktrees};
use crate::doctor::facts::{Facts, Kind};
use crate::doctor::finding::{Check, Finding};

/// Says what the facts mean. Each check that has nothing to complain about says so.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut found = directory::place(facts);
    if facts.data == Kind::Directory {
        found.extend(directory::rights(facts));
        found.extend(directory::space(facts));
        match &facts.jobs {
            Ok(checkup) => {
                found.extend(directory::clock(facts, checkup));
                found.extend(jobs::lock(facts, checkup));
                found.extend(records::records(facts, checkup));
                found.extend(records::runs(facts, checkup));
                found.extend(jobs::index(checkup));
                found.extend(jobs::supervisors(checkup));
                found.extend(jobs::leftovers(checkup));
                found.extend(worktrees::worktrees(facts));
                found.extend(worktrees::sentinels(facts, checkup));
            }
            // That something else is in the place of their directory was said.
            Err(_) if facts.jobs_folder == Kind::Other || facts.runs_folder == Kind::Other => {}
            Err(Trouble { why, is_denied }) => found.push(
                Finding::broken(Check::Records, ".tidewheel/jobs", format!("the jobs cannot be read: {why}"))
                    .todo(if *is_denied {
                        "Give yourself the right to read all of it, and look again."
                    } else {
                        "Look at what is there, move away what is not ours, and look again."
                    }),
            ),
        }
    }
    found.extend(surroundings::git(&facts.git));
    // Of what nobody lets us look at, nothing can be said; the rights say so.
    if facts.data == Kind::Directory && !facts.is_closed {
        found.extend(surroundings::config(facts));
        found.extend(surroundings::templates(facts));
        found.extend(surroundings::agents(facts));
    }
    found.extend(facts.store.iter().flat_map(store::store));
    found
}

/// Names some things, and says how many more there are.
pub(crate) fn some<T: ToString>(names: &[T]) -> String {
    const MOST: usize = 3;
    let shown: Vec<String> = names.iter().take(MOST).map(ToString::to_string).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Says how many there are of something whose plural has an s.
pub(super) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}
