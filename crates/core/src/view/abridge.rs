//! Lists in sentences that stay short however many names there are. Programs get all of them elsewhere.

use std::fmt::Display;

/// So many names of a list are told.
const LISTED: usize = 20;
/// So many are told of each end of a chain.
const LINKED: usize = 4;

/// Joins names to a list, the first of them if there are many: `a, b and 9,998 more`.
///
/// ```
/// use tidewheel_core::view::abridged_list;
///
/// assert_eq!(abridged_list(&["a", "b"]), "a, b");
/// let many: Vec<u32> = (0..1_000).collect();
/// assert!(abridged_list(&many).ends_with("18, 19 and 980 more"));
/// ```
#[must_use]
pub fn abridged_list<T: Display>(names: &[T]) -> String {
    let shown = joined(&names[..names.len().min(LISTED)], ", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {} more", super::jobs::counted_number(more)),
    }
}

/// Joins names to a chain, the two ends of it if it is long: `a -> b -> … 12 more … -> y -> z`.
///
/// ```
/// use tidewheel_core::view::abridged_chain;
///
/// assert_eq!(abridged_chain(&["a", "b", "a"]), "a -> b -> a");
/// let many: Vec<u32> = (0..1_000_000).collect();
/// assert_eq!(
///     abridged_chain(&many),
///     "0 -> 1 -> 2 -> 3 -> … 999,992 more … -> 999996 -> 999997 -> 999998 -> 999999"
/// );
/// ```
#[must_use]
pub fn abridged_chain<T: Display>(names: &[T]) -> String {
    const ARROW: &str = " -> ";
    // One name takes no more room than the words that say that one is left out.
    let Some(more) = names.len().checked_sub(2 * LINKED).filter(|more| *more > 1) else {
        return joined(names, ARROW);
    };
    let (first, last) = (&names[..LINKED], &names[names.len() - LINKED..]);
    let more = super::jobs::counted_number(more);
    format!("{}{ARROW}… {more} more …{ARROW}{}", joined(first, ARROW), joined(last, ARROW))
}

fn joined<T: Display>(names: &[T], between: &str) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_short_however_many_names_there_are() {
        for count in [0_usize, 1, 8, 9, 10, 20, 21, 22, 1_000_000] {
            let names: Vec<usize> = (0..count).collect();
            assert!(abridged_list(&names).len() < 200, "{count}");
            assert!(abridged_chain(&names).len() < 200, "{count}");
        }
        let names: Vec<usize> = (0..9).collect();
        assert_eq!(abridged_chain(&names), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8");
        assert_eq!(abridged_list::<u8>(&[]), "");
    }
}
