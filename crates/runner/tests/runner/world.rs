//! What these tests share: a store that can be lost and opened again, work that waits for a word, and a store
//! that shows what was written and holds it back.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{
    Answer, Append, Claim, Claimed, Clock, Command, CommandId, DeadLetter, DeadLetterId, Filter, Joined,
    Lease, Memory, NewCommand, OwnerId, Page, PutShared, RealClock, Refused, Renewed, RunRecord, Shared,
    Sqlite, Store, Stored, Version,
};
use tokio::sync::{Semaphore, watch};

/// `inc`, `double` after it, and the sum of both.
pub(crate) fn numbers() -> Workflow {
    Workflow::new("numbers")
        .add(step("inc", |x: i64| x + 1))
        .add(step("double", |x: i64| x * 2).after("inc"))
        .add(step("sum", |inc: i64, double: i64| inc + double).after(["inc", "double"]))
        .build()
        .expect("a sound workflow")
}

/// One async step that waits for a word.
pub(crate) fn gated(gate: &Gate) -> Workflow {
    let gate = gate.clone();
    let work = move |x: i64| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            x + 1
        }
    };
    Workflow::new("gated").add(step("inc", work)).build().expect("a sound workflow")
}

/// Work says here that it began, and goes on when it may.
#[derive(Clone)]
pub(crate) struct Gate {
    began: Arc<Semaphore>,
    open: Arc<Semaphore>,
    count: Arc<AtomicU32>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            began: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
            count: Arc::new(AtomicU32::new(0)),
        }
    }

    /// Says that a piece of work began, and waits until it may go on.
    pub(crate) async fn pass(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.began.add_permits(1);
        self.open.acquire().await.expect("it is never closed").forget();
    }

    /// Waits until another piece of work began.
    pub(crate) async fn began(&self) {
        self.began.acquire().await.expect("it is never closed").forget();
    }

    /// Lets so many pieces go on.
    pub(crate) fn open(&self, count: usize) {
        self.open.add_permits(count);
    }

    /// Returns how many pieces began.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A database on disk, for one runner after the other.
pub(crate) struct Disk {
    folder: tempfile::TempDir,
    clock: Arc<dyn Clock>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::with_clock(Arc::new(RealClock::new()))
    }

    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), clock }
    }

    pub(crate) fn store(&self) -> Arc<Sqlite> {
        let path = self.folder.path().join("runs.db");
        Arc::new(Sqlite::open(path, Arc::clone(&self.clock)).expect("a database"))
    }

    /// Returns a runner and its store.
    pub(crate) async fn open(&self) -> (Runner, Arc<Sqlite>) {
        self.open_with(RunnerOptions::new()).await
    }

    pub(crate) async fn open_with(&self, options: RunnerOptions) -> (Runner, Arc<Sqlite>) {
        let store = self.store();
        let options = options.clock(Arc::clone(&self.clock));
        let runner = Runner::with_store(Arc::clone(&store) as Arc<dyn Store>, options).await;
        (runner.expect("a runner"), store)
    }
}

/// Ends a runner as the end of its process would: nothing more is stored, and its runs are free.
pub(crate) async fn crash(runner: Runner, store: &Sqlite) {
    drop(runner);
    store.close().await;
}

/// Returns the stored events of a run, each as its name and its body.
pub(crate) async fn log(store: &dyn Store, run: &str) -> Vec<(String, serde_json::Value)> {
    let mut events = Vec::new();
    for stored in store.read(&RunId::new(run), 0).await.expect("a log") {
        for line in stored.events.events().expect("events") {
            events.push(parsed(line));
        }
    }
    events
}

/// Returns an event as its name and its body.
pub(crate) fn parsed(line: &str) -> (String, serde_json::Value) {
    let event: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).expect("an object");
    event.into_iter().next().expect("a name")
}

/// Returns how many events of a name there are.
pub(crate) fn count(events: &[(String, serde_json::Value)], name: &str) -> usize {
    events.iter().filter(|(found, _)| found == name).count()
}

/// A store in memory that remembers what was written and can hold it back.
#[derive(Clone)]
pub(crate) struct Watched(Arc<Inner>);

struct Inner {
    store: Memory,
    appends: Mutex<Vec<Append>>,
    holds: watch::Sender<bool>,
}

impl Watched {
    pub(crate) fn new() -> Self {
        let store = Memory::new(Arc::new(RealClock::new()));
        Self(Arc::new(Inner { store, appends: Mutex::default(), holds: watch::Sender::new(false) }))
    }

    /// Returns a runner on this store.
    pub(crate) async fn runner(&self, options: RunnerOptions) -> Runner {
        let runner =
            Runner::with_store(Arc::new(self.clone()), options.clock(Arc::new(RealClock::new()))).await;
        runner.expect("a runner")
    }

    /// Returns what was written so far.
    pub(crate) fn appends(&self) -> Vec<Append> {
        self.0.appends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds back what is written from now on, or lets it through.
    pub(crate) fn hold(&self, holds: bool) {
        self.0.holds.send_replace(holds);
    }

    /// Forgets what was written so far.
    pub(crate) fn forget(&self) {
        self.0.appends.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Store for Watched {
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>> {
        self.0.appends.lock().unwrap_or_else(PoisonError::into_inner).extend(appends.iter().cloned());
        let mut holds = self.0.holds.subscribe();
        Box::pin(async move {
            drop(holds.wait_for(|holds| !holds).await);
            self.0.store.append(appends).await
        })
    }

    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>> {
        self.0.store.read(run, from)
    }

    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>> {
        self.0.store.find(run)
    }

    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>> {
        self.0.store.definition(run)
    }

    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>> {
        self.0.store.list(filter)
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>> {
        self.0.store.delete(run)
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        self.0.store.checkpoint(run)
    }

    fn join(&self, lease: Span) -> Answer<'_, Joined> {
        self.0.store.join(lease)
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.0.store.renew(owner, lease)
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.0.store.leave(owner)
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.0.store.claim(claim)
    }

    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()> {
        self.0.store.release(leases)
    }

    fn note_execution(&self, key: i64, work: &str) {
        self.0.store.note_execution(key, work);
    }

    fn forget_execution(&self, key: i64, work: &str) {
        self.0.store.forget_execution(key, work);
    }

    fn take_executions(&self, key: i64) -> Vec<String> {
        self.0.store.take_executions(key)
    }

    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>> {
        self.0.store.send(command)
    }

    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>> {
        self.0.store.commands(owner)
    }

    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>> {
        self.0.store.commands_of(run)
    }

    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.store.alerted(owner)
    }

    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>> {
        self.0.store.shared(kind, name)
    }

    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool> {
        self.0.store.put_shared(puts)
    }

    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>> {
        self.0.store.all_shared(kind, after)
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        self.0.store.owners()
    }

    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>> {
        self.0.store.dead_letters(run, after)
    }

    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool> {
        self.0.store.unbury(id)
    }
}
