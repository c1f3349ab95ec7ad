//! Ways to drive a run to its end. None of them decides what comes out.

use tidewheel_core::decide::{Record, RetryPolicy, Situation};
use tidewheel_core::event::FailedAttempt;
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Failure, JitterSeed, Policy};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::{Executed, Outcome, Runnable};
use tidewheel_testkit::{Case, Datum, Dice, MEND, SKIP, Spec};

use crate::search::Finding;

pub(crate) const STUCK: &str = "something is pending that nobody can run";

/// Runs everything that is left, one piece after the other.
pub(crate) fn finish(run: &mut Run, spec: &Spec) -> Finding {
    finish_telling(run, spec, |_| {})
}

/// Does the same and tells each call that changed the run.
pub(crate) fn finish_telling(run: &mut Run, spec: &Spec, mut told: impl FnMut(&Run)) -> Finding {
    loop {
        let mut runnables = Vec::new();
        for wait in run.waits() {
            runnables.extend(run.prepare_retry(&wait.ticket, LATER));
            told(run);
        }
        runnables.extend(run.prepare());
        told(run);
        if runnables.is_empty() {
            return if run.is_runnable() { Err(STUCK.to_owned()) } else { Ok(()) };
        }
        for runnable in runnables {
            run.apply(executed(runnable, spec));
            told(run);
        }
    }
}

/// Runs a piece of work; a failure that asks for it is let pass, or has a value put in its place.
pub(crate) fn executed(runnable: Runnable, spec: &Spec) -> Executed {
    let name = runnable.node().name.map(str::to_owned);
    let executed = runnable.execute();
    let Outcome::Failed(failure) = executed.outcome() else { return executed };
    let outcome = match (failure.message.as_str(), name.and_then(|name| spec.find(&name))) {
        (SKIP, _) => Outcome::Skipped(failure.clone()),
        (MEND, Some(part)) => Outcome::Completed(match part.kind.mended() {
            Datum::Number(number) => Value::new(number),
            other => Value::new(other.to_json()),
        }),
        _ => return executed,
    };
    executed.with_outcome(outcome)
}

/// Drives runs of a workflow in orders that nobody would choose.
pub(crate) struct Chaos<'c> {
    case: &'c Case,
    pub(crate) dice: Dice,
}

impl<'c> Chaos<'c> {
    pub(crate) fn of(case: &'c Case) -> Self {
        Self { case, dice: Dice::new(case.seed) }
    }

    /// Gives a run its inputs and does what there is to do in any order: inputs come in between, work is
    /// handed out, run and given back whenever, some of it is offered again and done twice.
    ///
    /// Each call that changed the run is told.
    pub(crate) fn finish_anyhow(&mut self, run: &mut Run, mut told: impl FnMut(&Run)) -> Finding {
        let dice = &mut self.dice;
        let mut inputs = self.case.inputs.iter();
        let (mut out, mut back): (Vec<Runnable>, Vec<Executed>) = (Vec::new(), Vec::new());
        let mut idle = 0;
        while inputs.len() > 0 || !out.is_empty() || !back.is_empty() || run.is_runnable() {
            idle += 1;
            match dice.below(10) {
                0 if inputs.len() > 0 => {
                    inputs.next().map(|input| run.plan(*input));
                    idle = 0;
                }
                1 if inputs.len() > 0 => {
                    let key = format!("input {}", inputs.len());
                    let (at, key) = (Timestamp::from_millis(5), Some(key));
                    inputs.next().map(|input| run.plan_accepted(Value::new(*input), at, key).len());
                    idle = 0;
                }
                1 if !out.is_empty() => {
                    let runnable = out.swap_remove(dice.below(out.len()));
                    run.fail_attempt(&runnable.ticket(), failed_attempt(&runnable));
                }
                2 | 3 => {
                    for ticket in run.waits().into_iter().map(|wait| wait.ticket) {
                        out.extend(run.prepare_retry(&ticket, LATER));
                        told(run);
                    }
                    let runnables = if dice.chance(50) { run.prepare() } else { run.prepare_at(LATER) };
                    if !runnables.is_empty() {
                        idle = 0;
                    }
                    out.extend(runnables);
                }
                4..7 if !out.is_empty() => {
                    let runnable = out.swap_remove(dice.below(out.len()));
                    back.push(executed(runnable, &self.case.spec));
                    continue;
                }
                7..9 if !back.is_empty() => {
                    run.apply(back.swap_remove(dice.below(back.len())));
                    idle = 0;
                }
                9 if dice.chance(50) => drop(run.next_runnables()),
                9 if dice.chance(20) => {
                    let pending = run.pending_runnables();
                    if pending.is_empty() {
                        continue;
                    }
                    run.release(pending[dice.below(pending.len())]);
                }
                _ if idle > 1_000 => return Err(STUCK.to_owned()),
                _ => continue,
            }
            told(run);
        }
        Ok(())
    }

    /// Gives a run all its inputs and lets some work wait as long as anything else can be done: single pieces,
    /// all pieces of some nodes, or the oldest.
    ///
    /// Each call that changed the run is told.
    pub(crate) fn finish_starving(&mut self, run: &mut Run, mut told: impl FnMut(&Run)) -> Finding {
        for input in &self.case.inputs {
            run.plan(*input);
            told(run);
        }
        let (whom, salt) = (self.dice.below(3), self.dice.roll());
        let mut age = 0;
        let mut out: Vec<(u64, Runnable)> = Vec::new();
        loop {
            for runnable in run.prepare() {
                age += 1;
                let haste = match whom {
                    0 => self.dice.roll(),
                    1 => Dice::new(salt ^ number_of(runnable.node().name)).roll(),
                    _ => age,
                };
                out.push((haste, runnable));
            }
            told(run);
            let Some(next) = (0..out.len()).max_by_key(|at| out[*at].0) else {
                return if run.is_runnable() { Err(STUCK.to_owned()) } else { Ok(()) };
            };
            run.apply(executed(out.swap_remove(next).1, &self.case.spec));
            told(run);
        }
    }
}

pub(crate) const LATER: Timestamp = Timestamp::from_millis(1_000_000);

pub(crate) fn failed_attempt(runnable: &Runnable) -> FailedAttempt {
    let policy = RetryPolicy::from(&Policy::new().max_retries(u32::MAX).resolved().expect("a sound policy"));
    let seed = JitterSeed::new("random", "node");
    let situation = Situation::failed(runnable.attempt(), Timestamp::from_millis(7), seed);
    FailedAttempt { failure: Failure::new("once"), decided: Record::decide(policy, situation) }
}

fn number_of(name: Option<&str>) -> u64 {
    name.map_or(0, |name| name.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte)))
}
