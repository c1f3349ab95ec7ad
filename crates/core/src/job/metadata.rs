//! What else is kept of a job: names and values, those that nobody knows any more included.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What else is kept of a job. Values of unknown names stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Map<String, Value>);

/// The names that we write.
impl Metadata {
    /// The run that the job belongs to.
    pub const RUN_ID: &'static str = "workflow_run_id";
    /// The node that it runs.
    pub const NODE_ID: &'static str = "workflow_node_id";
    /// What people call it.
    pub const NODE_NAME: &'static str = "workflow_node_name";
    /// How many times it was started.
    pub const NODE_ATTEMPT: &'static str = "workflow_node_attempt";
    /// How its node ended.
    pub const NODE_OUTCOME: &'static str = "workflow_node_outcome";
    /// The payloads that it wrote.
    pub const PAYLOAD_REFS: &'static str = "workflow_payload_refs";
    /// The template.
    pub const TEMPLATE_ID: &'static str = "workflow_template_id";
    /// Its version.
    pub const TEMPLATE_VERSION: &'static str = "workflow_template_version";
    /// How it was named on the command line.
    pub const TEMPLATE_SELECTOR: &'static str = "workflow_template_selector";
    /// Who executes the node.
    pub const EXECUTOR_CLASS: &'static str = "workflow_executor_class";
    /// What is executed.
    pub const EXECUTOR_OPERATION: &'static str = "workflow_executor_operation";
    /// Which control policy it is.
    pub const CONTROL_POLICY: &'static str = "workflow_control_policy";
    /// The hash of the expanded template and its policies.
    pub const POLICY_SNAPSHOT_HASH: &'static str = "workflow_policy_snapshot_hash";
    /// The gates of the node, as labels.
    pub const GATES: &'static str = "workflow_gates";
    /// Where it runs, relative to the root; `.` for the root itself.
    pub const EXECUTION_ROOT: &'static str = "execution_root";
    /// The alias that it was started by.
    pub const COMMAND_ALIAS: &'static str = "command_alias";
    /// The attempt that its policy counts, from zero; starts again at a rewind.
    pub const POLICY_ATTEMPT: &'static str = "policy_attempt";
    /// When the first attempt since the last rewind started.
    pub const STEP_STARTED_AT: &'static str = "step_started_at";
    /// From when its deadline counts, if a person had it done again: otherwise from the beginning of its run.
    pub const DEADLINE_FROM: &'static str = "deadline_from";
    /// How many times a loop has rewound it.
    pub const LOOP_COUNT: &'static str = "workflow_loop_count";
    /// The nodes that a loop goes back to, until their jobs are rewound.
    pub const LOOP_TO: &'static str = "workflow_loop_to";
    /// How many starts it had before a person last had it done again: budgets count from there.
    pub const ATTEMPTS_BEFORE: &'static str = "workflow_attempts_before_retry";
    /// The approval that it had before its policy let it wait for a person; `false` if it had none.
    pub const PAUSED: &'static str = "paused_approval";
    /// What its circuit breaker gave it for the attempt.
    pub const BREAKER_PERMIT: &'static str = "breaker_permit";
    /// Whether the last attempt runs with the fallback's arguments.
    pub const FALLBACK: &'static str = "fallback";
    /// The session that its process was started in, by which the members of its group are known without their leader.
    pub const PROCESS_SESSION: &'static str = "process_session";
    /// Why it is known that its supervisor is gone.
    pub const LIVENESS: &'static str = "process_liveness_state";
    /// Why it is kept as a dead letter.
    pub const DEAD_LETTER: &'static str = "dead_letter";
    /// The exit code of an agent.
    pub const AGENT_EXIT_CODE: &'static str = "agent_exit_code";
    /// The agent.
    pub const AGENT_NAME: &'static str = "agent_name";
    /// What was run as the agent.
    pub const AGENT_COMMAND: &'static str = "agent_command";
    /// What came of cleaning up at a retry.
    pub const RETRY_CLEANUP_STATUS: &'static str = "retry_cleanup_status";
    /// What went wrong at it.
    pub const RETRY_CLEANUP_ERROR: &'static str = "retry_cleanup_error";
    /// What came of cleaning up at a cancellation.
    pub const CANCEL_CLEANUP_STATUS: &'static str = "cancel_cleanup_status";
    /// What went wrong at it.
    pub const CANCEL_CLEANUP_ERROR: &'static str = "cancel_cleanup_error";
    /// Whether it owns a worktree.
    pub const WORKTREE_OWNED: &'static str = "worktree_owned";
    /// Where its worktree is.
    pub const WORKTREE_PATH: &'static str = "worktree_path";
    /// What its worktree is called.
    pub const WORKTREE_NAME: &'static str = "worktree_name";
    /// The branch that is checked out in its worktree.
    pub const WORKTREE_BRANCH: &'static str = "worktree_branch";
    /// The job that made its worktree.
    pub const WORKTREE_OWNER: &'static str = "worktree_owner";
    /// The worktree that it has removed.
    pub const WORKTREE_CLEANED: &'static str = "worktree_cleaned";
    /// What came of the last attempt to remove its worktree.
    pub const WORKTREE_CLEANUP_STATUS: &'static str = "worktree_cleanup_status";
    /// What went wrong at it.
    pub const WORKTREE_CLEANUP_ERROR: &'static str = "worktree_cleanup_error";
    /// The worktree that it has made for a merge of its own, until that is removed.
    pub const MERGE_WORKTREE: &'static str = "merge_worktree";
    /// The branch that it is about.
    pub const BRANCH: &'static str = "branch";
    /// Where a merge stands that it has begun: what is merged into what, and what came of it.
    pub const MERGE: &'static str = "merge";

    /// Returns a value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.as_u64().and_then(|number| u32::try_from(number).ok())
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Takes a value away.
    pub fn clear(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Takes away every value whose name begins like that.
    pub fn clear_all(&mut self, prefix: &str) {
        self.0.retain(|name, _| !name.starts_with(prefix));
    }

    /// Returns the names and values, to change these.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}
