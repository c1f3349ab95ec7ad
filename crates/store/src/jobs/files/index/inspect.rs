//! Compares the index with every record, for those who ask whether all is in order. Writes nothing.

use std::collections::BTreeSet;

use rustix::fs::OFlags;

use super::check::check;
use super::load::{Index, is_of_earlier_start};
use super::view::survey;
use crate::jobs::files::beneath::Root;
use crate::jobs::files::scan;
use crate::jobs::{JobStoreError, Jobs};

/// How the index stands to the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IndexState {
    /// There is none; the next turn builds it.
    #[default]
    Missing,
    /// It was written before the machine started; the next turn builds it anew.
    Earlier,
    /// It makes no sense; the next turn builds it anew.
    Damaged,
    /// It does not show these jobs as their records are.
    Differs(Vec<String>),
    /// It shows every job as its record is, after a look at so many that were written since.
    Agrees {
        /// How many records were written since it was.
        behind: usize,
    },
}

/// Compares the index with the records.
pub(in crate::jobs::files) fn inspect(root: &Root) -> Result<IndexState, JobStoreError> {
    // Others may write while we look; what is wrong stays so.
    const TRIES: usize = 4;
    let mut state = look(root)?;
    for _ in 1..TRIES {
        let before = match state {
            IndexState::Missing | IndexState::Earlier | IndexState::Agrees { .. } => break,
            IndexState::Damaged => None,
            IndexState::Differs(jobs) => Some(jobs),
        };
        state = look(root)?;
        if let (Some(before), IndexState::Differs(jobs)) = (before, &mut state) {
            jobs.retain(|job| before.contains(job));
            if jobs.is_empty() {
                return Ok(IndexState::Agrees { behind: 0 });
            }
        }
    }
    Ok(state)
}

fn look(root: &Root) -> Result<IndexState, JobStoreError> {
    const NAME: &str = "jobs/index.live";
    // It grows with the jobs that are not over.
    const MOST: u64 = 1 << 30;
    if !root.look(NAME).is_ok_and(|found| found.is_some()) {
        return Ok(IndexState::Missing);
    }
    let Ok(Some(index)) = Index::open(root, OFlags::RDONLY) else {
        let text = root.read_up_to(NAME, MOST).ok().flatten();
        let is_earlier = text.is_some_and(|(text, _)| is_of_earlier_start(&text));
        return Ok(if is_earlier { IndexState::Earlier } else { IndexState::Damaged });
    };
    let behind = check(&index, root)?.changed.len();
    let before = scan::scan(root)?.visible(root);
    let shown = survey(root)?.jobs();
    let after = scan::scan(root)?.visible(root);
    // A job that changed meanwhile may be shown as it was before or after.
    let changed = differing(&before, &after);
    let mut differing = differing(&shown, &after);
    differing.retain(|job| changed.binary_search(job).is_err());
    Ok(if differing.is_empty() { IndexState::Agrees { behind } } else { IndexState::Differs(differing) })
}

/// Returns the jobs that are not the same in both.
fn differing(one: &Jobs, other: &Jobs) -> Vec<String> {
    let briefs = one.briefs.keys().chain(other.briefs.keys());
    let briefs = briefs.filter(|id| one.briefs.get(*id) != other.briefs.get(*id)).map(ToString::to_string);
    let unreadable = one.unreadable.keys().chain(other.unreadable.keys());
    let unreadable = unreadable.filter(|name| one.unreadable.get(*name) != other.unreadable.get(*name));
    briefs.chain(unreadable.cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}
