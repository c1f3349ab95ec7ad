//! `git.integrate_plan_branch`: the branch of a plan is merged into another one, with the document of the plan as the
//! message. What can be merged without help is, without a working tree; a conflict is left where a person can resolve
//! it, and another attempt goes on from there.
//!
//! Each step leaves a trace by which the next attempt knows that it was done: the document that is gone from the
//! source, the merge that is in progress, the commit on the target, and what is noted in the record.

use std::path::Path;

use serde_json::{Value, json};
use tidewheel_core::job::{Branch, Metadata, Slug};

use super::checkout::{Checkout, failed};
use super::document::{self, Change};
use super::merge_begun::{self, Came};
use super::merged::{self, Memory};
use super::names::{self, Done, document_of, stopped};
use super::node::{Execute, Node, NodeEnd};
use super::sentinel;
use super::stage_commit::short;
use super::worktree_prepare::note;
use crate::git::{Call, GitError, Repository};
use crate::job::attempt::End;

pub(super) const OPERATION: &str = "git.integrate_plan_branch";

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    integrate(node, execute).unwrap_or_else(|end| *end)
}

/// What is to be merged into what.
pub(super) struct Wish {
    pub(super) slug: Slug,
    pub(super) source: Branch,
    pub(super) target: Branch,
    pub(super) squashes: bool,
    deletes: bool,
}

/// Where both branches are.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    pub(super) source: String,
    pub(super) target: String,
}

fn integrate(node: &Node<'_>, execute: &mut Execute<'_>) -> Done {
    let wish = Wish::of(node)?;
    let root = Checkout::at(node, node.root.to_owned(), OPERATION)?;
    let git = &root.repository;
    let (source, target) = (&wish.source, &wish.target);
    let Some(target_head) = git.head_of(target.as_str()).map_err(refused)? else {
        return Err(stopped(format!("{OPERATION} failed: target branch `{target}` does not exist")));
    };
    let Some(source_head) = git.head_of(source.as_str()).map_err(refused)? else {
        if merged::is_noted(node, git, None, &target_head)? {
            return finish(node, &wish, &root, None, execute);
        }
        return Err(stopped(format!("{OPERATION} failed: source branch `{source}` does not exist")));
    };
    let mut heads = Heads { source: source_head, target: target_head };
    wish.check_deletion(node, git)?;
    let place = git.worktree_with(target.as_str()).map_err(refused)?;
    let place = place.map(|tree| Checkout::at(node, tree.path, OPERATION)).transpose()?;
    if let Some(here) = &place {
        match merge_begun::go_on(node, &wish, here, &heads, execute)? {
            None | Some(Came::GivenUp) => {}
            Some(Came::Ended(end)) => return Ok(end),
            Some(Came::Committed(merged)) if merged == heads.source => {
                return finish(node, &wish, &root, Some(&heads), execute);
            }
            // The source has gone on since, and that is to be merged, too.
            Some(Came::Committed(_)) => {
                let now = git.head_of(target.as_str()).map_err(refused)?;
                heads.target = now.unwrap_or(heads.target);
            }
        }
    }
    if merged::is_in(node, git, &wish, &heads, place.as_ref())? {
        return finish(node, &wish, &root, Some(&heads), execute);
    }
    git.check_identity().map_err(refused)?;
    let message = take_document(node, git, &wish, &mut heads)?;
    node.around.say(&format!("merging {} into {}", wish.source, wish.target));
    let merge = root.try_run(OPERATION, &Repository::merge_trees(&heads.target, &heads.source), execute)?;
    let tree = String::from_utf8_lossy(&merge.stdout.bytes);
    let tree = tree.lines().next().unwrap_or_default().trim();
    match merge.end {
        End::Exited(0) => {
            // Without a difference there is still a plan to be told of, or a history to be kept.
            let is_different = tree != git.tree_of(&heads.target).map_err(refused)?;
            if is_different || !wish.squashes || message.trim_end() != wish.subject() {
                put_on_target(node, &wish, &root, &heads, (tree, &message), execute)?;
            }
            finish(node, &wish, &root, Some(&heads), execute)
        }
        End::Exited(1) => match merge_begun::begin(node, &wish, &root, &heads, (tree, &message), execute)? {
            Came::Ended(end) => Ok(end),
            Came::Committed(_) | Came::GivenUp => finish(node, &wish, &root, Some(&heads), execute),
        },
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Silent | End::Cancelled => {
            Ok(NodeEnd::of(OPERATION, &Ok(merge)))
        }
    }
}

impl Wish {
    fn of(node: &Node<'_>) -> Done<Self> {
        let slug = names::slug(node)?;
        let source = match (names::branch(node, "source")?, &slug) {
            (Some(source), _) => source,
            (None, Some(slug)) => names::branch_of(slug)?,
            (None, None) => {
                let message = format!("{OPERATION} could not determine source (set source or slug/plan)");
                return Err(stopped(message));
            }
        };
        let Some(target) = names::branch(node, "target")? else {
            return Err(stopped(format!("{OPERATION} has no target")));
        };
        if source == target {
            return Err(stopped(format!("{OPERATION} failed: source and target are both `{source}`")));
        }
        let slug = match slug {
            Some(slug) => slug,
            None => slug_of(&source)?,
        };
        let squashes = node.flag("squash").unwrap_or(true);
        let deletes = node.flag("delete_branch").unwrap_or(false);
        Ok(Self { slug, source, target, squashes, deletes })
    }

    /// Returns the first line of the commit.
    pub(super) fn subject(&self) -> String {
        format!("feat: merge plan {}", self.slug)
    }

    /// Returns the message of the commit.
    pub(super) fn message(&self, document: Option<&[u8]>) -> String {
        let document = document.map(String::from_utf8_lossy).unwrap_or_default();
        match document.trim() {
            "" => format!("{}\n", self.subject()),
            body => format!("{}\n\n{body}\n", self.subject()),
        }
    }

    /// Checks that the source may be deleted in the end, before anything is changed.
    fn check_deletion(&self, node: &Node<'_>, git: &Repository) -> Done<()> {
        let tree =
            if self.deletes { git.worktree_with(self.source.as_str()).map_err(refused)? } else { None };
        match tree {
            Some(tree) if !is_own(node, &tree.path) => {
                let message = format!(
                    "{OPERATION} failed: branch `{}` is to be deleted, and is checked out in {}; check out another \
                     one there, then retry",
                    self.source,
                    tree.path.display()
                );
                Err(Box::new(NodeEnd::failed(message, 1)))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns a name for the plan of a branch that nobody has named.
fn slug_of(source: &Branch) -> Done<Slug> {
    let name = source.as_str().strip_prefix("draft/").unwrap_or(source.as_str());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    Slug::new(name.trim_start_matches(['.', '-'])).map_err(|error| stopped(error.to_string()))
}

/// Tells whether a working tree is the one that the jobs of this run work in.
pub(super) fn is_own(node: &Node<'_>, path: &Path) -> bool {
    let metadata = &node.record.metadata;
    let own = metadata.text(Metadata::WORKTREE_PATH);
    let own = own.and_then(|own| crate::job::worktree::owned_place(own, node.root, node.around.data()));
    own.is_some_and(|own| own == path)
        && metadata.get(Metadata::WORKTREE_OWNED).and_then(Value::as_bool) == Some(true)
}

/// Takes the document of the plan away from the source, by a commit of its own, and returns the message of the merge.
fn take_document(node: &Node<'_>, git: &Repository, wish: &Wish, heads: &mut Heads) -> Done<String> {
    let path = document_of(&wish.slug);
    let Some(document) = git.file_at(&heads.source, &path).map_err(refused)? else {
        let taken = taken_document(git, wish, heads)?;
        let message = wish.message(taken.as_deref());
        if let Some(taken) = taken {
            document::catch_up(node, git, (wish.source.as_str(), &path), taken, OPERATION)?;
        }
        return Ok(message);
    };
    let change = Change {
        branch: wish.source.as_str(),
        parent: &heads.source,
        from: &heads.source,
        path: &path,
        content: None,
        message: &format!("chore: remove implementation plan doc {}\n", wish.slug),
    };
    if let Some(commit) = document::commit(node, git, &change, OPERATION)? {
        node.around.say(&format!("removed {path} from {} ({})", wish.source, short(&commit)));
        heads.source = commit;
    }
    Ok(wish.message(Some(&document)))
}

/// Returns the document that an earlier attempt took away from the source.
pub(super) fn taken_document(git: &Repository, wish: &Wish, heads: &Heads) -> Done<Option<Vec<u8>>> {
    let path = document_of(&wish.slug);
    match git.last_change(&heads.source, &heads.target, &path).map_err(refused)? {
        Some(commit) => git.file_at(&format!("{commit}^1"), &path).map_err(refused),
        None => Ok(None),
    }
}

/// Makes the commit of a merge without conflicts, and lets the target have it.
fn put_on_target(
    node: &Node<'_>,
    wish: &Wish,
    root: &Checkout,
    heads: &Heads,
    (tree, message): (&str, &str),
    execute: &mut Execute<'_>,
) -> Done<()> {
    let git = &root.repository;
    let both = [heads.target.as_str(), heads.source.as_str()];
    let parents = if wish.squashes { &both[..1] } else { &both[..] };
    let place = git.worktree_with(wish.target.as_str()).map_err(refused)?;
    let place = place.map(|tree| Checkout::at(node, tree.path, OPERATION)).transpose()?;
    if let Some(here) = &place {
        merge_begun::check_usable(node, wish, here)?;
        merge_begun::check_room(wish, here, heads, tree)?;
    }
    let commit = git.commit_tree(tree, parents, message).map_err(refused)?;
    note_merge(node, wish, heads, Some(&commit))?;
    match place {
        None => git.move_branch(wish.target.as_str(), &commit, &heads.target, message).map_err(refused)?,
        Some(here) => {
            let call = Call::new(["merge", "--ff-only", "--no-autostash", &commit]);
            here.run(OPERATION, &call, execute)?;
        }
    }
    Ok(())
}

/// Notes what is merged into what, and the commit that came of it.
pub(super) fn note_merge(node: &Node<'_>, wish: &Wish, heads: &Heads, commit: Option<&str>) -> Done<()> {
    let value = json!({
        "source": wish.source.as_str(),
        "target": wish.target.as_str(),
        "source_head": heads.source,
        "target_head": heads.target,
        "commit": commit,
    });
    note(node, &[(Metadata::MERGE, value)])
}

/// Cleans up after a merge that is done: what was said of a conflict, the worktree of the merge, the source.
fn finish(
    node: &Node<'_>,
    wish: &Wish,
    root: &Checkout,
    heads: Option<&Heads>,
    execute: &mut Execute<'_>,
) -> Done {
    let git = &root.repository;
    let (source, target) = (&wish.source, &wish.target);
    let now = git.head_of(target.as_str()).map_err(refused)?.unwrap_or_default();
    let is_new = heads.is_some_and(|heads| heads.target != now);
    if let Some(heads) = heads {
        note_merge(node, wish, heads, Some(&now))?;
        Memory::write(git, wish, &heads.source, &now)?;
    }
    sentinel::take_away(node, &wish.slug)?;
    merge_begun::clean_up(node, git, wish)?;
    if let Some(heads) = heads.filter(|_| wish.deletes) {
        if let Some(tree) = git.worktree_with(source.as_str()).map_err(refused)? {
            // It was checked before that this is the worktree of the run.
            let here = Checkout::at(node, tree.path, OPERATION)?;
            here.free_of_locks(OPERATION)?;
            here.run(OPERATION, &Call::new(["checkout", "--quiet", "--detach"]), execute)?;
        }
        git.delete_branch(source.as_str(), &heads.source).map_err(refused)?;
        Memory::forget(git, wish)?;
    }
    Ok(NodeEnd::succeeded(match is_new {
        true => format!("merged {source} into {target} ({})", short(&now)),
        false => format!("{source} is merged into {target} already"),
    }))
}

pub(super) fn refused(error: GitError) -> Box<NodeEnd> {
    failed(OPERATION, &error)
}
