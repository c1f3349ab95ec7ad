//! What is around the records: the locks, the index, supervisors that are gone, and what writers that died have left.

use tidewheel_core::time::Span;
use tidewheel_store::jobs::{Checkup, Holder, IndexState, Obstacle};

use super::directory::jobs_named;
use super::whole::some;
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Check, Finding, Repair};

const TURN_LOCK: &str = ".tidewheel/jobs/scheduler.lock";
const SERVER_LOCK: &str = ".tidewheel/jobs/daemon.lock";

/// Whoever serves is not late by more than this, unless it is gone.
const LATE: Span = Span::from_secs(60);

/// Says who schedules, and whether somebody waits for the times of jobs.
pub(super) fn lock(facts: &Facts, checkup: &Checkup) -> Vec<Finding> {
    let mut found = Vec::new();
    let named = |holder: &Holder| format!("process {} ({})", holder.pid, holder.name);
    let stopped = |file, holder: &Holder, what: &str| {
        let message = format!("is held by {}, which is stopped: {what} until it goes on", named(holder));
        let todo = format!(
            "`kill -CONT {0}` lets it go on, and `kill {0}` ends it; the lock is free then.",
            holder.pid
        );
        Finding::broken(Check::Lock, file, message).todo(todo)
    };
    found.extend(in_the_way(checkup, Check::Lock));
    if let Some(holder) = checkup.turn.as_ref().filter(|holder| holder.is_stopped) {
        found.push(stopped(TURN_LOCK, holder, "nothing is scheduled"));
    }
    if let Some(holder) = checkup.server.as_ref().filter(|holder| holder.is_stopped) {
        found.push(stopped(SERVER_LOCK, holder, "no process wakes up for retries and delays"));
    }
    let is_late = facts.due.at.is_some_and(|at| facts.now.has_reached(at, LATE));
    if checkup.server.is_none() && (is_late || facts.due.watches) {
        let what = match facts.due.at.filter(|_| is_late) {
            Some(at) => format!("something was due at {at}"),
            None => "jobs wait for something outside, such as a branch".to_owned(),
        };
        found.push(
            Finding::warning(
                Check::Lock,
                ".tidewheel/jobs/index.due",
                format!("{what}, and no process is there to look"),
            )
            .todo("`tidewheel tick` looks, and starts a process that looks again; `tidewheel daemon` stays.")
            .repair(Repair::Tick),
        );
    }
    if found.is_empty() {
        let turn = checkup.turn.as_ref().map_or_else(
            || "no process is scheduling just now".to_owned(),
            |holder| format!("{} has its turn to schedule", named(holder)),
        );
        let server = checkup.server.as_ref().map_or_else(
            || "no daemon runs, and none is needed".to_owned(),
            |holder| format!("{} wakes up for retries and delays", named(holder)),
        );
        found.push(Finding::fine(Check::Lock, format!("{turn}; {server}")));
    }
    found
}

/// Says what stands in the place of files that a check looks at.
fn in_the_way(checkup: &Checkup, check: Check) -> Vec<Finding> {
    let judge = |(path, Obstacle { what, is_empty }): (&String, &Obstacle)| {
        let repair = Repair::Folder(path.clone());
        if repair.check() != check {
            return None;
        }
        let (should, without) = match path.as_str() {
            "jobs/scheduler.lock" => ("a file that can be locked", "nothing can be scheduled"),
            "jobs/daemon.lock" => ("a file that can be locked", "no process can wait for retries and delays"),
            "jobs/index.due" => ("a file of the index", "no process can wait for retries and delays"),
            _ if check == Check::Index => {
                ("a file of the index", "every command that schedules reads all records")
            }
            _ => ("a file that can be locked", "the next start or end of the job clears it away"),
        };
        let message = format!("is {what}, and not {should}: {without}");
        let finding = Finding::broken(check, format!(".tidewheel/{path}"), message);
        Some(if *is_empty {
            finding
                .todo("Remove it, since it is empty, as --fix does: the file is made when it is needed.")
                .repair(repair)
        } else {
            finding
                .todo("Move it away: the file is made when it is needed, and nothing that counts is in it.")
        })
    };
    checkup.in_the_way.iter().filter_map(judge).collect()
}

/// Says whether the index shows the jobs as they are.
pub(super) fn index(checkup: &Checkup) -> Vec<Finding> {
    const FILE: &str = ".tidewheel/jobs/index.live";
    let in_the_way = in_the_way(checkup, Check::Index);
    if !in_the_way.is_empty() {
        // What else is wrong with it shows when these are gone.
        return in_the_way;
    }
    let heals = "It is only a cache: the next command that schedules builds it anew from the records, \
        and so does --fix.";
    vec![match &checkup.index {
        IndexState::Missing => {
            Finding::fine(Check::Index, "there is none, and it is built when it is needed")
        }
        IndexState::Earlier => Finding::fine(
            Check::Index,
            "it is from before the machine started, and is built anew when it is needed",
        ),
        IndexState::Agrees { behind: 0 } => Finding::fine(Check::Index, "it agrees with the records"),
        IndexState::Agrees { behind } => Finding::fine(
            Check::Index,
            format!(
                "it agrees with the records; {} newer than it, and read again when it is used",
                if *behind == 1 { "one is".to_owned() } else { format!("{behind} are") }
            ),
        ),
        IndexState::Damaged => Finding::warning(Check::Index, FILE, "makes no sense, and is not used")
            .todo(heals)
            .repair(Repair::Index),
        IndexState::Differs(jobs) => Finding::warning(
            Check::Index,
            ".tidewheel/jobs/index.done",
            format!("does not show {} as the records are", jobs_named(jobs)),
        )
        .todo(heals)
        .repair(Repair::Index),
    }]
}

/// Says which jobs are on record as running, and nobody runs them.
pub(super) fn supervisors(checkup: &Checkup) -> Vec<Finding> {
    let running = checkup.jobs.values().filter(|kept| super::records::is_running(kept)).count();
    if checkup.lost.is_empty() {
        let said = match running {
            0 => "no job is running".to_owned(),
            1 => "the job that is running has its supervisor".to_owned(),
            more => format!("all {more} jobs that are running have their supervisors"),
        };
        return vec![Finding::fine(Check::Supervisors, said)];
    }
    let lost = |id| {
        let file = format!(".tidewheel/jobs/{id}/run.lock");
        Finding::broken(
            Check::Supervisors,
            file,
            format!("job {id} is on record as running, and its supervisor is gone"),
        )
        .todo(format!(
            "`tidewheel tick` ends what it left and settles it; `tidewheel jobs retry {id}` runs it again."
        ))
        .repair(Repair::Tick)
    };
    checkup.lost.iter().map(lost).collect()
}

/// Says what writers that died have left.
pub(super) fn leftovers(checkup: &Checkup) -> Vec<Finding> {
    let Some(first) = checkup.leftovers.first() else {
        return vec![Finding::fine(Check::Leftovers, "no temporary files are left over")];
    };
    let names: Vec<String> = checkup.leftovers.iter().map(|path| format!(".tidewheel/{path}")).collect();
    let message = match &names[1..] {
        [] => "is left over from a process that died".to_owned(),
        others => format!("is left over from a process that died, and so are {}", some(others)),
    };
    vec![
        Finding::warning(Check::Leftovers, format!(".tidewheel/{first}"), message)
            .todo("It is harmless, and --fix removes it.")
            .repair(Repair::Sweep),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    /// It said that it agrees with records that had changed.
    #[test]
    fn records_that_are_newer_than_the_index_are_no_contradiction() {
        let said = |behind| {
            let checkup = Checkup { index: IndexState::Agrees { behind }, ..Checkup::default() };
            let [finding] = &index(&checkup)[..] else { panic!("one finding") };
            assert_eq!(finding.level, Level::Fine);
            finding.message.clone()
        };
        assert_eq!(said(0), "it agrees with the records");
        let newer = |count| {
            format!("it agrees with the records; {count} newer than it, and read again when it is used")
        };
        assert_eq!(said(1), newer("one is"));
        assert_eq!(said(2), newer("2 are"));
    }

    #[test]
    fn only_an_empty_directory_is_removed_without_a_person() {
        let judged = |path: &str, what, is_empty| {
            let in_the_way = [(path.to_owned(), Obstacle { what, is_empty })].into();
            let checkup = Checkup { in_the_way, ..Checkup::default() };
            let found = [lock(&Facts::in_order(), &checkup), index(&checkup)].concat();
            let broken =
                found.into_iter().find(|finding| finding.level == Level::Broken).expect("it is told");
            (broken.check, broken.repair)
        };
        let folder = |path: &str| Some(Repair::Folder(path.to_owned()));
        let (due, turn) = ("jobs/index.due", "jobs/scheduler.lock");
        assert_eq!(judged(due, "a directory", true), (Check::Index, folder(due)));
        assert_eq!(judged(due, "a directory", false), (Check::Index, None));
        assert_eq!(judged(turn, "a directory", true), (Check::Lock, folder(turn)));
        assert_eq!(judged(turn, "a pipe", false), (Check::Lock, None));
    }
}
