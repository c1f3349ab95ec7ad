//! Owners: who drives runs, until when, and what becomes of the runs of those who are gone.

use rusqlite::{Connection, params};
use tidewheel_core::time::{Span, Timestamp};

use crate::record::OwnerId;
use crate::sqlite::fault::Fault;
use crate::sqlite::presence::Roster;
use crate::sqlite::rows::{instant, nanos};
use crate::sqlite::transaction::Transaction;
use crate::store::{Refused, Renewed};

/// Makes a new owner. Its lock is taken before anybody else can know its number.
pub(crate) fn join(transaction: &mut Transaction<'_>, lease: Span) -> Result<OwnerId, Fault> {
    reap(transaction)?;
    let expires_at = nanos(transaction.now.saturating_add(lease));
    let insert = "INSERT INTO owners (process, joined_at, expires_at) VALUES (?1, ?2, ?3)";
    transaction.statement(insert)?.execute(params![std::process::id(), transaction.nanos(), expires_at])?;
    let owner = OwnerId(transaction.connection.last_insert_rowid());
    let presence = transaction.roster.enter(owner)?;
    transaction.effects.joined.push((owner, presence));
    Ok(owner)
}

/// Gives an owner another lease. One that comes too late is none any more, and its runs wait for somebody else.
pub(crate) fn renew(
    transaction: &mut Transaction<'_>,
    owner: OwnerId,
    lease: Span,
) -> Result<Result<Renewed, Refused>, Fault> {
    let expires_at = nanos(transaction.now.saturating_add(lease));
    let renew = "UPDATE owners SET expires_at = ?1 WHERE id = ?2 AND expires_at > ?3";
    let changed = transaction.statement(renew)?.execute([expires_at, owner.0, transaction.nanos()])?;
    if changed == 1 {
        let is_alone = !transaction.statement("SELECT 1 FROM owners WHERE id <> ?1")?.exists([owner.0])?;
        return Ok(Ok(Renewed { is_alone }));
    }
    leave(transaction, owner)?;
    Ok(Err(Refused::LeaseOver))
}

/// Ends an owner; its runs wait for somebody else, and are due if something is asked of them.
pub(crate) fn leave(transaction: &mut Transaction<'_>, owner: OwnerId) -> Result<(), Fault> {
    let free = "UPDATE runs SET owner = NULL, wake_at = CASE
            WHEN EXISTS (SELECT 1 FROM commands WHERE run = runs.key) THEN min(ifnull(wake_at, ?2), ?2)
            ELSE wake_at END
        WHERE owner = ?1";
    let freed = transaction.statement(free)?.execute([owner.0, transaction.nanos()])?;
    transaction.statement("DELETE FROM owners WHERE id = ?1")?.execute([owner.0])?;
    transaction.effects.ring_all |= freed > 0;
    transaction.effects.left.push(owner);
    Ok(())
}

/// Returns the owners that are there, and leaves those that are gone as they are.
pub(crate) fn live(connection: &Connection, roster: &Roster, now: Timestamp) -> Result<Vec<OwnerId>, Fault> {
    let mut owners = all(connection)?;
    owners.retain(|(owner, expires_at)| *expires_at > now && !roster.is_gone(*owner));
    Ok(owners.into_iter().map(|(owner, _)| owner).collect())
}

/// Ends the owners that did not renew in time, and those whose process has ended.
pub(crate) fn reap(transaction: &mut Transaction<'_>) -> Result<(), Fault> {
    for (owner, expires_at) in all(transaction.connection)? {
        let is_late = expires_at <= transaction.now;
        if is_late || transaction.roster.is_gone(owner) {
            tracing::info!(owner = owner.0, is_late, "an owner is gone: its runs wait for somebody else");
            leave(transaction, owner)?;
        }
    }
    Ok(())
}

/// Returns everybody who has not left, with the end of the lease.
pub(crate) fn all(connection: &Connection) -> Result<Vec<(OwnerId, Timestamp)>, Fault> {
    let mut statement = connection.prepare_cached("SELECT id, expires_at FROM owners ORDER BY id")?;
    let owners = statement.query_map([], |row| Ok((OwnerId(row.get(0)?), instant(row.get(1)?))))?;
    Ok(owners.collect::<Result<_, _>>()?)
}

/// Tells whether an owner is one, after those that are gone were ended.
pub(crate) fn is_known(transaction: &Transaction<'_>, owner: OwnerId) -> Result<bool, Fault> {
    Ok(transaction.statement("SELECT 1 FROM owners WHERE id = ?1")?.exists([owner.0])?)
}
