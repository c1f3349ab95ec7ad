//! Commands: rows that wait for whoever drives their run, and make the run due.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidewheel_core::fact::RunId;

use crate::record::{Command, CommandId, NewCommand, OwnerId};
use crate::sqlite::checksum::{is_sound, new_run_checksum, run_checksum};
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::rows::{damaged_record, instant, text};
use crate::sqlite::transaction::Transaction;
use crate::store::Refused;

/// Asks something of a run.
pub(crate) fn send(
    transaction: &mut Transaction<'_>,
    command: &NewCommand,
) -> Result<Result<CommandId, Refused>, Fault> {
    let now = transaction.nanos();
    let found: Option<(i64, Option<i64>)> = transaction
        .statement("SELECT key, owner FROM runs WHERE id = ?1")?
        .query_row([command.run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((key, owner)) = found else {
        return Ok(Err(Refused::NotFound { run: command.run.clone() }));
    };
    if transaction.statement(DUE)?.execute([key, now])? == 0 {
        transaction.health.note(damaged_record(&command.run));
        return Ok(Err(Refused::Damaged { run: command.run.clone() }));
    }
    let insert = "INSERT INTO commands (run, kind, body, at, checksum)
        VALUES (?1, ?2, ?3, ?4, row_checksum('commands', ?5, ?2, ?3, ?4))";
    let values = params![key, command.kind, command.body, now, command.run.as_str()];
    transaction.statement(insert)?.execute(values)?;
    let id = CommandId(transaction.connection.last_insert_rowid());
    transaction.effects.written.push((command.run.clone(), 0));
    match owner {
        Some(owner) => {
            transaction.effects.ring.insert(OwnerId(owner));
        }
        None => transaction.effects.ring_all = true,
    }
    Ok(Ok(id))
}

/// Returns what is asked of the runs of an owner. Commands are few, so they are gone through rather than the runs.
pub(crate) fn of_owner(
    connection: &Connection,
    owner: OwnerId,
    health: &Health,
) -> Result<Vec<Command>, Fault> {
    let find = "SELECT commands.id, runs.id, kind, body, at, commands.checksum FROM commands CROSS JOIN runs
        WHERE runs.key = commands.run AND +runs.owner = ?1 ORDER BY commands.id";
    Ok(connection
        .prepare_cached(find)?
        .query_map([owner.0], |row| command(row, health))?
        .collect::<Result<_, _>>()?)
}

/// Returns what is asked of a run.
pub(crate) fn of_run(connection: &Connection, run: &RunId, health: &Health) -> Result<Vec<Command>, Fault> {
    let find = "SELECT commands.id, runs.id, kind, body, at, commands.checksum
        FROM commands JOIN runs ON runs.key = commands.run
        WHERE runs.id = ?1 ORDER BY commands.id";
    let mut statement = connection.prepare_cached(find)?;
    Ok(statement.query_map([run.as_str()], |row| command(row, health))?.collect::<Result<_, _>>()?)
}

/// Makes a run due at once.
const DUE: &str = concat!(
    "UPDATE runs SET wake_at = min(ifnull(wake_at, ?2), ?2), checksum = ",
    new_run_checksum!(
        status: "status", reason: "reason", version: "version", owner: "owner", fence: "fence",
        wake_at: "min(ifnull(wake_at, ?2), ?2)", updated_at: "updated_at"
    ),
    " WHERE key = ?1 AND checksum = ",
    run_checksum!()
);

/// What a command that is not what was written is called. No runner knows the word, so the driver of the run puts the
/// command away and says so in the log of the run; otherwise it would make the run due for ever.
const DAMAGED: &str = "damaged";

fn command(row: &Row<'_>, health: &Health) -> rusqlite::Result<Command> {
    let (id, run) = (CommandId(row.get(0)?), RunId::new(&text(row, 1)?));
    if !is_sound(row, "commands", 1..5, 5)? {
        health.note(format!("command {} of run `{run}` is not what was written", id.0));
        let body = "the stored command is damaged".to_owned();
        return Ok(Command { id, run, kind: DAMAGED.to_owned(), body, at: instant(0) });
    }
    Ok(Command { id, run, kind: row.get(2)?, body: row.get(3)?, at: instant(row.get(4)?) })
}
