//! The story of a run, told by its log alone: no definition is needed, nothing is called. What people look at is
//! made of this.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::identity::Identities;
use super::line::{AbsenceLine, FactLine, InputLine, UndoState};
use super::stretch::Doing;
use super::work::{WorkLine, WorkState};
use crate::event::{Hold, Phase};
use crate::event_json::{AbsenceForm, EventError, Form, PhaseForm, UndoForm, failed, record};
use crate::fact::{NodeId, RunId};
use crate::time::Timestamp;
use crate::work::Token;

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
    /// What was asked of the run and not done, by its number, and why.
    pub refused: BTreeMap<i64, String>,
    #[serde(skip)]
    lineages: Vec<Lineage>,
    /// The component that made each fact; `None` for an input.
    #[serde(skip)]
    makers: Vec<Option<String>>,
    /// The piece of work that said how it is undone, in the order in which that was said.
    #[serde(skip)]
    sayers: Vec<u32>,
    /// The components that give lineages their turn at a state.
    #[serde(skip)]
    states: BTreeSet<String>,
    #[serde(skip)]
    seen_facts: u32,
    #[serde(skip)]
    identities: Option<Identities>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Lineage {
    input: u32,
    items: Vec<u32>,
}

impl Story {
    /// Begins the story of a run whose nodes are known: its pieces of work have their identities.
    #[must_use]
    pub fn of_run(run: RunId, nodes: BTreeMap<String, NodeId>) -> Self {
        let (facts, works) = (Vec::new(), Vec::new());
        let (fans, initiated) = (BTreeSet::new(), BTreeSet::new());
        let identities = Some(Identities { run, nodes, facts, works, fans, initiated });
        Self { identities, ..Self::default() }
    }

    /// Returns how many failures were skipped: the policies of their work let them pass.
    #[must_use]
    pub fn skipped_failures(&self) -> usize {
        self.works.iter().filter(|work| work.state == WorkState::Skipped).count()
    }

    /// Tells the story of the lines of a log.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::view::Story;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
    /// let mut run = workflow.run("run-1");
    /// let mut log = run.plan(41_i64).to_vec();
    /// for runnable in run.prepare() {
    ///     log.extend_from_slice(run.last_events());
    ///     run.apply(runnable.execute());
    ///     log.extend_from_slice(run.last_events());
    /// }
    /// let lines = log.iter().map(|event| event.to_json(&workflow)).collect::<Result<Vec<_>, _>>()?;
    /// let story = Story::of(lines.iter().map(String::as_str))?; // from the log alone
    /// assert_eq!((story.works[0].node.as_str(), story.works[0].state.name()), ("inc", "completed"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A line is no event.
    pub fn of<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<Self, EventError> {
        let mut story = Self::default();
        for line in lines {
            story.add(line, None)?;
        }
        Ok(story)
    }

    /// Adds the next line of the log, which was stored at that instant, if somebody knows.
    ///
    /// # Errors
    /// The line is no event, or not one that can follow.
    pub fn add(&mut self, line: &str, stored_at: Option<Timestamp>) -> Result<(), EventError> {
        let form: Form<'_> = serde_json::from_str(line).map_err(EventError::Malformed)?;
        match form {
            Form::FactProduced { node: None, value, .. } => {
                let input = u32::try_from(self.inputs.len()).unwrap_or(u32::MAX);
                self.lineages.push(Lineage { input, items: Vec::new() });
                self.seen_facts += 1;
                if let Some(identities) = &mut self.identities {
                    identities.add_input(input);
                }
                self.makers.push(None);
                let (value, undo) = (read(&value)?, UndoState::None);
                self.inputs.push(InputLine { value, at: None, key: None, to: None, undo });
            }
            Form::FactProduced { node: Some(node), parent, lineage, value, .. } => {
                let Lineage { input, items } = self.lineage(lineage)?.clone();
                self.seen_facts += 1;
                if let Some(identities) = &mut self.identities {
                    identities.add_fact(&node, parent, items.last().copied());
                }
                let (node, value) = (node.into_owned(), read(&value)?);
                self.makers.push(Some(node.clone()));
                self.facts.push(FactLine { node, input, items, value, at: stored_at });
            }
            Form::InputAccepted { input, at, key, to } => {
                let line = self.inputs.get_mut(input as usize).ok_or(EventError::OutOfOrder)?;
                line.at = at;
                line.key = key.map(std::borrow::Cow::into_owned);
                line.to = to.map(std::borrow::Cow::into_owned);
            }
            Form::FannedOut { node, lineage, count, .. } => {
                if let Some(identities) = &mut self.identities {
                    identities.fans.insert(node.into_owned());
                }
                let list = self.lineage(lineage)?.clone();
                self.lineages.extend((0..count).map(|index| {
                    let items = list.items.iter().copied().chain([index]).collect();
                    Lineage { input: list.input, items }
                }));
            }
            Form::RunnableActivated { node, fact, lineage, phase, .. } => {
                let Lineage { input, items } = self.lineage(lineage)?.clone();
                let phase = match phase {
                    PhaseForm::Match => Phase::Match,
                    PhaseForm::Work => Phase::Work,
                    PhaseForm::Undo => Phase::Undo,
                };
                let identities = self.identities.as_mut();
                let mut work = WorkLine::woken(node.into_owned(), input, items, stored_at);
                work.is_look = phase == Phase::Match;
                work.id = identities.and_then(|identities| identities.add_work(&work.node, fact, phase));
                self.works.push(work);
            }
            Form::UndoRegistered { act, .. } => {
                self.work(act)?;
                self.sayers.push(act);
            }
            Form::UndoBegun { input, at } => {
                let line = self.inputs.get_mut(input as usize).ok_or(EventError::OutOfOrder)?;
                line.undo = UndoState::Begun { at: at.or(stored_at) };
            }
            Form::UndoActivated { node, undo, lineage, .. } => {
                let Lineage { input, items } = self.lineage(lineage)?.clone();
                let mut work = WorkLine::woken(node.into_owned(), input, items, stored_at);
                let identities = self.identities.as_mut();
                match undo {
                    UndoForm::Fact(fact) => {
                        work.undoes = self.makers.get(fact as usize).cloned().flatten();
                        let id = |own: &mut Identities| own.add_work(&work.node, fact, Phase::Undo);
                        work.id = identities.and_then(id);
                    }
                    UndoForm::Registered(place) => {
                        let sayer = self.sayers.get(place as usize).copied().ok_or(EventError::OutOfOrder)?;
                        work.undoes = self.works.get(sayer as usize).map(|work| work.node.clone());
                        let id = |own: &mut Identities| {
                            let fact = own.works.get(sayer as usize).copied()?;
                            own.add_work(&work.node, fact, Phase::Undo)
                        };
                        work.id = identities.and_then(id);
                    }
                }
                self.works.push(work);
            }
            Form::UndoEnded { input } => {
                let line = self.inputs.get_mut(input as usize).ok_or(EventError::OutOfOrder)?;
                line.undo = UndoState::Ended;
            }
            Form::RunnableHeld { act, why, on, until, at } => {
                let run = self.identities.as_ref().map(|identities| identities.run.clone());
                let work = self.work(act)?;
                work.state = WorkState::Held { why, until };
                work.held_on = on.map(std::borrow::Cow::into_owned);
                if why == Hold::External {
                    let attempt = work.attempts.last().map_or(0, |attempt| attempt.number);
                    let round = work.round;
                    let token = work.id.zip(run).map(|(work, run)| Token { run, work, attempt, round });
                    work.held_on = token.map(|token| token.to_string());
                }
                work.turn_to(Some(Doing::Waiting), at.or(stored_at));
                if let Some(last) = work.stretches.last_mut() {
                    last.hold = Some(why);
                }
            }
            Form::RunnableReopened { act, at } => self.reopen(act, at.or(stored_at))?,
            Form::StateQueued { node, .. } => {
                self.states.insert(node.into_owned());
            }
            Form::RunnableDispatched { act, attempt, at } => {
                let work = self.work(act)?;
                if let (WorkState::Running, Some(last)) = (work.state, work.stretches.last_mut()) {
                    last.doing = Doing::Lost;
                }
                work.held_on = None;
                if let (WorkState::Waiting { until }, Some(at)) = (work.state, at)
                    && until < at
                {
                    work.turn_to(Some(Doing::Queue), Some(until));
                }
                work.state = WorkState::Running;
                work.attempt(attempt).dispatched_at.extend(at);
                work.turn_to(Some(Doing::Attempt), at.or(stored_at));
            }
            Form::RunnableReleased { act } => {
                let work = self.work(act)?;
                work.state = WorkState::Pending;
                work.turn_to(Some(Doing::Queue), stored_at);
            }
            Form::AttemptFailed { act, failed: form } => {
                let attempt = form.read()?;
                let until = attempt.due();
                let work = self.work(act)?;
                work.state = WorkState::Waiting { until };
                work.retries_allowed = Some(attempt.decided.policy.max_retries);
                work.was_in_vain();
                work.turn_to(Some(Doing::Backoff), Some(attempt.decided.situation.now));
                let line = work.attempt(attempt.decided.situation.attempt);
                line.decided_at = Some(attempt.decided.situation.now);
                line.decision = Some(attempt.decided.decision);
                line.failure = Some(attempt.failure);
            }
            Form::RunnableCompleted { act, at, recovered, .. } => {
                let recovered = recovered.map(|form| form.read()).transpose()?;
                let work = self.work(act)?;
                if recovered.is_some() {
                    work.was_in_vain();
                }
                work.end(at.or(stored_at));
                if let Some(last) = recovered {
                    work.end_badly(WorkState::Recovered, last.failure, Some(last.decided));
                } else {
                    work.state = WorkState::Completed;
                }
            }
            Form::RunnableFailed { act, failure, at, decided, .. } => {
                let (failure, decided) = (failed(&failure)?, decided.map(|text| record(&text)).transpose()?);
                let work = self.work(act)?;
                work.was_in_vain();
                work.end(at.or(stored_at));
                work.end_badly(WorkState::Failed, failure, decided);
            }
            Form::RunnableSkipped { act, failure, at, decided, .. } => {
                let (failure, decided) = (failed(&failure)?, decided.map(|text| record(&text)).transpose()?);
                let work = self.work(act)?;
                work.was_in_vain();
                work.end(at.or(stored_at));
                work.end_badly(WorkState::Skipped, failure, decided);
            }
            Form::ActivationConsumed { act } => {
                let work = self.work(act)?;
                if !work.state.is_over() {
                    work.state = WorkState::Completed;
                    work.end(stored_at);
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
            Form::StateInitiated { node, .. } => {
                if let Some(identities) = &mut self.identities {
                    identities.initiated.insert(node.into_owned());
                }
            }
            Form::CommandRefused { command, why } => {
                self.refused.insert(command, why.into_owned());
            }
            Form::ComponentsAdded { .. }
            | Form::ConditionSatisfied { .. }
            | Form::JoinFactReceived { .. }
            | Form::JoinCompleted { .. }
            | Form::FanInReceived { .. }
            | Form::FanInHalted { .. }
            | Form::FanInCompleted { .. }
            | Form::StateAdvanced { .. } => {}
        }
        Ok(())
    }

    /// Returns how many facts there are, inputs among them.
    #[must_use]
    pub const fn facts_len(&self) -> u32 {
        self.seen_facts
    }

    /// Tells why a piece of work cannot be tried again; `None` if it can, as far as the log tells.
    #[must_use]
    pub fn no_retry(&self, work: &WorkLine) -> Option<&'static str> {
        match work.state {
            WorkState::Held { why: Hold::Pause, .. } => return None,
            WorkState::Failed | WorkState::Skipped => {}
            WorkState::Pending
            | WorkState::Running
            | WorkState::Waiting { .. }
            | WorkState::Held { .. }
            | WorkState::Completed
            | WorkState::Recovered
            | WorkState::Replaced => return Some("only work that failed can be tried again"),
        }
        let input = self.inputs.get(work.input as usize);
        let is_undone = input.is_some_and(|input| input.undo != UndoState::None);
        is_undone.then_some("what its input caused was undone")
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

    /// Gives failed work all its attempts again. What nobody waited for because of it is awaited again.
    fn reopen(&mut self, act: u32, at: Option<Timestamp>) -> Result<(), EventError> {
        let is_state = self.works.get(act as usize).is_some_and(|work| self.states.contains(&work.node));
        let work = self.work(act)?;
        let was_over = work.state.is_over();
        work.round += 1;
        work.held_on = None;
        work.failure = None;
        work.decision = None;
        // A state gives it another turn, as another piece of work.
        if is_state {
            work.state = WorkState::Replaced;
            work.end(at);
        } else {
            work.state = WorkState::Pending;
            work.ended_at = None;
            work.turn_to(Some(Doing::Queue), at);
        }
        let (node, input) = (work.node.clone(), work.input);
        let has_failed = |work: &WorkLine| matches!(work.state, WorkState::Failed | WorkState::Skipped);
        let others = self.works.iter().any(|work| work.input == input && has_failed(work));
        // Without the definition nobody can tell what comes after what; what another failure may be to blame for
        // stays, and what is absent still is told again.
        self.absences.retain(|absence| {
            let is_own = absence.node == node;
            let is_after = !others && absence.why.starts_with("upstream_");
            !was_over || absence.input != input || !(is_own || is_after)
        });
        Ok(())
    }

    fn lineage(&self, lineage: u32) -> Result<&Lineage, EventError> {
        self.lineages.get(lineage as usize).ok_or(EventError::OutOfOrder)
    }

    fn work(&mut self, act: u32) -> Result<&mut WorkLine, EventError> {
        self.works.get_mut(act as usize).ok_or(EventError::OutOfOrder)
    }
}

fn read(value: &serde_json::value::RawValue) -> Result<serde_json::Value, EventError> {
    serde_json::from_str(value.get()).map_err(EventError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Record, RetryPolicy, Situation};
    use crate::policy::{Failure, JitterSeed, Policy};
    use crate::view::explain;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn dispatched(attempt: u32, seconds: u64) -> (u64, String) {
        let nanos = at(seconds).as_nanos();
        (seconds, format!(r#"{{"runnable_dispatched":{{"act":0,"attempt":{attempt},"at":{nanos}}}}}"#))
    }

    /// Tells a story whose work was woken in second 1; each line comes with the second in which it was stored.
    fn told(lines: &[(u64, String)]) -> Story {
        let woken = [
            r#"{"fact_produced":{"fact":0,"node":null,"parent":null,"lineage":0,"value":1}}"#,
            r#"{"runnable_activated":{"act":0,"node":"pay","fact":0,"lineage":0,"phase":"work"}}"#,
        ];
        let mut story = Story::default();
        for line in woken {
            story.add(line, Some(at(1))).unwrap();
        }
        for (seconds, line) in lines {
            story.add(line, Some(at(*seconds))).unwrap();
        }
        story
    }

    fn stretches(story: &Story) -> Vec<(&'static str, u64, Option<u64>)> {
        let seconds = |instant: Timestamp| instant.as_nanos() / 1_000_000_000;
        let stretches = story.works[0].stretches.iter();
        stretches.map(|one| (one.doing.name(), seconds(one.from), one.to.map(seconds))).collect()
    }

    fn attempt_failed(seconds: u64) -> (u64, String) {
        let policy = Policy::new().max_retries(2).backoff(crate::policy::Backoff::Fixed).base_delay("5s");
        let policy = RetryPolicy::from(&policy.resolved().unwrap());
        let decided = Record::decide(policy, Situation::failed(0, at(seconds), JitterSeed::new("r", "n")));
        let failure = serde_json::to_string(&Failure::new("no answer").code(503)).unwrap();
        let decided = decided.to_json();
        let failed = format!(r#"{{"failure":{failure},"decided":{decided}}}"#);
        (seconds, format!(r#"{{"attempt_failed":{{"act":0,"failed":{failed}}}}}"#))
    }

    #[test]
    fn work_that_is_retried_late_waits_in_the_queue_after_its_backoff() {
        let story = told(&[dispatched(0, 3), attempt_failed(4), dispatched(1, 12)]);
        let expected = [
            ("queue", 1, Some(3)),
            ("failed", 3, Some(4)),
            ("backoff", 4, Some(9)),
            ("queue", 9, Some(12)),
            ("attempt", 12, None),
        ];
        assert_eq!(stretches(&story), expected);
        assert_eq!(
            explain(&story.works[0], at(14)),
            [
                "It waited 5s in the queue.",
                "The first attempt failed after 1s: [503] no answer. Retry 1 of 2 came 5s later \
                 (SCHED_RETRY_SCHEDULED).",
                "Retry 1 has been under way for 2s.",
            ]
        );
    }

    #[test]
    fn an_attempt_that_got_lost_with_its_process_is_told_as_one() {
        let ended = (9, r#"{"activation_consumed":{"act":0}}"#.to_owned());
        let story = told(&[dispatched(0, 1), dispatched(0, 7), ended]);
        let expected = [("queue", 1, Some(1)), ("lost", 1, Some(7)), ("attempt", 7, Some(9))];
        assert_eq!(stretches(&story), expected);
        assert_eq!(
            explain(&story.works[0], at(10)),
            [
                "The first attempt was handed out 2 times, since the process that had it was lost.",
                "It completed 1s ago (1970-01-01T00:00:09Z).",
            ]
        );
    }

    #[test]
    fn work_that_is_given_back_is_in_the_queue_again() {
        let released = (5, r#"{"runnable_released":{"act":0}}"#.to_owned());
        let story = told(&[dispatched(0, 3), released]);
        assert_eq!(stretches(&story), [("queue", 1, Some(3)), ("attempt", 3, Some(5)), ("queue", 5, None)]);
    }

    fn held(why: &str, rest: &str, seconds: u64) -> (u64, String) {
        (seconds, format!(r#"{{"runnable_held":{{"act":0,"why":"{why}"{rest}}}}}"#))
    }

    #[test]
    fn work_that_is_held_says_by_what_and_until_when() {
        let until = at(20).as_nanos();
        let lines = [
            held("rate_limit", &format!(r#","on":"bank","until":{until}"#), 2),
            dispatched(0, 6),
            held("circuit_breaker", r#","on":"card""#, 8),
        ];
        let story = told(&lines[..1]);
        let limited = "It waits for rate limit bank: as many have begun as may in that time. That has been so \
                       for 3s. Next: somebody looks at it in 15s (1970-01-01T00:00:20Z).";
        assert_eq!(explain(&story.works[0], at(5)), ["It waited 1s in the queue.", limited]);
        let story = told(&lines);
        let expected =
            [("queue", 1, Some(2)), ("waiting", 2, Some(6)), ("attempt", 6, Some(8)), ("waiting", 8, None)];
        assert_eq!(stretches(&story), expected);
        let told = explain(&story.works[0], at(9)).join("\n");
        assert!(told.contains("It waited 4s for its rate limit."), "{told}");
        assert!(told.contains("circuit breaker card, which is open"), "{told}");
        assert!(told.ends_with("Next: nothing by itself."), "{told}");
    }

    /// It once said that the work "goes on 19.1s ago".
    #[test]
    fn what_comes_next_is_never_an_instant_that_is_over() {
        let until = at(20).as_nanos();
        for why in ["circuit_breaker", "rate_limit", "concurrency_limit", "delay", "external"] {
            let story = told(&[held(why, &format!(r#","on":"card","until":{until}"#), 2)]);
            let before = explain(&story.works[0], at(19)).join("\n");
            assert!(before.contains("in 1s"), "{why}: {before}");
            for now in [at(20), at(39)] {
                let told = explain(&story.works[0], now).join("\n");
                let (_, next) = told.rsplit_once("Next: ").expect("it says what comes next");
                assert!(!next.contains("ago") && !next.contains("1970"), "{why}: {told}");
            }
        }
    }

    #[test]
    fn every_hold_is_a_sentence() {
        for why in
            "admission delay schedule rate_limit concurrency_limit circuit_breaker duplicate external pause"
                .split(' ')
        {
            let story = told(&[held(why, "", 2)]);
            assert!(matches!(story.works[0].state, WorkState::Held { why: held, .. } if held.name() == why));
            assert!(explain(&story.works[0], at(3)).len() > 1, "{why}");
        }
    }

    #[test]
    fn work_that_somebody_outside_ends_shows_its_token() {
        let nodes = BTreeMap::from([("pay".to_owned(), NodeId::default())]);
        let mut story = Story::of_run(RunId::new("order:7"), nodes);
        for line in [
            r#"{"fact_produced":{"fact":0,"node":null,"parent":null,"lineage":0,"value":1}}"#,
            r#"{"runnable_activated":{"act":0,"node":"pay","fact":0,"lineage":0,"phase":"work"}}"#,
            r#"{"runnable_dispatched":{"act":0,"attempt":1}}"#,
            r#"{"runnable_held":{"act":0,"why":"external"}}"#,
        ] {
            story.add(line, Some(at(1))).unwrap();
        }
        let work = &story.works[0];
        assert_eq!(work.held_on, Some(format!("order:7:{}:1", work.id.unwrap())));
    }

    #[test]
    fn work_that_is_reopened_begins_another_round_and_what_missed_it_waits_again() {
        let failed =
            r#"{"runnable_failed":{"act":0,"failure":{"message":"no","non_retryable":false},"attempts":1}}"#;
        let settled = |node: &str, why: &str| {
            (4, format!(r#"{{"node_settled":{{"node":"{node}","lineage":0,"why":"{why}"}}}}"#))
        };
        let mut lines = vec![
            dispatched(0, 3),
            (4, failed.to_owned()),
            settled("pay", "failed"),
            settled("ship", "upstream_failed"),
        ];
        assert_eq!(told(&lines).absences.len(), 2);
        lines.push((6, r#"{"runnable_reopened":{"act":0}}"#.to_owned()));
        lines.push(dispatched(0, 7));
        let story = told(&lines);
        assert!(story.absences.is_empty());
        let work = &story.works[0];
        assert_eq!((work.state, work.failure.as_ref(), work.ended_at), (WorkState::Running, None, None));
        assert_eq!(
            work.attempts.iter().map(|one| (one.round, one.number)).collect::<Vec<_>>(),
            [(0, 0), (1, 0)]
        );
        assert_eq!(stretches(&story).last(), Some(&("attempt", 7, None)));
        assert!(explain(work, at(8)).contains(&"Then somebody gave it all its attempts again.".to_owned()));
    }

    #[test]
    fn what_undoes_something_says_what() {
        let story = told(&[
            (2, r#"{"fact_produced":{"fact":1,"node":"pay","parent":0,"lineage":0,"value":5}}"#.to_owned()),
            (2, r#"{"activation_consumed":{"act":0}}"#.to_owned()),
            (3, r#"{"undo_registered":{"act":0,"node":"refund","value":5}}"#.to_owned()),
            (4, r#"{"undo_begun":{"input":0}}"#.to_owned()),
            (
                4,
                r#"{"undo_activated":{"act":1,"node":"refund","undo":{"registered":0},"lineage":0}}"#
                    .to_owned(),
            ),
            (5, r#"{"undo_activated":{"act":2,"node":"unpay","undo":{"fact":1},"lineage":0}}"#.to_owned()),
        ]);
        let undone: Vec<_> = story.works.iter().map(|work| work.undoes.as_deref()).collect();
        assert_eq!(undone, [None, Some("pay"), Some("pay")]);
        assert_eq!(story.inputs[0].undo, UndoState::Begun { at: Some(at(4)) });
        assert_eq!(explain(&story.works[1], at(6))[0], "It undoes what pay did.");
    }

    #[test]
    fn clocks_that_differ_give_no_time_that_goes_backwards() {
        let story = told(&[dispatched(0, 8), attempt_failed(4)]);
        let expected = [("queue", 1, Some(8)), ("failed", 8, Some(8)), ("backoff", 8, None)];
        assert_eq!(stretches(&story), expected);
    }

    #[test]
    fn a_story_without_times_has_no_stretches() {
        let lines = [r#"{"fact_produced":{"fact":0,"node":null,"parent":null,"lineage":0,"value":1}}"#];
        let woken = r#"{"runnable_activated":{"act":0,"node":"pay","fact":0,"lineage":0,"phase":"work"}}"#;
        let story = Story::of(lines.into_iter().chain([woken])).unwrap();
        assert!(story.works[0].stretches.is_empty() && story.works[0].id.is_none());
    }
}
