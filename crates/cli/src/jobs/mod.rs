//! What the commands on jobs share: where the jobs are, what is configured, who acts, and what can go wrong.

mod actor;
mod collect;
mod flow;
mod follow;
pub(crate) mod node;
mod opened;
mod place;
mod settings;

pub(crate) use collect::{Collect, collect};
pub(crate) use flow::Flow;
pub(crate) use follow::{Follow, Followed, Left, Tells};
pub(crate) use opened::{Opened, concluded, refused, run_of, unfit};
pub(crate) use place::{DirArguments, Place};
pub(crate) use settings::{ListFormat, Settings, Shown};
