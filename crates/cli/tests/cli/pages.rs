//! The pages of the documentation as the tests read them: README.md and all of docs/, taken apart into blocks.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it is, from the root of the repository: `docs/guides/jobs.md`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What stands between two fences.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// The line of its first fence, counted from one.
    pub(crate) line: usize,
    /// What stands behind the fence: `console`, `rust,ignore`.
    pub(crate) language: &'a str,
    pub(crate) text: String,
    /// Why nobody runs it: `<!-- not run: … -->` in the line above.
    pub(crate) not_run: Option<&'a str>,
    /// Whether it begins in an empty directory: `<!-- a new directory -->` in the line above.
    pub(crate) is_fresh: bool,
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns README.md and every page in docs/, sorted.
pub(crate) fn all() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    names.sort();
    names
        .into_iter()
        .map(|name| Page { text: fs::read_to_string(root().join(&name)).unwrap(), name })
        .collect()
}

impl Page {
    /// Says whether `cargo xtask docs` wrote it: then another test compares the whole page.
    pub(crate) fn is_generated(&self) -> bool {
        self.text.contains("<!-- Written by `cargo xtask docs`")
    }

    /// Returns the blocks in order.
    ///
    /// # Panics
    /// If a fence is indented or never closed: then a test could believe that something was run that is not.
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut above = "";
        let mut is_inside = false;
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.strip_prefix("```");
            match (is_inside, fence) {
                (false, Some(language)) => {
                    let mark = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                    let not_run = mark.and_then(|mark| mark.strip_prefix("not run: "));
                    let is_fresh = mark == Some("a new directory");
                    blocks.push(Block { line: number + 1, language, text: String::new(), not_run, is_fresh });
                    is_inside = true;
                }
                (true, Some("")) => is_inside = false,
                (true, _) => blocks.last_mut().unwrap().text.extend([line, "\n"]),
                (false, None) => {
                    let is_hidden = line.trim_start().starts_with("```") || line.starts_with("~~~");
                    assert!(
                        !is_hidden,
                        "{}:{}: begin the fence of a block at the margin",
                        self.name,
                        number + 1
                    );
                }
            }
            above = line;
        }
        assert!(!is_inside, "{}: its last block has no end", self.name);
        blocks
    }

    /// Returns the text without its blocks, line by line with their numbers.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let mut is_inside = false;
        let mut prose = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            if line.starts_with("```") {
                is_inside = !is_inside;
            } else if !is_inside {
                prose.push((number + 1, line));
            }
        }
        prose
    }
}

#[test]
fn a_page_is_taken_apart_into_its_blocks() {
    let text = "# A\n\n<!-- not run: a picture -->\n```text\nx\n```\nand\n<!-- a new directory -->\n```console\n$ ls\n```\n";
    let page = Page { name: "a.md".to_owned(), text: text.to_owned() };
    let picture = Block {
        line: 4,
        language: "text",
        text: "x\n".to_owned(),
        not_run: Some("a picture"),
        is_fresh: false,
    };
    let list =
        Block { line: 9, language: "console", text: "$ ls\n".to_owned(), not_run: None, is_fresh: true };
    assert_eq!(page.blocks(), [picture, list]);
    let prose: Vec<usize> = page.prose().iter().map(|(number, _)| *number).collect();
    assert_eq!(prose, [1, 2, 3, 7, 8]);
}
