//! Supervisors, schedulers, daemons and commands that are killed at any moment.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tidewheel_testkit::figure;

use crate::random::Random;
use crate::world::{World, eventually};
use crate::{flow, is_active, size, tick};

/// What every job does: it leaves a mark for its attempt, and notices if one is already there.
const SCRIPT: &str = "mkdir seen/$TIDEWHEEL_JOB_ID.$TIDEWHEEL_ATTEMPT || echo $TIDEWHEEL_JOB_ID >>twice";

/// Returns a small graph, with or without retries.
pub(crate) fn graph(random: &mut Random) -> String {
    let count = 1 + random.below(5);
    let node = |index: usize, random: &mut Random| {
        let before: Vec<String> =
            (0..index).filter(|_| random.below(2) == 0).map(|before| format!("\"n{before}\"")).collect();
        let nap = ["", "; sleep 0.01", "; sleep 0.03 & wait"][random.below(3)];
        (format!("n{index}"), format!("{SCRIPT}{nap}"), format!("after = [{}]", before.join(", ")))
    };
    let nodes: Vec<_> = (0..count).map(|index| node(index, random)).collect();
    let retries = random.below(2) * 20;
    let policy =
        format!("[[policies]]\nmatch = {{ default = true }}\nmax_retries = {retries}\nbackoff = \"none\"\n");
    flow(nodes) + &policy
}

#[test]
fn whoever_is_killed_no_job_is_lost_and_none_runs_twice() {
    let mut random = Random::new("kills");
    let world = World::new();
    fs::create_dir(world.path("seen")).unwrap();
    let kills = size(300);
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut commands: Vec<Child> = Vec::new();
    while killed.values().sum::<usize>() < kills {
        world.flow("graph", &graph(&mut random));
        commands.push(world.command(&["run", "graph"]).spawn().unwrap());
        std::thread::sleep(random.while_of(Duration::from_millis(80)));
        match random.below(4) {
            0 => {
                let mut victim = commands.pop().unwrap();
                if victim.try_wait().unwrap().is_none() {
                    victim.kill().unwrap();
                    *killed.entry("commands").or_default() += 1;
                }
                victim.wait().unwrap();
            }
            1 => {
                let mut victim = world.command(&["tick"]).spawn().unwrap();
                std::thread::sleep(random.while_of(Duration::from_millis(30)));
                if victim.try_wait().unwrap().is_none() {
                    victim.kill().unwrap();
                    *killed.entry("schedulers").or_default() += 1;
                }
                victim.wait().unwrap();
            }
            2 => {
                let mut victim = world.command(&["daemon"]).spawn().unwrap();
                std::thread::sleep(random.while_of(Duration::from_millis(60)));
                // One that finds another daemon ends, and does not count.
                if victim.try_wait().unwrap().is_none() {
                    victim.kill().unwrap();
                    *killed.entry("daemons").or_default() += 1;
                }
                victim.wait().unwrap();
            }
            _ => {
                let all = world.processes();
                let ours: Vec<_> = all.iter().filter(|(_, line)| line.contains("__workflow-node")).collect();
                // A supervisor that ended in between cannot be killed any more, and does not count.
                if !ours.is_empty() && kill_process(random.one_of(&ours).0, Signal::KILL).is_ok() {
                    *killed.entry("supervisors").or_default() += 1;
                }
            }
        }
        if random.below(5) == 0 {
            for mut command in commands.drain(..) {
                command.wait().unwrap();
            }
            check(&world);
        }
    }
    for mut command in commands {
        command.wait().unwrap();
    }
    println!("killed: {killed:?}");
    for (who, count) in killed {
        figure::counted(&format!("kills of {who}"), count);
    }
    check(&world);
    eventually("nobody is left", || world.processes().is_empty());
}

/// Sees everything through to its end, and then looks at all of it.
pub(crate) fn check(world: &World) {
    tick(world);
    for id in world.job_dirs() {
        is_true(world, &id);
    }
    let manifests = manifests(world);
    let jobs: Vec<String> = manifests.values().flatten().cloned().collect();
    for id in &jobs {
        assert!(world.in_jobs(id).join("job.json").exists(), "a run was enqueued without {id}");
    }
    eventually("every job is over", || {
        tick(world);
        jobs.iter().all(|id| !is_active(&world.status(id)))
    });
    assert!(!world.path("twice").exists(), "{:?}", fs::read_to_string(world.path("twice")));
    for id in world.job_dirs() {
        let record = world.record(&id);
        let run = record["metadata"]["workflow_run_id"].as_str().unwrap();
        let attempts = (1..100).filter(|attempt| world.path(&format!("seen/{id}.{attempt}")).exists());
        let last = record["metadata"]["workflow_node_attempt"].as_u64().unwrap_or(0);
        if manifests.contains_key(run) {
            assert!(attempts.max().unwrap_or(0) <= last, "{record}");
            let ran = world.path(&format!("seen/{id}.{last}")).exists();
            assert!(ran || record["status"] != "succeeded", "it succeeded without running: {record}");
        } else {
            assert_eq!(attempts.count(), 0, "a job of a run that was never enqueued ran: {record}");
            assert!(record["started_at"].is_null() && record["status"] != "running", "{record}");
        }
    }
}

/// Fails if a record says that its job is running, and nobody holds its lock.
fn is_true(world: &World, id: &str) {
    if world.status(id) != "running" {
        return;
    }
    let lock = File::open(world.in_jobs(id).join("run.lock")).unwrap();
    if lock.try_lock().is_ok() {
        // It may have ended since we looked; while we hold its lock it cannot begin.
        assert_ne!(world.status(id), "running", "{id} has no supervisor");
    }
}

/// Returns the jobs of every run that was enqueued.
pub(crate) fn manifests(world: &World) -> BTreeMap<String, Vec<String>> {
    let Ok(entries) = fs::read_dir(world.in_jobs("runs")) else { return BTreeMap::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let manifest = |name: String| {
        let run = name.strip_suffix(".json").filter(|run| run.starts_with("run_"))?.to_owned();
        let text = fs::read_to_string(world.in_jobs("runs").join(&name)).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let nodes = document["nodes"].as_object().unwrap().values();
        Some((run, nodes.map(|node| node["job_id"].as_str().unwrap().to_owned()).collect()))
    };
    names.filter_map(manifest).collect()
}
