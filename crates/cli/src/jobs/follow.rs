//! Waiting for jobs, and telling what becomes of them: one line for each change, or lines that change on a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressDrawTarget;
use tidewheel_core::job::{
    Brief, JobId, JobStatus, Metadata, Record, RunResult, RunState, budget_told, lost_told, signal_told,
};
use tidewheel_runner::job::Ticked;
use tidewheel_runner::job::wait::Watch;
use tidewheel_store::jobs::{JobStore as _, JobStoreError};

use super::gather::Gather;
use super::live::{Live, Looks};
use super::opened::{Opened, unreadable};
use super::tty::Tty;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{self, harmless};
use crate::terminal;

/// Waits for jobs.
pub(crate) struct Follow<'a> {
    pub(crate) opened: &'a Opened,
    /// The jobs.
    pub(crate) jobs: Vec<JobId>,
    /// Who is told what becomes of them.
    pub(crate) tells: Tells,
    /// What the pass before did, and could not do.
    pub(crate) trouble: Ticked,
    /// When to give up.
    pub(crate) until: Option<Instant>,
    /// How to come back to the jobs, for whoever leaves them.
    pub(crate) comes_back: String,
}

/// Who is told what becomes of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Those who read the output.
    Output,
    /// Those who read along.
    Aside,
    /// Nobody.
    Nobody,
}

/// How the jobs are in the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followed {
    jobs: BTreeMap<JobId, Brief>,
    /// Those whose records are gone or damaged.
    missing: BTreeSet<JobId>,
    /// Whether somebody left, or the time was over, before all of them were.
    pub(crate) ending: Left,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Left {
    /// All jobs are over.
    #[default]
    Over,
    /// The time was.
    TimedOut,
    /// Somebody had enough.
    Interrupted,
}

/// How long to wait at most until somebody looks whether he was interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How many times as long as a look took nobody looks again: who watches a thousand jobs shall not keep them from the
/// processor.
const REST: u32 = 9;

/// The bar, and the line that the cursor stands in.
const BESIDE: usize = 2;

/// So many things that a pass could not do are told.
const MOST_TOLD: usize = 3;

impl Follow<'_> {
    /// Waits until all jobs are over.
    pub(crate) fn run(self) -> Result<Followed, Ending> {
        let interrupt = Interrupt::listen();
        // Whatever changes a record writes to the index beside the records, too.
        let watch = Watch::directory(&self.opened.place.data.join("jobs"));
        let mut said = Said { lines: BTreeMap::new(), live: self.live(), is_troubled: false };
        said.trouble(&self.trouble);
        let lent = self.opened.lend_slot();
        if lent.is_some() {
            said.trouble(&self.opened.pass()?);
        }
        let mut followed = Followed::default();
        let mut looked = Instant::now();
        loop {
            let began = Instant::now();
            if self.look(&mut followed, &mut said)? {
                return Ok(followed);
            }
            if let Some((live, gather)) = &mut said.live {
                let board = gather.board(&followed.jobs, terminal::height().saturating_sub(BESIDE));
                live.show(&board, terminal::canvas());
            }
            let rested = Instant::now() + began.elapsed().saturating_mul(REST).min(LOOK_AGAIN * 3);
            if interrupt.is_heard() {
                drop(said);
                output::hint(&format!("The jobs go on without you: {}.", self.comes_back));
                followed.ending = Left::Interrupted;
                return Ok(followed);
            }
            let now = Instant::now();
            if self.until.is_some_and(|until| now >= until) {
                followed.ending = Left::TimedOut;
                return Ok(followed);
            }
            let probe = Duration::from_millis(self.opened.settings.config.probe_interval.as_millis());
            if looked.elapsed() >= probe {
                // A supervisor that was killed tells nobody; a pass finds out.
                said.trouble(&self.opened.pass()?);
                looked = now;
            }
            let soon = now + LOOK_AGAIN;
            watch.wait(Some(self.until.map_or(soon, |until| until.min(soon))));
            thread::sleep(rested.saturating_duration_since(Instant::now()));
        }
    }

    /// Returns the lines that change, where they can.
    fn live(&self) -> Option<(Live, Gather<'_>)> {
        let looks = Looks { has_colour: terminal::has_colour(), has_unicode: terminal::has_unicode() };
        if self.tells != Tells::Output || !terminal::is_live() {
            return None;
        }
        let target = ProgressDrawTarget::term_like(Box::new(Tty::default()));
        Some((Live::new(target, looks), Gather::new(self.opened)))
    }

    /// Looks at the jobs that are not over, and tells whether all are.
    fn look(&self, followed: &mut Followed, said: &mut Said<'_>) -> Result<bool, Ending> {
        let is_open = |followed: &Followed, id: &JobId| {
            !followed.missing.contains(id) && followed.jobs.get(id).is_none_or(Brief::is_open)
        };
        let open: Vec<&JobId> = self.jobs.iter().filter(|id| is_open(followed, id)).collect();
        self.see(&open, followed, said)?;
        if self.jobs.iter().any(|id| is_open(followed, id)) {
            return Ok(false);
        }
        // A loop may have rewound a job that was over.
        self.see(&self.jobs.iter().collect::<Vec<_>>(), followed, said)?;
        Ok(!self.jobs.iter().any(|id| is_open(followed, id)))
    }

    fn see(&self, jobs: &[&JobId], followed: &mut Followed, said: &mut Said<'_>) -> Result<(), Ending> {
        for id in jobs {
            let record = match self.opened.store().record(id) {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.miss(id, "its record is gone", followed, said)?;
                    continue;
                }
                Err(JobStoreError::Record(error)) => {
                    self.miss(id, &format!("its record cannot be read: {error}"), followed, said)?;
                    continue;
                }
                Err(error) => return Err(unreadable(id.as_str(), &error).into()),
            };
            followed.missing.remove(*id);
            let brief = Brief::from(&record);
            let line = told(&brief, self.summary(&record).as_deref());
            if said.lines.get(*id) != Some(&line) {
                match &said.live {
                    Some((live, _)) => print(live, &brief, &line)?,
                    None => self.tell(&line)?,
                }
                said.lines.insert((*id).clone(), line);
            }
            if let Some((_, gather)) = &mut said.live {
                gather.see(&record);
            }
            followed.jobs.insert((*id).clone(), brief);
        }
        Ok(())
    }

    /// Returns what is kept of the end of a job, if it may say more than its exit code does.
    fn summary(&self, job: &Record) -> Option<String> {
        let code = job.exit_code?;
        let says_more = match job.status {
            JobStatus::Failed => {
                signal_told(code, None).is_some() || job.metadata.get(Metadata::LIVENESS).is_some()
            }
            JobStatus::BlockedByDependency => true,
            JobStatus::Queued
            | JobStatus::WaitingOnDeps
            | JobStatus::WaitingOnApproval
            | JobStatus::WaitingOnLocks
            | JobStatus::Running
            | JobStatus::Succeeded
            | JobStatus::Cancelled
            | JobStatus::BlockedByApproval
            | JobStatus::Skipped => false,
        };
        if !says_more {
            return None;
        }
        self.opened.store().outcome(&job.id).ok().flatten()?.summary
    }

    /// Tells that nobody knows any more what becomes of a job. The others are waited for all the same.
    fn miss(
        &self,
        id: &JobId,
        why: &str,
        followed: &mut Followed,
        said: &mut Said<'_>,
    ) -> Result<(), Ending> {
        let known = followed.jobs.remove(id);
        if !followed.missing.insert(id.clone()) {
            return Ok(());
        }
        let name = known.as_ref().and_then(|job| job.node.as_ref()).map_or(id.as_str(), |node| node.as_str());
        let line =
            harmless(&format!("{name}: missing: {why}; `tidewheel doctor` says what to do")).into_owned();
        match &said.live {
            Some((live, _)) => live.print(&line).map_err(|error| CommandError::of_output(&error))?,
            None => self.tell(&line)?,
        }
        said.lines.insert(id.clone(), line);
        Ok(())
    }

    fn tell(&self, line: &str) -> Result<(), Ending> {
        match self.tells {
            Tells::Output => output::text(&format!("{line}\n")),
            Tells::Aside => {
                output::aside(line);
                Ok(())
            }
            Tells::Nobody => Ok(()),
        }
    }
}

/// What was told.
struct Said<'a> {
    /// The last line of each job.
    lines: BTreeMap<JobId, String>,
    /// The lines that change, where they can.
    live: Option<(Live, Gather<'a>)>,
    /// Whether the last pass could not do everything.
    is_troubled: bool,
}

impl Said<'_> {
    /// Prints what a pass found in the way, and what it could not do, once until passes go well again.
    fn trouble(&mut self, Ticked { errors, warnings, .. }: &Ticked) {
        if let Some((live, _)) = self.live.as_ref().filter(|_| !warnings.is_empty()) {
            live.clear();
        }
        warnings.iter().for_each(|warning| output::warning(warning));
        let was_troubled = std::mem::replace(&mut self.is_troubled, !errors.is_empty());
        if was_troubled || errors.is_empty() {
            return;
        }
        if let Some((live, _)) = &self.live {
            live.clear();
        }
        for error in errors.iter().take(MOST_TOLD) {
            let error = CommandError::of_words(Code::JobsTrouble, error);
            output::warning(&error.message);
            error.hints.iter().for_each(|hint| output::hint(hint));
        }
        if errors.len() > MOST_TOLD {
            let more = errors.len() - MOST_TOLD;
            output::warning(&format!(
                "{more} more things could not be done; `tidewheel tick` tells all of them"
            ));
        }
        output::hint("It is tried again for as long as you wait.");
    }
}

/// Writes a line that stays. What goes on changes in place, unless somebody has to do something about it.
fn print(live: &Live, job: &Brief, line: &str) -> Result<(), Ending> {
    if job.status.is_active() && job.status != JobStatus::WaitingOnApproval {
        return Ok(());
    }
    live.print(line).map_err(|error| CommandError::of_output(&error))
}

impl Followed {
    /// Returns the jobs.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Brief> {
        self.jobs.values()
    }

    /// Returns what came of them.
    pub(crate) fn result(&self) -> RunResult {
        RunResult { missing: self.missing.iter().cloned().collect(), ..RunResult::of(self.jobs.values()) }
    }

    /// Returns how the command ends.
    pub(crate) fn exit(&self) -> Exit {
        match self.result().state() {
            RunState::Succeeded => Exit::Succeeded,
            RunState::Blocked => Exit::Blocked,
            RunState::Failed | RunState::Active => Exit::Failed,
        }
    }
}

/// Says how a job is, and what it waits for, fit to be shown.
fn told(job: &Brief, summary: Option<&str>) -> String {
    harmless(&line(job, summary)).into_owned()
}

fn line(job: &Brief, summary: Option<&str>) -> String {
    let name = job.node.as_ref().map_or(job.id.as_str(), |node| node.as_str());
    let mut line = format!("{name}: {}", job.status);
    match job.status {
        JobStatus::Running if job.attempt > 1 => {
            let _ = write!(line, " (attempt {})", job.attempt);
        }
        JobStatus::Failed => {
            if let Some(lost) = lost_told(summary) {
                let _ = write!(line, " ({lost})");
            } else if let Some(code) = job.exit_code {
                let signal = signal_told(code, summary).map(|told| format!(", {told}")).unwrap_or_default();
                let _ = write!(line, " (exit {code}{signal})");
            }
        }
        JobStatus::Cancelled => {
            if let Some(code) = job.exit_code {
                let _ = write!(line, " (exit {code})");
            }
        }
        JobStatus::Queued
        | JobStatus::WaitingOnDeps
        | JobStatus::WaitingOnLocks
        | JobStatus::BlockedByDependency
        | JobStatus::BlockedByApproval => {
            let said = || summary.map(|summary| budget_told(summary).unwrap_or_else(|| summary.to_owned()));
            if let Some(why) = job.wait().map(str::to_owned).or_else(said) {
                let _ = write!(line, ": {why}");
            }
        }
        JobStatus::WaitingOnApproval => {
            let wait = job.wait().unwrap_or("awaiting human approval");
            let id = &job.id;
            let _ = write!(
                line,
                ": {wait}; `tidewheel jobs approve {id}` lets it go on, `tidewheel jobs reject {id}` ends it"
            );
        }
        JobStatus::Skipped => {
            if let Some(why) = job.skipped_because() {
                let _ = write!(line, ": {why}");
            }
        }
        JobStatus::Running | JobStatus::Succeeded => {}
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use serde_json::json;

    #[test]
    fn a_node_that_ended_as_blocked_says_what_blocked_it() {
        let form = json!({ "id": "a", "status": "blocked_by_dependency", "created_at": "2026-02-01T12:00:00Z",
            "name": "a", "is_runnable": true, "exit_code": 10, "schedule": {} });
        let job: Brief = serde_json::from_value(form).expect("it is a job");
        let summary = "conflict gate blocked: remaining unmerged paths: x; resolve them";
        assert_eq!(told(&job, Some(summary)), format!("a: blocked_by_dependency: {summary}"));
        let spent = "stop-condition failed on attempt 2; retry budget exhausted (1)";
        assert_eq!(
            told(&job, Some(spent)),
            "a: blocked_by_dependency: the 1 retry that its `retry.budget` allows was used"
        );
        assert_eq!(told(&job, None), "a: blocked_by_dependency");
    }

    #[test]
    fn foreign_text_breaks_no_line_of_who_follows() {
        let mut foreign = Foreign::new("followed");
        for _ in 0..foreign::count() {
            let text = foreign.text();
            let status = ["queued", "waiting_on_approval", "blocked_by_approval"][foreign.below(3)];
            let form = json!({ "id": "a", "status": status, "created_at": "2026-02-01T12:00:00Z", "name": text,
                "is_runnable": true, "schedule": { "wait_reason": { "kind": "approval", "detail": text } } });
            let job: Brief = serde_json::from_value(form).expect("it is a job");
            Shown { text: &told(&job, None), lines: Some(1), ..Shown::default() }.check(&text);
        }
    }
}
