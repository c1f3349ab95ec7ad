//! The failures of pieces that are nobody's result: a panic, a lost task, no slot, no thread.

use tidewheel_core::policy::Failure;
use tidewheel_core::time::Span;

/// What people know the workers by.
pub(super) const TASK: &str = "workers";

/// As many threads may be lost to work that does not stop; then work that could block more is refused.
pub(super) const MOST_ABANDONED: usize = 256;

/// The task of a piece ended before the piece did: something around the work panicked, or the runtime shut down. Then
/// another attempt is of no use: there is no worker that could make it.
pub(super) fn lost() -> Failure {
    if std::thread::panicking() {
        return Failure::new("its task panicked").code("panic");
    }
    Failure::new("its task was cancelled").code("lost").non_retryable()
}

pub(super) fn too_many_abandoned() -> Failure {
    let message = format!("{MOST_ABANDONED} threads are busy with work that was given up and does not stop");
    Failure::new(message).code("abandoned_threads")
}

/// It did not get a slot in the time that its policy gives it.
pub(super) fn no_slot(patience: Option<Span>) -> Failure {
    let message = match patience {
        Some(span) => format!("waited longer than {span} for a slot"),
        None => "waited too long for a slot".to_owned(),
    };
    Failure::new(message).code("queue_timeout")
}
