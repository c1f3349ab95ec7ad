//! Patches that are applied one after the other.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::Value;

use crate::by_hand::Desk;
use crate::prompts::{end_of, followed};

/// A template that prepares, applies and finalises patches.
fn pipeline(files: &[&str]) -> String {
    let list = serde_json::to_string(files).unwrap();
    let node = |id: &str, operation: &str, more: &str| {
        format!("[[nodes]]\nid = \"{id}\"\nuses = \"cap.env.builtin.patch.{operation}\"\n{more}\n")
    };
    format!(
        "id = \"T\"\nversion = \"v1\"\n{}{}{}",
        node(
            "prepare",
            "pipeline_prepare",
            &format!("args = {{ files_json = '{list}' }}\non.succeeded = [\"apply\"]")
        ),
        node("apply", "execute_pipeline", "on.succeeded = [\"finish\"]"),
        node("finish", "pipeline_finalize", ""),
    )
}

/// Returns a patch that replaces the only line of a file.
fn replacing(name: &str, from: &str, to: &str) -> String {
    format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{from}\n+{to}\n")
}

fn json_of(desk: &Desk, run: &str, file: &str) -> Value {
    let text = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-{file}"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns all files of the world that are not ours, with what is in them.
fn tree(desk: &Desk) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![desk.path("")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(desk.path("")).unwrap().display().to_string();
            if path.is_symlink() || name == ".git" || name == ".tidewheel" {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((name, fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn m_151_patches_are_checked_applied_in_order_and_put_together() {
    let desk = Desk::with_git();
    desk.file("a.txt", "one\n").file("dir/old.txt", "line 1\nline 2\nline 3\nline 4\n");
    desk.file("p/1.patch", &replacing("a.txt", "one", "two"));
    desk.file("p/2.patch", &replacing("a.txt", "two", "three"));
    let rename = "diff --git a/dir/old.txt b/new/new.txt\nsimilarity index 80%\nrename from dir/old.txt\n\
                  rename to new/new.txt\n--- a/dir/old.txt\n+++ b/new/new.txt\n@@ -1,4 +1,4 @@\n line 1\n-line 2\n+line two\n line 3\n line 4\n\
                  diff --git a/made.sh b/made.sh\nnew file mode 100755\n--- /dev/null\n+++ b/made.sh\n@@ -0,0 +1 @@\n+echo made\n";
    desk.file("p/3.patch", rename);
    let (run, ran) = followed(&desk, &pipeline(&["p/1.patch", "p/2.patch", "p/3.patch"]));
    assert_eq!(ran.code, Some(0), "{ran:?} {:?}", end_of(&desk, &run, "apply"));
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "three\n");
    assert_eq!(fs::read_to_string(desk.path("new/new.txt")).unwrap(), "line 1\nline two\nline 3\nline 4\n");
    assert!(!desk.path("dir").exists());
    use std::os::unix::fs::PermissionsExt as _;
    assert_ne!(fs::metadata(desk.path("made.sh")).unwrap().permissions().mode() & 0o100, 0);
    let prepared = json_of(&desk, &run, "prepare/patch-pipeline.json");
    assert_eq!(prepared["files"][1]["path"], "p/2.patch");
    assert_eq!(prepared["files"][1]["digest"].as_str().unwrap().len(), 64);
    let summary = json_of(&desk, &run, "finish/patch-pipeline.finalize.json");
    assert_eq!(summary["files"].as_array().unwrap().len(), 3);
    let patch = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-finish/command.patch"))).unwrap();
    assert!(patch.contains("+three") && !patch.contains("two\n+three\n-"), "{patch}");
    // The one patch does what all of them do.
    let after = tree(&desk);
    desk.file("whole.patch", &patch);
    desk.git(&["apply", "-R", "whole.patch"]);
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "one\n");
    assert!(desk.path("dir/old.txt").exists());
    desk.git(&["apply", "whole.patch"]);
    fs::remove_file(desk.path("whole.patch")).unwrap();
    assert_eq!(tree(&desk), after);
    // What is applied is known as such, however often it is done again.
    let (run, ran) = followed(&desk, &pipeline(&["p/1.patch", "p/2.patch", "p/3.patch"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(end_of(&desk, &run, "apply").2.contains("3 of them before; 0 files changed"));
    assert_eq!(tree(&desk), after);
    let again = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-finish/command.patch"))).unwrap();
    assert_eq!(again, patch);
    assert!(
        !desk.path(".tidewheel/tmp").exists()
            || fs::read_dir(desk.path(".tidewheel/tmp")).unwrap().count() == 0
    );
}

#[test]
fn m_151_a_patch_that_does_not_apply_leaves_everything_as_it_was() {
    let desk = Desk::with_git();
    desk.file("a.txt", "one\n").file("b.txt", "one\n");
    desk.file("1.patch", &replacing("a.txt", "one", "two"))
        .file("2.patch", &replacing("b.txt", "zero", "two"));
    let before = tree(&desk);
    let (run, ran) = followed(&desk, &pipeline(&["1.patch", "2.patch"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (status, code, summary) = end_of(&desk, &run, "apply");
    assert_eq!((status.as_str(), code), ("failed", Some(1)));
    assert!(summary.contains("`2.patch` does not apply: "), "{summary}");
    assert_eq!(tree(&desk), before);
    // Half of it was done before, by hand.
    desk.file("a.txt", "two\n").file("b.txt", "zero\n");
    let (run, ran) = followed(&desk, &pipeline(&["1.patch", "2.patch"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(end_of(&desk, &run, "apply").2.contains("1 of them before; 1 files changed"));
    assert_eq!(fs::read_to_string(desk.path("b.txt")).unwrap(), "two\n");
}

#[test]
fn m_151_what_a_hostile_patch_wants_does_not_happen() {
    let desk = Desk::with_git();
    let outside = desk.outside().join("victim");
    fs::write(&outside, "one\n").unwrap();
    desk.file("a.txt", "one\n");
    std::os::unix::fs::symlink(desk.outside(), desk.path("link")).unwrap();
    std::os::unix::fs::symlink(&outside, desk.path("linked.txt")).unwrap();
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../victim\n\\ No newline at end of file\n";
    let module = "diff --git a/m b/m\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit 1111111111111111111111111111111111111111\n";
    let absolute = outside.to_str().unwrap();
    let before = tree(&desk);
    for (patch, says) in [
        (replacing("../victim", "one", "two"), "it touches"),
        (format!("--- {absolute}\n+++ {absolute}\n@@ -1 +1 @@\n-one\n+two\n"), "it touches `/"),
        ("--- /dev/null\n+++ /tmp/x\n@@ -0,0 +1 @@\n+one\n".to_owned(), "it touches `/tmp/x`"),
        ("--- /dev/null\n+++ \"/tmp/x\"\n@@ -0,0 +1 @@\n+one\n".to_owned(), "it touches `/tmp/x`"),
        (
            "--- /dev/null\n+++ /tmp/x\t2026-01-01 00:00\n@@ -0,0 +1 @@\n+one\n".to_owned(),
            "it touches `/tmp/x`",
        ),
        ("--- /dev/null\n+++ b//tmp/x\n@@ -0,0 +1 @@\n+one\n".to_owned(), "it touches `b//tmp/x`"),
        (
            "diff --git a/a.txt b/a.txt\nsimilarity index 100%\nrename from a.txt\nrename to /tmp/x\n"
                .to_owned(),
            "is no patch that can be applied",
        ),
        (replacing("sub/.tidewheel/jobs/x", "one", "two"), "it touches"),
        (replacing("x/../../victim", "one", "two"), "it touches"),
        (replacing(".git/config", "one", "two"), "it touches `.git/config`"),
        (replacing(".tidewheel/jobs/x", "one", "two"), "it touches"),
        (replacing("link/victim", "one", "two"), "is a link, or lies behind one"),
        (replacing("linked.txt", "one", "two"), "is a link, or lies behind one"),
        (link.to_owned(), "it has a link"),
        (module.to_owned(), "it has a submodule"),
        ("no patch at all\n".to_owned(), "is no patch that can be applied"),
        (String::new(), "is no patch that can be applied"),
    ] {
        desk.file("flows/bad.patch", &patch);
        let (run, ran) = followed(&desk, &pipeline(&["flows/bad.patch"]));
        assert_eq!(ran.code, Some(1), "{patch}: {ran:?}");
        let said = format!("{}{}", end_of(&desk, &run, "prepare").2, end_of(&desk, &run, "apply").2);
        assert!(said.contains(says), "{patch}: {said}");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "one\n", "{patch}");
        fs::remove_dir_all(desk.path("flows")).unwrap();
        assert_eq!(tree(&desk), before, "{patch}");
    }
    for files in [&["../victim"][..], &["/etc/hostname"], &["link/victim"], &["none.patch"]] {
        desk.flow("flow", &pipeline(files));
        let ran = desk.run(&["run", "flow", "--follow"]);
        assert_eq!(ran.code, Some(1), "{files:?}: {ran:?}");
    }
}

#[test]
fn m_151_bytes_and_line_ends_stay_as_they_are() {
    let desk = Desk::with_git();
    fs::write(desk.path("crlf.txt"), "one\r\nkeep\r\n").unwrap();
    fs::write(desk.path("z.bin"), [0, 1, 2, 255, 0, 7]).unwrap();
    desk.git(&["add", "crlf.txt", "z.bin"]);
    desk.git(&["commit", "-q", "-m", "files"]);
    fs::write(desk.path("crlf.txt"), "two\r\nkeep\r\n").unwrap();
    fs::write(desk.path("z.bin"), [9, 0, 255, 0]).unwrap();
    let patch = desk.git(&["diff", "--binary"]) + "\n\n";
    desk.git(&["checkout", "-q", "--", "."]);
    desk.file("both.patch", &patch);
    let (run, ran) = followed(&desk, &pipeline(&["both.patch"]));
    assert_eq!(ran.code, Some(0), "{ran:?} {:?}", end_of(&desk, &run, "apply"));
    assert_eq!(fs::read(desk.path("crlf.txt")).unwrap(), b"two\r\nkeep\r\n");
    assert_eq!(fs::read(desk.path("z.bin")).unwrap(), [9, 0, 255, 0]);
}

#[test]
fn m_151_patches_that_changed_since_they_were_prepared_are_refused() {
    let desk = Desk::with_git();
    desk.file("a.txt", "one\n").file("1.patch", &replacing("a.txt", "one", "two"));
    let change = "[[nodes]]\nid = \"change\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
                  args = { script = \"echo >>1.patch\" }\nafter = [\"prepare\"]\non.succeeded = [\"apply\"]\n";
    let (run, ran) = followed(&desk, &(pipeline(&["1.patch"]) + change));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(end_of(&desk, &run, "apply").2.contains("`1.patch` was changed since it was prepared"));
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "one\n");
}

#[test]
fn m_151_text_that_looks_like_a_header_is_text() {
    let desk = Desk::with_git();
    desk.file("a.sql", "-- /old\nkeep\n");
    desk.file("1.patch", "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- /old\n+++ /new\n keep\n");
    let (run, ran) = followed(&desk, &pipeline(&["1.patch"]));
    assert_eq!(ran.code, Some(0), "{ran:?} {:?}", end_of(&desk, &run, "prepare"));
    assert_eq!(fs::read_to_string(desk.path("a.sql")).unwrap(), "++ /new\nkeep\n");
}

#[test]
fn m_151_patches_are_read_where_the_node_runs() {
    let desk = Desk::with_git();
    desk.file("a.txt", "one\n");
    desk.git(&["add", "a.txt"]);
    desk.git(&["commit", "-q", "-m", "a"]);
    let before = "[[nodes]]\nid = \"tree\"\nuses = \"cap.env.builtin.worktree.prepare\"\nargs = { branch = \"feat\" }\n\
                  on.succeeded = [\"write\"]\n[[nodes]]\nid = \"write\"\nkind = \"shell\"\n\
                  uses = \"cap.env.shell.command.run\"\non.succeeded = [\"prepare\"]\n\
                  args = { script = \"echo two >a.txt; git diff >1.patch; git checkout -q a.txt\" }\n";
    let (run, ran) = followed(&desk, &(pipeline(&["1.patch"]) + before));
    assert_eq!(ran.code, Some(0), "{ran:?} {:?}", end_of(&desk, &run, "prepare"));
    let tree = format!(".tidewheel/tmp-worktrees/work-wf-{run}-tree");
    assert_eq!(fs::read_to_string(desk.path(&format!("{tree}/a.txt"))).unwrap(), "two\n");
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "one\n");
    let prepared = json_of(&desk, &run, "prepare/patch-pipeline.json");
    assert_eq!(
        (&prepared["files"][0]["path"], &prepared["files"][0]["from"]),
        (&"1.patch".into(), &tree.into())
    );
    // What was prepared at the root is found from a worktree, too.
    desk.file("2.patch", &replacing("a.txt", "one", "three"));
    let after = "[[nodes]]\nid = \"tree\"\nuses = \"cap.env.builtin.worktree.prepare\"\nargs = { branch = \"other\" }\n\
                 after = [\"prepare\"]\non.succeeded = [\"apply\"]\n";
    let (run, ran) = followed(&desk, &(pipeline(&["2.patch"]) + after));
    assert_eq!(ran.code, Some(0), "{ran:?} {:?}", end_of(&desk, &run, "apply"));
    let tree = format!(".tidewheel/tmp-worktrees/work-wf-{run}-tree/a.txt");
    assert_eq!(fs::read_to_string(desk.path(&tree)).unwrap(), "three\n");
}
