//! Repositories of git, by its own program: worktrees, hooks and settings are then as people know them. It needs git
//! 2.38 or newer.
//!
//! What only looks, and what writes a commit or moves a branch without a working tree, is done at once by a
//! [`Repository`]. What may take long or runs hooks is a [`Call`] that whoever runs a job executes as one of its
//! processes.

mod call;
mod edit;
mod lock;
mod merge;
mod repository;
mod system;
mod worktree;

pub use call::Call;
pub(crate) use call::ELSEWHERE;
pub use edit::Edit;
pub use lock::LockError;
pub use merge::{MadeMerge, MergeState};
pub use repository::{GitError, Repository};
pub(crate) use repository::{MOMENT, TRIES, complaint, is_half_seen, lies_in};
pub use system::{Git, System};
pub use worktree::{RemoveError, Worktree};
