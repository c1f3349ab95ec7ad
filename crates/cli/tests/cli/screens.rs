//! What a stranger sees first, and what they see when something is in the way: no arguments, typing errors, no rights,
//! a full disk, a disk for reading only, broken files, files of a later release.
//!
//! Who runs the tests may be root, whom rights do not stop. So a file in the place of a directory and `/proc` stand for
//! a directory without rights, and whoever is not root meets the rights themselves in addition. A full disk and one
//! for reading only are real ones, mounted where only the command sees them; where that is not allowed, a limit on the
//! size of files stands for the full disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::json;

use crate::home::{Home, Ran};
use crate::yard::Yard;

/// Returns what came of it, with the name of the directory written short.
fn shown(home: &Home, ran: &Ran) -> String {
    ran.to_string().replace(&home.path().display().to_string(), "HOME")
}

/// Returns a home with the first flow.
fn begun() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["init"]).code, Some(0));
    home
}

/// Runs a script of a shell in which `tidewheel` is the binary.
pub(crate) fn script(home: &Home, wrapper: &[&str], text: &str) -> Ran {
    let text = format!("tidewheel() {{ {} \"$@\"; }}\n{text}", env!("CARGO_BIN_EXE_tidewheel"));
    let (program, arguments) = wrapper.split_first().unwrap_or((&"/bin/sh", &[]));
    let mut command = Command::new(program);
    command.args(arguments);
    if !wrapper.is_empty() {
        command.arg("/bin/sh");
    }
    command.args(["-c", &text]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command.current_dir(home.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ran::of(command, b"")
}

/// How a command gets mounts of its own.
pub(crate) const APART: [&str; 2] = ["unshare", "-rm"];

/// Tells whether mounts of one's own are allowed here, and says so where they are not.
#[expect(clippy::print_stderr, reason = "whoever runs the tests has to know what was not tested")]
pub(crate) fn can_mount() -> bool {
    let mut command = Command::new(APART[0]);
    command.arg(APART[1]).args(["mount", "-t", "tmpfs", "none", "/mnt"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_allowed = status.is_ok_and(|status| status.success());
    if !is_allowed {
        eprintln!("skipped: mounts of one's own are not allowed here");
    }
    is_allowed
}

#[test]
fn the_name_alone_says_how_to_begin() {
    let ran = Home::new().run(&[]);
    assert_snapshot!(ran, @"
    --- stderr
    Tidewheel runs workflows on this machine: jobs in order and
    side by side, with retries, approvals and locks. They
    survive crashes, and need no server.

    Begin with
      tidewheel demo                 see it work, in seconds
      tidewheel init                 begin a first flow here
      tidewheel run hello --follow   run it, and watch it

    More
      tidewheel --help               all commands
      tidewheel help run             one command, by example
      tidewheel doctor               find out what is wrong
    --- exit code 2
    ");
    assert!(ran.out.is_empty());
}

#[test]
fn what_it_says_to_begin_with_works() {
    let home = Home::new();
    let welcome = home.run(&[]).err;
    for line in
        ["tidewheel init ", "tidewheel run hello --follow ", "tidewheel doctor ", "tidewheel help run "]
    {
        assert!(welcome.contains(line), "{line}");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ran = home.run_under(&[("PATH", "/usr/bin:/bin")], &words);
        assert_eq!(ran.code, Some(0), "{line}: {ran}");
    }
}

#[test]
fn a_typing_error_is_answered_with_what_was_meant() {
    let home = begun();
    let lines = [
        &["rnu", "hello"][..],
        &["jobs", "lst"],
        &["jobs", "list", "--al"],
        &["run", "helo"],
        &["run", "hello", "--folow"],
        &["run", "hello", "--repeet", "3"],
        &["run", "nothing-like-it"],
    ];
    let told: Vec<String> =
        lines.map(|line| format!("$ tidewheel {}\n{}", line.join(" "), home.run(line))).into();
    assert_snapshot!(told.join("\n\n"), @"
    $ tidewheel rnu hello
    --- stderr
    error: unrecognized subcommand 'rnu'

      tip: a similar subcommand exists: 'runs'

    Usage: tidewheel <COMMAND>

    For more information, try '--help'.
    --- exit code 2

    $ tidewheel jobs lst
    --- stderr
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: tidewheel jobs <COMMAND>

    For more information, try '--help'.
    --- exit code 2

    $ tidewheel jobs list --al
    --- stderr
    error: unexpected argument '--al' found

      tip: a similar argument exists: '--all'

    Usage: tidewheel jobs list --all

    For more information, try '--help'.
    --- exit code 2

    $ tidewheel run helo
    --- stderr
    error[TW0025]: There is no flow `helo`: no file, no alias, no template with this id.
    hint: Did you mean `hello`?
    --- exit code 1

    $ tidewheel run hello --folow
    --- stderr
    error[TW0027]: flag `--folow` needs a value
    hint: Did you mean `--follow`?
    --- exit code 2

    $ tidewheel run hello --repeet 3
    --- stderr
    error[TW0027]: unknown flag `--repeet` of template template.hello
    hint: Did you mean `--repeat`?
    --- exit code 2

    $ tidewheel run nothing-like-it
    --- stderr
    error[TW0025]: There is no flow `nothing-like-it`: no file, no alias, no template with this id.
    hint: There is hello.
    --- exit code 1
    ");
}

#[test]
fn a_file_in_the_place_of_the_data_directory() {
    let home = Home::new();
    home.file(".tidewheel", "");
    let told: Vec<String> = [&["init"][..], &["jobs", "list"], &["tick"]]
        .map(|line| format!("$ tidewheel {}\n{}", line.join(" "), shown(&home, &home.run(line))))
        .into();
    assert_snapshot!(told.join("\n\n"), @"
    $ tidewheel init
    --- stderr
    error[TW0023]: `.tidewheel/config.toml` cannot be used: Not a directory.
    hint: A file is where a directory should be: move it away.
    --- exit code 1

    $ tidewheel jobs list
    --- stderr
    error[TW0023]: cannot open HOME/.tidewheel: Not a directory
    hint: A file is where a directory should be: move it away.
    hint: `tidewheel doctor` looks at everything around it.
    --- exit code 1

    $ tidewheel tick
    --- stderr
    error[TW0023]: cannot open HOME/.tidewheel: Not a directory
    hint: A file is where a directory should be: move it away.
    hint: `tidewheel doctor` looks at everything around it.
    --- exit code 1
    ");
}

#[test]
fn a_directory_in_which_nothing_can_be_made() {
    // Not even root makes anything there.
    let ran = Home::new().run(&["init", "--dir", "/proc"]);
    assert!(ran.err.starts_with("error[TW0023]: `.tidewheel/config.toml` cannot be used: "), "{ran}");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
}

#[test]
fn a_directory_without_rights_for_those_whom_rights_stop() {
    let home = begun();
    if fs::metadata(home.path()).unwrap().uid() == 0 {
        // The neighbours stand for it.
        return;
    }
    let data = home.path().join(".tidewheel");
    fs::create_dir(data.join("jobs")).unwrap();
    let rights = |mode| fs::set_permissions(data.join("jobs"), fs::Permissions::from_mode(mode)).unwrap();
    rights(0o555);
    let (run, doctor) = (home.run(&["run", "hello"]), home.run(&["doctor"]));
    rights(0o755);
    assert!(run.code == Some(1) && run.err.contains("Permission denied\nhint: Work as its owner"), "{run}");
    assert!(
        doctor.code == Some(1) && doctor.out.contains("broken    rights       .tidewheel/jobs: "),
        "{doctor}"
    );
}

#[test]
fn an_output_that_is_full() {
    let ran = script(&begun(), &[], "tidewheel jobs list >/dev/full");
    assert_snapshot!(ran, @"
    --- stderr
    error[TW0003]: The output cannot be written: No space left on device.
    --- exit code 1
    ");
}

#[test]
fn files_that_may_not_grow_stand_for_a_full_disk() {
    let home = begun();
    // Without the signal, the write itself fails.
    let ran = script(&home, &[], "trap '' XFSZ; ulimit -f 0; tidewheel run hello");
    assert_snapshot!(shown(&home, &ran), @"
    --- stderr
    error[TW0023]: cannot write HOME/.tidewheel/jobs/index.done: File too large
    hint: Make room on the disk, and try again; what is on record stays as it is.
    hint: `tidewheel doctor` looks at everything around it.
    --- exit code 1
    ");
    // Nothing was enqueued, and when there is room it goes on.
    let ran = home.run_under(&[("PATH", "/usr/bin:/bin")], &["run", "hello", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn what_could_not_be_written_is_not_said_to_have_happened() {
    let home = begun();
    let ran = home.run_under(&[("PATH", "/usr/bin:/bin")], &["run", "hello", "--require-approval"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for command in ["approve", "reject", "cancel"] {
        let ran = script(&home, &[], &format!("trap '' XFSZ; ulimit -f 0; tidewheel jobs {command} greet"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command}: {ran}");
        assert!(ran.err.contains("File too large"), "{command}: {ran}");
    }
    assert_eq!(home.run(&["jobs", "approve", "greet"]).code, Some(0));
}

#[test]
fn a_full_disk() {
    if !can_mount() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path().join("disk")).unwrap();
    // Which of the files does not fit is no matter, nor how much is free again when it was taken away. A supervisor that is
    // about to end must not make room again.
    let text = "mount -t tmpfs -o size=256k none disk && cd disk
        tidewheel init >/dev/null && tidewheel run hello --follow >/dev/null
        until mount -o remount,ro none . 2>/dev/null; do sleep 0.05; done; mount -o remount,rw none .
        cat /dev/zero >full 2>/dev/null
        tidewheel run hello 2>&1 | sed 's/cannot .*: No/cannot …: No/'
        tidewheel jobs list --all | head -1
        tidewheel doctor | grep '^broken *space' | sed 's/room for .* files/room for …/'
        rm full
        tidewheel run hello --follow >/dev/null && echo it runs again; tidewheel doctor | grep leftovers";
    let ran = script(&home, &APART, text);
    assert_snapshot!(shown(&home, &ran), @"
    error[TW0023]: cannot …: No space left on device
    hint: Make room on the disk, and try again; what is on record stays as it is.
    hint: `tidewheel doctor` looks at everything around it.
    Outcome: 2 background jobs
    broken    space        HOME/disk/.tidewheel: the disk is full: room for …
    it runs again
    fine      leftovers    no temporary files are left over
    ");
}

#[test]
fn a_disk_for_reading_only() {
    if !can_mount() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path().join("disk")).unwrap();
    // A supervisor that is about to end still has its lock open.
    let text = "mount -t tmpfs -o size=200m none disk && cd disk && mkdir empty
        tidewheel init >/dev/null && tidewheel run hello --follow >/dev/null
        until mount -o remount,ro none . 2>/dev/null; do sleep 0.05; done
        tidewheel run hello; tidewheel init --dir empty
        tidewheel jobs list
        tidewheel doctor | grep -A1 '^broken'; tidewheel doctor --dir empty | grep -A1 '^broken'";
    let ran = script(&home, &APART, text);
    assert_snapshot!(shown(&home, &ran), @"
    Outcome: No active background jobs
    Hidden: 2 succeeded (use --all to include)
    broken    rights       .tidewheel: cannot be written: Read-only file system
                           Its file system is mounted for reading only. Mount it for writing, or use another directory with --dir.
    broken    rights       HOME/disk/empty: cannot be written: Read-only file system
                           Its file system is mounted for reading only. Mount it for writing, or use another directory with --dir.
    --- stderr
    error[TW0023]: cannot open HOME/disk/.tidewheel/jobs/scheduler.lock: Read-only file system
    hint: The file system is mounted for reading only: looking works, and running needs another directory.
    hint: `tidewheel doctor` looks at everything around it.
    error[TW0023]: `.tidewheel/config.toml` cannot be used: Read-only file system.
    hint: The file system is mounted for reading only: looking works, and running needs another directory.
    ");
}

#[test]
fn a_template_with_several_errors() {
    let home = Home::new();
    home.file(
        "bad.toml",
        r#"id = "template.bad"
version = "v1"
wat = 1
[[nodes]]
id = "a"
kind = "shell"
uses = "cap.env.shell.comand.run"
args = { script = "make" }
after = [{ node_id = "zz" }]
[[nodes]]
id = "b"
kind = "shell"
uses = "cap.env.shell.command.run"
"#,
    );
    assert_snapshot!(home.run(&["run", "bad.toml"]), @r#"
    --- stderr
    error: wat: is not a known field
     --> bad.toml:3:1
      |
    3 | wat = 1
      | ^^^

    error: template template.bad@v1 node `a` uses unknown label `cap.env.shell.comand.run`; declare one of cap.env.builtin.*, cap.env.shell.*, cap.agent.invoke, or control.*
     --> bad.toml:7:8
      |
    7 | uses = "cap.env.shell.comand.run"
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `cap.env.shell.command.run`?

    error: template template.bad@v1 node `a` references unknown after node `zz`
     --> bad.toml:9:22
      |
    9 | after = [{ node_id = "zz" }]
      |                      ^^^^

    error: template template.bad@v1 node `b` needs a command or script arg for command.run
      --> bad.toml:11:6
       |
    11 | id = "b"
       |      ^^^

    config error[TW0026]: `bad.toml` has 4 problems.
    --- exit code 1
    "#);
    assert!(!home.path().join(".tidewheel").exists(), "nothing is written before all is in order");
}

#[test]
fn a_configuration_with_several_errors() {
    let home = begun();
    home.file(".tidewheel/config.toml", "[scheduler]\ncapacity = \"many\"\nspeed = 1\n\n[agents.default]\n");
    assert_snapshot!(home.run(&["run", "hello"]), @r#"
    --- stderr
    error: scheduler.capacity: must be an integer, found a string
     --> .tidewheel/config.toml:2:12
      |
    2 | capacity = "many"
      |            ^^^^^^

    error: scheduler.speed: is not a known field
     --> .tidewheel/config.toml:3:1
      |
    3 | speed = 1
      | ^^^^^
      |
      = help: known are capacity, probe_interval

    error: agents.default.command: is missing
     --> .tidewheel/config.toml:5:1
      |
    5 | [agents.default]
      | ^^^^^^^^^^^^^^^^

    config error[TW0028]: `.tidewheel/config.toml` has 3 problems.
    --- exit code 1
    "#);
}

#[test]
fn a_data_directory_of_a_later_release() {
    let yard = Yard::new();
    yard.job("old", "failed", 0, json!({})).job(
        "new",
        "queued",
        1,
        json!({ "version": 2, "what": "unknown" }),
    );
    let before = fs::read(yard.path("new/job.json")).unwrap();
    let lines = [
        &["jobs", "list"][..],
        &["jobs", "show", "new"],
        &["jobs", "cancel", "new"],
        &["jobs", "retry", "new"],
        &["tick"],
    ];
    let told: Vec<String> =
        lines.map(|line| format!("$ tidewheel {}\n{}", line.join(" "), yard.home.run(line))).into();
    assert_snapshot!(told.join("\n\n"), @"
    $ tidewheel jobs list
    Outcome: 1 background job

      Job: old
      Status: failed
      Created: 2026-02-01T12:00:00Z
      Failed: unknown
      Command: make old
    --- stderr
    warning: unable to load background job new: record has version 2, and this release knows up to 1


    $ tidewheel jobs show new
    --- stderr
    error[TW0020]: unable to load background job new: record has version 2, and this release knows up to 1
    hint: `tidewheel doctor` says what to do about it; all other jobs are as they were.
    --- exit code 1

    $ tidewheel jobs cancel new
    --- stderr
    error[TW0020]: unable to load background job new: record has version 2, and this release knows up to 1
    hint: `tidewheel doctor` says what to do about it; all other jobs are as they were.
    --- exit code 1

    $ tidewheel jobs retry new
    --- stderr
    error[TW0020]: unable to load background job new: record has version 2, and this release knows up to 1
    hint: `tidewheel doctor` says what to do about it; all other jobs are as they were.
    --- exit code 1

    $ tidewheel tick
    Started: none
    Updated: none
    --- stderr
    error[TW0022]: job new: its record cannot be read: record has version 2, and this release knows up to 1; `tidewheel doctor` says what to do
    --- exit code 1
    ");
    assert_eq!(fs::read(yard.path("new/job.json")).unwrap(), before, "it is never touched");
}
