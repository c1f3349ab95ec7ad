//! Documents that people write: trees that know where each part stands, and the reader of their tables.

mod reader;
mod syntax;
mod tree;

pub use reader::nearest;
#[cfg(test)]
pub(crate) use reader::noted;
pub(crate) use reader::{Report, Table, as_list, is_plain, words};
pub(crate) use tree::{Data, Entry, Format, Node, read};
pub use tree::{Location, Problem, Problems};
