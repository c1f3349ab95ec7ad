//! A run that is driven piece by piece and keeps its log, which must lead back to it.

use serde_json::Value;
use tidewheel_core::event::Event;
use tidewheel_core::fact::RunnableId;
use tidewheel_core::policy::Failure;
use tidewheel_core::run::Run;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, ReopenError, Runnable};

/// A run with all that happened in it.
pub(crate) struct Driven {
    workflow: Workflow,
    pub(crate) run: Run,
    pub(crate) log: Vec<Event>,
    /// What was run, as `name(input)`, in order.
    pub(crate) ran: Vec<String>,
}

impl Driven {
    pub(crate) fn of(workflow: &Workflow) -> Self {
        let (run, log, ran) = (workflow.run("r"), Vec::new(), Vec::new());
        Self { workflow: workflow.clone(), run, log, ran }
    }

    /// Begins and brings one input to its end.
    pub(crate) fn ran(workflow: &Workflow, input: i64, end: impl Fn(Runnable) -> Executed) -> Self {
        let mut driven = Self::of(workflow);
        driven.plan(input);
        driven.finish(end);
        driven
    }

    pub(crate) fn plan(&mut self, input: i64) {
        self.run.plan(input);
        self.keep();
    }

    /// Keeps what the last call changed.
    pub(crate) fn keep(&mut self) {
        self.log.extend_from_slice(self.run.last_events());
    }

    pub(crate) fn prepare(&mut self) -> Vec<Runnable> {
        let runnables = self.run.prepare();
        self.keep();
        runnables
    }

    pub(crate) fn apply(&mut self, executed: Executed) {
        self.run.apply(executed);
        self.keep();
    }

    /// Runs one piece.
    pub(crate) fn end(&mut self, runnable: Runnable, end: impl Fn(Runnable) -> Executed) {
        let node = runnable.node().name.unwrap_or("join").to_owned();
        self.ran.push(format!("{node}({})", runnable.input().to_json().unwrap()));
        self.apply(end(runnable));
    }

    /// Runs everything that is left.
    pub(crate) fn finish(&mut self, end: impl Fn(Runnable) -> Executed) {
        loop {
            let runnables = self.prepare();
            if runnables.is_empty() {
                assert!(!self.run.is_runnable(), "something is pending that nobody can run");
                return self.is_sound();
            }
            for runnable in runnables {
                self.end(runnable, &end);
            }
        }
    }

    /// The pieces of work of a component that failed.
    pub(crate) fn failed(&self, component: &str) -> Vec<RunnableId> {
        let is_its = |id: &RunnableId| {
            let ticket = self.run.ticket_of_failed(*id).unwrap();
            self.run.node_of(ticket.number()).unwrap().name == Some(component)
        };
        self.run.failed_works().into_iter().filter(is_its).collect()
    }

    /// Gives everything of a component that failed another chance.
    pub(crate) fn reopen(&mut self, component: &str) -> Result<(), ReopenError> {
        let failed = self.failed(component);
        assert!(!failed.is_empty(), "nothing of {component} failed");
        for id in failed {
            self.run.reopen(id, None).map(|_| ())?;
            self.keep();
        }
        Ok(())
    }

    /// The values of a component, in the order of productions.
    pub(crate) fn values(&self, component: &str) -> Vec<Value> {
        self.run.productions_of(component).unwrap().iter().map(|fact| fact.value.to_json().unwrap()).collect()
    }

    /// Whatever part of the log is replayed is a run, and all of it is this run, also when it was written.
    pub(crate) fn is_sound(&self) {
        let lines: Vec<String> =
            self.log.iter().map(|event| event.to_json(&self.workflow).unwrap()).collect();
        for end in 0..=lines.len() {
            let run = Run::replay(&self.workflow, "r", &self.log[..end]).unwrap();
            let read =
                Run::replay_json(&self.workflow, "r", lines[..end].iter().map(String::as_str)).unwrap();
            assert_eq!(look(&run), look(&read), "after {end} events");
            if end == lines.len() {
                assert_eq!(look(&run), look(&self.run));
            }
        }
    }

    /// What happened, by the names of the events.
    pub(crate) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|event| is(event)).count()
    }
}

/// What can be seen of a run.
fn look(run: &Run) -> String {
    let facts: Vec<_> = run.reactions().iter().map(|fact| (fact.id, fact.value.to_json().unwrap())).collect();
    let failures: Vec<_> =
        run.failures().iter().map(|failed| (failed.component.map(str::to_owned), failed.skipped)).collect();
    let ready = format!("{:?}", run.clone().next_runnables());
    let counts = (run.open_len(), run.only_waits(), run.next_due(), run.is_runnable());
    format!("{:?}", (facts, failures, ready, run.pending_runnables(), run.waits(), counts))
}

/// Runs it.
pub(crate) fn well(runnable: Runnable) -> Executed {
    runnable.execute()
}

/// Runs it, unless it is of one of these components: they fail.
pub(crate) fn failing(names: &[&str]) -> impl Fn(Runnable) -> Executed {
    ending(names, Outcome::Failed(Failure::new("broken")))
}

/// Runs it, unless it is of one of these components: they are skipped.
pub(crate) fn skipping(names: &[&str]) -> impl Fn(Runnable) -> Executed {
    ending(names, Outcome::Skipped(Failure::new("broken")))
}

fn ending(names: &[&str], outcome: Outcome) -> impl Fn(Runnable) -> Executed {
    move |runnable| {
        let is_one = runnable.node().name.is_some_and(|name| names.contains(&name));
        if is_one { runnable.executed(outcome.clone()) } else { runnable.execute() }
    }
}

/// Runs it, unless it is of this component: it fails, and what its input caused is undone.
pub(crate) fn undoing(name: &str) -> impl Fn(Runnable) -> Executed {
    move |runnable| {
        let is_it = runnable.node().name == Some(name);
        let executed = failing(&[name])(runnable);
        if is_it { executed.and_undo() } else { executed }
    }
}
