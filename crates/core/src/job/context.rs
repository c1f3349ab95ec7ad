//! Where a job runs because of those before it: the worktree that one of them made comes along the edges. It looks at
//! records and changes one.

use serde_json::Value;

use super::id::JobId;
use super::metadata::Metadata;
use super::record::Record;

/// Where a job runs, and what is known of that place.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    root: String,
    worktree: Vec<(String, Value)>,
    from: JobId,
}

/// Those before a job ran at two places, and it cannot run at both.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the jobs before it ran in two different worktrees: `{}` of job {} and `{}` of job {}",
    .0.0, .0.1, .1.0, .1.1
)]
pub struct ContextError((String, JobId), (String, JobId));

/// Returns where a job is to run because of those before it; `None` if they say nothing.
///
/// A worktree that one of them has removed is no place any more.
///
/// # Errors
/// They ran in two different worktrees.
pub fn inherited<'a>(
    before: impl IntoIterator<Item = &'a Record> + Clone,
) -> Result<Option<Context>, ContextError> {
    let cleaned: Vec<&str> = before
        .clone()
        .into_iter()
        .filter_map(|record| record.metadata.text(Metadata::WORKTREE_CLEANED))
        .collect();
    let mut found: Option<Context> = None;
    for record in before {
        let Some(context) = Context::of(record) else { continue };
        if cleaned.contains(&context.place()) {
            continue;
        }
        match &found {
            Some(other) if other.place() != context.place() => {
                let named = |context: &Context| (context.place().to_owned(), context.from.clone());
                return Err(ContextError(named(other), named(&context)));
            }
            Some(_) => {}
            None => found = Some(context),
        }
    }
    Ok(found)
}

impl Context {
    /// Returns where a job ran; `None` if that was the root of the repository.
    fn of(record: &Record) -> Option<Self> {
        let root = record.metadata.text(Metadata::EXECUTION_ROOT).map(str::trim);
        let root = root.filter(|root| !root.is_empty() && *root != ".")?;
        let is_of_worktree = |(name, _): &(&str, &Value)| name.starts_with("worktree_");
        let worktree = record.metadata.iter().filter(is_of_worktree);
        let worktree = worktree.map(|(name, value)| (name.to_owned(), value.clone()));
        Some(Self { root: root.to_owned(), worktree: worktree.collect(), from: record.id.clone() })
    }

    /// Returns what two jobs have to agree on.
    fn place(&self) -> &str {
        let path = self.worktree.iter().find(|(name, _)| name == Metadata::WORKTREE_PATH);
        path.and_then(|(_, value)| value.as_str()).unwrap_or(&self.root)
    }

    /// Lets a job run there. Tells whether its record is another one now.
    pub fn give_to(&self, record: &mut Record) -> bool {
        let before = record.metadata.clone();
        record.metadata.clear_all("worktree_");
        record.metadata.set(Metadata::EXECUTION_ROOT, self.root.as_str());
        for (name, value) in &self.worktree {
            record.metadata.set(name, value.clone());
        }
        // Who has no owner's name was written by hand, and belongs to whoever had it first.
        if record.metadata.get(Metadata::WORKTREE_OWNER).is_none() && !self.worktree.is_empty() {
            record.metadata.set(Metadata::WORKTREE_OWNER, self.from.as_str());
        }
        record.metadata != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn record(id: &str, values: &[(&str, &str)]) -> Record {
        let mut record = Record::new(JobId::new(id).unwrap(), Timestamp::from_millis(0));
        record.metadata.set(Metadata::EXECUTION_ROOT, ".");
        for (name, value) in values {
            record.metadata.set(name, *value);
        }
        record
    }

    fn in_tree(id: &str, path: &str) -> Record {
        record(id, &[("execution_root", path), ("worktree_path", path), ("worktree_owner", "maker")])
    }

    #[test]
    fn a_worktree_comes_along_and_the_root_is_no_place_of_its_own() {
        let before = [record("a", &[]), in_tree("b", "t/1"), in_tree("c", "t/1")];
        let context = inherited(&before).unwrap().unwrap();
        let mut next = record("next", &[]);
        assert!(context.give_to(&mut next));
        assert_eq!(next.metadata.text("execution_root"), Some("t/1"));
        assert_eq!(next.metadata.text("worktree_owner"), Some("maker"));
        assert!(!context.give_to(&mut next));
        assert_eq!(inherited(&[record("a", &[])]).unwrap(), None);
        assert_eq!(inherited(&[]).unwrap(), None);
    }

    #[test]
    fn two_worktrees_are_named_both() {
        let error = inherited(&[in_tree("a", "t/1"), in_tree("b", "t/2")]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the jobs before it ran in two different worktrees: `t/1` of job a and `t/2` of job b"
        );
    }

    #[test]
    fn a_worktree_that_was_removed_is_no_place_any_more() {
        let cleanup = record("cleanup", &[("worktree_cleaned", "t/1")]);
        assert_eq!(inherited(&[in_tree("a", "t/1"), cleanup.clone()]).unwrap(), None);
        let other = inherited(&[in_tree("a", "t/1"), cleanup, in_tree("b", "t/2")]).unwrap().unwrap();
        assert_eq!(other.place(), "t/2");
    }
}
