//! A log is the run: whatever part of it is replayed gives the run as it was, and that run goes on to the same
//! end. A log that is not whole is refused or makes a run of its own, and never a panic.

use std::collections::BTreeSet;

use serde_json::Value;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::fact::{FactId, RunnableId};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{Story, WorkState};
use tidewheel_core::workflow::Workflow;
use tidewheel_testkit::{Case, Dice, Expected, expected, lowered};

use crate::compare::finished_as;
use crate::drive::{Chaos, finish_telling};
use crate::search::{Finding, for_all, same};

/// Longer logs are replayed from some of their beginnings only.
const ALL_BEGINNINGS: usize = 150;

#[test]
fn every_beginning_of_a_log_gives_the_run_as_it_was() {
    for_all(400, |case| {
        let history = History::of(case)?;
        let log = &history.log;
        let mut dice = Dice::new(case.seed);
        let mut count = Count::default();
        for end in 0..=log.len() {
            if end > 0 {
                count.add(&log[end - 1]);
            }
            if log.len() > ALL_BEGINNINGS && dice.below(log.len()) > ALL_BEGINNINGS {
                continue;
            }
            let run = history.replayed(&log[..end])?;
            count.fits(&run)?;
            // In the middle of a call nobody could look at the run.
            if let Some(look) = history.looks.iter().rfind(|look| look.log == end) {
                look.fits(&run, case)?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_run_from_the_beginning_of_a_log_comes_to_the_same_end() {
    for_all(1_000, |case| {
        let history = History::of(case)?;
        let mut dice = Dice::new(case.seed);
        for _ in 0..3 {
            let look = &history.looks[dice.below(history.looks.len())];
            let run = history.replayed(&history.log[..look.log])?;
            look.fits(&run, case)?;
            history.goes_on(run, look)?;
        }
        Ok(())
    });
}

#[test]
fn a_log_that_was_written_and_read_gives_the_same_run() {
    for_all(1_000, |case| {
        let history = History::of(case)?;
        let workflow = &history.workflow;
        let written = |event: &Event| event.to_json(workflow).unwrap();
        let lines: Vec<String> = history.log.iter().map(written).collect();
        let again = lines.iter().map(|line| Event::from_json(line, workflow).unwrap());
        same("lines written again", &again.map(|event| written(&event)).collect(), &lines)?;
        let mut dice = Dice::new(case.seed);
        for look in [&history.looks[dice.below(history.looks.len())], &history.looks[history.looks.len() - 1]]
        {
            let read = lines[..look.log].iter().map(String::as_str);
            let run = Run::replay_json(workflow, "random", read).map_err(|error| format!("{error:?}"))?;
            look.fits(&run, case)?;
            told_as_it_is(&run, &lines[..look.log])?;
            history.goes_on(run, look)?;
        }
        Ok(())
    });
}

/// The story that is told without the definition fits the run.
fn told_as_it_is(run: &Run, lines: &[String]) -> Finding {
    let mut story = Story::of_run(run.id().clone(), run.workflow().signature().nodes);
    for line in lines {
        story.add(line, None).map_err(|error| format!("{error:?}"))?;
    }
    let count = |is: fn(&WorkState) -> bool| story.works.iter().filter(|work| is(&work.state)).count();
    let told = (
        story.facts_len() as usize,
        count(|state| matches!(state, WorkState::Running)),
        count(|state| matches!(state, WorkState::Waiting { .. } | WorkState::Held { .. })),
        count(|state| matches!(state, WorkState::Failed | WorkState::Skipped)),
        count(|state| !state.is_over()),
    );
    let (out, waiting) = (run.pending_runnables().len(), run.waits().len());
    let known: BTreeSet<Option<RunnableId>> = story.works.iter().map(|work| work.id).collect();
    for id in run.pending_runnables() {
        same("the story knows its work", &known.contains(&Some(id)), &true)?;
    }
    same("the story", &told, &(run.facts_len(), out, waiting, run.failures().len(), run.open_len()))
}

#[test]
fn a_log_that_is_not_whole_never_panics() {
    for_all(1_000, |case| {
        let history = History::of(case)?;
        let log = &history.log;
        let mut dice = Dice::new(case.seed);
        for _ in 0..3 {
            let broken = broken(log, &mut dice);
            let Ok(mut run) = history.replayed(&broken) else { continue };
            for work in run.pending_runnables() {
                run.release(work);
            }
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

/// A log of which something was taken away, doubled, or put elsewhere.
pub(crate) fn broken(log: &[Event], dice: &mut Dice) -> Vec<Event> {
    let mut broken = log.to_vec();
    let (one, other) = (dice.below(log.len()), dice.below(log.len()));
    match dice.below(5) {
        0 => drop(broken.remove(one)),
        1 => broken.insert(one, log[other].clone()),
        2 => broken.swap(one, other),
        3 => broken.truncate(one),
        _ => drop(broken.drain(one.min(other)..one.max(other))),
    }
    broken
}

/// A run that was driven in an order of chance to its end, with its log.
struct History<'c> {
    case: &'c Case,
    workflow: Workflow,
    expected: Expected,
    log: Vec<Event>,
    /// What the run looked like after each call.
    looks: Vec<Look>,
}

impl<'c> History<'c> {
    fn of(case: &'c Case) -> Result<Self, String> {
        let workflow = lowered(&case.spec);
        let expected = expected(&case.spec, &case.inputs);
        let mut run = workflow.run("random");
        let (mut log, mut looks) = (Vec::new(), Vec::new());
        let told = |run: &Run| {
            log.extend_from_slice(run.last_events());
            looks.push(Look::at(run, case, log.len()));
        };
        let mut chaos = Chaos::of(case);
        if chaos.dice.chance(50) {
            chaos.finish_anyhow(&mut run, told)?;
        } else {
            chaos.finish_starving(&mut run, told)?;
        }
        finished_as(&run, case, &expected)?;
        Ok(Self { case, workflow, expected, log, looks })
    }

    fn replayed(&self, log: &[Event]) -> Result<Run, String> {
        Run::replay(&self.workflow, "random", log).map_err(|error| format!("{error:?}"))
    }

    /// Offers again what was handed out when a run looked like this, gives the inputs that it did not get yet,
    /// and runs to the end. The log of all that is a whole log, too.
    fn goes_on(&self, mut run: Run, look: &Look) -> Finding {
        let mut log = self.log[..look.log].to_vec();
        for work in &look.out {
            log.extend_from_slice(run.release(*work));
        }
        for input in &self.case.inputs[look.inputs..] {
            log.extend_from_slice(run.plan(*input));
        }
        finish_telling(&mut run, &self.case.spec, |run| log.extend_from_slice(run.last_events()))?;
        finished_as(&run, self.case, &self.expected)?;
        Look::at(&run, self.case, log.len()).fits(&self.replayed(&log)?, self.case)
    }
}

/// All that can be seen of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Look {
    /// The length of its log.
    pub(crate) log: usize,
    /// The inputs that it was given.
    inputs: usize,
    facts: Vec<(FactId, Option<String>, u32, u32, Value)>,
    facts_len: usize,
    out: Vec<RunnableId>,
    ready: Vec<(Option<String>, RunnableId)>,
    is_runnable: bool,
    retries: String,
    failures: Vec<(Option<String>, String, u32, bool, u32)>,
    absences: Vec<Option<Absence>>,
}

impl Look {
    pub(crate) const fn log(&self) -> usize {
        self.log
    }

    pub(crate) fn at(run: &Run, case: &Case, log: usize) -> Self {
        let name = |name: Option<&str>| name.map(str::to_owned);
        let facts = run.reactions();
        let fact = |fact: &tidewheel_core::Fact<'_>| {
            (fact.id, name(fact.producer), fact.depth, fact.input, fact.value.to_json().unwrap())
        };
        let failed = |failed: &tidewheel_core::Failed<'_>| {
            let message = failed.failure.to_string();
            (name(failed.component), message, failed.attempts, failed.skipped, failed.input)
        };
        let inputs = facts.iter().filter(|fact| fact.depth == 0).count();
        let absences = (0..case.spec.parts.len()).flat_map(|place| {
            let name = case.spec.name(place);
            (0..).take(inputs).map(move |input| run.absence(&name, input))
        });
        Self {
            log,
            inputs,
            facts: facts.iter().map(fact).collect(),
            facts_len: run.facts_len(),
            out: run.pending_runnables(),
            ready: run.clone().next_runnables().into_iter().map(|(of, id)| (name(of), id)).collect(),
            is_runnable: run.is_runnable(),
            retries: format!("{:?}", run.waits()),
            failures: run.failures().iter().map(failed).collect(),
            absences: absences.collect(),
        }
    }

    pub(crate) fn fits(&self, run: &Run, case: &Case) -> Finding {
        same(&format!("after {} events", self.log), &Self::at(run, case, self.log), self)
    }
}

/// What can be counted without knowing what events mean for each other.
#[derive(Default)]
pub(crate) struct Count {
    facts: usize,
    /// The node of each piece, and where it is.
    pieces: Vec<(u32, Piece)>,
    states: BTreeSet<u32>,
    failed: BTreeSet<u32>,
}

/// Where a piece of work is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Ready,
    Out,
    Waits(Option<Timestamp>),
    Over,
}

impl Count {
    pub(crate) fn add(&mut self, event: &Event) {
        match event {
            Event::FactProduced { .. } => self.facts += 1,
            Event::RunnableActivated { node, .. } | Event::UndoActivated { node, .. } => {
                self.pieces.push((*node, Piece::Ready));
            }
            Event::RunnableReopened { act, .. } => {
                self.failed.remove(act);
                // A state whose turn is over has another one, which is a piece of its own.
                let (node, piece) = self.pieces[*act as usize];
                if piece != Piece::Over || !self.states.contains(&node) {
                    self.put(*act, Piece::Ready);
                }
            }
            Event::RunnableDispatched { act, .. } => self.put(*act, Piece::Out),
            Event::RunnableReleased { act } => self.put(*act, Piece::Ready),
            Event::AttemptFailed { act, failed } => self.put(*act, Piece::Waits(Some(failed.due()))),
            Event::RunnableHeld { act, until, .. } => self.put(*act, Piece::Waits(*until)),
            Event::ActivationConsumed { act } => self.put(*act, Piece::Over),
            Event::RunnableFailed { act, .. } | Event::RunnableSkipped { act, .. } => {
                self.failed.insert(*act);
            }
            Event::StateQueued { node, .. } => {
                self.states.insert(*node);
            }
            Event::InputAccepted { .. }
            | Event::UndoRegistered { .. }
            | Event::CommandRefused { .. }
            | Event::UndoBegun { .. }
            | Event::UndoEnded { .. }
            | Event::ComponentsAdded { .. }
            | Event::RunnableCompleted { .. }
            | Event::ConditionSatisfied { .. }
            | Event::JoinFactReceived { .. }
            | Event::JoinCompleted { .. }
            | Event::FannedOut { .. }
            | Event::FanInReceived { .. }
            | Event::FanInHalted { .. }
            | Event::FanInCompleted { .. }
            | Event::StateAdvanced { .. }
            | Event::StateInitiated { .. }
            | Event::NodeSettled { .. } => {}
        }
    }

    fn put(&mut self, act: u32, piece: Piece) {
        self.pieces[act as usize].1 = piece;
    }

    pub(crate) fn fits(&self, run: &Run) -> Finding {
        let count = |is: fn(Piece) -> bool| self.pieces.iter().filter(|(_, piece)| is(*piece)).count();
        let open = count(|piece| piece != Piece::Over);
        let waiting = count(|piece| matches!(piece, Piece::Waits(_)));
        let dues = self.pieces.iter().filter_map(|(_, piece)| match *piece {
            Piece::Waits(due) => due,
            Piece::Ready | Piece::Out | Piece::Over => None,
        });
        let waits = (open > 0 && waiting == open, waiting, dues.min());
        let out = count(|piece| piece == Piece::Out);
        let found_waits = (run.only_waits(), run.waits().len(), run.next_due());
        let found = (run.facts_len(), run.open_len(), run.pending_runnables().len(), run.failures().len());
        same("counts", &found, &(self.facts, open, out, self.failed.len()))?;
        same("is runnable", &run.is_runnable(), &(open > 0))?;
        same("what waits", &found_waits, &waits)
    }
}
