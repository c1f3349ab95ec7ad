//! The commands, one file each: its arguments, whose description is its help, and what it does.

pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod decide;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod jobs;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod tick;
