//! What the commands on jobs share: where the jobs are, what is configured, who acts, and what can go wrong.

mod actor;
mod cells;
mod chosen;
mod collect;
mod explained;
mod flow;
mod follow;
mod gather;
mod latest;
mod live;
mod manner;
pub(crate) mod node;
mod opened;
mod place;
mod progress;
mod settings;
mod tty;

pub(crate) use cells::{cell, columns, run_style, style};
pub(crate) use chosen::{by_run, listed, neighbours, noteworthy, run_with_needs};
pub(crate) use collect::{Collect, collect};
pub(crate) use explained::{explained_job, explained_run};
pub(crate) use flow::{FLAGS_WITH_VALUE, FLAGS_WITHOUT_VALUE, Flow, Given};
pub(crate) use follow::{Follow, Followed, Left, Tells};
#[cfg(feature = "tui")]
pub(crate) use latest::latest;
pub(crate) use manner::{Form, Ids, Manner, MannerArguments, Times};
pub(crate) use opened::{Opened, concluded, happened, refused, run_of, unfit};
pub(crate) use place::{DirArguments, How, Place};
pub(crate) use settings::{ListFormat, Settings, Shown};
pub(crate) use tty::Tty;
