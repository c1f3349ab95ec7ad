//! Why a job is not running: each gate by itself, chains through to the root, and what a pass would say to the same jobs.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    AfterPolicy, Answer, Approval, ApprovalState, Artifact, Branch, Brief, Facts, Finding, Gate, Inspection,
    JobId, JobStatus, Limits, Look, MissingProducer, NodeId, Precondition, Question, RunId, WaitKind,
    WaitReason,
};
use tidewheel_core::policy::ConcurrencyLimit;
use tidewheel_core::view::jobs::explain::{
    Cause, CauseKind, Explanation, GateState, Line, NextKind, RunExplanation, RunSubject, Subject, Told,
    World, explain_job, explain_run,
};
use tidewheel_testkit::Dice;

use crate::oracle::random_jobs;
use crate::world::{Scene, at, custom, id, job, names, scene};

/// What the jobs of these tests said last.
fn last_words(id: &JobId) -> Option<String> {
    match id.as_str() {
        "build" => Some("exit code 2: no rule".to_owned()),
        "merge" => {
            Some("merge of draft/x into main stopped at a conflict: remaining unmerged paths: a".to_owned())
        }
        "stop" => Some("stop-condition failed on attempt 2; retry budget exhausted (1)".to_owned()),
        _ => None,
    }
}

/// Answers what is asked until an answer comes, and counts the questions.
fn asking<T>(scene: &Scene, explain: impl Fn(World<'_>) -> Result<T, BTreeSet<Question>>) -> T {
    let mut facts = Facts::default();
    loop {
        let world = World {
            briefs: &scene.jobs,
            unreadable: &scene.unreadable,
            lost: &scene.lost,
            last_words: &last_words,
            facts: &facts,
            capacity: scene.capacity,
            now: scene.now,
            may_ask: true,
        };
        match explain(world) {
            Ok(explained) => return explained,
            Err(questions) => {
                assert!(!questions.is_empty(), "whoever asks has a question");
                for question in questions {
                    assert_eq!(facts.get(&question), None, "{question:?} was answered");
                    let answer = scene.answer(&question);
                    facts.add(question, answer);
                }
            }
        }
    }
}

fn explained(scene: &Scene, name: &str) -> Explanation {
    let subject = Subject { job: scene.job(name), dead_letter: None, told: &Told::default() };
    asking(scene, |world| explain_job(world, subject))
}

/// Returns the gate that is in the way, how it is, and what it says.
fn stopped(explained: &Explanation) -> Option<(Gate, GateState, &str)> {
    let is_open = |state| matches!(state, GateState::NotSet | GateState::Passed | GateState::NotReached);
    let gate = explained.gates.iter().find(|gate| !is_open(gate.state))?;
    Some((gate.gate, gate.state, gate.detail.as_str()))
}

fn chain(explained: &Explanation) -> Vec<(&str, CauseKind)> {
    explained.causes.iter().map(|cause| (cause.job.as_str(), cause.kind)).collect()
}

fn sentences(explained: &Explanation) -> String {
    let lines = explained.page().iter().flat_map(|part| &part.lines);
    let said = lines.filter_map(|line| match line {
        Line::Sentence(text) | Line::Command(text) | Line::Detail(text) => Some(text.as_str()),
        Line::Output { .. } | Line::Row(_) => None,
    });
    said.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn says(explained: &Explanation, words: &str) {
    let said = sentences(explained);
    assert!(said.contains(words), "{words}\n---\n{said}");
}

fn commands(explained: &Explanation) -> Vec<&str> {
    let roots = explained.causes.iter().filter(|cause| cause.root);
    roots
        .filter_map(|cause| cause.remedy.as_ref())
        .flat_map(|way| &way.commands)
        .map(String::as_str)
        .collect()
}

#[test]
fn a_chain_is_followed_to_the_person_at_its_end() {
    let mut scene = scene([
        job("c").approval(Approval::pending("ada", at(0))),
        job("b").after("c"),
        job("a").after("b").exclusive("prod"),
    ]);
    for _ in 0..2 {
        let a = explained(&scene, "a");
        assert_eq!(stopped(&a), Some((Gate::After, GateState::Waiting, "waiting on job b")));
        let expected = [("a", CauseKind::After), ("b", CauseKind::After), ("c", CauseKind::Approval)];
        assert_eq!(chain(&a), expected);
        assert_eq!(a.causes[2].via.as_deref(), Some("b"));
        assert_eq!(commands(&a), ["tidewheel jobs approve c", "tidewheel jobs reject c"]);
        says(&a, "a waits on b, which waits on c, which awaits a person's approval, which ada asked for");
        assert_eq!(a.next.what, NextKind::Wait);
        says(&a, "It goes on when b has succeeded. Then it still needs the lock prod.");
        let c = explained(&scene, "c");
        assert_eq!((names(&c.next.dependents.direct), c.next.dependents.waiting), (vec!["b"], 2));
        // A pass changes what is on record, and not what is so.
        scene.settle();
    }
}

#[test]
fn a_blocked_chain_leads_to_what_failed() {
    let failed = job("c").status(JobStatus::Failed).with(|job| {
        job.exit_code = Some(3);
        job.started_at = Some(at(5));
    });
    let mut scene = scene([failed, job("b").after("c"), job("a").after("b")]);
    // Before a pass has blocked it, that is what comes.
    let b = explained(&scene, "b");
    let detail = "dependency failed for job c (failed)";
    assert_eq!(stopped(&b), Some((Gate::After, GateState::Blocked, detail)));
    assert_eq!(b.next.what, NextKind::End);
    scene.settle();
    let a = explained(&scene, "a");
    let detail = "dependency failed for job b (blocked_by_dependency)";
    assert_eq!(stopped(&a), Some((Gate::After, GateState::Blocked, detail)));
    assert_eq!(chain(&a), [("a", CauseKind::After), ("b", CauseKind::After), ("c", CauseKind::Failed)]);
    says(&a, "a is blocked by b, which is blocked by c, which failed with exit code 3.");
    assert_eq!(a.next.commands, ["tidewheel jobs retry c"]);
    let c = explained(&scene, "c");
    assert_eq!((c.next.dependents.waiting, c.next.dependents.blocked), (0, 2));
}

#[test]
fn jobs_that_are_gone_or_unreadable_are_the_root() {
    let mut scene = scene([
        job("a").after("ghost"),
        job("b").after("bad"),
        job("c").after_with("a", AfterPolicy::Failed),
    ]);
    scene.unreadable.insert("bad".into(), "no JSON".into());
    scene.settle();
    let a = explained(&scene, "a");
    assert_eq!(chain(&a), [("a", CauseKind::After), ("ghost", CauseKind::MissingJob)]);
    assert_eq!(a.causes[1].status, None);
    let b = explained(&scene, "b");
    assert_eq!(chain(&b), [("b", CauseKind::After), ("bad", CauseKind::UnreadableJob)]);
    says(&b, "which has a record that cannot be read: no JSON");
    // A handler that nobody called was skipped because of what happened instead.
    let c = explained(&scene, "c");
    assert_eq!(stopped(&c).unwrap().1, GateState::Skipped);
    says(&c, "c was skipped because of a");
}

#[test]
fn whose_supervisor_is_gone_is_not_said_to_run() {
    let mut scene = scene([job("gone").status(JobStatus::Running), job("user").after("gone")]);
    scene.tick();
    scene.lost.insert(id("gone"));
    let gone = explained(&scene, "gone");
    assert_eq!(chain(&gone), [("gone", CauseKind::Lost)]);
    says(&gone, "but its supervisor is gone");
    assert_eq!(commands(&gone), ["tidewheel tick"]);
    let user = explained(&scene, "user");
    assert_eq!(chain(&user), [("user", CauseKind::After), ("gone", CauseKind::Lost)]);
    says(&user, "user waits on gone, which was running until its supervisor was gone");
}

#[test]
fn artifacts_lead_to_those_who_make_them() {
    let key = custom("k1");
    let mut scene = scene([
        job("maker").makes(key.clone()).status(JobStatus::Running),
        job("user").needs(key),
        job("alone").needs(custom("k2")).with(|job| job.schedule.missing_producer = MissingProducer::Wait),
        job("never").needs(custom("k3")),
    ]);
    scene.settle();
    let user = explained(&scene, "user");
    assert_eq!(stopped(&user), Some((Gate::Artifacts, GateState::Waiting, "waiting on custom:acme.exec:k1")));
    assert_eq!(chain(&user), [("user", CauseKind::Artifacts), ("maker", CauseKind::Running)]);
    says(&user, "user waits on custom:acme.exec:k1 from maker, which is running");
    let alone = explained(&scene, "alone");
    assert_eq!(chain(&alone), [("alone", CauseKind::MissingArtifact)]);
    says(&alone, "It goes on as soon as custom:acme.exec:k2 is there.");
    let never = explained(&scene, "never");
    assert_eq!(stopped(&never), Some((Gate::Artifacts, GateState::Blocked, "missing custom:acme.exec:k3")));
    assert_eq!(commands(&never), ["tidewheel jobs retry never"]);
    // Who has succeeded makes nothing any more.
    scene.set("maker", JobStatus::Succeeded);
    assert_eq!(chain(&explained(&scene, "user")), [("user", CauseKind::MissingArtifact)]);
}

#[test]
fn the_artifacts_of_the_own_run_count_and_no_others() {
    let key = custom("k1");
    let scene = scene([
        job("own").run(1).makes(key.clone()),
        job("other").run(2).makes(key.clone()).status(JobStatus::Running),
        job("user").run(1).needs(key),
    ]);
    assert_eq!(explained(&scene, "user").causes[0].waits_on, [id("own")]);
}

#[test]
fn a_pinned_head_is_told_with_where_the_branch_is() {
    let head = Question::Head(Branch::new("main").unwrap());
    let there = |answer| scene([job("a").pinned("main", "1111111111111111")]).is(head.clone(), answer);
    let a = explained(&there(Answer::Text(Some("2222222222222222".into()))), "a");
    assert_eq!(stopped(&a), Some((Gate::PinnedHead, GateState::Waiting, "pinned head mismatch on main")));
    says(&a, "`main` stands at 222222222222, and has to stand at 111111111111 again");
    says(&explained(&there(Answer::Text(None)), "a"), "`main` does not exist, and has to stand at");
    let a = explained(&there(Answer::Text(Some("1111111111111111".into()))), "a");
    assert_eq!((stopped(&a), a.next.what), (None, NextKind::Start));
    assert_eq!(commands(&a), ["tidewheel tick"]);
}

#[test]
fn preconditions_are_told_with_what_to_do() {
    let unclean = Question::CleanTree { root: None };
    let tree = scene([job("a").precondition(Precondition::CleanWorktree)]).is(unclean, Answer::No);
    let a = explained(&tree, "a");
    let detail = "working tree has uncommitted or untracked changes";
    assert_eq!(stopped(&a), Some((Gate::Preconditions, GateState::Waiting, detail)));
    assert_eq!(commands(&a), ["git status"]);
    let branch = scene([job("a").precondition(Precondition::BranchExists { branch: Some("feat".into()) })]);
    let a = explained(&branch, "a");
    assert_eq!(stopped(&a).unwrap().2, "required branch `feat` does not exist");
    assert_eq!(commands(&a), ["git branch feat"]);
    let weather = Precondition::Custom { id: "weather".into(), args: serde_json::Map::new() };
    let mut custom = scene([job("a").precondition(weather)]);
    custom.settle();
    let a = explained(&custom, "a");
    assert_eq!((a.causes[0].kind, stopped(&a).unwrap().1), (CauseKind::Preconditions, GateState::Blocked));
}

#[test]
fn a_rejection_says_who_and_why() {
    let rejected = Approval {
        state: ApprovalState::Rejected,
        decided_by: Some("bob".into()),
        reason: Some("not today".into()),
        ..Approval::pending("ada", at(0))
    };
    let mut scene = scene([job("a").approval(rejected), job("b").after("a")]);
    scene.settle();
    let b = explained(&scene, "b");
    assert_eq!(chain(&b), [("b", CauseKind::After), ("a", CauseKind::Rejected)]);
    says(&b, "b is blocked by a, which was rejected by bob: not today.");
    assert_eq!(commands(&b), ["tidewheel jobs retry a"]);
}

#[test]
fn locks_are_told_with_who_holds_them_or_comes_first() {
    let mut scene = scene([
        job("holder").shared("db").exclusive("other").status(JobStatus::Running),
        job("writer").exclusive("db").exclusive("free"),
        job("reader").shared("db"),
        job("bystander").shared("tea"),
    ]);
    scene.tick();
    let writer = explained(&scene, "writer");
    assert_eq!(stopped(&writer), Some((Gate::Locks, GateState::Waiting, "waiting on locks")));
    assert_eq!(chain(&writer), [("writer", CauseKind::Locks), ("holder", CauseKind::Running)]);
    says(&writer, "writer waits on the lock db behind holder, which is running");
    // The reader could share it, if the writer had not come first.
    let reader = explained(&scene, "reader");
    let expected =
        [("reader", CauseKind::Locks), ("writer", CauseKind::Locks), ("holder", CauseKind::Running)];
    assert_eq!(chain(&reader), expected);
    // Once nobody holds it, the one that comes first can start.
    scene.set("holder", JobStatus::Succeeded);
    assert_eq!(explained(&scene, "writer").next.what, NextKind::Start);
}

#[test]
fn slots_are_told_with_who_has_them() {
    let mut scene =
        scene([job("one").status(JobStatus::Running), job("two").status(JobStatus::Running), job("three")]);
    scene.capacity = 2;
    scene.settle();
    let three = explained(&scene, "three");
    assert_eq!(stopped(&three), Some((Gate::Capacity, GateState::Waiting, "waiting for one of 2 slots")));
    assert_eq!(three.causes[0].waits_on, [id("one"), id("two")]);
    says(&three, "three is waiting for one of 2 slots behind one and two, which are running.");
    says(&three, "`[scheduler] capacity` in .tidewheel/config.toml");
    let limit = |name: &str| Limits {
        concurrency: Some(ConcurrencyLimit { limit: 1, name: Some(name.to_owned()) }),
        ..Limits::default()
    };
    scene.capacity = 9;
    scene.change("one", |job| job.schedule.limits = Some(Box::new(limit("api"))));
    scene.change("two", |job| job.schedule.limits = Some(Box::new(limit("db"))));
    scene.change("three", |job| job.schedule.limits = Some(Box::new(limit("db"))));
    assert_eq!(explained(&scene, "three").causes[0].waits_on, [id("two")]);
}

#[test]
fn the_same_work_is_told_with_who_does_it() {
    let limits = || Limits { idempotency_key: Some("k".into()), ..Limits::default() };
    let mut scene = scene([
        job("first").limits(limits()).status(JobStatus::Running).with(|job| job.started_at = Some(at(1))),
        job("second").limits(limits()),
    ]);
    scene.settle();
    let second = explained(&scene, "second");
    assert_eq!(stopped(&second).unwrap().0, Gate::IdempotencyKey);
    assert_eq!(chain(&second), [("second", CauseKind::IdempotencyKey), ("first", CauseKind::Running)]);
}

#[test]
fn times_are_told_with_how_long() {
    let late = scene([job("a").with(|job| job.schedule.not_before = Some(at(1_030)))]);
    let a = explained(&late, "a");
    assert_eq!(stopped(&a).unwrap().0, Gate::Schedule);
    assert_eq!((a.next.what, a.next.at, a.next.in_ms), (NextKind::Timer, Some(at(1_030)), Some(30_000)));
    says(&a, "It starts in 30s (2026-02-01T10:17:10Z).");
    let retry = scene([job("a").exclusive("k").with(|job| {
        job.started_at = Some(at(990));
        job.schedule.not_before = Some(at(1_005));
        let detail = format!("retry 1 of 3 at {}", at(1_005));
        job.schedule.wait_reason = Some(WaitReason::new(WaitKind::Schedule, detail));
    })]);
    let a = explained(&retry, "a");
    says(&a, "a waits for retry 1 of 3, which comes in 5s");
    says(&a, "Retry 1 of 3 starts in 5s");
    // Between two attempts nothing is asked.
    assert_eq!(a.gates[5].state, GateState::NotReached);
    let deadline = Limits { deadline: Some(at(1_060)), ..Limits::default() };
    let mut in_time = scene([job("a").limits(deadline).after("b"), job("b").status(JobStatus::Running)]);
    let a = explained(&in_time, "a");
    assert_eq!(a.next.gives_up_at, Some(at(1_060)));
    says(&a, "If it has not started in 1m (2026-02-01T10:17:40Z), it fails.");
    in_time.now = at(1_060);
    let a = explained(&in_time, "a");
    assert_eq!(stopped(&a), Some((Gate::Schedule, GateState::Failed, "deadline exceeded")));
}

#[test]
fn an_approval_that_nobody_gave_before_the_deadline_did_not_pass() {
    let deadline = Limits { deadline: Some(at(1_060)), ..Limits::default() };
    let mut scene = scene([job("a").limits(deadline).approval(Approval::pending("ada", at(0)))]);
    scene.now = at(1_060);
    scene.settle();
    let a = explained(&scene, "a");
    assert_eq!((a.status, stopped(&a).map(|(gate, ..)| gate)), (JobStatus::Failed, Some(Gate::Schedule)));
    let approval = a.gates.iter().find(|gate| gate.gate == Gate::Approval).unwrap();
    assert_eq!((approval.state, approval.detail.as_str()), (GateState::NotReached, "pending"));
}

#[test]
fn what_only_a_pass_knows_is_told_as_it_found_it() {
    for (detail, gate) in [
        ("circuit breaker `api` is open", Gate::CircuitBreaker),
        ("waiting for rate limit `api`", Gate::RateLimit),
    ] {
        let scene = scene([job("a").with(|job| {
            job.schedule.wait_reason = Some(WaitReason::new(WaitKind::Schedule, detail));
        })]);
        let a = explained(&scene, "a");
        assert_eq!(stopped(&a), Some((gate, GateState::Waiting, detail)));
        assert_eq!(a.causes[0].kind.name(), gate.name());
    }
}

#[test]
fn what_has_nothing_to_start_is_told() {
    let mut scene = scene([job("a").with(|job| job.is_runnable = false)]);
    scene.settle();
    let a = explained(&scene, "a");
    assert_eq!(stopped(&a), Some((Gate::Command, GateState::Failed, "missing child args")));
    assert_eq!(a.status, JobStatus::Failed);
    says(&a, "a failed: missing child args");
}

#[test]
fn a_circle_ends_and_is_called_one() {
    let scene = scene([job("a").after("b"), job("b").after("c"), job("c").after("b")]);
    let a = explained(&scene, "a");
    assert_eq!(chain(&a), [("a", CauseKind::After), ("b", CauseKind::After), ("c", CauseKind::Cycle)]);
    says(&a, "in a circle");
    assert_eq!(commands(&a), ["tidewheel jobs cancel c"]);
}

#[test]
fn a_long_chain_is_short_in_words_and_whole_for_programs() {
    let name = |n: usize| format!("j{n:05}");
    let last = job(&name(9_999)).approval(Approval::pending("ada", at(0)));
    let scene = scene((0..9_999).map(|n| job(&name(n)).after(&name(n + 1))).chain([last]));
    let first = explained(&scene, &name(0));
    assert_eq!(first.causes.len(), 10_000);
    says(
        &first,
        "j00000 waits on j00001, which waits on j00002, which waits on j00003, which waits through 9,993 more jobs \
         for j09997, which waits on j09998, which waits on j09999, which awaits a person's approval",
    );
    assert!(sentences(&first).len() < 2_000);
    assert_eq!(explained(&scene, &name(9_999)).next.dependents.waiting, 9_999);
}

#[test]
fn many_roots_are_grouped_and_bounded() {
    let mut all: Vec<_> = (0..50).map(|n| job(&format!("r{n:02}")).status(JobStatus::Running)).collect();
    let mut join = job("join");
    for n in 0..50 {
        join = join.after(&format!("r{n:02}"));
    }
    all.push(join);
    let join = explained(&scene(all), "join");
    says(&join, "join waits on r00, r01, r02 and 47 more, which are running.");
    assert_eq!(join.causes.len(), 51);
    assert!(sentences(&join).lines().count() < 12);
}

fn looks(scene: &Scene, jobs: &BTreeMap<JobId, Brief>) -> BTreeMap<JobId, Option<Look>> {
    let mut facts = Facts::default();
    loop {
        let mut inspection = Inspection::new(jobs, &scene.unreadable, &facts, scene.capacity, scene.now);
        let mut found: BTreeMap<JobId, Option<Look>> = BTreeMap::new();
        for id in jobs.keys() {
            found.insert(id.clone(), inspection.look(id).into_iter().find(Look::is_in_the_way));
        }
        let asked: BTreeSet<Question> = found
            .values()
            .flatten()
            .filter_map(|look| match &look.finding {
                Finding::Asks(questions) => Some(questions.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        if asked.is_empty() {
            return found;
        }
        for question in asked {
            let answer = scene.answer(&question);
            facts.add(question, answer);
        }
    }
}

/// Whatever a pass wrote down is found again by looking, and what it would start is held up by nothing.
#[test]
fn a_look_finds_what_a_pass_found() {
    let (mut waits, mut ends, mut ready, mut locked) = (0, 0, 0, 0);
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let count = 2 + dice.below(14);
        let mut scene = scene([]);
        scene.jobs = random_jobs(&mut dice, count);
        for brief in scene.jobs.values_mut() {
            if dice.chance(60) {
                continue;
            }
            let key = ["k", "l"][dice.below(2)];
            let lock = if dice.chance(50) { job("x").exclusive(key) } else { job("x").shared(key) };
            brief.schedule.locks = lock.0.schedule.locks;
        }
        if dice.chance(50) {
            scene.capacity = u32::try_from(1 + dice.below(4)).unwrap();
        }
        scene.unreadable.insert("unreadable".into(), "no JSON".into());
        scene.tick();
        let settled = scene.settle();
        let found = looks(&scene, &scene.jobs);
        for (id, brief) in &scene.jobs {
            let look = found[id].as_ref();
            if settled.starts.contains(id) {
                assert_eq!(look, None, "seed {seed}, {id}");
                ready += 1;
                continue;
            }
            let Some(reason) = &brief.schedule.wait_reason else { continue };
            let look = look.unwrap_or_else(|| panic!("seed {seed}: {id} waits: {reason}"));
            match &look.finding {
                Finding::Waits { detail, .. } => {
                    assert_eq!(detail, &reason.detail, "seed {seed}, {id}");
                    waits += 1;
                }
                Finding::Ends { status, detail } => {
                    assert_eq!((*status, detail), (brief.status, &reason.detail), "seed {seed}, {id}");
                    ends += 1;
                }
                other => panic!("seed {seed}, {id}: {other:?}"),
            }
            if look.gate == Gate::Locks {
                assert!(!look.on.is_empty(), "seed {seed}: somebody is in the way of {id}");
                locked += 1;
            }
        }
    }
    assert!(waits > 1_000 && ends > 1_000 && locked > 100, "{waits} {ends} {ready} {locked}");
}

/// Returns every job that is reached from a job by what each waits on, found the slow way.
fn reached(causes: &[Cause], from: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([from.to_owned()]);
    loop {
        let next: BTreeSet<String> = causes
            .iter()
            .filter(|cause| all.contains(&cause.job))
            .flat_map(|cause| cause.waits_on.iter().map(ToString::to_string))
            .chain(all.iter().cloned())
            .collect();
        if next.len() == all.len() {
            return all;
        }
        all = next;
    }
}

#[test]
fn causes_are_closed_and_each_job_is_told_once() {
    let (mut roots, mut circles) = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let count = 2 + dice.below(14);
        let mut scene = scene([]);
        scene.jobs = random_jobs(&mut dice, count);
        if dice.chance(50) {
            scene.settle();
        }
        for name in scene.jobs.keys().cloned().collect::<Vec<_>>() {
            let explained = explained(&scene, name.as_str());
            let causes = &explained.causes;
            if causes.is_empty() {
                continue;
            }
            let told: BTreeSet<String> = causes.iter().map(|cause| cause.job.clone()).collect();
            assert_eq!(told.len(), causes.len(), "seed {seed}, {name}: each once");
            assert_eq!(told, reached(causes, name.as_str()), "seed {seed}, {name}");
            for cause in causes {
                assert_eq!(cause.via.is_none(), cause.job == name.as_str(), "seed {seed}, {name}");
                let is_root = cause.waits_on.is_empty() || cause.kind == CauseKind::Cycle;
                assert_eq!(cause.root, is_root, "seed {seed}, {name}: {cause:?}");
                if let Some(via) = &cause.via {
                    let via = causes.iter().find(|other| other.job == *via).unwrap();
                    assert!(via.waits_on.iter().any(|on| on.as_str() == cause.job), "seed {seed}, {name}");
                }
                circles += usize::from(cause.kind == CauseKind::Cycle);
            }
            assert!(causes.iter().any(|cause| cause.root), "seed {seed}, {name}");
            roots += causes.iter().filter(|cause| cause.root).count();
        }
    }
    assert!(roots > 1_000 && circles > 0, "{roots} {circles}");
}

fn explained_run(scene: &Scene, bits: u128) -> RunExplanation {
    asking(scene, |world| explain_run(world, RunSubject { run: &RunId::of_bits(bits), manifest: None }))
}

fn of_run(name: &str) -> crate::world::Job {
    job(name).run(1).with(|job| job.node = Some(NodeId::new(job.id.as_str()).unwrap()))
}

#[test]
fn a_run_is_told_by_its_roots() {
    let mut jobs = vec![
        of_run("gate").approval(Approval::pending("ada", at(0))),
        of_run("slow").status(JobStatus::Running),
    ];
    jobs.extend((0..12).map(|n| of_run(&format!("t{n:02}")).after("gate")));
    jobs.push(of_run("late").after("slow"));
    let mut scene = scene(jobs);
    scene.settle();
    let run = explained_run(&scene, 1);
    let roots: Vec<_> = run
        .causes
        .iter()
        .map(|root| (root.cause.job.as_str(), root.cause.kind, root.holds_up.len()))
        .collect();
    assert_eq!(roots, [("gate", CauseKind::Approval, 12), ("slow", CauseKind::Running, 1)]);
    let text = format!("{:?}", run.page());
    assert!(text.contains("12 jobs wait on it: t00, t01, t02 and 9 more."), "{text}");
    assert!(text.contains("tidewheel jobs approve gate"), "{text}");
    assert_eq!(
        run.next.text,
        "1 job runs, and what is after it goes on when it ends. It goes on when a person has decided."
    );
}

#[test]
fn a_failed_run_is_told_by_its_failures() {
    let failed = of_run("build").status(JobStatus::Failed).with(|job| {
        (job.exit_code, job.attempt) = (Some(2), 3);
    });
    let mut scene = scene([failed, of_run("test").after("build"), of_run("deploy").after("test")]);
    scene.settle();
    let run = explained_run(&scene, 1);
    assert_eq!(run.failures.len(), 1);
    assert_eq!(run.causes[0].holds_up, [id("test"), id("deploy")]);
    let text = format!("{:?}", run.page());
    assert!(text.contains("build failed with exit code 2 after 3 attempts: no rule."), "{text}");
    assert!(text.contains("2 jobs are blocked by it: test and deploy."), "{text}");
    assert_eq!(run.next.commands.len(), 1);
    // A circle of jobs does not keep anybody in it.
    let circle = self::scene([of_run("a").after("b"), of_run("b").after("a")]);
    assert_eq!(explained_run(&circle, 1).causes[0].cause.kind, CauseKind::Cycle);
}

#[test]
fn without_questions_what_the_last_pass_found_counts() {
    let mut scene = scene([job("a").needs(Artifact::TargetBranch { name: "main".into() }).with(|job| {
        job.schedule.missing_producer = MissingProducer::Wait;
    })]);
    scene.settle();
    let facts = Facts::default();
    let world = World {
        briefs: &scene.jobs,
        unreadable: &scene.unreadable,
        lost: &scene.lost,
        last_words: &last_words,
        facts: &facts,
        capacity: 1,
        now: scene.now,
        may_ask: false,
    };
    let subject = Subject { job: scene.job("a"), dead_letter: None, told: &Told::default() };
    let a = explain_job(world, subject).unwrap();
    assert_eq!(a.causes[0].detail, "awaiting producer for target_branch:main");
    assert_eq!(stopped(&a).unwrap().1, GateState::Unknown);
}

#[test]
fn what_blocked_a_node_is_told_of_it_and_of_all_that_is_behind_it() {
    let blocked = |name: &str| {
        of_run(name).status(JobStatus::BlockedByDependency).with(|job| {
            job.exit_code = Some(10);
            job.started_at = Some(at(1));
        })
    };
    let mut scene = scene(vec![
        blocked("merge"),
        of_run("ship").after("merge"),
        blocked("stop"),
        of_run("next").after("stop"),
        blocked("silent"),
    ]);
    scene.settle();
    let run = explained_run(&scene, 1);
    let text = format!("{:?}", run.page());
    for sentence in [
        "merge is blocked: merge of draft/x into main stopped at a conflict: remaining unmerged paths: a. \
         1 job is blocked by it: ship.",
        "stop is blocked: the 1 retry that its `retry.budget` allows was used.",
        "silent ended as blocked, and left no reason.",
        "Once that is put right, a retry runs it again, and what is after it.",
        "tidewheel jobs retry merge",
        "tidewheel jobs tail silent",
    ] {
        assert!(text.contains(sentence), "{sentence}\n{text}");
    }
    let ship = format!("{:?}", explained(&scene, "ship").page());
    assert!(
        ship.contains("ship is blocked by merge, which is blocked: merge of draft/x into main stopped"),
        "{ship}"
    );
}
