//! A directory with jobs, and the real binary to work on it. Whatever is still running at the end is ended.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The variable by which every process of a world is known.
const MARK: &str = "TW_WORLD";

/// How long anything may take before it is called hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with jobs.
pub(crate) struct World {
    all: TempDir,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    /// Returns a directory without git, in which many jobs may run at once.
    pub(crate) fn new() -> Self {
        let world = Self { all: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.path(".tidewheel/jobs")).unwrap();
        fs::create_dir_all(world.all.path().join("home")).unwrap();
        world.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 64\n");
        world
    }

    /// Returns the path of something in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.all.path().join("world").join(name)
    }

    /// Returns the path of something in the directory of the jobs.
    pub(crate) fn in_jobs(&self, name: &str) -> PathBuf {
        self.path(".tidewheel/jobs").join(name)
    }

    /// Returns what is around the directory.
    pub(crate) fn outside(&self) -> &Path {
        self.all.path()
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn file(&self, name: &str, content: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes a template that can be named on the command line.
    pub(crate) fn flow(&self, name: &str, text: &str) -> &Self {
        self.file(&format!(".tidewheel/workflows/{name}.toml"), text)
    }

    /// Gives a command an environment of its own, in which only this world is known.
    pub(crate) fn settle_in(&self, command: &mut Command) {
        command.env_clear().current_dir(self.path(""));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.all.path().join("home"));
        command.env("USER", "ada").env("GIT_CONFIG_NOSYSTEM", "1").env(MARK, self.all.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Returns the command.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
        self.settle_in(&mut command);
        command.arg0("tidewheel").args(arguments);
        command
    }

    /// Runs the command.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Runs the command, which has to succeed, and returns the document that it prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--format", "json"]].concat());
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.json()
    }

    /// Reads the record of a job.
    #[track_caller]
    pub(crate) fn record(&self, id: &str) -> Value {
        let text = fs::read_to_string(self.in_jobs(id).join("job.json"));
        let text = text.unwrap_or_else(|error| panic!("{id} has no record: {error}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{id} has no good record: {error}: {text}"))
    }

    /// Returns where a job stands.
    #[track_caller]
    pub(crate) fn status(&self, id: &str) -> String {
        self.record(id)["status"].as_str().unwrap().to_owned()
    }

    /// Enqueues a template and returns the id of its run.
    #[track_caller]
    pub(crate) fn enqueue(&self, arguments: &[&str]) -> String {
        let enqueued = self.json(&[&["run"], arguments].concat());
        enqueued["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a job is over.
    #[track_caller]
    pub(crate) fn wait(&self, id: &str) -> Ran {
        let ran = self.run(&["jobs", "wait", id]);
        assert!(matches!(ran.code, Some(0 | 1 | 10)), "{ran:?}");
        ran
    }

    /// Returns the names of all jobs that have a directory.
    pub(crate) fn job_dirs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.in_jobs("")).unwrap().map(|entry| entry.unwrap());
        let jobs = entries.filter(|entry| entry.path().join("job.json").exists());
        let mut names: Vec<String> = jobs.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the processes that were started in this world and still live, with what they run.
    pub(crate) fn processes(&self) -> Vec<(Pid, String)> {
        processes_with(&format!("{MARK}={}", self.all.path().display()))
    }
}

impl World {
    /// Returns what supervisors said that panicked.
    fn panics(&self) -> Vec<String> {
        let jobs = fs::read_dir(self.in_jobs("")).into_iter().flatten().flatten();
        let said = jobs.filter_map(|job| fs::read_to_string(job.path().join("supervisor.log")).ok());
        said.filter(|said| said.contains("panicked at")).collect()
    }
}

impl Drop for World {
    #[expect(clippy::print_stderr, reason = "a test that failed has this beside its own words")]
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > until {
                break;
            }
            for (pid, _) in left {
                // It may have ended by itself in between.
                kill_process(pid, Signal::KILL).ok();
            }
            std::thread::yield_now();
        }
        // Nobody else would notice: the next pass takes such a job for one whose supervisor was killed.
        let panics = self.panics();
        if !std::thread::panicking() {
            assert!(panics.is_empty(), "a supervisor has panicked: {panics:?}");
        } else if !panics.is_empty() {
            eprintln!("a supervisor has panicked: {panics:?}");
        }
    }
}

impl Ran {
    /// Runs a command. Whoever keeps its output open after its end makes the test fail.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = drain(child.stdout.take().unwrap());
        let err = drain(child.stderr.take().unwrap());
        let said = |from: mpsc::Receiver<String>, child: &mut std::process::Child| {
            from.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                let state = child.try_wait();
                child.kill().ok();
                panic!("{command:?} does not end its output: {state:?}")
            })
        };
        let (out, err) = (said(out, &mut child), said(err, &mut child));
        Self { code: child.wait().unwrap().code(), out, err }
    }

    /// Returns the document that was printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON, {error}: {self:?}"))
    }
}

/// Reads a pipe to its end, beside us.
fn drain(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).ok();
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

/// Returns the processes whose environment has a variable with this value, as `NAME=value`.
pub(crate) fn processes_with(variable: &str) -> Vec<(Pid, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&line).replace('\0', " ");
            found.extend(Pid::from_raw(pid).map(|pid| (pid, words)));
        }
    }
    found
}

/// Looks again and again until something is so; fails if it never is.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
