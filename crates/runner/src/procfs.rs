//! What the system tells of the processes that there are. It signals nobody.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::time::Duration;

use rustix::process::Pid;

/// What the system tells of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) id: Pid,
    /// Who takes it away when it is dead: who started it, or who adopted it.
    pub(crate) parent: i32,
    /// Its group; zero if that lies outside of what this process can see, or if it is being taken away.
    pub(crate) group: i32,
    /// Its session; zero if that lies outside of what this process can see, or if it is being taken away.
    pub(crate) session: i32,
    /// When it started, in ticks since the system did. With its number it is one of a kind.
    pub(crate) start_time: u64,
    /// Whether it still runs, or may run again.
    pub(crate) is_alive: bool,
}

impl Process {
    /// Returns what tells it from every other process since the system started.
    pub(crate) const fn key(&self) -> (i32, u64) {
        (self.id.as_raw_pid(), self.start_time)
    }

    /// Returns how long the system had been up when it started.
    pub(crate) const fn started(&self) -> Duration {
        // Whatever the system counts in, it tells hundredths.
        Duration::from_millis(self.start_time.saturating_mul(10))
    }
}

/// Returns the numbers of all processes, the older ones first as long as numbers are not given again.
pub(crate) fn all() -> io::Result<impl Iterator<Item = Pid>> {
    let processes = fs::read_dir("/proc")?;
    Ok(processes.filter_map(|process| {
        let name = process.ok()?.file_name();
        Pid::from_raw(name.to_str()?.parse().ok()?)
    }))
}

/// Returns what the system tells of a process; `None` if there is none of this number.
pub(crate) fn of(id: Pid) -> Option<Process> {
    // The name of a program is at most 64 bytes long, and the numbers after it are, too, short.
    let mut buffer = [0; 1_024];
    let mut file = File::open(format!("/proc/{id}/stat")).ok()?;
    let length = file.read(&mut buffer).ok()?;
    told(id, &buffer[..length])
}

/// Returns what a line of the system says of a process.
fn told(id: Pid, line: &[u8]) -> Option<Process> {
    // The name stands in brackets and may hold anything; what follows are words.
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&line[end + 1..]).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    // A process that is being taken away has no group and no session any more, which the system tells as -1.
    let mut led_by = || words.next()?.parse().ok().map(|leader: i32| leader.max(0));
    let (group, session) = (led_by()?, led_by()?);
    // The fourth word after the name is the sixth of all; what follows are the twentieth and the twenty-second.
    let threads: u32 = words.nth(13)?.parse().ok()?;
    let start_time = words.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks dead, and may have others.
    let is_alive = !matches!(state, "Z" | "X" | "x") || threads > 1;
    Some(Process { id, parent, group, session, start_time, is_alive })
}

/// Returns the number of the process that was started last, by whomever.
pub(crate) fn newest() -> Option<i32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Returns how long the system has been up.
pub(crate) fn uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the environment that a process was started with; `None` if it belongs to another user, or is gone.
pub(crate) fn environment(id: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{id}/environ")).ok()
}

/// Returns the words that a process was started with, each with a zero behind it; `None` if it is gone.
pub(crate) fn command_line(id: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{id}/cmdline")).ok()
}

/// Returns the value of a variable in an environment.
pub(crate) fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn this_process_is_found_as_it_is() {
        let id = rustix::process::getpid();
        let me = of(id).expect("this process is there");
        assert!(me.is_alive && me.start_time > 0);
        assert!(me.started() <= uptime().unwrap());
        assert_eq!(me.parent, rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get()));
        assert!(all().unwrap().any(|other| other == id));
    }

    #[test]
    fn the_leader_of_a_session_is_in_its_own_group_and_session() {
        // Those of the test itself may lie outside of the container, where they have no number.
        let mut command = std::process::Command::new("setsid");
        command.args(["sh", "-c", "echo begun; read end"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut begun = [0; 6];
        child.stdout.take().unwrap().read_exact(&mut begun).unwrap();
        let id = Pid::from_child(&child);
        let leader = of(id).expect("it waits for the end of its input");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((leader.group, leader.session), (id.as_raw_pid(), id.as_raw_pid()));
    }

    #[test]
    fn a_process_that_is_being_taken_away_has_no_group_and_no_session() {
        let line =
            b"77 (true) X 1 -1 -1 0 -1 4227084 0 0 0 0 0 0 0 0 20 0 0 0 7654395 0 0 18446744073709551615";
        let gone = told(Pid::from_raw(77).unwrap(), line).expect("it is in order");
        assert_eq!((gone.parent, gone.group, gone.session, gone.start_time), (1, 0, 0, 7_654_395));
        assert!(!gone.is_alive);
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a) S 1 (b");
        // A copy would be open for writing in what another test forks meanwhile, and could not be run.
        std::os::unix::fs::symlink("/bin/sleep", &odd).unwrap();
        let mut child = std::process::Command::new(odd).arg("1000").spawn().unwrap();
        let process = of(Pid::from_child(&child)).expect("it is there");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.parent, rustix::process::getpid().as_raw_nonzero().get());
        assert!(process.is_alive);
    }
}
