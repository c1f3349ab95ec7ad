//! The flows of `tidewheel init --stages`, from a spec to a merged branch, with an agent that is a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use crate::by_hand::Desk;
use crate::git_world::{has, log, of, repository, status, subjects};

/// Plans, then adds a line each time it is asked, and resolves conflicts by taking both.
const AGENT: &str = r##"
prompt=$(cat)
case $prompt in
  "Write an implementation plan"*) printf '# Plan\n\nSay hello.\n'; printf '%s' "$prompt" > "$HOME/asked" ;;
  "Carry out the implementation plan"*) echo hello >> hello.txt; printf '%s' "$prompt" > "$HOME/told" ;;
  "The merge of the plan"*) echo both > hello.txt; git add hello.txt; printf '%s' "$prompt" > "$HOME/resolved" ;;
  *) exit 9 ;;
esac
"##;
const DOCUMENT: &str = ".tidewheel/implementation-plans/alpha.md";
const SENTINEL: &str = ".tidewheel/tmp/merge-conflicts/alpha.json";
const PLANNED: &str = "docs: add implementation plan alpha";
const WORKED: &str = "feat: carry out plan alpha";
const MERGED: &str = "feat: merge plan alpha";

/// Returns a repository with the stages and an agent.
fn with_stages() -> Desk {
    with_stages_in(repository())
}

/// Makes the stages and an agent in a repository.
fn with_stages_in(desk: Desk) -> Desk {
    let ran = desk.run(&["init", "--stages"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let agent = desk.outside().join("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    let config = format!("[agents.default]\ncommand = [\"sh\", {:?}]\n", agent.to_str().unwrap());
    desk.file(".tidewheel/config.toml", &config);
    commit(&desk, "stages");
    desk
}

/// Commits everything that git does not ignore.
#[track_caller]
fn commit(desk: &Desk, message: &str) {
    desk.git(&["add", "-A"]);
    desk.git(&["commit", "-q", "-m", message]);
}

/// Runs a flow to its end, and returns its run and the exit code.
#[track_caller]
fn followed(desk: &Desk, arguments: &[&str]) -> (String, Option<i32>) {
    let ran = desk.run(&[&["run"], arguments, &["--follow", "--format", "json"]].concat());
    assert!(!ran.out.is_empty(), "{ran:?}");
    (ran.json()["run_id"].as_str().unwrap().to_owned(), ran.code)
}

/// Writes the plan.
#[track_caller]
fn draft(desk: &Desk) {
    let (run, code) = followed(desk, &["draft", "alpha", "Be {{kind}}."]);
    assert_eq!(code, Some(0), "{:?}", of(desk, &run, "persist"));
}

/// Approves the plan with some more arguments, and lets the work be done.
#[track_caller]
fn work(desk: &Desk, more: &[&str]) -> (String, Option<i32>) {
    let run = desk.enqueue(&[&["approve", "alpha"], more].concat());
    let code = agreed(desk, &run, "agree");
    (run, code)
}

/// Approves a job, and waits for the end of its run.
#[track_caller]
fn agreed(desk: &Desk, run: &str, node: &str) -> Option<i32> {
    let job = format!("wf-{run}-{node}");
    let ran = desk.run(&["jobs", "approve", &job]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.wait(&format!("run:{run}")).code
}

/// Retries a node of a run, and waits for the end of the run.
#[track_caller]
fn retried(desk: &Desk, run: &str, node: &str) -> Option<i32> {
    let ran = desk.run(&["jobs", "retry", &format!("wf-{run}-{node}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.wait(&format!("run:{run}")).code
}

/// Lets `main` have something else in the file of the agent.
fn in_conflict(desk: &Desk) {
    desk.file("hello.txt", "good day\n");
    commit(desk, "other");
}

fn said(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.outside().join("home").join(name)).unwrap_or_default()
}

/// Asserts that nothing of the plan is left but its commit on `main`.
#[track_caller]
fn assert_merged(desk: &Desk, hello: &str, before: &[&str]) {
    assert_eq!(subjects(desk, "main"), [&[MERGED], before].concat());
    assert_eq!(desk.git(&["log", "-1", "--format=%B", "main"]), format!("{MERGED}\n\n# Plan\n\nSay hello."));
    assert_eq!(desk.git(&["show", "main:hello.txt"]), hello);
    assert!(!has(desk, &format!("main:{DOCUMENT}")));
    assert_eq!(desk.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(desk.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert!(!desk.path(SENTINEL).exists());
    assert_eq!(status(desk), "");
}

#[test]
fn a_spec_becomes_a_plan_then_work_then_a_commit() {
    let desk = with_stages();
    draft(&desk);
    assert_eq!(desk.git(&["show", &format!("draft/alpha:{DOCUMENT}")]), "# Plan\n\nSay hello.");
    assert_eq!(subjects(&desk, "draft/alpha"), [PLANNED, "stages", "first"]);
    assert!(said(&desk, "asked").contains("Be {{kind}}."), "{}", said(&desk, "asked"));
    assert_eq!(status(&desk), "");

    let (run, code) = work(&desk, &["--check-script", "test $(wc -l < hello.txt) -ge 2"]);
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "verify"));
    assert_eq!(subjects(&desk, "draft/alpha"), [WORKED, WORKED, PLANNED, "stages", "first"]);
    assert!(said(&desk, "told").contains("# Plan\n\nSay hello."), "{}", said(&desk, "told"));
    assert_eq!(of(&desk, &run, "verify").record["metadata"]["workflow_node_attempt"], 2);
    assert_eq!(of(&desk, &run, "prepare").record["metadata"]["workflow_node_attempt"], 1);
    assert!(!desk.path(&format!(".tidewheel/tmp-worktrees/work-wf-{run}-prepare")).exists());

    let (run, code) = followed(&desk, &["merge", "alpha", "--ci", "test -e hello.txt"]);
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "merge"));
    let said = log(&desk, &of(&desk, &run, "merge").id, "stdout");
    assert!(said.contains(&format!("removed {DOCUMENT} from draft/alpha")), "{said}");
    assert_merged(&desk, "hello\nhello", &["stages", "first"]);
}

#[test]
fn all_stages_are_one_flow_and_its_spec_may_be_a_file() {
    let desk = with_stages();
    desk.file("spec.md", "Be friendly.\n");
    commit(&desk, "spec");
    let run = desk.enqueue(&["develop", "alpha", "--spec-file", "spec.md"]);
    desk.wait(&format!("wf-{run}-draft__persist"));
    assert!(said(&desk, "asked").ends_with("Be friendly."), "{}", said(&desk, "asked"));
    assert_eq!(agreed(&desk, &run, "approve__agree"), Some(0), "{:?}", of(&desk, &run, "merge__merge"));
    assert_merged(&desk, "hello", &["spec", "stages", "first"]);
}

#[test]
fn what_is_rejected_or_never_done_is_not_merged() {
    let desk = with_stages();
    let run = desk.enqueue(&["develop", "alpha", "Be kind."]);
    desk.wait(&format!("wf-{run}-draft__persist"));
    let ran = desk.run(&["jobs", "reject", &format!("wf-{run}-approve__agree")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.wait(&format!("run:{run}")).code, Some(10));
    assert_eq!(subjects(&desk, "draft/alpha"), [PLANNED, "stages", "first"]);

    let run = desk.enqueue(&["develop", "beta", "Be kind.", "--check-script", "exit 3", "--rounds", "1"]);
    desk.wait(&format!("wf-{run}-draft__persist"));
    assert_ne!(agreed(&desk, &run, "approve__agree"), Some(0));
    // The work is kept, and the worktree is not.
    let worked = "feat: carry out plan beta";
    let planned = "docs: add implementation plan beta";
    assert_eq!(subjects(&desk, "draft/beta"), [worked, worked, planned, "stages", "first"]);
    assert_eq!(of(&desk, &run, "approve__cleanup").end(), ("succeeded", Some(0)));
    assert_eq!(desk.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(desk.status(&format!("wf-{run}-merge__prepare")), "blocked_by_dependency");
    assert_eq!(subjects(&desk, "main"), ["stages", "first"]);
}

#[test]
fn an_agent_that_failed_leaves_no_worktree_and_is_retried_with_a_new_one() {
    let desk = with_stages();
    draft(&desk);
    let agent = desk.outside().join("agent.sh");
    fs::write(&agent, "touch half; exit 4").unwrap();
    // Without the retries of the stage, which wait.
    let path = desk.path(".tidewheel/workflows/approve.toml");
    let text = fs::read_to_string(&path).unwrap().replace("max_retries = 1", "max_retries = 0");
    fs::write(&path, text).unwrap();
    commit(&desk, "no retries");
    let (run, code) = work(&desk, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(of(&desk, &run, "implement").end(), ("failed", Some(4)));
    assert_eq!(desk.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    fs::write(&agent, AGENT).unwrap();
    assert_eq!(retried(&desk, &run, "prepare"), Some(0), "{:?}", of(&desk, &run, "verify"));
    assert_eq!(desk.git(&["show", "--format=", "--name-only", "draft/alpha"]), "hello.txt");
    assert_eq!(desk.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[test]
fn an_agent_that_says_nothing_has_failed() {
    let desk = with_stages();
    fs::write(desk.outside().join("agent.sh"), "echo").unwrap();
    let path = desk.path(".tidewheel/workflows/draft.toml");
    let text = fs::read_to_string(&path).unwrap().replace("max_retries = 1", "max_retries = 0");
    fs::write(&path, text).unwrap();
    let (run, code) = followed(&desk, &["draft", "alpha", "Be kind."]);
    let write = of(&desk, &run, "write");
    assert_eq!((code, write.end()), (Some(1), ("failed", Some(1))), "{write:?}");
    assert!(write.summary.contains("does not fit its contract"), "{write:?}");
    assert!(!has(&desk, "refs/heads/draft/alpha"));
}

#[test]
fn a_conflict_waits_for_a_person_and_a_retry_finishes() {
    let desk = with_stages();
    draft(&desk);
    work(&desk, &[]);
    in_conflict(&desk);
    let (run, code) = followed(&desk, &["merge", "alpha"]);
    let merge = of(&desk, &run, "merge");
    assert_eq!((code, merge.end()), (Some(10), ("blocked_by_dependency", Some(10))), "{merge:?}");
    assert!(merge.summary.contains("remaining unmerged paths: hello.txt"), "{merge:?}");
    assert_eq!(merge.record["metadata"]["workflow_node_attempt"], 1);
    assert!(desk.path(SENTINEL).exists());
    desk.file("hello.txt", "both\n");
    desk.git(&["add", "hello.txt"]);
    assert_eq!(retried(&desk, &run, "merge"), Some(0), "{:?}", of(&desk, &run, "merge"));
    assert_merged(&desk, "both", &["other", "stages", "first"]);
}

#[test]
fn a_conflict_is_resolved_by_an_agent_where_it_may() {
    for is_checked_out in [true, false] {
        let desk = with_stages();
        draft(&desk);
        work(&desk, &[]);
        in_conflict(&desk);
        if !is_checked_out {
            desk.git(&["checkout", "-q", "--detach"]);
        }
        let (run, code) = followed(&desk, &["merge", "alpha", "--auto-resolve", "1"]);
        let resolve = of(&desk, &run, "resolve");
        assert_eq!(code, Some(0), "{resolve:?} {:?}", of(&desk, &run, "merge"));
        assert_eq!(resolve.summary, "conflict gate passed after auto-resolve on attempt 2");
        assert!(said(&desk, "resolved").contains("\n- hello.txt\n"), "{}", said(&desk, "resolved"));
        assert_merged(&desk, "both", &["other", "stages", "first"]);
    }
}

#[test]
fn an_agent_that_does_not_resolve_leaves_it_to_a_person() {
    let desk = with_stages();
    draft(&desk);
    work(&desk, &[]);
    in_conflict(&desk);
    fs::write(desk.outside().join("agent.sh"), "exit 1").unwrap();
    let (run, code) = followed(&desk, &["merge", "alpha", "--auto-resolve", "1"]);
    let resolve = of(&desk, &run, "resolve");
    assert_eq!((code, resolve.end()), (Some(10), ("blocked_by_dependency", Some(10))), "{resolve:?}");
    desk.file("hello.txt", "both\n");
    desk.git(&["add", "hello.txt"]);
    assert_eq!(retried(&desk, &run, "resolve"), Some(0), "{:?}", of(&desk, &run, "merge"));
    assert_merged(&desk, "both", &["other", "stages", "first"]);
}

#[test]
fn a_check_that_fails_stops_the_merge_until_it_is_retried() {
    let desk = with_stages();
    draft(&desk);
    work(&desk, &[]);
    let (run, code) = followed(&desk, &["merge", "alpha", "--ci", "grep -q world hello.txt"]);
    assert_eq!(code, Some(1));
    assert_eq!(of(&desk, &run, "ci").end(), ("failed", Some(1)));
    assert_eq!(subjects(&desk, "main"), ["stages", "first"]);
    // The branch is free, so that somebody can mend it.
    desk.git(&["checkout", "-q", "draft/alpha"]);
    desk.file("hello.txt", "hello world\n");
    commit(&desk, "mended");
    desk.git(&["checkout", "-q", "main"]);
    assert_eq!(retried(&desk, &run, "prepare"), Some(0), "{:?}", of(&desk, &run, "merge"));
    assert_merged(&desk, "hello world", &["stages", "first"]);
}

#[test]
fn what_a_fix_mends_is_merged_too() {
    let desk = with_stages();
    draft(&desk);
    work(&desk, &[]);
    let ci = ["--ci", "grep -q world hello.txt", "--fix", "echo world >> hello.txt"];
    let (run, code) = followed(&desk, &[&["merge", "alpha"][..], &ci].concat());
    assert_eq!(code, Some(0), "{:?}", of(&desk, &run, "merge"));
    assert_eq!(of(&desk, &run, "ci").summary, "cicd gate passed after auto-resolve on attempt 1");
    assert_merged(&desk, "hello\nworld", &["stages", "first"]);
}

#[test]
fn a_plan_that_is_not_there_is_named_and_nothing_is_made() {
    let desk = with_stages();
    let (run, code) = followed(&desk, &["merge", "alpha"]);
    assert_eq!(code, Some(10));
    let (_, _, detail) = desk.standing(&format!("wf-{run}-prepare"));
    assert_eq!(detail, "missing plan_branch:alpha (draft/alpha)");
    let (run, _) = followed(&desk, &["approve", "alpha"]);
    let (_, _, detail) = desk.standing(&format!("wf-{run}-agree"));
    assert_eq!(detail, "missing plan_doc:alpha (draft/alpha)");
    assert_eq!(desk.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn every_stage_is_in_order_once_there_is_an_agent() {
    let desk = with_stages();
    for stage in ["draft", "approve", "merge", "develop"] {
        let ran = desk.run(&["run", stage, "alpha", "--check"]);
        assert_eq!(ran.code, Some(0), "{stage}: {ran:?}");
        let ran = desk.run(&["run", stage, "--check"]);
        assert!(ran.code == Some(1) && ran.err.contains("params.slug: is empty"), "{stage}: {ran:?}");
    }
    assert_eq!(desk.run(&["init", "--stages", "--check"]).code, Some(0));
    desk.file(".tidewheel/config.toml", "");
    let help = "write [agents.default] with a `command` into .tidewheel/config.toml";
    for arguments in [&["draft", "a"][..], &["approve", "a"], &["develop", "a"]] {
        let ran = desk.run(&[&["run"], arguments, &["--check"]].concat());
        assert!(ran.code == Some(1) && ran.err.contains(help), "{ran:?}");
    }
    // A merge needs one only if it may resolve conflicts.
    assert_eq!(desk.run(&["run", "merge", "a", "--check"]).code, Some(0));
    let ran = desk.run(&["run", "merge", "a", "--auto-resolve", "1", "--check"]);
    assert!(ran.code == Some(1) && ran.err.contains(help), "{ran:?}");
}

#[test]
fn stages_are_for_the_branch_that_is_checked_out() {
    let desk = repository();
    desk.git(&["branch", "-m", "main", "master"]);
    let desk = with_stages_in(desk);
    for flow in ["draft", "merge", "develop"] {
        let text = fs::read_to_string(desk.path(&format!(".tidewheel/workflows/{flow}.toml"))).unwrap();
        assert!(text.contains("\ntarget = \"master\"\n") && !text.contains("\"main\""), "{text}");
    }
    draft(&desk);
    assert!(has(&desk, &format!("draft/alpha:{DOCUMENT}")));
}

#[test]
fn a_target_that_is_not_there_is_told_before_an_agent_is_asked() {
    let desk = with_stages();
    let (run, code) = followed(&desk, &["draft", "alpha", "Be kind.", "--target", "nowhere"]);
    assert_eq!(code, Some(10));
    assert_eq!(desk.standing(&format!("wf-{run}-prompt")).2, "missing target_branch:nowhere");
    assert!(!desk.outside().join("home/asked").exists() && !has(&desk, "draft/alpha"));
}

#[test]
fn a_stage_without_its_slug_says_how_to_give_it() {
    let desk = with_stages();
    for flow in ["draft", "approve", "merge", "develop"] {
        let ran = desk.run(&["run", flow]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("params.slug: is empty, and has to be given"), "{flow}: {ran:?}");
        assert!(ran.err.contains("tidewheel run FLOW SLUG …"), "{flow}: {ran:?}");
        assert!(ran.err.contains("has 1 problem."), "{flow}: {ran:?}");
    }
}
