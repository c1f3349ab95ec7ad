//! Drives one piece of work through its attempts, for whoever has a runnable and a policy.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tidewheel_core::policy::{Resolved, Rules};
use tidewheel_core::time::Timestamp;
use tidewheel_core::{Executed, Outcome, Problems, Runnable};
use tidewheel_store::{Clock, RealClock};
use tokio::task::JoinSet;

use super::course::{Course, Turn, Until};
use super::refuse::{check_place, check_policy, check_rules};
use crate::react::SyncWork;

/// How a piece of work is driven.
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
/// The caller's task waits while the work waits. What comes back belongs to `Run::apply`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tidewheel_core::policy::{Failure, Policy};
/// use tidewheel_core::workflow::{Workflow, step};
/// use tidewheel_runner::{DriveOptions, drive};
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
        return Ok(if runs_here(&runnable, options.sync_work) {
            runnable.execute_async().await
        } else {
            run_on_thread(runnable).await
        });
    }
    check_policy(&policy)?;
    check_place(&runnable, &policy, options.sync_work)?;
    Ok(drive_checked(runnable, policy, &options).await)
}

async fn drive_checked(runnable: Runnable, policy: Arc<Resolved>, options: &DriveOptions) -> Executed {
    let machine;
    let clock: &dyn Clock = match &options.clock {
        Some(clock) => clock.as_ref(),
        None => {
            machine = RealClock::new();
            &machine
        }
    };
    let now = clock.now();
    let mut course = Course::new(&runnable, policy, options.deadline, now);
    let mut failed = Vec::new();
    let mut current = runnable.clone();
    let mut turn = course.begin(runnable, now);
    loop {
        turn = match turn {
            Turn::Run { runnable, until } => {
                match attempt(*runnable, until, clock, options.sync_work).await.into_outcome() {
                    Outcome::Failed(failure) => {
                        course.end(current.clone(), Outcome::Failed(failure), clock.now())
                    }
                    // Nothing follows that would need it once more.
                    outcome => match course.end(current, outcome, clock.now()) {
                        Turn::Over(executed) => return executed.after_attempts(failed),
                        Turn::Run { .. } | Turn::Retry(_) => {
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
            Turn::Over(executed) => return executed.after_attempts(failed),
        };
    }
}

async fn attempt(runnable: Runnable, until: Option<Until>, clock: &dyn Clock, place: SyncWork) -> Executed {
    let Some(until) = until else { return run_once(runnable, place).await };
    let ticket = runnable.ticket();
    let cancellation = tidewheel_core::work::Cancellation::default();
    let runnable = runnable.with_cancellation(cancellation.clone());
    match within(run_once(runnable, place), until.at, clock).await {
        Some(executed) => executed,
        None => {
            cancellation.cancel();
            ticket.executed(Outcome::Failed(until.failure()))
        }
    }
}

/// Waits for work until an instant; `None` if it is not over then. Work that is over at once sets no timer.
pub(crate) async fn within<T>(work: impl Future<Output = T>, at: Timestamp, clock: &dyn Clock) -> Option<T> {
    let mut work = pin!(work);
    let mut sleep = None;
    poll_fn(|task| match work.as_mut().poll(task) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => {
            sleep.get_or_insert_with(|| clock.sleep_until(at)).as_mut().poll(task).map(|()| None)
        }
    })
    .await
}

async fn run_once(runnable: Runnable, place: SyncWork) -> Executed {
    if runs_here(&runnable, place) { runnable.execute_async().await } else { run_on_thread(runnable).await }
}

fn runs_here(runnable: &Runnable, place: SyncWork) -> bool {
    runnable.is_async() || place == SyncWork::Inline
}

async fn run_on_thread(runnable: Runnable) -> Executed {
    let ticket = runnable.ticket();
    let task = tokio::task::spawn_blocking(move || runnable.execute());
    task.await.unwrap_or_else(|error| {
        let failure = tidewheel_core::policy::Failure::of(&error).code("lost");
        ticket.executed(Outcome::Failed(failure))
    })
}

/// Runs pieces of work under rules, all at once, and returns what came of them in the order in which they
/// were given.
///
/// ```
/// use tidewheel_core::policy::{self, Policy, Rules};
/// use tidewheel_core::workflow::{Workflow, step};
/// use tidewheel_runner::execute_with_policies;
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
        let policy = Arc::clone(rules.resolve(&runnable.node()).policy);
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
