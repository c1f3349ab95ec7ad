//! What the tests of policies look at: calls, a clock in the hand of the test, and a run as a picture.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidewheel_core::event::Event;
use tidewheel_core::policy::{Failure, Matcher, Policy, Resolved, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::{Component, Workflow, step};
use tidewheel_runner::{DriveOptions, Options, drive, react_until_satisfied};
use tidewheel_store::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often something was called, and on the runtime's clock when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    count: Arc<AtomicU32>,
    at: Arc<std::sync::Mutex<Vec<Instant>>>,
}

impl Calls {
    /// Counts one call and returns how many there were before.
    pub(crate) fn one_more(&self) -> u32 {
        self.at.lock().unwrap().push(Instant::now());
        self.count.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns how many milliseconds lie between the calls.
    pub(crate) fn gaps(&self) -> Vec<u128> {
        let at = self.at.lock().unwrap();
        at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }
}

/// A step that fails so many times and then adds one.
pub(crate) fn flaky(name: &str, calls: &Calls, failures: u32) -> Component {
    let calls = calls.clone();
    step(name, move |x: i64| {
        let before = calls.one_more();
        async move { if before < failures { Err(Failure::new("busy").code(503)) } else { Ok(x + 1) } }
    })
}

/// The same as a function that is not async.
pub(crate) fn flaky_sync(name: &str, calls: &Calls, failures: u32) -> Component {
    let calls = calls.clone();
    step(
        name,
        move |x: i64| {
            if calls.one_more() < failures { Err(Failure::new("busy").code(503)) } else { Ok(x + 1) }
        },
    )
}

pub(crate) fn built(components: impl IntoIterator<Item = Component>) -> Workflow {
    components
        .into_iter()
        .fold(Workflow::new("w"), tidewheel_core::workflow::WorkflowBuilder::add)
        .build()
        .unwrap()
}

/// A workflow with one rule.
pub(crate) fn governed(
    components: impl IntoIterator<Item = Component>,
    matcher: Matcher,
    policy: Policy,
) -> Workflow {
    let builder =
        components.into_iter().fold(Workflow::new("w"), tidewheel_core::workflow::WorkflowBuilder::add);
    builder.policy(matcher, policy).build().unwrap()
}

pub(crate) fn rules(matcher: Matcher, policy: Policy) -> Rules {
    Rules::new([(matcher, policy)]).unwrap()
}

pub(crate) fn resolved(policy: &Policy) -> Arc<Resolved> {
    Arc::new(policy.resolved().unwrap())
}

/// Feeds one input and says how many milliseconds of the runtime's clock went by.
pub(crate) async fn react(workflow: &Workflow, options: Options) -> (Run, u128) {
    let mut run = workflow.run("r");
    let start = Instant::now();
    react_until_satisfied(&mut run, 1_i64, options).await.unwrap();
    assert!(!run.is_runnable(), "nothing is left open");
    (run, start.elapsed().as_millis())
}

/// Drives a run by hand, each piece under the policy that the run has for it, and keeps the log.
pub(crate) async fn logged(mut run: Run, input: i64, options: DriveOptions) -> (Run, Vec<Event>) {
    let mut log = run.plan(input).to_vec();
    loop {
        let runnables = run.prepare();
        log.extend_from_slice(run.last_events());
        if runnables.is_empty() {
            return (run, log);
        }
        for runnable in runnables {
            let policy = Arc::clone(runnable.policy());
            let executed = drive(runnable, policy, options.clone()).await.unwrap();
            log.extend_from_slice(run.apply(executed));
        }
    }
}

/// Everything that can be seen of a run.
pub(crate) fn picture(run: &Run) -> String {
    let facts: Vec<_> = run
        .reactions()
        .into_iter()
        .map(|fact| (fact.id, fact.producer, fact.value.to_json().unwrap(), fact.depth, fact.input))
        .collect();
    let failures = run.failures();
    let (pending, next) = (run.pending_runnables(), format!("{:?}", run.clone().next_runnables()));
    let (retries, open) = (run.waits(), run.is_runnable());
    format!("{facts:?}\n{failures:?}\n{pending:?}\n{next}\n{retries:?}\n{open}")
}

/// A clock that stands still until a test moves it. Unlike that of a paused runtime it does not care for work
/// on threads.
#[derive(Debug)]
pub(crate) struct HandClock(watch::Sender<u64>);

impl HandClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(0)))
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.0.send_modify(|now| *now += millis);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(*self.0.borrow())
    }

    fn sleep_until(&self, at: Timestamp) -> tidewheel_store::Sleep {
        let mut times = self.0.subscribe();
        Box::pin(async move {
            // The clock may be gone: then nobody waits for this any more either.
            times.wait_for(|now| Timestamp::from_millis(*now) >= at).await.map(drop).unwrap_or_default();
        })
    }
}
