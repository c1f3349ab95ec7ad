//! Looks at every patch of a pipeline, and writes down what it found. Nothing is applied.

use serde_json::json;
use tidewheel_core::job::template::patch_files;

use super::super::node::{Node, NodeEnd};
use super::apply::Scratch;
use super::files;

/// What was found.
pub(super) const FILE: &str = "patch-pipeline.json";

pub(in super::super) fn run(node: &Node<'_>) -> NodeEnd {
    match prepare(node) {
        Ok(count) => NodeEnd::succeeded(format!("patch.pipeline_prepare found {count} patches in order")),
        Err(what) => NodeEnd::failed(format!("patch.pipeline_prepare failed: {what}"), 1),
    }
}

fn prepare(node: &Node<'_>) -> Result<usize, String> {
    let given = node.arg("files_json").ok_or("it has no files_json")?;
    let paths = patch_files(given).map_err(|why| format!("files_json {why}"))?;
    let files = files::read_all(node, &paths)?;
    let scratch = Scratch::new(node)?;
    let names = files.iter().map(|file| scratch.names(file)).collect::<Result<Vec<_>, String>>()?;
    let document = json!({
        "version": 1,
        "job_id": node.record.id.as_str(),
        "files": files.iter().zip(&names).map(|(file, names)| {
            let mut kept = json!(file.kept);
            kept["touches"] = json!(names);
            kept
        }).collect::<Vec<_>>(),
        "written_at": node.around.now().to_string(),
    });
    files::keep(node, FILE, &document)?;
    Ok(files.len())
}
