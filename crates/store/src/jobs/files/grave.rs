//! Files that were replaced. A file that nobody has open any more is freed at once, and whoever closes it last waits for
//! the disk; so they are held until what replaces them is in its place, and closed where nobody waits.

use std::os::fd::OwnedFd;

/// Files that were replaced and are still held.
#[derive(Debug, Default)]
pub(super) struct Grave {
    held: Vec<OwnedFd>,
}

/// As many files are held at most: a process may open about a thousand.
const MOST: usize = 256;

/// As many threads wait for the disk at once.
const THREADS: usize = 8;

impl Grave {
    /// Holds a file that is about to be replaced.
    pub(super) fn hold(&mut self, file: OwnedFd) {
        self.held.push(file);
        if self.held.len() >= MOST {
            let mut rest = std::mem::take(&mut self.held);
            std::thread::scope(|scope| {
                while !rest.is_empty() {
                    let some = rest.split_off(rest.len().saturating_sub(MOST / THREADS));
                    // A thread that is not to be had closes nothing; they are closed here then, with the closure.
                    std::thread::Builder::new().spawn_scoped(scope, move || drop(some)).ok();
                }
            });
        }
    }
}

impl Drop for Grave {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            // If there is no thread they are closed here; if the process ends, the system closes them.
            std::thread::Builder::new().spawn(move || drop(held)).ok();
        }
    }
}
