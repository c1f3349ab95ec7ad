//! `prompt.resolve`: the text of a prompt, from one of many places, with what its placeholders stand for.

use std::cell::OnceCell;

use serde_json::Value;
use tidewheel_core::job::{Manifest, NodeId, NodeOutcome};
use tidewheel_core::view::abridged_list;

use super::execution_root::execution_root;
use super::node::{Execute, Node, NodeEnd};
use super::task::Task;
use super::texts::{self, MOST_TEXT};
use super::{beneath, placeholder, shell};

/// A file that a prompt is made of has at most so many bytes.
const MOST_FILE: u64 = 4 << 20;
/// What a prompt of the configuration may end with.
const ENDINGS: [&str; 3] = ["", ".md", ".txt"];

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    let text = match source(node, execute) {
        Ok(text) => text,
        Err(end) => return *end,
    };
    let manifest = OnceCell::new();
    let filled = placeholder::fill(&text, MOST_TEXT, |name| find(node, &manifest, name));
    let made = filled.and_then(|text| texts::payloads(node, NodeOutcome::Succeeded, &text));
    match made {
        Ok(payloads) => NodeEnd { payloads, ..NodeEnd::succeeded("prompt.resolve succeeded") },
        Err(what) => NodeEnd::failed(what, 1).non_retryable(),
    }
}

/// Returns the text with its placeholders.
fn source(node: &Node<'_>, execute: &mut Execute<'_>) -> Result<String, Box<NodeEnd>> {
    let failed = |what: String| Box::new(NodeEnd::failed(what, 1).non_retryable());
    let arg = |name: &str| node.arg(name).and_then(Value::as_str);
    if let Some(text) = arg("prompt_text") {
        return Ok(text.to_owned());
    }
    if let Some(path) = arg("prompt_file") {
        return file(node, path).map_err(|why| failed(format!("prompt.resolve cannot read `{path}`: {why}")));
    }
    if let Some(name) = arg("config") {
        return configured(node, name).map_err(failed);
    }
    let program = shell::program(node, None).map_err(|error| Box::new(error.into()))?;
    let program =
        program.ok_or_else(|| failed("prompt.resolve has no text, file, command or script".to_owned()))?;
    let ended = execute(Task { keeps: Some(MOST_TEXT), ..program.into() });
    let end = NodeEnd::of("prompt.resolve", &ended);
    match (end.outcome, ended) {
        (NodeOutcome::Succeeded, Ok(ended)) if ended.stdout.is_truncated => {
            Err(failed(format!("prompt.resolve prompt is larger than {} MiB", MOST_TEXT >> 20)))
        }
        (NodeOutcome::Succeeded, Ok(ended)) => Ok(String::from_utf8_lossy(&ended.stdout.bytes).into_owned()),
        _ => Err(Box::new(end)),
    }
}

/// Reads a file beneath the directory that the node runs in.
fn file(node: &Node<'_>, path: &str) -> Result<String, String> {
    let directory = execution_root(node.root, &node.record.metadata).map_err(|error| error.to_string())?;
    let bytes = beneath::read(&directory, path, MOST_FILE).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Reads a prompt of the configuration, by its name.
fn configured(node: &Node<'_>, name: &str) -> Result<String, String> {
    let directory = node.around.data().join("prompts");
    for ending in ENDINGS {
        match beneath::read(&directory, &format!("{name}{ending}"), MOST_FILE) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes);
                return text.map_err(|_| format!("prompt.resolve prompt `{name}` is not UTF-8"));
            }
            Err(beneath::BeneathError::Missing) => {}
            Err(error) => return Err(format!("prompt.resolve cannot read prompt `{name}`: {error}")),
        }
    }
    let mut known: Vec<String> = std::fs::read_dir(&directory)
        .map(|names| names.flatten().map(|name| name.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    known.sort();
    let there =
        if known.is_empty() { "is empty".to_owned() } else { format!("has {}", abridged_list(&known)) };
    Err(format!("prompt.resolve finds no prompt `{name}`: .tidewheel/prompts {there}"))
}

/// Returns what a placeholder stands for.
fn find(node: &Node<'_>, manifest: &OnceCell<Option<Manifest>>, name: &str) -> Result<String, String> {
    if let Some(path) = name.strip_prefix("file:") {
        let path = path.trim();
        // The file was a parameter that nobody gave.
        if path.is_empty() {
            return Ok(String::new());
        }
        return file(node, path)
            .map_err(|why| format!("prompt.resolve cannot read `{{{{file:{path}}}}}`: {why}"));
    }
    if let Some(value) = node.arg(name) {
        return Ok(words(value));
    }
    if manifest.get().is_none() {
        let read = node.around.manifest();
        let read =
            read.map_err(|error| format!("prompt.resolve cannot read the manifest of its run: {error}"))?;
        manifest.get_or_init(|| read);
    }
    let found = manifest.get().and_then(Option::as_ref).and_then(|manifest| arg_of(node, manifest, name));
    found.ok_or_else(|| format!("prompt.resolve unresolved placeholder `{{{{{name}}}}}`"))
}

/// Returns the argument of another node: of the same file if there is one, else of those that import it.
fn arg_of(node: &Node<'_>, manifest: &Manifest, name: &str) -> Option<String> {
    let own = node.record.node().map(|id| id.to_string()).unwrap_or_default();
    let mut prefix = own.as_str();
    loop {
        prefix = prefix.rfind("__").map_or("", |at| &prefix[..at]);
        // A node may have a dot in its id, and so may an argument in its name.
        for (dot, _) in name.match_indices('.') {
            let separator = if prefix.is_empty() { "" } else { "__" };
            let id = NodeId::new(&format!("{prefix}{separator}{}", &name[..dot])).ok();
            let other = id.and_then(|id| manifest.nodes.get(&id));
            if let Some(value) = other.and_then(|other| other.args.get(&name[dot + 1..])) {
                return Some(words(value));
            }
        }
        if prefix.is_empty() {
            return None;
        }
    }
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
