//! Giving something back once, however it ends: when it is dropped, or before a panic of the thread that has it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Something that is given back when this is dropped, if it has not been before.
pub(super) struct GivenBack {
    back: Arc<dyn Fn() + Send + Sync>,
}

impl GivenBack {
    /// Remembers how to give it back. A panic of this thread does so before it is told, so that it can be read; other
    /// threads may panic without ending anything here.
    pub(super) fn by(give_back: impl Fn() + Send + Sync + 'static) -> Self {
        let is_back = AtomicBool::new(false);
        // Twice would move the cursor over what was told in between.
        let once = move || {
            if !is_back.swap(true, Ordering::SeqCst) {
                give_back();
            }
        };
        let back: Arc<dyn Fn() + Send + Sync> = Arc::new(once);
        let (of_panic, owner, before) = (Arc::clone(&back), thread::current().id(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            if thread::current().id() == owner {
                of_panic();
            }
            before(panic);
        }));
        Self { back }
    }
}

impl Drop for GivenBack {
    fn drop(&mut self) {
        (self.back)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Tells the hook of the test from the panics of other tests.
    #[derive(Debug)]
    struct Ours;

    #[test]
    fn a_panic_is_told_once_it_is_back_and_it_is_given_back_once() {
        let heard: Arc<Mutex<Vec<&str>>> = Arc::default();
        let hear = |what: &'static str| {
            let heard = Arc::clone(&heard);
            move || heard.lock().unwrap().push(what)
        };
        let (told, others) = (hear("told"), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| match panic.payload().downcast_ref::<Ours>() {
            Some(Ours) => told(),
            None => others(panic),
        }));
        let (given_back, begun) = (hear("given back"), hear("another panics"));
        let ended = thread::spawn(move || {
            let _held = GivenBack::by(given_back);
            begun();
            thread::spawn(|| std::panic::panic_any(Ours)).join().unwrap_err();
            std::panic::panic_any(Ours)
        });
        ended.join().unwrap_err();
        assert_eq!(*heard.lock().unwrap(), ["another panics", "told", "given back", "told"]);
    }

    #[test]
    fn what_ends_well_is_given_back_once() {
        let count: Arc<Mutex<u32>> = Arc::default();
        let counted = Arc::clone(&count);
        drop(GivenBack::by(move || *counted.lock().unwrap() += 1));
        assert_eq!(*count.lock().unwrap(), 1);
    }
}
