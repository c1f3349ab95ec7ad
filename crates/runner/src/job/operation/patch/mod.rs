//! `patch.pipeline_prepare`, `patch.execute_pipeline`, `patch.pipeline_finalize`: patches that are looked at, applied
//! all together or not at all, and put together. Nothing outside of the directory of the node is changed.

mod apply;
mod execute;
mod files;
mod finalize;
mod git;
mod headers;
mod journal;
mod prepare;
mod tree;

pub(super) use execute::run as execute;
pub(super) use finalize::run as finalize;
pub(super) use prepare::run as prepare;
