//! A run in memory and who does its work: whoever ends a piece applies its result and hands in what it woke.
//! The lock around the run puts the results in order. Conditions are looked at under it; no other work is done
//! there.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use tidewheel_core::decide::Action;
use tidewheel_core::event::FailedAttempt;
use tidewheel_core::policy::{Kind, Overlay, Resolved, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::time::Timestamp;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Executed, Outcome, Prepared, Runnable, Ticket, Wait};
use tidewheel_store::Clock;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::driver::{Course, Known, Turn};
use crate::ear::Ear;
use crate::limits::{self, Ask, Asker, Entry, Held, Limits, Permits};
use crate::pool::{ByNumber, Job, Place, Pool, Sink};
use crate::react::{Checkpoint, Options, SyncWork};
use crate::timers::Timers;

/// Runs until nothing is left to do. The owner has the run back when the future is over or dropped.
pub(crate) async fn drive(owner: &mut Run, options: Options) {
    let clock = options.clock_or_real();
    let timers = Timers::new(Arc::clone(&clock), Handle::current());
    let sync_work = options.sync_work;
    let pool = Pool::new(options.max_concurrency.unwrap_or(usize::MAX), sync_work, Arc::clone(&timers));
    let has_gates = owner.nodes().any(|(_, policy, _)| policy.is_gated());
    let has_compensations = owner.workflow().has_compensations();
    let workflow_name = Arc::from(owner.workflow().name());
    let run = std::mem::replace(owner, stand_in());
    let began_at = clock.now();
    let shared = Arc::new_cyclic(|this| Shared {
        this: Weak::clone(this),
        began_at,
        deadline: options.deadline.map(|span| began_at.saturating_add(span)),
        clock,
        checkpoint: options.checkpoint,
        pool: Arc::clone(&pool),
        limits: Limits::in_memory(Arc::clone(&timers), options.max_concurrency.is_none()),
        has_gates,
        has_compensations,
        workflow_name,
        timers,
        satisfied: Notify::new(),
        state: Mutex::new(State { run: Some(run), ..State::default() }),
    });
    // Invariant: the lease is dropped before the worker, which then finds nothing that somebody else must do.
    let mut work = pin!(match sync_work {
        SyncWork::Inline => Some(pool.worker_here().work_here()),
        SyncWork::Threads => None,
    });
    let lease = Lease { owner, rules_after: options.rules_after, shared };
    lease.shared.go_on(lease.shared.lock());
    if let Some(work) = work.as_mut().as_pin_mut() {
        work.await;
    }
    while !lease.shared.lock().is_satisfied() {
        lease.shared.satisfied.notified().await;
    }
}

/// A run that is driven. When it is dropped, the owner has the run back.
struct Lease<'r> {
    owner: &'r mut Run,
    /// What the run has again then, if the rules of one call were over its own.
    rules_after: Option<Rules>,
    shared: Arc<Shared>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let run = state.run.take();
        let out = std::mem::take(&mut state.out);
        let waiting = std::mem::take(&mut state.waiting);
        let held = std::mem::take(&mut state.held);
        let deciding = std::mem::take(&mut state.deciding);
        drop(state);
        let places: Vec<Place> = out.keys().copied().collect();
        self.shared.pool.close(GROUP, &places);
        self.shared.timers.close();
        if let Some(mut run) = run {
            // What is not over is offered again, in the order in which it was handed out.
            let tickets = out.into_iter().map(|(place, out)| (place, out.ticket));
            let mut open: BTreeMap<Place, Ticket> = tickets.collect();
            open.extend(waiting.into_iter().map(|(place, driven)| (place, driven.runnable.ticket())));
            open.extend(held.into_iter().map(|(place, waiting)| (place, waiting.ticket)));
            open.extend(deciding);
            for ticket in open.values() {
                run.give_back(ticket);
            }
            if let Some(rules) = self.rules_after.take() {
                run = run.with_policies(rules, Overlay::Replace);
            }
            *self.owner = run;
        }
    }
}

/// All pieces are of one run.
const GROUP: u64 = 0;

/// Returns what the owner holds while the run is driven.
fn stand_in() -> Run {
    static NOTHING: LazyLock<Workflow> =
        LazyLock::new(|| Workflow::new("").build().expect("invariant: where no component is, none is wrong"));
    NOTHING.run("")
}

struct Shared {
    this: Weak<Self>,
    clock: Arc<dyn Clock>,
    began_at: Timestamp,
    deadline: Option<Timestamp>,
    checkpoint: Option<Checkpoint>,
    pool: Arc<Pool>,
    timers: Arc<Timers>,
    limits: Arc<Limits>,
    /// Whether some work may not begin as it is.
    has_gates: bool,
    /// Whether something can be undone.
    has_compensations: bool,
    workflow_name: Arc<str>,
    /// Told when nothing is left to do.
    satisfied: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` when the owner has it back.
    run: Option<Run>,
    /// What is under way.
    out: ByNumber<Out>,
    /// What waits for its next attempt, and has no slot.
    waiting: ByNumber<Box<Driven>>,
    /// What waits for its first attempt, and has no slot.
    held: ByNumber<Waiting>,
    /// What ended an attempt, of which it is not known yet what follows.
    deciding: BTreeMap<Place, Ticket>,
}

struct Out {
    ticket: Ticket,
    /// `None` under a policy that changes nothing.
    driven: Option<Box<Driven>>,
    /// Who heard what it wants to have undone, where something can be.
    ear: Option<Arc<Ear>>,
}

/// A piece of work that waits for its first attempt.
struct Waiting {
    ticket: Ticket,
    /// When it has to have begun, if it could already.
    queue_until: Option<Timestamp>,
}

/// A piece of work under a policy.
struct Driven {
    runnable: Runnable,
    course: Course,
    failed: Vec<FailedAttempt>,
    permits: Option<Permits>,
    /// Whether it waits to be let in.
    is_asking: bool,
    /// When it has to have begun, since it could.
    queue_until: Option<Timestamp>,
}

impl State {
    fn is_satisfied(&self) -> bool {
        self.out.is_empty() && self.waiting.is_empty() && self.held.is_empty() && self.deciding.is_empty()
    }
}

impl Sink for Shared {
    fn began(self: Arc<Self>, place: Place) {
        let mut state = self.lock();
        let driven = state.out.get_mut(&place).and_then(|out| out.driven.as_mut());
        let beginning = driven.and_then(|driven| driven.permits.as_mut()?.begun());
        drop(state);
        drop(beginning);
    }

    fn ended(self: Arc<Self>, place: Place, outcome: Outcome) {
        let mut state = self.lock();
        let Some(Out { ticket, driven, ear }) = state.out.remove(&place) else { return };
        let outcome = register_undos(&mut state, ear, &ticket, outcome);
        let Some(driven) = driven else { return self.apply(state, ticket.executed(outcome)) };
        state.deciding.insert(place, ticket);
        drop(state);
        self.end_attempt(place, driven, outcome);
    }
}

/// Keeps what work said that would undo it. Nobody can undo with what does not exist: the work failed.
fn register_undos(state: &mut State, ear: Option<Arc<Ear>>, ticket: &Ticket, outcome: Outcome) -> Outcome {
    let (Some(ear), Some(run)) = (ear, &mut state.run) else { return outcome };
    let mut outcome = outcome;
    for (component, value) in ear.take_registered() {
        if let Err(failure) = run.register_undo(ticket, &component, value) {
            outcome = Outcome::Failed(failure);
        }
    }
    outcome
}

/// What a turn of a driven piece leads to.
enum Led {
    /// A job to hand in.
    Job(Box<Job>),
    /// A result to apply.
    Result(Box<Executed>),
    /// A wait.
    Nothing,
}

/// What is left to do when no lock is held.
#[derive(Default)]
struct Afterwards {
    jobs: Vec<Job>,
    asks: Vec<Ask>,
    unwanted: Vec<Permits>,
    /// Attempts that ended although they did not begin.
    ends: Vec<(Place, Box<Driven>, Outcome)>,
    /// Whether a result was applied, of which nobody knows yet what it woke.
    is_changed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> Arc<Self> {
        self.this.upgrade().expect("invariant: whoever calls holds it")
    }

    fn apply(&self, mut state: MutexGuard<'_, State>, executed: Executed) {
        if let Some(run) = &mut state.run {
            run.apply(executed);
            self.go_on(state);
        }
    }

    /// Does what is left to do when no lock is held. Whoever is let in at once begins together with others.
    fn finish(&self, mut afterwards: Afterwards) {
        loop {
            let Afterwards { jobs, asks, unwanted, ends, is_changed } = afterwards;
            if !jobs.is_empty() {
                self.pool.submit(jobs);
            }
            drop(unwanted);
            let mut entered = Vec::with_capacity(asks.len());
            for ask in asks {
                let id = ask.id;
                entered.extend(self.limits.enter(&self.workflow_name, ask).map(|entry| (id, entry)));
            }
            for (place, driven, outcome) in ends {
                self.end_attempt(place, driven, outcome);
            }
            if entered.is_empty() && !is_changed {
                return;
            }
            let (mut state, now) = (self.lock(), self.clock.now());
            afterwards = Afterwards { is_changed, ..Afterwards::default() };
            for (place, entry) in entered {
                self.enter(&mut state, place, entry, now, &mut afterwards);
            }
            if std::mem::take(&mut afterwards.is_changed) {
                self.advance(&mut state, &mut afterwards);
            }
        }
    }

    /// Hands in whatever can run now.
    fn go_on(&self, mut state: MutexGuard<'_, State>) {
        let mut afterwards = Afterwards::default();
        self.advance(&mut state, &mut afterwards);
        drop(state);
        self.finish(afterwards);
    }

    /// Finds whatever can run now. Joins are done on the way: they call no function.
    fn advance(&self, state: &mut State, afterwards: &mut Afterwards) {
        loop {
            let Some(run) = &mut state.run else { return };
            let now = self.clock.now();
            let mut entries = VecDeque::new();
            let Prepared { runnables, held } = if self.has_gates {
                run.prepare_admitted_by(now, None, |policy| {
                    let entry = self.limits.enter_at_once(&self.workflow_name, policy);
                    let is_in = entry.is_some();
                    entries.extend(entry);
                    is_in
                })
            } else {
                Prepared { runnables: run.prepare(), held: Vec::new() }
            };
            if runnables.is_empty() && held.is_empty() {
                break;
            }
            for wait in held {
                self.go_on_with(state, self.pool.place(), &wait, now, afterwards);
            }
            afterwards.jobs.reserve_exact(runnables.len());
            for runnable in runnables {
                if runnable.node().kind == Kind::Join {
                    if let Some(run) = &mut state.run {
                        run.apply(runnable.execute());
                    }
                } else {
                    // Who has to be let in was, in this order.
                    let is_let_in = !runnable.is_plain() && runnable.policy().is_admitted();
                    let entry = if is_let_in { entries.pop_front() } else { None };
                    self.begin(state, runnable, entry, None, now, afterwards);
                }
            }
        }
        if let (Some(checkpoint), Some(run)) = (&self.checkpoint, &state.run) {
            // A bad function must not keep the work from going on, which was handed out a moment ago.
            let called = catch_unwind(AssertUnwindSafe(|| checkpoint.call(run)));
            drop(called);
        }
        if state.is_satisfied() {
            self.satisfied.notify_one();
        }
    }

    fn begin(
        &self,
        state: &mut State,
        runnable: Runnable,
        entry: Option<Entry>,
        queue_until: Option<Timestamp>,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let place = self.pool.place();
        if runnable.is_plain() && self.deadline.is_none() {
            let mut job = self.job(place, runnable);
            let ear = self.hears(&job.runnable).then(|| job.listen());
            state.out.insert(place, Out { ticket: job.runnable.ticket(), driven: None, ear });
            afterwards.jobs.push(job);
            return;
        }
        let course = Course::new(&runnable, Arc::clone(runnable.policy()), self.deadline_of(&runnable), now);
        let (failed, permits) = (Vec::new(), None);
        let driven = Box::new(Driven { runnable, course, failed, permits, is_asking: false, queue_until });
        self.begin_attempt(state, place, driven, entry, now, afterwards);
    }

    /// Begins an attempt that was let in, or needs not be.
    fn begin_attempt(
        &self,
        state: &mut State,
        place: Place,
        mut driven: Box<Driven>,
        entry: Option<Entry>,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let runnable = driven.runnable.clone();
        driven.is_asking = false;
        let is_late = driven.queue_until.is_some_and(|until| until <= now);
        let turn = match entry {
            None if is_late && driven.course.limit().is_none_or(|limit| limit > now) => {
                let span = runnable.policy().queue_timeout.unwrap_or_default();
                state.deciding.insert(place, runnable.ticket());
                afterwards.ends.push((place, driven, Outcome::Failed(limits::waited_too_long(span))));
                return;
            }
            None => driven.course.begin(runnable, now),
            Some(Entry::Admitted(permits)) => {
                driven.permits = Some(permits);
                driven.course.begin(runnable, now)
            }
            Some(Entry::Shut(until)) => driven.course.shut(runnable, until, now),
        };
        match self.take_turn(state, place, driven, turn, afterwards) {
            Led::Job(job) => afterwards.jobs.push(*job),
            Led::Result(executed) => {
                if let Some(run) = &mut state.run {
                    run.apply(*executed);
                    afterwards.is_changed = true;
                }
            }
            Led::Nothing => {}
        }
    }

    /// Begins an attempt that waited to be let in. What nobody wants any more goes back.
    fn enter(
        &self,
        state: &mut State,
        place: Place,
        entry: Entry,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        if state.waiting.get(&place).is_some_and(|driven| driven.is_asking)
            && let Some(driven) = state.waiting.remove(&place)
        {
            return self.begin_attempt(state, place, driven, Some(entry), now, afterwards);
        }
        let State { run, held, .. } = state;
        let begun =
            held.remove(&place).zip(run.as_mut()).and_then(|(Waiting { ticket, queue_until }, run)| {
                Some((run.prepare_retry(&ticket, now)?, queue_until))
            });
        match (begun, entry) {
            (Some((runnable, queue_until)), entry) => {
                self.begin(state, runnable, Some(entry), queue_until, now, afterwards);
            }
            (None, Entry::Admitted(permits)) => afterwards.unwanted.push(permits),
            (None, Entry::Shut(_)) => {}
        }
    }

    /// Goes on with a piece of work that waits for its first attempt: it is too late for it, it waits on, it asks to be
    /// let in, or it begins.
    fn go_on_with(
        &self,
        state: &mut State,
        place: Place,
        wait: &Wait,
        now: Timestamp,
        afterwards: &mut Afterwards,
    ) {
        let limit =
            wait.policy.limit(wait.accepted_at.or(Some(self.began_at)), wait.started_at, self.deadline);
        // It could have begun when what it waited for was over.
        let wanted_at = wait.wanted_at.or(wait.until).filter(|at| *at <= now);
        let queue_until = wanted_at.and_then(|at| Some(at.saturating_add(wait.policy.queue_timeout?)));
        let late_at = [limit, queue_until].into_iter().flatten().min();
        let is_late = late_at.is_some_and(|at| at <= now);
        let waits_until = wait.until.filter(|until| *until > now);
        if is_late || waits_until.is_none() && !wait.policy.is_admitted() {
            state.held.remove(&place);
            let runnable = state.run.as_mut().and_then(|run| run.prepare_retry(&wait.ticket, now));
            if let Some(runnable) = runnable {
                self.begin(state, runnable, None, queue_until, now, afterwards);
            }
            return;
        }
        state.held.insert(place, Waiting { ticket: wait.ticket.clone(), queue_until });
        if waits_until.is_none() {
            afterwards.asks.push(self.ask(place, &wait.policy));
        }
        self.look_at(place, [waits_until, late_at].into_iter().flatten().min());
    }

    fn ask(&self, place: Place, policy: &Arc<Resolved>) -> Ask {
        Ask::new(Weak::<Self>::clone(&self.this), place, Arc::clone(policy))
    }

    /// Looks at a piece of work that waits for its first attempt again, at an instant.
    fn look_at(&self, place: Place, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let this = Weak::clone(&self.this);
        self.timers.at(at, move || {
            let Some(this) = this.upgrade() else { return };
            let mut state = this.lock();
            let State { run, held, .. } = &mut *state;
            let wait = held.get(&place).and_then(|waiting| run.as_ref()?.wait(&waiting.ticket));
            if let Some(wait) = wait {
                let mut afterwards = Afterwards::default();
                this.go_on_with(&mut state, place, &wait, this.clock.now(), &mut afterwards);
                drop(state);
                this.finish(afterwards);
            }
        });
    }

    /// Returns when a piece must be over. Nobody said when its input was accepted: when the run was driven, at
    /// the latest.
    fn deadline_of(&self, runnable: &Runnable) -> Option<Timestamp> {
        let own = runnable.policy().deadline.span().filter(|_| runnable.accepted_at().is_none());
        let own = own.map(|span| self.began_at.saturating_add(span));
        own.into_iter().chain(self.deadline).min()
    }

    /// Ends an attempt under a policy. No lock is held: the limits tell others, and a policy may ask functions of the
    /// user's, which may take their time.
    fn end_attempt(&self, place: Place, mut driven: Box<Driven>, outcome: Outcome) {
        let policy = Arc::clone(driven.runnable.policy());
        let permits = driven.permits.take();
        let is_shared = policy.circuit_breaker.is_some() || policy.retry_budget.is_some();
        match &outcome {
            Outcome::Failed(_) if is_shared && !driven.course.is_recovering() => {
                let mut known = self.limits.failed(&self.workflow_name, &policy, permits);
                match known.try_recv() {
                    Ok(known) => self.decide(place, driven, outcome, known),
                    // Somebody else is about to find it out.
                    Err(_) => {
                        let this = self.sink();
                        drop(self.pool.runtime().spawn(async move {
                            if let Ok(known) = known.await {
                                this.decide(place, driven, outcome, known);
                            }
                        }));
                    }
                }
                return;
            }
            Outcome::Failed(_) => drop(permits),
            Outcome::Completed(_) | Outcome::FannedOut(_) | Outcome::Skipped(_) => {
                if let Some(permits) = permits {
                    self.limits.succeeded(permits);
                }
            }
        }
        self.decide(place, driven, outcome, Known::default());
    }

    fn decide(&self, place: Place, mut driven: Box<Driven>, outcome: Outcome, known: Known) {
        let turn = driven.course.end(driven.runnable.clone(), outcome, known, self.clock.now());
        let is_retry = matches!(
            &turn,
            Turn::Retry(failed) if matches!(failed.decided.decision.action, Action::RetryAt(_))
        );
        if known.retry_tokens.is_some_and(|tokens| tokens > 0) && !is_retry {
            self.limits.give_token_back(&self.workflow_name, driven.runnable.policy());
        }
        let mut state = self.lock();
        if state.deciding.remove(&place).is_none() {
            // The owner has the run back.
            return;
        }
        let mut afterwards = Afterwards::default();
        match self.take_turn(&mut state, place, driven, turn, &mut afterwards) {
            Led::Job(job) => {
                drop(state);
                self.pool.submit([*job]);
            }
            Led::Result(executed) => self.apply(state, *executed),
            Led::Nothing => drop(state),
        }
        self.finish(afterwards);
    }

    fn take_turn(
        &self,
        state: &mut State,
        place: Place,
        mut driven: Box<Driven>,
        turn: Turn,
        afterwards: &mut Afterwards,
    ) -> Led {
        if !matches!(turn, Turn::Run { .. }) {
            afterwards.unwanted.extend(driven.permits.take());
        }
        match turn {
            Turn::Run { runnable, until } => {
                let mut job = self.job(place, *runnable);
                if driven.permits.as_ref().is_some_and(Permits::wants_beginning) {
                    job.terms().tells_beginning = true;
                }
                // The time to wait for a slot counts from when the attempt could begin; a fallback has its own.
                let queue_until = driven.queue_until.take().filter(|_| !driven.course.is_recovering());
                if queue_until.is_some() {
                    job.terms().queue_until = queue_until;
                }
                let ear = self.hears(&job.runnable).then(|| job.listen());
                state.out.insert(place, Out { ticket: driven.runnable.ticket(), driven: Some(driven), ear });
                if until.is_some() {
                    job.terms().until = until;
                }
                if job.is_bounded() {
                    let cancellation = tidewheel_core::work::Cancellation::default();
                    job.runnable = job.runnable.with_cancellation(cancellation.clone());
                    job.terms().cancellation = Some(cancellation);
                }
                Led::Job(Box::new(job))
            }
            Turn::Retry(failed) => {
                let (due, next) = (failed.due(), failed.decided.decision.attempt_next);
                driven.failed.push(*failed);
                driven.runnable = driven.runnable.with_attempt(next);
                state.waiting.insert(place, driven);
                let this = Weak::clone(&self.this);
                self.timers.at(due, move || {
                    if let Some(this) = this.upgrade() {
                        this.retry(place);
                    }
                });
                Led::Nothing
            }
            Turn::Pause(_) => unreachable!("invariant: what waits for a person is refused in memory"),
            Turn::Over(executed) => Led::Result(Box::new(executed.after_attempts(driven.failed))),
        }
    }

    /// Begins the next attempt, or asks for it to be let in.
    fn retry(&self, place: Place) {
        let mut state = self.lock();
        let mut afterwards = Afterwards::default();
        let Some(driven) = state.waiting.get_mut(&place) else { return };
        let policy = Arc::clone(driven.runnable.policy());
        let now = self.clock.now();
        if policy.is_admitted() {
            driven.is_asking = true;
            driven.queue_until = policy.queue_timeout.map(|span| now.saturating_add(span));
            let late_at = [driven.course.limit(), driven.queue_until].into_iter().flatten().min();
            drop(state);
            if let Some(late_at) = late_at {
                self.give_up_at(place, late_at);
            }
            self.finish(Afterwards { asks: vec![self.ask(place, &policy)], ..afterwards });
            return;
        }
        if let Some(driven) = state.waiting.remove(&place) {
            self.begin_attempt(&mut state, place, driven, None, now, &mut afterwards);
        }
        drop(state);
        self.finish(afterwards);
    }

    /// Ends an attempt that was not let in by an instant.
    fn give_up_at(&self, place: Place, at: Timestamp) {
        let this = Weak::clone(&self.this);
        self.timers.at(at, move || {
            let Some(this) = this.upgrade() else { return };
            let (mut state, now) = (this.lock(), this.clock.now());
            let is_late = |driven: &Driven| {
                let limits = [driven.course.limit(), driven.queue_until];
                driven.is_asking && limits.into_iter().flatten().any(|at| at <= now)
            };
            // It may be another attempt that waits now.
            if !state.waiting.get(&place).is_some_and(|driven| is_late(driven)) {
                return;
            }
            let mut afterwards = Afterwards::default();
            if let Some(driven) = state.waiting.remove(&place) {
                this.begin_attempt(&mut state, place, driven, None, now, &mut afterwards);
            }
            drop(state);
            this.finish(afterwards);
        });
    }

    fn hears(&self, runnable: &Runnable) -> bool {
        self.has_compensations && runnable.wants_context()
    }

    fn job(&self, place: Place, runnable: Runnable) -> Job {
        self.pool.job(self.sink(), GROUP, place, runnable)
    }
}

impl Asker for Shared {
    fn admitted(self: Arc<Self>, id: u64, entry: Entry) {
        let mut afterwards = Afterwards::default();
        self.enter(&mut self.lock(), id, entry, self.clock.now(), &mut afterwards);
        self.finish(afterwards);
    }

    fn wants(&self, id: u64) -> bool {
        let state = self.lock();
        state.held.contains_key(&id) || state.waiting.get(&id).is_some_and(|driven| driven.is_asking)
    }

    /// Nobody looks at a run in memory while it waits.
    fn waits(self: Arc<Self>, _id: u64, _held: Held) {}
}
