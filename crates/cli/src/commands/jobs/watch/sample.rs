//! Jobs to be watched in tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use serde_json::{Value, json};
use tidewheel_core::job::{Brief, JobId};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::ScheduleAsk;
use tidewheel_store::jobs::{Jobs, Survey};

use super::state::{Room, Seen, State, Wants};
use crate::jobs::{Form, Ids, MannerArguments};

/// Returns a job.
pub(super) fn job(id: &str, status: &str, rest: Value) -> Brief {
    let mut form = json!({ "id": id, "status": status, "created_at": "2026-02-01T12:00:00Z", "name": id,
        "is_runnable": true, "schedule": {} });
    form.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    serde_json::from_value(form).unwrap()
}

/// Returns what is seen of jobs, all of them.
pub(super) fn seen(jobs: Vec<Brief>, focus: Option<&str>) -> Seen {
    let briefs = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
    let jobs = Jobs { briefs, ..Jobs::default() };
    let focus = focus.map(|id| JobId::new(id).unwrap());
    let ask = ScheduleAsk { all: true, focus: focus.as_ref(), max_depth: 1_000 };
    let at = Timestamp::parse("2026-02-01T12:00:05Z").unwrap();
    let survey = Survey::of(jobs.clone());
    let manner = MannerArguments::with_ids(Some(Ids::Short)).of(Form::Table, &survey, &survey.glances(), at);
    Seen::of(jobs, &ask, &manner, at)
}

/// Returns the state of somebody who sees jobs in a room.
pub(super) fn state(jobs: Vec<Brief>, (width, height): (usize, usize)) -> State {
    let wants = Wants { top: 10, interval_ms: 500, has_colour: false, has_unicode: true };
    State::new(wants, Room { width, height }, seen(jobs, None))
}

/// Returns a job of each kind.
pub(super) fn some() -> Vec<Brief> {
    let wait = |kind: &str, detail: &str| json!({ "schedule": { "wait_reason": { "kind": kind, "detail": detail } } });
    vec![
        job("a-build", "running", json!({ "name": "订单 build" })),
        job("b-deploy", "waiting_on_approval", wait("approval", "awaiting human approval")),
        job("c-test", "running", json!({ "slug": "alpha" })),
        job(
            "d-pack",
            "waiting_on_deps",
            json!({ "schedule": { "after": [{ "job_id": "a-build" }],
            "wait_reason": { "kind": "dependencies", "detail": "waiting on job a-build" } } }),
        ),
        job("e-lint", "failed", json!({ "name": "lint \u{1b}[31mred" })),
    ]
}
