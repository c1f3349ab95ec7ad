//! Drives one piece of work through its attempts, for whoever has a runnable and a policy.

use std::sync::{Arc, Mutex, PoisonError};

use tidewheel_core::policy::{Failure, Resolved, Rules};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::call_user;
use tidewheel_core::{Executed, Outcome, Problems, Runnable};
use tidewheel_store::{Clock, RealClock};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::course::{Course, Known, Turn, Until};
use super::refuse::{check_compensation, check_place, check_policy, check_rules};
use crate::bounds::{Bounds, within};
use crate::ear::Ear;
use crate::react::SyncWork;
use crate::telemetry::{self, Execution};

/// How a piece of work is driven.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::time::Timestamp;
/// use tidewheel::{DriveOptions, SyncWork};
///
/// let noon = Timestamp::parse("2026-03-01T12:00:00Z")?;
/// let options = DriveOptions::new().deadline(noon).sync_work(SyncWork::Inline);
/// # assert!(format!("{options:?}").contains("Inline"));
/// # Ok::<(), tidewheel::time::TimestampError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// `None` is the clock of the machine, which is set only where somebody looks at it.
    clock: Option<Arc<dyn Clock>>,
    deadline: Option<Timestamp>,
    sync_work: SyncWork,
}

impl DriveOptions {
    /// Returns the defaults: the clock of the machine, no deadline, work that is not async on threads.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Says when everything must be over.
    #[must_use]
    pub const fn deadline(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Says where work that is not async is done. Inline, it cannot be given up when its time is over.
    #[must_use]
    pub const fn sync_work(mut self, place: SyncWork) -> Self {
        self.sync_work = place;
        self
    }
}

/// Runs a piece of work under a policy to its end: attempts, waits between them, fallback.
///
/// The caller's task waits while the work waits. What comes back belongs to `Run::apply`. There are no slots here,
/// so `priority` and `queue_timeout` are for whoever decides when to call it.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tidewheel::policy::{Failure, Policy};
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::{DriveOptions, drive};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let calls = Arc::new(AtomicU32::new(0));
/// let flaky = move |x: i64| match calls.fetch_add(1, Ordering::Relaxed) {
///     0 | 1 => Err(Failure::new("busy").code(503)),
///     _ => Ok(x + 1),
/// };
/// let workflow = Workflow::new("numbers").add(step("inc", flaky)).build()?;
/// let mut run = workflow.run("first");
/// run.plan(41_i64);
/// let policy = Arc::new(Policy::llm().resolved()?); // three retries, waits of one and two seconds
/// for runnable in run.prepare() {
///     let executed = drive(runnable, Arc::clone(&policy), DriveOptions::new()).await?;
///     run.apply(executed);
/// }
/// assert_eq!(run.result::<i64>("inc")?, Some(42));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The policy has a field that cannot act here.
/// A timeout cannot act on work that is not async and runs inline.
pub async fn drive(
    runnable: Runnable,
    policy: Arc<Resolved>,
    options: DriveOptions,
) -> Result<Executed, Problems> {
    if policy.is_plain() && options.deadline.is_none() {
        let followed = Execution::begin(&runnable, &policy);
        return Ok(run_once(runnable, options.sync_work, followed).await);
    }
    check_policy(&policy)?;
    check_place(&runnable, &policy, options.sync_work)?;
    check_compensation(&runnable, &policy)?;
    Ok(drive_checked(runnable, policy, &options).await)
}

async fn drive_checked(runnable: Runnable, policy: Arc<Resolved>, options: &DriveOptions) -> Executed {
    let machine = RealClock::new();
    let clock: &dyn Clock = match &options.clock {
        Some(clock) => clock.as_ref(),
        None => &machine,
    };
    let heartbeat = policy.heartbeat.map(|span| {
        let clock = options.clock.clone().unwrap_or_else(|| Arc::new(machine));
        (span, clock)
    });
    let surroundings =
        Surroundings { clock, policy: Arc::clone(&policy), heartbeat, sync_work: options.sync_work };
    let now = clock.now();
    let mut course = Course::new(&runnable, policy, options.deadline, now);
    let mut failed = Vec::new();
    let mut current = runnable.clone();
    let mut turn = course.begin(runnable, now);
    loop {
        turn = match turn {
            Turn::Run { runnable, until } => {
                match surroundings.attempt(*runnable, until).await.into_outcome() {
                    Outcome::Failed(failure) => {
                        course.end(current.clone(), Outcome::Failed(failure), Known::default(), clock.now())
                    }
                    // Nothing follows that would need it once more.
                    outcome => match course.end(current, outcome, Known::default(), clock.now()) {
                        Turn::Over(executed) => return executed.after_attempts(failed),
                        Turn::Run { .. } | Turn::Retry(_) | Turn::Pause(_) => {
                            unreachable!("invariant: only a failure is followed by something")
                        }
                    },
                }
            }
            Turn::Retry(attempt) => {
                let (due, next) = (attempt.due(), attempt.decided.decision.attempt_next);
                failed.push(*attempt);
                clock.sleep_until(due).await;
                current = current.with_attempt(next);
                course.begin(current.clone(), clock.now())
            }
            Turn::Pause(_) => unreachable!("invariant: what waits for a person is refused here"),
            Turn::Over(executed) => return executed.after_attempts(failed),
        };
    }
}

/// Where attempts are made, and who hears their signs of life.
struct Surroundings<'c> {
    clock: &'c dyn Clock,
    policy: Arc<Resolved>,
    /// How long an attempt may be silent, with the clock of the ear.
    heartbeat: Option<(Span, Arc<dyn Clock>)>,
    sync_work: SyncWork,
}

impl Surroundings<'_> {
    async fn attempt(&self, mut runnable: Runnable, until: Option<Until>) -> Executed {
        if until.is_none() && self.heartbeat.is_none() {
            let followed = Execution::begin(&runnable, &self.policy);
            return run_once(runnable, self.sync_work, followed).await;
        }
        let ticket = runnable.ticket();
        let cancellation = tidewheel_core::work::Cancellation::default();
        runnable = runnable.with_cancellation(cancellation.clone());
        let silence = self.heartbeat.as_ref().map(|(span, _)| *span);
        let ear = self.heartbeat.as_ref().map(|(_, clock)| Arc::new(Ear::for_heartbeats(Arc::clone(clock))));
        if let Some(ear) = &ear {
            runnable = runnable.with_signals(Arc::<Ear>::clone(ear));
        }
        let done = match Bounds::begun_at(self.clock.now(), until, silence, ear) {
            Ok(bounds) => {
                let followed = Execution::begin_bounded(&runnable, &self.policy);
                let work = run_once(runnable, self.sync_work, followed.clone());
                let done = within(work, &bounds, self.clock).await;
                if let (Err(failure), Some(execution)) = (&done, followed) {
                    execution.give_up(failure);
                }
                done
            }
            Err(late) => {
                telemetry::timeout(&runnable, &self.policy, &late);
                Err(late)
            }
        };
        done.unwrap_or_else(|failure| {
            cancellation.cancel();
            ticket.executed(Outcome::Failed(failure))
        })
    }
}

async fn run_once(runnable: Runnable, place: SyncWork, followed: Option<Execution>) -> Executed {
    let span = Execution::span(followed.as_ref());
    let executed = if runnable.is_async() || place == SyncWork::Inline {
        runnable.execute_async().instrument(span).await
    } else {
        run_on_thread(runnable, span).await
    };
    if let Some(execution) = followed {
        execution.stop(executed.outcome());
    }
    executed
}

/// The failure of an attempt for which the machine has no thread. Another one may find one.
fn no_thread(why: &str) -> Failure {
    Failure::new(format!("there is no thread for it: {why}")).code("no_thread")
}

async fn run_on_thread(runnable: Runnable, span: tracing::Span) -> Executed {
    let ticket = runnable.ticket();
    // The runtime may keep what it has no thread for: then it finds nothing to do, whenever it has one.
    let work = Arc::new(Mutex::new(Some((runnable, span))));
    let taken = Arc::clone(&work);
    let take = move |work: &Mutex<Option<(Runnable, tracing::Span)>>| {
        work.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let run = move || take(&taken).map(|(runnable, span)| span.in_scope(|| runnable.execute()));
    let failure = match call_user(|| tokio::task::spawn_blocking(run)) {
        Ok(task) => match task.await {
            Ok(Some(executed)) => return executed,
            Ok(None) => no_thread("it was taken back"),
            Err(error) => Failure::of(&error).code("lost"),
        },
        Err(panic) => {
            drop(take(&work));
            no_thread(&panic.message)
        }
    };
    ticket.executed(Outcome::Failed(failure))
}

/// Runs pieces of work under rules, all at once, and returns what came of them in the order in which they
/// were given.
///
/// ```
/// # mod tidewheel { pub use tidewheel_core::*; pub use tidewheel_runner::*; }
/// use tidewheel::policy::{self, Policy, Rules};
/// use tidewheel::workflow::{Workflow, step};
/// use tidewheel::execute_with_policies;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = Rules::new([(policy::default(), Policy::fast_fail())])?;
/// let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
/// let mut run = workflow.run("first");
/// run.plan(41_i64);
/// while run.is_runnable() {
///     for executed in execute_with_policies(run.prepare(), &rules).await? {
///         run.apply(executed);
///     }
/// }
/// assert_eq!(run.result::<i64>("inc")?, Some(42));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A rule has a field that cannot act here.
pub async fn execute_with_policies(
    runnables: Vec<Runnable>,
    rules: &Rules,
) -> Result<Vec<Executed>, Problems> {
    check_rules(rules)?;
    let options = DriveOptions::new();
    let mut tasks = JoinSet::new();
    let tickets: Vec<_> = runnables.iter().map(Runnable::ticket).collect();
    for (index, runnable) in runnables.into_iter().enumerate() {
        let resolution = rules.resolve(&runnable.node());
        let policy = Arc::clone(resolution.policy);
        Problems::check(resolution.problem.into_iter().collect(), ())?;
        check_compensation(&runnable, &policy)?;
        let options = options.clone();
        tasks.spawn(async move { (index, drive_checked(runnable, policy, &options).await) });
    }
    let mut executed: Vec<Option<Executed>> = tickets.iter().map(|_| None).collect();
    while let Some(result) = tasks.join_next().await {
        if let Ok((index, done)) = result {
            executed[index] = Some(done);
        }
    }
    let lost = || tidewheel_core::policy::Failure::new("its task was cancelled").code("lost");
    let ended = executed.into_iter().zip(tickets);
    Ok(ended.map(|(done, ticket)| done.unwrap_or_else(|| ticket.executed(Outcome::Failed(lost())))).collect())
}
