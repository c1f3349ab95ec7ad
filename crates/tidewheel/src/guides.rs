//! The code of the guides, compiled and run with the doc tests. Nothing here is part of the crate.

#[doc = include_str!("../../../docs/guides/durable.md")]
pub struct Durable;

#[doc = include_str!("../../../docs/guides/policies.md")]
pub struct Policies;

#[doc = include_str!("../../../docs/guides/workflows.md")]
pub struct Workflows;
