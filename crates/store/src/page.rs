//! Pages of lists: how many rows they have at most, and where the next one begins. Every backend uses the same.

use crate::record::Page;
use crate::store::StoreError;

/// The rows of a page where nobody says how many.
const USUAL: u32 = 100;
/// The most rows of a page, so that no caller makes a store build a list without end.
const AT_MOST: u32 = 1_000;

/// Returns how many rows a page gets.
pub(crate) fn rows_of_page(limit: Option<u32>) -> usize {
    limit.unwrap_or(USUAL).min(AT_MOST) as usize
}

/// Returns the number of the row after which a page begins.
pub(crate) fn place(after: Option<&str>) -> Result<Option<i64>, StoreError> {
    after
        .map(|text| text.parse().map_err(|_| StoreError::Other(Box::new(NoPlace(text.to_owned())))))
        .transpose()
}

/// Makes a page of rows of which one more than wanted was looked for.
pub(crate) fn page<T, K: ToString>(mut rows: Vec<T>, wanted: usize, key: impl Fn(&T) -> K) -> Page<T> {
    let is_last = rows.len() <= wanted;
    rows.truncate(wanted);
    let next = if is_last { None } else { rows.last().map(|row| key(row).to_string()) };
    Page { rows, next }
}

/// A text that no page gave.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no place in a list")]
struct NoPlace(String);
