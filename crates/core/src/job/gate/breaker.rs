//! The gate of a circuit breaker: what keeps failing is not started for a while. Whoever is let in gets a permit at its
//! start, which is told about when the attempt ends.

use super::verdict::{Refusal, Verdict, Wait};
use super::view::View;
use crate::job::schedule::WaitKind;
use crate::job::shared::Shared;
use crate::job::status::JobStatus;
use crate::policy::OnOpen;

/// Says whether the breaker of a job lets it in.
pub(in crate::job) fn judge(job: usize, view: &View<'_>, shared: &mut Shared) -> Verdict {
    let limits = view.jobs[job].schedule.limits.as_deref();
    let Some(config) = limits.and_then(|limits| limits.breaker.as_ref()) else { return Verdict::Open };
    let Some(until) = shared.breaker(&config.name, |breaker| breaker.refuses_until(config, view.now)) else {
        return Verdict::Open;
    };
    let detail = format!("circuit breaker `{}` is open", config.name);
    match config.on_open {
        OnOpen::Wait => Wait::new(JobStatus::Queued, WaitKind::Schedule, detail).until(until).ready(),
        OnOpen::Fail => Verdict::refuse(Refusal::CircuitOpen, detail),
        OnOpen::Skip => Verdict::skip(detail),
    }
}
