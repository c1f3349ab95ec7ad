//! What people see who sit at a terminal: the real binary at a pseudo-terminal.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use indicatif::{InMemoryTerm, TermLike};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::by_hand::{Desk, job};
use crate::runs::flow;
use crate::world::{PATIENCE, World, eventually};

/// A command at a terminal, and what stands on its screen.
struct Tty {
    keys: File,
    /// The side of the command, to ask how the terminal is set.
    peer: File,
    child: Child,
    screen: InMemoryTerm,
    heard: Receiver<Vec<u8>>,
    /// What was read of a character that has not ended.
    held: Vec<u8>,
    /// All that was written.
    written: String,
}

impl Tty {
    fn new(world: &World, (columns, rows): (u16, u16), arguments: &[&str]) -> Self {
        Self::of(world.command(arguments), columns, rows)
    }

    /// Runs a command with the terminal as all of its streams.
    fn of(mut command: Command, columns: u16, rows: u16) -> Self {
        let (keys, peer) = terminal(columns, rows);
        let stream = || Stdio::from(peer.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream()).env("TERM", "xterm").env("LANG", "C.UTF-8");
        let child = command.spawn().unwrap();
        let mut output = keys.try_clone().unwrap();
        let (sender, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = output.read(&mut bytes) {
                if read == 0 || sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let screen = InMemoryTerm::new(rows, columns);
        Self { keys, peer, child, screen, heard, held: Vec::new(), written: String::new() }
    }

    /// Waits until the screen is so, and returns it.
    #[track_caller]
    fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE / 4;
        loop {
            let seen = self.screen.contents();
            if is_so(&seen) {
                return seen;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.heard.recv_timeout(left) else { panic!("never: {what}\n{seen}") };
            self.take(&bytes);
        }
    }

    /// Waits until something is on the screen, and returns all that is.
    #[track_caller]
    fn shows(&mut self, text: &str) -> String {
        self.until(text, |seen| seen.contains(text))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.held) {
            Ok(_) => self.held.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(self.held.drain(..whole).collect()).unwrap();
        self.screen.write_str(&text).unwrap();
        self.written.push_str(&text);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end, and returns the exit code. Nothing of the terminal may have changed.
    #[track_caller]
    fn ended(&mut self) -> Option<i32> {
        let mut code = None;
        let child = &mut self.child;
        eventually("the command has ended", || {
            code = child.try_wait().unwrap();
            code.is_some()
        });
        while let Ok(bytes) = self.heard.recv_timeout(std::time::Duration::from_millis(50)) {
            self.take(&bytes);
        }
        assert!(has_usual_modes(&self.peer));
        for (on, off) in [("\u{1b}[?1049h", "\u{1b}[?1049l"), ("\u{1b}[?25l", "\u{1b}[?25h")] {
            assert!(self.written.rfind(on) <= self.written.rfind(off), "{off:?}: {:?}", self.written);
        }
        code.unwrap().code()
    }
}

/// Returns both sides of a terminal: of whoever sits at it, and of the command.
fn terminal(columns: u16, rows: u16) -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let keys = openpt(flags).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    tcsetwinsize(&keys, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let peer = File::from(ioctl_tiocgptpeer(&keys, flags).unwrap());
    (File::from(keys), peer)
}

/// Tells whether lines are read, and keys are shown.
fn has_usual_modes(terminal: &File) -> bool {
    let modes = tcgetattr(terminal).unwrap().local_modes;
    modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
}

impl Drop for Tty {
    fn drop(&mut self) {
        // It has ended unless the test failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns a desk with a job that runs, one that waits for a person, and one that waits for the first.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put(job("first").status("running").meta("workflow_node_name", "订单 \u{1b}[31mred"));
    desk.put(job("asks").gated().status("waiting_on_approval"));
    desk.put(job("next").after(&["first"]).status("waiting_on_deps"));
    std::fs::write(desk.in_jobs("first/stdout.log"), "one\n\u{1b}]0;title\u{7}two \u{1b}[2Jthree\n\n")
        .unwrap();
    desk
}

#[test]
fn k_109_watching_shows_the_jobs_and_leaves_the_terminal_as_it_was() {
    let desk = desk();
    let mut tty = Tty::new(&desk, (100, 30), &["jobs", "schedule", "--watch", "--interval-ms", "100"]);
    let seen = tty.shows("Latest line: [stdout] two three");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("Schedule Watch | refreshed 20"), "{seen}");
    assert!(lines[0].ends_with("Z | interval=100ms | top=10"), "{seen}");
    assert_eq!(lines[1], "State: queued=0 waiting=2 running=1 blocked=0 terminal=0");
    assert!(seen.contains("Schedule (Summary)\n  #  Slug  Name"), "{seen}");
    assert!(
        seen.contains("Running Job Output\nRunning job: first\nLatest line: [stdout] two three\n"),
        "{seen}"
    );
    assert!(!tty.written.contains("\u{1b}[31mred"), "{:?}", tty.written);
    assert!(!tty.written.contains("title\u{7}"), "{:?}", tty.written);
    assert!(tty.written.contains("Schedule Watch | refreshed"), "what is written is text: {:?}", tty.written);
    // What changes is seen without a key.
    desk.put(job("late").gated().status("waiting_on_approval"));
    tty.shows("late");
    tty.press("q");
    assert_eq!(tty.ended(), Some(0));
}

#[test]
fn a_job_is_approved_from_the_watch_after_a_question() {
    let world = World::new();
    world.flow(
        "ship",
        &flow(&[("ship", "echo shipped", "gates = [{ kind = \"approval\", required = true }]")]),
    );
    let run = world.enqueue(&["ship"]);
    let id = format!("wf-{run}-ship");
    let mut tty = Tty::new(&world, (60, 10), &["jobs", "schedule", "--watch", "--all"]);
    tty.shows("waiting_on_approval");
    tty.press("a");
    tty.shows("[y/n]");
    tty.press("n");
    tty.until("the question is gone", |seen| !seen.contains("[y/n]"));
    assert_eq!(world.status(&id), "waiting_on_approval");
    tty.press("ay");
    tty.shows("Job approval granted");
    tty.shows("succeeded");
    // Twice is refused, and the watch goes on.
    tty.press("a");
    tty.shows("does not wait for approval");
    tty.press("\r");
    tty.shows("[stdout] shipped");
    tty.press("\u{1b}");
    tty.shows("Schedule Watch");
    tty.press("w");
    tty.shows("Why ship is succeeded");
    tty.shows("Attempt 1 began");
    tty.press("\u{3}");
    assert_eq!(tty.ended(), Some(0));
}

#[test]
fn a_watch_that_a_signal_ends_gives_the_terminal_back() {
    let desk = desk();
    for (signal, code) in [(Signal::TERM, 1), (Signal::HUP, 1), (Signal::INT, 0)] {
        let mut tty = Tty::new(&desk, (80, 24), &["jobs", "schedule", "--watch"]);
        tty.shows("Running job: first");
        assert!(!has_usual_modes(&tty.peer), "keys are taken one by one");
        let pid = Pid::from_raw(i32::try_from(tty.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(tty.ended(), Some(code), "{signal:?}");
        assert_eq!(tty.written.matches("\u{1b}[?1049l").count(), 1, "{:?}", tty.written);
    }
}

#[test]
fn a_watch_that_cannot_draw_gives_the_terminal_back() {
    let desk = desk();
    // The keys come from one terminal, and the screen of another one goes away.
    let ((_keys, keyboard), (screen, peer)) = (terminal(80, 24), terminal(80, 24));
    let mut command = desk.command(&["jobs", "schedule", "--watch", "--interval-ms", "100"]);
    command.stdin(keyboard.try_clone().unwrap()).env("TERM", "xterm");
    command.stdout(peer.try_clone().unwrap()).stderr(peer);
    let mut child = command.spawn().unwrap();
    eventually("the keys are taken one by one", || !has_usual_modes(&keyboard));
    drop(screen);
    let mut ended = None;
    eventually("the command has ended", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(has_usual_modes(&keyboard));
    assert!(ended.unwrap().code().is_some(), "it ended by itself: {ended:?}");
}

#[test]
fn a_watch_fits_a_terminal_whose_size_changes() {
    let desk = desk();
    let mut tty = Tty::new(&desk, (100, 30), &["jobs", "schedule", "--watch"]);
    tty.shows("Running job: first");
    let size = Winsize { ws_row: 10, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    // The new one begins empty, as a terminal is that clears itself.
    tty.screen = InMemoryTerm::new(10, 60);
    tcsetwinsize(&tty.keys, size).unwrap();
    // A terminal without a process group in front tells nobody; the watch looks by itself.
    let seen =
        tty.until("it is drawn anew", |seen| seen.contains("> 1") && seen.contains("Running job: first"));
    assert_eq!(seen.lines().count(), 10, "{seen}");
    tty.press("q");
    assert_eq!(tty.ended(), Some(0));
}

#[test]
fn k_108_a_terminal_without_ansi_is_none() {
    let desk = desk();
    let words = "requires an interactive TTY with ANSI enabled";
    let mut tty = Tty::new(&desk, (150, 24), &["jobs", "schedule", "--watch", "--no-ansi"]);
    tty.shows(words);
    assert_eq!(tty.ended(), Some(1));
}

#[test]
fn following_at_a_terminal_shows_progress_and_ends_with_the_code_of_the_run() {
    let world = World::new();
    let policy = "[[policies]]\nmatch = { name = \"flaky\" }\nmax_retries = 1\nbackoff = \"linear\"\nbase_delay = \"1s\"\n";
    let nodes =
        [("work", r"printf 'half \033[2Jdone\n'; : <go", ""), ("flaky", "exit 75", ""), ("last", "true", "")];
    world.flow("live", &flow(&nodes).replacen("[[nodes]]", &format!("{policy}[[nodes]]"), 1));
    world.pipe("go");
    let mut tty = Tty::new(&world, (80, 24), &["run", "live", "--follow"]);
    tty.until("a retry is announced", |seen| {
        seen.lines().any(|line| line.contains("flaky  retry 1 of 1 in ") && line.ends_with(": exit 75"))
    });
    tty.until("a line of output is shown", |seen| {
        seen.lines().any(|line| line.contains(" work  ") && line.ends_with("s  [stdout] half done"))
    });
    let seen = tty.until("two of three are over", |seen| seen.contains(" 2/3 1 failed, "));
    assert!(seen.contains("last: succeeded\n") && seen.contains("flaky: failed (exit 75)\n"), "{seen}");
    world.let_go("go");
    let seen = tty.shows("Exit: 1");
    assert!(seen.contains("work: succeeded\nOutcome: Workflow run failed\n"), "{seen}");
    assert!(!seen.contains("2/3"), "{seen}");
    assert_eq!(tty.ended(), Some(1));
}

#[test]
fn whoever_stops_following_is_told_how_to_come_back() {
    let world = World::new();
    world.flow("long", &flow(&[("work", "touch begun; : <go", "")])).pipe("go");
    // The terminal sends signals only to those whose terminal it is.
    let mut command = Command::new("setsid");
    world.settle_in(&mut command);
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_tidewheel"), "run", "long", "--follow"]);
    let mut tty = Tty::of(command, 60, 12);
    tty.until("it is followed", |seen| seen.contains("work  ") && seen.contains(" 0/1 "));
    tty.press("\u{3}");
    let seen = tty.shows("hint: The jobs go on without you");
    assert!(!seen.contains("0/1") && !seen.contains("work  "), "{seen}");
    tty.ended();
    world.let_go("go");
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let world = World::new();
    world.flow("one", &flow(&[("work", "true", "")]));
    let mut command = Command::new("env");
    world.settle_in(&mut command);
    command.args(["TERM=dumb", env!("CARGO_BIN_EXE_tidewheel"), "run", "one", "--follow"]);
    let mut tty = Tty::of(command, 80, 24);
    tty.shows("Exit: 0");
    assert_eq!(tty.ended(), Some(0));
    assert!(!tty.written.contains("0/1"), "{:?}", tty.written);
    assert!(tty.written.contains("work: running\r\n"), "{:?}", tty.written);
}

#[test]
fn k_111_lists_at_a_terminal_fit_have_short_ids_and_say_how_long_ago() {
    let world = World::new();
    world.flow("one", &flow(&[("sign_off", "true", "")]));
    let runs = [(); 2].map(|()| world.enqueue(&["one", "--require-approval"]));
    for arguments in [
        &["jobs", "list", "--format", "table"][..],
        &["jobs", "schedule"],
        &["runs", "list"],
        &["jobs", "show", "sign_off", "--format", "table"],
    ] {
        let arguments: Vec<String> =
            arguments.iter().map(|word| word.replace("sign_off", &format!("{}/sign_off", runs[0]))).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut tty = Tty::new(&world, (80, 40), &words);
        let digits = &runs[0][4..8];
        let has_ages = words[1] != "schedule";
        tty.until("ids are short", |seen| {
            let is_short = seen.contains(&format!("run_{digits}")) || seen.contains("/sign_off");
            is_short && seen.contains(digits) && (!has_ages || seen.contains(" ago"))
        });
        assert_eq!(tty.ended(), Some(0));
        let plain = anstream::adapter::strip_str(&tty.written).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        assert!(!plain.contains(&runs[0]), "{plain}");
        // Somebody who wants it all gets it.
        let mut tty = Tty::new(&world, (200, 40), &[&words[..], &["--ids", "full"]].concat());
        tty.shows(&runs[0]);
        assert_eq!(tty.ended(), Some(0));
    }
}

#[test]
fn colours_are_those_that_every_terminal_has_and_none_where_nobody_wants_them() {
    let desk = desk();
    let mut tty = Tty::new(&desk, (100, 40), &["jobs", "list", "--all", "--format", "table"]);
    tty.shows("running");
    assert_eq!(tty.ended(), Some(0));
    let sequences =
        tty.written.split("\u{1b}[").skip(1).map(|rest| rest.split('m').next().unwrap_or_default());
    let known = ["", "0", "1", "31", "32", "33", "35", "36"];
    let unknown: Vec<&str> = sequences.filter(|sequence| !known.contains(sequence)).collect();
    assert_eq!(unknown, [""; 0], "{:?}", tty.written);
    assert!(tty.written.contains("\u{1b}[36mrunning"), "{:?}", tty.written);
    let mut command = desk.command(&["jobs", "list", "--all", "--format", "table"]);
    command.env("NO_COLOR", "1");
    let mut tty = Tty::of(command, 100, 40);
    tty.shows("running");
    assert_eq!(tty.ended(), Some(0));
    assert!(!tty.written.contains('\u{1b}'), "{:?}", tty.written);
}

#[test]
fn k_115_whoever_leaves_a_job_is_told_how_to_come_back_and_it_goes_on() {
    let world = World::new();
    world.flow("long", &flow(&[("work", "echo begun; : <go", "")])).pipe("go");
    let run = world.enqueue(&["long"]);
    let id = format!("wf-{run}-work");
    for words in [&["jobs", "attach", &id][..], &["jobs", "tail", &id, "--follow", "--stream", "stdout"]] {
        let mut command = Command::new("setsid");
        world.settle_in(&mut command);
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_tidewheel")]).args(words);
        let mut tty = Tty::of(command, 200, 12);
        tty.shows("begun");
        tty.press("\u{3}");
        tty.shows(&format!(
            "hint: The job goes on without you: `tidewheel jobs attach {id}` comes back to it."
        ));
        assert_eq!(tty.ended(), Some(1));
        assert_eq!(world.status(&id), "running");
    }
    world.let_go("go");
    world.wait(&id);
    assert_eq!(world.status(&id), "succeeded");
}
