//! `cargo xtask bench report`: runs the benchmarks and writes what they measured to `docs/benchmarks.md`, with plots;
//! only declares, and no figure is written anywhere in here.

mod conditions;
mod figures;
mod layout;
mod markdown;
mod measure;
mod page;
mod plot;
mod quantity;
mod write;

pub(crate) use conditions::{Conditions, Taken, date};
pub(crate) use figures::Figures;
pub(crate) use markdown::{code, plain, table};
pub(crate) use page::minutes;
pub(crate) use quantity::thousands;
pub(crate) use write::run;
