//! Who keeps others from writing: the kernel lists who holds which lock. It is asked only when a write has waited in
//! vain, so that a person learns which process to look at.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The byte of the shared index that the one who writes has locked; the format of SQLite's log fixes it.
const WRITE_BYTE: u64 = 120;

/// A process that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    process: u32,
    is_stopped: bool,
}

impl Holder {
    /// Finds the process that is in the middle of a write to a database; `None` where there is none, or where the
    /// system does not say.
    pub(crate) fn of_write(database: &Path) -> Option<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push("-shm");
        let inode = fs::metadata(name).ok()?.ino();
        let process = fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| holds(line, inode))?;
        // A thread that waits for the disk stops only when it comes back; the others show it already.
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        Some(Self { process, is_stopped: states.any(|stat| is_stopped(&stat)) })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = self.process;
        if self.is_stopped {
            write!(
                f,
                "process {process} is stopped in the middle of a write: let it go on (`kill -CONT {process}`) or \
                 end it"
            )
        } else {
            write!(f, "process {process} has been writing for too long")
        }
    }
}

/// Returns the process of a line of the kernel's list, if it is the one that writes to the database of that index.
fn holds(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    // One that waits for a lock has an arrow in front.
    let [_, "POSIX", _, "WRITE", process, file, first, last] = fields[..] else { return None };
    let of_file = file.rsplit(':').next()?.parse::<u64>().ok()? == inode;
    let range = first.parse::<u64>().ok()?..=last.parse::<u64>().ok()?;
    // In a namespace of its own, a process does not see the numbers of all others.
    process.parse().ok().filter(|process| of_file && range.contains(&WRITE_BYTE) && *process > 0)
}

/// Returns whether the state of a process, as the kernel writes it, is that of one that is stopped.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_writes_is_found_among_all_locks() {
        let list = "1: FLOCK  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                    2: POSIX  ADVISORY  READ 12 fe:00:77 123 123\n\
                    3: POSIX  ADVISORY  WRITE 13 fe:00:78 120 120\n\
                    3: -> POSIX  ADVISORY  WRITE 14 fe:00:77 120 120\n\
                    4: POSIX  ADVISORY  WRITE 15 fe:00:77 120 120\n";
        assert_eq!(list.lines().find_map(|line| holds(line, 77)), Some(15));
        assert_eq!(list.lines().find_map(|line| holds(line, 79)), None);
        assert_eq!(holds("5: POSIX  ADVISORY  WRITE -1 fe:00:77 120 120", 77), None);
    }

    #[test]
    fn a_process_that_is_stopped_is_known_by_its_state() {
        assert!(is_stopped("15 (a) b) T 1 2") && is_stopped("15 (x) t 1"));
        assert!(!is_stopped("15 (T) S 1 2") && !is_stopped(""));
    }
}
