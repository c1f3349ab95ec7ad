//! Why a job is where it is, as a page: what it waits for, its attempts, and what comes next.

use std::collections::BTreeMap;

use tidewheel_core::job::{Brief, JobEvent, JobEventKind, JobId, Record};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{moment, relative};
use tidewheel_store::jobs::JobStore as _;

use super::pages::Page;
use crate::error::CommandError;
use crate::jobs::{Opened, unfit};
use crate::output::harmless;
use crate::store::now;

/// Finds out why a job is where it is.
pub(super) fn why(opened: &Opened, id: &JobId, jobs: &BTreeMap<JobId, Brief>) -> Result<Page, CommandError> {
    let record = opened.read(id)?;
    let events = opened.store().events(id).map_err(|error| unfit(&error))?;
    Ok(page(&record, &events, jobs, now()))
}

/// Writes it down.
fn page(record: &Record, events: &[JobEvent], jobs: &BTreeMap<JobId, Brief>, now: Timestamp) -> Page {
    let mut lines = vec![format!("Job: {}", record.id), format!("Status: {}", record.status)];
    let mut add = |label: &str, value: String| lines.push(format!("{label}: {value}"));
    let schedule = &record.schedule;
    if let Some(reason) = &schedule.wait_reason {
        add("Waits for", reason.to_string());
    }
    if let Some(at) = schedule.not_before.filter(|at| *at > now && record.status.is_active()) {
        add("Not before", moment(at, now));
    }
    if let Some(approval) = schedule.approval.as_ref().filter(|approval| approval.required) {
        let by = approval.decided_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let why = approval.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        add("Approval", format!("{}{by}{why}", approval.state));
    }
    for after in &schedule.after {
        let status = jobs.get(&after.job_id).map_or("gone", |job| job.status.name());
        add("After", format!("{} of {} ({status})", after.policy, after.job_id));
    }
    for needed in &schedule.dependencies {
        add("Needs", needed.artifact.to_string());
    }
    for lock in &schedule.locks {
        add("Lock", lock.to_string());
    }
    if let Some(at) = record.started_at {
        add("Started", moment(at, now));
    }
    if let Some(at) = record.finished_at {
        let code = record.exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
        add("Finished", format!("{}{code}", moment(at, now)));
    }
    lines.push(String::new());
    lines.push(if events.is_empty() {
        "Nothing has happened to it yet.".to_owned()
    } else {
        "What happened:".to_owned()
    });
    lines.extend(events.iter().map(|event| format!("  {}  {}", relative(event.at, now), told(event))));
    let lines = lines.iter().map(|line| harmless(line).into_owned()).collect();
    Page::new(format!("Why {} is {}", harmless(&record.name()), record.status), lines)
}

fn told(event: &JobEvent) -> String {
    let attempt = event.attempt;
    match &event.event {
        JobEventKind::Dispatched { .. } => format!("attempt {attempt} started"),
        JobEventKind::AttemptFailed { exit_code, message, decision } => {
            let code = exit_code.map(|code| format!(" with exit {code}")).unwrap_or_default();
            format!("attempt {attempt} failed{code}: {message} ({})", decision.reason)
        }
        JobEventKind::Withdrawn { reason } => format!("a start was taken back: {reason}"),
        JobEventKind::Completed { outcome, exit_code, summary } => {
            let code = exit_code.map(|code| format!(" with exit {code}")).unwrap_or_default();
            let summary = summary.as_ref().map(|summary| format!(": {summary}")).unwrap_or_default();
            format!("{outcome}{code}{summary}")
        }
        JobEventKind::Rewound { by } => format!("rewound by {by}"),
        JobEventKind::Decided { approved: true, by } => format!("approved by {by}"),
        JobEventKind::Decided { approved: false, by } => format!("rejected by {by}"),
    }
}
