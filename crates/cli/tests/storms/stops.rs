//! Supervisors, schedulers, daemons and commands that are stopped at any moment and go on later: as nothing was killed,
//! every job runs once, and a process that slept writes nothing that is no longer so.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tidewheel_testkit::figure;

use crate::kills::{check, graph};
use crate::random::Random;
use crate::size;
use crate::world::{World, eventually};

#[test]
fn whoever_is_stopped_and_goes_on_every_job_runs_once() {
    let mut random = Random::new("stops");
    let world = World::new();
    fs::create_dir(world.path("seen")).unwrap();
    let stops = size(300);
    let mut stopped: BTreeMap<&str, usize> = BTreeMap::new();
    let mut running: Vec<Child> = vec![world.command(&["daemon"]).spawn().unwrap()];
    let mut daemon = Pid::from_child(&running[0]);
    for round in 0.. {
        if stopped.values().sum::<usize>() >= stops {
            break;
        }
        // One that is stopped may read its flow much later.
        let name = format!("graph-{round}");
        world.flow(&name, &graph(&mut random));
        for arguments in [&["run", &name][..], &["tick"]] {
            running.push(world.command(arguments).spawn().unwrap());
        }
        std::thread::sleep(random.while_of(Duration::from_millis(40)));
        let of_kind = ["__workflow-node", "tidewheel run", "tidewheel tick", "tidewheel daemon"];
        let kinds = ["supervisors", "commands", "schedulers", "daemons"];
        let kind = random.below(4);
        let all = world.processes();
        let victims: Vec<_> = all.iter().filter(|(_, line)| line.contains(of_kind[kind])).collect();
        if !victims.is_empty() {
            let victim = random.one_of(&victims).0;
            // One that ended in between cannot be stopped any more, and does not count.
            if kill_process(victim, Signal::STOP).is_ok() {
                *stopped.entry(kinds[kind]).or_default() += 1;
                // The others go on beside it, or wait for it.
                running.push(world.command(&["tick"]).spawn().unwrap());
                std::thread::sleep(random.while_of(Duration::from_millis(120)));
                kill_process(victim, Signal::CONT).ok();
            }
        }
        if random.below(8) == 0 {
            // The daemon stays until it is ended, and everything else ends.
            running.drain(1..).for_each(ended_well);
            check(&world);
            once(&world);
            kill_process(daemon, Signal::TERM).unwrap();
            running.pop().unwrap().wait().unwrap();
            running.push(world.command(&["daemon"]).spawn().unwrap());
            daemon = Pid::from_child(&running[0]);
        }
    }
    running.drain(1..).for_each(ended_well);
    println!("stopped: {stopped:?}");
    for (who, count) in stopped {
        figure::counted(&format!("stops of {who}"), count);
    }
    check(&world);
    once(&world);
    kill_process(daemon, Signal::TERM).unwrap();
    running.pop().unwrap().wait().unwrap();
    eventually("nobody is left", || world.processes().is_empty());
}

/// Waits for the end of a command, which must be a good one.
fn ended_well(command: Child) {
    let ended = command.wait_with_output().unwrap();
    assert!(ended.status.success(), "{} {}", ended.status, String::from_utf8_lossy(&ended.stderr));
}

/// Checks that every job succeeded in its first attempt, and that its log says so once.
fn once(world: &World) {
    for id in world.job_dirs() {
        let record = world.record(&id);
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(record["metadata"]["workflow_node_attempt"], 1, "{record}");
        let events = fs::read_to_string(world.in_jobs(&id).join("events.jsonl")).unwrap();
        for what in ["\"dispatched\"", "\"completed\""] {
            assert_eq!(events.matches(what).count(), 1, "{id}: {events}");
        }
    }
}
