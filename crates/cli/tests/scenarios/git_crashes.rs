//! A supervisor that is killed at any call of git: a retry ends where it would have ended without that.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::by_hand::Desk;
use crate::git_merges::{MESSAGE, in_conflict, merge, message, with_plan};
use crate::git_world::{again, builtin, ended, log, of, repository, subjects, template};
use crate::world::Ran;
use tidewheel_testkit::figure;

/// Puts a git on the way that counts the calls of supervisors, and kills the one that makes a certain call.
fn deadly_git(desk: &Desk) {
    let folder = desk.outside().join("deadly");
    fs::create_dir_all(&folder).unwrap();
    // Before the first call that changes something, nothing can be left in the middle.
    let script = "#!/bin/sh\n\
        PATH=/usr/local/bin:/usr/bin:/bin\n\
        case \" $* \" in *' add '* | *-tree* | *update-ref* | *' commit '* | *' merge '*)\n\
        begins=1;; esac\n\
        if tr '\\0' ' ' < /proc/$PPID/cmdline | grep -Eq -- '__workflow-node --job-id [^ ]*-n '; then\n\
        [ -z \"$begins\" ] || touch \"$TW_DEADLY/begun\"\n\
        [ -e \"$TW_DEADLY/begun\" ] || exec git \"$@\"\n\
        echo \"$(printf '%s ' \"$@\" | tr '\\n' ' ')\" >> \"$TW_DEADLY/calls\"\n\
        if [ $(wc -l < \"$TW_DEADLY/calls\") = \"$TW_KILL_AT\" ]; then\n\
        [ -z \"$TW_KILL_AFTER\" ] || git \"$@\"\n\
        kill -9 $PPID; exit 1\n\
        fi\nfi\nexec git \"$@\"\n";
    fs::write(folder.join("git"), script).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a node `n` whose supervisor is killed at a call. Returns its run, and whether there were so many calls.
#[track_caller]
fn killed_at(desk: &Desk, node: String, call: usize) -> (String, bool) {
    deadly_git(desk);
    let path = template(desk, &[node]);
    let run = with_death(desk, &["run", path.to_str().unwrap()], call);
    (run.json()["run_id"].as_str().unwrap().to_owned(), settle(desk))
}

#[track_caller]
fn with_death(desk: &Desk, arguments: &[&str], call: usize) -> Ran {
    let folder = desk.outside().join("deadly");
    for name in ["calls", "begun"] {
        let _missing = fs::remove_file(folder.join(name));
    }
    let mut command = desk.command(&[arguments, &["--format", "json"]].concat());
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()));
    command.env("TW_DEADLY", &folder).env("TW_KILL_AT", call.to_string());
    if call.is_multiple_of(2) {
        // Every second one dies when git has done its part.
        command.env("TW_KILL_AFTER", "1");
    }
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// Waits until everything is over, and tells whether a supervisor was killed.
fn settle(desk: &Desk) -> bool {
    let id = desk.job_dirs().into_iter().find(|id| id.ends_with("-n")).unwrap();
    crate::world::eventually("it is over", || {
        desk.run(&["tick"]);
        let status = desk.status(&id);
        ["succeeded", "failed", "blocked_by_dependency"].contains(&status.as_str())
    });
    desk.record(&id)["metadata"]["process_liveness_state"].is_string()
}

/// Returns all that is to be the same however often something was killed.
fn state(desk: &Desk, run: &str) -> (Vec<String>, Vec<String>, String, String, String) {
    let of_branch = |name: &str| {
        let listed = desk.git(&["branch", "--list", name]);
        if listed.is_empty() { Vec::new() } else { subjects(desk, name) }
    };
    let left = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(",")
            .replace(run, "RUN")
    };
    (
        of_branch("main"),
        of_branch("draft/alpha"),
        crate::git_world::status(desk),
        left(&desk.path(".tidewheel/tmp-worktrees")) + &left(&desk.path(".git/worktrees")),
        left(&desk.path(".tidewheel/tmp/merge-conflicts")),
    )
}

/// Returns the calls at which supervisors are killed: one of five, and all of them with `TIDEWHEEL_STORM=full`, which
/// is what `cargo xtask crash` sets.
fn deadly(calls: usize) -> impl Iterator<Item = usize> {
    let is_full = std::env::var("TIDEWHEEL_STORM").is_ok_and(|size| size == "full");
    (1..=calls).filter(move |call| is_full || call % 5 == 2)
}

/// Kills at every call, retries, and compares with what comes of it otherwise.
#[track_caller]
fn at_every_call(node: &dyn Fn() -> String, set_up: &dyn Fn() -> Desk, check: &dyn Fn(&Desk, &str)) {
    let quiet = set_up();
    let (run, was_killed) = killed_at(&quiet, node(), usize::MAX);
    assert!(!was_killed);
    let wanted = state(&quiet, &run);
    check(&quiet, &run);
    let calls = fs::read_to_string(quiet.outside().join("deadly/calls")).unwrap().lines().count();
    assert!(calls > 2, "{calls}");
    // Each test has its own count, and the name of its thread is that of the test.
    let test = std::thread::current().name().unwrap_or("test").to_owned();
    figure::counted(&format!("kills at calls of git/{test}"), deadly(calls).count());
    for call in deadly(calls) {
        let desk = set_up();
        let (run, was_killed) = killed_at(&desk, node(), call);
        assert!(was_killed, "call {call}: {}", desk.record(&format!("wf-{run}-n")));
        let ran = desk.run(&["jobs", "retry", &format!("wf-{run}-n")]);
        assert_eq!(ran.code, Some(0), "call {call}: {ran:?}");
        desk.wait(&format!("wf-{run}-n"));
        let end = of(&desk, &run, "n");
        let last = fs::read_to_string(desk.outside().join("deadly/calls")).unwrap();
        let (last, summary) = (last.lines().last().unwrap(), &end.summary);
        assert_eq!(state(&desk, &run), wanted, "call {call} of {calls}, {last}: {summary}: {end:?}");
        check(&desk, &run);
    }
}

#[test]
fn a_merge_that_is_killed_anywhere_is_done_once() {
    at_every_call(
        &|| merge(", delete_branch = true"),
        &|| {
            let desk = repository();
            with_plan(&desk);
            desk
        },
        &|desk, run| {
            assert_eq!(of(desk, run, "n").end(), ("succeeded", Some(0)));
            assert_eq!(message(desk, "main"), MESSAGE);
        },
    );
}

#[test]
fn a_merge_of_the_branch_that_the_run_works_on_is_done_once() {
    let plan = "args = { slug = 'alpha', spec = \"# Alpha\\n\\nDo it well.\" }\non.succeeded = ['prepare']";
    let nodes = [
        builtin("plan", "plan.persist", plan),
        builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['n']"),
        merge(""),
    ];
    at_every_call(
        &|| nodes.concat(),
        &|| {
            let desk = repository();
            with_work(&desk);
            desk
        },
        &|desk, run| {
            assert_eq!(of(desk, run, "n").end(), ("succeeded", Some(0)));
            assert_eq!(message(desk, "main"), MESSAGE);
            // Nothing of the document is left in the worktree, staged or not.
            let tree = format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare");
            assert_eq!(desk.git(&["-C", &tree, "status", "--porcelain"]), "");
        },
    );
}

/// Gives a repository a branch with a change, without a plan.
fn with_work(desk: &Desk) {
    desk.git(&["checkout", "-q", "-b", "draft/alpha"]);
    desk.file("feature", "x");
    desk.commit("work");
    desk.git(&["checkout", "-q", "main"]);
}

#[test]
fn a_merge_of_branches_that_nobody_has_checked_out_is_done_once() {
    at_every_call(
        &|| merge(""),
        &|| {
            let desk = repository();
            with_plan(&desk);
            desk.git(&["checkout", "-q", "-b", "elsewhere"]);
            desk
        },
        &|desk, run| {
            assert_eq!(of(desk, run, "n").end(), ("succeeded", Some(0)));
            assert_eq!(message(desk, "main"), MESSAGE);
        },
    );
}

#[test]
fn a_conflict_that_is_killed_anywhere_waits_for_a_person_once() {
    at_every_call(
        &|| merge(""),
        &|| {
            let desk = repository();
            with_plan(&desk);
            in_conflict(&desk);
            desk.git(&["checkout", "-q", "-b", "elsewhere"]);
            desk
        },
        &|desk, run| {
            let end = of(desk, run, "n");
            assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
            // Its directory has another name each time.
            let trees = desk.path(".tidewheel/tmp-worktrees");
            let tree = trees.join(format!("integrate-wf-{run}-n"));
            fs::write(tree.join("both"), "of both\n").unwrap();
            desk.git(&["-C", tree.to_str().unwrap(), "add", "both"]);
            let end = crate::git_world::again(desk, &end.id);
            assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
            assert_eq!(message(desk, "main"), MESSAGE);
            assert_eq!(subjects(desk, "main").len(), 3);
            assert!(!tree.exists());
        },
    );
}

#[test]
fn a_conflict_in_the_tree_of_a_person_is_left_there_once() {
    at_every_call(
        &|| merge(""),
        &|| {
            let desk = repository();
            with_plan(&desk);
            in_conflict(&desk);
            desk
        },
        &|desk, run| {
            let end = of(desk, run, "n");
            assert_eq!(end.end(), ("blocked_by_dependency", Some(10)), "{end:?}");
            desk.file("both", "of both\n");
            desk.git(&["add", "both"]);
            let end = crate::git_world::again(desk, &end.id);
            assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
            assert_eq!(message(desk, "main"), MESSAGE);
            assert_eq!(subjects(desk, "main").len(), 3);
        },
    );
}

#[test]
fn a_plan_that_is_persisted_and_killed_anywhere_is_committed_once() {
    at_every_call(
        &|| builtin("n", "plan.persist", "args = { slug = 'alpha', spec = 'x' }"),
        &repository,
        &|desk, run| {
            assert_eq!(of(desk, run, "n").end(), ("succeeded", Some(0)));
            assert_eq!(subjects(desk, "draft/alpha"), ["docs: add implementation plan alpha", "first"]);
        },
    );
}

#[test]
fn a_commit_that_is_killed_anywhere_is_made_once_or_says_what_to_do() {
    let commit = || builtin("n", "git.stage_commit", "args = { message = 'm' }");
    let desk = repository();
    desk.file("x", "x");
    killed_at(&desk, commit(), usize::MAX);
    let calls = fs::read_to_string(desk.outside().join("deadly/calls")).unwrap().lines().count();
    for call in deadly(calls) {
        let desk = repository();
        desk.file("x", "x");
        let (run, was_killed) = killed_at(&desk, commit(), call);
        assert!(was_killed, "{call}");
        let end = crate::git_world::again(&desk, &format!("wf-{run}-n"));
        assert_eq!(end.end(), ("succeeded", Some(0)), "{call}: {end:?}");
        assert_eq!(subjects(&desk, "main"), ["m", "first"], "{call}");
    }
}

#[test]
fn a_worktree_that_is_killed_anywhere_is_prepared_once() {
    at_every_call(
        &|| builtin("n", "worktree.prepare", "args = { slug = 'alpha' }"),
        &repository,
        &|desk, run| {
            let end = of(desk, run, "n");
            assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
            let path = end.record["metadata"]["worktree_path"].as_str().unwrap().to_owned();
            assert!(desk.path(&path).join("README.md").exists());
            // So that the names of the runs do not matter.
            desk.git(&["worktree", "remove", &path]);
        },
    );
}

#[test]
fn a_lock_that_a_killed_git_left_goes_with_the_retry_and_that_of_anybody_else_stays() {
    let desk = repository();
    let lock = desk.path(".git/refs/heads/draft/alpha.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    // What was there before the job was not left by it.
    fs::write(&lock, "").unwrap();
    let end = ended(&desk, builtin("n", "plan.persist", "args = { slug = 'alpha', spec = 'x' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    let wanted = "/.git/refs/heads/draft/alpha.lock': File exists; if no git is at work there, one was killed: \
                  remove that file and retry";
    assert!(end.summary.ends_with(wanted), "{}", end.summary);
    assert_eq!(again(&desk, &end.id).end(), ("failed", Some(1)));
    assert!(lock.exists());
    // A git that is older than the lock may have made it.
    let other = desk.outside().join("git");
    fs::copy("/bin/sleep", &other).unwrap();
    let mut other = std::process::Command::new(other).arg("1000").current_dir(desk.path("")).spawn().unwrap();
    fs::remove_file(&lock).unwrap();
    fs::write(&lock, "").unwrap();
    assert_eq!(again(&desk, &end.id).end(), ("failed", Some(1)));
    assert!(lock.exists());
    // Nobody is there any more who can have made it.
    other.kill().unwrap();
    other.wait().unwrap();
    let end = again(&desk, &end.id);
    assert_eq!(end.end(), ("succeeded", Some(0)), "{}", end.summary);
    let told = format!("removed {}: the git that made it was killed\n", lock.display());
    assert!(log(&desk, &end.id, "stderr").ends_with(&told));
    assert_eq!(subjects(&desk, "draft/alpha"), ["docs: add implementation plan alpha", "first"]);
}

#[test]
fn a_worktree_that_git_does_not_recognise_any_more_is_made_anew() {
    let desk = repository();
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { slug = 'alpha' }"));
    assert_eq!(end.end(), ("succeeded", Some(0)));
    // A git that was killed while it wrote its first file leaves it empty.
    let tree = desk.path(end.record["metadata"]["worktree_path"].as_str().unwrap());
    fs::write(tree.join(".git"), "").unwrap();
    let end = again(&desk, &end.id);
    assert_eq!(end.end(), ("succeeded", Some(0)), "{}", end.summary);
    assert!(tree.join("README.md").exists());
}

#[test]
fn a_worktree_whose_git_was_killed_in_its_last_file_stands_in_the_way_of_no_other() {
    let desk = repository();
    let cut_off = |name: &str, reason: &str| {
        let path = desk.outside().join(name);
        let add = ["worktree", "add", "-q", "--lock", "--reason", reason, "--detach", path.to_str().unwrap()];
        desk.git(&add);
        // Until this file is written, every command of git that looks at all worktrees fails.
        fs::write(desk.path(&format!(".git/worktrees/{name}/commondir")), "").unwrap();
    };
    cut_off("ours", "tidewheel is making it");
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { slug = 'alpha' }"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{}", end.summary);
    assert!(!desk.path(".git/worktrees/ours").exists());
    // One that a person was making is not ours to remove.
    cut_off("theirs", "initializing");
    let end = ended(&desk, builtin("n", "worktree.prepare", "args = { slug = 'beta' }"));
    assert_eq!(end.end(), ("failed", Some(1)));
    let wanted = "failed to read .git/worktrees/theirs/commondir: Success; a git was killed while it made that \
                  worktree: remove the directory of that file and retry";
    assert!(end.summary.ends_with(wanted), "{}", end.summary);
    fs::remove_dir_all(desk.path(".git/worktrees/theirs")).unwrap();
    assert_eq!(again(&desk, &end.id).end(), ("succeeded", Some(0)));
}
