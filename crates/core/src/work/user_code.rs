//! The one way in which functions and types of the user are called: a panic in them is data, and unwinds nothing else.
//! What a panic means is for the caller to decide.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::policy::Failure;

/// Calls code of the user. A panic is the failure `panic` with the text of the panic.
///
/// Every function of the user and every trait of a type of the user (`Serialize`, `Clone`, `Display`, `Drop`) is called
/// through here, or inside of a call that is.
///
/// # Errors
/// The code panicked.
pub fn call_user<T>(code: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(code)).map_err(panicked)
}

/// Returns the failure of a panic.
fn panicked(payload: Box<dyn Any + Send>) -> Failure {
    let message = payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked".to_owned());
    // The payload is a value of the user, too: its destructor may panic, and so may that of the second payload.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    Failure {
        code: Some("panic".into()),
        type_name: Some(Cow::Borrowed("panic")),
        message,
        ..Failure::default()
    }
}

/// A future of the user. A panic while it is polled or dropped is the failure `panic`.
pub struct CaughtFuture<'f, T> {
    /// `None` once it is over.
    future: Option<Pin<Box<dyn Future<Output = T> + Send + 'f>>>,
}

impl<'f, T> CaughtFuture<'f, T> {
    /// Catches the panics of a future.
    #[must_use]
    pub const fn new(future: Pin<Box<dyn Future<Output = T> + Send + 'f>>) -> Self {
        Self { future: Some(future) }
    }

    fn drop_future(&mut self) -> Result<(), Failure> {
        let future = self.future.take();
        call_user(|| drop(future))
    }
}

impl<T> Future for CaughtFuture<'_, T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = call_user(|| future.as_mut().poll(task));
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(failure) => Err(failure),
        };
        let dropped = self.drop_future();
        Poll::Ready(ended.and_then(|value| dropped.map(|()| value)))
    }
}

impl<T> Drop for CaughtFuture<'_, T> {
    fn drop(&mut self) {
        // No caller waits for the result of a future that is given up.
        drop(self.drop_future());
    }
}

impl<T> std::fmt::Debug for CaughtFuture<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CaughtFuture")
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    /// Panics when it is dropped.
    struct Sore;

    impl Drop for Sore {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    fn poll<T>(future: &mut CaughtFuture<'_, T>) -> Poll<Result<T, Failure>> {
        Pin::new(future).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_panic_whose_payload_panics_when_it_is_dropped_stays_a_failure() {
        let failure = call_user(|| panic_any(Sore)).map(|()| 1).unwrap_err();
        assert_eq!((failure.message.as_str(), failure.code), ("panicked", Some("panic".into())));
    }

    #[test]
    fn a_future_that_panics_when_it_is_polled_or_dropped_is_a_failure() {
        let mut polled = CaughtFuture::new(Box::pin(async { panic!("polled") }));
        let Poll::Ready(Err(failure)) = poll::<()>(&mut polled) else { panic!("it panicked") };
        assert_eq!(failure.message, "polled");

        let mut over = CaughtFuture::new(Box::pin(async {
            let sore = Sore;
            std::future::ready(()).await;
            std::mem::forget(sore);
            1
        }));
        assert!(matches!(poll(&mut over), Poll::Ready(Ok(1))));

        let mut given_up = CaughtFuture::new(Box::pin(async {
            let _sore = Sore;
            std::future::pending::<()>().await;
        }));
        assert!(poll(&mut given_up).is_pending());
        drop(given_up);
    }
}
