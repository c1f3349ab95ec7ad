//! The rules of this repository that no compiler and no linter keeps; reads files and changes none.
//!
//! Each rule is a pure function from text to complaints.
//! Beside its test over the real tree it has one with bad examples, so that we know that it can fail.

mod arrows;
mod declarations;
mod dependencies;
mod examples;
mod facade;
mod items;
mod lints;
mod manifest;
mod paths;
mod purity;
mod sources;
mod surface;
mod tokens;
mod tree;
mod unsafety;
