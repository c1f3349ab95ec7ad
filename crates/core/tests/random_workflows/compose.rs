//! Components that are added to a run: earlier inputs come to what they would have come to without them, later
//! ones to what they come to in the whole workflow, and the log says all of it.
//!
//! States are among it: one that was there counts every input, one that was added counts the later ones.

use tidewheel_core::event::Event;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::Workflow;
use tidewheel_testkit::{Case, Dice, Kind, Spec, built, expected_since, lowered, lowered_components};

use crate::compare::finished_as;
use crate::drive::executed;
use crate::replays::{Count, Look};
use crate::search::{Finding, for_all, same};

/// A workflow grows in so many steps at most, the first one among them.
const STAGES: usize = 3;

#[test]
fn what_is_added_takes_part_in_later_inputs_alone() {
    for_all(4_000, |case| {
        let grown = Grown::of(case)?;
        let since: Vec<usize> = grown.stages.iter().map(|stage| grown.plan.first_inputs[*stage]).collect();
        finished_as(&grown.run, case, &expected_since(&case.spec, &case.inputs, &since))
    });
}

#[test]
fn every_beginning_of_the_log_of_a_run_that_grew_gives_the_run_as_it_was() {
    for_all(500, |case| {
        let grown = Grown::of(case)?;
        let began = grown.plan.workflows[0].signature();
        let whole = lowered(&case.spec);
        let own = grown.run.workflow();
        let lines: Vec<String> = grown.log.iter().map(|event| event.to_json(&own).unwrap()).collect();
        let mut count = Count::default();
        for end in 0..=grown.log.len() {
            if end > 0 {
                count.add(&grown.log[end - 1]);
            }
            let typed = own.run("random").stored_with(&began).replayed(&grown.log[..end]);
            let typed = typed.map_err(|error| format!("{error:?}"))?;
            count.fits(&typed)?;
            if let Some(look) = grown.looks.iter().rfind(|look| look.log == end) {
                look.fits(&typed, case)?;
                let read = lines[..end].iter().map(String::as_str);
                let read = whole.run("random").stored_with(&began).replayed_json(read);
                look.fits(&read.map_err(|error| format!("{error:?}"))?, case)?;
            }
        }
        // Whoever does not know what the run began with gets the same from the whole log.
        let read = Run::replay_json(&whole, "random", lines.iter().map(String::as_str));
        grown.looks[grown.looks.len() - 1].fits(&read.map_err(|error| format!("{error:?}"))?, case)
    });
}

#[test]
fn a_run_from_the_beginning_of_such_a_log_grows_and_goes_on_to_the_same_end() {
    for_all(1_000, |case| {
        let grown = Grown::of(case)?;
        let since: Vec<usize> = grown.stages.iter().map(|stage| grown.plan.first_inputs[*stage]).collect();
        let expected = expected_since(&case.spec, &case.inputs, &since);
        let whole = lowered(&case.spec);
        let mut dice = Dice::new(case.seed);
        for _ in 0..3 {
            let (begins, place) = grown.calls[dice.below(grown.calls.len())];
            let own = grown.run.workflow();
            let lines: Vec<String> =
                grown.log[..begins].iter().map(|event| event.to_json(&own).unwrap()).collect();
            let run = whole.run("random").stored_with(&grown.plan.workflows[0].signature());
            let mut run = run.replayed_json(lines.iter().map(String::as_str)).unwrap();
            for work in run.pending_runnables() {
                run.release(work);
            }
            let mut drive = Drive::new(case, dice.roll());
            for deed in &grown.plan.deeds[place..] {
                drive.make(&mut run, *deed, &grown.plan, &mut |_| {})?;
            }
            drive.finish(&mut run, &mut |_| {})?;
            finished_as(&run, case, &expected)?;
        }
        Ok(())
    });
}

#[test]
fn a_log_of_a_run_that_grew_never_panics_when_it_is_not_whole() {
    for_all(1_000, |case| {
        let grown = Grown::of(case)?;
        let (own, began) = (grown.run.workflow(), grown.plan.workflows[0].signature());
        let mut dice = Dice::new(case.seed);
        for _ in 0..3 {
            let mut broken = grown.log.clone();
            let (one, other) = (dice.below(broken.len()), dice.below(broken.len()));
            match dice.below(4) {
                0 => drop(broken.remove(one)),
                1 => broken.swap(one, other),
                2 => broken.truncate(one),
                // What was added is forgotten, or the first addition comes at another place.
                _ => {
                    let added =
                        broken.iter().position(|event| matches!(event, Event::ComponentsAdded { .. }));
                    let added = added.map(|at| broken.remove(at)).filter(|_| dice.chance(50));
                    broken.splice(one.min(broken.len())..one.min(broken.len()), added);
                }
            }
            let Ok(mut run) = own.run("random").stored_with(&began).replayed(&broken) else { continue };
            for work in run.pending_runnables() {
                run.release(work);
            }
            drop(run.compose(&own));
            run.plan(case.inputs[0]);
            for _ in 0..30 {
                for runnable in run.prepare() {
                    run.apply(runnable.execute());
                }
            }
            drop(Look::at(&run, case, broken.len()));
        }
        Ok(())
    });
}

/// In which steps a workflow grows, and when.
struct Plan {
    /// The workflow of each stage.
    workflows: Vec<Workflow>,
    /// The first input of each stage.
    first_inputs: Vec<usize>,
    deeds: Vec<Deed>,
}

#[derive(Clone, Copy)]
enum Deed {
    Compose(usize),
    Plan(usize),
}

/// A run that grew and came to its end.
struct Grown {
    plan: Plan,
    /// The stage in which each component was added.
    stages: Vec<usize>,
    run: Run,
    log: Vec<Event>,
    looks: Vec<Look>,
    /// How long the log was before each deed, and which deed that was.
    calls: Vec<(usize, usize)>,
}

impl Grown {
    fn of(case: &Case) -> Result<Self, String> {
        let mut dice = Dice::new(case.seed ^ 0xc0);
        let stages = stages(&case.spec, &mut dice);
        let workflows = (0..STAGES).map(|stage| {
            let kept = lowered_components(&case.spec).into_iter().zip(&stages);
            built(kept.filter(|(_, of)| **of <= stage).map(|(component, _)| component).collect())
        });
        let mut first_inputs: Vec<usize> = (0..STAGES).map(|_| dice.below(case.inputs.len() + 1)).collect();
        first_inputs.sort_unstable();
        first_inputs[0] = 0;
        let mut deeds = Vec::new();
        for input in 0..=case.inputs.len() {
            let due = (1..STAGES).filter(|stage| first_inputs[*stage] == input);
            deeds.extend(due.map(Deed::Compose));
            if input < case.inputs.len() {
                deeds.push(Deed::Plan(input));
            }
        }
        let plan = Plan { workflows: workflows.collect(), first_inputs, deeds };

        let mut run = plan.workflows[0].run("random");
        let (mut log, mut looks) = (Vec::new(), vec![Look::at(&run, case, 0)]);
        let mut calls = Vec::new();
        let mut drive = Drive::new(case, dice.roll());
        for (place, deed) in plan.deeds.iter().enumerate() {
            calls.push((log.len(), place));
            drive.make(&mut run, *deed, &plan, &mut |run: &Run| {
                log.extend_from_slice(run.last_events());
                looks.push(Look::at(run, case, log.len()));
            })?;
        }
        calls.push((log.len(), plan.deeds.len()));
        drive.finish(&mut run, &mut |run: &Run| {
            log.extend_from_slice(run.last_events());
            looks.push(Look::at(run, case, log.len()));
        })?;
        Ok(Self { plan, stages, run, log, looks, calls })
    }
}

/// Says when each component is added: not before what it comes after, nor before a condition that it asks.
fn stages(spec: &Spec, dice: &mut Dice) -> Vec<usize> {
    let mut stages: Vec<usize> = Vec::with_capacity(spec.parts.len());
    for part in &spec.parts {
        let asked = if let Kind::Rule { test, .. } = &part.kind { test.named() } else { Vec::new() };
        let first = part.parents.iter().chain(&asked).map(|before| stages[*before]).max().unwrap_or(0);
        stages.push(if dice.chance(70) { first } else { first + dice.below(STAGES - first) });
    }
    stages
}

/// Does some of the work after each deed, and keeps what is out.
struct Drive<'c> {
    case: &'c Case,
    dice: Dice,
    out: Vec<tidewheel_core::Runnable>,
}

impl<'c> Drive<'c> {
    fn new(case: &'c Case, seed: u64) -> Self {
        Self { case, dice: Dice::new(seed), out: Vec::new() }
    }

    fn make(&mut self, run: &mut Run, deed: Deed, plan: &Plan, told: &mut impl FnMut(&Run)) -> Finding {
        match deed {
            Deed::Compose(stage) => {
                let before = run.added().count();
                let events = run.compose(&plan.workflows[stage]).map_err(|error| error.to_string())?.len();
                same("events of an addition", &(events > 0), &(run.added().count() > before))?;
            }
            Deed::Plan(input) => drop(run.plan(self.case.inputs[input])),
        }
        told(run);
        for _ in 0..self.dice.below(12) {
            if self.out.is_empty() || self.dice.chance(40) {
                self.out.extend(run.prepare());
                told(run);
            }
            self.apply_one(run, told);
        }
        Ok(())
    }

    fn finish(&mut self, run: &mut Run, told: &mut impl FnMut(&Run)) -> Finding {
        loop {
            self.out.extend(run.prepare());
            told(run);
            if self.out.is_empty() {
                return Ok(());
            }
            self.apply_one(run, told);
        }
    }

    fn apply_one(&mut self, run: &mut Run, told: &mut impl FnMut(&Run)) {
        if !self.out.is_empty() {
            let runnable = self.out.swap_remove(self.dice.below(self.out.len()));
            run.apply(executed(runnable, &self.case.spec));
            told(run);
        }
    }
}
