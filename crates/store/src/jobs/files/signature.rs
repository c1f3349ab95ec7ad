//! By what a file is known to be the same as before, without reading it.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use serde::{Deserialize, Serialize};

/// By what a file is known to be the same as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Signature(
    /// When it was changed, in nanoseconds.
    pub(super) i64,
    /// Its size.
    pub(super) u64,
    /// Its number.
    pub(super) u64,
);

impl Signature {
    /// What no file is known by, so that it differs from every one.
    pub(super) const NO_FILE: Self = Self(-1, u64::MAX, 0);
}

/// What the system says about a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) signature: Signature,
    pub(super) kind: FileType,
    /// How many names it has; of a directory in most file systems two, and one more for each directory in it.
    pub(super) links: u32,
}

impl Found {
    /// Looks at an open file.
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&statx(file, c"", AtFlags::EMPTY_PATH, MASK)?))
    }

    /// Looks at a path, and not through a link at its end; `None` if nothing is there.
    pub(super) fn at(folder: impl AsFd, path: &str) -> io::Result<Option<Self>> {
        match statx(folder, path, AtFlags::SYMLINK_NOFOLLOW, MASK) {
            Ok(stat) => Ok(Some(Self::from(&stat))),
            Err(error) if super::beneath::is_missing(error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// No more than we look at, so that the system need not find out more.
const MASK: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MTIME)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::INO)
    .union(StatxFlags::NLINK);

impl From<&Statx> for Found {
    fn from(stat: &Statx) -> Self {
        let time = stat.stx_mtime;
        let nanos = time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec));
        Self {
            signature: Signature(nanos, stat.stx_size, stat.stx_ino),
            kind: FileType::from_raw_mode(stat.stx_mode.into()),
            links: stat.stx_nlink,
        }
    }
}
