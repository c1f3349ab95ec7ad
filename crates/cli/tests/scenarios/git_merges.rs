//! Branches of plans that are merged, and merges that need a person.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::Desk;
use crate::git_world::{
    Ended, again, builtin, ended, follow, has, log, node, of, repository, script, subjects,
};

const DOCUMENT: &str = ".tidewheel/implementation-plans/alpha.md";
const SENTINEL: &str = ".tidewheel/tmp/merge-conflicts/alpha.json";
const TEXT: &str = "# Alpha\n\nDo it well.\n";
pub(crate) const MESSAGE: &str = "feat: merge plan alpha\n\n# Alpha\n\nDo it well.";
const REMOVED: &str = "chore: remove implementation plan doc alpha";

/// Gives a repository a branch with a plan and a change of a file, and leaves `main` checked out.
pub(crate) fn with_plan(desk: &Desk) {
    desk.git(&["checkout", "-q", "-b", "draft/alpha"]);
    desk.file(DOCUMENT, TEXT).file("feature ü", "feature\n").file("both", "of the plan\n");
    desk.commit("work");
    desk.git(&["checkout", "-q", "main"]);
}

/// Lets `main` have something else in a file that the plan has, too.
pub(crate) fn in_conflict(desk: &Desk) {
    desk.file("both", "of main\n");
    desk.commit("other work");
}

pub(crate) fn merge(more: &str) -> String {
    builtin(
        "n",
        "git.integrate_plan_branch",
        &format!(
            "args = {{ slug = 'alpha', target = 'main'{more} }}\n\
             produces.blocked = [{{ merge_sentinel = {{ slug = 'alpha' }} }}]"
        ),
    )
}

pub(crate) fn message(desk: &Desk, commit: &str) -> String {
    desk.git(&["log", "-1", "--format=%B", commit]).trim_end().to_owned()
}

#[track_caller]
fn assert_merged(desk: &Desk, end: &Ended) {
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?} {}", log(desk, &end.id, "stderr"));
    assert_eq!(message(desk, "main"), MESSAGE);
    assert_eq!(desk.git(&["show", "main:feature ü"]), "feature");
    assert!(!has(desk, &format!("main:{DOCUMENT}")));
    assert!(!desk.path(SENTINEL).exists());
    assert!(!desk.git(&["worktree", "list"]).contains("tmp-worktrees"));
}

#[test]
fn m_150_a_plan_is_squashed_into_one_commit_with_its_document() {
    let desk = repository();
    with_plan(&desk);
    desk.commit("meanwhile");
    let end = ended(&desk, merge(""));
    assert_merged(&desk, &end);
    assert_eq!(subjects(&desk, "main"), ["feat: merge plan alpha", "meanwhile", "first"]);
    assert_eq!(subjects(&desk, "draft/alpha"), [REMOVED, "work", "first"]);
    assert!(!has(&desk, &format!("draft/alpha:{DOCUMENT}")));
    // The tree of the person has it, too.
    assert_eq!(fs::read_to_string(desk.path("feature ü")).unwrap(), "feature\n");
    assert_eq!(crate::git_world::status(&desk), "");
    // What is merged already is fine, by whomever.
    let end = ended(&desk, merge(""));
    assert_eq!(end.end(), ("succeeded", Some(0)));
    assert!(end.summary.contains("already"), "{end:?}");
    assert_eq!(subjects(&desk, "main").len(), 3);
}

#[test]
fn m_150_without_squash_the_commit_has_both_parents() {
    let desk = repository();
    with_plan(&desk);
    let end = ended(&desk, merge(", squash = 'no'"));
    assert_merged(&desk, &end);
    let parents = desk.git(&["log", "-1", "--format=%P", "main"]);
    assert_eq!(parents.split(' ').count(), 2, "{parents}");
    assert_eq!(parents.split(' ').nth(1).unwrap(), desk.git(&["rev-parse", "draft/alpha"]));
    let end = ended(&desk, merge(", squash = 'no'"));
    assert!(end.summary.contains("already"), "{end:?}");
}

#[test]
fn m_150_a_target_that_nobody_has_checked_out_needs_no_working_tree() {
    let desk = repository();
    with_plan(&desk);
    desk.git(&["checkout", "-q", "-b", "elsewhere"]);
    desk.file("README.md", "being changed\n");
    let index = fs::read(desk.path(".git/index")).unwrap();
    let end = ended(&desk, merge(""));
    assert_merged(&desk, &end);
    assert_eq!(fs::read(desk.path(".git/index")).unwrap(), index);
    assert_eq!(desk.git(&["symbolic-ref", "--short", "HEAD"]), "elsewhere");
}

#[test]
fn a_plan_without_a_document_is_merged_with_its_subject() {
    let desk = repository();
    desk.git(&["checkout", "-q", "-b", "feature/x"]);
    desk.file("x", "x");
    desk.commit("work");
    desk.git(&["checkout", "-q", "main"]);
    let args = "args = { source = 'feature/x', target = 'main' }";
    let end = ended(&desk, builtin("n", "git.integrate_plan_branch", args));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(message(&desk, "main"), "feat: merge plan feature-x");
    assert_eq!(subjects(&desk, "feature/x"), ["work", "first"]);
}

#[test]
fn a_branch_that_is_not_there_is_named() {
    let desk = repository();
    let end = ended(&desk, merge(""));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("source branch `draft/alpha` does not exist"), "{end:?}");
    with_plan(&desk);
    let args = "args = { slug = 'alpha', target = 'nowhere' }";
    let end = ended(&desk, builtin("n", "git.integrate_plan_branch", args));
    assert!(end.summary.contains("target branch `nowhere` does not exist"), "{end:?}");
    assert_eq!(subjects(&desk, "draft/alpha"), ["work", "first"]);
}

#[test]
fn a_target_with_changes_is_left_as_it_is() {
    for conflicts in [false, true] {
        let desk = repository();
        with_plan(&desk);
        if conflicts {
            in_conflict(&desk);
        }
        desk.file("README.md", "being changed\n");
        let before = desk.git(&["rev-parse", "main"]);
        let end = ended(&desk, merge(""));
        assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
        assert!(end.summary.contains("uncommitted or untracked changes"), "{end:?}");
        assert_eq!(desk.git(&["rev-parse", "main"]), before);
        assert_eq!(fs::read_to_string(desk.path("README.md")).unwrap(), "being changed\n");
        assert!(!desk.path(SENTINEL).exists());
        desk.git(&["checkout", "-q", "README.md"]);
        if !conflicts {
            assert_merged(&desk, &again(&desk, &end.id));
        }
    }
}

#[test]
fn a_target_that_other_jobs_work_on_is_left_to_them() {
    let desk = repository();
    with_plan(&desk);
    desk.git(&["checkout", "-q", "-b", "elsewhere"]);
    let other = ended(&desk, builtin("n", "worktree.prepare", "args = { branch = 'main' }"));
    assert_eq!(other.end(), ("succeeded", Some(0)), "{other:?}");
    let end = ended(&desk, merge(""));
    assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
    assert!(end.summary.contains("in which other jobs work"), "{end:?}");
    assert_eq!(subjects(&desk, "main"), ["first"]);
}

#[test]
fn a_source_is_deleted_if_it_is_asked_for_and_nobody_else_works_on_it() {
    let desk = repository();
    with_plan(&desk);
    desk.git(&["worktree", "add", "-q", "../mine", "draft/alpha"]);
    let end = ended(&desk, merge(", delete_branch = true"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("is checked out in"), "{end:?}");
    assert_eq!(subjects(&desk, "draft/alpha"), ["work", "first"]);
    assert_eq!(subjects(&desk, "main"), ["first"]);
    desk.git(&["worktree", "remove", "../mine"]);
    let end = again(&desk, &end.id);
    assert_merged(&desk, &end);
    assert!(!has(&desk, "refs/heads/draft/alpha"));
    // Who has deleted it knows so the next time.
    let end = again(&desk, &end.id);
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(subjects(&desk, "main"), ["feat: merge plan alpha", "first"]);
}

#[test]
fn a_source_that_the_run_works_on_is_merged_and_deleted() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin(
                "plan",
                "plan.persist",
                &format!("args = {{ slug = 'alpha', spec = '''{TEXT}''' }}\non.succeeded = ['prepare']"),
            ),
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script("work", "echo feature > 'feature ü'", "on.succeeded = ['commit']"),
            builtin("commit", "git.stage_commit", "args = { message = 'work' }\non.succeeded = ['n']"),
            merge(", delete_branch = 'yes'").replace("[[nodes]]", "[[nodes]]\non.succeeded = ['cleanup']"),
            builtin("cleanup", "worktree.cleanup", ""),
        ],
    );
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "n"));
    assert_merged(&desk, &of(&desk, &run, "n"));
    assert!(!has(&desk, "refs/heads/draft/alpha"));
}

#[track_caller]
fn assert_blocked(desk: &Desk, end: &Ended) {
    assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
    assert!(end.summary.contains("remaining unmerged paths: both"), "{end:?}");
    assert!(log(desk, &end.id, "stderr").contains("remaining unmerged paths: both"));
    let sentinel: Value = serde_json::from_str(&fs::read_to_string(desk.path(SENTINEL)).unwrap()).unwrap();
    assert!(sentinel["created_at"].is_string());
    let mut keys: Vec<&String> = sentinel.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["created_at", "job_id", "node_id", "slug", "source_branch", "target_branch"]);
    assert_eq!(
        (&sentinel["slug"], &sentinel["source_branch"], &sentinel["target_branch"]),
        (&json!("alpha"), &json!("draft/alpha"), &json!("main"))
    );
    assert_eq!((&sentinel["job_id"], &sentinel["node_id"]), (&json!(end.id), &json!("n")));
    assert_eq!(subjects(desk, "draft/alpha"), [REMOVED, "work", "first"]);
}

#[test]
fn m_150_a_conflict_is_resolved_by_hand_and_a_retry_finishes() {
    for (is_checked_out, is_committed) in [(true, false), (true, true), (false, false), (false, true)] {
        let desk = repository();
        with_plan(&desk);
        in_conflict(&desk);
        if !is_checked_out {
            desk.git(&["checkout", "-q", "-b", "elsewhere"]);
        }
        let end = ended(&desk, merge(""));
        assert_blocked(&desk, &end);
        let tree = match is_checked_out {
            true => desk.path("").canonicalize().unwrap(),
            false => desk
                .path("")
                .canonicalize()
                .unwrap()
                .join(".tidewheel/tmp-worktrees")
                .join(format!("integrate-{}", end.id)),
        };
        assert!(end.summary.contains(&tree.display().to_string()), "{end:?}");
        // As long as nothing is resolved, nothing is changed.
        let end = again(&desk, &end.id);
        assert_blocked(&desk, &end);
        fs::write(tree.join("both"), "of both\n").unwrap();
        let place = tree.to_str().unwrap();
        desk.git(&["-C", place, "add", "both"]);
        if is_committed {
            desk.git(&["-C", place, "commit", "-q", "--no-edit"]);
        }
        let end = again(&desk, &end.id);
        assert_merged(&desk, &end);
        assert_eq!(desk.git(&["show", "main:both"]), "of both");
        assert_eq!(subjects(&desk, "main"), ["feat: merge plan alpha", "other work", "first"]);
        assert!(!desk.path(".git/SQUASH_MSG").exists());
        // And once more it is merged already.
        let end = ended(&desk, merge(""));
        assert!(end.summary.contains("already"), "{end:?}");
        assert_eq!(subjects(&desk, "main").len(), 3);
    }
}

#[test]
fn m_150_a_merge_with_both_parents_is_resolved_by_hand_too() {
    for is_checked_out in [true, false] {
        let desk = repository();
        with_plan(&desk);
        in_conflict(&desk);
        if !is_checked_out {
            desk.git(&["checkout", "-q", "-b", "elsewhere"]);
        }
        let end = ended(&desk, merge(", squash = false"));
        assert_blocked(&desk, &end);
        let tree = desk.git(&["worktree", "list", "--porcelain"]);
        let tree = match is_checked_out {
            true => desk.path(""),
            false => tree.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap().into(),
        };
        fs::write(tree.join("both"), "of both\n").unwrap();
        let place = tree.to_str().unwrap();
        desk.git(&["-C", place, "add", "both"]);
        if is_checked_out {
            // While git is in the middle of it, jobs are not retried; who commits gets the right message.
            let ran = desk.run(&["jobs", "retry", &end.id]);
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.err.contains("in-progress merge/cherry-pick"), "{ran:?}");
            desk.git(&["commit", "-q", "--no-edit"]);
        }
        let end = again(&desk, &end.id);
        assert_merged(&desk, &end);
        assert_eq!(desk.git(&["log", "-1", "--format=%P", "main"]).split(' ').count(), 2);
    }
}

#[test]
fn a_resolution_under_another_name_counts_and_other_work_does_not() {
    let desk = repository();
    with_plan(&desk);
    in_conflict(&desk);
    let end = ended(&desk, merge(""));
    assert_blocked(&desk, &end);
    // The person gives up, and goes on with something else: nothing of the plan is lost.
    desk.git(&["reset", "-q", "--hard"]);
    desk.file("other", "x");
    desk.commit("something else");
    let end = again(&desk, &end.id);
    assert_blocked(&desk, &end);
    desk.file("both", "of both\n");
    desk.git(&["add", "both"]);
    desk.git(&["commit", "-q", "-m", "my own words"]);
    let end = again(&desk, &end.id);
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(subjects(&desk, "main"), ["my own words", "something else", "other work", "first"]);
    assert_eq!(desk.git(&["show", "main:feature ü"]), "feature");
}

#[test]
fn another_merge_in_the_target_is_not_disturbed() {
    let desk = repository();
    with_plan(&desk);
    in_conflict(&desk);
    desk.git(&["checkout", "-q", "-b", "third", "HEAD~1"]);
    desk.file("both", "of a third\n");
    desk.commit("third");
    desk.git(&["checkout", "-q", "main"]);
    let mut command = std::process::Command::new("git");
    desk.settle_in(&mut command);
    command.args(["-c", "user.name=A", "-c", "user.email=a@b", "merge", "third"]);
    assert_eq!(crate::world::Ran::of(&mut command).code, Some(1));
    let status = crate::git_world::status(&desk);
    let end = ended(&desk, merge(""));
    assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
    assert!(end.summary.contains("another merge is in progress"), "{end:?}");
    assert_eq!(crate::git_world::status(&desk), status);
    assert_eq!(subjects(&desk, "draft/alpha"), ["work", "first"]);
}

fn gate(more: &str) -> String {
    node("n", "control.gate.conflict_resolution", &format!("args = {{ slug = 'alpha'{more} }}"))
}

/// Lets a merge stop at a conflict in `gate-conflict.txt`, and says so.
fn stopped_merge(desk: &Desk) {
    desk.git(&["checkout", "-q", "-b", "draft/alpha"]);
    desk.file("gate-conflict.txt", "one\n");
    desk.commit("one");
    desk.git(&["checkout", "-q", "main"]);
    desk.file("gate-conflict.txt", "two\n");
    desk.commit("two");
    let mut command = std::process::Command::new("git");
    desk.settle_in(&mut command);
    command.args(["-c", "user.name=A", "-c", "user.email=a@b", "merge", "draft/alpha"]);
    assert_eq!(crate::world::Ran::of(&mut command).code, Some(1));
    desk.file(SENTINEL, "{}");
}

#[test]
fn m_142_a_gate_of_conflicts_opens_when_nothing_is_in_conflict() {
    let desk = repository();
    assert_eq!(ended(&desk, gate("")).end(), ("succeeded", Some(0)));
    stopped_merge(&desk);
    for args in ["", ", auto_resolve = false", ", auto_resolve = 'no', auto_resolve_script = 'git add -A'"] {
        let end = ended(&desk, gate(args));
        assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{args}: {end:?}");
        assert!(log(&desk, &end.id, "stderr").contains("remaining unmerged paths: gate-conflict.txt"));
        assert!(desk.path(SENTINEL).exists());
    }
    desk.file("gate-conflict.txt", "both\n");
    desk.git(&["add", "gate-conflict.txt"]);
    assert_eq!(ended(&desk, gate("")).end(), ("succeeded", Some(0)));
    assert!(!desk.path(SENTINEL).exists());
}

#[test]
fn m_142_a_gate_of_conflicts_may_try_to_resolve_them() {
    for (fix, is_open) in [
        (
            "auto_resolve_script = 'git checkout --theirs gate-conflict.txt && git add gate-conflict.txt'",
            true,
        ),
        ("auto_resolve_command = 'git rm -q gate-conflict.txt'", true),
        ("auto_resolve_script = 'true'", false),
        ("auto_resolve_script = 'exit 5'", false),
    ] {
        let desk = repository();
        stopped_merge(&desk);
        let end = ended(&desk, gate(&format!(", auto_resolve = true, {fix}")));
        let wanted = if is_open { ("succeeded", Some(0)) } else { ("blocked_by_dependency", Some(10)) };
        assert_eq!(end.end(), wanted, "{fix}: {end:?}");
        assert_eq!(desk.path(SENTINEL).exists(), !is_open, "{fix}");
        if is_open {
            assert_eq!(end.summary, "conflict gate passed after auto-resolve on attempt 1");
        }
    }
}

#[test]
fn a_conflict_is_resolved_by_its_gate_and_another_node_finishes() {
    for is_checked_out in [true, false] {
        let desk = repository();
        with_plan(&desk);
        in_conflict(&desk);
        if !is_checked_out {
            desk.git(&["checkout", "-q", "-b", "elsewhere"]);
        }
        let fix = ", auto_resolve = true, auto_resolve_script = 'echo of both > both; git add both'";
        let (run, _) = follow(
            &desk,
            &[
                merge("")
                    .replace("[[nodes]]", "[[nodes]]\non.blocked = ['resolve']")
                    .replace("\"n\"", "\"merge\""),
                gate(fix)
                    .replace("\"n\"", "\"resolve\"")
                    .replace("[[nodes]]", "[[nodes]]\non.succeeded = ['n']"),
                merge(""),
            ],
        );
        assert_eq!(of(&desk, &run, "merge").end(), ("blocked_by_dependency", Some(10)));
        assert_eq!(of(&desk, &run, "resolve").end(), ("succeeded", Some(0)));
        assert_merged(&desk, &of(&desk, &run, "n"));
        assert_eq!(desk.git(&["show", "main:both"]), "of both");
    }
}

#[test]
fn a_sentinel_is_written_and_cleared_by_hand() {
    let desk = repository();
    let end =
        ended(&desk, builtin("n", "merge.sentinel.write", "args = { slug = 'alpha', target = 'main' }"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    let sentinel: Value = serde_json::from_str(&fs::read_to_string(desk.path(SENTINEL)).unwrap()).unwrap();
    assert_eq!(
        (&sentinel["slug"], &sentinel["source_branch"], &sentinel["target_branch"], &sentinel["job_id"]),
        (&json!("alpha"), &json!("draft/alpha"), &json!("main"), &json!(end.id))
    );
    // Whoever needs it starts, and whoever clears it twice is no worse off.
    let needs = "needs = [{ merge_sentinel = { slug = 'alpha' } }]";
    assert_eq!(ended(&desk, script("n", "true", needs)).end(), ("succeeded", Some(0)));
    for _ in 0..2 {
        let end = ended(&desk, builtin("n", "merge.sentinel.clear", "args = { plan = 'alpha' }"));
        assert_eq!(end.end(), ("succeeded", Some(0)));
        assert!(!desk.path(SENTINEL).exists());
    }
}

#[test]
fn everything_works_with_other_hashes_odd_paths_and_from_a_linked_worktree() {
    for format in ["sha1", "sha256"] {
        let desk = Desk::new();
        let place = desk.outside().join("my röpo");
        let object_format = format!("--object-format={format}");
        desk.git(&["init", "-q", "-b", "main", &object_format, place.to_str().unwrap()]);
        let inside = |arguments: &[&str]| desk.git(&[&["-C", place.to_str().unwrap()], arguments].concat());
        inside(&["config", "user.name", "Ada"]);
        inside(&["config", "user.email", "ada@example.org"]);
        fs::write(place.join("READ ME"), "x\n").unwrap();
        inside(&["add", "-A"]);
        inside(&["commit", "-q", "-m", "first"]);
        inside(&["worktree", "add", "-q", "../linked träe", "-b", "linked"]);
        fs::create_dir_all(place.join(".tidewheel")).unwrap();
        let path = crate::git_world::template_in(
            &place,
            &[
                builtin(
                    "plan",
                    "plan.persist",
                    &format!("args = {{ slug = 'alpha', spec = '''{TEXT}''' }}\non.succeeded = ['prepare']"),
                ),
                builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
                script(
                    "work",
                    "printf x > 'ä b'; printf y > \"$(printf 'n\\nl')\"",
                    "on.succeeded = ['patch']",
                ),
                builtin("patch", "git.save_worktree_patch", "on.succeeded = ['commit']"),
                builtin("commit", "git.stage_commit", "args = { message = 'wörk' }\non.succeeded = ['n']"),
                merge(", delete_branch = true").replace("[[nodes]]", "[[nodes]]\non.succeeded = ['cleanup']"),
                builtin("cleanup", "worktree.cleanup", ""),
            ],
        );
        // The data directory of a linked worktree is that of the main one, whatever a hook has in its environment.
        let mut command = desk.command(&["run", path.to_str().unwrap(), "--follow"]);
        command.current_dir(desk.outside().join("linked träe"));
        command
            .env("GIT_DIR", desk.outside().join("linked träe/.git"))
            .env("GIT_INDEX_FILE", "/nonexistent/index");
        command.env("GIT_WORK_TREE", "/").env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "core.bare").env("GIT_CONFIG_VALUE_0", "true");
        let ran = crate::world::Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{format}: {ran:?}");
        assert!(place.join(".tidewheel/jobs").exists());
        assert_eq!(inside(&["log", "-1", "--format=%B"]).trim_end(), MESSAGE);
        assert_eq!(inside(&["ls-tree", "-z", "--name-only", "HEAD"]), "READ ME\0n\nl\0ä b\0");
        assert_eq!(inside(&["branch", "--format=%(refname:short)"]), "linked\nmain");
        assert_eq!(inside(&["rev-parse", "HEAD"]).len(), if format == "sha1" { 40 } else { 64 });
    }
}
