//! Claims: runs that nobody drives get an owner and a higher fence, those that are due longest first.

use rusqlite::{OptionalExtension as _, params};
use tidewheel_core::fact::RunId;

use crate::record::{Lease, OwnerId, RunRecord};
use crate::sqlite::append::stay_due;
use crate::sqlite::checksum::{new_run_checksum, run_checksum};
use crate::sqlite::fault::Fault;
use crate::sqlite::owner::{is_known, reap};
use crate::sqlite::rows::{StoredRun, count, damaged_record, instant, stored_run};
use crate::sqlite::run::{damaged_definition, definition};
use crate::sqlite::transaction::Transaction;
use crate::store::{Claim, Claimed, Wanted};

/// Takes what is wanted, if nobody has it.
pub(crate) fn claim(transaction: &mut Transaction<'_>, claim: &Claim) -> Result<Claimed, Fault> {
    reap(transaction)?;
    let mut claimed = Claimed { runs: Vec::new(), next_due: None };
    if !is_known(transaction, claim.owner)? {
        return Ok(claimed);
    }
    match &claim.wanted {
        Wanted::Run(run) => {
            if let Some(key) = key_of(transaction, run)? {
                match take(transaction, key, None, claim.owner)? {
                    Take::Taken(taken) => claimed.runs.push(*taken),
                    Take::Gone => {}
                    Take::Damaged => return Err(Fault::damaged(damaged_record(run))),
                }
            }
        }
        Wanted::Again(run) => {
            if let Some(key) = key_of(transaction, run)? {
                match take(transaction, key, Some(claim.owner), claim.owner)? {
                    Take::Taken(taken) => claimed.runs.push(*taken),
                    Take::Gone => {}
                    Take::Damaged => return Err(Fault::damaged(damaged_record(run))),
                }
            }
        }
        Wanted::Due { workflows, limit } => {
            for key in longest_due(transaction, workflows, *limit)? {
                match take(transaction, key, None, claim.owner)? {
                    Take::Taken(taken) => claimed.runs.push(*taken),
                    Take::Gone => {}
                    Take::Damaged => put_aside(transaction, key)?,
                }
            }
            let next = "SELECT min(wake_at) FROM runs
                WHERE owner IS NULL AND wake_at IS NOT NULL AND workflow = ?1 AND workflow_version = ?2";
            let mut statement = transaction.statement(next)?;
            for (workflow, version) in workflows {
                let at: Option<i64> = statement.query_row(params![workflow, version], |row| row.get(0))?;
                let at = at.map(instant);
                claimed.next_due = claimed.next_due.into_iter().chain(at).min();
            }
        }
    }
    Ok(claimed)
}

/// Gives runs back, where the lease still holds.
pub(crate) fn release(transaction: &mut Transaction<'_>, leases: &[Lease]) -> Result<(), Fault> {
    for lease in leases {
        let changed = transaction.statement(FREE)?.execute([lease.key, count(lease.fence)])?;
        if changed > 0 {
            transaction.effects.ring_all = true;
            stay_due(transaction, lease.key)?;
        }
    }
    Ok(())
}

/// Ends a lease that still holds.
const FREE: &str = concat!(
    "UPDATE runs SET owner = NULL, checksum = ",
    new_run_checksum!(
        status: "status", reason: "reason", version: "version", owner: "NULL", fence: "fence", wake_at: "wake_at",
        updated_at: "updated_at"
    ),
    " WHERE key = ?1 AND fence = ?2 AND owner IS NOT NULL AND checksum = ",
    run_checksum!()
);

/// Gives a run another owner and the next fence.
const TAKE: &str = concat!(
    "UPDATE runs SET owner = ?2, fence = fence + 1, checksum = ",
    new_run_checksum!(
        status: "status", reason: "reason", version: "version", owner: "?2", fence: "fence + 1", wake_at: "wake_at",
        updated_at: "updated_at"
    ),
    " WHERE key = ?1 AND owner IS ?3 AND checksum = ",
    run_checksum!()
);

/// What became of a claim of one run.
enum Take {
    Taken(Box<(Lease, RunRecord, String)>),
    /// Another process was quicker, or there is no such run.
    Gone,
    /// Its record is not what was written, so no process can trust it.
    Damaged,
}

/// Lets a damaged record be due no longer, or every claim would meet it again. Its checksum stays wrong, so it goes on
/// to show as damaged.
fn put_aside(transaction: &Transaction<'_>, key: i64) -> Result<(), Fault> {
    if let Some(found) = stored_run(transaction.connection, key)? {
        transaction.health.note(damaged_record(&found.record.id));
    }
    transaction.statement("UPDATE runs SET wake_at = NULL WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Returns the keys of those that are due longest, over all workflows.
fn longest_due(
    transaction: &Transaction<'_>,
    workflows: &[(String, u32)],
    limit: u32,
) -> Result<Vec<i64>, Fault> {
    let due = "SELECT wake_at, key FROM runs
        WHERE owner IS NULL AND wake_at <= ?3 AND workflow = ?1 AND workflow_version = ?2
        ORDER BY wake_at, key LIMIT ?4";
    let mut statement = transaction.statement(due)?;
    let mut found: Vec<(i64, i64)> = Vec::new();
    for (workflow, version) in workflows {
        let rows = statement.query_map(params![workflow, version, transaction.nanos(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(limit as usize);
    Ok(found.into_iter().map(|(_, key)| key).collect())
}

fn key_of(transaction: &Transaction<'_>, run: &RunId) -> Result<Option<i64>, Fault> {
    let mut find = transaction.statement("SELECT key FROM runs WHERE id = ?1")?;
    Ok(find.query_row([run.as_str()], |row| row.get(0)).optional()?)
}

/// Takes a run from the owner that has it, if that is still so.
fn take(
    transaction: &Transaction<'_>,
    key: i64,
    from: Option<OwnerId>,
    owner: OwnerId,
) -> Result<Take, Fault> {
    if transaction.statement(TAKE)?.execute(params![key, owner.0, from.map(|from| from.0)])? == 0 {
        return Ok(match stored_run(transaction.connection, key)? {
            Some(found) if !found.is_sound => Take::Damaged,
            Some(_) | None => Take::Gone,
        });
    }
    let Some(StoredRun { record, .. }) = stored_run(transaction.connection, key)? else {
        return Ok(Take::Gone);
    };
    // A run without what it was created with fails for the process that drives it, and says so.
    let definition = match definition(transaction.connection, key, &record.id)? {
        Some((text, true)) => text,
        Some((_, false)) => {
            transaction.health.note(damaged_definition(&record.id));
            "null".to_owned()
        }
        None => "null".to_owned(),
    };
    let lease = Lease { run: record.id.clone(), key, fence: record.fence };
    Ok(Take::Taken(Box::new((lease, record, definition))))
}
