//! The code of the guides, compiled and run with the doc tests. Nothing here is part of the crate.

#[doc = include_str!("../../../docs/guides/commands.md")]
pub struct Commands;

#[doc = include_str!("../../../docs/guides/decision-engine.md")]
pub struct DecisionEngine;

#[doc = include_str!("../../../docs/guides/durable.md")]
pub struct Durable;

#[doc = include_str!("../../../docs/guides/first-workflow.md")]
pub struct FirstWorkflow;

#[doc = include_str!("../../../docs/guides/from-temporal.md")]
pub struct FromTemporal;

#[doc = include_str!("../../../docs/guides/policies.md")]
pub struct Policies;

#[doc = include_str!("../../../docs/guides/policies-by-example.md")]
pub struct PoliciesByExample;

#[doc = include_str!("../../../docs/guides/telemetry.md")]
pub struct Telemetry;

#[doc = include_str!("../../../docs/guides/testing.md")]
pub struct Testing;

#[doc = include_str!("../../../docs/guides/versions.md")]
pub struct Versions;

#[doc = include_str!("../../../docs/guides/workflows.md")]
pub struct Workflows;
