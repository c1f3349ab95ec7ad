//! Pinned heads and preconditions.

use tidewheel_core::job::{Answer, Branch, JobStatus, Precondition, Question, WaitKind};

use crate::world::{Scene, job, names, scene};

fn head(branch: &str) -> Question {
    Question::Head(Branch::new(branch).unwrap())
}

fn branch_exists(branch: Option<&str>) -> Precondition {
    Precondition::BranchExists { branch: branch.map(str::to_owned) }
}

fn named(id: &str, args: serde_json::Value) -> Precondition {
    Precondition::Custom { id: id.into(), args: args.as_object().cloned().unwrap_or_default() }
}

fn asks_for(scene: &Scene, branch: &str) -> bool {
    scene.asked.contains(&Question::BranchExists(Branch::new(branch).unwrap()))
}

#[test]
fn d_41_and_42_a_head_that_moved_is_waited_for_until_it_is_back() {
    let mut scene = scene([job("x").pinned("main", "X")]).is(head("main"), Answer::Text(Some("Y".into())));
    let settled = scene.settle();
    assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps);
    assert_eq!(scene.wait("x"), Some((WaitKind::PinnedHead, "pinned head mismatch on main")));
    assert_eq!(scene.job("x").schedule.waited_on, [WaitKind::PinnedHead]);
    assert!(settled.watches);
    scene = scene.is(head("main"), Answer::Text(Some("X".into())));
    assert_eq!(names(&scene.tick().starts), ["x"]);
    assert_eq!(scene.wait("x"), None);
}

#[test]
fn d_44_a_branch_that_is_gone_lets_only_its_own_job_wait() {
    for answer in [Answer::Text(None), Answer::Failed("no such ref".into())] {
        let mut scene = scene([job("x").pinned("gone", "X"), job("y")]).is(head("gone"), answer);
        assert_eq!(names(&scene.settle().starts), ["y"]);
        assert_eq!(scene.detail("x"), "pinned head mismatch on gone");
    }
    let mut hostile = scene([job("x").pinned("-x y", "X")]);
    hostile.settle();
    assert_eq!(hostile.detail("x"), "pinned head mismatch on -x y");
    assert!(hostile.asked.is_empty(), "what is no branch is never asked for");
}

#[test]
fn e_45_a_changed_tree_is_waited_for() {
    let tree = Question::CleanTree { root: None };
    let mut scene = scene([job("x").precondition(Precondition::CleanWorktree)]).is(tree.clone(), Answer::No);
    assert!(scene.settle().watches);
    let detail = "working tree has uncommitted or untracked changes";
    assert_eq!(scene.wait("x"), Some((WaitKind::Preconditions, detail)));
    assert_eq!(scene.status("x"), JobStatus::WaitingOnDeps);
    scene = scene.is(tree, Answer::Yes);
    assert_eq!(names(&scene.settle().starts), ["x"]);
}

#[test]
fn e_47_a_branch_that_is_required_is_waited_for() {
    let question = Question::BranchExists(Branch::new("feat").unwrap());
    let mut scene = scene([job("x").precondition(branch_exists(Some("feat")))]);
    assert!(scene.settle().watches);
    assert_eq!(scene.wait("x"), Some((WaitKind::Preconditions, "required branch `feat` does not exist")));
    scene = scene.is(question, Answer::Yes);
    assert_eq!(names(&scene.settle().starts), ["x"]);
}

#[test]
fn e_48_the_branch_comes_from_the_precondition_the_pinned_head_the_only_lock_or_the_checkout() {
    let plain = || job("x").precondition(branch_exists(None));
    let current = || (Question::CurrentBranch, Answer::Text(Some("checked-out".into())));
    for (found, expected) in [
        (job("x").precondition(branch_exists(Some("own"))).pinned("pin", "X").exclusive("branch:a"), "own"),
        (plain().pinned("pin", "X").exclusive("branch:a"), "pin"),
        (plain().exclusive("branch:a").shared("other").shared("branch:a"), "a"),
        (plain().exclusive("branch:a").exclusive("branch:b"), "checked-out"),
        (plain(), "checked-out"),
    ] {
        let (question, answer) = current();
        let mut scene = scene([found]).is(question, answer).is(head("pin"), Answer::Text(Some("X".into())));
        scene.settle();
        assert!(asks_for(&scene, expected), "{expected}: {:?}", scene.asked);
        assert_eq!(scene.detail("x"), format!("required branch `{expected}` does not exist"));
    }
}

#[test]
fn e_49_without_any_branch_the_job_is_blocked() {
    let mut scene = scene([job("x").precondition(branch_exists(None))]);
    scene.settle();
    assert_eq!(scene.status("x"), JobStatus::BlockedByDependency);
    let detail = "branch_exists precondition requires branch context (set precondition.branch, pinned_head, or a \
                  single branch lock)";
    assert_eq!(scene.wait("x"), Some((WaitKind::Preconditions, detail)));
}

#[test]
fn e_50_preconditions_by_name_say_so() {
    let mut scene = scene([
        job("tree").precondition(named("clean_worktree", serde_json::json!({}))),
        job("branch").precondition(named("branch_exists", serde_json::json!({"branch": "feat"}))),
    ])
    .is(Question::CleanTree { root: None }, Answer::No);
    scene.settle();
    assert_eq!(
        scene.detail("tree"),
        "custom precondition clean_worktree failed: working tree has uncommitted or untracked changes"
    );
    assert_eq!(scene.detail("branch"), "custom precondition branch_exists failed: `feat` missing");
    assert_eq!(scene.status("branch"), JobStatus::WaitingOnDeps);
}

#[test]
fn e_51_a_precondition_that_nobody_knows_blocks() {
    let mut scene = scene([job("x").precondition(named("weather", serde_json::json!({})))]);
    scene.settle();
    assert_eq!(scene.status("x"), JobStatus::BlockedByDependency);
    let detail = "custom precondition `weather` is not supported by scheduler runtime";
    assert_eq!(scene.wait("x"), Some((WaitKind::Preconditions, detail)));
}

#[test]
fn the_gates_are_asked_in_their_order() {
    use crate::world::{at, custom};
    use tidewheel_core::job::Approval;
    let all = || {
        job("x")
            .after("dep")
            .needs(custom("k"))
            .pinned("main", "X")
            .precondition(Precondition::CleanWorktree)
            .approval(Approval::pending("somebody", at(0)))
            .exclusive("l")
    };
    let tree = Question::CleanTree { root: None };
    let mut scene = scene([
        job("dep").status(JobStatus::Running),
        job("p").makes(custom("k")).status(JobStatus::Running),
        job("holder").exclusive("l").status(JobStatus::Running),
        all(),
    ])
    .is(tree.clone(), Answer::No);
    let expect = |scene: &mut Scene, kind| {
        scene.settle();
        assert_eq!(scene.wait("x").map(|(kind, _)| kind), kind);
    };
    expect(&mut scene, Some(WaitKind::Dependencies));
    scene.set("dep", JobStatus::Succeeded);
    expect(&mut scene, Some(WaitKind::Dependencies));
    assert_eq!(scene.detail("x"), "waiting on custom:acme.exec:k");
    scene = scene.has(&custom("k"));
    expect(&mut scene, Some(WaitKind::PinnedHead));
    scene = scene.is(head("main"), Answer::Text(Some("X".into())));
    expect(&mut scene, Some(WaitKind::Preconditions));
    scene = scene.is(tree, Answer::Yes);
    expect(&mut scene, Some(WaitKind::Approval));
    scene.change("x", |job| {
        job.schedule.approval.as_mut().unwrap().state = tidewheel_core::job::ApprovalState::Approved;
    });
    expect(&mut scene, Some(WaitKind::Locks));
    scene.set("holder", JobStatus::Succeeded);
    scene.tick();
    assert_eq!((scene.status("x"), scene.wait("x")), (JobStatus::Running, None));
    let kinds: Vec<&str> = scene.job("x").schedule.waited_on.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, ["dependencies", "pinned_head", "preconditions", "approval", "locks"]);
}
