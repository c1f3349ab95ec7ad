//! What nodes do: one file for each operation, all of the same shape. They start nothing themselves: whoever runs a
//! node gives them a way to run a process.

mod agent_invoke;
mod approval;
mod around;
mod beneath;
mod checkout;
mod child;
mod cicd_gate;
mod cicd_run;
mod command_run;
mod conflict_gate;
mod document;
mod execution_root;
mod integrate;
mod materialize_step;
mod merge_begun;
mod merged;
mod names;
mod node;
mod patch;
mod placeholder;
mod plan_persist;
mod prompt_resolve;
mod run;
mod save_patch;
mod scratch;
mod sentinel;
mod shell;
mod stage_commit;
mod stop_condition;
mod task;
mod terminal;
mod texts;
mod worktree_cleanup;
mod worktree_prepare;

pub use around::{AgentProgram, Around};
pub(super) use beneath::read_plain;
pub use child::run as run_child;
pub use execution_root::{ExecutionRootError, execution_root};
pub use node::{Execute, Node, NodeEnd};
pub use run::run;
pub(super) use scratch::remove_sentinel;
pub use task::Task;
