//! Worktrees that jobs make for each other, commits and patches in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::by_hand::at;
use crate::git_world::{again, builtin, ended, follow, has, log, node, of, repository, script, subjects};

#[test]
fn m_146_a_worktree_is_prepared_with_the_branch_that_is_named_first() {
    let desk = repository();
    let head = desk.git(&["rev-parse", "HEAD"]);
    for (args, branch, purpose) in [
        ("{ branch = 'feat/x', slug = 'alpha' }", "feat/x", "work"),
        ("{ slug = 'alpha', purpose = 'build' }", "draft/alpha", "build"),
        ("{ plan = 'beta' }", "draft/beta", "work"),
    ] {
        let end = ended(&desk, builtin("n", "worktree.prepare", &format!("args = {args}")));
        assert_eq!(end.end(), ("succeeded", Some(0)), "{args}: {end:?}");
        let name = format!("{purpose}-{}", end.id);
        let path = format!(".tidewheel/tmp-worktrees/{name}");
        let metadata = &end.record["metadata"];
        for (field, value) in [
            ("execution_root", json!(path)),
            ("worktree_path", json!(path)),
            ("worktree_name", json!(name)),
            ("worktree_branch", json!(branch)),
            ("worktree_owned", json!(true)),
        ] {
            assert_eq!(metadata[field], value, "{args}: {field}");
        }
        assert_eq!(desk.git(&["-C", &path, "symbolic-ref", "--short", "HEAD"]), branch);
        assert_eq!(desk.git(&["rev-parse", branch]), head);
    }
}

#[test]
fn m_146_a_branch_that_is_there_is_taken_and_a_new_one_begins_where_it_should() {
    let desk = repository();
    desk.git(&["branch", "old"]);
    let old = desk.git(&["rev-parse", "old"]);
    desk.commit("second");
    for (args, branch, commit) in [
        ("{ branch = 'old' }", "old", old.clone()),
        ("{ branch = 'a', base = 'old' }", "a", old.clone()),
        ("{ branch = 'b', target = 'old' }", "b", old),
        ("{ branch = 'c' }", "c", desk.git(&["rev-parse", "main"])),
    ] {
        let end = ended(&desk, builtin("n", "worktree.prepare", &format!("args = {args}")));
        assert_eq!(end.end(), ("succeeded", Some(0)), "{args}: {end:?}");
        assert_eq!(desk.git(&["rev-parse", branch]), commit, "{args}");
    }
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { branch = 'd', base = 'nowhere' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("base `nowhere` does not exist"), "{end:?}");
    assert!(!has(&desk, "refs/heads/d"));
}

#[test]
fn m_146_without_a_branch_nothing_is_prepared() {
    let desk = repository();
    let end = ended(&desk, builtin("n", "worktree.prepare", ""));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert_eq!(end.summary, "worktree.prepare could not determine branch (set branch or slug/plan)");
    assert_eq!(end.record["metadata"]["execution_root"], ".");
}

#[test]
fn m_146_a_branch_that_somebody_works_on_is_left_to_them() {
    let desk = repository();
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { branch = 'main' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("branch `main` is checked out in"), "{end:?}");
    assert!(!desk.path(".tidewheel/tmp-worktrees").join(format!("work-{}", end.id)).exists());
}

#[test]
fn m_147_what_follows_runs_in_the_worktree_and_after_the_cleanup_in_the_root() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['one']"),
            script("one", "pwd; git branch --show-current; echo x > made", "on.succeeded = ['two']"),
            script("two", "pwd; cat made", "on.succeeded = ['cleanup']"),
            builtin("cleanup", "worktree.cleanup", "on.succeeded = ['last']"),
            // One that comes after both is not sent to where nothing is any more.
            script("last", "pwd", "after = ['two']"),
        ],
    );
    assert_eq!(code, Some(0));
    let place = format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare");
    let root = desk.path("").canonicalize().unwrap();
    let tree = root.join(&place);
    assert_eq!(
        log(&desk, &of(&desk, &run, "one").id, "stdout"),
        format!("{}\ndraft/alpha\n", tree.display())
    );
    assert_eq!(log(&desk, &of(&desk, &run, "two").id, "stdout"), format!("{}\nx\n", tree.display()));
    assert_eq!(log(&desk, &of(&desk, &run, "last").id, "stdout"), format!("{}\n", root.display()));
    for name in ["one", "two"] {
        let metadata = of(&desk, &run, name).record["metadata"].clone();
        assert_eq!((&metadata["execution_root"], &metadata["worktree_path"]), (&json!(place), &json!(place)));
    }
    let metadata = of(&desk, &run, "cleanup").record["metadata"].clone();
    assert_eq!(metadata["execution_root"], ".");
    for name in ["worktree_owned", "worktree_path", "worktree_name", "worktree_branch"] {
        assert_eq!(at(&metadata, &format!("/{name}")), &Value::Null, "{name}");
    }
    assert!(!tree.exists());
    assert!(!desk.git(&["worktree", "list"]).contains("tmp-worktrees"));
    // The branch and its commits are not the worktree's.
    assert!(has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn m_147_two_different_worktrees_fail_the_job_and_are_named() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin("a", "worktree.prepare", "args = { branch = 'one' }"),
            builtin("b", "worktree.prepare", "args = { branch = 'two' }"),
            script("join", "touch ran", "after = ['a', 'b']"),
        ],
    );
    assert_eq!(code, Some(1));
    let join = of(&desk, &run, "join");
    assert_eq!(join.end(), ("failed", Some(1)));
    for name in ["a", "b"] {
        assert!(join.summary.contains(&format!("tmp-worktrees/work-wf-{run}-{name}")), "{join:?}");
    }
    assert!(!desk.path("ran").exists());
}

#[test]
fn m_147_a_retry_of_what_follows_finds_the_worktree_again() {
    let desk = repository();
    let (run, _) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script("work", "pwd; echo kept >> file; test -e allowed", ""),
        ],
    );
    let work = of(&desk, &run, "work");
    assert_eq!(work.end(), ("failed", Some(1)));
    let tree = desk.path(&format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare"));
    fs::write(tree.join("allowed"), "").unwrap();
    let work = again(&desk, &work.id);
    assert_eq!(work.end(), ("succeeded", Some(0)), "{work:?}");
    // It is not its own, so that it is not taken away when it is retried.
    assert_eq!(fs::read_to_string(tree.join("file")).unwrap(), "kept\nkept\n");
}

#[test]
fn h_76_a_retry_of_what_prepared_a_worktree_begins_with_a_new_one() {
    let desk = repository();
    let (run, _) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script("work", "test ! -e left; touch left", ""),
        ],
    );
    let prepare = of(&desk, &run, "prepare");
    let before = prepare.record["metadata"]["worktree_path"].clone();
    let prepare = again(&desk, &prepare.id);
    desk.wait(&format!("wf-{run}-work"));
    assert_eq!(of(&desk, &run, "work").end(), ("succeeded", Some(0)));
    assert_eq!(prepare.record["metadata"]["worktree_path"], before);
    assert_eq!(prepare.record["metadata"]["retry_cleanup_status"], "done");
    // What works in a worktree that is gone says who can make it again.
    fs::remove_dir_all(desk.path(before.as_str().unwrap())).unwrap();
    let work = again(&desk, &format!("wf-{run}-work"));
    assert_eq!(work.end(), ("failed", Some(1)));
    assert!(work.summary.contains(&format!("retry job wf-{run}-prepare")), "{work:?}");
}

#[test]
fn a_worktree_that_was_cut_off_while_it_was_made_is_made_again() {
    let desk = repository();
    let (run, _) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['stop']"),
            script("stop", "exit 1", ""),
        ],
    );
    let prepare = of(&desk, &run, "prepare");
    let place = prepare.record["metadata"]["worktree_path"].as_str().unwrap().to_owned();
    // So it looks when git is killed at it: locked while it is made, without files and with a lock on the index.
    let private = desk.path(&format!(".git/worktrees/work-{}", prepare.id));
    fs::write(private.join("locked"), "tidewheel is making it").unwrap();
    fs::write(private.join("index.lock"), "").unwrap();
    fs::remove_file(desk.path(&place).join("README.md")).unwrap();
    let prepare = again(&desk, &prepare.id);
    assert_eq!(prepare.end(), ("succeeded", Some(0)), "{prepare:?}");
    assert!(desk.path(&place).join("README.md").exists());
    assert!(!private.join("locked").exists());
}

#[test]
fn a_worktree_that_a_person_locks_is_kept_until_it_is_unlocked() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script("work", "git worktree lock --reason mine .", "on.succeeded = ['cleanup']"),
            builtin("cleanup", "worktree.cleanup", ""),
        ],
    );
    assert_eq!(code, Some(1));
    let cleanup = of(&desk, &run, "cleanup");
    assert_eq!(cleanup.end(), ("failed", Some(1)));
    let metadata = &cleanup.record["metadata"];
    assert_eq!(metadata["worktree_cleanup_status"], "degraded");
    assert!(
        metadata["worktree_cleanup_error"].as_str().is_some_and(|error| error.contains("mine")),
        "{metadata}"
    );
    let place = metadata["worktree_path"].as_str().expect("it is still known").to_owned();
    assert!(desk.path(&place).join("README.md").exists());
    desk.git(&["worktree", "unlock", &place]);
    assert_eq!(again(&desk, &cleanup.id).end(), ("succeeded", Some(0)));
    assert!(!desk.path(&place).exists());
}

#[test]
fn a_cleanup_may_handle_a_failure_and_removes_what_is_changed() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script("work", "echo x > untracked; echo x >> README.md; exit 3", "on.failed = ['cleanup']"),
            builtin("cleanup", "worktree.cleanup", ""),
        ],
    );
    assert_eq!(code, Some(1));
    assert_eq!(of(&desk, &run, "cleanup").end(), ("succeeded", Some(0)));
    assert!(!desk.path(&format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare")).exists());
}

#[test]
fn a_cleanup_touches_nothing_that_jobs_do_not_own() {
    let desk = repository();
    desk.git(&["worktree", "add", "-q", ".tidewheel/tmp-worktrees/workspace-ada", "-b", "ada"]);
    desk.file("precious/file", "x");
    // Without a worktree there is nothing to do.
    let end = ended(&desk, builtin("n", "worktree.cleanup", ""));
    assert_eq!(end.end(), ("succeeded", Some(0)));
    for place in [".tidewheel/tmp-worktrees/workspace-ada", "precious", "../far", ".tidewheel/tmp-worktrees"]
    {
        let gated = builtin("n", "worktree.cleanup", "gates = [{ kind = 'approval', required = true }]");
        let path = crate::git_world::template(&desk, &[gated]);
        let run = desk.enqueue(&[path.to_str().unwrap()]);
        let id = format!("wf-{run}-n");
        let mut record = desk.record(&id);
        record["metadata"]["worktree_path"] = json!(place);
        record["metadata"]["worktree_owned"] = json!(true);
        desk.put(crate::by_hand::Job(record));
        assert_eq!(desk.run(&["jobs", "approve", &id]).code, Some(0));
        desk.wait(&id);
        let end = of(&desk, &run, "n");
        assert_eq!(end.end(), ("failed", Some(1)), "{place}");
        assert!(end.summary.contains("refusing to clean unsafe worktree path"), "{end:?}");
        let metadata = &end.record["metadata"];
        assert_eq!(
            (&metadata["worktree_cleanup_status"], &metadata["worktree_path"]),
            (&json!("degraded"), &json!(place))
        );
    }
    assert!(desk.path(".tidewheel/tmp-worktrees/workspace-ada/README.md").exists());
    assert!(desk.path("precious/file").exists());
}

#[test]
fn a_commit_has_all_changes_and_nothing_of_the_jobs() {
    let desk = repository();
    desk.file("new file ä", "x").file("README.md", "changed\n").file(".tidewheel/tmp/t", "x");
    desk.file(".tidewheel/sessions/s", "x");
    // Also what somebody staged by hand is not committed.
    desk.git(&["add", "-f", ".tidewheel/tmp/t"]);
    let end =
        ended(&desk, builtin("n", "git.stage_commit", "args = { message = \"feat: all\\n\\n# body\\n\" }"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(desk.git(&["log", "-1", "--format=%B"]), "feat: all\n\n# body\n".trim_end());
    let files = desk.git(&["-c", "core.quotepath=off", "show", "--name-only", "--format="]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["README.md", "new file ä"]);
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'again' }"));
    assert_eq!((end.end(), end.summary.as_str()), (("succeeded", Some(0)), "there is nothing to commit"));
    assert_eq!(subjects(&desk, "main"), ["feat: all", "first"]);
}

#[test]
fn a_hook_that_refuses_a_commit_is_heard() {
    let desk = repository();
    let hook = desk.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho 'no tabs, please' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    desk.file("x", "x");
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'm' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(log(&desk, &end.id, "stderr").contains("no tabs, please"));
    let explained = desk.run(&["jobs", "explain", &end.id]);
    assert!(explained.out.contains("no tabs, please"), "{explained:?}");
    assert_eq!(subjects(&desk, "main"), ["first"]);
    fs::remove_file(hook).unwrap();
    assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
    assert_eq!(subjects(&desk, "main"), ["m", "first"]);
}

#[test]
fn who_is_nobody_is_told_what_to_set() {
    let desk = repository();
    desk.git(&["config", "--unset", "user.name"]);
    desk.git(&["config", "--unset", "user.email"]);
    // Otherwise git would make somebody up of the name of the machine.
    desk.git(&["config", "user.useConfigOnly", "true"]);
    desk.file("x", "x");
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'm' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    for word in ["user.name", "user.email", "GIT_AUTHOR_NAME"] {
        assert!(end.summary.contains(word), "{end:?}");
    }
    assert_eq!(desk.git(&["diff", "--cached", "--name-only"]), "");
    let args = "args = { slug = 'alpha', spec = 'x' }";
    let end = ended(&desk, builtin("n", "plan.persist", args));
    assert!(end.summary.contains("user.email"), "{end:?}");
    assert!(!has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn a_lock_of_git_is_removed_where_only_jobs_work_and_named_where_people_do() {
    let desk = repository();
    desk.file("x", "x").file(".git/index.lock", "");
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'm' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("index.lock") && end.summary.contains("remove that file"), "{end:?}");
    fs::remove_file(desk.path(".git/index.lock")).unwrap();
    let (run, code) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
            script(
                "work",
                "echo x > made; touch $(git rev-parse --git-path index.lock)",
                "on.succeeded = ['n']",
            ),
            builtin("n", "git.stage_commit", "args = { message = 'm' }"),
        ],
    );
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "n"));
    assert_eq!(subjects(&desk, "draft/alpha"), ["m", "first"]);
}

#[test]
fn a_patch_has_everything_and_leaves_the_index_alone() {
    let desk = repository();
    desk.file("tracked", "one\n");
    desk.commit("tracked");
    desk.file("tracked", "two\n").file("README.md", "staged\n").file("dir/ü ü", "new\n");
    fs::write(desk.path("binary"), [0_u8, 1, 2, 255, 0]).unwrap();
    desk.git(&["add", "README.md"]);
    desk.git(&["config", "diff.noprefix", "true"]);
    let index = fs::read(desk.path(".git/index")).unwrap();
    let status = crate::git_world::status(&desk);
    let end = ended(&desk, builtin("n", "git.save_worktree_patch", ""));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(fs::read(desk.path(".git/index")).unwrap(), index);
    assert_eq!(crate::git_world::status(&desk), status);
    let patch = desk.in_jobs(&end.id).join("command.patch");
    assert!(!fs::read_to_string(&patch).unwrap().contains(".tidewheel/jobs"));
    let names: Vec<String> = fs::read_dir(desk.in_jobs(&end.id))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("index") || name.contains("new"))
        .collect();
    assert_eq!(names, [""; 0]);
    desk.git(&["worktree", "add", "-q", "--detach", "../elsewhere"]);
    desk.git(&["-C", "../elsewhere", "apply", "--index", patch.to_str().unwrap()]);
    let there = desk.outside().join("elsewhere");
    for name in ["tracked", "README.md", "dir/ü ü", "binary"] {
        assert_eq!(fs::read(there.join(name)).unwrap(), fs::read(desk.path(name)).unwrap(), "{name}");
    }
}

#[test]
fn c_37_a_patch_is_there_for_those_who_need_it() {
    let desk = repository();
    desk.file("new", "x");
    let (run, code) = follow(
        &desk,
        &[
            builtin("save", "git.save_worktree_patch", "on.succeeded = ['use']"),
            script("use", "cat .tidewheel/jobs/*-save/command.patch", ""),
        ],
    );
    assert_eq!(code, Some(0));
    assert!(log(&desk, &of(&desk, &run, "use").id, "stdout").contains("+++ b/new"));
}

#[test]
fn operations_work_before_the_first_commit_or_say_why_not() {
    let desk = crate::by_hand::Desk::new();
    desk.git(&["init", "-q", "-b", "main"]);
    desk.git(&["config", "user.name", "Ada"]);
    desk.git(&["config", "user.email", "ada@example.org"]);
    desk.file("x", "x\n");
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { slug = 'alpha' }"));
    assert!(end.summary.contains("the repository has no commit yet"), "{end:?}");
    let end = ended(&desk, builtin("n", "git.save_worktree_patch", ""));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    let patch = fs::read_to_string(desk.in_jobs(&end.id).join("command.patch")).unwrap();
    assert!(patch.contains("+++ b/x"), "{patch}");
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'first' }"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(subjects(&desk, "main"), ["first"]);
}

#[test]
fn without_a_repository_the_operations_say_so() {
    let desk = crate::by_hand::Desk::new();
    let operations = [
        builtin("n", "worktree.prepare", "args = { slug = 'a' }"),
        builtin("n", "plan.persist", "args = { slug = 'a', spec = 'x' }"),
        builtin("n", "git.stage_commit", "args = { message = 'm' }"),
        builtin("n", "git.save_worktree_patch", ""),
        builtin("n", "git.integrate_plan_branch", "args = { slug = 'a', target = 'main' }"),
    ];
    for operation in operations {
        let end = ended(&desk, operation);
        assert_eq!(end.end(), ("failed", Some(1)), "{end:?}");
        assert!(end.summary.contains("not a git repository"), "{end:?}");
    }
    let end = ended(&desk, node("n", "control.gate.conflict_resolution", "args = { slug = 'a' }"));
    assert_eq!(end.end(), ("succeeded", Some(0)));
}

#[test]
fn an_operation_ends_with_its_time_and_can_be_cancelled() {
    let desk = repository();
    let hook = desk.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch \"$TIDEWHEEL_DIR/tmp/began\"\nexec sleep 600\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(desk.path(".tidewheel/tmp")).unwrap();
    desk.file("x", "x");
    let commit = builtin("n", "git.stage_commit", "args = { message = 'm' }");
    let timed = "[[policies]]\nmatch = { default = true }\ntimeout = \"300ms\"\n".to_owned();
    let (run, _) = follow(&desk, &[timed, commit.clone()]);
    assert_eq!(of(&desk, &run, "n").end(), ("failed", Some(124)));
    // On a slow machine its time may be over before the hook begins.
    for left in [".tidewheel/tmp/began", ".git/index.lock"] {
        let _missing = fs::remove_file(desk.path(left));
    }
    let path = crate::git_world::template(&desk, &[commit]);
    let run = desk.enqueue(&[path.to_str().unwrap()]);
    let id = format!("wf-{run}-n");
    crate::world::eventually("the hook runs", || desk.path(".tidewheel/tmp/began").exists());
    assert_eq!(desk.run(&["jobs", "cancel", &id]).code, Some(0));
    assert_eq!(of(&desk, &run, "n").end(), ("cancelled", Some(143)));
    assert_eq!(subjects(&desk, "main"), ["first"]);
}

#[test]
fn old_worktrees_go_with_the_jobs_that_own_them() {
    let desk = repository();
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { slug = 'alpha' }"));
    desk.git(&[
        "worktree",
        "add",
        "-q",
        &format!(".tidewheel/tmp-worktrees/workspace-{}", end.id),
        "-b",
        "ada",
    ]);
    let tree = desk.path(&format!(".tidewheel/tmp-worktrees/work-{}", end.id));
    assert!(tree.exists());
    assert_eq!(desk.run(&["jobs", "gc", "--days", "0", "--dry-run"]).code, Some(0));
    assert!(tree.exists());
    // A supervisor that is about to go still holds its job.
    crate::world::eventually("it is collected", || desk.run(&["jobs", "gc", "--days", "0"]).code == Some(0));
    assert!(!tree.exists());
    assert!(desk.path(&format!(".tidewheel/tmp-worktrees/workspace-{}", end.id)).exists());
    assert!(has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn what_git_complains_about_is_in_the_summary() {
    let desk = repository();
    desk.file("new", "x");
    desk.file(".git/hooks/pre-commit", "#!/bin/sh\necho 'tabs are forbidden' >&2\nexit 1\n");
    fs::set_permissions(desk.path(".git/hooks/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
    let end = ended(&desk, builtin("n", "git.stage_commit", "args = { message = 'm' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert_eq!(end.summary, "git.stage_commit failed (exit 1): tabs are forbidden");
}
