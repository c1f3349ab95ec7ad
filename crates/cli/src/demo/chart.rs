//! What different policies make of one flaky step: the function that decides about real retries decides here, and time
//! is only counted.

use std::fmt::Write as _;

use serde::Serialize;
use tidewheel_core::policy::{Backoff, Jitter, JitterSeed, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::view::{Rehearsal, Script, rehearse};

use super::told::{heading, paragraph};
use crate::view::fields;
use crate::view::timeline::{Canvas, Row, draw, legend};

/// How often the step fails before it succeeds.
pub(crate) const FAILURES: u32 = 3;
/// How long each of its attempts takes.
pub(crate) const ATTEMPT_TAKES: Span = Span::from_millis(400);
/// What jitter is a function of, beside the run.
const STEP: &str = "flaky";

/// One policy, in one run of the step.
struct Show {
    name: &'static str,
    policy: Policy,
    run_id: &'static str,
}

/// The policies, each a little kinder than the one before, and at the end two that give up.
fn shows() -> [Show; 9] {
    let retrying = |backoff| Policy::new().max_retries(FAILURES).backoff(backoff);
    let jitter = || retrying(Backoff::exponential()).jitter(Jitter::Full);
    let show = |name, policy| Show { name, policy, run_id: "run-1" };
    [
        show("no policy", Policy::new()),
        show("fixed 500ms", retrying(Backoff::Fixed)),
        show("linear 500ms", retrying(Backoff::Linear)),
        show("exponential 500ms", retrying(Backoff::exponential())),
        Show { name: "jitter, run 1", policy: jitter(), run_id: "run-1" },
        Show { name: "jitter, run 2", policy: jitter(), run_id: "run-2" },
        Show { name: "jitter, run 3", policy: jitter(), run_id: "run-3" },
        show("llm, 3s in all", Policy::llm().timeout("1s").total_timeout("3s")),
        show("fast_fail, 200ms", Policy::fast_fail().timeout("200ms")),
    ]
}

impl Show {
    fn rehearsal(&self) -> Rehearsal {
        let seed = JitterSeed::new(self.run_id, STEP);
        let script = Script { failures: FAILURES, attempt_takes: ATTEMPT_TAKES, seed };
        let policy = self.policy.resolved().expect("invariant: the policies of the demo are in order");
        rehearse(&policy, &script)
    }
}

/// Draws the step under each policy.
pub(crate) fn drawn(canvas: Canvas) -> String {
    let row = |show: &Show| Row { name: show.name.to_owned(), rehearsal: show.rehearsal() };
    let rows: Vec<Row> = shows().iter().map(row).collect();
    let mut text = heading("1. Policies: what happens when something fails.", canvas);
    let _ = writeln!(text, "{}\n", paragraph(STEP_IS, canvas));
    let _ = writeln!(text, "{}", draw(&rows, canvas));
    let _ = writeln!(text, "{}\n", legend(canvas));
    let _ = writeln!(text, "{}\n", paragraph(SEEN, canvas));
    text
}

/// What is drawn.
const STEP_IS: &str = "A step takes 400ms, fails three times and then succeeds. This is what different policies make of \
    it:";

/// What was seen.
const SEEN: &str = "Without a policy the first failure is final. Growing delays give a struggling service \
    time to recover. Jitter keeps runs that failed together from coming back together, and still gives \
    each run the same delays every time. The llm policy looked ahead: its next retry would have started at \
    3.8s, after the 3s it has in all, so it failed at once instead of waiting for nothing. And fast_fail cut \
    the first attempt off at its timeout.";

/// Returns the same as data.
pub(crate) fn forms() -> Vec<ShowForm> {
    let form = |show: &Show| ShowForm {
        name: show.name,
        policy: fields::of_record(&show.policy.to_record()),
        run_id: show.run_id,
        node: STEP,
        rehearsal: show.rehearsal(),
    };
    shows().iter().map(form).collect()
}

/// The step under one policy.
#[derive(Serialize)]
pub(crate) struct ShowForm {
    name: &'static str,
    policy: serde_json::Map<String, serde_json::Value>,
    run_id: &'static str,
    node: &'static str,
    rehearsal: Rehearsal,
}
