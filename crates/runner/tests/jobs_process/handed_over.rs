//! A lock that is handed over with the start of a supervisor is never free in between.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidewheel_core::job::JobId;
use tidewheel_runner::job::launch::{Launched, handed_over, launch, launch_waker};

use crate::world::{World, until};

/// A program in the place of ours that does what a script says.
fn binary(world: &World, script: &str) -> PathBuf {
    let path = world.root().join("binary");
    let mut file = File::create(&path).unwrap();
    write!(file, "#!/bin/sh\n# {}\n{script}\n", world.nap).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn lock_of(world: &World) -> File {
    let lock = File::create(world.job().join("run.lock")).unwrap();
    lock.try_lock().unwrap();
    lock
}

fn is_free(world: &World) -> bool {
    File::open(world.job().join("run.lock")).unwrap().try_lock().is_ok()
}

#[test]
fn the_lock_goes_with_the_supervisor_and_is_free_when_it_is_dead() {
    let world = World::new();
    let binary = binary(
        &world,
        "echo \"$@\" > args; pwd >> args; echo broken >&2; exec sleep $(sed -n 's/^# //p' $0)",
    );
    let launched = Launched::default();
    let id = JobId::new("job").unwrap();
    let pid = launch(&binary, &id, world.root(), lock_of(&world), &world.data(), &launched).unwrap();
    assert!(!is_free(&world), "our copy is closed, and it is still held");
    until("its start", || world.living().iter().any(|line| line.contains("sleep")));
    let args = fs::read_to_string(world.root().join("args")).unwrap();
    let root = world.root().canonicalize().unwrap();
    assert_eq!(args, format!("__workflow-node --job-id job\n{}\n", root.display()));
    assert_eq!(world.log("supervisor.log"), "broken\n");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(2).unwrap();
    assert_eq!(group, pid.to_string(), "a group of its own");
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until("a free lock", || is_free(&world));
    until("its being taken away", || {
        launched.reap();
        !Path::new(&format!("/proc/{pid}")).exists()
    });
}

#[test]
fn the_dead_do_not_pile_up_in_a_process_that_starts_many() {
    let world = World::new();
    let launched = Launched::default();
    let mut pids = Vec::new();
    for _ in 0..200 {
        pids.push(launch_waker(Path::new("/bin/true"), world.root(), &world.data(), &launched).unwrap());
    }
    let first = PathBuf::from(format!("/proc/{}", pids[0]));
    until("the first one's being taken away", || {
        launch_waker(Path::new("/bin/true"), world.root(), &world.data(), &launched).unwrap();
        !first.exists()
    });
}

#[test]
fn another_data_directory_is_named() {
    let world = World::new();
    let binary = binary(&world, "echo \"$@\" > args.tmp; mv args.tmp args");
    let elsewhere = tempfile::tempdir().unwrap();
    launch_waker(&binary, world.root(), elsewhere.path(), &Launched::default()).unwrap();
    world.wait_for("args");
    let args = fs::read_to_string(world.root().join("args")).unwrap();
    assert_eq!(args, format!("daemon --until-idle --dir {}\n", elsewhere.path().display()));
}

#[test]
fn a_supervisor_does_not_have_the_variables_of_the_job_that_started_it() {
    let world = World::new();
    let test = "handed_over::launches_for_another_test";
    let binary = binary(&world, "env > env.tmp; mv env.tmp env");
    let started = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .env("TIDEWHEEL_JOB_TOKEN", "secret")
        .env("TIDEWHEEL_JOB_ID", "outer")
        .env("TIDEWHEEL_TEST_BINARY", &binary)
        .env("TIDEWHEEL_TEST_ROOT", world.root())
        .status();
    assert!(started.unwrap().success());
    world.wait_for("env");
    let env = fs::read_to_string(world.root().join("env")).unwrap();
    assert!(env.contains("TIDEWHEEL_DETACHED=1"));
    assert!(!env.contains("TIDEWHEEL_JOB"), "{env}");
}

#[test]
#[ignore = "another test starts it in another process"]
fn launches_for_another_test() {
    let Some(binary) = std::env::var_os("TIDEWHEEL_TEST_BINARY") else { return };
    let root = PathBuf::from(std::env::var_os("TIDEWHEEL_TEST_ROOT").unwrap());
    launch_waker(Path::new(&binary), &root, &root.join(".tidewheel"), &Launched::default()).unwrap();
}

#[test]
fn a_binary_that_is_missing_leaves_the_lock_free() {
    let world = World::new();
    let (id, launched) = (JobId::new("job").unwrap(), Launched::default());
    let missing = world.root().join("missing");
    launch(&missing, &id, world.root(), lock_of(&world), &world.data(), &launched).unwrap_err();
    assert!(is_free(&world));
}

/// Runs this test binary with a file as its stdin, and returns whether it takes it for a lock that it was handed.
fn takes(world: &World, stdin: File) -> bool {
    let told = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "handed_over::tells_whether_it_was_handed_a_lock", "--ignored", "--nocapture"])
        .env("TIDEWHEEL_TEST_LOCK", world.job().join("run.lock"))
        .stdin(stdin)
        .output()
        .unwrap();
    String::from_utf8_lossy(&told.stdout).contains("it was: true")
}

#[test]
#[ignore = "another test starts it in another process"]
fn tells_whether_it_was_handed_a_lock() {
    let Some(lock) = std::env::var_os("TIDEWHEEL_TEST_LOCK") else { return };
    println!("it was: {}", handed_over(Path::new(&lock)).is_some());
}

#[test]
fn only_who_holds_the_lock_was_handed_it() {
    let world = World::new();
    let lock = lock_of(&world);
    assert!(takes(&world, lock.try_clone().unwrap()));
    assert!(!takes(&world, File::open(world.job().join("run.lock")).unwrap()), "somebody else holds it");
    assert!(!takes(&world, File::open("/dev/null").unwrap()), "it is another file");
    drop(lock);
    assert!(!takes(&world, File::open(world.job().join("run.lock")).unwrap()), "nobody holds it");
    assert!(is_free(&world));
}
