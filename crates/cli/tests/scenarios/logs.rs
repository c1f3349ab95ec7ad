//! Logs are read only where they are files of the job.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::by_hand::{Desk, job};

#[test]
fn a_log_that_is_a_link_is_not_followed() {
    let desk = Desk::new();
    desk.put(job("J1").status("succeeded"));
    let secret = desk.outside().join("secret");
    fs::write(&secret, "only for others\n").unwrap();
    for log in ["stdout.log", "stderr.log"] {
        std::os::unix::fs::symlink(&secret, desk.in_jobs("J1").join(log)).unwrap();
    }
    for arguments in
        [&["jobs", "tail", "J1"][..], &["jobs", "tail", "J1", "--raw"], &["jobs", "attach", "J1"]]
    {
        let ran = desk.run(arguments);
        assert!(!ran.out.contains("only for others"), "{ran:?}");
    }
}

#[test]
fn a_log_that_is_a_pipe_is_not_waited_for() {
    let desk = Desk::new();
    desk.put(job("J1").status("succeeded"));
    mknodat(CWD, desk.in_jobs("J1/stdout.log"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(desk.in_jobs("J1/stderr.log"), "a word\n").unwrap();
    let ran = desk.run(&["jobs", "tail", "J1", "--stream", "stderr"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a word\n"), "{ran:?}");
    let ran = desk.run(&["jobs", "tail", "J1", "--stream", "stdout"]);
    assert_eq!(ran.out, "", "{ran:?}");
}
