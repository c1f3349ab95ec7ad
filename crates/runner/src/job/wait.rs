//! Waits until something changes in a directory, without asking again and again. It does not look at what changed.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// Hears of changes from the moment it is made. Where the system has no ear left, it says every now and then that
/// something may have changed.
#[derive(Debug)]
pub struct Watch {
    inotify: Option<OwnedFd>,
    name: Option<OsString>,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something changed, or may have.
    Changed,
    /// The instant has come.
    Due,
}

/// How often somebody looks who cannot be told.
const ASK_AGAIN: Duration = Duration::from_millis(200);

impl Watch {
    /// Watches all files of a directory.
    #[must_use]
    pub fn directory(path: &Path) -> Self {
        Self { inotify: listen(path, ALL), name: None }
    }

    /// Watches what comes into a directory, and not what is written to files that are there.
    pub(super) fn arrivals(path: &Path) -> Self {
        Self { inotify: listen(path, WatchFlags::CREATE | WatchFlags::MOVED_TO), name: None }
    }

    /// Watches one file, which need not be there yet, and may be replaced.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = path.file_name().map(OsStr::to_owned);
        Self { inotify: listen(folder.unwrap_or_else(|| Path::new(".")), ALL), name }
    }

    /// Waits for a change since the last one that it told of, or since it was made.
    pub fn wait(&self, until: Option<Instant>) -> Woken {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let Some(inotify) = &self.inotify else {
                if left.is_some_and(|left| left.is_zero()) {
                    return Woken::Due;
                }
                thread::sleep(left.map_or(ASK_AGAIN, |left| left.min(ASK_AGAIN)));
                return Woken::Changed;
            };
            // A time that the system cannot count to does not come.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let polled = poll(&mut [PollFd::new(inotify, PollFlags::IN)], timeout.as_ref());
            if self.take() {
                return Woken::Changed;
            }
            match polled {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => thread::sleep(left.map_or(ASK_AGAIN, |left| left.min(ASK_AGAIN))),
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Woken::Due;
            }
        }
    }

    /// Returns what becomes readable when something changes; `None` where nobody is told.
    pub(super) fn ear(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(|inotify| inotify.as_fd())
    }

    /// Forgets what has changed so far, and tells whether something has.
    pub(super) fn take(&self) -> bool {
        let Some(inotify) = &self.inotify else { return true };
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut events = Reader::new(inotify, &mut buffer);
        let mut is_changed = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    // What has no name is about the directory itself, or about what there was no room to tell.
                    let is_ours = self.name.is_none() || name.is_none() || name == self.name.as_deref();
                    is_changed |= is_ours || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                }
                Err(Errno::INTR) => {}
                Err(_) => return is_changed,
            }
        }
    }
}

/// Everything that changes what a reader of a directory and its files sees.
const ALL: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

fn listen(folder: &Path, changes: WatchFlags) -> Option<OwnedFd> {
    let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    add_watch(&inotify, folder, changes | WatchFlags::ONLYDIR).ok()?;
    Some(inotify)
}
