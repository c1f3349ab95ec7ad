//! What an operation wants to be run, with what it is to be given. It starts nothing.

use std::time::Duration;

use crate::process::Program;

/// A program that is to be run for a node.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The program.
    pub program: Program,
    /// What it reads; nothing if there is none.
    pub input: Option<Vec<u8>>,
    /// How long it may take, where that is less than its node may.
    pub timeout: Option<Duration>,
    /// How many of the last bytes of its output are kept, where somebody needs more than the end of it.
    pub keeps: Option<usize>,
}

impl From<Program> for Task {
    fn from(program: Program) -> Self {
        Self { program, ..Self::default() }
    }
}
