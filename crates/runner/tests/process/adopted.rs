//! The dead of a group whose parent is gone go to whoever adopts them: to this process, as to the first one of a
//! container, or to one that does not take them away. That concerns all of a process, so that the tests run
//! themselves once more.

use std::env;
use std::fs;
use std::future::pending;
use std::process::Command;

use tidewheel_core::time::Span;
use tidewheel_runner::process::{Capture, Options, Program, System, start};

use crate::world::{living, sh};

const ROLE: &str = "TIDEWHEEL_TEST_ROLE";

/// Runs a test once more, in a process with a role.
fn again(test: &str, role: &str) {
    let mut again = Command::new(env::current_exe().unwrap());
    let output = again.args(["--exact", test]).env(ROLE, role).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn adopt() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

/// Runs a process that leaves others behind, until its group is gone.
async fn leave_behind() -> u32 {
    let started = start(&System, &Program::new(sh("sleep 1000 & sleep 1000 & true"))).unwrap();
    let group = started.id();
    let (stdin, grace) = (Vec::new(), Span::from_secs(60));
    let options = Options { stdin, stdout: Capture::tail(0), stderr: Capture::tail(0), grace };
    started.run(options, pending()).await.unwrap();
    group
}

/// Returns what the system still has of a group, dead or alive.
fn left_of(group: u32) -> Vec<String> {
    let stats = fs::read_dir("/proc").unwrap();
    let stats = stats.filter_map(|process| fs::read_to_string(process.ok()?.path().join("stat")).ok());
    let its_group = |stat: &String| stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok();
    stats.filter(|stat| its_group(stat) == Some(group)).collect()
}

#[tokio::test]
async fn the_dead_of_a_group_are_taken_away_by_a_process_that_adopts_them() {
    if env::var_os(ROLE).is_none() {
        return again("adopted::the_dead_of_a_group_are_taken_away_by_a_process_that_adopts_them", "adopts");
    }
    adopt();
    let group = leave_behind().await;
    assert_eq!(left_of(group), [""; 0], "neither dead nor alive");
}

#[tokio::test]
async fn a_group_is_gone_when_all_are_dead_though_nobody_takes_them_away() {
    let test = "adopted::a_group_is_gone_when_all_are_dead_though_nobody_takes_them_away";
    match env::var(ROLE).as_deref() {
        Ok("works") => {
            let group = leave_behind().await;
            assert_eq!(living(group), [0; 0]);
            assert!(!left_of(group).is_empty(), "they are dead and still there");
        }
        Ok(_) => {
            adopt();
            again(test, "works");
        }
        Err(_) => again(test, "adopts and does not care"),
    }
}
