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
    leftover::end(&world.record(started), &world.data()).unwrap();
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
    leftover::end(&world.record(started), &world.data()).unwrap();
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
    leftover::end(&record, &world.data()).unwrap();
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
    leftover::end(&world.record(started), &world.data()).unwrap();
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
    leftover::end(&record, &world.data()).unwrap();
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
    leftover::end(&record, &mine.data()).unwrap();
    assert_eq!(other.living().len(), 2, "{:?}", other.living());
}
