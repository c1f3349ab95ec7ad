//! Puts together what a pipeline of patches came to: one patch, and what it is made of.

use serde_json::json;

use super::super::beneath;
use super::super::node::{Node, NodeEnd};
use super::{execute, files};

/// The patch of the job, for others to take.
const PATCH: &str = "command.patch";
/// What it is made of.
const SUMMARY: &str = "patch-pipeline.finalize.json";
const MOST_BYTES: u64 = 1 << 30;

pub(in super::super) fn run(node: &Node<'_>) -> NodeEnd {
    match finalize(node) {
        Ok(bytes) => NodeEnd::succeeded(format!("patch.pipeline_finalize wrote a patch of {bytes} bytes")),
        Err(what) => NodeEnd::failed(format!("patch.pipeline_finalize failed: {what}"), 1),
    }
}

fn finalize(node: &Node<'_>) -> Result<usize, String> {
    let job = files::job_with(node, "cap.env.builtin.patch.execute_pipeline")?;
    let job = job.ok_or("its run has no single node with patch.execute_pipeline")?;
    let files = files::of(node).or_else(|why| match node.arg("files_json") {
        Some(_) => Err(why),
        // Nothing was prepared, and the patches are known to the one who applied them.
        None => Ok(Vec::new()),
    })?;
    let whole = beneath::read(node.around.data(), &format!("jobs/{job}/{}", execute::FILE), MOST_BYTES);
    let whole = whole.map_err(|error| format!("what job {job} applied cannot be read: {error}"))?;
    files::keep_bytes(node, PATCH, &whole)?;
    let document = json!({
        "version": 1,
        "job_id": node.record.id.as_str(),
        "applied_by": job.as_str(),
        "files": files.iter().map(|file| &file.kept).collect::<Vec<_>>(),
        "patch": format!(".tidewheel/jobs/{}/{PATCH}", node.record.id),
        "bytes": whole.len(),
        "digest": blake3::hash(&whole).to_hex().to_string(),
        "written_at": node.around.now().to_string(),
    });
    files::keep(node, SUMMARY, &document)?;
    Ok(whole.len())
}
