//! Templates: graphs of nodes with parameters and imports.

use serde_json::{Value, json};

use super::policy::rules_of_jobs;
use super::value::{
    NODE_ID, boolean, document, filled, list, map, number, one_of_fields, or_params, table, text, usual,
    words,
};
use crate::job::template::LABELS;
use crate::job::{AfterPolicy, LockMode, MissingProducer, NodeOutcome};
use crate::policy::Kind;

/// Returns the schema of a template.
///
/// ```
/// let schema = tidewheel_core::schema::template();
/// assert_eq!(schema["required"], serde_json::json!(["id", "version"]));
/// ```
#[must_use]
pub fn template() -> Value {
    let about = "A graph of nodes, each of which becomes a job.";
    let word = |about: &str| json!({ "type": "string", "description": about, "pattern": r"^\S{1,120}$" });
    let top = table(
        about,
        &["id", "version"],
        vec![
            ("id", word("Its id, by which it can be run.")),
            ("version", word("Its version.")),
            ("params", params("Parameters with their defaults; `${name}` puts one in.")),
            ("policy", policy()),
            (
                "policies",
                rules_of_jobs("How its nodes are run; these come before those of the configuration."),
            ),
            ("artifact_contracts", list("The types of artifacts that it makes itself.", contract())),
            ("nodes", list("What is to be done.", node())),
            ("imports", list("Other templates inside this one.", import())),
            ("links", list("What follows what, for whole imports.", link())),
            ("cli", cli()),
        ],
    );
    document("Tidewheel template", about, top)
}

fn params(about: &str) -> Value {
    let mut params = map(about, json!({ "type": ["string", "number", "boolean"] }));
    params["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_.-]+$" });
    params
}

fn policy() -> Value {
    let all = MissingProducer::ALL.iter().map(|choice| choice.name());
    let choice = words("What happens to a job when no job makes an artifact that it needs.", all);
    let dependencies = table("Artifacts that nodes need.", &[], vec![("missing_producer", choice)]);
    table("What holds for the template as a whole.", &[], vec![("dependencies", dependencies)])
}

fn contract() -> Value {
    let schema = json!({
        "type": "object",
        "description": "What payloads have to look like: the words of JSON schema that are checked.",
    });
    let fields =
        vec![("id", filled("The type of artifacts.")), ("version", text("Its version.")), ("schema", schema)];
    table("A type of artifacts.", &["id", "version"], fields)
}

fn import() -> Value {
    let fields = vec![
        ("name", node_id("What stands before the ids of its nodes: `name__id`.")),
        ("path", filled("Its file, from the directory of this one.")),
        ("params", params("What its parameters are.")),
    ];
    table("Another template inside this one.", &["name", "path"], fields)
}

fn link() -> Value {
    let fields =
        vec![("from", filled("What comes first.")), ("to", filled("What follows when it succeeded."))];
    table("One import, or node, after another.", &["from", "to"], fields)
}

fn cli() -> Value {
    let fields = vec![
        ("positional", list("The parameters that are given by their place.", json!({ "type": "string" }))),
        ("named", map("Flags, and the parameters that they set.", json!({ "type": "string" }))),
    ];
    table("How parameters are given on a command line.", &[], fields)
}

fn node_id(about: &str) -> Value {
    json!({ "type": "string", "description": about, "pattern": NODE_ID })
}

fn node() -> Value {
    let kinds = [Kind::Builtin, Kind::Shell, Kind::Agent, Kind::Gate].map(Kind::name);
    let uses = LABELS.iter().map(|label| label.uses);
    let is_spoken_of = |outcome: &&NodeOutcome| **outcome != NodeOutcome::Skipped;
    let outcomes = || NodeOutcome::ALL.iter().filter(is_spoken_of).map(|outcome| outcome.name());
    let on_each = |of: Value| outcomes().map(|name| (name, of.clone())).collect::<Vec<_>>();
    let targets = list("Nodes, by their ids.", json!({ "type": "string" }));
    table(
        "One piece of work, which becomes a job.",
        &["id", "uses"],
        vec![
            ("id", node_id("Its id, unique in the template.")),
            ("name", text("What people call it.")),
            ("kind", usual(words("Who executes it; it has to fit `uses`.", kinds), Kind::Builtin.name())),
            ("uses", words("What it does.", uses)),
            ("args", map("The arguments of what it does.", json!({}))),
            ("after", after()),
            ("needs", list("The artifacts that have to be there before it starts.", artifact())),
            (
                "produces",
                table(
                    "The artifacts that it makes, by how it ends.",
                    &[],
                    on_each(list("Artifacts.", artifact())),
                ),
            ),
            ("locks", list("What it holds while it runs.", lock())),
            ("preconditions", list("What has to be true before it starts.", preconditions())),
            ("gates", list("What has to open.", gates())),
            ("errexit", or_params(boolean(ERREXIT, true), "true|false")),
            ("retry", retry()),
            ("on", table("What runs when it has ended, by how.", &[], on_each(targets))),
            ("tags", list("Words that policies can match.", json!({ "type": "string", "pattern": r"\S" }))),
        ],
    )
}

/// What `errexit` says, of a node as of an agent.
pub(super) const ERREXIT: &str = "Whether a script ends at its first line that fails, and, where the shell has `pipefail`, at a pipe with a part that fails.";

fn after() -> Value {
    let policies = words("How the other has to end.", AfterPolicy::ALL.iter().map(|policy| policy.name()));
    let fields = vec![
        ("node_id", filled("The other node.")),
        ("policy", usual(policies, AfterPolicy::default().name())),
    ];
    let written = table("A node that comes before it, and how that has to end.", &["node_id"], fields);
    list("The nodes that come before it.", json!({ "anyOf": [{ "type": "string" }, written] }))
}

fn artifact() -> Value {
    let of_plan = |about: &str| {
        let fields = vec![("slug", filled("The plan.")), ("branch", text("Its branch."))];
        table(about, &["slug"], fields)
    };
    let one = |about: &str, name, of: &str| table(about, &[name], vec![(name, filled(of))]);
    let fields = vec![("type_id", filled("Its type, which has a contract.")), ("key", filled("Which one."))];
    one_of_fields(
        "An artifact.",
        vec![
            ("plan_branch", of_plan("The branch of a plan.")),
            ("plan_doc", of_plan("The document of a plan.")),
            ("plan_commits", of_plan("Commits on the branch of a plan.")),
            ("target_branch", one("A branch.", "name", "Its name.")),
            ("merge_sentinel", one("A merge that is under way.", "slug", "The plan.")),
            ("command_patch", one("The patch of a job.", "job_id", "The job.")),
            ("custom", table("An artifact of a type of your own.", &["type_id", "key"], fields)),
        ],
    )
}

fn lock() -> Value {
    let mut key = filled("What is locked.");
    key["maxLength"] = json!(200);
    let mode = words("Whether others may hold it, too.", LockMode::ALL.iter().map(|mode| mode.name()));
    let fields = vec![("key", key), ("mode", usual(mode, LockMode::Exclusive.name()))];
    table("A lock.", &["key"], fields)
}

fn kind(name: &str) -> (&'static str, Value) {
    ("kind", json!({ "description": "Which one it is.", "const": name }))
}

fn preconditions() -> Value {
    let branch = || ("branch", text("The branch; the current one where none is named."));
    let custom =
        vec![kind("custom"), ("id", filled("Its name.")), ("args", map("Its arguments.", json!({})))];
    json!({
        "oneOf": [
            table("The working tree has no changes.", &["kind"], vec![kind("clean_worktree")]),
            table("A branch is there.", &["kind"], vec![kind("branch_exists"), branch()]),
            table("A branch stands where it stood.", &["kind"], vec![kind("pinned_head"), branch()]),
            table("Something else.", &["kind", "id"], custom),
        ],
    })
}

fn gates() -> Value {
    let required = or_params(boolean("Whether it is needed at all.", true), "true|false");
    let resolve = or_params(boolean("Whether a fix is tried before they fail.", false), "true|false");
    let checks = vec![kind("cicd"), ("script", text("The script.")), ("auto_resolve", resolve)];
    let script = vec![kind("script"), ("script", text("The script."))];
    json!({
        "oneOf": [
            table("A person.", &["kind"], vec![kind("approval"), ("required", required)]),
            table("A script that has to succeed.", &["kind", "script"], script),
            table("Checks that have to succeed.", &["kind"], checks),
        ],
    })
}

fn retry() -> Value {
    let mode = words("When it comes back.", ["never", "on_failure", "until_gate"]);
    let fields = vec![
        ("mode", or_params(usual(mode, "on_failure"), "")),
        ("budget", or_params(usual(number("How many times.", 0), 1), "[0-9]+")),
    ];
    table("How often a loop comes back to a node; attempts of a job are the policy's.", &[], fields)
}
