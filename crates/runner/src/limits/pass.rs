//! Who of a line is let in, and what outcomes mean: a pure function of the shared states.

use tidewheel_core::decide::CircuitView;
use tidewheel_core::event::Hold;
use tidewheel_core::policy::{Admission, Resolved, Slot};
use tidewheel_core::time::{Span, Timestamp};

use super::gates::{Gates, Rows};
use super::line::{Ask, Granted, Held, Report, Told};
use crate::driver::Known;

/// What everybody is told who asks or reports.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) admitted: Vec<(Ask, Verdict)>,
    /// Why the next one has to wait.
    pub(super) held: Option<Held>,
    /// Whether others may change that at any time.
    pub(super) is_others: bool,
    /// Breakers that changed: their name, what they were, and what they are.
    pub(super) changes: Vec<(String, &'static str, &'static str)>,
}

pub(super) enum Verdict {
    In(Granted),
    Shut(Timestamp),
}

/// Whoever is here and lets work in.
#[derive(Clone, Copy)]
pub(super) struct Here {
    pub(super) now: Timestamp,
    pub(super) owner: i64,
    /// Whether work begins when it is let in: otherwise it may still have to wait for a slot.
    pub(super) begins_at_once: bool,
}

/// Other processes may give their slots back, or end their probes, and nobody tells: it is looked for after this, and
/// then less often.
pub(super) const LOOK_AGAIN: Span = Span::from_millis(250);

/// Counts what is reported, and returns what a decision about it has to know.
pub(super) fn report(
    gates: &Gates,
    rows: &mut Rows,
    report: &Report,
    here: Here,
    passed: &mut Passed,
) -> Known {
    let Report { policy, granted, told } = report;
    let Granted { breaker: permit, slot, rate } = granted.clone();
    if let (Some(name), Some(config), Some(holder)) = (&gates.rate, &policy.rate_limit, rate) {
        rows.rate(name, |rate| match told {
            // Without a beginning there is no outcome, so there was one.
            Told::Began | Told::Succeeded | Told::Failed(_) | Told::EndedOutside { .. } => {
                (rate.began(config, holder, here.now), true)
            }
            Told::Released | Told::TokenBack => {
                let was_there = rate.give_back(holder);
                ((), was_there)
            }
        });
    }
    if let (Some(name), Some(owner)) = (&gates.slots, slot) {
        rows.slots(name, |slots| (slots.give_back(owner), true));
    }
    let mut facts = Known::default();
    if let (Some(name), Some(config)) = (&gates.breaker, &policy.circuit_breaker) {
        let (before, after) = rows.breaker(name, |breaker| {
            let before = breaker.state_name();
            match (told, permit) {
                (Told::Succeeded, Some(permit)) => breaker.succeeded(config, permit),
                (Told::Failed(_), Some(permit)) => {
                    let until = breaker.refuses_again(config, &permit, here.now);
                    facts.circuit = until.map_or(CircuitView::Closed, CircuitView::OpenUntil);
                    breaker.failed(config, permit, here.now);
                }
                (Told::EndedOutside { succeeded }, _) => match (breaker.late_permit(), succeeded) {
                    (Some(permit), true) => breaker.succeeded(config, permit),
                    (Some(permit), false) => breaker.failed(config, permit, here.now),
                    (None, _) => {}
                },
                (Told::Released, Some(permit)) => breaker.released(permit),
                (Told::Succeeded | Told::Failed(_) | Told::Began | Told::Released | Told::TokenBack, _) => {}
            }
            (before, breaker.state_name())
        });
        if before != after {
            passed.changes.push((name.name.clone(), before, after));
        }
    }
    match told {
        Told::Failed(_) => {
            if let (Some(name), Some(config)) = (&gates.budget, &policy.retry_budget) {
                facts.retry_tokens = Some(rows.budget(name, |budget| {
                    let tokens = budget.tokens(config, here.now);
                    if let Some(taken) = budget.take(config, here.now) {
                        *budget = taken;
                    }
                    tokens
                }));
            }
        }
        Told::TokenBack => {
            if let Some(name) = &gates.budget {
                rows.budget(name, |budget| *budget = budget.given_back());
            }
        }
        Told::Succeeded | Told::EndedOutside { .. } | Told::Began | Told::Released => {}
    }
    facts
}

/// Those who wait to be let in, in order.
pub(super) trait Waiting {
    /// Takes whoever is next and still wants to be let in.
    fn take(&mut self) -> Option<Ask>;

    /// Puts back whoever was taken last.
    fn put_back(&mut self, ask: Ask);
}

/// Lets the next one in, if there is one and it may begin. Tells whether another may follow.
pub(super) fn let_next_in(
    gates: &Gates,
    rows: &mut Rows,
    waiting: &mut impl Waiting,
    here: Here,
    passed: &mut Passed,
) -> bool {
    let Some(ask) = waiting.take() else { return false };
    match ask_one(gates, rows, &ask.policy, here, passed) {
        Ok(verdict) => {
            passed.admitted.push((ask, verdict));
            true
        }
        Err(held) => {
            waiting.put_back(ask);
            passed.held = Some(held);
            false
        }
    }
}

/// Lets somebody in who may begin, and takes what that needs.
pub(super) fn ask_one(
    gates: &Gates,
    rows: &mut Rows,
    policy: &Resolved,
    here: Here,
    passed: &mut Passed,
) -> Result<Verdict, Held> {
    let mut granted = Granted::default();
    let breaker = gates.breaker.as_ref().zip(policy.circuit_breaker.as_ref());
    if let Some((name, config)) = breaker
        && let (Some(until), is_probed) =
            rows.breaker(name, |breaker| (breaker.refuses_until(config, here.now), breaker.is_probed()))
    {
        if !gates.waits_for_breaker {
            return Ok(Verdict::Shut(until));
        }
        passed.is_others = is_probed;
        return Err(Held { why: Hold::CircuitBreaker, on: name.shown(), until });
    }
    let slots = gates.slots.as_ref().zip(policy.concurrency_limit.as_ref());
    if let Some((name, config)) = slots
        && !rows.slots(name, |slots| (slots.has_room(config.limit), false))
    {
        let until = here.now.saturating_add(LOOK_AGAIN);
        passed.is_others = true;
        return Err(Held { why: Hold::ConcurrencyLimit, on: name.shown(), until });
    }
    if let Some((name, config)) = gates.rate.as_ref().zip(policy.rate_limit.as_ref()) {
        let slot = rows.rate(name, |rate| {
            let slot = if here.begins_at_once {
                rate.take(config, here.now)
            } else {
                rate.reserve(config, here.owner, here.now)
            };
            (slot, slot == Slot::Now)
        });
        match slot {
            Slot::Now => granted.rate = (!here.begins_at_once).then_some(here.owner),
            Slot::At(until) => return Err(Held { why: Hold::RateLimit, on: name.shown(), until }),
            Slot::Later => {
                passed.is_others = true;
                let until = here.now.saturating_add(LOOK_AGAIN);
                return Err(Held { why: Hold::RateLimit, on: name.shown(), until });
            }
        }
    }
    if let Some((name, config)) = breaker {
        let (before, after) = rows.breaker(name, |breaker| {
            let before = breaker.state_name();
            if let Admission::Admitted(permit) = breaker.admit(config, here.now) {
                granted.breaker = Some(permit);
            }
            (before, breaker.state_name())
        });
        if before != after {
            passed.changes.push((name.name.clone(), before, after));
        }
    }
    if let Some((name, _)) = slots {
        rows.slots(name, |slots| (slots.take(here.owner), true));
        granted.slot = Some(here.owner);
    }
    Ok(Verdict::In(granted))
}
