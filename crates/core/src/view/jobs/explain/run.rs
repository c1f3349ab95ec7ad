//! Why a run is as it is: its state in a sentence, the roots of all that waits, what failed, and what is next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::super::runs::{RunCounts, RunLine, RunStatus};
use super::cause::{Cause, CauseKind, Search};
use super::chain::Words;
use super::job::World;
use super::next::grouped;
use super::page::{Line, Part, told};
use super::text::{called, command, exit_beside, instant, jobs, listed};
use crate::job::{Brief, Inspection, JobId, JobStatus, Manifest, NodeId, Question, RunId};
use crate::time::Timestamp;
use crate::view::{between, long, moment};

/// Why a run is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunExplanation {
    /// The version of this form.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// How it is.
    pub status: RunStatus,
    /// How its jobs are.
    pub jobs: RunCounts,
    /// When it was enqueued.
    #[serde(serialize_with = "instant")]
    pub created_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "instant")]
    pub finished_at: Option<Timestamp>,
    /// All of it in a sentence.
    pub summary: String,
    /// The roots of all that waits or is blocked, those that hold up most first.
    pub causes: Vec<RootCause>,
    /// What failed or was cancelled, with what failed and was skipped by its policy.
    pub failures: Vec<Failed>,
    /// What happens next.
    pub next: RunNext,
    #[serde(skip)]
    parts: Vec<Part>,
}

/// Something that holds jobs of a run up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RootCause {
    /// The root.
    pub cause: Cause,
    /// The jobs of the run that wait for it or are blocked by it, without itself.
    pub holds_up: Vec<JobId>,
}

/// A job of a run that did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The job.
    pub job: JobId,
    /// Its node.
    pub node: Option<NodeId>,
    /// Where it stands.
    pub status: JobStatus,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// How many times it was started.
    pub attempts: u32,
    /// What happened, if its last event tells it.
    pub message: Option<String>,
}

/// What happens to a run next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunNext {
    /// In a sentence.
    pub text: String,
    /// When the next of its timers is over.
    #[serde(serialize_with = "instant")]
    pub at: Option<Timestamp>,
    /// What to type.
    pub commands: Vec<String>,
}

/// So many causes and failures are told; programs get all of them.
const MOST: usize = 5;

/// The run that is explained.
#[derive(Clone, Copy)]
pub struct RunSubject<'a> {
    /// The run.
    pub run: &'a RunId,
    /// What it was enqueued with, if that can be read: it knows of the jobs that are gone, too.
    pub manifest: Option<&'a Manifest>,
}

/// Explains a run.
///
/// # Errors
/// What has to be known of the world first: ask again with the answers among the facts.
pub fn explain_run(world: World<'_>, subject: RunSubject<'_>) -> Result<RunExplanation, BTreeSet<Question>> {
    let World { briefs, unreadable, lost, last_words, facts, capacity, now, may_ask } = world;
    let RunSubject { run, manifest } = subject;
    let line = RunLine::of(run, briefs.values().filter(|job| job.run.as_ref() == Some(run)).collect());
    let line = match manifest {
        Some(manifest) => line.among(manifest),
        None => line,
    };
    let mut inspection = Inspection::new(briefs, unreadable, facts, capacity, now);
    let mut search = Search {
        briefs,
        unreadable,
        facts,
        inspection: &mut inspection,
        lost,
        last_words,
        questions: BTreeSet::new(),
        may_ask,
    };
    let held = line.jobs.iter().copied().filter(|job| is_held(job));
    let mut roots = Roots::default();
    let pairs: Vec<(String, JobId)> =
        held.map(|job| (roots.of(&mut search, &job.id), job.id.clone())).collect();
    if !search.questions.is_empty() {
        return Err(search.questions);
    }
    let mut causes: Vec<RootCause> = grouped(pairs)
        .into_iter()
        .filter_map(|(root, held)| {
            let cause = roots.causes.get(&root)?.clone();
            let holds_up = held.into_iter().filter(|id| id.as_str() != root).collect();
            Some(RootCause { cause, holds_up })
        })
        .collect();
    // The order of the jobs stays where as many are held up.
    causes.sort_by_key(|root| std::cmp::Reverse(root.holds_up.len()));
    let failures: Vec<Failed> = line
        .jobs
        .iter()
        .filter(|job| {
            matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) || job.is_skipped_failure()
        })
        .map(|job| Failed {
            job: job.id.clone(),
            node: job.node.clone(),
            status: job.status,
            exit_code: job.exit_code,
            attempts: job.attempt,
            message: last_words(&job.id),
        })
        .collect();
    let words = Words { briefs, run: Some(run), now };
    let next = next(&line, &causes, words);
    let mut explanation = RunExplanation {
        version: 1,
        run: run.clone(),
        status: line.status,
        jobs: line.counts,
        created_at: Some(line.created_at),
        finished_at: line.finished_at,
        summary: summary(&line, now),
        causes,
        failures,
        next,
        parts: Vec::new(),
    };
    explanation.parts = explanation.parts(words);
    Ok(explanation)
}

/// Tells whether something holds a job up that is worth a word.
fn is_held(job: &Brief) -> bool {
    match job.status {
        JobStatus::Queued
        | JobStatus::WaitingOnDeps
        | JobStatus::WaitingOnApproval
        | JobStatus::WaitingOnLocks
        | JobStatus::BlockedByDependency
        | JobStatus::BlockedByApproval => true,
        JobStatus::Running
        | JobStatus::Succeeded
        | JobStatus::Failed
        | JobStatus::Cancelled
        | JobStatus::Skipped => job.goes_back.is_some(),
    }
}

/// The root behind each job that was looked at: the first thing that it waits on decides.
#[derive(Default)]
struct Roots {
    by_job: BTreeMap<JobId, String>,
    causes: BTreeMap<String, Cause>,
}

impl Roots {
    /// Returns the root behind a job. Every job is looked at once, whoever asks.
    fn of(&mut self, search: &mut Search<'_, '_>, id: &JobId) -> String {
        let mut way: Vec<JobId> = Vec::new();
        let mut on_way: BTreeSet<JobId> = BTreeSet::new();
        let mut at = id.clone();
        let root = loop {
            if let Some(root) = self.by_job.get(&at) {
                break root.clone();
            }
            let mut cause = search.cause(&at);
            let is_circle = !on_way.insert(at.clone());
            way.push(at.clone());
            match cause.waits_on.first().filter(|_| !is_circle) {
                Some(on) => at = on.clone(),
                None => {
                    if is_circle {
                        (cause.kind, cause.root) = (CauseKind::Cycle, true);
                    }
                    let root = cause.job.clone();
                    self.causes.insert(root.clone(), cause);
                    break root;
                }
            }
        };
        self.by_job.extend(way.into_iter().map(|job| (job, root.clone())));
        root
    }
}

fn summary(line: &RunLine<'_>, now: Timestamp) -> String {
    let id = line.id;
    let counts = line.counts.said();
    let age = long(between(line.created_at, line.finished_at.unwrap_or(now)));
    match line.status {
        RunStatus::Running => format!("Run {id} has been running for {age}: {counts}."),
        RunStatus::Waiting => {
            format!("Run {id} was enqueued {age} ago, and none of its jobs runs: {counts}.")
        }
        RunStatus::Succeeded => match line.counts.said_of_skipped_failures() {
            Some(skipped) => format!("Run {id} succeeded in {age} with {skipped}: {counts}."),
            None => format!("Run {id} succeeded in {age}: {counts}."),
        },
        RunStatus::Failed => format!("Run {id} failed: {counts}."),
        RunStatus::Blocked => format!("Run {id} is blocked: {counts}."),
        RunStatus::Incomplete => {
            let gone: Vec<String> = line.missing.keys().map(ToString::to_string).collect();
            let (record, it) = if gone.len() == 1 { ("record", "it") } else { ("records", "them") };
            let gone = listed(&gone);
            format!(
                "Run {id} is incomplete: {counts}. The {record} of {gone} cannot be found or read, so that \
                 the result of {it} is unknown."
            )
        }
    }
}

fn next(line: &RunLine<'_>, causes: &[RootCause], words: Words<'_>) -> RunNext {
    let at = causes.iter().filter_map(|root| root.cause.until).filter(|at| *at > words.now).min();
    let mut commands = Vec::new();
    let text = if line.status.is_over() {
        if line.status == RunStatus::Succeeded {
            "Nothing: it is over.".to_owned()
        } else if line.status == RunStatus::Incomplete {
            commands.push(command("doctor"));
            "Nothing: put the records back from a backup, or run the flow again.".to_owned()
        } else {
            commands.push(command(&format!("runs retry {}", line.id)));
            "Nothing automatic: it is over. A retry runs again what did not succeed.".to_owned()
        }
    } else {
        let running = line.counts.running;
        let mut text = match running {
            0 => "No job of it runs.".to_owned(),
            1 => "1 job runs, and what is after it goes on when it ends.".to_owned(),
            many => format!("{many} jobs run, and what is after them goes on when they end."),
        };
        if let Some(at) = at {
            let _ = write!(text, " The next timer is over {}.", moment(at, words.now));
        }
        if causes.iter().any(|root| root.cause.kind == CauseKind::Ready) {
            text.push_str(" The next pass of the scheduler starts what can start.");
            commands.push(command("tick"));
        }
        let open = causes.iter().filter(|root| root.cause.kind == CauseKind::Approval).count();
        if open > 0 {
            text.push_str(" It goes on when a person has decided.");
        }
        text
    };
    RunNext { text, at, commands }
}

impl RunExplanation {
    /// Returns the page that people read.
    #[must_use]
    pub fn page(&self) -> &[Part] {
        &self.parts
    }

    fn parts(&self, words: Words<'_>) -> Vec<Part> {
        let mut parts = vec![Part { heading: None, lines: vec![Line::Sentence(self.summary.clone())] }];
        let mut add = |heading: &'static str, lines: Vec<Line>| {
            if !lines.is_empty() {
                parts.push(Part { heading: Some(heading), lines });
            }
        };
        add("What holds it up", self.cause_lines(words));
        add("Failures", self.failure_lines(words));
        let mut next = vec![Line::Sentence(self.next.text.clone())];
        next.extend(self.next.commands.iter().cloned().map(Line::Command));
        add("Next", next);
        parts
    }

    fn cause_lines(&self, words: Words<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        for RootCause { cause, holds_up } in self.causes.iter().take(MOST) {
            let name = words
                .briefs
                .get(cause.job.as_str())
                .map_or_else(|| cause.job.clone(), |job| called(job, words.run));
            let is = words.root(cause, false);
            let is_blocked =
                holds_up.iter().filter_map(|id| words.briefs.get(id)).all(|job| job.status.is_blocked());
            let verb = match (is_blocked, holds_up.len()) {
                (true, 1) => "is blocked by it",
                (true, _) => "are blocked by it",
                (false, 1) => "waits on it",
                (false, _) => "wait on it",
            };
            let held = match holds_up.len() {
                0 => String::new(),
                count => {
                    let names = holds_up.iter().filter_map(|id| words.briefs.get(id));
                    let names: Vec<String> = names.map(|job| called(job, words.run)).collect();
                    format!(" {} {verb}: {}.", jobs(count), listed(&names))
                }
            };
            lines.push(Line::Sentence(format!("{name} {is}.{held}")));
            if let Some(remedy) = &cause.remedy {
                lines.push(Line::Sentence(remedy.text.clone()));
                lines.extend(remedy.commands.iter().cloned().map(Line::Command));
            }
        }
        more(&mut lines, self.causes.len());
        lines
    }

    fn failure_lines(&self, words: Words<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        for failed in self.failures.iter().take(MOST) {
            let name = words
                .briefs
                .get(&failed.job)
                .map_or_else(|| failed.job.to_string(), |job| called(job, words.run));
            let what = if failed.status == JobStatus::Cancelled { "was cancelled" } else { "failed" };
            let passes = if failed.status == JobStatus::Skipped { ", which its policy skips" } else { "" };
            // A person who ends a job does it with a signal, too.
            let is_killed = failed.status != JobStatus::Cancelled;
            let code = match failed.exit_code {
                Some(code) if !is_killed => format!(" with exit code {code}"),
                code => exit_beside(code, failed.message.as_deref()),
            };
            let tries = if failed.attempts > 1 {
                format!(" after {} attempts", failed.attempts)
            } else {
                String::new()
            };
            let said = told(failed.message.as_deref(), failed.exit_code);
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            lines.push(Line::Sentence(format!("{name} {what}{code}{tries}{passes}{said}.")));
            lines.push(Line::Command(command(&format!("jobs explain {}", failed.job))));
        }
        more(&mut lines, self.failures.len());
        lines
    }
}

fn more(lines: &mut Vec<Line>, count: usize) {
    if count > MOST {
        lines
            .push(Line::Sentence(format!("There are {} more; --format json has all of them.", count - MOST)));
    }
}
