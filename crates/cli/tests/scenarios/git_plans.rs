//! Plan documents: committed on their branch, without anybody's working tree.

use std::fs;

use serde_json::json;

use crate::git_world::{builtin, ended, follow, has, of, repository, script, subjects};

const DOCUMENT: &str = ".tidewheel/implementation-plans/alpha.md";

fn persist(more: &str) -> String {
    builtin("n", "plan.persist", &format!("args = {{ slug = 'alpha', {more} }}"))
}

#[test]
fn a_plan_is_committed_on_its_branch_and_nobodys_tree_is_touched() {
    let desk = repository();
    desk.file("README.md", "being changed\n").file("untracked", "x");
    desk.git(&["add", "README.md"]);
    let index = fs::read(desk.path(".git/index")).unwrap();
    let end = ended(&desk, persist("spec = '# Alpha'"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(desk.git(&["show", &format!("draft/alpha:{DOCUMENT}")]), "# Alpha");
    assert_eq!(subjects(&desk, "draft/alpha"), ["docs: add implementation plan alpha", "first"]);
    assert_eq!(desk.git(&["diff", "--name-only", "main", "draft/alpha"]), DOCUMENT);
    assert_eq!(fs::read(desk.path(".git/index")).unwrap(), index);
    assert!(!desk.path(DOCUMENT).exists());
    // The same once more is no commit.
    let end = ended(&desk, persist("spec = '# Alpha'"));
    assert_eq!(end.end(), ("succeeded", Some(0)));
    assert_eq!(subjects(&desk, "draft/alpha").len(), 2);
    let end = ended(&desk, persist("spec = '# Alpha', plan_text = 'Do it.'"));
    assert_eq!(end.end(), ("succeeded", Some(0)));
    assert_eq!(
        desk.git(&["show", &format!("draft/alpha:{DOCUMENT}")]),
        "## Spec\n\n# Alpha\n\n## Implementation plan\n\nDo it."
    );
    assert_eq!(subjects(&desk, "draft/alpha")[0], "docs: update implementation plan alpha");
}

#[test]
fn a_plan_comes_from_a_file_or_from_what_a_job_handed_over() {
    let desk = repository();
    desk.file("spec.md", "from a file\n");
    let end = ended(&desk, persist("spec_file = 'spec.md', branch = 'feat/plan'"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(desk.git(&["show", &format!("feat/plan:{DOCUMENT}")]), "from a file");
    let end = ended(&desk, persist("spec_file = 'nowhere.md'"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("spec_file `nowhere.md` does not exist"), "{end:?}");
    // A payload that is there beside its marker is read by whoever needs the artifact.
    let contract = "[[artifact_contracts]]\nid = \"text\"\nversion = \"v1\"\n".to_owned();
    let needs = "needs = [{ custom = { type_id = 'text', key = 'k' } }]\n\
                 gates = [{ kind = 'approval', required = true }]";
    let make = script("make", "true", "produces.succeeded = [{ custom = { type_id = 'text', key = 'k' } }]");
    let path = crate::git_world::template(
        &desk,
        &[contract, make, builtin("n", "plan.persist", &format!("args = {{ slug = 'alpha' }}\n{needs}"))],
    );
    let run = desk.enqueue(&[path.to_str().unwrap()]);
    desk.wait(&format!("wf-{run}-make"));
    let folder = desk.in_jobs("artifacts/data/74657874/6b");
    fs::create_dir_all(&folder).unwrap();
    let payload =
        json!({"type_id": "text", "key": "k", "text": "from a job\n", "written_at": "2026-01-01T00:00:00Z"});
    fs::write(folder.join(format!("wf-{run}-make.json")), payload.to_string()).unwrap();
    assert_eq!(desk.run(&["jobs", "approve", &format!("wf-{run}-n")]).code, Some(0));
    desk.wait(&format!("wf-{run}-n"));
    let end = of(&desk, &run, "n");
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(desk.git(&["show", &format!("draft/alpha:{DOCUMENT}")]), "from a job");
}

#[test]
fn a_plan_without_a_text_or_a_name_is_refused() {
    let desk = repository();
    // What nobody could find before is found when it runs: here an artifact without a text.
    let needs = "args = { slug = 'alpha' }\nneeds = [{ custom = { type_id = 't', key = 'k' } }]";
    let contract = "[[artifact_contracts]]\nid = 't'\nversion = 'v1'\n".to_owned();
    let makes = script("make", "true", "produces.succeeded = [{ custom = { type_id = 't', key = 'k' } }]");
    let (run, _) = follow(&desk, &[contract, makes, builtin("n", "plan.persist", needs)]);
    let end = of(&desk, &run, "n");
    assert!(end.summary.starts_with("plan.persist has no text"), "{end:?}");
    assert!(!has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn where_the_branch_is_checked_out_the_document_appears_and_changes_are_kept() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin("prepare", "worktree.prepare", "args = { slug = 'alpha' }\non.succeeded = ['n']"),
            persist("spec = 'in the worktree'").replace("[[nodes]]", "[[nodes]]\non.succeeded = ['look']"),
            script("look", "cat .tidewheel/implementation-plans/alpha.md; git status --porcelain", ""),
        ],
    );
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "n"));
    assert_eq!(crate::git_world::log(&desk, &format!("wf-{run}-look"), "stdout"), "in the worktree\n");
    // In the tree of a person, too; but not over what the person is writing.
    desk.git(&["checkout", "-q", "-b", "mine"]);
    let end = ended(&desk, persist("spec = 'one', branch = 'mine'"));
    assert_eq!(end.end(), ("succeeded", Some(0)), "{end:?}");
    assert_eq!(fs::read_to_string(desk.path(DOCUMENT)).unwrap(), "one\n");
    assert_eq!(crate::git_world::status(&desk), "");
    desk.file(DOCUMENT, "being written\n");
    let end = ended(&desk, persist("spec = 'two', branch = 'mine'"));
    assert_eq!(end.end(), ("failed", Some(1)));
    assert!(end.summary.contains("is changed in"), "{end:?}");
    assert_eq!(fs::read_to_string(desk.path(DOCUMENT)).unwrap(), "being written\n");
    assert_eq!(subjects(&desk, "mine")[0], "docs: add implementation plan alpha");
}

#[test]
fn c_33_to_35_what_operations_make_is_there_for_those_who_need_it() {
    let desk = repository();
    let (run, code) = follow(
        &desk,
        &[
            builtin(
                "n",
                "plan.persist",
                "args = { slug = 'alpha', spec = 'x' }\nproduces.succeeded = [{ plan_branch = { slug = 'alpha' } }, \
                 { plan_doc = { slug = 'alpha' } }, { plan_commits = { slug = 'alpha' } }]",
            ),
            script(
                "use",
                "git show draft/alpha:.tidewheel/implementation-plans/alpha.md",
                "needs = [{ plan_branch = { slug = 'alpha' } }, { plan_doc = { slug = 'alpha' } }, \
                 { plan_commits = { slug = 'alpha' } }, { target_branch = { name = 'main' } }]",
            ),
        ],
    );
    assert_eq!(code, Some(0));
    assert_eq!(crate::git_world::log(&desk, &format!("wf-{run}-use"), "stdout"), "x\n");
}

#[test]
fn c_33_to_36_and_e_45_the_gates_look_from_a_linked_worktree_as_from_the_main_one() {
    let desk = repository();
    desk.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    assert_eq!(ended(&desk, persist("spec = 'x'")).end(), ("succeeded", Some(0)));
    let linked = desk.outside().join("linked");
    let gates = "preconditions = [{ kind = 'clean_worktree' }, { kind = 'branch_exists', branch = 'draft/alpha' }, \
                 { kind = 'pinned_head', branch = 'main' }]";
    let needs = "needs = [{ plan_branch = { slug = 'alpha' } }, { plan_doc = { slug = 'alpha' } }, \
                 { plan_commits = { slug = 'alpha' } }, { target_branch = { name = 'main' } }, \
                 { merge_sentinel = { slug = 'alpha' } }]";
    let path = crate::git_world::template_in(
        &linked,
        &[script("n", "git branch --show-current", &format!("{gates}\n{needs}"))],
    );
    fs::create_dir_all(linked.join(".tidewheel/tmp/merge-conflicts")).unwrap();
    fs::write(linked.join(".tidewheel/tmp/merge-conflicts/alpha.json"), "{}").unwrap();
    let mut command = desk.command(&["run", path.to_str().unwrap(), "--follow", "--format", "json"]);
    command.current_dir(&linked);
    let ran = crate::world::Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // It ran there, and not in the main worktree.
    let log =
        linked.join(format!(".tidewheel/jobs/wf-{}-n/stdout.log", ran.json()["run_id"].as_str().unwrap()));
    assert_eq!(fs::read_to_string(log).unwrap(), "linked\n");
}
