//! The threads that read: each has a connection of its own, and sees what was committed before it was asked.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::sqlite::connection::open_reader;
use crate::sqlite::fault::Fault;
use crate::sqlite::options::Options;

/// Something to read; it answers by itself.
pub(crate) type Read = Box<dyn FnOnce(Result<&Connection, Fault>) + Send>;

/// What waits to be read.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Read>,
    is_closed: bool,
}

impl Queue {
    /// Asks for something; it comes back if nobody reads any more.
    pub(crate) fn push(&self, read: Read) -> Result<(), Read> {
        let mut state = self.state();
        if state.is_closed {
            return Err(read);
        }
        state.waiting.push_back(read);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Lets the threads end after what was asked before.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn pop(&self) -> Option<Read> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        state.waiting.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until nobody can ask any more. The connection is opened when it is needed first.
pub(crate) fn run(queue: &Arc<Queue>, path: &Path, options: &Options) {
    let mut connection = None;
    while let Some(read) = queue.pop() {
        if connection.is_none() {
            match open_reader(path, options) {
                Ok(opened) => connection = Some(opened),
                Err(fault) => {
                    read(Err(fault));
                    continue;
                }
            }
        }
        if let Some(connection) = &connection {
            read(Ok(connection));
        }
    }
}
