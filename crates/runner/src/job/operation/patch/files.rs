//! The patch files of a pipeline: which, what is in them, and whether they are as they were when somebody looked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidewheel_core::job::JobId;
use tidewheel_core::job::template::patch_files;

use super::super::beneath;
use super::super::execution_root::{beneath_root, execution_root};
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
    /// As it was named.
    pub(super) path: String,
    /// The directory that it was named from, relative to the root: where its node runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) from: String,
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
    let here = from(node)?;
    let (named, known): (Vec<(String, String)>, _) = match (given, prepared) {
        (Some(paths), prepared) => {
            // Whoever names others than were prepared means them as they are.
            let is_same = |prepared: &Prepared| prepared.files.iter().map(|file| &file.path).eq(&paths);
            match prepared.filter(is_same) {
                Some(prepared) => (named(&prepared), Some(prepared.files)),
                None => (paths.into_iter().map(|path| (here.clone(), path)).collect(), None),
            }
        }
        (None, Some(prepared)) => (named(&prepared), Some(prepared.files)),
        (None, None) => {
            return Err("it has no files_json, and no patches were prepared in its run".to_owned());
        }
    };
    let files = read(node, &named)?;
    for (file, known) in files.iter().zip(known.iter().flatten()) {
        if file.kept != *known {
            return Err(format!("`{}` was changed since it was prepared", file.kept.path));
        }
    }
    Ok(files)
}

/// Returns the files that were prepared, each with the directory that it was named from.
fn named(prepared: &Prepared) -> Vec<(String, String)> {
    prepared.files.iter().map(|file| (file.from.clone(), file.path.clone())).collect()
}

/// Returns the directory that a node names files from, relative to the root; nothing for that itself.
fn from(node: &Node<'_>) -> Result<String, String> {
    let directory = execution_root(node.root, &node.record.metadata).map_err(|error| error.to_string())?;
    let root = node.root.canonicalize().map_err(|error| format!("the root cannot be found: {error}"))?;
    let from = directory.strip_prefix(root).unwrap_or(&directory).to_str();
    from.map(str::to_owned).ok_or_else(|| "the directory of the node has a name that is not UTF-8".to_owned())
}

/// Reads patch files from where a node runs.
pub(super) fn read_all(node: &Node<'_>, paths: &[String]) -> Result<Vec<PatchFile>, String> {
    let here = from(node)?;
    read(node, &paths.iter().map(|path| (here.clone(), path.clone())).collect::<Vec<_>>())
}

/// Reads patch files, each beneath a directory of the repository.
fn read(node: &Node<'_>, named: &[(String, String)]) -> Result<Vec<PatchFile>, String> {
    let read = |(from, path): &(String, String)| {
        let directory =
            beneath_root(node.root, from).map_err(|error| format!("cannot read `{path}`: {error}"))?;
        let bytes = beneath::read(&directory, path, MOST_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read `{path}`: {error}"))?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        let kept = Kept { path: path.clone(), from: from.clone(), bytes: bytes.len(), digest };
        Ok(PatchFile { kept, bytes })
    };
    named.iter().map(read).collect()
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
