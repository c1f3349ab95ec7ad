//! Where runs are kept: the trait of all stores, the one in memory and the one in SQLite, and their clock.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tidewheel::prelude::*;
//! use tidewheel::store::{Clock, Filter, Memory, Page, RealClock, RunRecord, Sqlite, SqliteOptions, Status, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("numbers.db");
//! let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
//! let options = SqliteOptions::new().readers(4);
//! let stores: [Arc<dyn Store>; 2] = [
//!     Arc::new(Sqlite::open_with(path, clock.clone(), &options)?),
//!     Arc::new(Memory::new(clock)), // gone with the process, and the same in all else
//! ];
//! for store in stores {
//!     let workflow = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?;
//!     let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new()).await?;
//!     let run = runner.run("run-1", &workflow, 1_i64).await?;
//!     assert_eq!(run.wait().await?, Status::Completed);
//!     runner.shutdown().await;
//!
//!     // Anybody may look, also while a runner works.
//!     let page: Page<RunRecord> = store.list(Filter { limit: Some(10), ..Filter::default() }).await?;
//!     assert_eq!((page.rows[0].workflow.as_str(), page.rows[0].status), ("numbers", Status::Completed));
//!     assert!(page.next.is_none(), "there is no other page");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A disk that is full is no fault of the run; it goes on when there is room again:
//!
//! ```
//! use tidewheel::store::{StoreError, Unavailable};
//!
//! fn may_work_later(error: &StoreError) -> bool {
//!     match error {
//!         StoreError::Unavailable { why: Unavailable::Full | Unavailable::Busy | Unavailable::Io, .. } => true,
//!         StoreError::Unavailable { why: Unavailable::ReadOnly, .. } => false,
//!         _ => false,
//!     }
//! }
//! assert!(!may_work_later(&StoreError::Closed));
//! ```
//!
//! Time is a value, so that a test can hold it:
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::store::{Clock, Sleep};
//!
//! /// A clock that waits for nobody.
//! #[derive(Debug)]
//! struct Noon;
//!
//! impl Clock for Noon {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_millis(12 * 3_600_000)
//!     }
//!
//!     fn sleep_until(&self, _at: Timestamp) -> Sleep {
//!         Box::pin(std::future::ready(()))
//!     }
//! }
//!
//! assert_eq!(Noon.now().to_string(), "1970-01-01T12:00:00Z");
//! ```
//!
//! A store of your own keeps the promises of [`Store`]: a run has one writer, who holds a [`Lease`]. This is what a
//! runner asks of it:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tidewheel::fact::RunId;
//! use tidewheel::prelude::*;
//! use tidewheel::store::{
//!     Answer, Append, Batch, BatchError, Claim, Claimed, Command, CommandId, DeadLetter, DeadLetterId, Fence, Guard, Joined, Lease, Letter, Memory,
//!     NewCommand, NewDeadLetter, NewRun, OwnerId, PutShared, RealClock, Refused, Renewed, Shared, Status, Store,
//!     StoreError, Stored, Version, Wanted,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Memory::new(Arc::new(RealClock::new()));
//! let run = RunId::new("run-1");
//!
//! // Who drives runs joins first, and renews before the lease is over.
//! let Joined { owner, .. } = store.join(Span::from_secs(30)).await?;
//! let renewed: Renewed = store.renew(owner, Span::from_secs(30)).await??;
//! assert!(renewed.is_alone);
//!
//! // A run begins with its first events.
//! let mut events = Batch::new();
//! events.push(r#"{"event":"first"}"#);
//! let begin = NewRun {
//!     workflow: "numbers".to_owned(),
//!     workflow_version: 1,
//!     definition: "{}".to_owned(),
//!     owner: Some(owner),
//! };
//! let letter = NewDeadLetter { work: "work_1".to_owned(), node: "inc".to_owned(), body: "{}".to_owned() };
//! let append = Append {
//!     run: run.clone(),
//!     guard: Guard::New(Box::new(begin)),
//!     expected: 0,
//!     events,
//!     status: Status::Running,
//!     reason: None,
//!     wake_at: None,
//!     handled: Vec::new(),
//!     checkpoint: None,
//!     letters: vec![Letter::Bury(letter)],
//!     release: false,
//! };
//! let written: Vec<Result<Lease, Refused>> = store.append(vec![append.clone()]).await?;
//! let lease: Lease = written.into_iter().next().ok_or("nothing was written")??;
//! let fence: Fence = lease.fence; // whoever claims the run later has a higher one
//! assert_eq!(lease.run, run);
//! assert!(matches!(store.append(vec![append]).await?[0], Err(Refused::Exists { .. })));
//!
//! // Everybody reads it.
//! let from: Version = 0;
//! let answer: Answer<'_, Vec<Stored>> = store.read(&run, from);
//! let stored: Result<Vec<Stored>, StoreError> = answer.await;
//! let lines: Result<Vec<&str>, BatchError> = stored.as_ref().map_err(|e| e.to_string())?[0].events.events();
//! assert_eq!(lines?, [r#"{"event":"first"}"#]);
//!
//! // What was put aside can be taken up again.
//! let letter: DeadLetter = store.dead_letters(Some(&run), None).await?.rows.remove(0);
//! let id: DeadLetterId = letter.id;
//! assert!(letter.node == "inc" && store.unbury(id).await?);
//!
//! // People ask things of runs, and the owner obeys.
//! let asked = NewCommand { run: run.clone(), kind: "pause".to_owned(), body: "{}".to_owned() };
//! let id: CommandId = store.send(asked).await??;
//! let commands: Vec<Command> = store.commands(owner).await?;
//! assert_eq!(commands[0].id, id);
//!
//! // What runs share is written by whoever saw the last version.
//! let put = PutShared {
//!     kind: "rate".to_owned(),
//!     name: "api".to_owned(),
//!     expected: 0,
//!     body: Some("{}".to_owned()),
//! };
//! assert!(store.put_shared(vec![put.clone()]).await?);
//! assert!(!store.put_shared(vec![put]).await?, "somebody was faster");
//! let shared: Option<Shared> = store.shared("rate", "api").await?;
//! assert_eq!(shared.map(|shared| shared.version), Some(1));
//!
//! // Another owner takes what nobody drives any more.
//! store.release(vec![lease]).await?;
//! let other: OwnerId = store.join(Span::from_secs(30)).await?.owner;
//! let claimed: Claimed = store.claim(Claim { owner: other, wanted: Wanted::Run(run) }).await?;
//! assert!(claimed.runs[0].0.fence > fence);
//! # Ok(())
//! # }
//! ```

pub use tidewheel_store::sqlite::Options as SqliteOptions;
pub use tidewheel_store::{
    Answer, Append, Batch, BatchError, Claim, Claimed, Clock, Command, CommandId, DeadLetter, DeadLetterId,
    Fence, Filter, Guard, Joined, Lease, Letter, Memory, NewCommand, NewDeadLetter, NewRun, OwnerId, Page,
    PutShared, RealClock, Refused, Renewed, RunRecord, Shared, Sleep, Sqlite, Status, Store, StoreError,
    Stored, Unavailable, Version, Wanted,
};
