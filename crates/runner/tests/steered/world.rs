//! What these tests share: workflows under rules, tokens that work hands out, a database that is left and opened again,
//! and a store that is cut off at a write.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{ExecutionMode, Failure, Matcher, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::work::{Context, Token};
use tidewheel_core::workflow::{Component, Workflow, step};
use tidewheel_runner::{RunHandle, Runner, RunnerOptions};
use tidewheel_store::{
    Answer, Append, Claim, Claimed, Command, CommandId, DeadLetter, DeadLetterId, Filter, Joined, Lease,
    Memory, NewCommand, OwnerId, Page, PutShared, RealClock, Refused, Renewed, RunRecord, Shared, Sqlite,
    Status, Store, StoreError, Stored, Version,
};
use tokio::sync::{Semaphore, watch};

/// Returns a workflow of components under rules.
pub(crate) fn governed(
    name: &str,
    components: impl IntoIterator<Item = Component>,
    rules: impl IntoIterator<Item = (Matcher, Policy)>,
) -> Workflow {
    let mut workflow = Workflow::new(name);
    for component in components {
        workflow = workflow.add(component);
    }
    workflow.policies(rules).build().unwrap()
}

/// Returns a policy that lets somebody outside end the work.
pub(crate) fn external() -> Policy {
    Policy::new().execution_mode(ExecutionMode::External)
}

/// Starts a run with an input.
pub(crate) async fn start(runner: &Runner, id: &str, workflow: &Workflow, input: i64) -> RunHandle {
    runner.run(id, workflow, input).await.unwrap()
}

/// Waits, and fails if that takes too long.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it comes")
}

/// Waits until a run is so, as it is stored.
pub(crate) async fn until(run: &RunHandle, status: Status) {
    soon(async {
        while run.status().await.unwrap() != status {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Returns the code of a failure, or nothing.
pub(crate) fn code(failure: &Failure) -> String {
    failure.code.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Counts calls, and lets the first of them fail.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicU32>);

impl Calls {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts one more, and returns how many there were before.
    pub(crate) fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns a step that fails so often, and gives what it is given then.
    pub(crate) fn failing(&self, name: &str, times: u32) -> Component {
        let calls = self.clone();
        step(name, move |x: i64| {
            let call = calls.next();
            async move { if call < times { Err(Failure::new(format!("down {call}"))) } else { Ok(x) } }
        })
    }
}

/// The tokens that work gave to the outside.
#[derive(Clone)]
pub(crate) struct Tokens {
    given: Arc<Mutex<Vec<Token>>>,
    waiting: Arc<Semaphore>,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        Self { given: Arc::default(), waiting: Arc::new(Semaphore::new(0)) }
    }

    /// Returns a step that gives its token away and is over with that.
    pub(crate) fn step(&self, name: &str) -> Component {
        let tokens = self.clone();
        step(name, move |context: Context, x: i64| {
            tokens.give(&context);
            async move { x }
        })
    }

    pub(crate) fn give(&self, context: &Context) {
        self.given.lock().unwrap().push(context.token());
        self.waiting.add_permits(1);
    }

    /// Waits for the next token.
    pub(crate) async fn next(&self) -> Token {
        soon(self.waiting.acquire()).await.unwrap().forget();
        let given = self.given.lock().unwrap();
        given[given.len() - 1 - self.waiting.available_permits()].clone()
    }

    /// Returns the one that was given last.
    pub(crate) fn last(&self) -> Option<Token> {
        self.given.lock().unwrap().last().cloned()
    }

    /// Returns how many were given.
    pub(crate) fn count(&self) -> usize {
        self.given.lock().unwrap().len()
    }
}

/// Returns a runner in memory.
pub(crate) async fn in_memory() -> Runner {
    Runner::in_memory(RunnerOptions::new()).await.unwrap()
}

/// A database on disk, for runners after and beside each other.
pub(crate) struct Disk(tempfile::TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Opens a runner that does nothing by itself but what is asked of it.
    pub(crate) async fn open(&self) -> (Runner, Arc<Sqlite>) {
        self.open_with(RunnerOptions::new()).await
    }

    pub(crate) async fn open_with(&self, options: RunnerOptions) -> (Runner, Arc<Sqlite>) {
        let clock = Arc::new(RealClock::new());
        let store = Arc::new(Sqlite::open(self.0.path().join("runs.db"), clock.clone()).unwrap());
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options.clock(clock)).await;
        (runner.unwrap(), store)
    }
}

/// Ends a runner as the end of its process would: nothing more is stored, and its runs are free.
pub(crate) async fn crash(runner: Runner, store: &Sqlite) {
    drop(runner);
    store.close().await;
}

/// Returns the names of the stored events of a run.
pub(crate) async fn log(store: &dyn Store, run: &str) -> Vec<(String, serde_json::Value)> {
    let mut events = Vec::new();
    for stored in store.read(&RunId::new(run), 0).await.unwrap() {
        for line in stored.events.events().unwrap() {
            let event: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            events.extend(event);
        }
    }
    events
}

/// Returns how many events of a name there are.
pub(crate) fn count(events: &[(String, serde_json::Value)], name: &str) -> usize {
    events.iter().filter(|(found, _)| found == name).count()
}

/// A process in front of a store: after so many writes it is gone, and has no store any more. The next one has.
#[derive(Clone)]
pub(crate) struct Process {
    store: Arc<Memory>,
    left: Arc<AtomicI64>,
    /// Whether the last write is done, and only its answer is lost.
    does_last: bool,
    is_gone: watch::Sender<bool>,
}

impl Process {
    /// Returns a process that lives on.
    pub(crate) fn new(store: &Arc<Memory>) -> Self {
        Self::dying(store, i64::MAX, false)
    }

    /// Returns a process that is gone with its last write: before or after that is done.
    pub(crate) fn dying(store: &Arc<Memory>, writes: i64, does_last: bool) -> Self {
        let (store, left) = (Arc::clone(store), Arc::new(AtomicI64::new(writes)));
        Self { store, left, does_last, is_gone: watch::Sender::new(false) }
    }

    /// Returns a runner in this process.
    pub(crate) async fn runner(&self) -> Runner {
        let options = RunnerOptions::new().clock(Arc::new(RealClock::new())).lease(Span::from_secs(3));
        Runner::with_store(Arc::new(self.clone()), options).await.unwrap()
    }

    /// Waits for its end; tells whether it came before something else did.
    pub(crate) async fn ends_before<T>(&self, other: impl Future<Output = T>) -> bool {
        let mut is_gone = self.is_gone.subscribe();
        tokio::select! {
            // Answers that came before the end count.
            biased;
            _ = other => false,
            _ = is_gone.wait_for(|is_gone| *is_gone) => true,
        }
    }

    /// Asks the store, as long as the process lives.
    fn alive<'a, T: Send + 'a>(&'a self, ask: impl FnOnce() -> Answer<'a, T> + Send + 'a) -> Answer<'a, T> {
        Box::pin(async move {
            if *self.is_gone.borrow() {
                return self.nothing().await;
            }
            ask().await
        })
    }

    fn write<'a, T: Send + 'a>(&'a self, ask: impl FnOnce() -> Answer<'a, T> + Send + 'a) -> Answer<'a, T> {
        Box::pin(async move {
            let left = self.left.fetch_sub(1, Ordering::SeqCst);
            if left > 1 {
                return ask().await;
            }
            if left == 1 && self.does_last {
                ask().await?;
            }
            self.is_gone.send_replace(true);
            self.nothing().await
        })
    }

    /// There is no answer. Whoever waits for the end of the process learns of that first.
    async fn nothing<T>(&self) -> Result<T, StoreError> {
        tokio::task::yield_now().await;
        Err(StoreError::Closed)
    }
}

impl Store for Process {
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>> {
        self.write(move || self.store.append(appends))
    }

    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool> {
        self.write(move || self.store.put_shared(puts))
    }

    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>> {
        self.alive(move || self.store.read(run, from))
    }

    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>> {
        self.alive(move || self.store.find(run))
    }

    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>> {
        self.alive(move || self.store.definition(run))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>> {
        self.alive(move || self.store.list(filter))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>> {
        self.alive(move || self.store.delete(run))
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        self.alive(move || self.store.checkpoint(run))
    }

    fn join(&self, lease: Span) -> Answer<'_, Joined> {
        self.alive(move || self.store.join(lease))
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.alive(move || self.store.renew(owner, lease))
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.alive(move || self.store.leave(owner))
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.alive(move || self.store.claim(claim))
    }

    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()> {
        self.alive(move || self.store.release(leases))
    }

    fn note_execution(&self, key: i64, work: &str) {
        self.store.note_execution(key, work);
    }

    fn forget_execution(&self, key: i64, work: &str) {
        self.store.forget_execution(key, work);
    }

    fn take_executions(&self, key: i64) -> Vec<String> {
        self.store.take_executions(key)
    }

    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>> {
        self.alive(move || self.store.send(command))
    }

    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>> {
        self.alive(move || self.store.commands(owner))
    }

    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>> {
        self.alive(move || self.store.commands_of(run))
    }

    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.store.alerted(owner)
    }

    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>> {
        self.alive(move || self.store.shared(kind, name))
    }

    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>> {
        self.alive(move || self.store.all_shared(kind, after))
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        self.alive(move || self.store.owners())
    }

    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>> {
        self.alive(move || self.store.dead_letters(run, after))
    }

    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool> {
        self.alive(move || self.store.unbury(id))
    }
}
