//! A word from outside that work should stop. Work looks at it when it can; nobody is forced.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A shared flag that can be raised once and awaited.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Cancellation {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.raised.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Tells whether the work should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    /// Waits until the work should stop.
    pub async fn cancelled(&self) {
        poll_fn(|task| {
            if self.is_cancelled() {
                return Poll::Ready(());
            }
            self.lock().push(task.waker().clone());
            // Raised in between: the wakers may have been taken already.
            if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.0.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
