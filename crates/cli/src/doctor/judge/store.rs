//! A library store: its pages, its version, its logs, and who drives its runs.

use tidewheel_store::sqlite::Examined;

use super::whole::counted;
use crate::doctor::facts::Store;
use crate::doctor::finding::{Check, Finding};

/// A write-ahead log beyond this is not moved into the database by anybody.
const LONG_LOG: u64 = 256 << 20;

/// Says whether a store is in order.
pub(super) fn store(store: &Store) -> Vec<Finding> {
    let name = &store.name;
    let examined = match &store.examined {
        Ok(examined) => examined,
        Err((message, hint)) => {
            let finding = Finding::broken(Check::Store, name, message);
            let usual = "Check the name: it is the file that your program gives to `Runner::open`.";
            return vec![finding.todo(hint.as_deref().unwrap_or(usual))];
        }
    };
    let Examined { version, known, problems, damaged, rows, losses, runs, journal, log_bytes, owners } =
        examined;
    let mut found = Vec::new();
    for problem in problems {
        found.push(Finding::broken(Check::Store, name, format!("the database is damaged: {problem}")).todo(
            "Stop the programs that use it and take it from a backup, or save what can be \
                    read: `sqlite3 FILE .recover`.",
        ));
    }
    for loss in losses {
        found.push(
            Finding::broken(Check::Store, name, format!("noticed at {}: {}", loss.at, loss.what)).todo(format!(
                "Take the database from a backup, or go on with what is there: the runs take their work up from where \
                 they are. `sqlite3 {name} 'DELETE FROM losses'` removes this note."
            )),
        );
    }
    for what in rows {
        found.push(Finding::broken(Check::Store, name, format!("the database is damaged: {what}")).todo(
            "Take it from a backup. All other rows are as they were, and no process drives a run whose record is damaged.",
        ));
    }
    for (run, event, what) in damaged {
        found.push(
            Finding::broken(
                Check::Store,
                name,
                format!("the log of run `{run}` is damaged at event {event}: {what}"),
            )
            .todo(
                "Take it from a backup. All other runs are as they were, and this one is driven by nobody.",
            ),
        );
    }
    if *version == 0 {
        found.push(
            Finding::broken(Check::Store, name, "the database has no tables, and so no runs").todo(format!(
                "It was copied without `{name}-wal`, in which everything was, or nothing was ever written to it. \
                 Copy both from where it came while no program uses them, or make a whole copy there: \
                 `sqlite3 FILE \".backup COPY\"`."
            )),
        );
        return found;
    }
    if version < known {
        found.push(
            Finding::warning(
                Check::Store,
                name,
                format!("has version {version}, and this release knows {known}"),
            )
            .todo(
                "The next program of this release that opens it brings it to the newest version; \
                    earlier ones cannot use it then.",
            ),
        );
    }
    if !journal.eq_ignore_ascii_case("wal") {
        found.push(
            Finding::warning(
                Check::Store,
                name,
                format!("keeps what is being written by `{journal}`, and not in a write-ahead log"),
            )
            .todo(
                "The next program that opens it turns it on. If it stays so, its file system \
                    cannot have one: use a disk of this machine.",
            ),
        );
    }
    if *log_bytes > LONG_LOG {
        found.push(
            Finding::warning(
                Check::Store,
                format!("{name}-wal"),
                format!("the write-ahead log has {} MiB", log_bytes >> 20),
            )
            .todo(
                "Somebody has been reading for very long, or nobody closes the store; it is moved \
                    into the database when the last one leaves.",
            ),
        );
    }
    for (owner, until, is_gone) in owners {
        // One look cannot judge a lease: the clock of the owner may show another time than this one.
        if *is_gone {
            found.push(
                Finding::warning(
                    Check::Store,
                    name,
                    format!("owner {} is gone, and its lease is until {until}", owner.0),
                )
                .todo(
                    "The next program that drives runs takes its runs over; there is nothing to do \
                        if one runs.",
                ),
            );
        }
    }
    if found.is_empty() {
        let count = usize::try_from(*runs).unwrap_or(usize::MAX);
        let drives = match owners.len() {
            0 => "nobody drives runs just now".to_owned(),
            1 => "1 process drives runs".to_owned(),
            more => format!("{more} processes drive runs"),
        };
        let said = format!(
            "{name}: version {version}, {}, all logs as they were written; {drives}",
            counted(count, "run")
        );
        found.push(Finding::fine(Check::Store, said));
    }
    found
}
