//! A job without a run: this binary, with the arguments of the record.

use std::path::Path;

use tidewheel_core::job::Record;

use super::execution_root::execution_root;
use super::node::{Execute, NodeEnd};
use crate::process::Program;

/// Runs a job that belongs to no run.
pub fn run(record: &Record, binary: &Path, root: &Path, execute: &mut Execute<'_>) -> NodeEnd {
    if record.child_args.is_empty() {
        return NodeEnd::failed("missing child args", 1).non_retryable();
    }
    match execution_root(root, &record.metadata) {
        Ok(directory) => {
            let args = record.child_args.iter().map(Into::into);
            let program = Program::new(std::iter::once(binary.as_os_str().to_owned()).chain(args));
            NodeEnd::of("job", &execute(program.current_dir(directory).into()))
        }
        Err(error) => error.into(),
    }
}
