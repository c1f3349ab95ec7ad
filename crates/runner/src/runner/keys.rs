//! Which piece of work does something for all that are the same: its key is a row of the store, which has the result
//! before anybody goes on with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidewheel_core::Runnable;
use tidewheel_core::fact::{RunId, Value};
use tidewheel_core::policy::{Failure, IdempotencyKey};
use tidewheel_core::work::call_user;
use tidewheel_store::{PutShared, Shared, Status, Store, StoreError};

use super::active::Link;

/// The rows of pieces of work that are the same as others.
pub(super) struct Keys {
    store: Arc<dyn Store>,
    /// Who waits in this process, by the row.
    waiting: Mutex<Waiting>,
}

/// The pieces of work that wait, each by its run and its number there.
type Waiting = HashMap<String, Vec<(Arc<Link>, u32)>>;

/// A key and the row that it has.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// What people know it by.
    pub(super) text: String,
    row: String,
    /// The row that it had in releases before keys had scopes, and the workflow that it is of.
    unscoped: Option<(String, String)>,
}

/// What a row says to a piece of work.
pub(super) enum Claimed {
    /// It does it for all.
    Mine,
    /// Somebody did it, and this came of it.
    Done(Value),
    /// Somebody does it.
    Taken,
}

#[derive(Serialize, Deserialize)]
struct Row {
    v: u32,
    key: String,
    run: String,
    work: String,
    /// `None` while it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

const KIND: &str = "key";
const VERSION: u32 = 1;

impl Key {
    /// Returns the key of a piece of work; `None` where its policy has none.
    ///
    /// # Errors
    /// The policy's own function failed, or the input lacks what the key is made of.
    pub(super) fn of(runnable: &Runnable) -> Result<Option<Self>, Failure> {
        let Some(key) = &runnable.policy().idempotency_key else { return Ok(None) };
        let text = text_of(key, runnable)?;
        let row = runnable.shared_id(&text).to_string();
        let unscoped = key
            .scope()
            .is_none()
            .then(|| (runnable.unscoped_id(&text).to_string(), runnable.workflow_name().to_owned()));
        Ok(Some(Self { text, row, unscoped }))
    }
}

fn text_of(key: &IdempotencyKey, runnable: &Runnable) -> Result<String, Failure> {
    match key {
        IdempotencyKey::Function(function) => {
            call_user(|| function.call()(&runnable.node(), &runnable.input()))
        }
        IdempotencyKey::Template(template) => filled(template, &runnable.input()),
        IdempotencyKey::Shared { key, .. } => text_of(key, runnable),
    }
}

/// Puts fields of the input in the place of `${…}`.
fn filled(template: &str, input: &Value) -> Result<String, Failure> {
    let input = input.to_json().map_err(|error| Failure::of(&error).non_retryable())?;
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        let found = name.trim().split('.').try_fold(&input, |value, field| value.get(field));
        let missing = || {
            let message = format!("its input has no `{name}`, of which its idempotency_key is made");
            Failure::new(message).code("idempotency_key").non_retryable()
        };
        text.push_str(before);
        match found.ok_or_else(missing)? {
            serde_json::Value::String(word) => text.push_str(word),
            other => text.push_str(&other.to_string()),
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

impl Keys {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, waiting: Mutex::default() }
    }

    /// Claims a key for a piece of work.
    pub(super) async fn claim(&self, key: &Key, run: &RunId, work: &str) -> Result<Claimed, StoreError> {
        loop {
            let found = self.store.shared(KIND, &key.row).await?;
            let version = found.as_ref().map_or(0, |found| found.version);
            let before = match found.and_then(|found| read(&found)) {
                Some(row) => Some(row),
                None => self.unscoped(key).await?,
            };
            if let Some(before) = before {
                let is_own = before.run == run.as_str() && before.work == work;
                match before.result {
                    Some(result) => return Ok(Claimed::Done(Value::stored(result))),
                    None if is_own => return Ok(Claimed::Mine),
                    None if self.is_alive(&RunId::new(before.run.as_str())).await? => {
                        return Ok(Claimed::Taken);
                    }
                    // Nothing is to be done in that run any more: it failed, or was cancelled.
                    None => {}
                }
            }
            if self.put(key, version, Some(row(key, run, work, None))).await? {
                return Ok(Claimed::Mine);
            }
        }
    }

    /// Returns what a release before keys had scopes wrote of a key, if a run of the same workflow did.
    async fn unscoped(&self, key: &Key) -> Result<Option<Row>, StoreError> {
        let Some((name, workflow)) = &key.unscoped else { return Ok(None) };
        let found = self.store.shared(KIND, name).await?;
        let Some(row) = found.and_then(|found| read(&found)) else { return Ok(None) };
        let record = self.store.find(&RunId::new(row.run.as_str())).await?;
        Ok(record.is_some_and(|record| record.workflow == *workflow).then_some(row))
    }

    async fn is_alive(&self, run: &RunId) -> Result<bool, StoreError> {
        let record = self.store.find(run).await?;
        Ok(record.is_some_and(|record| match record.status {
            Status::Completed | Status::Failed | Status::Cancelled => false,
            Status::Running | Status::Waiting | Status::Paused | Status::Stopped | Status::Parked => true,
        }))
    }

    /// Keeps what came of it. Whoever waits in this process learns it at once.
    pub(super) async fn done(
        &self,
        key: &Key,
        run: &RunId,
        work: &str,
        value: &Value,
    ) -> Result<(), StoreError> {
        let Ok(value) = value.to_text() else { return Ok(()) };
        loop {
            let found = self.store.shared(KIND, &key.row).await?;
            let version = found.as_ref().map_or(0, |found| found.version);
            // What others took already stays: this process may have lost the run long ago.
            let is_done = found.and_then(|found| read(&found)).is_some_and(|row| row.result.is_some());
            if is_done || self.put(key, version, Some(row(key, run, work, Some(value.clone())))).await? {
                self.wake(key);
                return Ok(());
            }
        }
    }

    /// Lets somebody else do it: this piece of work failed for good.
    pub(super) async fn free(&self, key: &Key, run: &RunId, work: &str) -> Result<(), StoreError> {
        let before = key.unscoped.as_ref().map(|(row, _)| row);
        for name in [&key.row].into_iter().chain(before) {
            while let Some(found) = self.store.shared(KIND, name).await? {
                let is_own = |row: &Row| row.run == run.as_str() && row.work == work && row.result.is_none();
                if !read(&found).is_some_and(|row| is_own(&row)) {
                    break;
                }
                let (kind, expected) = (KIND.to_owned(), found.version);
                let removed = PutShared { kind, name: name.clone(), expected, body: None };
                if self.store.put_shared(vec![removed]).await? {
                    break;
                }
            }
        }
        self.wake(key);
        Ok(())
    }

    async fn put(&self, key: &Key, expected: u64, body: Option<String>) -> Result<bool, StoreError> {
        let (kind, name) = (KIND.to_owned(), key.row.clone());
        self.store.put_shared(vec![PutShared { kind, name, expected, body }]).await
    }

    /// Remembers who waits for a key.
    pub(super) fn wait(&self, key: &Key, link: &Arc<Link>, number: u32) {
        let mut all = self.lock();
        let waiting = all.entry(key.row.clone()).or_default();
        waiting.retain(|(other, its)| other.is_there() && !(*its == number && Arc::ptr_eq(other, link)));
        waiting.push((Arc::clone(link), number));
    }

    /// Lets those look again who wait for a key in this process.
    pub(super) fn wake(&self, key: &Key) {
        let waiting = self.lock().remove(&key.row).unwrap_or_default();
        for (link, number) in waiting {
            if let Some(active) = link.active() {
                active.look_now(number);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the rows of runs that are gone: what they did may be done again. Returns how many.
pub(super) async fn forget_gone(store: &dyn Store) -> Result<usize, StoreError> {
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.all_shared(KIND, after).await?;
        for (name, found) in page.rows {
            let run = read(&found).map(|row| RunId::new(row.run.as_str()));
            let is_there = match &run {
                Some(run) => store.find(run).await?.is_some(),
                None => false,
            };
            if !is_there {
                let (kind, expected) = (KIND.to_owned(), found.version);
                // Whoever was quicker needs it.
                let put = PutShared { kind, name, expected, body: None };
                count += usize::from(store.put_shared(vec![put]).await?);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

/// Reads a row. One that cannot be read is nobody's.
fn read(found: &Shared) -> Option<Row> {
    serde_json::from_str::<Row>(&found.body).ok().filter(|row| row.v == VERSION)
}

fn row(key: &Key, run: &RunId, work: &str, result: Option<Box<RawValue>>) -> String {
    let (run, work) = (run.to_string(), work.to_owned());
    let row = Row { v: VERSION, key: key.text.clone(), run, work, result };
    serde_json::to_string(&row).expect("invariant: a row has no key that is not a string")
}
