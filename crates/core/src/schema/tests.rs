//! The schemas beside what reads the files: the same fields, and every file that is in order fits.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use super::policy::NOT_FOR_JOBS;
use super::{config, policy, template};
use crate::document::noted;
use crate::job::template::{Source, Template};
use crate::job::{Config, KnownFields};
use crate::policy::{Policy, Rules};

/// A rule with every table that a policy can have.
const RULE: &str = r#"
[[policies]]
match = { default = true }
max_retries = 2
backoff = { kind = "exponential", coefficient = 1.5 }
max_delay_ms = 5000
timeout = "10m"
deadline_ms = "infinity"
fallback = { overrides = { args = { script = "true" } } }
on_failure = "fallback"
retry_budget = { name = "b", tokens = 3, refill = "1s" }
circuit_breaker = { name = "c", reset_timeout_ms = 100 }
rate_limit = { count = 1, window = "1s" }
concurrency_limit = { limit = 2, name = "n" }
idempotency_key = { key = "order", name = "orders" }
retryable_errors = [7, "timeout"]
scheduled_at = 2026-03-01T12:00:00Z
"#;

const CONFIG: &str = r#"
commands = { build = "file:build.toml" }
secrets = { env = ["TOKEN"] }
[agents.default]
command = "agent"
args = ["-p"]
env = ["A"]
timeout = "infinity"
cwd = "tools"
[agents.listed]
command = ["agent", "-p"]
[scheduler]
capacity = 4
probe_interval = "1m 30s"
[jobs.cancel]
cleanup_worktree = true
[jobs.gc]
days = 0
[jobs.logs]
max_size = "64 MiB"
[display.lists.jobs]
fields = ["Job", "status"]
format = "table"
[display.lists.jobs_show]
format = "json"
"#;

const TEMPLATE: &str = r#"
id = "t"
version = "v1"
[params]
slug = "s"
count = 2
is_needed = true
[cli]
positional = ["slug"]
named = { count = "count" }
[policy.dependencies]
missing_producer = "wait"
[[artifact_contracts]]
id = "package"
version = "v1"
schema = { type = "object", properties = { size = { type = "integer" } }, required = ["size"] }
[[imports]]
name = "other"
path = "other.toml"
params = { x = 1 }
[[links]]
from = "other"
to = "a"
[[nodes]]
id = "a"
name = "the ${slug}"
kind = "shell"
uses = "cap.env.shell.cicd.run"
args = { script = "true" }
needs = [
  { plan_branch = { slug = "s", branch = "b" } },
  { plan_doc = { slug = "s" } },
  { plan_commits = { slug = "s" } },
  { target_branch = { name = "main" } },
  { merge_sentinel = { slug = "s" } },
  { command_patch = { job_id = "j" } },
]
produces.succeeded = [{ custom = { type_id = "package", key = "${slug}" } }]
locks = [{ key = "k", mode = "shared" }]
preconditions = [
  { kind = "clean_worktree" },
  { kind = "branch_exists", branch = "main" },
  { kind = "pinned_head" },
  { kind = "custom", id = "x", args = { y = 1 } },
]
gates = [
  { kind = "approval", required = "${is_needed}" },
  { kind = "script", script = "true" },
  { kind = "cicd", script = "true", auto_resolve = false },
]
retry = { mode = "on_failure", budget = "${count}" }
on.failed = ["b"]
tags = ["slow"]
[[nodes]]
id = "b"
uses = "control.terminal"
after = [{ node_id = "a", policy = "failed" }]
"#;

/// Every example.
const EXAMPLES: [&str; 5] = [
    include_str!("../../../../examples/jobs/build.toml"),
    include_str!("../../../../examples/jobs/fan-out.toml"),
    include_str!("../../../../examples/jobs/hello.toml"),
    include_str!("../../../../examples/jobs/nightly.toml"),
    include_str!("../../../../examples/jobs/release.toml"),
];

const OTHER: &str = "id = 'o'\nversion = 'v1'\n[params]\nx = ''\n";

/// Tables by the way to them, each with the sets of fields that it may have.
type Tables = BTreeMap<String, BTreeSet<BTreeSet<String>>>;

/// Returns the tables that were read, by names that a schema has, too.
fn read_tables() -> Tables {
    let number = Regex::new(r"\[[^\]]*\]").unwrap();
    let kind = Regex::new(r"(gates|preconditions)\[\]\.\w+$").unwrap();
    let mut tables = Tables::new();
    for (path, known) in noted::take() {
        let path = number.replace_all(&path, "[]");
        let path = kind
            .replace(&path, "$1[]")
            .replace("agents.default", "agents.*")
            .replace("agents.listed", "agents.*");
        let path = path.replace("produces.succeeded[]", "needs[]");
        tables.entry(path).or_default().insert(known.into_iter().collect());
    }
    tables
}

/// Returns the tables that a schema knows.
fn described_tables(schema: &Value) -> Tables {
    let mut tables = Tables::new();
    let mut waiting = vec![(String::new(), schema)];
    while let Some((path, schema)) = waiting.pop() {
        for choice in ["anyOf", "oneOf"] {
            let choices = schema[choice].as_array().into_iter().flatten();
            waiting.extend(choices.map(|choice| (path.clone(), choice)));
        }
        if schema["items"].is_object() {
            waiting.push((format!("{path}[]"), &schema["items"]));
        }
        if schema["additionalProperties"].is_object() {
            waiting.push((format!("{path}.*"), &schema["additionalProperties"]));
        }
        let Some(fields) = schema["properties"].as_object() else { continue };
        assert_eq!(schema["additionalProperties"], false, "{path}");
        // A span in milliseconds is another spelling of a field, not a field.
        let names = fields.keys().filter(|name| !name.ends_with("_ms")).cloned().collect();
        let path_of_one = path.replace("produces.succeeded[]", "needs[]");
        tables.entry(path_of_one).or_default().insert(names);
        for (name, field) in fields {
            assert!(field["description"].is_string(), "{path}.{name} has no description");
            let dot = if path.is_empty() { "" } else { "." };
            let is_like_needs = ["failed", "blocked", "cancelled"].contains(&name.as_str());
            if !(path.ends_with("produces") && is_like_needs) {
                waiting.push((format!("{path}{dot}{name}"), field));
            }
        }
    }
    tables
}

/// Takes out of what is read what jobs refuse by name, and what `overrides` may have, which is no table of the parser.
fn as_for_jobs(mut read: Tables, described: &mut Tables) -> Tables {
    for sets in read.iter_mut().filter(|(path, _)| *path == "policies[]").map(|(_, sets)| sets) {
        let without = |set: &BTreeSet<String>| {
            set.iter().filter(|name| !NOT_FOR_JOBS.contains(&name.as_str())).cloned().collect()
        };
        *sets = sets.iter().map(without).collect();
    }
    described.remove("policies[].fallback.overrides");
    read
}

fn parse_template(text: &str) -> Result<(), String> {
    let main = Source { file: "main.toml".to_owned(), text: text.to_owned() };
    let other = |_: &str, _: &str| Ok(Source { file: "other.toml".to_owned(), text: OTHER.to_owned() });
    let template = Template::load(main, other).map_err(|found| found.to_string())?;
    template.expand(&BTreeMap::new(), &Rules::default()).map(|_| ()).map_err(|found| found.to_string())
}

#[test]
fn the_fields_of_a_file_of_policies_are_those_that_are_read() {
    noted::take();
    Rules::from_toml(RULE).unwrap();
    assert_eq!(described_tables(&policy()), read_tables());
    let schema = policy();
    let fields = schema["properties"]["policies"]["items"]["properties"].as_object().unwrap();
    for name in Policy::FIELDS {
        assert!(fields.contains_key(*name), "{name}");
    }
}

#[test]
fn the_fields_of_a_configuration_are_those_that_are_read() {
    noted::take();
    Config::parse(&format!("{CONFIG}{RULE}"), KnownFields::default()).unwrap();
    let mut described = described_tables(&config());
    assert_eq!(as_for_jobs(read_tables(), &mut described), described);
}

#[test]
fn the_fields_of_a_template_are_those_that_are_read() {
    noted::take();
    // It need not make sense as a whole: every table of it is read.
    let problems = parse_template(&format!("{TEMPLATE}{RULE}")).err().unwrap_or_default();
    assert!(!problems.contains("is not a known field"), "{problems}");
    let mut described = described_tables(&template());
    assert_eq!(as_for_jobs(read_tables(), &mut described), described);
}

#[test]
fn every_spelling_in_milliseconds_is_read() {
    let schema = policy();
    let fields = schema["properties"]["policies"]["items"]["properties"].as_object().unwrap();
    let spellings: Vec<&String> = fields.keys().filter(|name| name.ends_with("_ms")).collect();
    assert!(spellings.len() > 8);
    for name in spellings {
        let problems = Policy::from_toml(&format!("{name} = 5")).err().map(|found| found.to_string());
        assert!(!problems.unwrap_or_default().contains("known field"), "{name}");
    }
}

#[test]
fn what_jobs_refuse_is_in_no_schema_of_jobs() {
    for (field, value) in NOT_FOR_JOBS.iter().zip(["true", "\"x\"", "\"info\""]) {
        let text = format!("[[policies]]\nmatch = {{ default = true }}\n{field} = {value}\n");
        assert_eq!(wrong(&policy(), &json_of(&text)), Vec::<String>::new());
        assert!(!wrong(&config(), &json_of(&text)).is_empty(), "{field}");
        assert!(Config::parse(&text, KnownFields::default()).is_err(), "{field}");
    }
}

#[test]
fn everything_that_is_in_order_fits() {
    assert_eq!(wrong(&policy(), &json_of(RULE)), Vec::<String>::new());
    assert_eq!(wrong(&config(), &json_of(&format!("{CONFIG}{RULE}"))), Vec::<String>::new());
    assert_eq!(wrong(&template(), &json_of(&format!("{TEMPLATE}{RULE}"))), Vec::<String>::new());
    let mut seen = 0;
    for text in EXAMPLES {
        assert_eq!(wrong(&template(), &json_of(text)), Vec::<String>::new(), "{text}");
        seen += 1;
    }
    let guides = [
        include_str!("../../../../docs/guides/jobs.md"),
        include_str!("../../../../docs/guides/looking-at-jobs.md"),
        include_str!("../../../../docs/guides/running-jobs.md"),
    ];
    for (name, text) in guides.into_iter().flat_map(guide_files) {
        let schema = match name.as_str() {
            ".tidewheel/config.toml" => config(),
            name if name.ends_with(".toml") => template(),
            _ => continue,
        };
        // Some files of the guides are wrong on purpose, and the parser says so, too.
        if name.ends_with("config.toml") || parse_template(&text).is_ok() {
            assert_eq!(wrong(&schema, &json_of(&text)), Vec::<String>::new(), "{name}\n{text}");
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} files were found");
}

#[test]
fn what_is_wrong_does_not_fit() {
    let head = "id = 'x'\nversion = 'v1'\n[[nodes]]\nid = 'a'\nuses = 'control.terminal'\n";
    assert_eq!(wrong(&template(), &json_of(head)), Vec::<String>::new());
    for line in [
        "nam = 'x'",
        "kind = 'step'",
        "locks = [{ key = '' }]",
        "gates = [{ kind = 'script' }]",
        "needs = [{ target_branch = { name = 'a' }, merge_sentinel = { slug = 'b' } }]",
        "after = [{ node_id = 'a', policy = 'maybe' }]",
        "retry = { budget = 'many' }",
        "on.skipped = ['a']",
    ] {
        let text = format!("{head}{line}\n");
        assert!(!wrong(&template(), &json_of(&text)).is_empty(), "{line}");
        assert!(parse_template(&text).is_err(), "{line}");
    }
    for text in [
        "[scheduler]\ncapacity = 0",
        "[scheduler]\nprobe_interval = 5",
        "[scheduler]\nprobe_interval = '5'",
        "[commands]\na = 'b.toml'",
        "[jobs.logs]\nmax_size = 'large'",
        "[display.lists.jobs]\nfields = []",
        "[agents.x]\nargs = []",
        "[agents.x]\ncommand = []",
        "[agents.x]\ncommand = 'a'\nenv = ['A=b']",
        "[secrets]\nTOKEN = 'x'",
        "other = 1",
    ] {
        assert!(!wrong(&config(), &json_of(text)).is_empty(), "{text}");
        assert!(Config::parse(text, KnownFields::default()).is_err(), "{text}");
    }
}

/// Returns the files that a guide makes with `cat`.
fn guide_files(page: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("$ cat ") {
            files.push((name.to_owned(), String::new()));
            is_open = true;
        } else if line.starts_with("$ ") || line.starts_with("```") {
            is_open = false;
        } else if let (true, Some((_, text))) = (is_open, files.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    files
}

fn json_of(text: &str) -> Value {
    let table: toml::Table = text.parse().unwrap();
    plain(toml::Value::Table(table))
}

fn plain(value: toml::Value) -> Value {
    match value {
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        toml::Value::Array(items) => items.into_iter().map(plain).collect(),
        toml::Value::Datetime(instant) => instant.to_string().into(),
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
    }
}

/// Returns the places of a value that do not fit, as far as our schemas have words for it.
fn wrong(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "", &mut found);
    found
}

fn check(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    const NOTES: [&str; 6] = ["$schema", "title", "description", "default", "examples", "format"];
    let Some(words) = schema.as_object() else { return };
    for (word, said) in words.iter().filter(|(word, _)| !NOTES.contains(&word.as_str())) {
        let fits_each = |choices: &Value| {
            choices.as_array().unwrap().iter().filter(|choice| wrong(choice, value).is_empty()).count()
        };
        let fields = value.as_object();
        let size = || fields.map_or(0, serde_json::Map::len) as u64;
        let fits = match word.as_str() {
            "type" => match said {
                Value::Array(types) => types.iter().any(|one| is_type(value, one)),
                one => is_type(value, one),
            },
            "enum" => said.as_array().unwrap().contains(value),
            "const" => said == value,
            "pattern" => {
                let pattern = Regex::new(said.as_str().unwrap()).unwrap();
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "minLength" => {
                value.as_str().is_none_or(|text| text.chars().count() as u64 >= said.as_u64().unwrap())
            }
            "maxLength" => {
                value.as_str().is_none_or(|text| text.chars().count() as u64 <= said.as_u64().unwrap())
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= said.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= said.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= said.as_u64().unwrap()),
            "minProperties" => fields.is_none() || size() >= said.as_u64().unwrap(),
            "maxProperties" => fields.is_none() || size() <= said.as_u64().unwrap(),
            "required" => {
                let has =
                    |name: &Value| fields.is_none_or(|fields| fields.contains_key(name.as_str().unwrap()));
                said.as_array().unwrap().iter().all(has)
            }
            "anyOf" => fits_each(said) > 0,
            "oneOf" => fits_each(said) == 1,
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(said, item, &format!("{path}[{index}]"), found);
                }
                true
            }
            "propertyNames" => fields
                .is_none_or(|fields| fields.keys().all(|name| wrong(said, &name.as_str().into()).is_empty())),
            "properties" => {
                for (name, field) in fields.into_iter().flatten() {
                    check(&said[name], field, &format!("{path}.{name}"), found);
                }
                true
            }
            "additionalProperties" => {
                for (name, field) in fields.into_iter().flatten() {
                    if schema["properties"].get(name).is_some() {
                        continue;
                    }
                    match said {
                        Value::Bool(false) => found.push(format!("{path}.{name}: is not known")),
                        said => check(said, field, &format!("{path}.{name}"), found),
                    }
                }
                true
            }
            other => panic!("the checker does not know `{other}`"),
        };
        if !fits {
            found.push(format!("{path}: {word} {said}"));
        }
    }
}

fn is_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the checker does not know the type `{other}`"),
    }
}
