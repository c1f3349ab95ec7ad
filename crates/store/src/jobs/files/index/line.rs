//! One job as a line: what its record is known by, its names, then the rest, which is only read when it is needed.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use tidewheel_core::job::{
    After, AfterPolicy, Artifact, Brief, JobId, JobStatus, Needed, NodeId, RunId, Schedule,
};
use tidewheel_core::time::Timestamp;

use crate::jobs::files::read::State;
use crate::jobs::files::signature::Signature;

/// What the directory of a job holds, and what its record is known by.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::jobs::files) struct Entry {
    pub(in crate::jobs::files) signature: Signature,
    pub(in crate::jobs::files) state: State,
    /// Whether its run was not enqueued to the end, so that nobody is to see it.
    pub(in crate::jobs::files) is_hidden: bool,
}

/// The marks at the beginning of lines about jobs.
pub(super) const JOB: u8 = b'+';
pub(super) const HIDDEN: u8 = b'?';
pub(super) const UNREADABLE: u8 = b'!';
pub(super) const VACANT: u8 = b'0';
pub(super) const DEAD: u8 = b'-';

/// A line that is not yet read to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) mark: u8,
    pub(super) signature: Signature,
    pub(super) id: &'t str,
    pub(super) run: Option<&'t str>,
    rest: &'t str,
}

/// What is in a line beside the names, in this order.
type Rest = (
    JobStatus,
    Timestamp,
    Option<Timestamp>,
    Option<Timestamp>,
    Option<i32>,
    Option<NodeId>,
    String,
    Option<String>,
    u32,
    bool,
    Option<NodeId>,
    Lists,
    Option<Schedule>,
);

/// What most jobs have in their schedules, without names: after whom, what they need, what they make.
type Lists = (Vec<(JobId, AfterPolicy)>, Vec<Artifact>, Vec<Artifact>);

impl<'t> Line<'t> {
    /// Reads the beginning of a line.
    pub(super) fn parse(line: &'t str) -> Option<Self> {
        let mark = *line.as_bytes().first()?;
        let (head, rest) = line.get(1..)?.split_once('\t')?;
        let mut words = head.split(' ');
        let signature =
            Signature(words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (id, run) = (words.next()?, words.next()?);
        Some(Self { mark, signature, id, run: (run != "-").then_some(run), rest })
    }

    /// Reads the rest.
    pub(super) fn entry(self) -> Option<(JobId, Entry)> {
        let id = JobId::new(self.id).ok()?;
        let state = match self.mark {
            JOB | HIDDEN => State::Job(Box::new(self.brief(&id)?)),
            UNREADABLE => State::Unreadable(serde_json::from_str(self.rest).ok()?),
            VACANT => State::Vacant,
            _ => return None,
        };
        Some((id, Entry { signature: self.signature, state, is_hidden: self.mark == HIDDEN }))
    }

    /// Reads what is known of a job.
    pub(super) fn brief(self, id: &JobId) -> Option<Brief> {
        let rest: Rest = serde_json::from_str(self.rest).ok()?;
        let (
            status,
            created_at,
            started_at,
            finished_at,
            exit_code,
            node,
            name,
            slug,
            attempt,
            is_runnable,
            goes_back,
            (after, dependencies, artifacts),
            schedule,
        ) = rest;
        let run = match self.run {
            Some(run) => Some(RunId::new(run).ok()?),
            None => None,
        };
        let mut schedule: Schedule = schedule.unwrap_or_default();
        schedule.after = after.into_iter().map(|(job_id, policy)| After { job_id, policy }).collect();
        schedule.dependencies = dependencies.into_iter().map(|artifact| Needed { artifact }).collect();
        schedule.artifacts = artifacts;
        Some(Brief {
            id: id.clone(),
            status,
            created_at,
            started_at,
            finished_at,
            exit_code,
            run,
            node,
            name,
            slug,
            attempt,
            is_runnable,
            goes_back,
            schedule,
        })
    }

    /// Reads where the job stands and when it was enqueued, which come first.
    pub(super) fn standing(self) -> Option<(JobStatus, Timestamp)> {
        let (status, rest) = self.rest.strip_prefix("[\"")?.split_once("\",")?;
        let (created_at, _) = rest.split_once(',')?;
        Some((JobStatus::from_name(status)?, Timestamp::from_nanos(created_at.parse().ok()?)))
    }

    /// Tells whether the job has to do with no job of another run, and with no artifact.
    pub(super) fn keeps_to_its_run(self) -> bool {
        type Any = IgnoredAny;
        type Start<'t> = (Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Edges<'t>, Any);
        type Edges<'t> = (Vec<(&'t str, Any)>, Vec<Any>, Vec<Any>);
        let Some(run) = self.run else { return false };
        let Ok(start) = serde_json::from_str::<Start<'_>>(self.rest) else { return false };
        let (after, needs, makes) = start.11;
        let is_of_run = |id: &str| {
            id.strip_prefix("wf-").and_then(|id| id.strip_prefix(run)).is_some_and(|id| id.starts_with('-'))
        };
        needs.is_empty() && makes.is_empty() && after.iter().all(|(id, _)| is_of_run(id))
    }

    /// Tells whether the line may speak of somebody or something with this name.
    pub(super) fn mentions(self, name: &str) -> bool {
        self.rest.contains(name)
    }

    /// Tells whether the job may make anything: every artifact has this in its text.
    pub(super) fn has_artifacts(self) -> bool {
        self.rest.contains(r#"":{""#)
    }
}

impl Entry {
    /// Writes a line, with its end.
    pub(super) fn write(&self, id: &JobId, text: &mut String) {
        let Signature(time, size, number) = self.signature;
        let (mark, run) = match &self.state {
            State::Job(brief) => (if self.is_hidden { HIDDEN } else { JOB }, brief.run.as_ref()),
            State::Unreadable(_) => (UNREADABLE, None),
            State::Vacant => (VACANT, None),
        };
        let run = run.map_or("-", RunId::as_str);
        write!(text, "{}{time} {size} {number} {id} {run}\t", char::from(mark))
            .expect("invariant: a string takes any text");
        match &self.state {
            State::Job(brief) => text.push_str(&rest(brief)),
            State::Unreadable(why) => text.push_str(&serde_json::Value::from(why.as_str()).to_string()),
            State::Vacant => {}
        }
        text.push('\n');
    }

    /// Returns what is known of the job if everybody may see it.
    pub(super) fn visible(&self) -> Option<&Brief> {
        self.brief().filter(|_| !self.is_hidden)
    }

    /// Returns what is known of the job, if its record can be read.
    pub(super) fn brief(&self) -> Option<&Brief> {
        match &self.state {
            State::Job(brief) => Some(brief),
            State::Unreadable(_) | State::Vacant => None,
        }
    }
}

fn rest(brief: &Brief) -> String {
    let mut others = brief.schedule.clone();
    let after: Vec<(JobId, AfterPolicy)> =
        others.after.drain(..).map(|After { job_id, policy }| (job_id, policy)).collect();
    let dependencies: Vec<Artifact> =
        others.dependencies.drain(..).map(|Needed { artifact }| artifact).collect();
    let artifacts = std::mem::take(&mut others.artifacts);
    let rest = (
        brief.status,
        brief.created_at,
        brief.started_at,
        brief.finished_at,
        brief.exit_code,
        &brief.node,
        &brief.name,
        &brief.slug,
        brief.attempt,
        brief.is_runnable,
        &brief.goes_back,
        (after, dependencies, artifacts),
        (others != Schedule::default()).then_some(others),
    );
    serde_json::to_string(&rest).expect("invariant: every key of a brief is a string")
}

#[cfg(test)]
mod tests {
    use tidewheel_core::job::{Record, WaitKind};

    use super::*;

    #[test]
    fn every_line_comes_back() {
        let mut record = Record::new(JobId::new("a").unwrap(), Timestamp::from_millis(7));
        record.metadata.set("workflow_run_id", "run_1");
        record.metadata.set("workflow_loop_to", vec!["node"]);
        record.metadata.set("workflow_node_name", "a\tb\n\"\u{1b}ü");
        record.exit_code = Some(-1);
        record.schedule.after.push(After { job_id: JobId::new("b").unwrap(), policy: AfterPolicy::Failure });
        record.schedule.artifacts.push(Artifact::Custom { type_id: "t\n".to_owned(), key: "k".to_owned() });
        record.schedule.waited_on = vec![WaitKind::Locks];
        let states = [
            State::Job(Box::new(Brief::from(&record))),
            State::Unreadable("x\ty\n".to_owned()),
            State::Vacant,
            State::Job(Box::new(Brief::from(&Record::new(record.id.clone(), Timestamp::from_millis(0))))),
        ];
        for state in states {
            let is_hidden = matches!(&state, State::Job(brief) if brief.run.is_some());
            let entry = Entry { signature: Signature(-5, 6, u64::MAX), state, is_hidden };
            let mut text = String::new();
            entry.write(&record.id, &mut text);
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(Line::parse(line).unwrap().entry().unwrap(), (record.id.clone(), entry));
        }
    }
}
