//! Jobs that want the world to be so before they start.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};

const DIRTY: &str = "working tree has uncommitted or untracked changes";
const NO_BRANCH: &str = "branch_exists precondition requires branch context (set precondition.branch, \
                         pinned_head, or a single branch lock)";

fn waits(detail: &str) -> (String, String, String) {
    standing("waiting_on_deps", "preconditions", detail)
}

#[test]
fn e_45_a_dirty_tree_is_waited_for_until_it_is_clean() {
    let desk = Desk::with_git();
    desk.put(job("one").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    desk.file("x.txt", "x");
    assert_eq!(desk.ticked("one"), waits(DIRTY));
    assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["preconditions"]));
    fs::remove_file(desk.path("x.txt")).unwrap();
    // A tracked file counts as well, changed or staged.
    desk.file("README.md", "changed\n");
    assert_eq!(desk.ticked("one"), waits(DIRTY));
    desk.git(&["add", "README.md"]);
    assert_eq!(desk.ticked("one"), waits(DIRTY));
    desk.git(&["reset", "-q", "--hard"]);
    desk.succeeds("one");
    assert_eq!(at(&desk.record("one"), "/schedule/wait_reason"), &Value::Null);
}

#[test]
fn e_46_what_jobs_write_themselves_does_not_make_the_tree_dirty() {
    let desk = Desk::with_git();
    for name in ["sessions/a/b.txt", "tmp/c", "tmp-worktrees/d/e", "jobs/x/stdout.log"] {
        desk.file(&format!(".tidewheel/{name}"), "x");
    }
    desk.put(job("one").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    assert_eq!(desk.tick().started, ["one"]);
    // Everything else below the data directory is the user's.
    desk.file(".tidewheel/tmp-other/f", "x");
    desk.put(job("two").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    assert_eq!(desk.ticked("two"), waits(DIRTY));
}

#[test]
fn e_46_ignored_files_do_not_make_the_tree_dirty() {
    let desk = Desk::with_git();
    desk.file(".gitignore", "*.o\n");
    desk.commit("ignores");
    desk.file("a.o", "x");
    desk.put(job("one").schedule("preconditions", json!([{"kind": "clean_worktree"}])));
    assert_eq!(desk.tick().started, ["one"]);
}

#[test]
fn e_47_a_missing_branch_is_waited_for_until_it_is_there() {
    let desk = Desk::with_git();
    let wanted = json!([{"kind": "branch_exists", "branch": "feat"}]);
    desk.put(job("one").schedule("preconditions", wanted));
    assert_eq!(desk.ticked("one"), waits("required branch `feat` does not exist"));
    desk.git(&["branch", "feat"]);
    desk.succeeds("one");
}

#[test]
fn e_48_the_branch_comes_from_the_first_place_that_names_one() {
    let desk = Desk::with_git();
    let head = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["branch", "pinned"]);
    let missing = |branch: &str| waits(&format!("required branch `{branch}` does not exist"));
    let plain = || json!([{"kind": "branch_exists"}]);
    let pin = json!({"branch": "pinned", "oid": head});
    desk.put(
        job("explicit")
            .schedule("preconditions", json!([{"kind": "branch_exists", "branch": "given"}]))
            .schedule("pinned_head", pin.clone())
            .locks(&["branch:locked:exclusive"]),
    );
    // The branch of the pinned head is there, the one of the lock is not.
    desk.put(
        job("pin")
            .schedule("preconditions", plain())
            .schedule("pinned_head", pin)
            .locks(&["branch:nowhere:exclusive"])
            .gated(),
    );
    desk.put(job("lock").schedule("preconditions", plain()).locks(&[
        "branch:locked:exclusive",
        "branch:locked:shared",
        "other:shared",
    ]));
    desk.put(
        job("two-locks")
            .schedule("preconditions", plain())
            .locks(&["branch:a:exclusive", "branch:b:exclusive"])
            .gated(),
    );
    desk.put(job("current").schedule("preconditions", plain()).gated());
    desk.tick();
    assert_eq!(desk.standing("explicit"), missing("given"));
    assert_eq!(desk.standing("lock"), missing("locked"));
    for passed in ["pin", "two-locks", "current"] {
        assert_eq!(desk.status(passed), "waiting_on_approval", "{passed}");
    }
}

#[test]
fn e_49_without_any_branch_to_look_for_it_is_blocked() {
    let desk = Desk::with_git();
    desk.git(&["checkout", "-q", "--detach"]);
    desk.put(job("one").schedule("preconditions", json!([{"kind": "branch_exists"}])));
    desk.put(
        job("two")
            .schedule("preconditions", json!([{"kind": "branch_exists"}]))
            .locks(&["branch:a:shared", "branch:b:shared"]),
    );
    desk.tick();
    for id in ["one", "two"] {
        assert_eq!(desk.standing(id), standing("blocked_by_dependency", "preconditions", NO_BRANCH));
        assert_eq!(at(&desk.record(id), "/exit_code"), &Value::Null);
    }
}

#[test]
fn e_50_the_same_as_custom_preconditions_have_their_own_words() {
    let desk = Desk::with_git();
    desk.file("x.txt", "x");
    desk.put(job("tree").schedule("preconditions", json!([{"kind": "custom", "id": "clean_worktree"}])));
    let branch = json!([{"kind": "custom", "id": "branch_exists", "args": {"branch": "feat"}}]);
    desk.put(job("branch").schedule("preconditions", branch));
    desk.tick();
    let tree = format!("custom precondition clean_worktree failed: {DIRTY}");
    assert_eq!(desk.standing("tree"), waits(&tree));
    assert_eq!(desk.standing("branch"), waits("custom precondition branch_exists failed: `feat` missing"));
    fs::remove_file(desk.path("x.txt")).unwrap();
    desk.git(&["branch", "feat"]);
    desk.succeeds("tree");
    desk.succeeds("branch");
}

#[test]
fn e_51_an_unknown_custom_precondition_blocks() {
    let desk = Desk::new();
    desk.put(job("one").schedule("preconditions", json!([{"kind": "custom", "id": "weather"}])));
    let detail = "custom precondition `weather` is not supported by scheduler runtime";
    assert_eq!(desk.ticked("one"), standing("blocked_by_dependency", "preconditions", detail));
}

#[test]
fn e_52_a_pinned_head_is_judged_before_preconditions_and_those_before_approval() {
    let desk = Desk::with_git();
    let oid = "0123456789012345678901234567890123456789";
    desk.file("x.txt", "x");
    desk.put(
        job("one")
            .schedule("pinned_head", json!({"branch": "main", "oid": oid}))
            .schedule("preconditions", json!([{"kind": "custom", "id": "weather"}])),
    );
    desk.put(job("two").schedule("preconditions", json!([{"kind": "clean_worktree"}])).gated());
    desk.tick();
    assert_eq!(desk.standing("one").1, "pinned_head");
    assert_eq!(desk.standing("two"), waits(DIRTY));
}

#[test]
fn the_first_unmet_precondition_is_told() {
    let desk = Desk::with_git();
    desk.file("x.txt", "x");
    let both = json!([{"kind": "branch_exists", "branch": "feat"}, {"kind": "clean_worktree"}]);
    desk.put(job("one").schedule("preconditions", both));
    assert_eq!(desk.ticked("one"), waits("required branch `feat` does not exist"));
}
