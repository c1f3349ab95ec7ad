//! The code of the guides, compiled and run with the doc tests. Nothing here is part of the crate.

#[doc = include_str!("../../../docs/guides/workflows.md")]
pub struct Workflows;
