//! Turns between processes: SQLite lets whoever asks most often write, so those who write queue up here.
//!
//! There are two locks of the kernel. Who wants to write takes `next`, waits for `turn`, and lets `next` go. Who has
//! just written and wants to again finds `next` taken by whoever waits, and comes after it.
//!
//! Turns are a matter of fairness, and SQLite's own lock is what keeps two from writing at once. So a turn that does
//! not come is not waited for long: the process that has it may be stopped.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::sqlite::fault::Fault;
use crate::sqlite::presence::MODE_OF_FILES;

/// The turn is waited for during this part of the patience, which is longer than any group of writes takes. The rest is
/// for the lock of the database, in case the process that has the turn is stopped.
const SHARE: u32 = 5;

/// The place of one process in the queue.
pub(crate) struct Turns {
    shared: Arc<Shared>,
    has_waiter: bool,
    /// Whether the last turn did not come in time: then the next one is not waited for.
    is_stuck: bool,
}

struct Shared {
    next: File,
    turn: File,
    phase: Mutex<Phase>,
    changed: Condvar,
}

/// What the thread that waits for the locks is doing.
enum Phase {
    /// Nothing.
    Idle,
    /// It waits for the turn, and somebody waits for it.
    Wanted,
    /// It has the turn.
    Granted,
    /// It waits for the turn, and nobody wants it any more.
    Abandoned,
    /// It could not wait.
    Failed(io::Error),
    /// It shall end.
    Ended,
}

impl Turns {
    /// Opens the locks in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, Fault> {
        let open = |name: &str| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).mode(MODE_OF_FILES);
            options.open(folder.join(name))
        };
        let shared = Shared {
            next: open("next.lock")?,
            turn: open("turn.lock")?,
            phase: Mutex::new(Phase::Idle),
            changed: Condvar::new(),
        };
        Ok(Self { shared: Arc::new(shared), has_waiter: false, is_stuck: false })
    }

    /// Waits for the turn, and returns whether it came. Who writes without it has nothing to give back.
    pub(crate) fn take(&mut self, patience: Duration) -> Result<bool, Fault> {
        let is_idle = matches!(*self.shared.phase(), Phase::Idle);
        if is_idle && self.shared.take_at_once()? {
            self.is_stuck = false;
            return Ok(true);
        }
        let is_taken = self.wait(if self.is_stuck { Duration::ZERO } else { patience / SHARE })?;
        if !is_taken && !self.is_stuck {
            tracing::warn!(?patience, "the turn to write does not come: another process may be stopped");
        }
        self.is_stuck = !is_taken;
        Ok(is_taken)
    }

    /// Gives the turn to whoever waits.
    pub(crate) fn give(&self) {
        if let Err(error) = self.shared.turn.unlock() {
            tracing::warn!(%error, "the turn to write could not be given back");
        }
    }

    /// Waits with the help of a thread: the kernel's locks know no timeout.
    fn wait(&mut self, patience: Duration) -> Result<bool, Fault> {
        if !self.has_waiter {
            let shared = Arc::clone(&self.shared);
            thread::Builder::new().name("tidewheel-turn".to_owned()).spawn(move || shared.serve())?;
            self.has_waiter = true;
        }
        let mut phase = self.shared.phase();
        if !matches!(*phase, Phase::Granted) {
            *phase = Phase::Wanted;
        }
        self.shared.changed.notify_all();
        let waiting = |phase: &mut Phase| matches!(phase, Phase::Wanted);
        let (mut phase, _) = self
            .shared
            .changed
            .wait_timeout_while(phase, patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *phase, Phase::Idle) {
            Phase::Granted => Ok(true),
            Phase::Failed(error) => Err(error.into()),
            Phase::Wanted | Phase::Abandoned | Phase::Idle | Phase::Ended => {
                *phase = Phase::Abandoned;
                self.shared.changed.notify_all();
                Ok(false)
            }
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        *self.shared.phase() = Phase::Ended;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn if nobody has it and nobody waits for it.
    fn take_at_once(&self) -> io::Result<bool> {
        if !is_taken(self.next.try_lock())? {
            return Ok(false);
        }
        // Where the turn is not free, `next` stays taken: this process is the one that waits.
        let has_turn = is_taken(self.turn.try_lock())?;
        if has_turn {
            self.next.unlock()?;
        }
        Ok(has_turn)
    }

    fn serve(&self) {
        loop {
            let idle = |phase: &mut Phase| matches!(phase, Phase::Idle | Phase::Granted | Phase::Failed(_));
            let mut phase =
                self.changed.wait_while(self.phase(), idle).unwrap_or_else(PoisonError::into_inner);
            match *phase {
                Phase::Ended => return,
                Phase::Abandoned => {
                    // It was given up before the waiting began, and `next` may have been taken for it.
                    let _unlocked = self.next.unlock();
                    *phase = Phase::Idle;
                    continue;
                }
                Phase::Wanted | Phase::Idle | Phase::Granted | Phase::Failed(_) => {}
            }
            drop(phase);
            let outcome = self.next.lock().and_then(|()| self.turn.lock()).and_then(|()| self.next.unlock());
            let mut phase = self.phase();
            match (&*phase, outcome) {
                (Phase::Wanted, Ok(())) => *phase = Phase::Granted,
                (Phase::Wanted, Err(error)) => *phase = Phase::Failed(error),
                (Phase::Ended, _) => return,
                (Phase::Idle | Phase::Granted | Phase::Abandoned | Phase::Failed(_), _) => {
                    // Nobody wants it any more. What cannot be unlocked is unlocked when the files are closed.
                    let _unlocked = self.turn.unlock();
                    *phase = Phase::Idle;
                }
            }
            self.changed.notify_all();
        }
    }
}

/// Tells whether a lock was got.
fn is_taken(outcome: Result<(), TryLockError>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// Takes a turn that is about to come: one that was given up once is not waited for.
    fn take(turns: &mut Turns) {
        while !turns.take(LONG).unwrap() {
            thread::yield_now();
        }
    }

    #[test]
    fn whoever_waits_comes_before_whoever_just_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let mut busy = Turns::open(folder.path()).unwrap();
        busy.take(LONG).unwrap();
        let mut other = Turns::open(folder.path()).unwrap();
        let waiting = thread::spawn(move || {
            assert!(other.take(LONG).unwrap());
            other
        });
        // The other one has `next` as soon as it waits.
        while is_taken(busy.shared.next.try_lock()).unwrap() {
            busy.shared.next.unlock().unwrap();
            thread::yield_now();
        }
        busy.give();
        let other = waiting.join().unwrap();
        assert!(!busy.take(Duration::ZERO).unwrap());
        other.give();
        take(&mut busy);
    }

    #[test]
    fn a_turn_that_came_too_late_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Turns::open(folder.path()).unwrap();
        let mut second = Turns::open(folder.path()).unwrap();
        first.take(LONG).unwrap();
        for _ in 0..3 {
            assert!(!second.take(Duration::ZERO).unwrap());
        }
        first.give();
        take(&mut first);
        first.give();
        take(&mut second);
        second.give();
        drop(second);
        take(&mut first);
    }
}
