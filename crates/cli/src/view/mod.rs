//! What core has as data, drawn for people.

pub(crate) mod bars;
pub(crate) mod columns;
pub(crate) mod fields;
pub(crate) mod lines;
pub(crate) mod order;
pub(crate) mod problems;
pub(crate) mod timeline;
