//! Logs are read only where they are files of the job.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::by_hand::{Desk, job};
use crate::runs::flow_of;
use crate::world::Ran;

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

/// `jobs show` names the logs of every job that ran, also of one that had nothing to say.
#[test]
fn a_node_that_says_nothing_has_logs_that_are_empty() {
    let desk = Desk::new();
    let silent = "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"one\"\nkind = \"gate\"\nuses = \"control.terminal\"\n";
    for text in [silent.to_owned(), flow_of("true")] {
        desk.flow("silent", &text);
        let id = format!("wf-{}-one", desk.enqueue(&["silent"]));
        assert_eq!(desk.wait(&id).code, Some(0));
        for log in ["stdout.log", "stderr.log"] {
            let path = desk.in_jobs(&id).join(log);
            assert_eq!(fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")), "");
        }
    }
}

/// The part of a log that was put aside was once read as a whole before a line of it was printed.
#[test]
fn a_long_log_is_printed_without_being_held() {
    const LENGTH: u64 = 512 << 20;
    let desk = Desk::new();
    desk.put(job("J1").status("succeeded"));
    let aside = fs::File::create(desk.in_jobs("J1/stdout.log.1")).unwrap();
    aside.set_len(LENGTH).unwrap();
    fs::write(desk.in_jobs("J1/stdout.log"), "the end\n").unwrap();
    let binary = desk.command(&[]).get_program().to_owned();
    // Less than the log, and plenty for a program that holds pieces of it.
    let script = "ulimit -v 400000; \"$0\" jobs tail J1 --stream stdout --raw | tail -c 8";
    let mut command = std::process::Command::new("sh");
    desk.settle_in(&mut command);
    let ran = Ran::of(command.args(["-c", script]).arg(binary).current_dir(desk.path("")));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("the end\n", ""), "{ran:?}");
}
