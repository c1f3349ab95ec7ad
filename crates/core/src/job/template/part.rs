//! Reads the parts of a node: artifacts, locks, preconditions, gates.

use super::node::{Draft, Gate, Named, Place};
use super::read::Reader;
use super::scope::boolean;
use crate::document::{self, Data, Node, Problem, Table};
use crate::job::{Artifact, Branch, Lock, LockMode, NodeId, Precondition};

use super::head::tables;

/// Reads a list of artifacts: each a table with one key, its kind.
pub(super) fn artifacts(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>, name: &str) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for (index, item) in tables(table, name, reader.report).into_iter().enumerate() {
        let path = format!("{}[{index}]", table.path_to(name));
        let span = item.span.clone();
        let Some(outer) = reader.report.table(&path, item) else { continue };
        let Some(artifact) = artifact(reader, &path, outer) else { continue };
        let place = reader.place(span.clone());
        let wrong = match &artifact {
            // A parameter that nobody gave, and a node or a job: both are looked at with the whole template.
            named if named.slug().is_some_and(|slug| slug.trim().is_empty()) => None,
            Artifact::CommandPatch { job_id } if NodeId::new(job_id).is_ok() => None,
            other => other.check().err(),
        };
        if let Some(error) = wrong {
            reader.report.at(span, Problem::new(path, error.to_string()));
        } else if found.iter().any(|other| other.artifact == artifact) {
            reader.report.at(span, Problem::new(path, format!("is `{artifact}` a second time")));
        } else {
            found.push(Named { artifact, place });
        }
    }
    found
}

fn artifact(reader: &mut Reader<'_, '_, '_>, path: &str, mut outer: Table<'_>) -> Option<Artifact> {
    const KINDS: [&str; 7] = [
        "plan_branch",
        "plan_doc",
        "plan_commits",
        "target_branch",
        "merge_sentinel",
        "command_patch",
        "custom",
    ];
    let kinds: Vec<&str> =
        KINDS.into_iter().filter(|kind| outer.entries.iter().any(|entry| entry.key == *kind)).collect();
    let [kind] = kinds.as_slice() else {
        if kinds.is_empty() && !outer.entries.is_empty() {
            outer.finish(reader.report, &KINDS);
        } else {
            let message = format!("must have exactly one of {}", KINDS.join(", "));
            reader.report.at(outer.span.clone(), Problem::new(path, message));
        }
        return None;
    };
    let inner = outer.table(kind, reader.report);
    outer.finish(reader.report, &KINDS);
    let mut inner = inner?;
    let (artifact, fields): (_, &[&str]) = match *kind {
        "plan_branch" | "plan_doc" | "plan_commits" => {
            let slug = reader.required_text(&mut inner, "slug");
            let branch = reader.text(&mut inner, "branch").unwrap_or_default();
            let artifact = slug.map(|slug| match *kind {
                "plan_branch" => Artifact::PlanBranch { slug, branch },
                "plan_doc" => Artifact::PlanDoc { slug, branch },
                _ => Artifact::PlanCommits { slug, branch },
            });
            (artifact, &["slug", "branch"])
        }
        "target_branch" => {
            let name = reader.required_text(&mut inner, "name");
            (name.map(|name| Artifact::TargetBranch { name }), &["name"])
        }
        "merge_sentinel" => {
            let slug = reader.required_text(&mut inner, "slug");
            (slug.map(|slug| Artifact::MergeSentinel { slug }), &["slug"])
        }
        "command_patch" => {
            let job_id = reader.required_text(&mut inner, "job_id");
            (job_id.map(|job_id| Artifact::CommandPatch { job_id }), &["job_id"])
        }
        _ => {
            let type_id = reader.required_text(&mut inner, "type_id");
            let key = reader.required_text(&mut inner, "key");
            let artifact = type_id.zip(key).map(|(type_id, key)| Artifact::Custom { type_id, key });
            (artifact, &["type_id", "key"])
        }
    };
    inner.finish(reader.report, fields);
    artifact
}

pub(super) fn locks(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>) -> Vec<Lock> {
    const LONGEST: usize = 200;
    let mut locks: Vec<Lock> = Vec::new();
    for (index, item) in tables(table, "locks", reader.report).into_iter().enumerate() {
        let path = format!("{}.locks[{index}]", table.path);
        let Some(mut lock) = table_with(reader, &path, item, "key") else { continue };
        let key = reader.required_text(&mut lock, "key");
        let mode = lock.word("mode", reader.report, LockMode::ALL, LockMode::name);
        let mode = mode.unwrap_or(LockMode::Exclusive);
        if let Some(key) = key {
            let problem = if key.trim().is_empty() {
                Some("must not be empty".to_owned())
            } else if key.len() > LONGEST || key.chars().any(char::is_control) {
                Some(format!("must have at most {LONGEST} bytes and no control characters"))
            } else if locks.iter().any(|lock| lock.key == key) {
                Some(format!("is `{key}`, which the node locks already"))
            } else {
                None
            };
            match problem {
                Some(message) => lock.fail("key", message, reader.report),
                None => locks.push(Lock { key, mode }),
            }
        }
        lock.finish(reader.report, &["key", "mode"]);
    }
    locks
}

pub(super) fn preconditions(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>, draft: &mut Draft) {
    const KINDS: [&str; 4] = ["clean_worktree", "branch_exists", "pinned_head", "custom"];
    for (index, item) in tables(table, "preconditions", reader.report).into_iter().enumerate() {
        let path = format!("{}.preconditions[{index}]", table.path);
        let Some(mut given) = table_with(reader, &path, item, "kind") else { continue };
        let Some(kind) = given.required("kind", reader.report, Table::string) else { continue };
        let known: &[&str] = match kind.as_ref() {
            "clean_worktree" => {
                draft.preconditions.push(Precondition::CleanWorktree);
                &["kind"]
            }
            "branch_exists" => {
                let branch = branch(reader, &mut given).map(|branch| branch.to_string());
                draft.preconditions.push(Precondition::BranchExists { branch });
                &["kind", "branch"]
            }
            "pinned_head" => {
                let branch = branch(reader, &mut given);
                if draft.pin.replace(branch).is_some() {
                    given.fail("kind", "is pinned_head a second time".to_owned(), reader.report);
                }
                &["kind", "branch"]
            }
            "custom" => {
                given.path = format!("{path}.custom");
                custom(reader, &mut given, draft);
                &["kind", "id", "args"]
            }
            other => {
                given.fail_with_words("kind", &KINDS, other, reader.report);
                continue;
            }
        };
        given.finish(reader.report, known);
    }
}

/// Opens a table, and says how a word that stands in its place would be written.
fn table_with<'a>(
    reader: &mut Reader<'_, '_, '_>,
    path: &str,
    item: Node<'a>,
    field: &str,
) -> Option<Table<'a>> {
    match &item.data {
        Data::String(text) if document::is_plain(text) => {
            let problem = Problem::new(path, "must be a table, found a string");
            reader.report.at(item.span, problem.help(format!("write {{ {field} = \"{text}\" }}")));
            None
        }
        _ => reader.report.table(path, item),
    }
}

/// Reads a branch; none, or an empty one, is the current one.
fn branch(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>) -> Option<Branch> {
    let text = reader.text(table, "branch").filter(|text| !text.is_empty())?;
    Branch::new(&text).map_err(|error| table.fail("branch", error.to_string(), reader.report)).ok()
}

fn custom(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>, draft: &mut Draft) {
    let id = reader.required_text(table, "id");
    let args = table.json_object("args", reader.report).unwrap_or_default();
    let path = table.path_to("args");
    match reader.scope.fill_value(args.into(), &path) {
        Ok(serde_json::Value::Object(args)) => {
            if let Some(id) = id {
                draft.preconditions.push(Precondition::Custom { id, args });
            }
        }
        Ok(_) => {}
        Err(unfilled) => reader.unfilled(unfilled, &table.place_of("args")),
    }
}

pub(super) fn gates(reader: &mut Reader<'_, '_, '_>, table: &mut Table<'_>) -> Vec<(Gate, Place)> {
    const KINDS: [&str; 3] = ["approval", "script", "cicd"];
    let mut gates = Vec::new();
    for (index, item) in tables(table, "gates", reader.report).into_iter().enumerate() {
        let path = format!("{}.gates[{index}]", table.path);
        let place = reader.place(item.span.clone());
        let Some(mut given) = table_with(reader, &path, item, "kind") else { continue };
        let Some(kind) = given.required("kind", reader.report, Table::string) else { continue };
        given.path = format!("{path}.{kind}");
        let (gate, known): (_, &[&str]) = match kind.as_ref() {
            "approval" => {
                let required = reader.value(&mut given, "required", boolean).unwrap_or(true);
                (Some(Gate::Approval { required }), &["kind", "required"])
            }
            "script" => {
                let script = reader.required_text(&mut given, "script");
                (script.map(|script| Gate::Script { script }), &["kind", "script"])
            }
            "cicd" => {
                let script = reader.text(&mut given, "script").unwrap_or_default();
                let auto_resolve = reader.value(&mut given, "auto_resolve", boolean).unwrap_or(false);
                (Some(Gate::Cicd { script, auto_resolve }), &["kind", "script", "auto_resolve"])
            }
            other => {
                given.path.clone_from(&path);
                given.fail_with_words("kind", &KINDS, other, reader.report);
                continue;
            }
        };
        given.finish(reader.report, known);
        gates.extend(gate.map(|gate| (gate, place)));
    }
    gates
}
