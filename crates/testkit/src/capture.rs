//! A listener of `tracing` that keeps what it hears, for tests of what is told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps every span and event of one target. Clones keep the same.
#[derive(Clone, Debug)]
pub struct Capture {
    target: &'static str,
    least: Level,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// A span or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Whether it is a span.
    pub is_span: bool,
    /// Its name.
    pub name: &'static str,
    /// Its level.
    pub level: Level,
    /// All fields that it may carry, but for the message.
    pub fields: Vec<&'static str>,
    /// What it carries, as text.
    pub values: BTreeMap<&'static str, String>,
}

impl Heard {
    /// Returns what it carries in a field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&str> {
        self.values.get(field).map(String::as_str)
    }
}

impl Capture {
    /// Returns the one listener of this process, which hears everything of a target on every thread. Those of single
    /// threads disturb each other: a place in the code that another thread passes first is deaf for all.
    ///
    /// # Panics
    /// Somebody else listens.
    pub fn everywhere(target: &'static str) -> &'static Self {
        Self::everywhere_from(target, Level::TRACE)
    }

    /// Returns the one listener of this process, which hears what is as grave as a level or graver.
    ///
    /// # Panics
    /// Somebody else listens.
    pub fn everywhere_from(target: &'static str, least: Level) -> &'static Self {
        static CAPTURE: OnceLock<Capture> = OnceLock::new();
        CAPTURE.get_or_init(|| {
            let capture = Self { target, least, heard: Arc::default() };
            tracing::subscriber::set_global_default(capture.clone()).expect("nobody else listens");
            // A thread may have passed a place between the two halves of the line above.
            tracing::callsite::rebuild_interest_cache();
            capture
        })
    }

    /// Returns what was heard of a run, in order.
    #[must_use]
    pub fn of_run(&self, run: &str) -> Vec<Heard> {
        self.lock().iter().filter(|heard| heard.get("run") == Some(run)).cloned().collect()
    }

    /// Returns everything that was heard.
    #[must_use]
    pub fn all(&self) -> Vec<Heard> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, metadata: &'static Metadata<'static>, values: Values) -> u64 {
        let mut heard = self.lock();
        heard.push(Heard {
            is_span: metadata.is_span(),
            name: metadata.name(),
            level: *metadata.level(),
            fields: metadata
                .fields()
                .iter()
                .map(|field| field.name())
                .filter(|name| *name != "message")
                .collect(),
            values: values.0,
        });
        heard.len() as u64
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == self.target && *metadata.level() <= self.least
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.least.into())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut values = Values::default();
        span.record(&mut values);
        Id::from_u64(self.keep(span.metadata(), values))
    }

    fn record(&self, span: &Id, record: &Record<'_>) {
        let mut values = Values::default();
        record.record(&mut values);
        let mut heard = self.lock();
        let place = usize::try_from(span.into_u64()).unwrap_or(usize::MAX).wrapping_sub(1);
        if let Some(heard) = heard.get_mut(place) {
            heard.values.extend(values.0);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut values = Values::default();
        event.record(&mut values);
        self.keep(event.metadata(), values);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Values(BTreeMap<&'static str, String>);

impl Visit for Values {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
