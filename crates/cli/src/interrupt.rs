//! Ctrl-C, noticed instead of obeyed at once: whoever waits for jobs says how to come back to them first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::signal::unix::{SignalKind, signal};

/// Whether the person at the terminal has had enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from the moment it returns. Where that is not possible, Ctrl-C ends the process as it always does.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        let (ready, is_ready) = mpsc::channel();
        let listener = std::thread::Builder::new().name("interrupt".to_owned());
        // A thread that does not start listens to nothing, which is what happens then.
        drop(listener.spawn(move || {
            let Ok(runtime) = crate::runtime::current_thread() else { return };
            runtime.block_on(async {
                let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
                drop(ready);
                if signals.recv().await.is_some() {
                    heard.0.store(true, Ordering::Relaxed);
                }
            });
        }));
        // Nothing is ever sent: whoever waits is told by the end of the other side, whatever came of it.
        is_ready.recv().unwrap_or(());
        interrupt
    }

    /// Returns whether Ctrl-C was pressed.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
