//! What must hold of a run in the end, however often its process ended: looked at in the store and in the file of
//! executions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidewheel_core::event::{ActIx, Event};
use tidewheel_core::fact::{RunId, RunnableId};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::Workflow;
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Status, Store};

use crate::work::{Effect, inputs_of, workflow_of};

/// What a run came to: each production with its component and its input, and how many facts there are in all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Productions(Vec<(Option<String>, u32, String)>, usize);

/// When each process lived, by its number.
#[derive(Default)]
pub(crate) struct Lives(Vec<Timestamp>);

/// What was seen on the way.
#[derive(Default)]
pub(crate) struct Seen {
    /// Processes that ended while work was under way.
    pub(crate) interrupted: BTreeSet<u32>,
    /// Attempts that began and were lost.
    pub(crate) lost: usize,
    /// Retries that were due in the life of a later process than that in which they were decided.
    pub(crate) retries_kept: usize,
    pub(crate) events: usize,
    pub(crate) executions: usize,
}

impl Lives {
    /// A process begins now. Returns its number.
    pub(crate) fn begin(&mut self) -> u32 {
        self.0.push(now());
        u32::try_from(self.0.len() - 1).unwrap()
    }

    pub(crate) fn began(&self, process: u32) -> Timestamp {
        self.0[process as usize]
    }

    fn process_at(&self, at: Timestamp) -> u32 {
        u32::try_from(self.0.partition_point(|began| *began <= at).saturating_sub(1)).unwrap()
    }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap())
}

/// Returns what the runs come to if nothing ends before its time.
pub(crate) async fn undisturbed(runs: usize) -> Vec<Productions> {
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    let mut all = Vec::new();
    let mut started = Vec::new();
    for number in 0..runs {
        let run = runner.start(format!("{number}").as_str(), workflow_of(number)).await.unwrap();
        for input in inputs_of(number) {
            run.input(input).await.unwrap();
        }
        started.push(run);
    }
    for run in started {
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
        all.push(productions(&run.state().await.unwrap()));
    }
    runner.shutdown().await;
    all
}

pub(crate) fn productions(run: &Run) -> Productions {
    let told = run.productions().into_iter().map(|fact| {
        (fact.producer.map(str::to_owned), fact.input, fact.value.to_text().unwrap().get().to_owned())
    });
    Productions(told.collect(), run.facts_len())
}

/// Checks one run that must be over.
pub(crate) async fn check(
    store: &dyn Store,
    id: &str,
    number: usize,
    expected: &Productions,
    effects: &[Effect],
    lives: &Lives,
    seen: &mut Seen,
) {
    let (id, workflow) = (RunId::new(id), workflow_of(number));
    let record = store.find(&id).await.unwrap().unwrap_or_else(|| panic!("{id} is there"));
    assert_eq!(record.status, Status::Completed, "{id}: {:?}", record.reason);
    let log = Log::read(store, &id, workflow).await;
    assert_eq!(log.events.len() as u64, record.version, "{id}");
    let run = log.replayed(&id, workflow, |_| true);
    assert!(!run.is_runnable(), "{id}");
    assert_eq!(productions(&run), *expected, "{id}");
    let facts: BTreeSet<_> = run.reactions().iter().map(|fact| fact.id).collect();
    assert_eq!(facts.len(), run.reactions().len(), "{id}: each fact is there once");
    assert_eq!(run.inputs_len() as usize, inputs_of(number).len(), "{id}: each input is one");

    let dispatched = check_events(&id, &log, expected, lives, seen);
    check_effects(&id, workflow, &log, &run, &dispatched, effects, lives);
    seen.events += log.events.len();
    seen.executions += effects.len();
}

/// The log of a run: each event with the moment at which it was stored.
pub(crate) struct Log {
    pub(crate) events: Vec<(Timestamp, Event)>,
    lines: Vec<(Timestamp, String)>,
}

impl Log {
    pub(crate) async fn read(store: &dyn Store, id: &RunId, workflow: &Workflow) -> Self {
        let mut lines = Vec::new();
        for stored in store.read(id, 0).await.unwrap() {
            assert_eq!(stored.first, lines.len() as u64, "{id}: the log has no gap");
            lines
                .extend(stored.events.events().unwrap().into_iter().map(|line| (stored.at, line.to_owned())));
        }
        let events =
            lines.iter().map(|(at, line)| (*at, Event::from_json(line, workflow).unwrap())).collect();
        Self { events, lines }
    }

    pub(crate) fn replayed(
        &self,
        id: &RunId,
        workflow: &Workflow,
        wanted: impl Fn(Timestamp) -> bool,
    ) -> Run {
        let lines = self.lines.iter().filter(|(at, _)| wanted(*at)).map(|(_, line)| line.as_str());
        workflow.run(id.clone()).replayed_json(lines).unwrap()
    }
}

/// How an activation is, as the log tells it.
#[derive(Default)]
struct Act {
    dispatches: usize,
    /// In which life it was handed out, while it is out.
    out_since: Option<u32>,
    due: Option<(Timestamp, u32)>,
    ends: usize,
    consumed: usize,
}

/// Checks the order of events. Returns how often each piece of work was handed out.
fn check_events(
    id: &RunId,
    log: &Log,
    expected: &Productions,
    lives: &Lives,
    seen: &mut Seen,
) -> BTreeMap<ActIx, usize> {
    let mut acts: BTreeMap<ActIx, Act> = BTreeMap::new();
    let mut facts = 0;
    for (stored_at, event) in &log.events {
        let life = lives.process_at(*stored_at);
        match event {
            Event::FactProduced { .. } => facts += 1,
            Event::RunnableActivated { act, .. } => {
                acts.insert(*act, Act::default());
            }
            Event::RunnableDispatched { act, at, .. } => {
                let act = acts.get_mut(act).unwrap();
                assert_eq!(act.ends + act.consumed, 0, "{id}: what is over is not handed out");
                if let Some(lost_in) = act.out_since.replace(life) {
                    seen.lost += 1;
                    seen.interrupted.insert(lost_in);
                }
                if let Some((due, decided_in)) = act.due.take() {
                    assert!(at.unwrap() >= due, "{id}: a retry came {at:?}, and was due {due:?}");
                    seen.retries_kept += usize::from(decided_in != life);
                }
                act.dispatches += 1;
            }
            Event::AttemptFailed { act, failed } => {
                let act = acts.get_mut(act).unwrap();
                assert!(act.out_since.take().is_some(), "{id}: what failed was out");
                act.due = Some((failed.due(), life));
            }
            Event::RunnableReleased { act } => {
                // Another process gives back what was handed out and not being executed when the last one died.
                if let Some(lost_in) = acts.get_mut(act).unwrap().out_since.take()
                    && lost_in != life
                {
                    seen.lost += 1;
                    seen.interrupted.insert(lost_in);
                }
            }
            Event::RunnableCompleted { act, .. }
            | Event::RunnableFailed { act, .. }
            | Event::RunnableSkipped { act, .. } => {
                let act = acts.get_mut(act).unwrap();
                act.ends += 1;
                act.out_since = None;
            }
            Event::ActivationConsumed { act } => acts.get_mut(act).unwrap().consumed += 1,
            _ => {}
        }
    }
    assert_eq!(facts, expected.1, "{id}: each fact was produced once");
    for (index, act) in &acts {
        assert_eq!(act.consumed, 1, "{id}: activation {index} is over once");
        assert!(act.ends <= 1, "{id}: activation {index} has {} ends", act.ends);
        assert!(
            act.dispatches == 0 || act.ends == 1,
            "{id}: activation {index} was handed out and has an end"
        );
    }
    let dispatched = acts.into_iter().filter(|(_, act)| act.dispatches > 0);
    dispatched.map(|(index, act)| (index, act.dispatches)).collect()
}

/// Components whose functions leave no line.
const SILENT: [&str; 2] = ["sum", "total"];

fn check_effects(
    id: &RunId,
    workflow: &Workflow,
    log: &Log,
    run: &Run,
    dispatched: &BTreeMap<ActIx, usize>,
    effects: &[Effect],
    lives: &Lives,
) {
    let is_loud =
        |act: ActIx| run.node_of(act).and_then(|node| node.name).is_some_and(|name| !SILENT.contains(&name));
    let loud: Vec<usize> =
        dispatched.iter().filter(|(act, _)| is_loud(**act)).map(|(_, count)| *count).collect();
    let (dispatches, works) = (loud.iter().sum::<usize>(), loud.len());
    let mut executed: BTreeMap<RunnableId, Vec<&Effect>> = BTreeMap::new();
    for effect in effects {
        executed.entry(effect.work).or_default().push(effect);
    }
    assert_eq!(executed.len(), works, "{id}: all work was done, each under one key");
    assert!(effects.len() <= dispatches, "{id}: {} executions, {dispatches} dispatches", effects.len());
    let mut before: BTreeMap<u32, Run> = BTreeMap::new();
    for (work, executions) in executed {
        let first = executions[0].process;
        for later in executions.into_iter().filter(|effect| effect.process > first) {
            let process = later.process;
            let began = lives.began(process);
            let run = before
                .entry(process)
                .or_insert_with(|| log.replayed(id, workflow, |stored_at| stored_at < began));
            // Where several processes live at once, the work may have come up after this one began.
            let comes_up = |(at, _): &(Timestamp, String)| {
                *at >= began
                    && log.replayed(id, workflow, |stored_at| stored_at <= *at).ticket_of(work).is_some()
            };
            assert!(
                run.ticket_of(work).is_some() || log.lines.iter().any(comes_up),
                "{id}: {work} was over before process {process} began, which executed attempt {} of it",
                later.attempt
            );
        }
    }
}
