//! `build.materialize_step`: a step of a build gets its branch, and its place among the plans.

use serde_json::{Value, json};
use tidewheel_core::job::{Branch, Slug};

use super::beneath;
use super::node::{Node, NodeEnd};
use crate::git::Repository;

pub(super) fn run(node: &Node<'_>) -> NodeEnd {
    match materialize(node) {
        Ok(summary) => NodeEnd::succeeded(summary),
        Err(what) => NodeEnd::failed(format!("build.materialize_step failed: {what}"), 1),
    }
}

fn materialize(node: &Node<'_>) -> Result<String, String> {
    let text = |name: &str| {
        let text = node.arg(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("it has no arg {name}"))
    };
    let slug = |name: &str| Slug::new(text(name)?).map_err(|error| error.to_string());
    let branch = |name: &str| Branch::new(text(name)?).map_err(|error| error.to_string());
    let (build, step, plan) = (slug("build_id")?, slug("step_key")?, slug("slug")?);
    let (own, target) = (branch("branch")?, branch("target")?);
    let git = Repository::asked_by(node.around.git(), node.root);
    let head = |branch: &Branch| git.head_of(branch.as_str()).map_err(|error| error.to_string());
    let base = head(&target)?.ok_or_else(|| format!("required branch `{target}` does not exist"))?;
    let oid = match head(&own)? {
        Some(oid) => oid,
        None => {
            git.make_branch(own.as_str(), &base).map_err(|error| error.to_string())?;
            base.clone()
        }
    };
    let document = json!({
        "version": 1,
        "build_id": build.as_str(),
        "step_key": step.as_str(),
        "slug": plan.as_str(),
        "branch": own.as_str(),
        "branch_oid": oid,
        "target": target.as_str(),
        "target_oid": base,
        "job_id": node.record.id.as_str(),
        "run_id": node.record.run().map(|run| run.to_string()),
        "node_id": node.record.node().map(|id| id.to_string()),
        "written_at": node.around.now().to_string(),
    });
    let path = format!("implementation-plans/builds/{build}/steps/{step}/materialized.json");
    let text = format!("{document:#}\n");
    let written = beneath::write(node.around.data(), &path, text.as_bytes());
    written.map_err(|error| format!("cannot write .tidewheel/{path}: {error}"))?;
    Ok(format!("step {step} of build {build} is on branch {own}"))
}
