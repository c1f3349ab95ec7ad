//! Waits for a future where there is no runtime. It needs nothing but the standard library.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};

/// Waits for a future with nothing but the standard library: it sleeps until it is woken.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    #[derive(Default)]
    struct Bell {
        rung: Mutex<bool>,
        changed: Condvar,
    }
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.changed.notify_one();
        }
    }
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut task = std::task::Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut task) {
            return value;
        }
        let mut rung = bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            rung = bell.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
    }
}
