//! What is left when a supervisor is killed, and how it is found.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use tidewheel_runner::job::leftover::{self, Signal};

use crate::world::{World, until};

fn start_time(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

fn innocent(world: &World) -> Child {
    Command::new("sleep").arg(&world.nap).process_group(0).spawn().unwrap()
}

#[test]
fn nothing_survives_a_supervisor_that_was_killed() {
    let world = World::new();
    // One in the group, one in a session of its own, one whose parent is gone, and one that does not listen.
    let script = "NAP & setsid NAP & (setsid sh -c 'NAP & true' &); setsid sh -c 'trap \"\" TERM; NAP; NAP' & \
                  sleep 0.1; touch begun; NAP";
    let mut supervisor = world.supervise(script);
    let started = supervisor.started();
    world.wait_for("begun");
    until("all of them", || world.living().iter().filter(|line| line.contains(" sleep ")).count() >= 5);
    supervisor.kill();
    leftover::end([&world.record(started)], &world.data()).unwrap();
    world.assert_nothing_lives();
}

#[test]
fn processes_that_do_nothing_but_start_others_are_overtaken_without_a_supervisor() {
    let world = World::new();
    // Each lives only until it has started the next one; the file lets them end even if this test fails.
    let go = world.root().join("go");
    std::fs::write(&go, "").unwrap();
    let storm = "trap '' TERM; f() { [ -e go ] && f & }; f; f; f; touch begun; NAP";
    let mut supervisor = world.supervise(storm);
    let started = supervisor.started();
    world.wait_for("begun");
    supervisor.kill();
    leftover::end([&world.record(started)], &world.data()).unwrap();
    world.assert_nothing_lives();
    std::fs::remove_file(go).unwrap();
}

#[test]
fn the_token_is_enough_where_the_first_process_is_gone() {
    let world = World::new();
    let mut supervisor = world.supervise("setsid NAP & sleep 0.1; touch begun; NAP");
    let (pid, start_time) = supervisor.started();
    world.wait_for("begun");
    supervisor.kill();
    let record = world.record((pid, start_time));
    leftover::signal(&record, Signal::Kill).unwrap();
    until("the end of the group", || world.living().len() == 1);
    leftover::end([&record], &world.data()).unwrap();
    world.assert_nothing_lives();
}

#[test]
fn the_group_is_enough_where_a_process_has_no_environment() {
    let world = World::new();
    let mut supervisor = world.supervise("touch begun; exec env -i NAP");
    let started = supervisor.started();
    world.wait_for("begun");
    until("the change", || world.living().iter().any(|line| line.contains(" sleep")));
    supervisor.kill();
    leftover::end([&world.record(started)], &world.data()).unwrap();
    world.assert_nothing_lives();
}

#[test]
fn a_number_that_was_given_again_is_not_signalled() {
    let world = World::new();
    let mut stranger = innocent(&world);
    let began = start_time(stranger.id());
    let record = world.record((stranger.id(), began - 1));
    leftover::signal(&record, Signal::Terminate).unwrap();
    leftover::signal(&record, Signal::Kill).unwrap();
    leftover::end([&record], &world.data()).unwrap();
    assert_eq!(stranger.try_wait().unwrap(), None, "it lives");
    // With its own time it is meant.
    leftover::signal(&world.record((stranger.id(), began)), Signal::Kill).unwrap();
    assert!(!stranger.wait().unwrap().success());
}

#[test]
fn the_job_of_the_same_name_elsewhere_is_left_alone() {
    let (mine, other) = (World::new(), World::new());
    let mut supervisor = other.supervise("NAP; true");
    supervisor.started();
    until("the shell and its child", || other.living().len() == 2);
    let mut record = mine.record((1, 1));
    record.pid = None;
    leftover::end([&record], &mine.data()).unwrap();
    assert_eq!(other.living().len(), 2, "{:?}", other.living());
}

#[test]
fn a_process_without_environment_in_a_session_of_its_own_does_not_survive_its_supervisor() {
    let world = World::new();
    // The shell that started it is gone, so that nothing but what it inherited leads to its job.
    let script = "(env -i setsid sh -c 'NAP; NAP' >/dev/null 2>&1 </dev/null &); sleep 0.1; touch begun; NAP";
    let mut supervisor = world.supervise(script);
    let started = supervisor.started();
    world.wait_for("begun");
    until("both", || world.living().iter().filter(|line| line.contains(" sleep ")).count() >= 2);
    supervisor.kill();
    let record = world.record(started);
    assert_eq!(leftover::alive([&record], &world.data()).unwrap().len(), 1);
    leftover::end([&record], &world.data()).unwrap();
    world.assert_nothing_lives();
    assert!(leftover::alive([&record], &world.data()).unwrap().is_empty());
}

#[test]
fn the_members_of_a_group_are_known_when_its_leader_is_dead() {
    let world = World::new();
    let mut supervisor = world.supervise("env -i NAP & touch begun; NAP");
    let started = supervisor.started();
    world.wait_for("begun");
    until("both", || world.living().iter().filter(|line| line.contains(" sleep ")).count() >= 2);
    let (leader, session) = (started.0, session_of(started.0));
    supervisor.kill();
    // Only the leader, and the mark that its child has inherited does not count here: the group has to be enough.
    let id = rustix::process::Pid::from_raw(leader.try_into().unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    until("the end of the leader", || !std::path::Path::new(&format!("/proc/{leader}")).exists());
    let mut record = world.record(started);
    record.metadata.set("process_session", session);
    // In another directory neither the token nor the mark is of this job.
    let elsewhere = World::new();
    leftover::end([&record], &elsewhere.data()).unwrap();
    assert!(!world.living().iter().any(|line| line.contains(" sleep ")), "{:?}", world.living());
}

fn session_of(id: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn what_several_jobs_left_is_ended_together() {
    let worlds: Vec<World> = (0..4).map(|_| World::new()).collect();
    let mut records = Vec::new();
    for world in &worlds {
        // Each does not listen, so that each is waited for as long as the grace is.
        let mut supervisor = world.supervise("trap '' TERM; touch begun; NAP; NAP");
        let started = supervisor.started();
        world.wait_for("begun");
        supervisor.kill();
        records.push(world.record(started));
    }
    // All are of one directory as far as the record says: their groups lead to them.
    leftover::end(&records, &worlds[0].data()).unwrap();
    for world in &worlds {
        until("its end", || world.living().iter().all(|line| !line.contains(" sleep ")));
    }
}
