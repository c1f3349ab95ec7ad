//! Runs with much trouble: work fails and gets another chance, waits, is given back and got lost; what an input
//! caused is undone; and whoever drives the run dies and goes on from the log.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::event::{Event, Hold};
use tidewheel_core::fact::{RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Outcome, ReopenError, ReplayError, Runnable};
use tidewheel_testkit::{Case, Dice};

use crate::drive::{LATER, STUCK, executed, failed_attempt};
use crate::replays::{Count, Look, broken};
use crate::search::{Finding, same};

/// What becomes of failures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// What fails by chance gets chances until it comes to what it would have come to.
    Reopen,
    /// Some of what fails lets everything be undone that its input caused.
    Undo,
}

/// A run in trouble, with its log.
pub(crate) struct Trouble<'c> {
    case: &'c Case,
    aim: Aim,
    workflow: Workflow,
    pub(crate) run: Run,
    pub(crate) log: Vec<Event>,
    looks: Vec<Look>,
    dice: Dice,
    out: Vec<Runnable>,
    /// What failed by chance and gets another one.
    broken: BTreeSet<RunnableId>,
    failed: BTreeMap<RunnableId, u32>,
}

impl<'c> Trouble<'c> {
    pub(crate) fn of(case: &'c Case, workflow: Workflow, aim: Aim) -> Self {
        let run = workflow.run("random");
        let dice = Dice::new(case.seed ^ 0x7e57);
        let (log, looks, out) = (Vec::new(), Vec::new(), Vec::new());
        let (broken, failed) = (BTreeSet::new(), BTreeMap::new());
        Self { case, aim, workflow, run, log, looks, dice, out, broken, failed }
    }

    /// Does everything in an order of chance, to the end.
    pub(crate) fn finish(&mut self) -> Finding {
        let case = self.case;
        let mut inputs = case.inputs.iter();
        let mut idle = 0;
        while inputs.len() > 0 || !self.broken.is_empty() || self.run.is_runnable() {
            idle += 1;
            if idle > 2_000 {
                return Err(STUCK.to_owned());
            }
            match self.dice.below(14) {
                0 => {
                    let Some(input) = inputs.next() else { continue };
                    self.run.plan(*input);
                }
                1..4 => self.prepare(),
                4 if self.dice.chance(30) => self.die()?,
                5 if self.aim == Aim::Reopen && !self.run.failed_works().is_empty() => self.reopen()?,
                6 if self.dice.chance(20) => drop(self.run.reopen_paused(Some(LATER)).len()),
                7..14 => {
                    let Some(runnable) = self.taken() else { continue };
                    match self.dice.below(12) {
                        0 => drop(self.run.give_back(&runnable.ticket()).len()),
                        1 => self.hold(&runnable),
                        2 => drop(self.run.fail_attempt(&runnable.ticket(), failed_attempt(&runnable)).len()),
                        _ => {
                            self.end(runnable)?;
                            idle = 0;
                        }
                    }
                }
                _ => continue,
            }
            self.keep();
        }
        self.had_turns()
    }

    /// Nothing that came to a state waits there for ever.
    fn had_turns(&self) -> Finding {
        let mut waiting = BTreeSet::new();
        for event in &self.log {
            match event {
                Event::StateQueued { node, lineage, input: Ok(_) } => {
                    waiting.insert((*node, *lineage));
                }
                Event::StateAdvanced { node, lineage } => {
                    waiting.remove(&(*node, *lineage));
                }
                _ => {}
            }
        }
        same("waits for its turn", &waiting, &BTreeSet::new())
    }

    fn keep(&mut self) {
        self.log.extend_from_slice(self.run.last_events());
        self.looks.push(Look::at(&self.run, self.case, self.log.len()));
    }

    fn taken(&mut self) -> Option<Runnable> {
        (!self.out.is_empty()).then(|| self.out.swap_remove(self.dice.below(self.out.len())))
    }

    fn prepare(&mut self) {
        for wait in self.run.waits() {
            if self.dice.chance(50) {
                self.out.extend(self.run.prepare_retry(&wait.ticket, LATER));
                self.keep();
            }
        }
        let runnables = if self.dice.chance(50) { self.run.prepare() } else { self.run.prepare_at(LATER) };
        self.out.extend(runnables);
    }

    fn hold(&mut self, runnable: &Runnable) {
        let whys = [Hold::RateLimit, Hold::External, Hold::Pause, Hold::Delay];
        let why = whys[self.dice.below(whys.len())];
        let until = self.dice.chance(50).then(|| Timestamp::from_millis(self.dice.roll() % 100));
        self.run.hold(&runnable.ticket(), why, None, until, Timestamp::from_millis(3));
    }

    /// Another process goes on from the log.
    fn die(&mut self) -> Finding {
        self.out.clear();
        let run = if self.dice.chance(50) {
            let lines: Vec<String> = self.log.iter().map(|event| self.written(event)).collect();
            Run::replay_json(&self.workflow, "random", lines.iter().map(String::as_str))
        } else {
            Run::replay(&self.workflow, "random", &self.log)
        };
        let told = |error: ReplayError| format!("{error:?} at {:?}", self.log[error.index]);
        self.run = run.map_err(told)?;
        let prepared = self.run.prepare_lost(LATER);
        self.out.extend(prepared.runnables);
        Ok(())
    }

    fn written(&self, event: &Event) -> String {
        event.to_json(&self.workflow).unwrap()
    }

    /// Gives something that failed another chance, whether it failed by chance or always does.
    fn reopen(&mut self) -> Finding {
        let failed = self.run.failed_works();
        let id = failed[self.dice.below(failed.len())];
        match self.run.reopen(id, Some(LATER)).map(|_| ()) {
            Ok(()) => {
                self.broken.remove(&id);
                Ok(())
            }
            // What a fault of the workflow skipped may have been gone on without.
            Err(ReopenError::WentOn { .. }) if !self.broken.contains(&id) => Ok(()),
            Err(error) => Err(format!("{id} gets no other chance: {error}")),
        }
    }

    fn end(&mut self, runnable: Runnable) -> Finding {
        let id = runnable.id();
        let broken = Outcome::Failed(Failure::new("by chance"));
        match self.aim {
            Aim::Reopen => {
                let times = self.failed.entry(id).or_default();
                if *times < 2 && self.dice.chance(20) {
                    *times += 1;
                    let events = self.run.apply(runnable.executed(broken)).len();
                    if events > 0 {
                        self.broken.insert(id);
                    }
                } else {
                    self.run.apply(executed(runnable, &self.case.spec));
                }
            }
            Aim::Undo => {
                if self.dice.chance(20) {
                    let said = Value::new(self.dice.below(100));
                    self.run
                        .register_undo(&runnable.ticket(), "undo", said)
                        .map_err(|failure| failure.to_string())?;
                    self.keep();
                }
                let fails = self.dice.chance(10);
                let executed = if fails {
                    let executed = runnable.executed(broken);
                    if self.dice.chance(70) { executed.and_undo() } else { executed }
                } else {
                    executed(runnable, &self.case.spec)
                };
                self.run.apply(executed);
            }
        }
        Ok(())
    }

    /// A log that is not whole is refused or makes a run of its own, whatever that is asked to do.
    pub(crate) fn is_broken_without_panic(&mut self) {
        for _ in 0..5 {
            let broken = broken(&self.log, &mut self.dice);
            let Ok(mut run) = Run::replay(&self.workflow, "random", &broken) else { continue };
            run.release_all();
            run.reopen_paused(None);
            for round in 0..30 {
                for id in run.failed_works() {
                    drop(run.reopen(id, None).map(<[Event]>::len));
                }
                for runnable in run.prepare() {
                    let executed = runnable.execute();
                    run.apply(if round % 3 == 0 { executed.and_undo() } else { executed });
                }
            }
            drop(Look::at(&run, self.case, broken.len()));
        }
    }

    /// After each event the run that is replayed has the right counts, and after each call it is the run.
    pub(crate) fn replays(&self) -> Finding {
        let mut run = self.workflow.run("random");
        let mut read = self.workflow.run("random");
        let mut count = Count::default();
        let mut looks = self.looks.iter().peekable();
        for (end, event) in (1..).zip(&self.log) {
            count.add(event);
            run = run.replayed([event]).map_err(|error| format!("{end}: {error:?}"))?;
            let line = self.written(event);
            read = read.replayed_json([line.as_str()]).map_err(|error| format!("{end}: {error:?}"))?;
            count.fits(&run)?;
            count.fits(&read)?;
            while let Some(look) = looks.next_if(|look| look.log() <= end) {
                if look.log() == end {
                    look.fits(&run, self.case)?;
                    look.fits(&read, self.case)?;
                }
            }
        }
        same("looks left", &looks.count(), &0)
    }
}
