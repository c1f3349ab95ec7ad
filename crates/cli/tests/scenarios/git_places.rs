//! Where operations may work: data directories below the top of a repository, links that lead out of it, worktrees that
//! the jobs of a run share.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::by_hand::Desk;
use crate::git_world::{builtin, ended, follow, has, of, repository, script, template, template_in};
use crate::world::Ran;

/// Runs the binary in a directory of the world.
fn run_in(desk: &Desk, directory: &str, arguments: &[&str]) -> Ran {
    let mut command = desk.command(arguments);
    command.current_dir(desk.path(directory));
    Ran::of(&mut command)
}

#[test]
fn a_data_directory_below_the_top_makes_no_tree_unclean() {
    let desk = repository();
    fs::create_dir_all(desk.path("sub/.tidewheel")).unwrap();
    let nodes = [
        builtin("plan", "plan.persist", "args = { slug = 'alpha', spec = 'x' }\non.succeeded = ['prepare']"),
        builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['work']"),
        script("work", "echo x > work.txt", "on.succeeded = ['commit']"),
        builtin("commit", "git.stage_commit", "args = { message = 'work' }\non.succeeded = ['clean']"),
        script("clean", "true", "preconditions = [{ kind = 'clean_worktree' }]\non.succeeded = ['merge']"),
        builtin("merge", "git.integrate_plan_branch", "args = { slug = 'alpha', target = 'main' }"),
        script("last", "true", "preconditions = [{ kind = 'clean_worktree' }]"),
    ];
    let path = template_in(&desk.path("sub"), &nodes);
    let ran = run_in(&desk, "sub", &["run", path.to_str().unwrap(), "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(desk.git(&["status", "--porcelain"]).contains("sub/"), "there is something of ours, not ignored");
    assert_eq!(desk.git(&["log", "-1", "--format=%s", "main"]), "feat: merge plan alpha");
    // What is somebody's work still counts.
    fs::write(desk.path("sub/mine.txt"), "x").unwrap();
    let path = template_in(&desk.path("sub"), &nodes[6..]);
    let ran = run_in(&desk, "sub", &["run", path.to_str().unwrap(), "--format", "json"]);
    let id = ran.json()["root_job_ids"][0].as_str().unwrap().to_owned();
    let record = fs::read_to_string(desk.path(&format!("sub/.tidewheel/jobs/{id}/job.json"))).unwrap();
    assert!(record.contains("working tree has uncommitted or untracked changes"), "{record}");
}

#[test]
fn nothing_is_made_behind_a_link_that_leads_out() {
    let desk = repository();
    fs::create_dir_all(desk.path(".tidewheel")).unwrap();
    let outside = desk.outside().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, desk.path(".tidewheel/implementation-plans")).unwrap();
    let args = "args = { build_id = 'b', step_key = 's', slug = 'a', branch = 'build/b', target = 'main' }";
    let end = ended(&desk, builtin("n", "build.materialize_step", args));
    assert_eq!(end.end(), ("failed", Some(1)), "{end:?}");
    assert!(end.summary.contains("a link leads out of its directory"), "{end:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// Begins a run with a worktree in which two jobs work until they are ended, and returns it with that worktree.
fn sharing(desk: &Desk, config: &str) -> (String, String) {
    desk.file(".tidewheel/config.toml", &format!("[scheduler]\ncapacity = 8\n{config}"));
    desk.pipe("never");
    let gate = desk.path("never").display().to_string();
    let waits = |id: &str| script(id, &format!("touch \"{gate}-{id}\"; : <\"{gate}\""), "");
    let nodes = [
        builtin(
            "prepare",
            "worktree.prepare",
            "args = { branch = 'feat' }\non.succeeded = ['work', 'beside']",
        ),
        waits("work"),
        waits("beside"),
        script("next", "true", "after = ['work']"),
    ];
    let path = template(desk, &nodes);
    let run = desk.enqueue(&[path.to_str().unwrap()]);
    for node in ["work", "beside"] {
        desk.has_begun(&format!("wf-{run}-{node}"), &format!("never-{node}"));
    }
    let tree =
        desk.record(&format!("wf-{run}-work"))["metadata"]["worktree_path"].as_str().unwrap().to_owned();
    (run, tree)
}

#[test]
fn i_89_a_job_cleans_the_worktree_of_its_run_if_nobody_else_works_there() {
    let desk = repository();
    let (run, tree) = sharing(&desk, "");
    let cancelled = |node: &str| {
        let ran = desk.run(&["jobs", "cancel", &format!("wf-{run}-{node}"), "--cleanup-worktree"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (ran.out.contains("cleanup=done)"), desk.path(&tree).exists())
    };
    assert_eq!(cancelled("beside"), (false, true), "another job works there");
    assert_eq!(cancelled("work"), (true, false));
    let work = desk.record(&format!("wf-{run}-work"));
    assert_eq!(work["metadata"]["cancel_cleanup_status"], "done");
    assert_eq!(work["metadata"]["worktree_path"], Value::Null);
    assert!(has(&desk, "refs/heads/feat"), "the branch stays");
    // Who is retried does not run elsewhere instead.
    let ran = desk.run(&["jobs", "retry", &format!("wf-{run}-next")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = desk.run(&["jobs", "retry", &format!("wf-{run}-work")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.wait(&format!("wf-{run}-work"));
    assert!(of(&desk, &run, "work").summary.contains("is gone; retry job"), "{:?}", of(&desk, &run, "work"));
}

#[test]
fn i_89_a_worktree_of_another_run_or_of_nobody_stays() {
    let desk = repository();
    let (run, tree) = sharing(&desk, "");
    assert_eq!(desk.run(&["jobs", "cancel", &format!("wf-{run}-beside")]).code, Some(0));
    let ran = desk.run(&["jobs", "cancel", &format!("wf-{run}-work"), "--no-cleanup-worktree"]);
    assert!(ran.out.contains("cleanup=skipped)") && desk.path(&tree).exists(), "{ran:?}");
}

#[test]
fn a_run_that_is_cancelled_leaves_no_worktree_if_it_is_asked_to() {
    for (arguments, config, is_left) in [
        (&["--cleanup-worktree"][..], "", false),
        (&[], "", true),
        (&[], "[jobs.cancel]\ncleanup_worktree = true\n", false),
        (&["--no-cleanup-worktree"], "[jobs.cancel]\ncleanup_worktree = true\n", true),
    ] {
        let desk = repository();
        let (run, tree) = sharing(&desk, config);
        let ran = desk.run(&[&["runs", "cancel", &run], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(desk.path(&tree).exists(), is_left, "{arguments:?} {config}");
        assert_eq!(desk.git(&["worktree", "list"]).lines().count(), if is_left { 2 } else { 1 });
    }
}

#[test]
fn what_was_cancelled_before_can_still_be_cleaned_up() {
    for is_run in [true, false] {
        let desk = repository();
        let (run, tree) = sharing(&desk, "");
        assert_eq!(desk.run(&["runs", "cancel", &run]).code, Some(0));
        assert!(desk.path(&tree).exists());
        let work = format!("wf-{run}-work");
        let (what, of) = if is_run { ("runs", &run) } else { ("jobs", &work) };
        let ran = desk.run(&[what, "cancel", of, "--cleanup-worktree"]);
        assert!(ran.code == Some(0) && ran.out.contains("already"), "{ran:?}");
        assert!(!desk.path(&tree).exists(), "{ran:?}");
        assert_eq!(desk.record(&work)["metadata"]["cancel_cleanup_status"], "done", "{ran:?}");
        // A second time there is nothing to clean up.
        let ran = desk.run(&[what, "cancel", of, "--cleanup-worktree"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

/// What waits after the worktree was made has not been told of it, and everybody who was is over.
#[test]
fn a_cancelled_run_is_cleaned_up_though_only_what_waits_is_left() {
    let desk = repository();
    let gate = "kind = 'gate'\nuses = 'control.gate.approval'\n";
    let path = template(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { branch = 'feat' }\non.succeeded = ['agree']"),
            format!("[[nodes]]\nid = 'agree'\n{gate}"),
        ],
    );
    let run = desk.enqueue(&[path.to_str().unwrap()]);
    desk.wait(&format!("wf-{run}-prepare"));
    let tree = format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare");
    assert!(desk.path(&tree).exists());
    assert_eq!(desk.run(&["runs", "cancel", &run, "--cleanup-worktree"]).code, Some(0));
    assert!(!desk.path(&tree).exists());
    assert_eq!(desk.status(&format!("wf-{run}-prepare")), "succeeded");
}

#[test]
fn an_outcome_lists_only_what_is_there() {
    let desk = repository();
    desk.git(&["branch", "draft/alpha"]);
    desk.file("dirty.txt", "x");
    desk.git(&["add", "dirty.txt"]);
    let artifacts = |run: &str, node: &str| {
        let path = desk.in_jobs(&format!("wf-{run}-{node}/outcome.json"));
        let outcome: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        // Where there is none, nothing is written.
        outcome.get("artifacts").cloned().unwrap_or_else(|| json!([]))
    };
    let merge = builtin(
        "merge",
        "git.integrate_plan_branch",
        "args = { slug = 'alpha', target = 'main' }\nproduces.blocked = [{ merge_sentinel = { slug = 'alpha' } }]",
    );
    desk.git(&["commit", "-q", "-m", "more on main"]);
    desk.git(&["checkout", "-q", "draft/alpha"]);
    desk.file("work.txt", "x");
    desk.git(&["add", "work.txt"]);
    desk.git(&["commit", "-q", "-m", "work"]);
    desk.git(&["checkout", "-q", "main"]);
    desk.file("dirty.txt", "changed");
    let (run, code) = follow(&desk, &[merge]);
    assert_eq!((code, desk.path(".tidewheel/tmp/merge-conflicts/alpha.json").exists()), (Some(10), false));
    assert_eq!(artifacts(&run, "merge"), json!([]));
    let makes =
        "produces.succeeded = [{ target_branch = { name = 'made' } }, { target_branch = { name = 'not' } }]";
    let (run, code) = follow(&desk, &[script("n", "git branch made", makes)]);
    assert_eq!(code, Some(0));
    assert_eq!(artifacts(&run, "n"), json!([{ "target_branch": { "name": "made" } }]));
}

#[test]
fn c_37_a_patch_is_named_by_the_node_that_makes_it() {
    let desk = repository();
    desk.file("new", "x");
    let patch = "[{ command_patch = { job_id = 'save' } }]";
    let (run, code) = follow(
        &desk,
        &[
            script("use", "cat .tidewheel/jobs/*-save/command.patch", &format!("needs = {patch}")),
            builtin("save", "git.save_worktree_patch", &format!("produces.succeeded = {patch}")),
        ],
    );
    assert_eq!(code, Some(0));
    let save = of(&desk, &run, "save");
    let made = json!([{ "command_patch": { "job_id": save.id } }]);
    assert_eq!(save.record["schedule"]["artifacts"], made);
    let needs = json!([{ "artifact": { "command_patch": { "job_id": save.id } } }]);
    assert_eq!(of(&desk, &run, "use").record["schedule"]["dependencies"], needs);
    // A job of another run may be named, and what is neither is refused.
    let of_job =
        |id: &str| script("n", "true", &format!("needs = [{{ command_patch = {{ job_id = '{id}' }} }}]"));
    assert_eq!(follow(&desk, &[of_job(&save.id)]).1, Some(0));
    let path = template(&desk, &[of_job("sav"), script("save", "true", "")]);
    let ran = desk.run(&["run", path.to_str().unwrap(), "--check"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("command_patch of `sav`, which is neither a node nor a job id"), "{ran:?}");
    assert!(ran.err.contains("did you mean `save`?"), "{ran:?}");
}
