//! Checksums of rows: each row of each table carries one, so that a row that is not what was written is found wherever
//! it is read. The function of SQL and the check of a row hash the same bytes.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

/// The name of the function that statements call: `row_checksum('table', value, …)`.
const FUNCTION: &str = "row_checksum";

/// What the checksum of a run is made of, as it stands in the table now. The key is left out: the database gives it
/// while the row is written, and the events of a run are bound to its id.
macro_rules! run_checksum {
    () => {
        "row_checksum('runs', id, workflow, workflow_version, status, reason, version, owner, fence, wake_at, \
         created_at, updated_at)"
    };
}
pub(crate) use run_checksum;

/// What the checksum of a run becomes by an update that changes these columns.
macro_rules! new_run_checksum {
    (
        status: $status:literal, reason: $reason:literal, version: $version:literal, owner: $owner:literal,
        fence: $fence:literal, wake_at: $wake_at:literal, updated_at: $updated_at:literal
    ) => {
        concat!(
            "row_checksum('runs', id, workflow, workflow_version, ",
            $status,
            ", ",
            $reason,
            ", ",
            $version,
            ", ",
            $owner,
            ", ",
            $fence,
            ", ",
            $wake_at,
            ", created_at, ",
            $updated_at,
            ")"
        )
    };
}
pub(crate) use new_run_checksum;

/// Gives a connection the function that computes checksums; a connection that writes needs it.
pub(crate) fn add_function(connection: &Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function(FUNCTION, -1, flags, |context| {
        let mut hasher = RowHasher::default();
        for index in 0..context.len() {
            hasher.add(context.get_raw(index));
        }
        Ok(hasher.finish())
    })
}

/// Returns whether the columns `values` of a row of a table have the checksum that is in the column `checksum`.
pub(crate) fn is_sound(
    row: &Row<'_>,
    table: &str,
    values: impl IntoIterator<Item = usize>,
    checksum: usize,
) -> rusqlite::Result<bool> {
    let mut hasher = RowHasher::default();
    hasher.add(ValueRef::from(table));
    for column in values {
        hasher.add(row.get_ref(column)?);
    }
    Ok(row.get_ref(checksum)?.as_i64().is_ok_and(|found| found == hasher.finish()))
}

/// Lays the values of a row out so that no two different rows give the same bytes, and hashes them: each begins with
/// its type, and a text with its length.
struct RowHasher(Vec<u8>);

impl Default for RowHasher {
    fn default() -> Self {
        Self(Vec::with_capacity(256))
    }
}

impl RowHasher {
    fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.0.push(0),
            ValueRef::Integer(number) => self.add_number(1, number.to_le_bytes()),
            ValueRef::Real(number) => self.add_number(2, number.to_bits().to_le_bytes()),
            ValueRef::Text(bytes) => self.add_bytes(3, bytes),
            ValueRef::Blob(bytes) => self.add_bytes(4, bytes),
        }
    }

    fn add_number(&mut self, kind: u8, bytes: [u8; 8]) {
        self.0.push(kind);
        self.0.extend_from_slice(&bytes);
    }

    fn add_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.add_number(kind, (bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn finish(self) -> i64 {
        short_hash(&self.0)
    }
}

/// Returns the first 8 bytes of the hash. It takes all bytes at once: a `blake3::Hasher` that is fed piece by piece costs
/// several times as much for the few bytes that a row has.
pub(crate) fn short_hash(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    i64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_of<'a>(table: &'a str, values: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
        let mut hasher = RowHasher::default();
        hasher.add(ValueRef::from(table));
        for value in values {
            hasher.add(value);
        }
        hasher.finish()
    }

    #[test]
    fn the_function_of_sql_and_the_check_of_a_row_agree() {
        let connection = Connection::open_in_memory().unwrap();
        add_function(&connection).unwrap();
        let look = "SELECT 'ü', NULL, -3, x'00ff', 1.5, row_checksum('t', 'ü', NULL, -3, x'00ff', 1.5)";
        let is_right = connection.query_row(look, [], |row| is_sound(row, "t", 0..5, 5)).unwrap();
        assert!(is_right);
        let of_another = connection.query_row(look, [], |row| is_sound(row, "u", 0..5, 5)).unwrap();
        assert!(!of_another, "a row of one table is none of another");
        assert_eq!(
            checksum_of("t", [ValueRef::Integer(1), ValueRef::Text(b"a")]),
            connection.query_row("SELECT row_checksum('t', 1, 'a')", [], |row| row.get::<_, i64>(0)).unwrap()
        );
    }

    #[test]
    fn values_that_are_cut_at_another_place_have_another_checksum() {
        let text = |text: &'static str| ValueRef::Text(text.as_bytes());
        assert_ne!(checksum_of("t", [text("ab"), text("c")]), checksum_of("t", [text("a"), text("bc")]));
        assert_ne!(
            checksum_of("t", [ValueRef::Null, text("")]),
            checksum_of("t", [text(""), ValueRef::Null])
        );
        assert_ne!(checksum_of("t", [ValueRef::Integer(0)]), checksum_of("t", [ValueRef::Null]));
    }
}
