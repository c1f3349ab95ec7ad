//! The patch files of a pipeline: which, what is in them, and whether they are as they were when somebody looked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidewheel_core::job::JobId;
use tidewheel_core::job::template::patch_files;

use super::super::beneath;
use super::super::node::Node;

/// A patch with more bytes is none that anybody reads.
const MOST_BYTES: u64 = 64 << 20;

/// What is kept of a pipeline that was looked at.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prepared {
    pub(super) version: u32,
    pub(super) job_id: String,
    pub(super) files: Vec<Kept>,
    pub(super) written_at: String,
}

/// What is kept of one patch file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) path: String,
    pub(super) bytes: usize,
    /// The blake3 hash of it.
    pub(super) digest: String,
}

/// A patch file with what is in it.
#[derive(Debug)]
pub(super) struct PatchFile {
    pub(super) kept: Kept,
    pub(super) bytes: Vec<u8>,
}

/// Reads the patches of a node: those that it is given, or those that were prepared in its run.
pub(super) fn of(node: &Node<'_>) -> Result<Vec<PatchFile>, String> {
    let prepared = match job_with(node, "cap.env.builtin.patch.pipeline_prepare")? {
        Some(job) => read_prepared(node, &job)?,
        None => None,
    };
    let given = match node.arg("files_json") {
        Some(value) => Some(patch_files(value).map_err(|why| format!("files_json {why}"))?),
        None => None,
    };
    let (paths, known) = match (given, prepared) {
        (Some(paths), prepared) => {
            // Whoever names others than were prepared means them as they are.
            let is_same = |prepared: &Prepared| prepared.files.iter().map(|file| &file.path).eq(&paths);
            let known = prepared.filter(is_same).map(|prepared| prepared.files);
            (paths, known)
        }
        (None, Some(prepared)) => {
            let paths = prepared.files.iter().map(|file| file.path.clone()).collect();
            (paths, Some(prepared.files))
        }
        (None, None) => {
            return Err("it has no files_json, and no patches were prepared in its run".to_owned());
        }
    };
    let files = read_all(node, &paths)?;
    for (file, known) in files.iter().zip(known.iter().flatten()) {
        if file.kept != *known {
            return Err(format!("`{}` was changed since it was prepared", file.kept.path));
        }
    }
    Ok(files)
}

/// Reads patch files beneath the repository.
pub(super) fn read_all(node: &Node<'_>, paths: &[String]) -> Result<Vec<PatchFile>, String> {
    let read = |path: &String| {
        let bytes = beneath::read(node.root, path, MOST_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read `{path}`: {error}"))?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        Ok(PatchFile { kept: Kept { path: path.clone(), bytes: bytes.len(), digest }, bytes })
    };
    paths.iter().map(read).collect()
}

/// Returns the one job of the run that does this; `None` if there is none or more than one.
pub(super) fn job_with(node: &Node<'_>, uses: &str) -> Result<Option<JobId>, String> {
    let manifest = node.around.manifest();
    let manifest = manifest.map_err(|error| format!("the manifest of its run cannot be read: {error}"))?;
    let nodes = manifest.iter().flat_map(|manifest| manifest.nodes.values());
    let mut jobs = nodes.filter(|other| other.uses == uses).map(|other| other.job_id.clone());
    let first = jobs.next();
    Ok(first.filter(|_| jobs.next().is_none()))
}

fn read_prepared(node: &Node<'_>, job: &JobId) -> Result<Option<Prepared>, String> {
    match beneath::read(node.around.data(), &format!("jobs/{job}/{}", super::prepare::FILE), MOST_BYTES) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes);
            read.map(Some).map_err(|error| format!("what was prepared cannot be read: {error}"))
        }
        Err(beneath::BeneathError::Missing) => Ok(None),
        Err(error) => Err(format!("what was prepared cannot be read: {error}")),
    }
}

/// Writes a document into the directory of the job of a node.
pub(super) fn keep(node: &Node<'_>, name: &str, document: &Value) -> Result<(), String> {
    keep_bytes(node, name, format!("{document:#}\n").as_bytes())
}

/// Writes a file into the directory of the job of a node.
pub(super) fn keep_bytes(node: &Node<'_>, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = format!("jobs/{}/{name}", node.record.id);
    let written = beneath::write(node.around.data(), &path, bytes);
    written.map_err(|error| format!("cannot write .tidewheel/{path}: {error}"))
}
