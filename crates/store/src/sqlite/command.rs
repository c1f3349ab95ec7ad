//! Commands: rows that wait for whoever drives their run, and make the run due.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidewheel_core::fact::RunId;

use crate::record::{Command, CommandId, NewCommand, OwnerId};
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::instant;
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
    let due = "UPDATE runs SET wake_at = min(ifnull(wake_at, ?2), ?2) WHERE key = ?1";
    transaction.statement(due)?.execute([key, now])?;
    let insert = "INSERT INTO commands (run, kind, body, at) VALUES (?1, ?2, ?3, ?4)";
    transaction.statement(insert)?.execute(params![key, command.kind, command.body, now])?;
    match owner {
        Some(owner) => {
            transaction.effects.ring.insert(OwnerId(owner));
        }
        None => transaction.effects.ring_all = true,
    }
    Ok(Ok(CommandId(transaction.connection.last_insert_rowid())))
}

/// Returns what is asked of the runs of an owner. Commands are few, so they are gone through rather than the runs.
pub(crate) fn of_owner(connection: &Connection, owner: OwnerId) -> Result<Vec<Command>, Fault> {
    let find = "SELECT commands.id, runs.id, kind, body, at FROM commands CROSS JOIN runs
        WHERE runs.key = commands.run AND +runs.owner = ?1 ORDER BY commands.id";
    Ok(connection.prepare_cached(find)?.query_map([owner.0], command)?.collect::<Result<_, _>>()?)
}

/// Returns what is asked of a run.
pub(crate) fn of_run(connection: &Connection, run: &RunId) -> Result<Vec<Command>, Fault> {
    let find =
        "SELECT commands.id, runs.id, kind, body, at FROM commands JOIN runs ON runs.key = commands.run
        WHERE runs.id = ?1 ORDER BY commands.id";
    Ok(connection.prepare_cached(find)?.query_map([run.as_str()], command)?.collect::<Result<_, _>>()?)
}

fn command(row: &Row<'_>) -> rusqlite::Result<Command> {
    Ok(Command {
        id: CommandId(row.get(0)?),
        run: RunId::new(row.get_ref(1)?.as_str()?),
        kind: row.get(2)?,
        body: row.get(3)?,
        at: instant(row.get(4)?),
    })
}
