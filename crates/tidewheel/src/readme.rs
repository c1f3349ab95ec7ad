//! The code of the README, compiled with the doc tests. Nothing here is part of the crate.

#[doc = include_str!("../../../README.md")]
pub struct Readme;
