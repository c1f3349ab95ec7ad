//! Applies the patches of a pipeline in order, all of them or none, where the node runs.

use std::collections::BTreeSet;

use super::super::execution_root::execution_root;
use super::super::node::{Node, NodeEnd};
use super::apply::Scratch;
use super::files::{self, PatchFile};
use super::journal::Journal;
use super::tree;

/// All patches as one.
pub(super) const FILE: &str = "patch-pipeline.patch";

pub(in super::super) fn run(node: &Node<'_>) -> NodeEnd {
    match execute(node) {
        Ok(summary) => NodeEnd::succeeded(summary),
        Err(what) => NodeEnd::failed(format!("patch.execute_pipeline failed: {what}"), 1),
    }
}

fn execute(node: &Node<'_>) -> Result<String, String> {
    let directory = execution_root(node.root, &node.record.metadata).map_err(|error| error.to_string())?;
    let files = files::of(node)?;
    let digests: Vec<String> = files.iter().map(|file| file.kept.digest.clone()).collect();
    let place = Scratch::place(node);
    let begun = Journal::read(&place).filter(|journal| journal.digests == digests);
    let is_begun = begun.is_some();
    let (mut scratch, journal) = match begun {
        // An attempt before this one died on its way.
        Some(journal) => (Scratch { path: place, is_kept: true }, journal),
        None => begin(node, &directory, &files, digests)?,
    };
    // As long as it is not carried out, what is written down is needed.
    scratch.is_kept = true;
    let done = journal.carry_out(&scratch.path, &directory);
    // What somebody else is in the way of can still be carried out, or taken back by hand.
    scratch.is_kept = is_begun && done.is_err();
    done?;
    files::keep_bytes(node, FILE, &journal.patch(&scratch.path)?)?;
    let (count, changed) = (files.len(), journal.names.len());
    let already = match journal.already {
        0 => String::new(),
        already => format!(", {already} of them before"),
    };
    Ok(format!("patch.execute_pipeline applied {count} patches{already}; {changed} files changed"))
}

/// Finds out what is to be changed, and writes it down. Nothing is changed yet.
fn begin(
    node: &Node<'_>,
    directory: &std::path::Path,
    files: &[PatchFile],
    digests: Vec<String>,
) -> Result<(Scratch, Journal), String> {
    let scratch = Scratch::new(node)?;
    let mut names = BTreeSet::new();
    for file in files {
        names.extend(scratch.names(file)?);
    }
    let now = tree::read(directory, &names)?;
    let applied = scratch.apply(&now, files)?;
    let patch = scratch.difference(&applied.before, &applied.after)?;
    let journal = Journal::write(&scratch, (digests, applied.already), (&now, &applied.after), &patch)?;
    Ok((scratch, journal))
}
