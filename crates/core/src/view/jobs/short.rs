//! Short names of jobs and runs for people: as much of an id as tells it from all others, written such that every
//! command takes it for the id. Ids that people chose stay as they are.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::job::RunId;

/// The short names of the jobs and runs of a store.
#[derive(Debug)]
pub struct ShortIds<'a> {
    jobs: Ids<'a>,
    /// Names of jobs that cannot be read: whoever asks for one of them means it.
    unreadable: &'a BTreeMap<String, String>,
    /// The ids of all runs, each with what stands behind its `run_`.
    runs: Vec<(&'a str, &'a str)>,
    bare_runs: Vec<&'a str>,
    runs_from_behind: Vec<&'a str>,
}

/// Fewer digits of a run are not recognised again, and are soon those of another one, too.
const LEAST_DIGITS: usize = 4;

/// What the ids of runs begin with that we made.
const RUN: &str = "run_";

/// What the ids of jobs of runs begin with.
const JOB: &str = "wf-";

impl<'a> ShortIds<'a> {
    /// Looks at the ids of all jobs of a store with those of their runs, and at the names of those that cannot be read.
    #[must_use]
    pub fn of(
        jobs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        unreadable: &'a BTreeMap<String, String>,
    ) -> Self {
        let (all, ids): (Vec<&str>, Vec<Option<&str>>) = jobs.into_iter().unzip();
        let mut ids: Vec<&str> = ids.into_iter().flatten().collect();
        // Those of a run mostly come one after the other, and to sort takes longer.
        ids.dedup();
        ids.sort_unstable();
        ids.dedup();
        let runs: Vec<(&str, &str)> =
            ids.iter().map(|id| (*id, id.strip_prefix(RUN).unwrap_or(id))).collect();
        let mut bare_runs: Vec<&str> = runs.iter().map(|(_, bare)| *bare).collect();
        bare_runs.sort_unstable();
        let mut runs_from_behind = ids;
        runs_from_behind.sort_unstable_by(|one, other| from_behind(one, other));
        Self { jobs: Ids::new(all), unreadable, runs, bare_runs, runs_from_behind }
    }

    /// Returns the short name of a job: its node where no other job begins or ends so, else `RUN/NODE`.
    #[must_use]
    pub fn job<'i>(&self, id: &'i str) -> Cow<'i, str> {
        self.of_run(id).unwrap_or(Cow::Borrowed(id))
    }

    /// Returns the short name of a job of a run.
    fn of_run<'i>(&self, id: &'i str) -> Option<Cow<'i, str>> {
        let rest = id.strip_prefix(JOB)?;
        // The digits of a run that we made are as many as there can be before a dash.
        let (run, tail) = rest.split_once('-')?;
        let place = self.runs.binary_search_by(|(known, _)| (*known).cmp(run)).ok()?;
        if tail.is_empty() || !self.jobs.has(id) {
            return None;
        }
        if !self.unreadable.contains_key(tail) && self.jobs.is_only(tail, id) {
            return Some(Cow::Borrowed(tail));
        }
        let digits = self.digits(self.runs[place].0, "")?;
        Some(Cow::Owned(format!("{digits}/{tail}")))
    }

    /// Returns the short name of a run: as many of its digits as no other run begins or ends with.
    #[must_use]
    pub fn run<'i>(&self, id: &'i RunId) -> Cow<'i, str> {
        match self.digits(id.as_str(), RUN) {
            Some(digits) => Cow::Owned(format!("{RUN}{digits}")),
            None => Cow::Borrowed(id.as_str()),
        }
    }

    /// Returns a text in which the ids of jobs and runs are their short names. Paths stay as they are.
    #[must_use]
    pub fn within<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut short: Option<String> = None;
        let (mut done, mut at) = (0, 0);
        while at < text.len() {
            let rest = &text[at..];
            let length = rest.find(|c: char| !is_of_id(c)).unwrap_or(rest.len());
            let word = &rest[..length];
            let is_path = text[..at].ends_with('/') || rest[length..].starts_with('/');
            if !is_path && let Some(name) = self.named(word) {
                let short = short.get_or_insert_default();
                short.push_str(&text[done..at]);
                short.push_str(&name);
                done = at + length;
            }
            at += length;
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
        match short {
            Some(short) => Cow::Owned(short + &text[done..]),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns the short name of the job or run with this id.
    fn named<'w>(&self, word: &'w str) -> Option<Cow<'w, str>> {
        if word.starts_with(JOB) {
            return self.of_run(word);
        }
        let place = self.runs.binary_search_by(|(id, _)| (*id).cmp(word)).ok()?;
        let digits = self.digits(self.runs[place].0, RUN)?;
        Some(Cow::Owned(format!("{RUN}{digits}")))
    }

    /// Returns so many digits of a run of ours that they mean no other one behind a prefix.
    fn digits<'r>(&self, run: &'r str, prefix: &str) -> Option<&'r str> {
        let bare = run.strip_prefix(RUN)?;
        if bare.len() != 32 || !bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let is_only = |length: &usize| {
            let text = format!("{prefix}{}", &bare[..*length]);
            let first = self.runs.partition_point(|(id, _)| *id < text.as_str());
            let begins = self.runs[first..].iter().map(|(id, _)| *id).take_while(|id| id.starts_with(&text));
            let first = self.bare_runs.partition_point(|bare| *bare < text.as_str());
            let bare_begins = self.bare_runs[first..].iter().take_while(|bare| bare.starts_with(&text));
            let first = self.runs_from_behind.partition_point(|id| from_behind(id, &text).is_lt());
            let ends = self.runs_from_behind[first..].iter().take_while(|id| id.ends_with(&text));
            begins.chain(ends.copied()).all(|id| id == run) && bare_begins.copied().all(|other| other == bare)
        };
        (LEAST_DIGITS..bare.len()).find(is_only).map(|length| &bare[..length])
    }
}

/// The ids of all jobs. Who asks for few of them is answered by a look at each; who asks for many, with a search.
#[derive(Debug)]
struct Ids<'a> {
    all: Vec<&'a str>,
    asked: Cell<usize>,
    sorted: OnceCell<Sorted<'a>>,
}

#[derive(Debug)]
struct Sorted<'a> {
    by_beginning: Vec<&'a str>,
    by_end: Vec<&'a str>,
}

impl<'a> Ids<'a> {
    const FEW: usize = 100;

    const fn new(all: Vec<&'a str>) -> Self {
        Self { all, asked: Cell::new(0), sorted: OnceCell::new() }
    }

    /// Tells whether a job has this id.
    fn has(&self, id: &str) -> bool {
        match self.sorted() {
            Some(sorted) => sorted.by_beginning.binary_search(&id).is_ok(),
            None => self.all.contains(&id),
        }
    }

    /// Tells whether a text means this job and no other.
    fn is_only(&self, text: &str, id: &str) -> bool {
        let Some(sorted) = self.sorted() else {
            let mut others = self.all.iter().filter(|other| **other != id);
            return !others.any(|other| other.starts_with(text) || other.ends_with(text));
        };
        let first = sorted.by_beginning.partition_point(|other| *other < text);
        let begins = sorted.by_beginning[first..].iter().take_while(|other| other.starts_with(text));
        let first = sorted.by_end.partition_point(|other| from_behind(other, text).is_lt());
        let ends = sorted.by_end[first..].iter().take_while(|other| other.ends_with(text));
        begins.chain(ends).all(|other| *other == id)
    }

    fn sorted(&self) -> Option<&Sorted<'a>> {
        self.asked.set(self.asked.get().saturating_add(1));
        if self.asked.get() <= Self::FEW {
            return None;
        }
        Some(self.sorted.get_or_init(|| {
            let (mut by_beginning, mut by_end) = (self.all.clone(), self.all.clone());
            by_beginning.sort_unstable();
            by_end.sort_unstable_by(|one, other| from_behind(one, other));
            Sorted { by_beginning, by_end }
        }))
    }
}

/// Compares two texts by their last characters first.
fn from_behind(one: &str, other: &str) -> Ordering {
    one.bytes().rev().cmp(other.bytes().rev())
}

const fn is_of_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::super::{find, find_run};
    use super::*;
    use crate::job::{Brief, JobId};
    use serde_json::json;

    fn jobs(ids: &[(&str, Option<(&str, &str)>)]) -> BTreeMap<JobId, Brief> {
        let brief = |(id, of): &(&str, Option<(&str, &str)>)| {
            let mut form = json!({ "id": id, "status": "queued", "created_at": "2026-02-01T12:00:00Z", "name": id,
                "is_runnable": true, "schedule": {} });
            if let Some((run, node)) = of {
                form["run"] = json!(run);
                form["node"] = json!(node);
            }
            let brief: Brief = serde_json::from_value(form).unwrap();
            (brief.id.clone(), brief)
        };
        ids.iter().map(brief).collect()
    }

    /// Returns the jobs of runs with such bits, each with such nodes.
    fn flows(runs: &[(u128, &[&str])], others: &[&str]) -> BTreeMap<JobId, Brief> {
        let mut all: Vec<(String, String, String)> = Vec::new();
        for (bits, nodes) in runs {
            let run = RunId::of_bits(*bits);
            for node in *nodes {
                let id = JobId::of_node(&run, &crate::job::NodeId::new(node).unwrap()).unwrap();
                all.push((id.to_string(), run.to_string(), (*node).to_owned()));
            }
        }
        let mut of: Vec<(&str, Option<(&str, &str)>)> =
            all.iter().map(|(id, run, node)| (id.as_str(), Some((run.as_str(), node.as_str())))).collect();
        of.extend(others.iter().map(|id| (*id, None)));
        jobs(&of)
    }

    fn names_of(briefs: &BTreeMap<JobId, Brief>) -> impl Iterator<Item = (&str, Option<&str>)> {
        briefs.values().map(|job| (job.id.as_str(), job.run.as_ref().map(RunId::as_str)))
    }

    /// Returns the short names, each of which must mean its job.
    fn shorts(briefs: &BTreeMap<JobId, Brief>) -> Vec<String> {
        let none = BTreeMap::new();
        let short = ShortIds::of(names_of(briefs), &none);
        let name = |id: &JobId| {
            let name = short.job(id.as_str());
            assert_eq!(find(briefs, &name).map(|job| &job.id), Ok(id), "{name}");
            name.into_owned()
        };
        let names: Vec<String> = briefs.keys().map(name).collect();
        // Whoever asks for many is told the same.
        while short.jobs.sorted().is_none() {}
        assert_eq!(briefs.keys().map(name).collect::<Vec<_>>(), names);
        for run in briefs.values().filter_map(|job| job.run.as_ref()) {
            let name = short.run(run);
            assert_eq!(find_run(briefs, &name), Ok(run), "{name}");
        }
        names
    }

    const ONE: u128 = 0x1466_0000_0000_0000_0000_0000_0000_000a;

    #[test]
    fn a_node_is_enough_where_nothing_else_begins_or_ends_so() {
        assert_eq!(shorts(&flows(&[(ONE, &["build", "test"])], &["mine"])), ["mine", "build", "test"]);
        // Another run has the same node, another node ends so, a job of somebody begins so or is called so.
        assert_eq!(
            shorts(&flows(&[(ONE, &["build"]), (1 << 124, &["build"])], &[])),
            ["1000/build", "1466/build"]
        );
        assert_eq!(shorts(&flows(&[(ONE, &["build", "rebuild"])], &[])), ["1466/build", "rebuild"]);
        assert_eq!(shorts(&flows(&[(ONE, &["build"])], &["build-2"])), ["build-2", "1466/build"]);
        assert_eq!(shorts(&flows(&[(ONE, &["build"])], &["build"])), ["build", "1466/build"]);
        // The digits of a run may read like a node.
        assert_eq!(shorts(&flows(&[(ONE, &["a.b", "b"])], &[])), ["1466/a-b", "1466/b"]);
    }

    #[test]
    fn runs_have_as_many_digits_as_they_need() {
        let near = flows(&[(ONE, &["x"]), (ONE + (1 << 100), &["x"])], &[]);
        assert_eq!(shorts(&near), ["1466000/x", "1466001/x"]);
        // The end of one is the beginning of another.
        let ends = flows(&[(ONE, &["x"]), (0x1466, &["x"])], &[]);
        assert_eq!(shorts(&ends), ["0000/x", "14660/x"]);
    }

    #[test]
    fn names_of_jobs_that_cannot_be_read_are_taken() {
        let briefs = flows(&[(ONE, &["build"])], &[]);
        let unreadable = BTreeMap::from([("build".to_owned(), "no JSON".to_owned())]);
        let id = briefs.keys().next().unwrap();
        assert_eq!(ShortIds::of(names_of(&briefs), &unreadable).job(id.as_str()), "1466/build");
    }

    #[test]
    fn ids_in_a_text_are_short_and_paths_are_not() {
        let briefs = flows(&[(ONE, &["build"])], &[]);
        let none = BTreeMap::new();
        let short = ShortIds::of(names_of(&briefs), &none);
        let id = briefs.keys().next().unwrap();
        let run = RunId::of_bits(ONE);
        let text = format!(
            "wait on {id} (failed), command_patch:{id}, of {run}; 订单 .tidewheel/jobs/{id}/stdout.log"
        );
        let path = format!(".tidewheel/jobs/{id}/stdout.log");
        assert_eq!(
            short.within(&text),
            format!("wait on build (failed), command_patch:build, of run_1466; 订单 {path}")
        );
        assert_eq!(short.within("nothing of ours"), Cow::Borrowed("nothing of ours"));
        assert_eq!(short.within(&format!("{id}x")), format!("{id}x"));
    }
}
