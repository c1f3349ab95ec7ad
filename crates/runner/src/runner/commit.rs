//! What runs want to be stored goes to the store together: whatever came up while the last commit was under way
//! is the next one.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};

use tidewheel_core::time::Span;
use tidewheel_store::{Append, Clock, Lease, Refused, Store, StoreError};
use tokio::sync::Notify;

use super::active::{Active, Lost};
use crate::pool::{Meanwhile, is_worker};
use crate::supervise::ask_store;
use crate::telemetry::Metrics;

/// A write of one run, and who waits for it.
pub(super) struct Submission {
    pub(super) active: Arc<Active>,
    pub(super) append: Append,
    /// Whether it was tried before, and only the answer may have got lost.
    pub(super) is_again: bool,
}

pub(super) struct Committer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    queue: Mutex<VecDeque<Submission>>,
    wake: Notify,
    /// What the store said when it could not be used, as long as it cannot.
    trouble: Mutex<Option<String>>,
    /// What the store said to the task that looks for due runs and commands, as long as it cannot.
    watch_trouble: Mutex<Option<String>>,
}

/// More in one commit gains nothing, and others would wait.
const MOST_IN_ONE: usize = 2_048;

/// How long to wait before the store is tried again, and how long at most.
const PATIENCE: (Span, Span) = (Span::from_millis(20), Span::from_millis(1_000));

impl Committer {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        let (queue, wake) = (Mutex::default(), Notify::new());
        let (trouble, watch_trouble) = (Mutex::default(), Mutex::default());
        Self { store, clock, metrics, queue, wake, trouble, watch_trouble }
    }

    pub(super) fn submit(&self, submission: Submission) {
        self.lock_queue().push_back(submission);
        // A thread of the pool commits itself if it has nothing else to do.
        if !is_worker() {
            self.wake.notify_one();
        }
    }

    /// Forgets what was not stored, as the end of the process would.
    pub(super) fn clear(&self) {
        let queue = std::mem::take(&mut *self.lock_queue());
        drop(queue);
    }

    /// Returns what stands in the way of the store, if something does, and what of it is damaged.
    pub(super) fn trouble(&self) -> Option<String> {
        let written = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let watched = self.watch_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: Vec<String> = written.into_iter().chain(watched).collect();
        all.dedup();
        all.extend(self.store.damage().into_iter().map(|what| format!("the store is damaged: {what}")));
        if all.is_empty() { None } else { Some(all.join("; ")) }
    }

    /// Says what stands in the way of looking for due runs and commands, or that nothing does.
    pub(super) fn set_watch_trouble(&self, trouble: Option<String>) {
        *self.watch_trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Commits for ever. Two of these keep the store busy: one delivers what was stored while the other waits.
    pub(super) async fn serve(self: Arc<Self>) {
        loop {
            let batch = self.take();
            if batch.is_empty() {
                self.wake.notified().await;
                continue;
            }
            self.commit(batch).await;
        }
    }

    fn take(&self) -> Vec<Submission> {
        let mut queue = self.lock_queue();
        let count = queue.len().min(MOST_IN_ONE);
        queue.drain(..count).collect()
    }

    async fn commit(&self, mut batch: Vec<Submission>) {
        let mut wait = PATIENCE.0;
        loop {
            let appends = batch.iter().map(|submission| submission.append.clone()).collect();
            let began = self.clock.now();
            let answered = ask_store(self.store.append(appends)).await;
            self.metrics.committed(began, self.clock.now());
            match answered {
                Ok(answers) => {
                    self.set_trouble(None);
                    for (submission, answer) in batch.into_iter().zip(answers) {
                        deliver(submission, answer);
                    }
                    return;
                }
                // Nothing was acted upon yet, so nothing is lost by waiting until the store can be used.
                Err(error @ StoreError::Unavailable { .. }) => {
                    self.set_trouble(Some(crate::words(&error)));
                    batch.iter_mut().for_each(|submission| submission.is_again = true);
                    self.clock.sleep_until(self.clock.now().saturating_add(wait)).await;
                    wait = Span::from_millis(wait.as_millis() * 2).min(PATIENCE.1);
                }
                Err(error @ (StoreError::Broken | StoreError::Moved { .. } | StoreError::Closed)) => {
                    let why = crate::words(&error);
                    self.set_trouble(Some(why.clone()));
                    for submission in batch {
                        submission.active.lose(&Lost::Otherwise(why.clone()));
                    }
                    return;
                }
                // One of them may be to blame, and the others must not suffer for it.
                Err(_) if batch.len() > 1 => {
                    for submission in batch {
                        Box::pin(self.commit(vec![submission])).await;
                    }
                    return;
                }
                Err(error) => {
                    for submission in batch {
                        submission.active.crash(crate::words(&error));
                    }
                    return;
                }
            }
        }
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn lock_queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Submission>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread of the pool that has no piece commits what its last piece led to: nobody else has to be woken for it.
impl Meanwhile for Committer {
    fn is_wanted(&self) -> bool {
        !self.lock_queue().is_empty()
    }

    fn leave_it(&self) {
        self.wake.notify_one();
    }

    fn do_it(&self) -> Option<Box<dyn FnOnce()>> {
        let mut batch = self.take();
        if batch.is_empty() {
            return None;
        }
        let appends = batch.iter().map(|submission| submission.append.clone()).collect();
        let began = self.clock.now();
        let answered = wait_for(ask_store(self.store.append(appends)));
        self.metrics.committed(began, self.clock.now());
        match answered {
            Ok(answers) => {
                self.set_trouble(None);
                Some(Box::new(move || {
                    for (submission, answer) in batch.into_iter().zip(answers) {
                        deliver(submission, answer);
                    }
                }))
            }
            // The tasks have the patience that this takes.
            Err(_) => {
                batch.iter_mut().for_each(|submission| submission.is_again = true);
                let mut queue = self.lock_queue();
                for submission in batch.into_iter().rev() {
                    queue.push_front(submission);
                }
                drop(queue);
                self.wake.notify_one();
                None
            }
        }
    }
}

/// Waits for a future on a thread that may wait.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    struct Bell(Thread);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut task = std::task::Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn deliver(submission: Submission, answer: Result<Lease, Refused>) {
    let Submission { active, append, is_again } = submission;
    let after = append.expected + u64::from(append.events.len());
    match answer {
        Ok(lease) => active.committed(Some(lease)),
        // It was stored the first time, and only the answer got lost: nobody else can write with this fence.
        Err(Refused::Conflict { found, .. }) if is_again && found == after => active.committed(None),
        Err(Refused::Exists { .. }) if is_again => active.lose(&Lost::PerhapsOurs),
        Err(Refused::Exists { .. }) => active.lose(&Lost::Exists),
        Err(refused @ Refused::LeaseOver) => active.lose_late(&Lost::Lease(refused.to_string())),
        Err(refused @ (Refused::Fenced { .. } | Refused::Owned { .. })) => {
            active.lose(&Lost::Lease(refused.to_string()));
        }
        // What is stored is not what this process thinks. It is read again.
        Err(refused @ Refused::Conflict { .. }) => active.crash(refused.to_string()),
        Err(refused) => active.lose(&Lost::Otherwise(refused.to_string())),
    }
}
