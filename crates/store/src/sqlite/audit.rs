//! The check that runs beside the work after a store was opened: it names runs that cannot be read or found, which
//! otherwise only showed by nothing happening.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::InterruptHandle;

use crate::sqlite::connection::open_reader;
use crate::sqlite::fault::Fault;
use crate::sqlite::health::Health;
use crate::sqlite::options::Options;
use crate::sqlite::verify::{self, Findings};

/// A database up to this size is checked whenever the first process opens it, which takes a moment; a larger one only
/// after a process ended without closing it.
const SMALL: u64 = 32 << 20;

/// What the thread that checks shares with the store.
#[derive(Default)]
pub(crate) struct Audit {
    is_over: AtomicBool,
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl Audit {
    /// Returns whether a database is to be checked: one that others use already was checked by the first of them.
    pub(crate) fn is_wanted(is_first: bool, bytes: u64, log_bytes: u64) -> bool {
        is_first && bytes + log_bytes > 0 && (log_bytes > 0 || bytes <= SMALL)
    }

    /// Ends the check, if it is under way.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(interrupt) = &*self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) {
            interrupt.interrupt();
        }
    }

    /// Checks the database once.
    pub(crate) fn run(&self, path: &Path, options: &Options, health: &Health) {
        if let Err(fault) = self.check(path, options, health)
            && !self.is_over.load(Ordering::Acquire)
        {
            tracing::warn!(?fault, "the store could not be checked");
        }
    }

    fn check(&self, path: &Path, options: &Options, health: &Health) -> Result<(), Fault> {
        let connection = open_reader(path, options)?;
        *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(connection.get_interrupt_handle());
        // Invariant: the handle is set before this is read, so a stop is either seen here or interrupts.
        if self.is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut note = |what: String| health.note(what);
        let goes_on = || !self.is_over.load(Ordering::Acquire);
        let rows = verify::rows(&connection, &mut Findings { note: &mut note, goes_on: &goes_on });
        let problems = verify::problems(&connection);
        if goes_on() {
            for problem in problems? {
                health.note(format!("SQLite says of the database: {problem}"));
            }
        }
        rows
    }
}
