//! What a case works with: one store by two handles, its clock, and short ways to write to it.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use std::any::Any;
use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{
    Append, Batch, Claim, Claimed, Clock as _, Fence, Guard, Lease, NewCommand, NewRun, OwnerId, Refused,
    RunRecord, Status, Store, Version, Wanted,
};

use crate::VirtualClock;

/// How long the owners of the cases hold their leases.
pub(crate) const LEASE: Span = Span::from_secs(30);

/// A store that is empty, with what a case needs around it.
pub struct World {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same store as another process sees it.
    pub other: Arc<dyn Store>,
    /// The clock of both.
    pub clock: VirtualClock,
    /// Lets another process with a clock of its own see the same store.
    pub process: Box<dyn Fn(VirtualClock) -> Arc<dyn Store> + Send + Sync>,
    /// What must live as long as the store, such as its folder.
    pub keeps: Box<dyn Any + Send>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn after(&self, seconds: u64) -> Timestamp {
        self.now().saturating_add(Span::from_secs(seconds))
    }

    /// Lets time go by while both processes look at the owners now and then, as those that drive runs do.
    pub(crate) async fn pass(&self, span: Span) {
        const STEP: u64 = LEASE.as_millis() / 3;
        self.look().await;
        let mut left = span.as_millis();
        while left > 0 {
            let step = left.min(STEP);
            self.clock.advance(Span::from_millis(step));
            self.look().await;
            left -= step;
        }
    }

    async fn look(&self) {
        self.store.owners().await.unwrap();
        self.other.owners().await.unwrap();
    }

    /// Writes one append and returns what became of it.
    pub(crate) async fn write(&self, append: Append) -> Result<Lease, Refused> {
        let mut answers = self.store.append(vec![append]).await.unwrap();
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    /// Creates a run that nobody drives and that is due.
    pub(crate) async fn queue(&self, id: &str) -> Lease {
        self.write(new_run(id, None).due(self.now())).await.unwrap()
    }

    /// Creates a run that an owner drives.
    pub(crate) async fn start(&self, id: &str, owner: OwnerId) -> Lease {
        self.write(new_run(id, Some(owner))).await.unwrap()
    }

    pub(crate) async fn found(&self, id: &str) -> RunRecord {
        self.store.find(&RunId::new(id)).await.unwrap().expect("the run exists")
    }

    pub(crate) async fn join(&self) -> OwnerId {
        self.store.join(LEASE).await.unwrap().owner
    }

    pub(crate) async fn join_other(&self) -> OwnerId {
        self.other.join(LEASE).await.unwrap().owner
    }

    pub(crate) async fn claim_run(&self, owner: OwnerId, id: &str) -> Option<Lease> {
        let claim = Claim { owner, wanted: Wanted::Run(RunId::new(id)) };
        let claimed = self.store.claim(claim).await.unwrap();
        assert_eq!(claimed.next_due, None);
        claimed.runs.into_iter().next().map(|(lease, ..)| lease)
    }

    pub(crate) async fn claim_due(&self, owner: OwnerId, limit: u32) -> Claimed {
        let workflows = vec![(WORKFLOW.to_owned(), 1)];
        self.store.claim(Claim { owner, wanted: Wanted::Due { workflows, limit } }).await.unwrap()
    }

    pub(crate) async fn send(&self, id: &str, kind: &str) -> Result<tidewheel_store::CommandId, Refused> {
        self.store.send(command(id, kind)).await.unwrap()
    }
}

/// The workflow of the runs of the cases.
pub(crate) const WORKFLOW: &str = "flow";

pub(crate) fn command(id: &str, kind: &str) -> NewCommand {
    NewCommand { run: RunId::new(id), kind: kind.to_owned(), body: r#"{"why":"asked"}"#.to_owned() }
}

/// Returns events such as `{"n":3}` with these numbers.
pub(crate) fn events(numbers: impl IntoIterator<Item = u64>) -> Batch {
    let mut batch = Batch::new();
    for number in numbers {
        batch.push(&format!(r#"{{"n":{number}}}"#));
    }
    batch
}

/// Returns a write that creates a run with one event.
pub(crate) fn new_run(id: &str, owner: Option<OwnerId>) -> Append {
    let new = NewRun {
        workflow: WORKFLOW.to_owned(),
        workflow_version: 1,
        definition: format!(r#"{{"of":{}}}"#, serde_json::Value::from(id)),
        owner,
    };
    Append {
        run: RunId::new(id),
        guard: Guard::New(Box::new(new)),
        expected: 0,
        events: events([0]),
        status: Status::Running,
        reason: None,
        wake_at: None,
        handled: Vec::new(),
        checkpoint: None,
        letters: Vec::new(),
        release: false,
    }
}

/// Returns a write that adds one event.
pub(crate) fn more(lease: &Lease, expected: Version) -> Append {
    Append {
        run: lease.run.clone(),
        guard: Guard::Held { key: lease.key, fence: lease.fence },
        expected,
        events: events([expected]),
        status: Status::Running,
        reason: None,
        wake_at: None,
        handled: Vec::new(),
        checkpoint: None,
        letters: Vec::new(),
        release: false,
    }
}

/// Short ways to vary a write.
pub(crate) trait Vary {
    fn due(self, at: Timestamp) -> Self;
    fn status(self, status: Status) -> Self;
    fn release(self) -> Self;
    fn events(self, numbers: impl IntoIterator<Item = u64>) -> Self;
    fn fence(self, fence: Fence) -> Self;
    fn workflow(self, name: &str, version: u32) -> Self;
}

impl Vary for Append {
    fn due(mut self, at: Timestamp) -> Self {
        self.wake_at = Some(at);
        self
    }

    fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    fn release(mut self) -> Self {
        self.release = true;
        self
    }

    fn events(mut self, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.events = events(numbers);
        self
    }

    fn fence(mut self, other: Fence) -> Self {
        if let Guard::Held { fence, .. } = &mut self.guard {
            *fence = other;
        }
        self
    }

    fn workflow(mut self, name: &str, version: u32) -> Self {
        if let Guard::New(new) = &mut self.guard {
            name.clone_into(&mut new.workflow);
            new.workflow_version = version;
        }
        self
    }
}
