//! Names that would lead elsewhere: refused before anything is written, wherever they come from.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::json;

use crate::by_hand::Job;
use crate::git_world::{builtin, follow, node, of, repository, template};

const BAD_SLUGS: [&str; 9] = ["..", "../../x", "-x", "a/b", "/etc/passwd", "a\\nb", ".git", "a..b", "@{"];
const BAD_BRANCHES: [&str; 12] =
    ["..", "-x", "a..b", "a@{1}", "@", "a\\nb", "/abs", "a b", "x.lock", "a//b", ".hidden", "a~1"];

/// Returns everything that a hostile name could have changed.
fn state(desk: &crate::by_hand::Desk) -> (String, String, Vec<String>) {
    let mut around: Vec<String> = fs::read_dir(desk.outside())
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    around.sort();
    (desk.git(&["for-each-ref"]), crate::git_world::status(desk), around)
}

#[test]
fn hostile_names_are_refused_with_their_place_and_nothing_is_written() {
    let desk = repository();
    template(&desk, &[]);
    let before = state(&desk);
    let long = "x".repeat(300);
    let operations = [
        ("worktree.prepare", "", &["slug", "plan"][..], &["branch", "base", "target"][..]),
        ("plan.persist", "spec = 'x'", &["slug"], &["branch"]),
        ("git.integrate_plan_branch", "", &["slug"], &["target"]),
        ("merge.sentinel.write", "", &["slug"], &["source", "target"]),
        ("merge.sentinel.clear", "", &["slug"], &[]),
    ];
    for (operation, more, slugs, branches) in operations {
        let bad = |names: &'static [&'static str], args: &[&'static str]| {
            let all: Vec<(String, String)> = args
                .iter()
                .flat_map(|arg| {
                    names
                        .iter()
                        .map(|name| (*name).to_owned())
                        .chain([long.clone()])
                        .map(|name| ((*arg).to_owned(), name))
                })
                .collect();
            all
        };
        let all = bad(&BAD_SLUGS, slugs).into_iter().chain(bad(&BAD_BRANCHES, branches));
        for (arg, name) in all {
            let comma = if more.is_empty() { "" } else { ", " };
            let text = builtin("n", operation, &format!("args = {{ {more}{comma}{arg} = \"{name}\" }}"));
            let path = template(&desk, &[text]);
            let ran = desk.run(&["run", path.to_str().unwrap()]);
            assert_eq!(ran.code, Some(1), "{operation} {arg} {name}: {ran:?}");
            assert!(ran.err.contains(&format!("nodes[n].args.{arg}")), "{operation} {arg} {name}: {ran:?}");
            assert!(ran.err.contains("flow.toml:7:") && ran.err.contains('^'), "{ran:?}");
        }
    }
    assert_eq!(desk.job_dirs(), [""; 0]);
    assert_eq!(state(&desk), before);
}

#[test]
fn hostile_names_in_a_manifest_are_refused_when_the_node_runs() {
    let desk = repository();
    let gate = "gates = [{ kind = 'approval', required = true }]\n";
    let cases = [
        ("worktree.prepare", json!({"slug": "../../x"})),
        ("worktree.prepare", json!({"branch": "-x"})),
        ("worktree.prepare", json!({"slug": "a", "purpose": "../../../far"})),
        ("worktree.prepare", json!({"slug": "a", "purpose": "workspace-ada"})),
        ("plan.persist", json!({"slug": "../x", "spec": "x"})),
        ("plan.persist", json!({"slug": "x", "spec": "x", "branch": "a..b"})),
        ("plan.persist", json!({"slug": "x", "spec_file": "../home"})),
        ("git.integrate_plan_branch", json!({"source": "@{-1}", "target": "main"})),
        ("git.integrate_plan_branch", json!({"source": "a", "target": "--all"})),
        ("git.integrate_plan_branch", json!({"source": "main", "target": "main"})),
        ("merge.sentinel.write", json!({"slug": "../../../x"})),
        ("merge.sentinel.clear", json!({"slug": "../../config"})),
    ];
    let args = |operation: &str| match operation {
        "git.integrate_plan_branch" => "args = { slug = 'a', target = 'main' }\n",
        "plan.persist" => "args = { slug = 'a', spec = 'x' }\n",
        "merge.sentinel.write" | "merge.sentinel.clear" => "args = { slug = 'a' }\n",
        _ => "",
    };
    let before = state(&desk).0;
    for (operation, hostile) in cases {
        let text = builtin("n", operation, &format!("{}{gate}", args(operation)));
        let path = template(&desk, &[text]);
        let run = desk.enqueue(&[path.to_str().unwrap()]);
        let manifest = desk.in_jobs(&format!("runs/{run}.json"));
        let mut written: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
        written["nodes"]["n"]["args"] = hostile.clone();
        fs::write(&manifest, written.to_string()).unwrap();
        let id = format!("wf-{run}-n");
        let ran = desk.run(&["jobs", "approve", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        desk.wait(&id);
        let end = of(&desk, &run, "n");
        assert_eq!(end.end(), ("failed", Some(1)), "{operation} {hostile}: {end:?}");
    }
    assert_eq!(state(&desk).0, before);
    assert!(desk.path(".tidewheel/config.toml").exists());
    assert!(!desk.outside().join("x.json").exists());
}

#[test]
fn hostile_names_in_a_record_are_refused_when_the_node_runs() {
    let desk = repository();
    for (field, name) in [("plan", "../../x"), ("branch", "a..b"), ("branch", "--force")] {
        let gate = "gates = [{ kind = 'approval', required = true }]";
        let path = template(&desk, &[builtin("n", "worktree.prepare", gate)]);
        let run = desk.enqueue(&[path.to_str().unwrap()]);
        let id = format!("wf-{run}-n");
        let mut record = desk.record(&id);
        record["metadata"][field] = json!(name);
        desk.put(Job(record));
        assert_eq!(desk.run(&["jobs", "approve", &id]).code, Some(0));
        desk.wait(&id);
        assert_eq!(of(&desk, &run, "n").end(), ("failed", Some(1)), "{field} {name}");
    }
    assert!(!desk.path(".tidewheel/tmp-worktrees").exists());
}

#[test]
fn what_an_operation_needs_or_does_not_know_is_found_before_it_runs() {
    let desk = repository();
    let cases = [
        (builtin("n", "git.integrate_plan_branch", "args = { slug = 'a' }"), "needs a target arg"),
        (
            builtin("n", "git.integrate_plan_branch", "args = { source = 'a', target = 'a' }"),
            "has the same branch as source and target",
        ),
        (
            builtin(
                "n",
                "git.integrate_plan_branch",
                "args = { slug = 'a', target = 'm', squash = 'maybe' }",
            ),
            "invalid bool value `maybe` for nodes[n].args.squash",
        ),
        (
            builtin(
                "n",
                "git.integrate_plan_branch",
                "args = { slug = 'a', target = 'm', delete_branch = 3 }",
            ),
            "nodes[n].args.delete_branch: must be true or false",
        ),
        (builtin("n", "worktree.prepare", "args = { brunch = 'a' }"), "did you mean `branch`?"),
        (
            builtin("n", "worktree.prepare", "args = { slug = 'a', plan = 'b' }"),
            "sets both slug and plan args",
        ),
        (builtin("n", "worktree.prepare", "args = { purpose = 'workspace' }"), "which is for people"),
        (
            builtin("n", "worktree.cleanup", "args = { branch = 'a' }"),
            "is not an argument of worktree.cleanup",
        ),
        (
            node(
                "n",
                "control.gate.conflict_resolution",
                "args = { auto_resolve = true, auto_resolve_command = 'a', auto_resolve_script = 'b' }",
            ),
            "sets both auto_resolve_command and auto_resolve_script args",
        ),
        (
            node("n", "control.gate.conflict_resolution", "args = { script = 'a' }"),
            "declares control policy `gate.conflict_resolution` but also sets command/script args",
        ),
    ];
    for (text, message) in cases {
        let path = template(&desk, std::slice::from_ref(&text));
        let ran = desk.run(&["run", path.to_str().unwrap(), "--check"]);
        assert_eq!(ran.code, Some(1), "{text}: {ran:?}");
        assert!(ran.err.contains(message), "{text}: {ran:?}");
    }
    let (_, code) =
        follow(&desk, &[builtin("n", "worktree.prepare", "args = { slug = '', branch = 'ok', plan = ' ' }")]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_link_in_the_place_of_a_sentinel_leads_nowhere() {
    let desk = repository();
    fs::create_dir_all(desk.path(".tidewheel/tmp")).unwrap();
    let far = desk.outside().join("far");
    fs::create_dir_all(&far).unwrap();
    fs::write(far.join("alpha.json"), "mine").unwrap();
    std::os::unix::fs::symlink(&far, desk.path(".tidewheel/tmp/merge-conflicts")).unwrap();
    for operation in ["merge.sentinel.write", "merge.sentinel.clear"] {
        let (run, _) = follow(&desk, &[builtin("n", operation, "args = { slug = 'alpha' }")]);
        assert_eq!(of(&desk, &run, "n").end(), ("failed", Some(1)), "{operation}");
    }
    assert_eq!(fs::read_to_string(far.join("alpha.json")).unwrap(), "mine");
}

#[test]
fn what_stands_for_the_checked_out_commit_is_no_branch() {
    let desk = repository();
    for name in ["HEAD", "@", "-"] {
        let nodes = ["branch", "target"].map(|arg| {
            builtin("n", "worktree.prepare", &format!("args = {{ slug = 'a', {arg} = '{name}' }}"))
        });
        for text in nodes.into_iter().chain([
            builtin("n", "git.integrate_plan_branch", &format!("args = {{ slug = 'a', target = '{name}' }}")),
            builtin(
                "n",
                "merge.sentinel.clear",
                &format!("args = {{ slug = 'a' }}\nneeds = [{{ target_branch = {{ name = '{name}' }} }}]"),
            ),
        ]) {
            let path = template(&desk, &[text]);
            let ran = desk.run(&["run", path.to_str().unwrap(), "--check"]);
            assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
            assert!(ran.err.contains(&format!("`{name}` is no branch name")), "{name}: {ran:?}");
        }
    }
    // To begin at what is checked out is another matter.
    let (run, code) =
        follow(&desk, &[builtin("n", "worktree.prepare", "args = { branch = 'b', base = 'HEAD' }")]);
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "n"));
    assert_eq!(desk.git(&["rev-parse", "b"]), desk.git(&["rev-parse", "HEAD"]));
    assert!(!desk.git(&["for-each-ref"]).contains("refs/heads/HEAD"));
}

#[test]
fn arguments_that_an_operation_would_fail_of_are_missed_before_it_runs() {
    let desk = repository();
    let long = "x".repeat(51);
    let prompt = "produces.succeeded = [{ custom = { type_id = 'prompt_text', key = 'k' } }]\n";
    let gate = |args: &str| node("n", "control.gate.conflict_resolution", &format!("args = {{ {args} }}"));
    let cases = [
        (builtin("n", "plan.persist", "args = { spec = 'x' }"), "needs a slug arg for plan.persist"),
        (builtin("n", "plan.persist", "args = { slug = 'a' }"), "needs a text for plan.persist"),
        (builtin("n", "merge.sentinel.write", ""), "needs a slug arg for merge.sentinel.write"),
        (builtin("n", "merge.sentinel.clear", ""), "needs a slug arg for merge.sentinel.clear"),
        (gate("auto_resolve = false"), "needs a slug arg for gate.conflict_resolution"),
        (gate("slug = 'a', auto_resolve = true"), "sets auto_resolve, and none of auto_resolve_command"),
        (
            builtin("n", "git.integrate_plan_branch", "args = { target = 'main' }"),
            "needs a source or slug arg for git.integrate_plan_branch",
        ),
        (
            builtin("n", "git.integrate_plan_branch", "args = { source = ' main', target = 'main' }"),
            "has the same branch as source and target args",
        ),
        (
            builtin("n", "git.integrate_plan_branch", "args = { slug = 'a', target = 'draft/a' }"),
            "has the same branch as source and target args",
        ),
        (
            builtin("n", "worktree.prepare", &format!("args = {{ slug = 'a', purpose = '{long}' }}")),
            "has a purpose arg with more than 50 characters",
        ),
        (
            builtin("n", "prompt.resolve", &format!("{prompt}args = {{ prompt_file = '../x' }}")),
            "nodes[n].args.prompt_file: is `../x`, which is no file beneath",
        ),
        (
            builtin("n", "prompt.resolve", &format!("{prompt}args = {{ prompt_file = '/etc/hostname' }}")),
            "nodes[n].args.prompt_file",
        ),
    ];
    for (text, says) in cases {
        let path = template(&desk, std::slice::from_ref(&text));
        let ran = desk.run(&["run", path.to_str().unwrap(), "--check"]);
        assert_eq!(ran.code, Some(1), "{text}: {ran:?}");
        assert!(ran.err.contains(says) && ran.err.contains("has 1 problem."), "{text}: {}", ran.err);
    }
    // What the run says counts for all of them.
    let all = [
        builtin("a", "plan.persist", "args = { spec = 'x' }"),
        builtin("b", "merge.sentinel.write", ""),
        builtin("c", "merge.sentinel.clear", ""),
        node("d", "control.gate.conflict_resolution", ""),
        builtin("e", "git.integrate_plan_branch", "args = { target = 'main' }"),
    ];
    let path = template(&desk, &[&["[params]\nslug = ''\n".to_owned()][..], &all].concat());
    let path = path.to_str().unwrap();
    assert_eq!(desk.run(&["run", path, "--check", "--set", "slug=alpha"]).code, Some(0));
    let ran = desk.run(&["run", path, "--check"]);
    assert!(ran.err.contains("params.slug: is empty, and has to be given"), "{ran:?}");
    assert!(ran.err.contains("has 1 problem.") && ran.err.contains("--set slug=…"), "{ran:?}");
}
