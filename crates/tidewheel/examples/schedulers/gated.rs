//! A scheduler that keeps everything that policies say about one piece of work itself: delays, a rate, attempts and
//! timeouts. What it has to remember is in a log, so that another one goes on where it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidewheel::driver::{Course, Known, Turn, Until, check_policy};
use tidewheel::event::Hold;
use tidewheel::fact::Payload;
use tidewheel::policy::{Rate, Slot};
use tidewheel::prelude::*;
use tidewheel::run::QueryError;
use tidewheel::run::{Outcome, Prepared, Runnable, Wait};
use tidewheel::store::Clock;
use tokio::task::JoinSet;

/// A run, and all that has to be kept beside it.
pub(crate) struct Scheduler {
    run: Run,
    clock: Arc<dyn Clock>,
    /// How many began lately, by the name of the limit.
    rates: BTreeMap<String, Rate>,
    /// What happened, a line for each event. In earnest this is a file, and it is written before anything goes on.
    log: Vec<String>,
    tasks: JoinSet<Ended>,
}

/// An attempt that is over. The course goes with it, since it knows where the work is under its policy.
struct Ended {
    runnable: Runnable,
    course: Course,
    outcome: Outcome,
}

impl Scheduler {
    /// Begins, or goes on where a log ends.
    pub(crate) fn new(workflow: &Workflow, log: Vec<String>, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let run = workflow.run("run").replayed_json(log.iter().map(String::as_str));
        let run = run.map_err(|error| error.to_string())?;
        check(&run)?;
        let mut scheduler = Self { run, clock, rates: BTreeMap::new(), log, tasks: JoinSet::new() };
        // What was under way when the log ended is handed out again, with the same number.
        let Prepared { runnables, .. } = scheduler.run.prepare_lost(scheduler.clock.now());
        scheduler.keep();
        for runnable in runnables {
            scheduler.begin(runnable);
        }
        Ok(scheduler)
    }

    /// Takes an input. Deadlines count from its acceptance.
    pub(crate) fn input<T: Payload>(&mut self, input: T) {
        self.run.plan_accepted(Value::new(input), self.clock.now(), None);
        self.keep();
    }

    /// Runs until nothing is left to do.
    pub(crate) async fn run_to_end(&mut self) {
        loop {
            self.hand_out();
            let due = self.run.waits().iter().filter_map(|wait| wait.until).min();
            let due = due.map(|due| self.clock.sleep_until(due));
            tokio::select! {
                Some(ended) = self.tasks.join_next() => if let Ok(ended) = ended {
                    self.end(ended);
                },
                Some(()) = async { due?.await; Some(()) } => {}
                else => return,
            }
        }
    }

    /// Returns what a component produced.
    pub(crate) fn results<T: Payload>(&self, component: &str) -> Result<Vec<T>, QueryError> {
        self.run.results(component)
    }

    /// Hands out what may begin now. The rest waits in the run, which knows until when.
    fn hand_out(&mut self) {
        let now = self.clock.now();
        let Prepared { runnables, .. } = self.run.prepare_admitted(now, Some(now));
        self.keep();
        for runnable in runnables {
            self.begin(runnable);
        }
        for wait in self.run.waits() {
            if wait.until.is_none_or(|until| until > now) {
                continue;
            }
            if let Some(until) = self.has_to_wait(&wait, now) {
                self.run.hold(&wait.ticket, Hold::RateLimit, None, Some(until), now);
                self.keep();
            } else if let Some(runnable) = self.run.prepare_retry(&wait.ticket, now) {
                self.keep();
                self.begin(runnable);
            }
        }
    }

    /// Asks the one limit that this scheduler keeps.
    fn has_to_wait(&mut self, wait: &Wait, now: Timestamp) -> Option<Timestamp> {
        let limit = wait.policy.rate_limit.as_ref()?;
        // Without a name it counts for its rule by itself.
        let name = limit.name.clone().or_else(|| wait.policy.rule.clone());
        let rate = self.rates.entry(name.unwrap_or_default()).or_default();
        match rate.take(limit, now) {
            Slot::Now => None,
            Slot::At(until) => Some(until),
            // Nobody here keeps a place for a start that comes later.
            Slot::Later => Some(now.saturating_add(limit.window)),
        }
    }

    /// Begins an attempt, unless its policy says that it is too late.
    fn begin(&mut self, runnable: Runnable) {
        let now = self.clock.now();
        let mut course = Course::new(&runnable, Arc::clone(runnable.policy()), None, now);
        let turn = course.begin(runnable.clone(), now);
        self.follow(runnable, course, turn);
    }

    fn end(&mut self, ended: Ended) {
        let Ended { runnable, mut course, outcome } = ended;
        let turn = course.end(runnable.clone(), outcome, Known::default(), self.clock.now());
        self.follow(runnable, course, turn);
    }

    /// Does what the course says.
    fn follow(&mut self, runnable: Runnable, course: Course, turn: Turn) {
        match turn {
            // The attempt, or what a fallback puts in its place.
            Turn::Run { runnable: attempt, until } => {
                let clock = Arc::clone(&self.clock);
                self.tasks.spawn(async move {
                    let outcome = within(*attempt, until, clock).await;
                    Ended { runnable, course, outcome }
                });
            }
            // From now on it is among `run.waits()`.
            Turn::Retry(failed) => {
                self.run.fail_attempt(&runnable.ticket(), *failed);
                self.keep();
            }
            Turn::Pause(_) => unreachable!("what waits for a person is refused"),
            Turn::Over(executed) => {
                self.run.apply(*executed);
                self.keep();
            }
        }
    }

    /// Writes down what the last call changed: each call that changes the run is followed by this, once.
    fn keep(&mut self) {
        let workflow = self.run.workflow();
        self.log.extend(self.run.last_events().iter().filter_map(|event| event.to_json(&workflow).ok()));
    }
}

/// Runs an attempt and gives it up when its time is over.
async fn within(attempt: Runnable, until: Option<Until>, clock: Arc<dyn Clock>) -> Outcome {
    let Some(until) = until else { return attempt.execute_async().await.into_outcome() };
    tokio::select! {
        executed = attempt.execute_async() => executed.into_outcome(),
        () = clock.sleep_until(until.at) => Outcome::Failed(until.failure()),
    }
}

/// Refuses what this scheduler does not keep: nothing that somebody wrote may be without effect.
fn check(run: &Run) -> Result<(), String> {
    for (node, policy, is_async) in run.nodes() {
        let mut left = policy.as_ref().clone();
        (left.delay, left.scheduled_at, left.rate_limit) = (None, None, None);
        check_policy(&left).map_err(|problems| problems.to_string())?;
        let is_timed = policy.timeout.span().is_some() && !is_async && node.kind != Kind::Join;
        let has_slots = policy.queue_timeout.is_some() || policy.priority != Priority::Normal;
        if is_timed || has_slots || policy.heartbeat.is_some() {
            return Err(format!("{} has a policy for another scheduler", node.name.unwrap_or("a join")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use tidewheel::store::RealClock;
    use tidewheel::view::{Doing, Story};
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Which item began, and after how many seconds.
    type Starts = Arc<Mutex<Vec<(u32, u64)>>>;

    /// A call for each item that takes a second and notes when it begins. That for item 2 fails the first time.
    fn calls(policy: Policy) -> (Workflow, Starts) {
        let (began, starts) = (Instant::now(), Starts::default());
        let noted = Arc::clone(&starts);
        let call = move |context: Context, item: u32| {
            noted.lock().unwrap().push((item, began.elapsed().as_secs()));
            async move {
                sleep(Duration::from_secs(1)).await;
                if item == 2 && context.attempt() == 0 { Err(Failure::new("busy")) } else { Ok(item) }
            }
        };
        let workflow = Workflow::new("calls").add(map("call", call)).policy(name("call"), policy);
        (workflow.build().unwrap(), starts)
    }

    fn policy() -> Policy {
        let retries = Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("3s");
        retries.delay("5s").rate_limit(2, "10s")
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_to_wait_waits_and_the_log_says_for_what() {
        let (workflow, starts) = calls(policy());
        let mut scheduler = Scheduler::new(&workflow, Vec::new(), Arc::new(RealClock::new())).unwrap();
        scheduler.input(vec![1_u32, 2, 3]);
        scheduler.run_to_end().await;
        assert_eq!(*starts.lock().unwrap(), [(1, 5), (2, 5), (2, 15), (3, 15)]);
        assert_eq!(scheduler.run.results::<u32>("call").unwrap(), [1, 2, 3]);
        let story = Story::of(scheduler.log.iter().map(String::as_str)).unwrap();
        let third = story.works.last().unwrap();
        assert!(third.stretches.iter().any(|stretch| stretch.hold == Some(Hold::RateLimit)), "{third:?}");
        assert!(third.stretches.iter().all(|stretch| stretch.doing != Doing::Backoff));
        let dispatches = scheduler.log.iter().filter(|line| line.contains("runnable_dispatched")).count();
        assert_eq!(dispatches, 1 + 4, "the list, and each attempt once");
    }

    #[tokio::test(start_paused = true)]
    async fn another_one_goes_on_where_the_log_ends() {
        let (workflow, starts) = calls(policy());
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let mut scheduler = Scheduler::new(&workflow, Vec::new(), Arc::clone(&clock)).unwrap();
        scheduler.input(vec![1_u32, 2]);
        let killed = tokio::time::timeout(Duration::from_millis(6_500), scheduler.run_to_end()).await;
        assert!(killed.is_err(), "it waits for the second attempt");

        let mut scheduler = Scheduler::new(&workflow, std::mem::take(&mut scheduler.log), clock).unwrap();
        scheduler.run_to_end().await;
        assert_eq!(scheduler.run.results::<u32>("call").unwrap(), [1, 2]);
        assert_eq!(*starts.lock().unwrap(), [(1, 5), (2, 5), (2, 9)], "at the time that was decided before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_it_does_not_keep_is_refused() {
        for policy in [Policy::new().concurrency_limit(1), Policy::new().heartbeat("1s")] {
            let (workflow, _) = calls(policy);
            assert!(Scheduler::new(&workflow, Vec::new(), Arc::new(RealClock::new())).is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_gives_an_attempt_up() {
        let (workflow, _) = calls(Policy::new().timeout("500ms"));
        let mut scheduler = Scheduler::new(&workflow, Vec::new(), Arc::new(RealClock::new())).unwrap();
        scheduler.input(vec![7_u32]);
        scheduler.run_to_end().await;
        assert_eq!(scheduler.run.failures()[0].failure.code, Some("timeout".into()));
    }
}
