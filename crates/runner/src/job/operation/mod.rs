//! What nodes do: one file for each operation, all of the same shape. They start nothing themselves: whoever runs a
//! node gives them a way to run a process.

mod approval;
mod child;
mod cicd_gate;
mod cicd_run;
mod command_run;
mod execution_root;
mod node;
mod run;
mod shell;
mod stop_condition;
mod terminal;

pub use child::run as run_child;
pub use execution_root::{ExecutionRootError, execution_root};
pub use node::{Execute, Node, NodeEnd};
pub use run::run;
