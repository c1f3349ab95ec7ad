//! Writes to logs: one update that is guarded by fence and version, and one row for the events.

use rusqlite::params;

use crate::record::{Fence, Lease, NewRun, Version};
use crate::sqlite::checksum::{new_run_checksum, run_checksum};
use crate::sqlite::dead_letter;
use crate::sqlite::fault::Fault;
use crate::sqlite::log::checksum;
use crate::sqlite::owner::is_known;
use crate::sqlite::rows::{count, damaged_record, nanos, stored_run};
use crate::sqlite::run;
use crate::sqlite::transaction::Transaction;
use crate::store::{Append, Guard, Refused};

/// For a run that somebody drives and whose status stays, which is what happens most: no index changes.
const ADVANCE: &str = concat!(
    "UPDATE runs SET version = ?1, reason = ?2, wake_at = ?3, updated_at = ?4, checksum = ",
    new_run_checksum!(
        status: "?9", reason: "?2", version: "?1", owner: "owner", fence: "fence", wake_at: "?3", updated_at: "?4"
    ),
    " WHERE key = ?5 AND fence = ?6 AND version = ?7 AND id = ?8 AND owner IS NOT NULL AND status = ?9
        AND checksum = ",
    run_checksum!()
);

/// For a run that somebody drives.
const CHANGE: &str = concat!(
    "UPDATE runs SET version = ?1, reason = ?2, wake_at = ?3, updated_at = ?4, status = ?9, checksum = ",
    new_run_checksum!(
        status: "?9", reason: "?2", version: "?1", owner: "owner", fence: "fence", wake_at: "?3", updated_at: "?4"
    ),
    " WHERE key = ?5 AND fence = ?6 AND version = ?7 AND id = ?8 AND owner IS NOT NULL AND checksum = ",
    run_checksum!()
);

/// For a run that nobody drives afterwards.
const RELEASE: &str = concat!(
    "UPDATE runs SET version = ?1, reason = ?2, wake_at = ?3, updated_at = ?4, status = ?9, owner = NULL, checksum = ",
    new_run_checksum!(
        status: "?9", reason: "?2", version: "?1", owner: "NULL", fence: "fence", wake_at: "?3", updated_at: "?4"
    ),
    " WHERE key = ?5 AND fence = ?6 AND version = ?7 AND id = ?8 AND checksum = ",
    run_checksum!()
);

const BEGIN: &str = "INSERT INTO runs (id, workflow, workflow_version, status, reason, version, owner, fence,
    wake_at, created_at, updated_at, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10,
        row_checksum('runs', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10))
    ON CONFLICT (id) DO NOTHING";

const EVENTS: &str =
    "INSERT INTO events (run, first, count, at, checksum, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Writes one part of a call. Nothing has changed where it is refused.
pub(crate) fn append(
    transaction: &mut Transaction<'_>,
    append: &Append,
) -> Result<Result<Lease, Refused>, Fault> {
    let taken = match &append.guard {
        Guard::New(new) => begin(transaction, append, new)?,
        Guard::Held { key, fence } => advance(transaction, append, *key, *fence)?,
    };
    let taken = match taken {
        Ok(taken) => taken,
        Err(refused) => return Ok(Err(refused)),
    };
    let key = taken.key;
    transaction.effects.written.push((append.run.clone(), version(append)));
    let now = transaction.nanos();
    if !append.events.is_empty() {
        let body = append.events.body();
        let first = count(append.expected);
        let events = i64::from(append.events.len());
        let checksum = checksum(&append.run, [first, events, now], body.as_bytes());
        let mut statement = transaction.statement(EVENTS)?;
        statement.execute(params![key, first, events, now, checksum, body])?;
    }
    if let Some(checkpoint) = &append.checkpoint {
        let keep = "INSERT INTO checkpoints (run, version, body, checksum)
            VALUES (?1, ?2, ?3, row_checksum('checkpoints', ?4, ?2, ?3))
            ON CONFLICT (run) DO UPDATE
            SET version = excluded.version, body = excluded.body, checksum = excluded.checksum";
        let values = params![key, count(version(append)), checkpoint, append.run.as_str()];
        transaction.statement(keep)?.execute(values)?;
    }
    for id in &append.handled {
        transaction.statement("DELETE FROM commands WHERE id = ?1 AND run = ?2")?.execute([id.0, key])?;
    }
    for letter in &append.letters {
        dead_letter::write(transaction, &append.run, letter)?;
    }
    if taken.is_free {
        stay_due(transaction, key)?;
    }
    Ok(Ok(Lease { run: append.run.clone(), key, fence: taken.fence }))
}

/// Makes a run that was let go due, if something is asked of it that nobody has handled.
pub(crate) fn stay_due(transaction: &mut Transaction<'_>, key: i64) -> Result<(), Fault> {
    const DUE: &str = concat!(
        "UPDATE runs SET wake_at = min(ifnull(wake_at, ?2), ?2), checksum = ",
        new_run_checksum!(
            status: "status", reason: "reason", version: "version", owner: "owner", fence: "fence",
            wake_at: "min(ifnull(wake_at, ?2), ?2)", updated_at: "updated_at"
        ),
        " WHERE key = ?1 AND EXISTS (SELECT 1 FROM commands WHERE run = ?1) AND checksum = ",
        run_checksum!()
    );
    let changed = transaction.statement(DUE)?.execute([key, transaction.nanos()])?;
    transaction.effects.ring_all |= changed > 0;
    Ok(())
}

/// A run that was written to.
struct Taken {
    key: i64,
    fence: Fence,
    /// Whether nobody drives it now.
    is_free: bool,
}

fn version(append: &Append) -> Version {
    append.expected + u64::from(append.events.len())
}

fn begin(
    transaction: &mut Transaction<'_>,
    append: &Append,
    new: &NewRun,
) -> Result<Result<Taken, Refused>, Fault> {
    if append.expected != 0 {
        let (run, expected) = (append.run.clone(), append.expected);
        return Ok(Err(Refused::Conflict { run, expected, found: 0 }));
    }
    let now = transaction.nanos();
    if let Some(owner) = new.owner
        && !is_known(transaction, owner)?
    {
        return Ok(Err(Refused::LeaseOver));
    }
    let owner = new.owner.filter(|_| !append.release);
    let fence = Fence::from(new.owner.is_some());
    let inserted = transaction.statement(BEGIN)?.execute(params![
        append.run.as_str(),
        new.workflow,
        new.workflow_version,
        append.status.name(),
        append.reason,
        count(version(append)),
        owner.map(|owner| owner.0),
        count(fence),
        append.wake_at.map(nanos),
        now,
    ])?;
    if inserted == 0 {
        return Ok(Err(Refused::Exists { run: append.run.clone() }));
    }
    let key = transaction.connection.last_insert_rowid();
    run::define(transaction, key, &append.run, &new.definition)?;
    let is_free = owner.is_none();
    transaction.effects.ring_all |= is_free && append.wake_at.is_some();
    Ok(Ok(Taken { key, fence, is_free }))
}

fn advance(
    transaction: &mut Transaction<'_>,
    append: &Append,
    key: i64,
    fence: Fence,
) -> Result<Result<Taken, Refused>, Fault> {
    let now = transaction.nanos();
    // Where neither of the first two finds the run, nobody drives it, or the write is refused.
    let statements = [(ADVANCE, false), (CHANGE, false), (RELEASE, true)];
    for (sql, is_free) in statements.into_iter().skip(if append.release { 2 } else { 0 }) {
        let changed = transaction.statement(sql)?.execute(params![
            count(version(append)),
            append.reason,
            append.wake_at.map(nanos),
            now,
            key,
            count(fence),
            count(append.expected),
            append.run.as_str(),
            append.status.name(),
        ])?;
        if changed == 1 {
            transaction.effects.ring_all |= is_free && append.wake_at.is_some();
            return Ok(Ok(Taken { key, fence, is_free }));
        }
    }
    let run = append.run.clone();
    let found = stored_run(transaction.connection, key)?.filter(|found| found.record.id == run);
    Ok(Err(match found {
        None => Refused::NotFound { run },
        Some(found) if !found.is_sound => {
            transaction.health.note(damaged_record(&run));
            Refused::Damaged { run }
        }
        Some(found) if found.record.fence != fence => Refused::Fenced { run },
        Some(found) => Refused::Conflict { run, expected: append.expected, found: found.record.version },
    }))
}
