//! The template of the documentation, with everything in it.

use std::collections::BTreeMap;

use tidewheel_core::job::template::Inputs;
use tidewheel_core::job::{Artifact, Lock, LockMode, Loop, NodeId, NodeOutcome, Precondition};
use tidewheel_core::policy::Rules;

use super::world::{Find, load, wish};

const RELEASE: &str = r#"
id = "template.release"
version = "v1"
[cli]
positional = ["slug"]
named = { target = "target_branch" }
[params]
slug = ""
target_branch = "main"
[[artifact_contracts]]
id = "package"
version = "v1"
[[imports]]
name = "draft"
path = "draft.toml"
[[links]]
from = "draft"
to = "ship"
[[policies]]
match = { pattern = "^test_" }
max_retries = 2
backoff = "exponential"
timeout = "10m"
[[nodes]]
id = "build"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "make" }
after = [{ node_id = "draft__persist", policy = "success" }]
needs = [{ plan_doc = { slug = "${slug}", branch = "draft/${slug}" } }]
produces.succeeded = [{ custom = { type_id = "package", key = "${slug}" } }]
locks = [{ key = "branch:${target_branch}", mode = "exclusive" }]
preconditions = [{ kind = "clean_worktree" }]
gates = [{ kind = "approval", required = true }]
retry = { mode = "on_failure", budget = 2 }
on.failed = ["notify", "build"]
[[nodes]]
id = "ship"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { command = ["ship", "${slug}"] }
needs = [{ custom = { type_id = "package", key = "${slug}" } }]
[[nodes]]
id = "notify"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { command = "notify ${slug}" }
"#;

const DRAFT: &str = r#"
id = "template.draft"
version = "v3"
[[nodes]]
id = "persist"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "true" }
"#;

#[test]
fn everything_that_a_template_says_is_in_its_jobs() {
    let template = load(&[("release.toml", RELEASE), ("draft.toml", DRAFT)]).unwrap();
    let inputs = Inputs {
        positional: vec!["alpha".to_owned()],
        named: vec![("target".to_owned(), "trunk".to_owned())],
        set: Vec::new(),
    };
    let given = template.bind(&inputs).unwrap();
    let run = template.expand(&given, &Rules::default()).unwrap().materialise(&wish()).unwrap();

    let nodes: Vec<String> = run.records.iter().map(|record| record.node().unwrap().to_string()).collect();
    assert_eq!(nodes, ["draft__persist", "build", "ship", "notify"]);
    let times: Vec<_> = run.records.iter().map(|record| record.created_at).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "the order of the file is the order of the queue");

    let build = run.job("build");
    assert_eq!(build.command, ["sh", "-e", "-c", "make"]);
    assert_eq!(build.child_args, ["__workflow-node", "--job-id", build.id.as_str()]);
    let schedule = &build.schedule;
    assert_eq!(run.after("build"), ["draft__persist:success"]);
    let plan = Artifact::PlanDoc { slug: "alpha".to_owned(), branch: "draft/alpha".to_owned() };
    assert_eq!(schedule.dependencies[0].artifact, plan);
    let package = Artifact::Custom { type_id: "package".to_owned(), key: "alpha".to_owned() };
    assert_eq!(schedule.artifacts, [package]);
    assert_eq!(schedule.locks, [Lock { key: "branch:trunk".to_owned(), mode: LockMode::Exclusive }]);
    assert_eq!(schedule.preconditions, [Precondition::CleanWorktree]);
    let approval = schedule.approval.as_ref().unwrap();
    assert!(approval.required);
    assert_eq!(approval.requested_by.as_deref(), Some("ann"));

    assert_eq!(run.after("ship"), ["draft__persist:success"], "the link leads from the import to the node");
    assert_eq!(run.job("ship").command, ["ship", "alpha"]);
    assert_eq!(run.after("notify"), ["build:failed"]);
    assert_eq!(run.roots, [run.job("draft__persist").id.clone()]);

    let kept = &run.manifest.nodes[&NodeId::new("build").unwrap()];
    assert_eq!(kept.routes, ["build", "notify"].map(|id| NodeId::new(id).unwrap()));
    assert_eq!(kept.loops, [Loop { on: NodeOutcome::Failed, to: NodeId::new("build").unwrap() }]);
    assert_eq!(kept.retry.as_ref().unwrap().budget, 2);
    assert!(kept.produces.contains_key(&NodeOutcome::Succeeded));
    assert_eq!(kept.gates[0], serde_json::json!({ "kind": "approval", "required": true }));
    assert_eq!(run.manifest.params["slug"], "alpha");

    let metadata = |name: &str| build.metadata.get(name).cloned().unwrap_or_default();
    assert_eq!(metadata("workflow_template_id"), "template.release");
    assert_eq!(metadata("workflow_template_version"), "v1");
    assert_eq!(metadata("workflow_template_selector"), "file:main.toml");
    assert_eq!(metadata("workflow_executor_class"), "environment_shell");
    assert_eq!(metadata("workflow_executor_operation"), "command.run");
    assert_eq!(metadata("workflow_control_policy"), serde_json::Value::Null);
    assert_eq!(metadata("workflow_gates"), serde_json::json!(["approval(required=true)"]));
    assert_eq!(metadata("plan"), "alpha");
    assert_eq!(metadata("workflow_policy_snapshot_hash"), run.manifest.policy_snapshot_hash);
    assert_eq!(run.manifest.policy_snapshot_hash.len(), 64);
}

#[test]
fn the_hash_of_a_run_depends_on_what_was_expanded_and_on_nothing_else() {
    let template = load(&[("release.toml", RELEASE), ("draft.toml", DRAFT)]).unwrap();
    let hash = |slug: &str| {
        let given = BTreeMap::from([("slug".to_owned(), slug.to_owned())]);
        template.expand(&given, &Rules::default()).unwrap().snapshot_hash()
    };
    assert_eq!(hash("alpha"), hash("alpha"));
    assert_ne!(hash("alpha"), hash("beta"));
}
