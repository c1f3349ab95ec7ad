//! What can be shown of a job, field by field, always as text. One table for lists and for one job.

use serde_json::{Map, Value};

use crate::job::{After, Brief, JobId, JobStatus, Metadata, Precondition, Record, Schedule, field_name};
use crate::policy::word_enum;
use crate::time::Timestamp;

word_enum! {
    /// A field of a job, by the name that programs and the configuration use.
    pub enum Field {
        /// Its id.
        Job = "job",
        /// Where it stands.
        Status = "status",
        /// What people call it.
        Name = "name",
        /// The plan that it is of, also if only what it makes says so.
        Slug = "slug",
        /// When it was enqueued.
        Created = "created",
        /// When its last attempt started.
        Started = "started",
        /// When it ended.
        Finished = "finished",
        /// When it failed, if it did.
        Failed = "failed",
        /// The process of its attempt.
        Pid = "pid",
        /// How it ended.
        ExitCode = "exit_code",
        /// Where its output is.
        Stdout = "stdout",
        /// Where its complaints are.
        Stderr = "stderr",
        /// Reserved.
        Session = "session",
        /// Where its outcome is.
        Outcome = "outcome",
        /// The alias that it was started by.
        Scope = "scope",
        /// The plan that it was started for.
        Plan = "plan",
        /// The branch to merge into.
        Target = "target",
        /// The branch that it works on.
        Branch = "branch",
        /// Its run.
        WorkflowRun = "workflow_run",
        /// Its template.
        WorkflowTemplate = "workflow_template",
        /// The version of its template.
        WorkflowTemplateVersion = "workflow_template_version",
        /// Its node.
        WorkflowNode = "workflow_node",
        /// How many times it was started.
        WorkflowNodeAttempt = "workflow_node_attempt",
        /// How its node ended.
        WorkflowNodeOutcome = "workflow_node_outcome",
        /// The payloads that it wrote.
        WorkflowPayloadRefs = "workflow_payload_refs",
        /// Who executes the node.
        WorkflowExecutorClass = "workflow_executor_class",
        /// What is executed.
        WorkflowExecutorOperation = "workflow_executor_operation",
        /// Which control policy it is.
        WorkflowControlPolicy = "workflow_control_policy",
        /// The hash of its template and policies.
        WorkflowPolicySnapshot = "workflow_policy_snapshot",
        /// The gates of the node.
        WorkflowGates = "workflow_gates",
        /// The jobs that have to end first.
        After = "after",
        /// The artifacts that have to be there.
        Dependencies = "dependencies",
        /// The locks that it holds while it runs.
        Locks = "locks",
        /// What it waits for now.
        Wait = "wait",
        /// What it has waited for so far.
        WaitedOn = "waited_on",
        /// Before this instant it does not start.
        NotBefore = "not_before",
        /// Whether a person has to approve it.
        ApprovalRequired = "approval_required",
        /// What the person said.
        ApprovalState = "approval_state",
        /// When it was asked.
        ApprovalRequestedAt = "approval_requested_at",
        /// Who asked.
        ApprovalRequestedBy = "approval_requested_by",
        /// When it was decided.
        ApprovalDecidedAt = "approval_decided_at",
        /// Who decided.
        ApprovalDecidedBy = "approval_decided_by",
        /// Why it was rejected.
        ApprovalReason = "approval_reason",
        /// Where a branch has to stand.
        PinnedHead = "pinned_head",
        /// What else has to be so.
        Preconditions = "preconditions",
        /// What it makes.
        Artifacts = "artifacts",
        /// Where it runs.
        ExecutionRoot = "execution_root",
        /// Where its worktree is.
        Worktree = "worktree",
        /// What its worktree is called.
        WorktreeName = "worktree_name",
        /// Whether it owns its worktree.
        WorktreeOwned = "worktree_owned",
        /// The kind of its agent.
        AgentBackend = "agent_backend",
        /// The name of its agent.
        AgentLabel = "agent_label",
        /// The command of its agent.
        AgentCommand = "agent_command",
        /// The exit code of its agent.
        AgentExit = "agent_exit",
        /// What came of cleaning up when it was cancelled.
        CancelCleanup = "cancel_cleanup",
        /// What went wrong at it.
        CancelCleanupError = "cancel_cleanup_error",
        /// What came of cleaning up when it was retried.
        RetryCleanup = "retry_cleanup",
        /// What went wrong at it.
        RetryCleanupError = "retry_cleanup_error",
        /// Why it is known that its supervisor is gone.
        ProcessLivenessState = "process_liveness_state",
        /// Why it was put aside as a dead letter.
        DeadLetter = "dead_letter",
        /// What was configured when it was enqueued.
        ConfigSnapshot = "config_snapshot",
        /// What it was asked to do.
        Command = "command",
    }
}

/// What a list shows where nobody says what.
pub const LIST_FIELDS: &[Field] = &[
    Field::Job,
    Field::Status,
    Field::Created,
    Field::After,
    Field::Wait,
    Field::WaitedOn,
    Field::Dependencies,
    Field::Locks,
    Field::PinnedHead,
    Field::ApprovalRequired,
    Field::ApprovalState,
    Field::ApprovalDecidedBy,
    Field::Artifacts,
    Field::Failed,
    Field::DeadLetter,
    Field::Command,
];

/// What a table that has to fit a terminal shows where nobody says what: what people look for, and what is known
/// without reading the records.
pub const TABLE_FIELDS: &[Field] = &[
    Field::Job,
    Field::Status,
    Field::Created,
    Field::Wait,
    Field::After,
    Field::Locks,
    Field::ApprovalState,
    Field::Name,
];

/// What is shown of one job where nobody says what: all there is.
pub const SHOW_FIELDS: &[Field] = Field::ALL;

impl Field {
    /// Reads a field as people write it in the configuration: `Waited on`, `waited_on`, `waited-on`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_name(&field_name(text))
    }

    /// Returns what people read in front of the value.
    #[must_use]
    pub fn label(self) -> String {
        if self == Self::Pid {
            return "PID".to_owned();
        }
        let words = self.name().replace('_', " ");
        let mut letters = words.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// Tells whether it is known of a job whose record was not read.
    #[must_use]
    pub const fn is_brief(self) -> bool {
        matches!(
            self,
            Self::Job
                | Self::Status
                | Self::Name
                | Self::Slug
                | Self::Created
                | Self::Started
                | Self::Finished
                | Self::Failed
                | Self::ExitCode
                | Self::After
                | Self::Dependencies
                | Self::Locks
                | Self::Wait
                | Self::WaitedOn
                | Self::NotBefore
                | Self::ApprovalRequired
                | Self::ApprovalState
                | Self::ApprovalRequestedAt
                | Self::ApprovalRequestedBy
                | Self::ApprovalDecidedAt
                | Self::ApprovalDecidedBy
                | Self::ApprovalReason
                | Self::PinnedHead
                | Self::Preconditions
                | Self::Artifacts
        )
    }

    /// Returns the instant that it is; `None` where it is none.
    #[must_use]
    pub fn instant(self, job: Known<'_>) -> Option<Timestamp> {
        let is_instant = matches!(
            self,
            Self::Created
                | Self::Started
                | Self::Finished
                | Self::Failed
                | Self::NotBefore
                | Self::ApprovalRequestedAt
                | Self::ApprovalDecidedAt
        );
        let text = is_instant.then(|| self.of(job)).flatten()?;
        Timestamp::parse(&text).ok()
    }

    /// Returns the value; `None` where there is none, or where it is not known.
    #[must_use]
    pub fn of<'a>(self, job: impl Into<Known<'a>>) -> Option<String> {
        let job = job.into();
        let record = job.record();
        let schedule = job.schedule();
        let approval = schedule.approval.as_ref();
        let metadata = |name| record.and_then(|record| record.metadata.get(name)).map(plain);
        let at = |at: Option<Timestamp>| at.map(|at| at.to_string());
        match self {
            Self::Job => Some(job.id().to_string()),
            Self::Status => Some(job.status().to_string()),
            Self::Name => Some(job.name()),
            Self::Slug => job.slug(),
            Self::Created => Some(job.created_at().to_string()),
            Self::Started => at(job.started_at()),
            Self::Finished => at(job.finished_at()),
            Self::Failed => (job.status() == JobStatus::Failed)
                .then(|| at(job.finished_at()).unwrap_or_else(|| "unknown".to_owned())),
            Self::Pid => record?.pid.map(|pid| pid.to_string()),
            Self::ExitCode => job.exit_code().map(|code| code.to_string()),
            Self::Stdout => Some(record?.stdout_path.clone()),
            Self::Stderr => Some(record?.stderr_path.clone()),
            Self::Session => record?.session_path.clone(),
            Self::Outcome => record?.outcome_path.clone(),
            Self::Scope => metadata(Metadata::COMMAND_ALIAS).or_else(|| metadata("scope")),
            Self::Plan => metadata("plan"),
            Self::Target => metadata("target"),
            Self::Branch => metadata("branch"),
            Self::WorkflowRun => metadata(Metadata::RUN_ID),
            Self::WorkflowTemplate => {
                metadata(Metadata::TEMPLATE_ID).or_else(|| metadata(Metadata::TEMPLATE_SELECTOR))
            }
            Self::WorkflowTemplateVersion => metadata(Metadata::TEMPLATE_VERSION),
            Self::WorkflowNode => metadata(Metadata::NODE_ID),
            Self::WorkflowNodeAttempt => metadata(Metadata::NODE_ATTEMPT),
            Self::WorkflowNodeOutcome => metadata(Metadata::NODE_OUTCOME),
            Self::WorkflowPayloadRefs => metadata(Metadata::PAYLOAD_REFS),
            Self::WorkflowExecutorClass => metadata(Metadata::EXECUTOR_CLASS),
            Self::WorkflowExecutorOperation => metadata(Metadata::EXECUTOR_OPERATION),
            Self::WorkflowControlPolicy => metadata(Metadata::CONTROL_POLICY),
            Self::WorkflowPolicySnapshot => metadata(Metadata::POLICY_SNAPSHOT_HASH),
            Self::WorkflowGates => record?.metadata.get(Metadata::GATES).map(|gates| joined(gates, " | ")),
            Self::After => Some(listed(schedule.after.iter().map(after))),
            Self::Dependencies => {
                Some(listed(schedule.dependencies.iter().map(|needed| needed.artifact.to_string())))
            }
            Self::Locks => Some(listed(schedule.locks.iter().map(ToString::to_string))),
            Self::Wait => schedule.wait_reason.as_ref().map(ToString::to_string),
            Self::WaitedOn => Some(listed(schedule.waited_on.iter().map(ToString::to_string))),
            Self::NotBefore => at(schedule.not_before),
            Self::ApprovalRequired => approval.map(|approval| approval.required.to_string()),
            Self::ApprovalState => approval.map(|approval| approval.state.to_string()),
            Self::ApprovalRequestedAt => at(approval.and_then(|approval| approval.requested_at)),
            Self::ApprovalRequestedBy => approval.and_then(|approval| approval.requested_by.clone()),
            Self::ApprovalDecidedAt => at(approval.and_then(|approval| approval.decided_at)),
            Self::ApprovalDecidedBy => approval.and_then(|approval| approval.decided_by.clone()),
            Self::ApprovalReason => approval.and_then(|approval| approval.reason.clone()),
            Self::PinnedHead => schedule.pinned_head.as_ref().map(ToString::to_string),
            Self::Preconditions => (!schedule.preconditions.is_empty())
                .then(|| listed(schedule.preconditions.iter().map(precondition))),
            Self::Artifacts => Some(listed(schedule.artifacts.iter().map(ToString::to_string))),
            Self::ExecutionRoot => metadata(Metadata::EXECUTION_ROOT),
            Self::Worktree => metadata(Metadata::WORKTREE_PATH),
            Self::WorktreeName => metadata(Metadata::WORKTREE_NAME),
            Self::WorktreeOwned => metadata(Metadata::WORKTREE_OWNED),
            Self::AgentBackend => metadata("agent_backend"),
            Self::AgentLabel => metadata("agent_label"),
            Self::AgentCommand => record?.metadata.get("agent_command").map(|words| joined(words, " ")),
            Self::AgentExit => metadata(Metadata::AGENT_EXIT_CODE),
            Self::CancelCleanup => metadata(Metadata::CANCEL_CLEANUP_STATUS),
            Self::CancelCleanupError => metadata(Metadata::CANCEL_CLEANUP_ERROR),
            Self::RetryCleanup => metadata(Metadata::RETRY_CLEANUP_STATUS),
            Self::RetryCleanupError => metadata(Metadata::RETRY_CLEANUP_ERROR),
            Self::ProcessLivenessState => metadata(Metadata::LIVENESS),
            Self::DeadLetter => metadata(Metadata::DEAD_LETTER),
            Self::ConfigSnapshot => record?.config_snapshot.as_ref().map(ToString::to_string),
            Self::Command => Some(match record?.command.as_slice() {
                [] => "<command unavailable>".to_owned(),
                words => words.join(" "),
            }),
        }
    }
}

/// What is known of a job: all of it, or what lists need.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// All of it.
    Record(&'a Record),
    /// What is known without its record.
    Brief(&'a Brief),
}

impl<'a> From<&'a Record> for Known<'a> {
    fn from(record: &'a Record) -> Self {
        Self::Record(record)
    }
}

impl<'a> From<&'a Brief> for Known<'a> {
    fn from(brief: &'a Brief) -> Self {
        Self::Brief(brief)
    }
}

impl<'a> Known<'a> {
    const fn record(self) -> Option<&'a Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Brief(_) => None,
        }
    }

    const fn schedule(self) -> &'a Schedule {
        match self {
            Self::Record(record) => &record.schedule,
            Self::Brief(brief) => &brief.schedule,
        }
    }

    const fn id(self) -> &'a JobId {
        match self {
            Self::Record(record) => &record.id,
            Self::Brief(brief) => &brief.id,
        }
    }

    /// Returns where it stands.
    #[must_use]
    pub const fn status(self) -> JobStatus {
        match self {
            Self::Record(record) => record.status,
            Self::Brief(brief) => brief.status,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Record(record) => record.name(),
            Self::Brief(brief) => brief.name.clone(),
        }
    }

    fn slug(self) -> Option<String> {
        match self {
            Self::Record(record) => record.slug(),
            Self::Brief(brief) => brief.slug.clone(),
        }
    }

    const fn created_at(self) -> Timestamp {
        match self {
            Self::Record(record) => record.created_at,
            Self::Brief(brief) => brief.created_at,
        }
    }

    const fn started_at(self) -> Option<Timestamp> {
        match self {
            Self::Record(record) => record.started_at,
            Self::Brief(brief) => brief.started_at,
        }
    }

    const fn finished_at(self) -> Option<Timestamp> {
        match self {
            Self::Record(record) => record.finished_at,
            Self::Brief(brief) => brief.finished_at,
        }
    }

    const fn exit_code(self) -> Option<i32> {
        match self {
            Self::Record(record) => record.exit_code,
            Self::Brief(brief) => brief.exit_code,
        }
    }
}

/// Returns the fields of a job for programs: texts, but for the configuration, which stays what it is.
#[must_use]
pub fn show_json(record: &Record, fields: &[Field]) -> Map<String, Value> {
    let value = |field: &Field| match (field, &record.config_snapshot) {
        (Field::ConfigSnapshot, Some(snapshot)) => Some(snapshot.clone()),
        _ => field.of(record).map(Value::String),
    };
    fields.iter().filter_map(|field| Some((field.name().to_owned(), value(field)?))).collect()
}

/// Says in one line how a job is and where its logs are.
#[must_use]
pub fn status_line(record: &Record) -> String {
    let exit = record.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
    format!(
        "{} [{}] exit={exit} stdout={} stderr={}",
        record.id, record.status, record.stdout_path, record.stderr_path
    )
}

fn after(after: &After) -> String {
    format!("{} ({})", after.job_id, after.policy)
}

fn precondition(precondition: &Precondition) -> String {
    match precondition {
        Precondition::CleanWorktree => "clean_worktree".to_owned(),
        Precondition::BranchExists { branch: None } => "branch_exists".to_owned(),
        Precondition::BranchExists { branch: Some(branch) } => format!("branch_exists:{branch}"),
        Precondition::Custom { id, .. } => format!("custom:{id}"),
    }
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// Writes a value as people read it: a text without quotes, a list with commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => joined(value, ", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn joined(value: &Value, between: &str) -> String {
    let word = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    match value {
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(between),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => word(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is said of a job must not depend on whether its record was read.
    #[test]
    fn lists_say_the_same_without_the_records() {
        let text = json!({ "id": "a", "version": 1, "status": "failed", "command": ["make", "all", "of", "it"],
            "created_at": "2026-02-01T12:00:00Z", "started_at": "2026-02-01T12:00:01Z",
            "finished_at": "2026-02-01T12:00:02Z", "exit_code": 3, "metadata": { "plan": "alpha" },
            "schedule": { "after": [{ "job_id": "b" }], "locks": [{ "key": "k", "mode": "shared" }],
                "dependencies": [{ "artifact": { "target_branch": { "name": "main" } } }],
                "artifacts": [{ "custom": { "type_id": "t", "key": "k" } }],
                "pinned_head": { "branch": "main", "oid": "feed" }, "not_before": "2026-02-01T12:00:00Z",
                "preconditions": [{ "kind": "clean_worktree" }],
                "wait_reason": { "kind": "locks", "detail": "waiting on locks" }, "waited_on": ["locks"],
                "approval": { "required": true, "state": "rejected", "requested_at": "2026-02-01T12:00:00Z",
                    "requested_by": "x", "decided_at": "2026-02-01T12:00:01Z", "decided_by": "y", "reason": "z" } } });
        let record = Record::parse(&text.to_string()).unwrap();
        let brief = Brief::from(&record);
        for field in Field::ALL.iter().copied().filter(|field| field.is_brief()) {
            let said = field.of(&record);
            assert!(said.as_deref().is_some_and(|said| said != "none"), "{field:?}");
            assert_eq!(said, field.of(&brief), "{field:?}");
        }
        assert!(TABLE_FIELDS.iter().all(|field| field.is_brief()));
    }

    #[test]
    fn instants_are_known_as_such() {
        let text =
            json!({ "id": "a", "version": 1, "status": "failed", "created_at": "2026-02-01T12:00:00Z" });
        let record = Record::parse(&text.to_string()).unwrap();
        let known = Known::from(&record);
        assert_eq!(Field::Created.instant(known), Some(record.created_at));
        // It failed nobody knows when.
        assert_eq!(
            (Field::Failed.instant(known), Field::Failed.of(known)),
            (None, Some("unknown".to_owned()))
        );
        assert_eq!(Field::Job.instant(known), None);
    }
}
