//! What is to happen later in this process: one task for all of it, and none while there is nothing to wait for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_core::time::Timestamp;
use tidewheel_store::Clock;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::supervise::Supervisor;

/// What is done when its time has come.
type Deed = Box<dyn FnOnce() + Send>;

/// Which timer, to take it back.
pub(crate) type TimerKey = (Timestamp, u64);

/// What people know its task by.
const TASK: &str = "timers";

pub(crate) struct Timers {
    clock: Arc<dyn Clock>,
    supervisor: Arc<Supervisor>,
    /// Told when something is to happen earlier than all else.
    earlier: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    deeds: BTreeMap<TimerKey, Deed>,
    next: u64,
    has_task: bool,
    /// Whether nobody wants anything any more.
    is_closed: bool,
}

impl Timers {
    pub(crate) fn new(clock: Arc<dyn Clock>, runtime: Handle) -> Arc<Self> {
        let supervisor = Supervisor::new(Arc::clone(&clock), runtime);
        Arc::new(Self { clock, supervisor, earlier: Notify::new(), state: Mutex::default() })
    }

    /// Returns others that go by another clock, and whose task the same supervisor keeps alive.
    pub(crate) fn by_clock(&self, clock: Arc<dyn Clock>) -> Arc<Self> {
        let supervisor = Arc::clone(&self.supervisor);
        Arc::new(Self { clock, supervisor, earlier: Notify::new(), state: Mutex::default() })
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns what keeps its task alive, for other tasks beside it.
    pub(crate) const fn supervisor(&self) -> &Arc<Supervisor> {
        &self.supervisor
    }

    /// Does something at an instant, or as soon as possible if it is past.
    pub(crate) fn at(self: &Arc<Self>, at: Timestamp, deed: impl FnOnce() + Send + 'static) -> TimerKey {
        let mut state = self.lock();
        let key = (at, state.next);
        state.next += 1;
        if state.is_closed {
            drop(state);
            return key;
        }
        let is_first = state.deeds.first_key_value().is_none_or(|(first, _)| key < *first);
        state.deeds.insert(key, Box::new(deed));
        let needs_task = !std::mem::replace(&mut state.has_task, true);
        drop(state);
        if needs_task {
            let this = Arc::clone(self);
            drop(self.supervisor.spawn(TASK, move |_| Arc::clone(&this).serve()));
        } else if is_first {
            self.earlier.notify_one();
        }
        key
    }

    /// Takes something back that has not happened yet.
    pub(crate) fn cancel(&self, key: TimerKey) {
        let deed = self.lock().deeds.remove(&key);
        drop(deed);
    }

    /// Takes everything back, and whatever comes later. Nobody sleeps until the time of something that nobody
    /// wants any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let deeds = std::mem::take(&mut state.deeds);
        drop(state);
        self.earlier.notify_one();
        drop(deeds);
    }

    async fn serve(self: Arc<Self>) {
        loop {
            let first = {
                let mut state = self.lock();
                let first = state.deeds.first_key_value().map(|(key, _)| *key);
                // Invariant: under the same lock, so that whoever adds something next starts another task.
                state.has_task = first.is_some();
                first
            };
            let Some((at, _)) = first else { return };
            if at > self.clock.now() {
                tokio::select! {
                    biased;
                    () = self.clock.sleep_until(at) => {}
                    () = self.earlier.notified() => {}
                }
                continue;
            }
            let deed = {
                let mut state = self.lock();
                let is_due = state.deeds.first_key_value().is_some_and(|(key, _)| key.0 <= at);
                if is_due { state.deeds.pop_first() } else { None }
            };
            if let Some((_, deed)) = deed {
                // One bad deed must not keep all others from happening.
                self.supervisor.call(TASK, deed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tidewheel_core::time::Span;
    use tidewheel_store::RealClock;

    use super::*;

    fn timers() -> Arc<Timers> {
        Timers::new(Arc::new(RealClock::new()), Handle::current())
    }

    fn after(timers: &Timers, millis: u64) -> Timestamp {
        timers.clock.now().saturating_add(Span::from_millis(millis))
    }

    #[tokio::test(start_paused = true)]
    async fn a_deed_that_panics_keeps_no_other_from_happening() {
        let (timers, done) = (timers(), Arc::new(AtomicUsize::new(0)));
        timers.at(after(&timers, 10), || panic!("a bad deed"));
        for millis in [10, 20] {
            let done = Arc::clone(&done);
            timers.at(after(&timers, millis), move || {
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(done.load(Ordering::SeqCst), 2);
    }

    /// A clock that panics at the first sleep.
    #[derive(Debug)]
    struct SoreClock(RealClock, AtomicUsize);

    impl Clock for SoreClock {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn sleep_until(&self, at: Timestamp) -> tidewheel_store::Sleep {
            assert!(self.1.fetch_add(1, Ordering::SeqCst) > 0, "no sleep");
            self.0.sleep_until(at)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_the_task_of_the_timers_is_reported_and_no_deed_is_lost() {
        let clock = SoreClock(RealClock::new(), AtomicUsize::new(0));
        let timers = Timers::new(Arc::new(clock), Handle::current());
        let (done, told) = tokio::sync::oneshot::channel();
        timers.at(after(&timers, 10), move || done.send(()).expect("the test listens"));
        told.await.expect("it happens");
        let trouble = timers.supervisor().trouble().expect("it panicked");
        assert_eq!(trouble, "the timers panicked once and was started again: no sleep");
    }

    #[tokio::test(start_paused = true)]
    async fn deeds_may_add_and_take_back_timers() {
        let (timers, done) = (timers(), Arc::new(AtomicUsize::new(0)));
        let (again, counted) = (Arc::clone(&timers), Arc::clone(&done));
        let never = timers.at(after(&timers, 25), || panic!("it was taken back"));
        timers.at(after(&timers, 10), move || {
            again.cancel(never);
            for millis in [0, 5] {
                let counted = Arc::clone(&counted);
                again.at(after(&again, millis), move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        tokio::time::sleep(Duration::from_millis(12)).await;
        assert_eq!(done.load(Ordering::SeqCst), 1);
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(done.load(Ordering::SeqCst), 2);
        assert!(!timers.lock().has_task, "nothing is left to wait for");
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deed_overtakes_and_after_the_end_none_happens() {
        let (timers, order) = (timers(), Arc::new(Mutex::new(Vec::new())));
        for millis in [50, 10, 30] {
            let order = Arc::clone(&order);
            timers.at(after(&timers, millis), move || order.lock().expect("no panic").push(millis));
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
        assert_eq!(*order.lock().expect("no panic"), [10, 30]);
        timers.close();
        timers.at(after(&timers, 10), || panic!("it came too late"));
        tokio::time::sleep(Duration::from_millis(40)).await;
        assert_eq!(*order.lock().expect("no panic"), [10, 30]);
        assert!(!timers.lock().has_task);
    }
}
