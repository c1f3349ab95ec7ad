//! Keeps the long-lived tasks of a runner alive: one that panics is reported, counted, and started again. What a task does,
//! and what of it is lost in a panic, is its own business.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tidewheel_core::policy::Failure;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::{CaughtFuture, call_user};
use tidewheel_store::{Clock, StoreError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::telemetry::Metrics;

/// The first restart is at once; the later ones of a task that panics again and again wait, from the first of these to the
/// second.
const BACKOFF: (Span, Span) = (Span::from_millis(10), Span::from_secs(1));

/// A task that did not panic for so long is well again.
const WELL_AFTER: Span = Span::from_secs(60);

/// Starts tasks, starts them again when they panic, and knows which ones did.
pub(crate) struct Supervisor {
    clock: Arc<dyn Clock>,
    runtime: Handle,
    panics: Mutex<BTreeMap<&'static str, TaskPanics>>,
    /// Where panics are counted, if anywhere.
    metrics: OnceLock<Arc<Metrics>>,
}

/// The panics of one task since it was last well.
struct TaskPanics {
    count: u32,
    last: String,
    at: Timestamp,
}

impl Supervisor {
    pub(crate) fn new(clock: Arc<dyn Clock>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { clock, runtime, panics: Mutex::default(), metrics: OnceLock::new() })
    }

    /// Says where panics are counted.
    pub(crate) fn measure(&self, metrics: Arc<Metrics>) {
        let is_first = self.metrics.set(metrics).is_ok();
        debug_assert!(is_first, "it is said once");
    }

    /// Starts a task, and starts it again whenever it panics. The task is made with the number of its restarts: it may have
    /// to look for what it lost.
    pub(crate) fn spawn<F>(
        self: &Arc<Self>,
        name: &'static str,
        task: impl Fn(u32) -> F + Send + 'static,
    ) -> AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let this = Arc::clone(self);
        let supervised = async move {
            let mut restarts = 0;
            loop {
                let made = call_user(|| task(restarts));
                let ended = match made {
                    Ok(future) => CaughtFuture::new(Box::pin(future)).await,
                    Err(panic) => Err(panic),
                };
                let Err(panic) = ended else { return };
                let count = this.report(name, &panic);
                this.back_off(count).await;
                restarts += 1;
            }
        };
        self.runtime.spawn(supervised).abort_handle()
    }

    /// Does one thing for a task, which goes on however it ends. Returns `None` if it panicked.
    pub(crate) fn call<T>(&self, name: &'static str, deed: impl FnOnce() -> T) -> Option<T> {
        call_user(deed).map_err(|panic| self.report(name, &panic)).ok()
    }

    /// Tells people of a panic in a task. Returns how many there were since the task was last well.
    pub(crate) fn report(&self, name: &'static str, panic: &Failure) -> u32 {
        let now = self.now();
        let mut panics = self.lock();
        let task =
            panics.entry(name).or_insert_with(|| TaskPanics { count: 0, last: String::new(), at: now });
        if is_well(task, now) {
            task.count = 0;
        }
        task.count = task.count.saturating_add(1);
        (task.last, task.at) = (panic.message.clone(), now);
        let count = task.count;
        drop(panics);
        tracing::error!(task = name, why = panic.message, count, "task panicked and goes on");
        if let Some(metrics) = self.metrics.get() {
            metrics.panic(name);
        }
        count
    }

    /// Returns which tasks panicked lately, if any did.
    pub(crate) fn trouble(&self) -> Option<String> {
        let now = self.now();
        let panics = self.lock();
        let ill = panics.iter().filter(|(_, task)| !is_well(task, now));
        let texts: Vec<String> = ill
            .map(|(name, TaskPanics { count, last, .. })| {
                let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
                format!("the {name} panicked {times} and was started again: {last}")
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    async fn back_off(&self, count: u32) {
        let Some(doubled) = count.checked_sub(2) else { return };
        let millis = BACKOFF.0.as_millis().saturating_mul(1 << doubled.min(10));
        let span = Span::from_millis(millis.min(BACKOFF.1.as_millis()));
        let sleep = self.clock.sleep_until(self.now().saturating_add(span));
        // A clock that panics, too, must not end what restarts the others.
        if CaughtFuture::new(Box::pin(sleep)).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    fn now(&self) -> Timestamp {
        call_user(|| self.clock.now()).unwrap_or(Timestamp::from_nanos(0))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, TaskPanics>> {
        self.panics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_well(task: &TaskPanics, now: Timestamp) -> bool {
    task.count > 0 && now >= task.at.saturating_add(WELL_AFTER)
}

/// Asks a store. One that panics has failed: the caller goes on as after any other failure.
pub(crate) async fn ask_store<T>(
    answer: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let asked = CaughtFuture::new(Box::pin(answer)).await;
    asked.unwrap_or_else(|panic| Err(StoreError::Other(format!("it panicked: {}", panic.message).into())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tidewheel_store::RealClock;
    use tokio::sync::oneshot;

    use super::*;

    fn supervisor() -> Arc<Supervisor> {
        Supervisor::new(Arc::new(RealClock::new()), Handle::current())
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_until_it_ends_and_everybody_learns_of_it() {
        let (supervisor, starts) = (supervisor(), Arc::new(AtomicU32::new(0)));
        let (over, ended) = oneshot::channel();
        let (over, counted) = (Mutex::new(Some(over)), Arc::clone(&starts));
        supervisor.spawn("painter", move |restarts| {
            assert_ne!(restarts, 1, "it cannot be made");
            let counted = Arc::clone(&counted);
            let over = over.lock().expect("no panic").take_if(|_| restarts == 5);
            async move {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                assert!(over.is_some(), "no colour left");
                over.map(|over| over.send(restarts));
            }
        });
        assert_eq!(ended.await, Ok(5));
        assert_eq!(starts.load(Ordering::SeqCst), 5, "once it could not be made");
        let trouble = supervisor.trouble().expect("it panicked");
        assert_eq!(trouble, "the painter panicked 5 times and was started again: no colour left");
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert_eq!(supervisor.trouble(), None, "it is well again");
    }

    #[tokio::test]
    async fn a_store_that_panics_has_failed() {
        let answer = ask_store(async { panic!("no disk") }).await as Result<(), StoreError>;
        let Err(StoreError::Other(source)) = answer else { panic!("{answer:?}") };
        assert_eq!(source.to_string(), "it panicked: no disk");
    }
}
