//! The files that people write, described as JSON schemas for editors and other programs.
//!
//! They are written by hand: the parser reads tables and has no types that a schema could be derived from. A test
//! compares the fields of both, so neither knows one that the other does not.

mod config;
mod policy;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use config::config;
pub use policy::policy;
pub use template::template;
