//! Every key of a template acts: a template that uses all of them is not the same without any one of them. The schema
//! says which keys there are, so that a new one has to stand here, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tidewheel_core::job::PinnedHead;
use tidewheel_core::job::template::{Inputs, Template};
use tidewheel_core::policy::Rules;
use tidewheel_core::schema;

use super::world::{load, wish};

const INNER: &str = "id = 'I'\nversion = 'v1'\n[params]\nx = ''\n[[nodes]]\nid = 'i'\nkind = 'shell'\n\
                     uses = 'cap.env.shell.command.run'\nargs = { script = 'echo ${x}' }\n";

/// A template with every key that there is, none with the value that it has by itself.
fn all() -> Value {
    let custom = |key: &str| json!([{ "custom": { "type_id": "package", "key": key } }]);
    json!({
        "id": "T",
        "version": "v1",
        "params": { "slug": "s", "count": 2 },
        "cli": { "positional": ["slug"], "named": { "many": "count" } },
        "policy": { "dependencies": { "missing_producer": "wait" } },
        "policies": [{ "match": { "tag": "slow" }, "max_retries": 1 }],
        "artifact_contracts": [{ "id": "package", "version": "v1" }, { "id": "answer", "version": "v1", "schema": { "type": "string" } }],
        "imports": [{ "name": "other", "path": "other.toml", "params": { "x": "${slug}" } }],
        "links": [{ "from": "other", "to": "a" }],
        "nodes": [
            {
                "id": "a",
                "name": "the ${slug}",
                "kind": "shell",
                "uses": "cap.env.shell.command.run",
                "args": { "script": "echo ${count}" },
                "errexit": false,
                "needs": [
                    { "plan_branch": { "slug": "s", "branch": "b" } },
                    { "plan_doc": { "slug": "s", "branch": "b" } },
                    { "plan_commits": { "slug": "s", "branch": "b" } },
                    { "target_branch": { "name": "main" } },
                    { "merge_sentinel": { "slug": "s" } },
                    { "command_patch": { "job_id": "checks" } },
                ],
                "produces": {
                    "succeeded": custom("k"), "failed": custom("f"), "blocked": custom("b"), "cancelled": custom("c"),
                },
                "locks": [{ "key": "k", "mode": "shared" }],
                "preconditions": [
                    { "kind": "clean_worktree" },
                    { "kind": "branch_exists", "branch": "main" },
                    { "kind": "pinned_head", "branch": "main" },
                    { "kind": "custom", "id": "x", "args": { "y": 1 } },
                ],
                "gates": [{ "kind": "approval", "required": false }],
                "tags": ["slow"],
                "on": { "succeeded": ["next"], "failed": ["mend"], "blocked": ["ask"], "cancelled": ["tidy"] },
            },
            { "id": "next", "kind": "gate", "uses": "control.terminal" },
            { "id": "mend", "kind": "gate", "uses": "control.terminal" },
            { "id": "ask", "kind": "gate", "uses": "control.terminal" },
            { "id": "tidy", "kind": "gate", "uses": "control.terminal" },
            {
                "id": "stop",
                "kind": "gate",
                "uses": "control.gate.stop_condition",
                "after": [{ "node_id": "other__i", "policy": "completion" }],
                "gates": [{ "kind": "script", "script": "test -e enough" }],
                "retry": { "mode": "until_gate", "budget": 3 },
                "on": { "failed": ["stop"] },
            },
            {
                "id": "checks",
                "kind": "gate",
                "uses": "control.gate.cicd",
                "args": { "auto_resolve_script": "true" },
                "gates": [{ "kind": "cicd", "script": "make check", "auto_resolve": true }],
            },
            {
                "id": "say",
                "uses": "cap.env.builtin.prompt.resolve",
                "args": { "prompt_text": "hi" },
                "produces": { "succeeded": [{ "custom": { "type_id": "prompt_text", "key": "p" } }] },
            },
            {
                "id": "answer",
                "kind": "agent",
                "uses": "cap.agent.invoke",
                "needs": [{ "custom": { "type_id": "prompt_text", "key": "p" } }],
                "produces": { "succeeded": [{ "custom": { "type_id": "answer", "key": "p" } }] },
            },
        ],
    })
}

/// Writes a value as TOML, tables within a line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name} = {}", toml(field))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn text(template: &Value) -> String {
    let fields = template.as_object().expect("it is a table").iter();
    fields.map(|(name, field)| format!("{name} = {}\n", toml(field))).collect()
}

/// Returns what becomes of a template: its jobs and its manifest, or that it is refused.
fn becomes(template: &Value) -> Result<String, String> {
    let text = text(template);
    let template = load(&[("main.toml", &text), ("other.toml", INNER)]).map_err(|found| found.to_string())?;
    let bound = bound(&template)?;
    let expanded = template.expand(&bound, &Rules::default()).map_err(|found| found.to_string())?;
    let mut wish = wish();
    for branch in expanded.pins() {
        wish.heads.insert(branch, PinnedHead { branch: "main".to_owned(), oid: "0".repeat(40) });
    }
    let run = expanded.materialise(&wish).map_err(|found| found.to_string())?;
    // A branch that is named is another wish than the current one.
    Ok(format!("{bound:?} {:?} {run:?}", expanded.pins()))
}

/// Gives inputs as a command line does.
fn bound(template: &Template) -> Result<BTreeMap<String, String>, String> {
    let inputs = vec!["given".to_owned()];
    let named = vec![("many".to_owned(), "3".to_owned())];
    let inputs = Inputs { positional: inputs, named, set: Vec::new() };
    template.bind(&inputs).map_err(|error| error.to_string())
}

/// Returns the ways to all fields and items.
fn ways(value: &Value, way: &[String], all: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        let next = [way, &[name]].concat();
        ways(child, &next, all);
        all.push(next);
    }
}

/// Takes a field or an item out.
fn without(template: &Value, way: &[String]) -> Value {
    let mut template = template.clone();
    let (last, above) = way.split_last().expect("it is no way to nowhere");
    let pointer: String = above.iter().map(|step| format!("/{step}")).collect();
    match template.pointer_mut(&pointer) {
        Some(Value::Object(fields)) => drop(fields.remove(last)),
        Some(Value::Array(items)) => drop(items.remove(last.parse().expect("it is a number"))),
        other => panic!("{way:?}: {other:?}"),
    }
    template
}

#[test]
fn a_template_is_another_one_without_any_of_its_keys() {
    let all = all();
    let whole = becomes(&all).expect("it is right");
    let mut found = Vec::new();
    ways(&all, &[], &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for way in found {
        let less = becomes(&without(&all, &way));
        assert_ne!(less.as_ref(), Ok(&whole), "{} has no effect", way.join("."));
    }
}

/// Collects the names of the fields of a schema. Policies have tests of their own.
fn fields(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(parts) => {
            for (part, inner) in parts {
                match (part.as_str(), inner) {
                    ("properties", Value::Object(properties)) => {
                        names.extend(properties.keys().cloned());
                        properties
                            .iter()
                            .filter(|(name, _)| *name != "policies")
                            .for_each(|(_, field)| fields(field, names));
                    }
                    _ => fields(inner, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, names)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_schema_is_looked_at_here() {
    let mut names = BTreeSet::new();
    fields(&schema::template(), &mut names);
    let mut found = Vec::new();
    ways(&all(), &[], &mut found);
    let used: BTreeSet<String> = found.into_iter().flatten().collect();
    let missing: Vec<&String> = names.difference(&used).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(names.len() > 40, "{names:?}");
}
