//! What can go wrong with a keeper of jobs.

use std::io;
use std::path::PathBuf;

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
