//! The failures of pieces that are nobody's result: a panic, a lost task, no slot, no thread.

use std::any::Any;
use std::borrow::Cow;

use tidewheel_core::policy::Failure;
use tidewheel_core::time::Span;

/// As many threads may be lost to work that does not stop; then work that could block more is refused.
pub(super) const MOST_ABANDONED: usize = 256;

pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "panicked".to_owned());
    Failure { type_name: Some(Cow::Borrowed("panic")), ..Failure::new(message).code("panic") }
}

/// The runtime shut down. Another attempt is of no use: nobody is there who could make it.
pub(super) fn lost() -> Failure {
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
