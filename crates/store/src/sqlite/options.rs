//! How a database is opened.

use std::time::Duration;

/// How long a write waits for its turn: longer than any group of writes takes, and shorter than a lease.
const PATIENCE: Duration = Duration::from_secs(5);
/// Two threads keep a slow list from standing in the way of quick reads.
const READERS: usize = 2;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) patience: Duration,
    pub(crate) readers: usize,
    pub(crate) read_only: bool,
    pub(crate) pages_at_most: Option<u32>,
    pub(crate) bytes_at_most: Option<u32>,
}

impl Options {
    /// Returns what is right for most.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            patience: PATIENCE,
            readers: READERS,
            read_only: false,
            pages_at_most: None,
            bytes_at_most: None,
        }
    }

    /// Sets how long a write waits while another process writes, before the store counts as busy.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how many reads may happen at once; at least one.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// Changes nothing, not even by a migration: every write is refused as read-only.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Bounds the database to that many pages of 4 KiB; beyond, the disk counts as full.
    #[must_use]
    pub const fn pages_at_most(mut self, pages: u32) -> Self {
        self.pages_at_most = Some(pages);
        self
    }

    /// Bounds each stored text; a write with a longer one fails, and only that write.
    #[must_use]
    pub const fn bytes_at_most(mut self, bytes: u32) -> Self {
        self.bytes_at_most = Some(bytes);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
