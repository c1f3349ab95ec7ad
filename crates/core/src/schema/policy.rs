//! Rules of policies: the fields of a policy and its matcher, for the library and for jobs.

use serde_json::{Value, json};

use super::value::{
    boolean, document, filled, limit, list, map, number, one_of_fields, span, table, text, usual, words,
};
use crate::policy::{
    CircuitBreaker, DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY, ExecutionMode, Jitter, Kind, LogLevel, OnFailure,
    OnOpen, Priority,
};

/// What a policy may not say of a job.
pub(super) const NOT_FOR_JOBS: [&str; 3] = ["checkpoint_after", "telemetry_prefix", "log_level"];

/// Returns the schema of a file of policies.
///
/// ```
/// let schema = tidewheel_core::schema::policy();
/// assert_eq!(schema["properties"]["policies"]["type"], "array");
/// ```
#[must_use]
pub fn policy() -> Value {
    let about = "Rules in order: the first that matches a node is laid over the defaults.";
    let top = table(about, &["policies"], vec![("policies", list(about, rule()))]);
    document("Tidewheel policies", about, top)
}

/// Returns a rule of the library.
fn rule() -> Value {
    let mut fields = fields();
    fields.push(("match", matcher()));
    table("A policy, and the nodes that it is for.", &["match"], fields)
}

/// Returns the list of the rules of jobs.
pub(super) fn rules_of_jobs(about: &str) -> Value {
    let mut fields = fields();
    fields.retain(|(name, _)| !NOT_FOR_JOBS.contains(name));
    for (name, field) in &mut fields {
        match *name {
            "execution_mode" => field["enum"] = json!([ExecutionMode::External.name()]),
            "fallback" => {
                let args = map("The arguments that are laid over those of the node.", json!({}));
                let args = table("What the node is run with once more.", &["args"], vec![("args", args)]);
                field["properties"]["overrides"] = args;
            }
            _ => {}
        }
    }
    fields.push(("match", matcher()));
    list(about, table("A policy, and the nodes that it is for.", &["match"], fields))
}

fn matcher() -> Value {
    let kind = || words("A kind of nodes.", Kind::ALL.iter().map(|kind| kind.name()));
    one_of_fields(
        "The nodes that the rule is for.",
        vec![
            ("name", filled("The node with this name.")),
            ("pattern", filled("Nodes whose name fits this regular expression.")),
            ("kind", kind()),
            ("kinds", list("Nodes of one of these kinds.", kind())),
            ("tag", filled("Nodes with this tag.")),
            ("default", json!({ "description": "Every node.", "const": true })),
        ],
    )
}

/// Returns every field of a policy.
fn fields() -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        ("max_retries", usual(number("How many attempts may follow the first.", 0), 0)),
        ("backoff", backoff()),
        ("jitter", usual(word("How the delay is spread.", Jitter::ALL, Jitter::name), Jitter::None.name())),
        (
            "on_failure",
            usual(
                word("What happens when the work has failed for good.", OnFailure::ALL, OnFailure::name),
                OnFailure::Halt.name(),
            ),
        ),
        ("fallback", fallback()),
        (
            "compensation",
            filled(
                "The node that undoes the finished work; needs `on_failure = \"compensate\"` in the same rule.",
            ),
        ),
        ("retryable_errors", errors("Only these failures are retried, by code or by name.")),
        ("non_retryable_errors", errors("These failures are never retried, by code or by name.")),
        ("retry_budget", retry_budget()),
        ("circuit_breaker", circuit_breaker()),
        (
            "execution_mode",
            word(
                "How the work is executed; a job knows only `external`: a worker outside ends it by its token.",
                ExecutionMode::ALL,
                ExecutionMode::name,
            ),
        ),
        (
            "priority",
            usual(
                word("Who goes first when slots are few.", Priority::ALL, Priority::name),
                Priority::Normal.name(),
            ),
        ),
        ("idempotency_key", idempotency_key()),
        ("concurrency_limit", concurrency_limit()),
        ("rate_limit", rate_limit()),
        (
            "scheduled_at",
            json!({
                "type": "string",
                "description": "When the first attempt may start.",
                "format": "date-time",
                "examples": ["2026-03-01T12:00:00Z"],
            }),
        ),
        (
            "checkpoint_after",
            boolean("Whether the state of the run is kept as a whole after this work.", false),
        ),
        ("telemetry_prefix", filled("What the names of its telemetry begin with.")),
        ("log_level", word("The level at which its events are logged.", LogLevel::ALL, LogLevel::name)),
        ("metadata", map("What telemetry and logs carry along.", json!({}))),
    ];
    let [base, base_ms] = span("base_delay", "base_delay_ms", "The first delay.");
    let [most, most_ms] = span("max_delay", "max_delay_ms", "The longest delay.");
    fields.extend([(base.0, usual(base.1, DEFAULT_BASE_DELAY.to_string())), base_ms]);
    fields.extend([(most.0, usual(most.1, DEFAULT_MAX_DELAY.to_string())), most_ms]);
    fields.extend(limit("timeout", "timeout_ms", "How long one attempt may take."));
    fields.extend(limit("total_timeout", "total_timeout_ms", "How long all attempts may take together."));
    fields.extend(limit(
        "deadline",
        "deadline_ms",
        "How long after the acceptance of its input the work may still run.",
    ));
    fields.extend(span("queue_timeout", "queue_timeout_ms", "How long the work may wait for a slot."));
    fields.extend(span("delay", "delay_ms", "How long to wait before the first attempt."));
    let [heartbeat, in_millis] = span("heartbeat", "heartbeat_ms", "How long the work may be silent.");
    fields.extend([("heartbeat_interval_ms", in_millis.1.clone()), heartbeat, in_millis]);
    fields
}

fn word<T: Copy>(about: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Value {
    words(about, all.iter().map(|one| name(*one)))
}

fn backoff() -> Value {
    const KINDS: [&str; 5] = ["none", "fixed", "linear", "exponential", "jitter"];
    let about = "How the delay between attempts grows; `jitter` is exponential with full jitter.";
    let growth = "How much longer each delay is, with at most three decimals; only for exponential.";
    let coefficient = json!({ "type": "number", "description": growth, "minimum": 1, "default": 2 });
    let kind = words(about, KINDS);
    let written = table(about, &["kind"], vec![("kind", kind.clone()), ("coefficient", coefficient)]);
    json!({ "description": about, "anyOf": [kind, written], "default": "none" })
}

fn fallback() -> Value {
    one_of_fields(
        "What to do once after the last attempt failed.",
        vec![
            ("value", json!({ "description": "What is taken as the result." })),
            ("overrides", map("What the work is run with once more.", json!({}))),
        ],
    )
}

fn errors(about: &str) -> Value {
    list(about, json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "minLength": 1 }] }))
}

fn retry_budget() -> Value {
    let mut fields =
        vec![("name", filled("Who shares it.")), ("tokens", number("How many retries it holds at most.", 1))];
    fields.extend(span("refill", "refill_ms", "How long it takes to get one back."));
    // A span has two spellings, so the parser alone can say that one of them is missing.
    table("A shared allowance that each retry is taken from.", &["name", "tokens"], fields)
}

fn circuit_breaker() -> Value {
    let known = CircuitBreaker::new("");
    let mut fields = vec![
        ("name", filled("Who shares it.")),
        (
            "failure_threshold",
            usual(number("How many failures in a row open it.", 1), known.failure_threshold),
        ),
        (
            "half_open_permits",
            usual(number("How many probes may pass when it is half open.", 1), known.half_open_permits),
        ),
        (
            "on_open",
            usual(
                word("What it does to work while it is open.", OnOpen::ALL, OnOpen::name),
                known.on_open.name(),
            ),
        ),
    ];
    let [open, in_millis] = span("reset_timeout", "reset_timeout_ms", "How long it stays open.");
    fields.extend([(open.0, usual(open.1, known.reset_timeout.to_string())), in_millis]);
    table("Stops calling what keeps failing.", &["name"], fields)
}

fn rate_limit() -> Value {
    let mut fields = vec![
        ("count", number("How many.", 1)),
        ("name", text("Shared by everything with this name; by the rule's work without one.")),
    ];
    fields.extend(span("window", "window_ms", "In how long."));
    table("How many pieces of work may start in any window.", &["count"], fields)
}

fn idempotency_key() -> Value {
    let about = "What makes two pieces of work of one node the same: a text with `${…}` in it.";
    let fields = vec![
        ("key", filled("A text with `${…}` in it.")),
        (
            "name",
            filled("The scope: the key counts for all work that names it, whatever its node and workflow."),
        ),
    ];
    json!({ "description": about, "anyOf": [filled(about), table(about, &["key", "name"], fields)] })
}

fn concurrency_limit() -> Value {
    let about = "How many pieces of work may run at once.";
    let fields = vec![
        ("limit", number("How many.", 1)),
        ("name", text("Shared by everything with this name; by the rule's work without one.")),
    ];
    json!({ "description": about, "anyOf": [number(about, 1), table(about, &["limit"], fields)] })
}
