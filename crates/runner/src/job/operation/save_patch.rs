//! `git.save_worktree_patch`: what is changed where the job runs, untracked files included, as a patch beside its record.
//! Neither the files nor the index of anybody are touched.

use std::fs;
use std::io;

use tidewheel_store::jobs::{Access, open_regular, split_data};

use super::checkout::{Checkout, failed};
use super::names::Done;
use super::node::{Execute, Node, NodeEnd};
use super::scratch;
use crate::git::{Call, GitError};

const OPERATION: &str = "git.save_worktree_patch";

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    save(node, execute).unwrap_or_else(|end| *end)
}

fn save(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let here = Checkout::of(node, OPERATION)?;
    let git = &here.repository;
    let refused = |error: GitError| failed(OPERATION, &error);
    let broken = |error: io::Error| Box::new(NodeEnd::failed(format!("{OPERATION} failed: {error}"), 1));
    let base = match git.commit_of("HEAD").map_err(refused)? {
        Some(head) => head,
        // Before the first commit everything is new.
        None => {
            let call = Call::new(["hash-object", "-t", "tree", "-w", "--stdin"]).stdin("");
            String::from_utf8_lossy(&git.answer(&call).map_err(refused)?).trim().to_owned()
        }
    };
    let index = scratch::of_job(node, "patch.index");
    let lock = index.with_added_extension("lock");
    let patch = scratch::of_job(node, "command.patch");
    let unfinished = patch.with_added_extension("new");
    // What an earlier attempt left, or a job put there: git would write through a link.
    for left in [&index, &lock, &unfinished] {
        let _missing = fs::remove_file(left);
    }
    // With the index of the person, so that what it knows of files that are not checked out is known here, too.
    match fs::File::open(git.private_directory().map_err(refused)?.join("index")) {
        Ok(mut person) => {
            let (directory, rest) = split_data(&index);
            let copied = open_regular(&directory, &rest, Access::New)
                .and_then(|mut copy| io::copy(&mut person, &mut copy));
            copied.map_err(broken)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(broken(error)),
    }
    let done = here.run(OPERATION, &Checkout::stage_all().index(&index), execute).and_then(|_| {
        let output = format!("--output={}", unfinished.display());
        here.run(OPERATION, &Checkout::without_ours(DIFF.call(&output, &base)).index(&index), execute)
    });
    let _missing = fs::remove_file(&index);
    done?;
    let size = fs::metadata(&unfinished).map_err(broken)?.len();
    fs::File::open(&unfinished).and_then(|file| file.sync_all()).map_err(broken)?;
    scratch::put(&unfinished, &patch).map_err(broken)?;
    Ok(NodeEnd::succeeded(match size {
        0 => "nothing is changed; the patch is empty".to_owned(),
        size => format!("saved a patch of {size} bytes"),
    }))
}

/// How a patch is written that can be applied, whatever a person likes to see.
struct Diff(&'static [&'static str]);

const DIFF: Diff = Diff(&[
    "diff",
    "--cached",
    "--binary",
    "--full-index",
    "--unified=3",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
]);

impl Diff {
    fn call(&self, output: &str, base: &str) -> Call {
        Call::new(self.0.iter().copied()).arg(output).arg(base)
    }
}
