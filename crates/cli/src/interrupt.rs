//! Ctrl-C, noticed instead of obeyed at once: whoever waits for jobs says how to come back to them first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has had enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen. Where that is not possible, Ctrl-C ends the process as it always does.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        let listener = std::thread::Builder::new().name("interrupt".to_owned());
        // A thread that does not start listens to nothing, which is what happens then.
        drop(listener.spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
                return;
            };
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                heard.0.store(true, Ordering::Relaxed);
            }
        }));
        interrupt
    }

    /// Tells whether somebody has had enough.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
