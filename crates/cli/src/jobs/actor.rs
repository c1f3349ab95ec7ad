//! Who acts: the name that approvals and events carry.

/// The variables that name somebody, the most particular first.
const NAMES: [&str; 5] =
    ["TIDEWHEEL_APPROVAL_ACTOR", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "USER", "USERNAME"];

/// Returns the name of whoever acts, as the environment has it.
pub(super) fn actor(variable: impl Fn(&str) -> Option<String>) -> String {
    let names = NAMES.into_iter().filter_map(variable);
    let named = names.map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
    named.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_59_the_first_name_that_is_not_blank_counts() {
        let of = |set: &[(&str, &str)]| {
            actor(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), "unknown");
        assert_eq!(of(&[("USERNAME", "eve"), ("USER", "ada")]), "ada");
        assert_eq!(of(&[("TIDEWHEEL_APPROVAL_ACTOR", "  "), ("GIT_COMMITTER_NAME", "bob")]), "bob");
        assert_eq!(of(&[("TIDEWHEEL_APPROVAL_ACTOR", "cat"), ("GIT_AUTHOR_NAME", "bob")]), "cat");
    }
}
