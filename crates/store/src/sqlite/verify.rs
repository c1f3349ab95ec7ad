//! A check of all that is stored: what SQLite finds wrong with pages and indexes, and every row against its checksum.
//! It reads in small portions, so that it can run beside the work.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};
use tidewheel_core::fact::RunId;

use crate::sqlite::checksum::is_sound;
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::{RECORD, damaged_record, record, text};
use crate::sqlite::run::damaged_definition;

/// As many rows are read at once: a longer read would keep the log from being moved into the database.
const PORTION: i64 = 1_000;

/// Where a check puts what it finds, and whether it shall go on.
pub(crate) struct Findings<'a> {
    pub(crate) note: &'a mut dyn FnMut(String),
    pub(crate) goes_on: &'a dyn Fn() -> bool,
}

/// Returns what SQLite finds wrong, with the run that a row belongs to. Where it cannot even look, that is what is
/// wrong.
pub(crate) fn problems(connection: &Connection) -> Result<Vec<String>, Fault> {
    /// More than these say nothing new.
    const MOST: &str = "PRAGMA integrity_check(100)";
    let said = connection.prepare(MOST).and_then(|mut check| {
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        lines.collect::<Result<Vec<String>, _>>()
    });
    match said {
        Ok(lines) => Ok(lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|line| match run_of(connection, &line) {
                Some(run) => format!("{line} (run `{run}`)"),
                None => line,
            })
            .collect()),
        Err(error) if is_corrupt(&error) => Ok(vec![error.to_string()]),
        Err(error) => Err(error.into()),
    }
}

/// Returns the run that a line of SQLite such as `row 3 missing from index runs_due` is about.
fn run_of(connection: &Connection, line: &str) -> Option<RunId> {
    let (row, index) = line.strip_prefix("row ")?.split_once(" missing from index ")?;
    let row: i64 = row.parse().ok()?;
    let find = if index.contains("runs") {
        "SELECT id FROM runs NOT INDEXED WHERE key = ?1"
    } else if index.contains("events") {
        "SELECT id FROM runs NOT INDEXED WHERE key = (SELECT run FROM events NOT INDEXED WHERE rowid = ?1)"
    } else if index.contains("commands") {
        "SELECT id FROM runs NOT INDEXED WHERE key = (SELECT run FROM commands NOT INDEXED WHERE id = ?1)"
    } else if index.contains("dead_letters") {
        "SELECT run FROM dead_letters NOT INDEXED WHERE id = ?1"
    } else {
        return None;
    };
    connection.query_row(find, [row], |row| Ok(RunId::new(&text(row, 0)?))).optional().ok().flatten()
}

/// Checks every row of every table but the events, which are checked whenever a run is read.
pub(crate) fn rows(connection: &Connection, findings: &mut Findings<'_>) -> Result<(), Fault> {
    type Walk = fn(&Connection, &mut Findings<'_>) -> rusqlite::Result<()>;
    let walks: [(&str, Walk); 9] = [
        ("runs", runs),
        ("definitions", definitions),
        ("texts", texts),
        ("checkpoints", checkpoints),
        ("commands", commands),
        ("owners", owners),
        ("shared", shared),
        ("dead_letters", dead_letters),
        ("commits", single_rows),
    ];
    for (table, walk) in walks {
        match walk(connection, findings) {
            Ok(()) => {}
            Err(error) if is_corrupt(&error) => {
                (findings.note)(format!("table `{table}` cannot be read to its end: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns whether SQLite found its own file damaged.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn runs(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT {RECORD}, owner IS NOT NULL AND owner NOT IN (SELECT id FROM owners),
            EXISTS (SELECT 1 FROM definitions WHERE run = key)
        FROM runs NOT INDEXED WHERE key > ?1 ORDER BY key LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        let found = record(row)?;
        let run = &found.record.id;
        if !found.is_sound {
            note(damaged_record(run));
        } else if row.get(13)? {
            let owner = found.record.owner.map_or(0, |owner| owner.0);
            note(format!("run `{run}` is held by owner {owner}, which does not exist"));
        }
        if !row.get::<_, bool>(14)? {
            note(format!("what run `{run}` was created with is missing"));
        }
        Ok(found.key)
    })
}

fn definitions(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT definitions.run, runs.id, body, definitions.checksum
        FROM definitions LEFT JOIN runs ON runs.key = definitions.run
        LEFT JOIN texts ON texts.id = definitions.text
        WHERE definitions.run > ?1 ORDER BY definitions.run LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        if row.get_ref(1)? == ValueRef::Null {
            note(format!("the definition of run number {} belongs to no run", row.get::<_, i64>(0)?));
        } else if !is_sound(row, "definitions", 1..3, 3)? {
            note(damaged_definition(&RunId::new(&text(row, 1)?)));
        }
        row.get(0)
    })
}

fn texts(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!("SELECT id, body, checksum FROM texts WHERE id > ?1 ORDER BY id LIMIT {PORTION}");
    portions(connection, &sql, findings, |row, note| {
        let id: i64 = row.get(0)?;
        if !is_sound(row, "texts", 1..2, 2)? {
            note(format!("text {id}, which runs were created with, is not what was written"));
        }
        Ok(id)
    })
}

fn checkpoints(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT checkpoints.run, runs.id, checkpoints.version, body, checkpoints.checksum
        FROM checkpoints LEFT JOIN runs ON runs.key = checkpoints.run
        WHERE checkpoints.run > ?1 ORDER BY checkpoints.run LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        if !is_sound(row, "checkpoints", 1..4, 4)? {
            note(format!("the checkpoint of run `{}` is not what was written", text(row, 1)?));
        }
        row.get(0)
    })
}

fn commands(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT commands.id, runs.id, kind, body, at, commands.checksum
        FROM commands LEFT JOIN runs ON runs.key = commands.run
        WHERE commands.id > ?1 ORDER BY commands.id LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        let id: i64 = row.get(0)?;
        if !is_sound(row, "commands", 1..5, 5)? {
            note(format!("command {id} of run `{}` is not what was written", text(row, 1)?));
        }
        Ok(id)
    })
}

fn owners(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT id, process, joined_at, expires_at, lease, renewals, checksum FROM owners WHERE id > ?1 ORDER BY id LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        let id: i64 = row.get(0)?;
        if !is_sound(row, "owners", 1..6, 6)? {
            note(format!("the record of owner {id} is not what was written"));
        }
        Ok(id)
    })
}

fn dead_letters(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT id, run, work, node, body, at, checksum FROM dead_letters WHERE id > ?1 ORDER BY id LIMIT {PORTION}"
    );
    portions(connection, &sql, findings, |row, note| {
        let id: i64 = row.get(0)?;
        if !is_sound(row, "dead_letters", 1..6, 6)? {
            note(format!("dead letter {id} of run `{}` is not what was written", text(row, 1)?));
        }
        Ok(id)
    })
}

fn shared(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT kind, name, version, body, checksum FROM shared
        WHERE ?1 IS NULL OR (kind, name) > (?1, ?2) ORDER BY kind, name LIMIT {PORTION}"
    );
    let mut after: Option<(Value, Value)> = None;
    while (findings.goes_on)() {
        let mut statement = connection.prepare_cached(&sql)?;
        let (kind, name) = after.unzip();
        let mut rows = statement.query(params![kind, name])?;
        after = None;
        while let Some(row) = rows.next()? {
            if !is_sound(row, "shared", 0..4, 4)? {
                let (kind, name) = (text(row, 0)?, text(row, 1)?);
                (findings.note)(format!(
                    "the shared state `{name}` of kind `{kind}` is not what was written"
                ));
            }
            after = Some((row.get(0)?, row.get(1)?));
        }
        if after.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// Checks the tables that have one row.
fn single_rows(connection: &Connection, findings: &mut Findings<'_>) -> rusqlite::Result<()> {
    let look = "SELECT number, database, at, checksum FROM commits";
    let sound = connection.query_row(look, [], |row| is_sound(row, "commits", 0..3, 3)).optional()?;
    if sound != Some(true) {
        (findings.note)("the number of the last commit is not what was written".to_owned());
    }
    let look = "SELECT version, checksum FROM shared_removed";
    let sound = connection.query_row(look, [], |row| is_sound(row, "shared_removed", 0..1, 1)).optional()?;
    if sound != Some(true) {
        (findings.note)("the highest version of removed shared states is not what was written".to_owned());
    }
    let mut losses = connection.prepare("SELECT at, found, answered, what, checksum FROM losses")?;
    let mut rows = losses.query([])?;
    while let Some(row) = rows.next()? {
        if !is_sound(row, "losses", 0..4, 4)? {
            (findings.note)("what is written down of commits that are missing was changed".to_owned());
        }
    }
    Ok(())
}

/// Goes through a table by its key, which the function returns for each row.
fn portions(
    connection: &Connection,
    sql: &str,
    findings: &mut Findings<'_>,
    mut look: impl FnMut(&Row<'_>, &mut dyn FnMut(String)) -> rusqlite::Result<i64>,
) -> rusqlite::Result<()> {
    let mut after = i64::MIN;
    while (findings.goes_on)() {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([after])?;
        let before = after;
        while let Some(row) = rows.next()? {
            // Rows of a damaged table may come out of order, and must not be gone through for ever.
            after = after.max(look(row, findings.note)?);
        }
        if after == before {
            return Ok(());
        }
    }
    Ok(())
}
