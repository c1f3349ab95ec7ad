//! What the commands on jobs share: where the jobs are, what is configured, who acts, and what can go wrong.

mod actor;
mod collect;
mod explained;
mod flow;
mod follow;
mod gather;
mod latest;
mod live;
pub(crate) mod node;
mod opened;
mod place;
mod progress;
mod settings;
mod tty;

pub(crate) use collect::{Collect, collect};
pub(crate) use explained::{explained_job, explained_run};
pub(crate) use flow::{Flow, Given};
pub(crate) use follow::{Follow, Followed, Left, Tells};
#[cfg(feature = "tui")]
pub(crate) use latest::latest;
pub(crate) use opened::{Opened, concluded, job_of, refused, run_of, unfit};
pub(crate) use place::{DirArguments, Place};
pub(crate) use settings::{ListFormat, Settings, Shown};
