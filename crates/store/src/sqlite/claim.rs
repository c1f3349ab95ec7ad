//! Claims: runs that nobody drives get an owner and a higher fence, those that are due longest first.

use rusqlite::{OptionalExtension as _, params};
use tidewheel_core::fact::RunId;

use crate::record::{Lease, OwnerId, RunRecord};
use crate::sqlite::append::stay_due;
use crate::sqlite::fault::Fault;
use crate::sqlite::owner::{is_known, reap};
use crate::sqlite::rows::{count, instant, record, text};
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
                claimed.runs.extend(take(transaction, key, None, claim.owner)?);
            }
        }
        Wanted::Again(run) => {
            if let Some(key) = key_of(transaction, run)? {
                claimed.runs.extend(take(transaction, key, Some(claim.owner), claim.owner)?);
            }
        }
        Wanted::Due { workflows, limit } => {
            for key in longest_due(transaction, workflows, *limit)? {
                claimed.runs.extend(take(transaction, key, None, claim.owner)?);
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
        let free = "UPDATE runs SET owner = NULL WHERE key = ?1 AND fence = ?2 AND owner IS NOT NULL";
        let changed = transaction.statement(free)?.execute([lease.key, count(lease.fence)])?;
        if changed > 0 {
            transaction.effects.ring_all = true;
            stay_due(transaction, lease.key)?;
        }
    }
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

/// Takes a run from whoever has it, if that is still so.
fn take(
    transaction: &Transaction<'_>,
    key: i64,
    from: Option<OwnerId>,
    owner: OwnerId,
) -> Result<Option<(Lease, RunRecord, String)>, Fault> {
    let take = "UPDATE runs SET owner = ?2, fence = fence + 1 WHERE key = ?1 AND owner IS ?3";
    if transaction.statement(take)?.execute(params![key, owner.0, from.map(|from| from.0)])? == 0 {
        return Ok(None);
    }
    // A run without what it was created with would fail for whoever drives it, and for nobody else.
    let find =
        "SELECT runs.key, id, workflow, workflow_version, status, reason, version, owner, fence, wake_at,
            created_at, updated_at, ifnull(body, 'null')
        FROM runs LEFT JOIN definitions ON definitions.run = runs.key WHERE runs.key = ?1";
    let ((_, record), definition) =
        transaction.statement(find)?.query_row([key], |row| Ok((record(row)?, text(row, 12)?)))?;
    let lease = Lease { run: record.id.clone(), key, fence: record.fence };
    Ok(Some((lease, record, definition)))
}
