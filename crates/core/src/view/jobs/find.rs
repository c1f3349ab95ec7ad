//! Which job, or which run, a text means: an id, the beginning or the end of one, or a node of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::{Brief, JobId, RunId};
use crate::time::Timestamp;

/// Why a text means nothing, or too much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no such job.
    #[error("no background job {text}")]
    NoJob {
        /// What was asked for.
        text: String,
    },
    /// There is no such run.
    #[error("no workflow run {text}")]
    NoRun {
        /// What was asked for.
        text: String,
    },
    /// Several begin or end so.
    #[error("{text} is ambiguous: {}", listed(candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// What it could mean.
        candidates: Vec<String>,
    },
}

/// As many candidates are named.
const MOST_NAMED: usize = 10;

fn listed(candidates: &[String]) -> String {
    let mut text = candidates[..candidates.len().min(MOST_NAMED)].join(", ");
    if candidates.len() > MOST_NAMED {
        text.push_str(", …");
    }
    text
}

/// Returns the job that a text means: its id, the only one that begins or ends so, or `RUN/NODE`.
///
/// # Errors
/// No job is meant, or several.
pub fn find<'a>(briefs: &'a BTreeMap<JobId, Brief>, text: &str) -> Result<&'a Brief, FindError> {
    let unknown = || FindError::NoJob { text: text.to_owned() };
    if let Some((run, node)) = text.split_once('/') {
        let run = find_run(briefs, run).map_err(|error| match error {
            FindError::NoJob { .. } | FindError::NoRun { .. } => unknown(),
            FindError::Ambiguous { .. } => error,
        })?;
        let of_run: Vec<&Brief> = briefs.values().filter(|job| job.run.as_ref() == Some(run)).collect();
        let is_node = |job: &&&Brief| job.node.as_ref().is_some_and(|id| id.as_str() == node);
        // An id has a dash where its node has a character that is not for names of files.
        let in_id = format!("wf-{run}-{node}");
        let is_job = |job: &&&Brief| job.id.as_str() == in_id;
        if let Some(job) = of_run.iter().find(is_node).or_else(|| of_run.iter().find(is_job)) {
            return Ok(job);
        }
        let begins = of_run.into_iter().filter(|job| {
            !node.is_empty() && job.node.as_ref().is_some_and(|id| id.as_str().starts_with(node))
        });
        return only(begins.collect(), text, |job| job.id.to_string())?.ok_or_else(unknown);
    }
    let id = find_id(briefs.values().map(|job| (job.id.as_str(), job.created_at)), text)?;
    briefs.get(id).ok_or_else(unknown)
}

/// Returns the id that a text means among those of some jobs: itself, or the only one that begins or ends so.
///
/// # Errors
/// No job is meant, or several.
pub fn find_id<'a>(
    ids: impl IntoIterator<Item = (&'a str, Timestamp)>,
    text: &str,
) -> Result<&'a str, FindError> {
    let unknown = || FindError::NoJob { text: text.to_owned() };
    if text.is_empty() {
        return Err(unknown());
    }
    let fits = |(id, _): &(&str, Timestamp)| id.starts_with(text) || id.ends_with(text);
    let mut fitting: Vec<(&str, Timestamp)> = ids.into_iter().filter(fits).collect();
    if let Some((id, _)) = fitting.iter().find(|(id, _)| *id == text) {
        return Ok(id);
    }
    // People know in which order they made them, and not which random digits come first.
    fitting.sort_unstable_by_key(|(id, created_at)| (*created_at, *id));
    only(fitting, text, |(id, _)| (*id).to_owned())?.map(|(id, _)| id).ok_or_else(unknown)
}

/// Returns the run that a text means: its id, with or without `run_` or `run:`, or the only one that begins or ends so.
///
/// # Errors
/// No run is meant, or several.
pub fn find_run<'a>(briefs: &'a BTreeMap<JobId, Brief>, text: &str) -> Result<&'a RunId, FindError> {
    let runs = || briefs.values().filter_map(|job| job.run.as_ref());
    let id = find_run_id(runs().map(RunId::as_str), text)?;
    runs().find(|run| run.as_str() == id).ok_or_else(|| FindError::NoRun { text: text.to_owned() })
}

/// Returns the id that a text means among those of some runs, as [`find_run`] does; each may come several times.
///
/// # Errors
/// No run is meant, or several.
pub fn find_run_id<'a>(runs: impl IntoIterator<Item = &'a str>, text: &str) -> Result<&'a str, FindError> {
    let unknown = || FindError::NoRun { text: text.to_owned() };
    let word = text.strip_prefix("run:").unwrap_or(text);
    if word.is_empty() {
        return Err(unknown());
    }
    let fits = |id: &&str| {
        let bare = id.strip_prefix("run_").unwrap_or(id);
        id.starts_with(word) || bare.starts_with(word) || id.ends_with(word)
    };
    let fitting: BTreeSet<&str> = runs.into_iter().filter(fits).collect();
    if let Some(id) = fitting.get(word) {
        return Ok(id);
    }
    only(fitting.into_iter().collect(), text, ToString::to_string)?.ok_or_else(unknown)
}

fn only<T>(fitting: Vec<T>, text: &str, name: impl Fn(&T) -> String) -> Result<Option<T>, FindError> {
    if fitting.len() > 1 {
        let candidates = fitting.iter().map(name).collect();
        return Err(FindError::Ambiguous { text: text.to_owned(), candidates });
    }
    Ok(fitting.into_iter().next())
}
