//! Lists of runs: one query for each status, so that an index gives the rows in their order, and a merge.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::page::{page, place, rows_of_page};
use crate::record::{Filter, Page, RunRecord, Status};
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::rows::{RECORD, StoredRun, damaged_record, record};
use crate::store::StoreError;

/// Returns a page of runs, newest first.
pub(crate) fn list(
    connection: &Connection,
    filter: &Filter,
    health: &Health,
) -> Result<Page<RunRecord>, StoreError> {
    let wanted = rows_of_page(filter.limit);
    let after = place(filter.after.as_deref())?;
    if wanted == 0 {
        return Ok(Page { rows: Vec::new(), next: None });
    }
    let all = || -> Result<Vec<StoredRun>, rusqlite::Error> {
        // All queries look at the same moment, or a run whose status changes meanwhile could be seen twice.
        let snapshot = connection.unchecked_transaction()?;
        let ids = Ids::new(&snapshot, filter)?;
        let mut rows = Vec::new();
        for status in statuses(filter) {
            let (sql, values) = query(filter, status, ids.as_ref(), after, wanted + 1);
            let mut statement = snapshot.prepare_cached(&sql)?;
            for row in statement.query_map(params_from_iter(values), record)? {
                rows.push(row?);
            }
        }
        Ok(rows)
    };
    let mut rows = all().map_err(Fault::from)?;
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.key));
    let page = page(rows, wanted, |row| row.key);
    for bad in page.rows.iter().filter(|row| !row.is_sound) {
        health.note(damaged_record(&bad.record.id));
    }
    Ok(Page { rows: page.rows.into_iter().map(|row| row.record).collect(), next: page.next })
}

/// Returns the statuses to ask for one by one; `None` is a query that needs none.
fn statuses(filter: &Filter) -> Vec<Option<Status>> {
    let mut statuses = filter.statuses.clone();
    if statuses.is_empty() {
        if filter.workflow.is_none() {
            return vec![None];
        }
        statuses = Status::ALL.to_vec();
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses.into_iter().map(Some).collect()
}

/// The ids that begin so, and whether they are so few that it is best to go through all of them.
struct Ids {
    begin: String,
    end: Option<String>,
    are_few: bool,
}

impl Ids {
    /// As many are gone through and sorted in no time; where there are more, the newest of them come soon enough
    /// among all runs.
    const FEW: u32 = 5_000;

    fn new(connection: &Connection, filter: &Filter) -> rusqlite::Result<Option<Self>> {
        let Some(begin) = filter.id_prefix.clone().filter(|prefix| !prefix.is_empty()) else {
            return Ok(None);
        };
        let end = end_of_prefix(&begin);
        let found: u32 = match &end {
            Some(end) => connection
                .prepare_cached(
                    "SELECT count(*) FROM (SELECT 1 FROM runs WHERE id >= ?1 AND id < ?2 LIMIT ?3)",
                )?
                .query_row(params![begin, end, Self::FEW], |row| row.get(0))?,
            None => connection
                .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM runs WHERE id >= ?1 LIMIT ?2)")?
                .query_row(params![begin, Self::FEW], |row| row.get(0))?,
        };
        Ok(Some(Self { begin, end, are_few: found < Self::FEW }))
    }
}

fn query(
    filter: &Filter,
    status: Option<Status>,
    ids: Option<&Ids>,
    after: Option<i64>,
    rows: usize,
) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {RECORD} FROM runs WHERE ");
    let mut values = Vec::new();
    let mut narrow = |column: &str, value: Value| {
        sql.push_str(column);
        sql.push_str(" ? AND ");
        values.push(value);
    };
    // A plus keeps SQLite from an index: it does not know how many rows each way has.
    let by_id = ids.is_some_and(|ids| ids.are_few);
    if let Some(status) = status {
        narrow(if by_id { "+status =" } else { "status =" }, Value::from(status.name().to_owned()));
    }
    if let Some(workflow) = &filter.workflow {
        narrow(if by_id { "+workflow =" } else { "workflow =" }, Value::from(workflow.clone()));
    }
    if let Some(ids) = ids {
        narrow(if by_id { "id >=" } else { "+id >=" }, Value::from(ids.begin.clone()));
        if let Some(end) = &ids.end {
            narrow(if by_id { "id <" } else { "+id <" }, Value::from(end.clone()));
        }
    }
    narrow(if by_id { "+key <" } else { "key <" }, Value::from(after.unwrap_or(i64::MAX)));
    sql.push_str("TRUE ORDER BY key DESC LIMIT ?");
    values.push(Value::from(i64::try_from(rows).unwrap_or(i64::MAX)));
    (sql, values)
}

/// Returns the first text, in the order of bytes, after all that begin so; `None` if there is none.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The numbers in the middle that are no characters are stepped over.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_comes_after_all_that_begin_so() {
        for (prefix, end) in [
            ("a", Some("b")),
            ("a%", Some("a&")),
            ("a\u{D7FF}", Some("a\u{E000}")),
            ("a\u{10FFFF}", Some("b")),
            ("\u{10FFFF}", None),
            ("é", Some("ê")),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
