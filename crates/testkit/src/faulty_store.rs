//! A store that fails when a test says so: before it does what it was asked, or after, so that the answer is lost.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_store::{
    Answer, Append, Claim, Claimed, Command, CommandId, DeadLetter, DeadLetterId, Filter, Joined, Lease,
    NewCommand, OwnerId, Page, PutShared, Refused, Renewed, RunRecord, Shared, Store, StoreError, Stored,
    Unavailable, Version,
};

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the function of the same name")]
pub enum Call {
    Append,
    Read,
    Find,
    Definition,
    List,
    Delete,
    Checkpoint,
    Join,
    Renew,
    Leave,
    Owners,
    Claim,
    Release,
    Send,
    Commands,
    CommandsOf,
    Shared,
    AllShared,
    PutShared,
    DeadLetters,
    Unbury,
}

impl Call {
    /// Every call.
    pub const ALL: [Self; 21] = [
        Self::Append,
        Self::Read,
        Self::Find,
        Self::Definition,
        Self::List,
        Self::Delete,
        Self::Checkpoint,
        Self::Join,
        Self::Renew,
        Self::Leave,
        Self::Owners,
        Self::Claim,
        Self::Release,
        Self::Send,
        Self::Commands,
        Self::CommandsOf,
        Self::Shared,
        Self::AllShared,
        Self::PutShared,
        Self::DeadLetters,
        Self::Unbury,
    ];
}

/// When a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing has happened.
    Before,
    /// All has happened, and the answer got lost.
    After,
    /// Nothing has happened, and the task that waits for the answer is unwound.
    Panic,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// What stands in the way.
    pub why: Unavailable,
    /// Whether the call was done.
    pub when: When,
}

/// A store in front of another one, with failures.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    calls: BTreeMap<Call, u64>,
    planned: Vec<(Call, u64, Outage)>,
    outage: Option<Outage>,
}

impl FaultyStore {
    /// Stands in front of a store and lets everything through.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Lets the `nth` call of a kind fail, counted from the next one, which is the first.
    pub fn fail_nth(&self, call: Call, nth: u64, outage: Outage) {
        let mut plan = self.plan();
        let so_far = plan.calls.get(&call).copied().unwrap_or(0);
        plan.planned.push((call, so_far + nth, outage));
    }

    /// Lets every call fail from now on; `None` ends it.
    pub fn fail_all(&self, outage: Option<Outage>) {
        self.plan().outage = outage;
    }

    /// Returns how often something was asked.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.plan().calls.get(&call).copied().unwrap_or(0)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and returns how it shall fail.
    fn next(&self, call: Call) -> Option<Outage> {
        let mut plan = self.plan();
        let count = plan.calls.entry(call).or_insert(0);
        *count += 1;
        let number = *count;
        let planned = plan.planned.iter().position(|(kind, nth, _)| *kind == call && *nth == number);
        planned.map(|at| plan.planned.swap_remove(at).2).or(plan.outage)
    }

    fn through<'a, T: Send + 'a>(
        &self,
        call: Call,
        ask: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        match self.next(call) {
            None => ask(),
            Some(Outage { why, when: When::Before }) => Box::pin(std::future::ready(Err(lost(why)))),
            Some(Outage { why, when: When::After }) => Box::pin(async move {
                ask().await?;
                Err(lost(why))
            }),
            Some(Outage { when: When::Panic, .. }) => Box::pin(async { panic!("a test made it panic") }),
        }
    }
}

fn lost(why: Unavailable) -> StoreError {
    StoreError::Unavailable { why, source: Box::new(io::Error::other("a test made it fail")) }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("calls", &self.plan().calls).finish_non_exhaustive()
    }
}

impl Store for FaultyStore {
    fn append(&self, appends: Vec<Append>) -> Answer<'_, Vec<Result<Lease, Refused>>> {
        self.through(Call::Append, move || self.inner.append(appends))
    }

    fn read<'a>(&'a self, run: &'a RunId, from: Version) -> Answer<'a, Vec<Stored>> {
        self.through(Call::Read, move || self.inner.read(run, from))
    }

    fn find<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<RunRecord>> {
        self.through(Call::Find, move || self.inner.find(run))
    }

    fn definition<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<String>> {
        self.through(Call::Definition, move || self.inner.definition(run))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Page<RunRecord>> {
        self.through(Call::List, move || self.inner.list(filter))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> Answer<'a, Result<bool, Refused>> {
        self.through(Call::Delete, move || self.inner.delete(run))
    }

    fn checkpoint<'a>(&'a self, run: &'a RunId) -> Answer<'a, Option<(Version, String)>> {
        self.through(Call::Checkpoint, move || self.inner.checkpoint(run))
    }

    fn join(&self, lease: Span) -> Answer<'_, Joined> {
        self.through(Call::Join, move || self.inner.join(lease))
    }

    fn renew(&self, owner: OwnerId, lease: Span) -> Answer<'_, Result<Renewed, Refused>> {
        self.through(Call::Renew, move || self.inner.renew(owner, lease))
    }

    fn leave(&self, owner: OwnerId) -> Answer<'_, ()> {
        self.through(Call::Leave, move || self.inner.leave(owner))
    }

    fn owners(&self) -> Answer<'_, Vec<OwnerId>> {
        self.through(Call::Owners, move || self.inner.owners())
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Claimed> {
        self.through(Call::Claim, move || self.inner.claim(claim))
    }

    fn release(&self, leases: Vec<Lease>) -> Answer<'_, ()> {
        self.through(Call::Release, move || self.inner.release(leases))
    }

    fn note_execution(&self, key: i64, work: &str) {
        self.inner.note_execution(key, work);
    }

    fn forget_execution(&self, key: i64, work: &str) {
        self.inner.forget_execution(key, work);
    }

    fn take_executions(&self, key: i64) -> Vec<String> {
        self.inner.take_executions(key)
    }

    fn send(&self, command: NewCommand) -> Answer<'_, Result<CommandId, Refused>> {
        self.through(Call::Send, move || self.inner.send(command))
    }

    fn commands(&self, owner: OwnerId) -> Answer<'_, Vec<Command>> {
        self.through(Call::Commands, move || self.inner.commands(owner))
    }

    fn commands_of<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Command>> {
        self.through(Call::CommandsOf, move || self.inner.commands_of(run))
    }

    fn alerted(&self, owner: OwnerId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.alerted(owner)
    }

    fn shared<'a>(&'a self, kind: &'a str, name: &'a str) -> Answer<'a, Option<Shared>> {
        self.through(Call::Shared, move || self.inner.shared(kind, name))
    }

    fn all_shared<'a>(&'a self, kind: &'a str, after: Option<String>) -> Answer<'a, Page<(String, Shared)>> {
        self.through(Call::AllShared, move || self.inner.all_shared(kind, after))
    }

    fn put_shared(&self, puts: Vec<PutShared>) -> Answer<'_, bool> {
        self.through(Call::PutShared, move || self.inner.put_shared(puts))
    }

    fn dead_letters<'a>(
        &'a self,
        run: Option<&'a RunId>,
        after: Option<String>,
    ) -> Answer<'a, Page<DeadLetter>> {
        self.through(Call::DeadLetters, move || self.inner.dead_letters(run, after))
    }

    fn unbury(&self, id: DeadLetterId) -> Answer<'_, bool> {
        self.through(Call::Unbury, move || self.inner.unbury(id))
    }

    fn damage(&self) -> Vec<String> {
        self.inner.damage()
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_store::Memory;

    use super::*;
    use crate::VirtualClock;

    fn store() -> FaultyStore {
        FaultyStore::new(Arc::new(Memory::new(Arc::new(VirtualClock::default()))))
    }

    async fn put(store: &FaultyStore, expected: u64) -> Result<bool, StoreError> {
        let (kind, name, body) = ("kind".to_owned(), "name".to_owned(), Some("1".to_owned()));
        store.put_shared(vec![PutShared { kind, name, expected, body }]).await
    }

    async fn version(store: &FaultyStore) -> u64 {
        store.shared("kind", "name").await.unwrap().map_or(0, |shared| shared.version)
    }

    #[tokio::test]
    async fn the_chosen_call_fails_before_or_after_it_was_done() {
        let store = store();
        store.fail_nth(Call::PutShared, 2, Outage { why: Unavailable::Busy, when: When::Before });
        store.fail_nth(Call::PutShared, 3, Outage { why: Unavailable::Full, when: When::After });
        assert!(put(&store, 0).await.unwrap());
        let failed = put(&store, 1).await;
        assert!(matches!(failed, Err(StoreError::Unavailable { why: Unavailable::Busy, .. })));
        assert_eq!(version(&store).await, 1);
        let lost = put(&store, 1).await;
        assert!(matches!(lost, Err(StoreError::Unavailable { why: Unavailable::Full, .. })));
        assert_eq!(version(&store).await, 2);
        assert!(put(&store, 2).await.unwrap());
        assert_eq!((store.calls(Call::PutShared), store.calls(Call::Append)), (4, 0));
    }

    #[tokio::test]
    async fn everything_fails_while_it_is_switched_on() {
        let store = store();
        store.fail_all(Some(Outage { why: Unavailable::Io, when: When::Before }));
        assert!(put(&store, 0).await.is_err() && store.list(Filter::default()).await.is_err());
        store.fail_all(None);
        assert_eq!(version(&store).await, 0);
    }
}
