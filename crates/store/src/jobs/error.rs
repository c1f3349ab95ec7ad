//! What can go wrong with a keeper of jobs.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use tidewheel_core::job::{JobId, ManifestError, RecordError};

/// Why a keeper of jobs could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum JobStoreError {
    /// A file could not be read or written.
    #[error("cannot {verb} {}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `open`, `lock`, `remove`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A record cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Another file cannot be used.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A job is removed while its supervisor lives.
    #[error("job {job} is still held by its supervisor")]
    Held {
        /// The job.
        job: JobId,
    },
    /// The disk did not take what was written before; what is on it is not known until the store is opened again.
    #[error(
        "the disk failed to keep what was written; nothing more is written until the program starts again"
    )]
    Broken,
}

impl JobStoreError {
    /// Returns whether the system lacked something of which there may be more later: room on the disk, file descriptors,
    /// memory. A sync that failed is final, whatever the system says.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        let Self::Io { verb, source, .. } = self else { return false };
        let errno = Errno::from_io_error(source);
        let room = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];
        let others = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        *verb != "sync" && errno.is_some_and(|errno| room.contains(&errno) || others.contains(&errno))
    }

    /// Returns all that is known in one line, the causes included.
    #[must_use]
    pub fn explain(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            Self::Record(_) | Self::Manifest(_) | Self::Json { .. } | Self::Held { .. } | Self::Broken => {
                self.to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_room_may_pass() {
        let error = |verb, errno: Errno| JobStoreError::Io { verb, path: "x".into(), source: errno.into() };
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(error("write", errno).lacks_room());
            // What a sync did not take may be on the disk or not.
            assert!(!error("sync", errno).lacks_room());
        }
        for other in [error("write", Errno::IO), error("open", Errno::ACCESS), JobStoreError::Broken] {
            assert!(!other.lacks_room(), "{other}");
        }
        // A file of ours that is too large to be read does not become smaller.
        let large = JobStoreError::Io {
            verb: "write",
            path: "x".into(),
            source: io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 4 MiB"),
        };
        assert!(!large.lacks_room());
    }
}
