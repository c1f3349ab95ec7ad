//! The story of a run, told by its log alone: no definition is needed, nothing is called. What people look at is
//! made of this.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decide::{Decision, Record};
use crate::event_json::{AbsenceForm, EventError, Form, PhaseForm, failed, record};
use crate::policy::Failure;
use crate::time::Timestamp;

/// What happened in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Story {
    /// The inputs, in order.
    pub inputs: Vec<InputLine>,
    /// The pieces of work, in the order in which they were woken.
    pub works: Vec<WorkLine>,
    /// What was produced, in order; inputs are not among it.
    pub facts: Vec<FactLine>,
    /// What will not come, and why.
    pub absences: Vec<AbsenceLine>,
    #[serde(skip)]
    lineages: Vec<Lineage>,
    /// For each fact of the run, whether it is an input, and its value.
    #[serde(skip)]
    seen_facts: u32,
}

/// An input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InputLine {
    /// Its value.
    pub value: serde_json::Value,
    /// When it was accepted.
    pub at: Option<Timestamp>,
    /// Its key.
    pub key: Option<String>,
    /// The one component that it was for.
    pub to: Option<String>,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkLine {
    /// Its component; an id where it has no name.
    pub node: String,
    /// Whether a condition was looked at.
    pub is_look: bool,
    /// The input that caused it, counted from zero.
    pub input: u32,
    /// Its place in the maps around it, outermost first.
    pub items: Vec<u32>,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptLine>,
    /// How it is.
    pub state: WorkState,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The last failure, if it failed for good or a fallback helped.
    pub failure: Option<Failure>,
    /// Why no further attempt was made.
    pub decision: Option<Decision>,
}

/// How a piece of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkState {
    /// It has not begun.
    Pending,
    /// It is under way.
    Running,
    /// It waits for its next attempt.
    Waiting {
        /// When that is due.
        until: Timestamp,
    },
    /// It gave its result, or needed none.
    Completed,
    /// A fallback gave its result.
    Recovered,
    /// It failed for good.
    Failed,
    /// It failed, and its policy lets that pass.
    Skipped,
}

/// One attempt at a piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptLine {
    /// Its number, counted from zero.
    pub number: u32,
    /// When it was handed out; several times if it got lost with its process.
    pub dispatched_at: Vec<Timestamp>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What was decided then.
    pub decision: Option<Decision>,
    /// When that was decided.
    pub decided_at: Option<Timestamp>,
}

/// Something that was produced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactLine {
    /// Who produced it.
    pub node: String,
    /// The input that caused it, counted from zero.
    pub input: u32,
    /// Its place in the maps around it, outermost first.
    pub items: Vec<u32>,
    /// The value.
    pub value: serde_json::Value,
}

/// Something that will not come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsenceLine {
    /// Of whom.
    pub node: String,
    /// For which input.
    pub input: u32,
    /// Why: `unsatisfied`, `failed`, `skipped`, `upstream_failed`, `upstream_skipped`.
    pub why: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Lineage {
    input: u32,
    items: Vec<u32>,
}

impl Story {
    /// Tells the story of the lines of a log.
    ///
    /// # Errors
    /// A line is no event.
    pub fn of<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<Self, EventError> {
        let mut story = Self::default();
        for line in lines {
            story.add(line)?;
        }
        Ok(story)
    }

    /// Adds the next line of the log.
    ///
    /// # Errors
    /// The line is no event, or not one that can follow.
    pub fn add(&mut self, line: &str) -> Result<(), EventError> {
        let form: Form<'_> = serde_json::from_str(line).map_err(EventError::Malformed)?;
        match form {
            Form::FactProduced { node: None, value, .. } => {
                let input = u32::try_from(self.inputs.len()).unwrap_or(u32::MAX);
                self.lineages.push(Lineage { input, items: Vec::new() });
                self.seen_facts += 1;
                self.inputs.push(InputLine { value: read(&value)?, at: None, key: None, to: None });
            }
            Form::FactProduced { node: Some(node), lineage, value, .. } => {
                let Lineage { input, items } = self.lineage(lineage)?.clone();
                self.seen_facts += 1;
                self.facts.push(FactLine { node: node.into_owned(), input, items, value: read(&value)? });
            }
            Form::InputAccepted { input, at, key, to } => {
                let line = self.inputs.get_mut(input as usize).ok_or(EventError::OutOfOrder)?;
                line.at = at;
                line.key = key.map(std::borrow::Cow::into_owned);
                line.to = to.map(std::borrow::Cow::into_owned);
            }
            Form::FannedOut { lineage, count, .. } => {
                let list = self.lineage(lineage)?.clone();
                self.lineages.extend((0..count).map(|index| {
                    let items = list.items.iter().copied().chain([index]).collect();
                    Lineage { input: list.input, items }
                }));
            }
            Form::RunnableActivated { node, lineage, phase, .. } => {
                let Lineage { input, items } = self.lineage(lineage)?.clone();
                self.works.push(WorkLine {
                    node: node.into_owned(),
                    is_look: matches!(phase, PhaseForm::Match),
                    input,
                    items,
                    attempts: Vec::new(),
                    state: WorkState::Pending,
                    ended_at: None,
                    failure: None,
                    decision: None,
                });
            }
            Form::RunnableDispatched { act, attempt, at } => {
                let work = self.work(act)?;
                work.state = WorkState::Running;
                work.attempt(attempt).dispatched_at.extend(at);
            }
            Form::RunnableReleased { act } => self.work(act)?.state = WorkState::Pending,
            Form::AttemptFailed { act, failed: form } => {
                let attempt = form.read()?;
                let until = attempt.due();
                let work = self.work(act)?;
                work.state = WorkState::Waiting { until };
                let line = work.attempt(attempt.decided.situation.attempt);
                line.decided_at = Some(attempt.decided.situation.now);
                line.decision = Some(attempt.decided.decision);
                line.failure = Some(attempt.failure);
            }
            Form::RunnableCompleted { act, at, recovered, .. } => {
                let recovered = recovered.map(|form| form.read()).transpose()?;
                let work = self.work(act)?;
                work.ended_at = at;
                if let Some(last) = recovered {
                    work.end_badly(WorkState::Recovered, last.failure, Some(last.decided));
                } else {
                    work.state = WorkState::Completed;
                }
            }
            Form::RunnableFailed { act, failure, at, decided, .. } => {
                let (failure, decided) = (failed(&failure)?, decided.map(|text| record(&text)).transpose()?);
                let work = self.work(act)?;
                work.ended_at = at;
                work.end_badly(WorkState::Failed, failure, decided);
            }
            Form::RunnableSkipped { act, failure, at, decided, .. } => {
                let (failure, decided) = (failed(&failure)?, decided.map(|text| record(&text)).transpose()?);
                let work = self.work(act)?;
                work.ended_at = at;
                work.end_badly(WorkState::Skipped, failure, decided);
            }
            Form::ActivationConsumed { act } => {
                let work = self.work(act)?;
                if matches!(work.state, WorkState::Pending | WorkState::Running | WorkState::Waiting { .. }) {
                    work.state = WorkState::Completed;
                }
            }
            Form::NodeSettled { node, lineage, why } => {
                let input = self.lineage(lineage)?.input;
                let why = match why {
                    AbsenceForm::Unsatisfied => "unsatisfied",
                    AbsenceForm::Failed => "failed",
                    AbsenceForm::Skipped => "skipped",
                    AbsenceForm::UpstreamFailed => "upstream_failed",
                    AbsenceForm::UpstreamSkipped => "upstream_skipped",
                };
                self.absences.push(AbsenceLine { node: node.into_owned(), input, why });
            }
            Form::ComponentsAdded { .. }
            | Form::ConditionSatisfied { .. }
            | Form::JoinFactReceived { .. }
            | Form::JoinCompleted { .. }
            | Form::FanInReceived { .. }
            | Form::FanInCompleted { .. }
            | Form::StateQueued { .. }
            | Form::StateAdvanced { .. }
            | Form::StateInitiated { .. } => {}
        }
        Ok(())
    }

    /// Returns how many facts there are, inputs among them.
    #[must_use]
    pub const fn facts_len(&self) -> u32 {
        self.seen_facts
    }

    /// Returns the values of each component, in the order in which they came.
    #[must_use]
    pub fn results(&self) -> BTreeMap<&str, Vec<&serde_json::Value>> {
        let mut results: BTreeMap<&str, Vec<&serde_json::Value>> = BTreeMap::new();
        for fact in &self.facts {
            results.entry(&fact.node).or_default().push(&fact.value);
        }
        results
    }

    fn lineage(&self, lineage: u32) -> Result<&Lineage, EventError> {
        self.lineages.get(lineage as usize).ok_or(EventError::OutOfOrder)
    }

    fn work(&mut self, act: u32) -> Result<&mut WorkLine, EventError> {
        self.works.get_mut(act as usize).ok_or(EventError::OutOfOrder)
    }
}

impl WorkLine {
    fn attempt(&mut self, number: u32) -> &mut AttemptLine {
        let place = self.attempts.iter().position(|attempt| attempt.number == number);
        let place = place.unwrap_or_else(|| {
            self.attempts.push(AttemptLine {
                number,
                dispatched_at: Vec::new(),
                failure: None,
                decision: None,
                decided_at: None,
            });
            self.attempts.len() - 1
        });
        &mut self.attempts[place]
    }

    fn end_badly(&mut self, state: WorkState, failure: Failure, decided: Option<Record>) {
        self.state = state;
        self.decision = decided.map(|decided| decided.decision);
        if let Some(decided) = decided {
            let attempt = self.attempt(decided.situation.attempt);
            attempt.failure = Some(failure.clone());
            attempt.decision = Some(decided.decision);
            attempt.decided_at = Some(decided.situation.now);
        }
        self.failure = Some(failure);
    }
}

fn read(value: &serde_json::value::RawValue) -> Result<serde_json::Value, EventError> {
    serde_json::from_str(value.get()).map_err(EventError::Malformed)
}
