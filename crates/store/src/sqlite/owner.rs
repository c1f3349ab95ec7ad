//! Owners: who drives runs, until when, and what becomes of the runs of those who are gone.

use rusqlite::{Connection, params};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};

use crate::record::OwnerId;
use crate::sqlite::checksum::{new_run_checksum, run_checksum};
use crate::sqlite::fault::Fault;
use crate::sqlite::presence::Roster;
use crate::sqlite::rows::{count, counted, damaged_record, instant, nanos, text};
use crate::sqlite::transaction::Transaction;
use crate::store::{Joined, Refused, Renewed};
use crate::watch::Renewal;

/// Makes a new owner. Its lock is taken before anybody else can know its number.
pub(crate) fn join(transaction: &mut Transaction<'_>, lease: Span) -> Result<Joined, Fault> {
    reap(transaction)?;
    let others = all(transaction.connection, transaction.roster)?;
    transaction.meet(longest_lease_of_others(&others, transaction.roster));
    let expires_at = nanos(transaction.now.saturating_add(lease));
    let insert = "INSERT INTO owners (process, joined_at, expires_at, lease, checksum)
        VALUES (?1, ?2, ?3, ?4, row_checksum('owners', ?1, ?2, ?3, ?4, 0))";
    let (process, now, lease) = (std::process::id(), transaction.nanos(), count(lease.as_millis()));
    transaction.statement(insert)?.execute(params![process, now, expires_at, lease])?;
    let owner = OwnerId(transaction.connection.last_insert_rowid());
    let presence = transaction.roster.enter(owner)?;
    transaction.effects.joined.push((owner, presence));
    // The others are to watch its lock from now on.
    transaction.effects.ring_all = true;
    Ok(Joined { owner, now: transaction.now })
}

/// Gives an owner another lease, if it is one. Whether it comes late by its own clock does not matter: its runs are its
/// own until another process has ended it.
pub(crate) fn renew(
    transaction: &mut Transaction<'_>,
    owner: OwnerId,
    lease: Span,
) -> Result<Result<Renewed, Refused>, Fault> {
    let owners = all(transaction.connection, transaction.roster)?;
    transaction.meet(longest_lease_of_others(&owners, transaction.roster));
    let expires_at = nanos(transaction.now.saturating_add(lease));
    let renew = "UPDATE owners SET expires_at = ?1, lease = ?2, renewals = renewals + 1,
            checksum = row_checksum('owners', process, joined_at, ?1, ?2, renewals + 1)
        WHERE id = ?3";
    let changed = transaction.statement(renew)?.execute([expires_at, count(lease.as_millis()), owner.0])?;
    if changed == 0 {
        transaction.effects.left.push(owner);
        return Ok(Err(Refused::LeaseOver));
    }
    // Who renews looks at the others, too: only who looks again and again can say of one that it does not renew.
    let owners = all(transaction.connection, transaction.roster)?;
    for other in &owners {
        other.is_late(transaction.roster, transaction.local);
    }
    // Damage may name an owner that was never there, and no claim would ever find its runs.
    for unknown in unknown_owners(transaction)? {
        leave(transaction, unknown)?;
    }
    Ok(Ok(Renewed { now: transaction.now, is_alone: owners.len() == 1 }))
}

/// Ends an owner; its runs wait for somebody else, and are due if something is asked of them.
pub(crate) fn leave(transaction: &mut Transaction<'_>, owner: OwnerId) -> Result<(), Fault> {
    let freed = transaction.statement(FREE)?.execute([owner.0, transaction.nanos()])?;
    // What is left has a record that is not what was written: no process takes it, and it goes on to show as damaged.
    let aside = "UPDATE runs SET owner = NULL, wake_at = NULL WHERE owner = ?1 RETURNING id";
    let mut statement = transaction.statement(aside)?;
    for run in statement.query_map([owner.0], |row| Ok(RunId::new(&text(row, 0)?)))? {
        transaction.health.note(damaged_record(&run?));
    }
    drop(statement);
    transaction.statement("DELETE FROM owners WHERE id = ?1")?.execute([owner.0])?;
    transaction.effects.ring_all |= freed > 0;
    transaction.effects.left.push(owner);
    Ok(())
}

/// Frees the runs of an owner; those of which something is asked become due.
const FREE: &str = concat!(
    "UPDATE runs SET owner = NULL, wake_at = CASE
            WHEN EXISTS (SELECT 1 FROM commands WHERE run = runs.key) THEN min(ifnull(wake_at, ?2), ?2)
            ELSE wake_at END,
        checksum = ",
    new_run_checksum!(
        status: "status", reason: "reason", version: "version", owner: "NULL", fence: "fence",
        wake_at: "CASE
            WHEN EXISTS (SELECT 1 FROM commands WHERE run = runs.key) THEN min(ifnull(wake_at, ?2), ?2)
            ELSE wake_at END",
        updated_at: "updated_at"
    ),
    " WHERE owner = ?1 AND checksum = ",
    run_checksum!()
);

/// Returns the owners that are there, and leaves those that are gone as they are.
pub(crate) fn live(connection: &Connection, roster: &Roster, now: Timestamp) -> Result<Vec<OwnerId>, Fault> {
    let mut owners = all(connection, roster)?;
    owners.retain(|owner| !roster.is_gone(owner.id) && !owner.is_late(roster, now));
    Ok(owners.into_iter().map(|owner| owner.id).collect())
}

/// Ends the owners whose process has ended, and those that were seen not to renew for a lease. The lock of a process is
/// asked first: it knows at once, and no clock can make it wrong.
pub(crate) fn reap(transaction: &mut Transaction<'_>) -> Result<(), Fault> {
    for owner in all(transaction.connection, transaction.roster)? {
        let is_gone = transaction.roster.is_gone(owner.id);
        if is_gone || owner.is_late(transaction.roster, transaction.local) {
            tracing::info!(owner = owner.id.0, is_gone, "an owner is ended: its runs wait for another one");
            leave(transaction, owner.id)?;
        }
    }
    Ok(())
}

/// An owner as it is stored.
pub(crate) struct Owner {
    pub(crate) id: OwnerId,
    pub(crate) renewal: Renewal,
    lease: Span,
}

impl Owner {
    /// Looks at it, and returns whether this process saw it not renew for a lease.
    fn is_late(&self, roster: &Roster, now: Timestamp) -> bool {
        roster.is_late(self.id, self.renewal, self.lease, now)
    }
}

/// Returns every owner that has not left. Who renews each third of a long lease looks no more often than that, so
/// each is watched for at least as long as the leases of this process are.
pub(crate) fn all(connection: &Connection, roster: &Roster) -> Result<Vec<Owner>, Fault> {
    let find = "SELECT id, expires_at, renewals, lease FROM owners ORDER BY id";
    let mut statement = connection.prepare_cached(find)?;
    let owners = statement.query_map([], |row| {
        let renewal = Renewal { expires_at: instant(row.get(1)?), count: counted(row.get(2)?) };
        Ok(Owner { id: OwnerId(row.get(0)?), renewal, lease: Span::from_millis(counted(row.get(3)?)) })
    })?;
    let mut owners = owners.collect::<Result<Vec<Owner>, _>>()?;
    let own = owners.iter().filter(|owner| roster.has(owner.id)).map(|owner| owner.lease).max();
    for owner in &mut owners {
        owner.lease = owner.lease.max(own.unwrap_or(owner.lease));
    }
    Ok(owners)
}

/// Returns the owners that runs have and that are none. Each takes one step in the index, however many runs it has.
fn unknown_owners(transaction: &Transaction<'_>) -> Result<Vec<OwnerId>, Fault> {
    let next = "SELECT min(owner), (SELECT 1 FROM owners WHERE id = owner) FROM runs WHERE owner > ?1";
    let mut statement = transaction.statement(next)?;
    let (mut after, mut unknown) = (i64::MIN, Vec::new());
    loop {
        let found: (Option<i64>, Option<i64>) =
            statement.query_row([after], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (Some(owner), is_known) = found else { return Ok(unknown) };
        if is_known.is_none() {
            unknown.push(OwnerId(owner));
        }
        after = owner;
    }
}

/// Returns the longest lease among the owners of other processes that live: those that keep the store's time.
pub(crate) fn longest_lease_of_others(owners: &[Owner], roster: &Roster) -> Option<Span> {
    let others = owners.iter().filter(|owner| !roster.has(owner.id) && !roster.is_gone(owner.id));
    others.map(|owner| owner.lease).max()
}

/// Returns whether an owner is one, after those that are gone were ended.
pub(crate) fn is_known(transaction: &Transaction<'_>, owner: OwnerId) -> Result<bool, Fault> {
    Ok(transaction.statement("SELECT 1 FROM owners WHERE id = ?1")?.exists([owner.0])?)
}
