//! When an attempt that has begun is given up: its time is over, or it was silent for too long.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tidewheel_core::policy::Failure;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::Clock;

use crate::driver::Until;
use crate::ear::Ear;

/// What bounds an attempt that has begun.
pub(crate) struct Bounds {
    until: Option<Until>,
    silence: Option<Silence>,
}

/// For how long an attempt may be silent. Without an ear nobody hears it, so it has to be over by then.
struct Silence {
    span: Span,
    began_at: Timestamp,
    ear: Option<Arc<Ear>>,
}

impl Bounds {
    /// Returns what bounds an attempt that begins now.
    ///
    /// # Errors
    /// The failure of an attempt for which it is too late.
    pub(crate) fn begun_at(
        now: Timestamp,
        until: Option<Until>,
        silence: Option<Span>,
        ear: Option<Arc<Ear>>,
    ) -> Result<Self, Failure> {
        let until = until.map(|until| until.begun_at(now)).transpose()?;
        Ok(Self { until, silence: silence.map(|span| Silence { span, began_at: now, ear }) })
    }

    /// Returns when to look at the attempt next. A sign of life moves it, and nobody is told: whoever looks then
    /// asks again.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        let until = self.until.map(|until| until.at);
        until.into_iter().chain(self.silence.as_ref().map(Silence::over_at)).min()
    }

    /// Returns why the attempt is to be given up now, if it is.
    pub(crate) fn over_at(&self, now: Timestamp) -> Option<Failure> {
        let late = self.until.filter(|until| until.at <= now).map(|until| until.failure());
        late.or_else(|| {
            self.silence.as_ref().filter(|silence| silence.over_at() <= now).map(Silence::failure)
        })
    }
}

impl Silence {
    fn over_at(&self) -> Timestamp {
        let heard_at = self.ear.as_ref().and_then(|ear| ear.heard_at());
        heard_at.unwrap_or(self.began_at).max(self.began_at).saturating_add(self.span)
    }

    fn failure(&self) -> Failure {
        Failure::new(format!("gave no sign of life for {}", self.span)).code("heartbeat")
    }
}

/// Waits for work as long as its bounds allow. Work that is over at once sets no timer.
///
/// # Errors
/// Why it was given up.
pub(crate) async fn within<T>(
    work: impl Future<Output = T>,
    bounds: &Bounds,
    clock: &dyn Clock,
) -> Result<T, Failure> {
    let mut work = pin!(work);
    let mut sleep = None;
    poll_fn(|task| {
        if let Poll::Ready(result) = work.as_mut().poll(task) {
            return Poll::Ready(Ok(result));
        }
        while let Some(at) = bounds.next_look() {
            let sleeping = sleep.get_or_insert_with(|| clock.sleep_until(at));
            if sleeping.as_mut().poll(task).is_pending() {
                return Poll::Pending;
            }
            if let Some(failure) = bounds.over_at(clock.now()) {
                return Poll::Ready(Err(failure));
            }
            // There was a sign of life meanwhile.
            sleep = None;
        }
        Poll::Pending
    })
    .await
}
