//! What core has as data, drawn for people.

pub(crate) mod bars;
pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod fields;
pub(crate) mod lines;
pub(crate) mod logs;
pub(crate) mod page;
pub(crate) mod problems;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod timeline;
