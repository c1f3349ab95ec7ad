//! The stages from a spec to a merged branch, with supervisors, agents and gits that are killed at any moment: whoever
//! retries long enough ends where an undisturbed run ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::random::Random;
use crate::world::{Ran, World, eventually, processes_with};
use crate::{is_active, size, tick};

/// Plans, and works in two steps with something in between, so that it can be killed in the middle.
const AGENT: &str = r##"
set -e
prompt=$(cat)
case $prompt in
  "Write an implementation plan"*) printf '# Plan\n\nSay hello.\n' ;;
  "Carry out"*) echo hello > hello.txt; git status --short > /dev/null; echo again >> hello.txt ;;
  *) exit 9 ;;
esac
"##;
/// More retries than anybody should need.
const MOST_RETRIES: usize = 40;
/// How many are killed in one run at most.
const MOST_KILLS: usize = 6;

#[test]
fn whatever_is_killed_on_the_way_a_plan_is_merged_once_and_leaves_nothing_behind() {
    let wanted = {
        let world = world();
        through(&world, &mut || None);
        left(&world)
    };
    let mut random = Random::new("stages");
    let mut killed = 0;
    for _ in 0..size(100) {
        let world = world();
        let mut left_to_kill = 1 + random.below(MOST_KILLS);
        through(&world, &mut || {
            if left_to_kill == 0 {
                return None;
            }
            std::thread::sleep(random.while_of(Duration::from_millis(60)));
            let home = format!("HOME={}", world.outside().join("home").display());
            let is_victim = |line: &str| {
                line.contains("__workflow-node") || line.contains("agent.sh") || line.starts_with("git ")
            };
            let all: Vec<_> = processes_with(&home).into_iter().filter(|(_, line)| is_victim(line)).collect();
            if !all.is_empty() && kill_process(random.one_of(&all).0, Signal::KILL).is_ok() {
                left_to_kill -= 1;
                killed += 1;
            }
            Some(())
        });
        assert_eq!(left(&world), wanted);
        eventually("nobody is left", || world.processes().is_empty());
    }
    println!("killed: {killed}");
    tidewheel_testkit::figure::counted("kills on the way from a spec to a merged branch", killed);
}

/// Returns a repository with the stages, without their own retries, which wait.
fn world() -> World {
    let world = World::new();
    git(&world, &["init", "-q", "-b", "main"]);
    git(&world, &["config", "user.name", "Ada"]);
    git(&world, &["config", "user.email", "ada@example.org"]);
    fs::write(world.outside().join("home/agent.sh"), AGENT).unwrap();
    world.file(".tidewheel/config.toml", "[agents.default]\ncommand = 'sh \"$HOME/agent.sh\"'\n");
    assert_eq!(world.run(&["init", "--stages"]).code, Some(0));
    for stage in ["draft", "approve", "merge"] {
        let path = world.path(&format!(".tidewheel/workflows/{stage}.toml"));
        let text = fs::read_to_string(&path).unwrap();
        let text =
            text.replace("max_retries = 1", "max_retries = 0").replace("max_retries = 2", "max_retries = 0");
        fs::write(&path, text).unwrap();
    }
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-q", "-m", "first"]);
    world
}

fn git(world: &World, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    world.settle_in(&mut command);
    let ran = Ran::of(command.args(arguments));
    assert_eq!(ran.code, Some(0), "git {arguments:?}: {ran:?}");
    ran.out
}

/// Runs all stages, approves what is to be approved and retries what failed, until everything has succeeded. Somebody
/// may kill in between, as long as something comes back.
fn through(world: &World, kill: &mut dyn FnMut() -> Option<()>) {
    let nodes =
        world.json(&["run", "develop", "alpha", "Be kind.", "--check-script", "grep -q again hello.txt"]);
    let run = nodes["run_id"].as_str().unwrap().to_owned();
    let mut retries = 0;
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        assert!(Instant::now() < until, "{run} is not over: {}", explained(world, &run));
        if kill().is_none() {
            // Nobody is killed any more, so that there is nothing to do but to wait.
            std::thread::sleep(Duration::from_millis(5));
        }
        tick(world);
        let jobs: Vec<(String, String)> =
            NODES.iter().map(|node| format!("wf-{run}-{node}")).map(|id| (world.status(&id), id)).collect();
        if let Some((_, id)) = jobs.iter().find(|(status, _)| status == "waiting_on_approval") {
            let ran = world.run(&["jobs", "approve", id]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            continue;
        }
        if jobs.iter().any(|(status, _)| is_active(status)) {
            continue;
        }
        let Some(at) = jobs.iter().position(|(status, _)| status != "succeeded") else { return };
        retries += 1;
        let outcome = || fs::read_to_string(world.in_jobs(&jobs[at].1).join("outcome.json"));
        assert!(retries <= MOST_RETRIES, "{jobs:?} {:?}", outcome());
        // What ran in a worktree that is gone begins with a new one.
        let root = match NODES[at] {
            "approve__prompt" | "approve__implement" | "approve__commit" | "approve__verify" => {
                "approve__prepare"
            }
            "merge__ci" | "merge__save" => "merge__prepare",
            node => node,
        };
        let ran = world.run(&["jobs", "retry", &format!("wf-{run}-{root}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

/// Returns what the jobs of a run that have not succeeded wait for, and the processes that are left.
fn explained(world: &World, run: &str) -> String {
    let mut text = String::new();
    for id in NODES.iter().map(|node| format!("wf-{run}-{node}")) {
        if world.status(&id) != "succeeded" {
            let ran = world.run(&["jobs", "explain", &id]);
            let _ = writeln!(text, "{}{}", ran.out, ran.err);
        }
    }
    let _ = writeln!(text, "processes: {:?}", world.processes());
    text
}

/// The nodes in the order in which they run.
const NODES: [&str; 16] = [
    "draft__prompt",
    "draft__write",
    "draft__persist",
    "approve__agree",
    "approve__prepare",
    "approve__prompt",
    "approve__implement",
    "approve__commit",
    "approve__verify",
    "approve__cleanup",
    "merge__prepare",
    "merge__ci",
    "merge__save",
    "merge__cleanup",
    "merge__resolve",
    "merge__merge",
];

/// Returns what is left of it all: commits, files, branches, worktrees and what is changed.
fn left(world: &World) -> [String; 5] {
    [
        git(world, &["log", "--format=%B%T", "main"]),
        git(world, &["show", "main:hello.txt"]),
        git(world, &["for-each-ref", "--format=%(refname)"]),
        git(world, &["worktree", "list", "--porcelain"]).matches("worktree ").count().to_string(),
        git(world, &["status", "--porcelain"]),
    ]
}
