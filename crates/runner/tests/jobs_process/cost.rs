//! What an attempt costs beside the process itself: printed, for people to see.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidewheel_core::job::Secrets;
use tidewheel_runner::job::attempt::{Attempt, End, Logs, run};
use tidewheel_runner::process::Program;

const FOLDER: &str = "TIDEWHEEL_TEST_FOLDER";
const COUNT: usize = 200;

#[test]
fn the_cost_of_an_attempt_that_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let told = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cost::attempts_one_after_the_other", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    let line = told.lines().find(|line| line.starts_with("one `true`")).unwrap_or_else(|| panic!("{told}"));
    println!("{line}");
}

#[test]
#[ignore = "another test starts it in another process"]
fn attempts_one_after_the_other() {
    let Some(folder) = std::env::var_os(FOLDER).map(std::path::PathBuf::from) else { return };
    let bare = median(|| {
        let mut command = Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        assert!(command.spawn().unwrap().wait().unwrap().success());
    });
    let attempt = median(|| {
        let ended = run(Attempt {
            program: Program::new(["true"]),
            stdin: None,
            logs: Logs {
                stdout: folder.join("stdout.log"),
                stderr: folder.join("stderr.log"),
                limit: 1 << 20,
            },
            keeps: None,
            secrets: Secrets::default(),
            timeout: Some(Duration::from_secs(60)),
            heartbeat: None,
            grace: Duration::from_secs(1),
            on_spawn: &mut |_| Ok(()),
            is_cancelled: &|| false,
            cancel_in: Some(folder.clone()),
        });
        assert_eq!(ended.unwrap().end, End::Exited(0));
    });
    println!("one `true`: {bare:?} by itself, {attempt:?} as an attempt");
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut took: Vec<Duration> = (0..COUNT)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .collect();
    took.sort();
    took[COUNT / 2]
}
