//! `cargo xtask crash`: the long suites that kill, stop, starve and deceive the real binaries, and the page of what held;
//! only declares. Not a part of `ci`, which runs a small part of each.

mod page;
mod run;
mod suites;

pub(crate) use run::COMMAND;
