//! The configuration of a repository, `config.toml`.

use serde_json::{Value, json};

use super::policy::rules_of_jobs;
use super::template::ERREXIT;
use super::value::{boolean, document, filled, limit, list, map, number, span, table, usual, words};
use crate::job::{DEFAULT_GC_DAYS, DEFAULT_LOG_SIZE, DEFAULT_PROBE_INTERVAL, DisplayFormat};
use crate::view::jobs::Field;

/// Returns the schema of `config.toml`.
///
/// ```
/// let schema = tidewheel_core::schema::config();
/// assert_eq!(schema["additionalProperties"], false);
/// ```
#[must_use]
pub fn config() -> Value {
    let about = "What is configured for all jobs of a repository, in `.tidewheel/config.toml`.";
    let alias = json!({ "type": "string", "pattern": r"^file:\s*\S", "examples": ["file:tools/build.toml"] });
    let top = table(
        about,
        &[],
        vec![
            ("commands", map("Aliases of templates, and the files that they stand for.", alias)),
            ("agents", map("How agents are called, by name.", agent())),
            ("secrets", secrets()),
            ("scheduler", scheduler()),
            ("jobs", jobs()),
            ("display", display()),
            (
                "policies",
                rules_of_jobs("The policies of all templates; those of a template come before them."),
            ),
        ],
    );
    document("Tidewheel configuration", about, top)
}

fn agent() -> Value {
    let command = json!({
        "description": "What is run: a text for a shell, or a list with a program first.",
        "anyOf": [
            { "type": "string", "pattern": r"\S" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ],
    });
    let mut fields = vec![
        ("command", command),
        ("errexit", boolean(ERREXIT, true)),
        ("args", list("Its arguments.", json!({ "type": "string" }))),
        (
            "env",
            variables("The variables of the environment that reach it, beside those that any program needs."),
        ),
        ("cwd", filled("Where it runs, from the root of the repository; by default where its node runs.")),
    ];
    fields.extend(limit("timeout", "timeout_ms", "How long it may take."));
    table("How an agent is called.", &["command"], fields)
}

fn secrets() -> Value {
    let about = "The variables of the environment whose values are hidden in logs, records and payloads.";
    table("What is hidden wherever something is kept or shown.", &[], vec![("env", variables(about))])
}

fn variables(about: &str) -> Value {
    list(about, json!({ "type": "string", "pattern": "^[^=]+$" }))
}

fn scheduler() -> Value {
    let about = "How many jobs run at once; by default as many as there are cores.";
    let mut fields = vec![("capacity", number(about, 1))];
    let about = "How often the scheduler checks conditions outside of it, such as branches and a clean tree.";
    let [interval, in_millis] = span("probe_interval", "probe_interval_ms", about);
    fields.extend([(interval.0, usual(interval.1, DEFAULT_PROBE_INTERVAL.to_string())), in_millis]);
    table("The scheduler.", &[], fields)
}

fn jobs() -> Value {
    let about = "Whether a job that is cancelled loses its worktree.";
    let cancel = table("How jobs are cancelled.", &[], vec![("cleanup_worktree", boolean(about, false))]);
    let days = usual(number("How many days a job is kept after its end.", 0), DEFAULT_GC_DAYS);
    let gc = table("How old jobs are taken out.", &[], vec![("days", days)]);
    let about =
        "How many bytes a log grows to before it is turned over: a number, or a text such as `64MiB`.";
    let size = json!({
        "description": about,
        "anyOf": [
            { "type": "integer", "minimum": 4096 },
            { "type": "string", "pattern": r"^\s*[0-9]+\s*([KMGkmg][Ii]?[Bb]|[Bb])?\s*$" },
        ],
        "default": DEFAULT_LOG_SIZE,
    });
    let logs = table("The logs of jobs.", &[], vec![("max_size", size)]);
    table("What holds for all jobs.", &[], vec![("cancel", cancel), ("gc", gc), ("logs", logs)])
}

fn display() -> Value {
    let shown = |about: &str| {
        let labels: Vec<String> = Field::ALL.iter().map(|field| field.label()).collect();
        let names = Field::ALL.iter().map(|field| field.name());
        let mut known: Vec<&str> = names.chain(labels.iter().map(String::as_str)).collect();
        known.sort_unstable();
        known.dedup();
        let mut fields = list("The fields, in order.", words("A field, by its name or its label.", known));
        fields["minItems"] = json!(1);
        let format = words("The form.", DisplayFormat::ALL.iter().map(|format| format.name()));
        let format = usual(format, DisplayFormat::Block.name());
        table(about, &[], vec![("fields", fields), ("format", format)])
    };
    let lists = vec![("jobs", shown("How jobs are listed.")), ("jobs_show", shown("How one job is shown."))];
    table("How things are shown.", &[], vec![("lists", table("How jobs are shown.", &[], lists))])
}
