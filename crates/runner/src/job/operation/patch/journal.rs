//! Puts many files into their places, all or none, also when the process dies in between: what was there and what is to
//! be there is written down first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::beneath;
use super::apply::Scratch;
use super::tree::{self, Plain, Tree};

const FILE: &str = "journal.json";
const MOST_BYTES: u64 = 64 << 20;

/// What is to be changed, as it is written down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The patches that it is about.
    pub(super) digests: Vec<String>,
    /// How many of them had been applied before.
    pub(super) already: usize,
    /// The files that differ.
    pub(super) names: BTreeSet<String>,
    /// The patch from the files without to those with the patches.
    patch: String,
}

impl Journal {
    /// Writes down what is to be changed: from what is there now to what is to be there.
    pub(super) fn write(
        scratch: &Scratch,
        (digests, already): (Vec<String>, usize),
        (now, after): (&Tree, &Tree),
        patch: &[u8],
    ) -> Result<Self, String> {
        let names = now.keys().chain(after.keys()).filter(|name| now.get(*name) != after.get(*name));
        let names: BTreeSet<String> = names.cloned().collect();
        let only = |tree: &Tree| -> Tree {
            let files = tree.iter().filter(|(name, _)| names.contains(*name));
            files.map(|(name, plain)| (name.clone(), plain.clone())).collect()
        };
        tree::write_all(&scratch.path.join("now"), &only(now))?;
        tree::write_all(&scratch.path.join("after"), &only(after))?;
        let fail = |error: std::io::Error| format!("cannot write the journal: {error}");
        beneath::write(&scratch.path, "whole.patch", patch).map_err(fail)?;
        let journal = Self { digests, already, names, patch: "whole.patch".to_owned() };
        let text = serde_json::to_vec(&journal).map_err(|error| error.to_string())?;
        beneath::write(&scratch.path, FILE, &text).map_err(fail)?;
        Ok(journal)
    }

    /// Reads what a process that died had written down; `None` if it had not come so far.
    pub(super) fn read(place: &Path) -> Option<Self> {
        serde_json::from_slice(&beneath::read(place, FILE, MOST_BYTES).ok()?).ok()
    }

    /// Returns the one patch for all of it.
    pub(super) fn patch(&self, place: &Path) -> Result<Vec<u8>, String> {
        fs::read(place.join(&self.patch)).map_err(|error| format!("cannot read the journal: {error}"))
    }

    /// Brings every file to what it is to be. If one cannot be written, all are as they were.
    ///
    /// # Errors
    /// A file is neither what it was nor what it is to be, or cannot be written.
    pub(super) fn carry_out(&self, place: &Path, directory: &Path) -> Result<(), String> {
        let (now, after) = (tree::walk(&place.join("now"))?, tree::walk(&place.join("after"))?);
        let found = tree::read(directory, &self.names)?;
        for name in &self.names {
            let is = found.get(name);
            if is != now.get(name) && is != after.get(name) {
                return Err(format!(
                    "`{name}` was changed by another process while the patches were applied"
                ));
            }
        }
        for name in &self.names {
            if let Err(why) = put(directory, name, after.get(name)) {
                let back: BTreeMap<&String, Result<(), String>> =
                    self.names.iter().map(|name| (name, put(directory, name, now.get(name)))).collect();
                let left: Vec<&str> =
                    back.iter().filter(|(_, done)| done.is_err()).map(|(name, _)| name.as_str()).collect();
                let left = if left.is_empty() {
                    String::new()
                } else {
                    format!("; could not be brought back: {}", left.join(", "))
                };
                return Err(format!("{why}{left}"));
            }
        }
        Ok(())
    }
}

/// Brings one file to what it is to be.
fn put(directory: &Path, name: &str, wanted: Option<&Plain>) -> Result<(), String> {
    let is = tree::read_one(directory, name)?;
    match wanted {
        _ if is.as_ref() == wanted => Ok(()),
        Some(plain) => tree::write(directory, name, plain),
        None => tree::remove(directory, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_of(files: &[(&str, &str)]) -> Tree {
        let plain = |text: &str| Plain { bytes: text.as_bytes().to_vec(), is_program: false };
        files.iter().map(|(name, text)| ((*name).to_owned(), plain(text))).collect()
    }

    fn written(
        files: (&Tree, &Tree),
    ) -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf, Journal) {
        let world = tempfile::tempdir().unwrap();
        let (place, directory) = (world.path().join("scratch"), world.path().join("root"));
        fs::create_dir_all(&place).unwrap();
        tree::write_all(&directory, files.0).unwrap();
        let scratch = Scratch { path: place.clone(), is_kept: true };
        let journal = Journal::write(&scratch, (vec!["d".to_owned()], 0), files, b"p").unwrap();
        (world, place, directory, journal)
    }

    #[test]
    fn what_was_begun_is_carried_out_from_wherever_it_stopped() {
        let now = tree_of(&[("a", "1"), ("b/c", "1"), ("same", "x")]);
        let after = tree_of(&[("a", "2"), ("d/e", "2"), ("same", "x")]);
        for stopped in 0..4 {
            let (_world, place, directory, journal) = written((&now, &after));
            assert_eq!(journal.names.iter().collect::<Vec<_>>(), ["a", "b/c", "d/e"]);
            for name in journal.names.iter().take(stopped) {
                put(&directory, name, after.get(name)).unwrap();
            }
            Journal::read(&place).unwrap().carry_out(&place, &directory).unwrap();
            assert_eq!(tree::walk(&directory).unwrap(), after, "stopped after {stopped}");
            assert!(!directory.join("b").exists());
        }
    }

    #[test]
    fn what_somebody_else_changed_is_left_alone() {
        let (now, after) = (tree_of(&[("a", "1"), ("b", "1")]), tree_of(&[("a", "2"), ("b", "2")]));
        let (_world, place, directory, journal) = written((&now, &after));
        fs::write(directory.join("b"), "3").unwrap();
        let why = journal.carry_out(&place, &directory).unwrap_err();
        assert!(why.contains("`b` was changed by another process"), "{why}");
        assert_eq!(tree::walk(&directory).unwrap(), tree_of(&[("a", "1"), ("b", "3")]));
    }

    #[test]
    fn if_one_cannot_be_written_all_are_as_they_were() {
        let (now, after) =
            (tree_of(&[("a", "1"), ("z", "1")]), tree_of(&[("a", "2"), ("b/x", "2"), ("z", "1")]));
        let (_world, place, directory, journal) = written((&now, &after));
        // A directory of that name cannot be made where a file is.
        fs::write(directory.join("b"), "in the way").unwrap();
        assert!(journal.carry_out(&place, &directory).is_err());
        assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "1");
    }
}
