//! What people have done around a merge is kept, and nothing counts as merged that is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::PathBuf;

use crate::by_hand::Desk;
use crate::git_merges::{in_conflict, merge, message, with_plan};
use crate::git_world::{Ended, again, builtin, ended, follow, has, node, of, repository, script, subjects};
use crate::world::Ran;

const DELETES: &str = ", delete_branch = true";

/// Returns a repository with a plan that is in conflict with `main`, and the end of its merge, which stopped.
fn stopped(more: &str) -> (Desk, Ended) {
    let desk = repository();
    with_plan(&desk);
    in_conflict(&desk);
    let end = ended(&desk, merge(more));
    assert_stopped(&end);
    (desk, end)
}

#[track_caller]
fn assert_stopped(end: &Ended) {
    assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
}

/// Everything of the plan is still on its branch.
#[track_caller]
fn assert_kept(desk: &Desk) {
    assert_eq!(desk.git(&["show", "draft/alpha:both"]), "of the plan");
    assert!(!subjects(desk, "main").contains(&"feat: merge plan alpha".to_owned()));
}

/// Returns the working tree that was made for a merge.
fn worktree_of(desk: &Desk, end: &Ended) -> PathBuf {
    desk.path(".tidewheel/tmp-worktrees").join(format!("integrate-{}", end.id)).canonicalize().unwrap()
}

#[test]
fn the_resolution_of_one_plan_is_not_thrown_away_by_the_merge_of_another() {
    for is_staged in [true, false] {
        let desk = repository();
        with_plan(&desk);
        in_conflict(&desk);
        desk.git(&["checkout", "-q", "-b", "draft/beta"]);
        desk.file("beta", "beta\n");
        desk.commit("beta");
        desk.git(&["checkout", "-q", "-b", "elsewhere"]);
        let end = ended(&desk, merge(""));
        assert_stopped(&end);
        let tree = worktree_of(&desk, &end);
        fs::write(tree.join("both"), "of both\n").unwrap();
        if is_staged {
            desk.git(&["-C", tree.to_str().unwrap(), "add", "both"]);
        }
        let args = "args = { slug = 'beta', target = 'main', delete_branch = true }";
        let other = ended(&desk, builtin("n", "git.integrate_plan_branch", args));
        assert_stopped(&other);
        assert!(other.summary.contains(tree.to_str().unwrap()), "{other:?}");
        assert_eq!(fs::read_to_string(tree.join("both")).unwrap(), "of both\n");
        assert!(has(&desk, "refs/heads/draft/beta"));
        // When the first is done, the second can be.
        desk.git(&["-C", tree.to_str().unwrap(), "add", "both"]);
        assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
        assert_eq!(again(&desk, &other.id).end(), ("succeeded", Some(0)));
        assert_eq!(desk.git(&["show", "main:both"]), "of both");
        assert_eq!(desk.git(&["show", "main:beta"]), "beta");
        assert!(!tree.exists());
    }
}

#[test]
fn what_somebody_does_in_the_worktree_of_a_merge_that_stopped_is_kept() {
    let desk = repository();
    with_plan(&desk);
    in_conflict(&desk);
    desk.git(&["checkout", "-q", "-b", "elsewhere"]);
    let end = ended(&desk, merge(""));
    assert_stopped(&end);
    let tree = worktree_of(&desk, &end);
    desk.git(&["-C", tree.to_str().unwrap(), "reset", "-q", "--hard"]);
    fs::write(tree.join("both"), "being changed\n").unwrap();
    let end = again(&desk, &end.id);
    assert_stopped(&end);
    assert!(end.summary.contains("uncommitted or untracked changes"), "{end:?}");
    assert_eq!(fs::read_to_string(tree.join("both")).unwrap(), "being changed\n");
}

#[test]
fn nobody_resolves_a_conflict_that_is_not_of_the_plan() {
    let desk = repository();
    with_plan(&desk);
    in_conflict(&desk);
    // The person merges something else, on another branch.
    desk.git(&["checkout", "-q", "-b", "third", "HEAD~1"]);
    desk.file("mine", "of a third\n");
    desk.commit("third");
    desk.git(&["checkout", "-q", "-b", "dev", "main"]);
    desk.file("mine", "of dev\n");
    desk.commit("dev");
    let mut command = std::process::Command::new("git");
    desk.settle_in(&mut command);
    command.args(["-c", "user.name=A", "-c", "user.email=a@b", "merge", "third"]);
    assert_eq!(Ran::of(&mut command).code, Some(1));
    desk.file("mine", "half resolved\n");
    let gate = "args = { slug = 'alpha', auto_resolve = true, auto_resolve_script = 'echo gone > mine; git add -A' }";
    let gate = || node("n", "control.gate.conflict_resolution", gate);
    let end = ended(&desk, merge(""));
    assert_stopped(&end);
    let tree = worktree_of(&desk, &end);
    // It runs where the plan is merged,
    assert_eq!(ended(&desk, gate()).end(), ("succeeded", Some(0)));
    assert!(tree.join("mine").exists());
    assert_eq!(fs::read_to_string(desk.path("mine")).unwrap(), "half resolved\n");
    // and nowhere, if that is gone.
    let sentinel = r#"{"slug": "alpha", "source_branch": "draft/alpha", "target_branch": "main"}"#;
    desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", sentinel);
    desk.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    let end = ended(&desk, gate());
    assert_stopped(&end);
    assert!(end.summary.contains("is not of plan alpha"), "{end:?}");
    assert_eq!(fs::read_to_string(desk.path("mine")).unwrap(), "half resolved\n");
}

#[test]
fn what_comes_to_the_source_during_a_conflict_is_merged_too() {
    let (desk, end) = stopped(DELETES);
    let tree = desk.outside().join("tree");
    desk.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "draft/alpha"]);
    fs::write(tree.join("late"), "late\n").unwrap();
    desk.git(&["-C", tree.to_str().unwrap(), "add", "late"]);
    desk.git(&["-C", tree.to_str().unwrap(), "commit", "-q", "-m", "late"]);
    desk.git(&["worktree", "remove", tree.to_str().unwrap()]);
    desk.file("both", "of both\n");
    desk.git(&["add", "both"]);
    let end = again(&desk, &end.id);
    // What was resolved is committed; what is new meets the same lines again.
    assert_stopped(&end);
    assert_eq!(subjects(&desk, "main"), ["feat: merge plan alpha", "other work", "first"]);
    assert!(has(&desk, "draft/alpha:late"));
    desk.file("both", "of both\n");
    desk.git(&["add", "both"]);
    let end = again(&desk, &end.id);
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(desk.git(&["show", "main:late"]), "late");
    assert_eq!(desk.git(&["show", "main:both"]), "of both");
    assert!(!has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn a_merge_that_was_given_up_is_not_done() {
    // Somebody takes it all back and changes the same file in a way of his own.
    let desk = repository();
    desk.git(&["checkout", "-q", "-b", "draft/alpha"]);
    desk.file("both", "of the plan\n");
    desk.commit("work");
    desk.git(&["checkout", "-q", "main"]);
    in_conflict(&desk);
    let end = ended(&desk, merge(DELETES));
    assert_stopped(&end);
    desk.git(&["reset", "-q", "--hard"]);
    desk.file("both", "of main, without a typo\n");
    desk.commit("typo");
    let end = again(&desk, &end.id);
    assert_stopped(&end);
    assert_kept(&desk);
    // And with every other way to give up.
    for give_up in [&["restore", "-s", "HEAD", "-SW", "."][..], &["checkout", "-f", "HEAD", "--", "."]] {
        desk.git(give_up);
        assert_stopped(&again(&desk, &end.id));
        assert_kept(&desk);
    }
}

#[test]
fn a_resolution_that_is_not_staged_is_not_taken_for_none() {
    for unstage in [&["reset", "-q", "both"][..], &["restore", "--staged", "both"]] {
        let (desk, end) = stopped(DELETES);
        desk.file("both", "of both\n");
        desk.git(unstage);
        let end = again(&desk, &end.id);
        assert_stopped(&end);
        assert!(end.summary.contains("changed and not staged: both"), "{end:?}");
        assert_eq!(fs::read_to_string(desk.path("both")).unwrap(), "of both\n");
        assert_kept(&desk);
        desk.git(&["add", "both"]);
        assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
        assert_eq!(desk.git(&["show", "main:both"]), "of both");
        assert!(!has(&desk, "refs/heads/draft/alpha"));
    }
}

#[test]
fn a_branch_that_goes_on_after_a_merge_with_a_conflict_is_merged_again() {
    let (desk, end) = stopped("");
    desk.file("both", "of both\n");
    desk.git(&["add", "both"]);
    assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
    let end = ended(&desk, merge(DELETES));
    assert!(end.summary.contains("already"), "{end:?}");
    desk.git(&["branch", "draft/alpha", "main~1"]);
    desk.git(&["checkout", "-q", "draft/alpha"]);
    desk.file("both", "of the plan, and more\n");
    desk.commit("more");
    desk.git(&["checkout", "-q", "main"]);
    let end = ended(&desk, merge(DELETES));
    assert_stopped(&end);
    assert_eq!(desk.git(&["show", "draft/alpha:both"]), "of the plan, and more");
}

#[test]
fn what_a_worktree_has_on_no_branch_is_not_committed_and_not_deleted() {
    let desk = repository();
    with_plan(&desk);
    let nodes = [
        builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
        script("work", "git checkout -q --detach; echo more > more", "on.succeeded = ['commit']"),
        builtin("commit", "git.stage_commit", "args = { message = 'm' }\non.succeeded = ['n']"),
        merge(DELETES),
    ];
    let (run, code) = follow(&desk, &nodes);
    assert_eq!(code, Some(1));
    let end = of(&desk, &run, "commit");
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("is on no branch instead of `draft/alpha`"), "{end:?}");
    assert!(has(&desk, "refs/heads/draft/alpha"));
    // On its branch, it goes on.
    let tree = end.record["metadata"]["worktree_path"].as_str().unwrap().to_owned();
    desk.git(&["-C", &tree, "checkout", "-q", "draft/alpha"]);
    assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
    desk.wait(&of(&desk, &run, "n").id);
    assert_eq!(desk.git(&["show", "main:more"]), "more");
}

#[test]
fn a_plan_that_changes_nothing_is_told_in_the_history() {
    for (more, parents) in [("", 1), (", squash = false", 2)] {
        let desk = repository();
        let end =
            ended(&desk, builtin("n", "plan.persist", "args = { slug = 'alpha', spec = 'Do nothing.' }"));
        assert_eq!(end.end(), ("succeeded", Some(0)));
        let end = ended(&desk, merge(&format!("{DELETES}{more}")));
        assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
        assert_eq!(message(&desk, "main"), "feat: merge plan alpha\n\nDo nothing.");
        assert_eq!(desk.git(&["log", "-1", "--format=%P", "main"]).split(' ').count(), parents);
        assert!(!has(&desk, "refs/heads/draft/alpha"));
    }
}

#[test]
fn what_git_ignores_is_not_overwritten() {
    for conflicts in [false, true] {
        let desk = repository();
        desk.file(".gitignore", "*.env\nsecrets\n");
        desk.commit("ignore");
        with_plan(&desk);
        desk.git(&["checkout", "-q", "draft/alpha"]);
        desk.file("local.env", "of the plan\n").file("secrets/key", "of the plan\n");
        desk.git(&["add", "-f", "local.env", "secrets/key"]);
        desk.git(&["commit", "-q", "-m", "env"]);
        desk.git(&["checkout", "-q", "main"]);
        if conflicts {
            in_conflict(&desk);
        }
        desk.file("local.env", "precious\n").file("secrets", "precious\n");
        let end = ended(&desk, merge(""));
        assert_stopped(&end);
        assert!(end.summary.contains("local.env, secrets; move it away"), "{end:?}");
        assert_eq!(fs::read_to_string(desk.path("local.env")).unwrap(), "precious\n");
        assert_eq!(fs::read_to_string(desk.path("secrets")).unwrap(), "precious\n");
    }
}

#[test]
fn a_staged_edit_of_the_document_is_kept() {
    let desk = repository();
    with_plan(&desk);
    let document = ".tidewheel/implementation-plans/alpha.md";
    desk.git(&["checkout", "-q", "draft/alpha"]);
    let before = fs::read_to_string(desk.path(document)).unwrap();
    desk.file(document, "staged\n");
    desk.git(&["add", document]);
    desk.file(document, &before);
    let end = ended(&desk, merge(""));
    assert_eq!(end.end(), ("failed", Some(1)), "{end:?}");
    assert!(end.summary.contains("is changed in"), "{end:?}");
    assert_eq!(desk.git(&["show", &format!(":{document}")]), "staged");
}
