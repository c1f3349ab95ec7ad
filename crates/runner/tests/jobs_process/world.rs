//! A directory with a job in it, and its supervisor: this test binary, started again, since whoever supervises takes
//! all dead children of its process away.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidewheel_core::job::{JobId, NodeId, Record, RunId, Secrets};
use tidewheel_core::time::Timestamp;
use tidewheel_runner::job::Identity;
use tidewheel_runner::job::attempt::{Attempt, Logs, run};
use tidewheel_runner::job::launch::detach;
use tidewheel_runner::process::Program;

const PART: &str = "TIDEWHEEL_TEST_PART";
const MARK: &str = "said: ";

/// A job in a directory of its own.
pub(crate) struct World {
    folder: TempDir,
    /// How long the processes of this job sleep, and of no other: they are found by it.
    pub(crate) nap: String,
    options: Value,
}

/// The shortest time in which something is not mistaken for something that will never happen.
const PATIENCE: Duration = Duration::from_secs(60);

impl World {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".tidewheel/jobs/job")).unwrap();
        let nap = format!("{}.{}", 1_000_000 + std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { folder, nap, options: json!({"grace_ms": 300}) }
    }

    /// Sets an option of the attempts that follow: `timeout_ms`, `heartbeat_ms`, `grace_ms`, `limit`, `no_record`.
    pub(crate) fn with(mut self, name: &str, value: u64) -> Self {
        self.options[name] = value.into();
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root().join(".tidewheel")
    }

    pub(crate) fn job(&self) -> PathBuf {
        self.data().join("jobs/job")
    }

    pub(crate) fn log(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.job().join(name)).unwrap_or_default()).into_owned()
    }

    /// Starts a supervisor for a script, in which `NAP` stands for a sleep that never ends.
    pub(crate) fn supervise(&self, script: &str) -> Supervisor {
        let nap = format!("sleep {}", self.nap);
        // The script names the time, so that a shell that only forks is found, too.
        let script = format!("# {}\n{}", self.nap, script.replace("NAP", &nap));
        self.supervise_program(&["sh", "-c", &script])
    }

    /// Starts a supervisor for a program.
    pub(crate) fn supervise_program(&self, argv: &[&str]) -> Supervisor {
        let mut part = self.options.clone();
        part["argv"] = json!(argv);
        part["root"] = json!(self.root());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "world::a_supervisor", "--ignored", "--nocapture", "--test-threads=1"])
            .env(PART, part.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Supervisor { child, lines }
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &str) -> Report {
        self.supervise(script).ended()
    }

    /// Asks for the end of the job, as `jobs cancel` does.
    pub(crate) fn cancel(&self) {
        fs::write(self.job().join("cancel.json"), "{}").unwrap();
    }

    /// Returns the processes of the job that live, by their command lines.
    pub(crate) fn living(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|process| {
            let folder = process.ok()?.path();
            let id: u32 = folder.file_name()?.to_str()?.parse().ok()?;
            let line = String::from_utf8_lossy(&fs::read(folder.join("cmdline")).ok()?).replace('\0', " ");
            (line.contains(&self.nap)).then(|| format!("{id} {line}"))
        });
        processes.collect()
    }

    #[track_caller]
    pub(crate) fn assert_nothing_lives(&self) {
        assert_eq!(self.living(), [""; 0]);
    }

    /// Waits until a file is there.
    pub(crate) fn wait_for(&self, file: &str) {
        until(file, || self.root().join(file).exists());
    }

    /// Returns the record of the job as the supervisor would have written it.
    pub(crate) fn record(&self, started: (u32, u64)) -> Record {
        let mut record = Record::new(JobId::new("job").unwrap(), Timestamp::from_nanos(0));
        record.pid = Some(started.0);
        record.process_start_time = Some(started.1);
        record
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A test that fails leaves nothing either.
        for line in self.living() {
            let id = line.split(' ').next().and_then(|id| id.parse().ok());
            if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
                let _gone = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) end: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    pub(crate) log_error: Option<String>,
    /// Whether the supervisor had a child when the attempt was over, dead or alive.
    pub(crate) has_children: bool,
}

/// Another process that runs an attempt; it dies with this value.
pub(crate) struct Supervisor {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Supervisor {
    fn says(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, said)) = line.split_once(MARK) {
                return Some(serde_json::from_str(said).unwrap());
            }
        }
    }

    /// Waits until the process runs, and returns its number and when it started.
    pub(crate) fn started(&mut self) -> (u32, u64) {
        let said = self.says().expect("it starts something");
        let pid = said["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        (pid.unwrap_or_else(|| panic!("{said}")), said["start_time"].as_u64().unwrap())
    }

    fn last_word(mut self) -> Value {
        loop {
            let said = self.says().expect("it tells of an end");
            if said.get("pid").is_none() {
                return said;
            }
        }
    }

    /// Waits until it gives up, and returns why.
    pub(crate) fn failed(self) -> String {
        let said = self.last_word();
        said["error"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    /// Waits for the end of the attempt.
    pub(crate) fn ended(self) -> Report {
        let said = self.last_word();
        let text = |name: &str| said[name].as_str().map(str::to_owned);
        Report {
            end: text("end").unwrap_or_else(|| panic!("{said}")),
            stderr: text("stderr").unwrap(),
            took: Duration::from_micros(said["took_us"].as_u64().unwrap()),
            log_error: text("log_error"),
            has_children: said["has_children"].as_bool().unwrap(),
        }
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

#[test]
#[ignore = "other tests start it in another process"]
fn a_supervisor() {
    let Ok(part) = std::env::var(PART) else { return };
    let part: Value = serde_json::from_str(&part).unwrap();
    detach();
    let root = PathBuf::from(part["root"].as_str().unwrap());
    let data = root.join(".tidewheel");
    let job = data.join("jobs/job");
    let millis = |name: &str| part[name].as_u64().map(Duration::from_millis);
    let argv: Vec<String> = serde_json::from_value(part["argv"].clone()).unwrap();
    let identity = Identity {
        job: JobId::new("job").unwrap(),
        run: Some(RunId::new("run_1").unwrap()),
        node: Some(NodeId::new("node").unwrap()),
        attempt: 2,
        idempotency_key: "key".to_owned(),
    };
    let ended = run(Attempt {
        program: identity.given_to(Program::new(argv).current_dir(&root), &data),
        stdin: File::open(root.join("stdin")).ok(),
        logs: Logs {
            stdout: job.join("stdout.log"),
            stderr: job.join("stderr.log"),
            limit: part["limit"].as_u64().unwrap_or(64 << 20),
        },
        keeps: None,
        secrets: Secrets::default(),
        timeout: millis("timeout_ms"),
        heartbeat: millis("heartbeat_ms"),
        grace: millis("grace_ms").unwrap(),
        on_spawn: &mut |started| {
            say(&json!({"pid": started.pid, "start_time": started.start_time}));
            if part.get("no_record").is_some() { Err(std::io::Error::other("no room")) } else { Ok(()) }
        },
        is_cancelled: &|| job.join("cancel.json").exists(),
        cancel_in: Some(job.clone()),
    });
    let mine = rustix::process::waitid(
        rustix::process::WaitId::All,
        rustix::process::WaitIdOptions::NOHANG
            | rustix::process::WaitIdOptions::EXITED
            | rustix::process::WaitIdOptions::NOWAIT,
    );
    match ended {
        Ok(ended) => say(&json!({
            "end": format!("{:?}", ended.end),
            "stderr": String::from_utf8_lossy(&ended.stderr.bytes),
            "took_us": u64::try_from(ended.took.as_micros()).unwrap(),
            "log_error": ended.log_error.map(|error| error.to_string()),
            "has_children": mine.is_ok(),
        })),
        Err(error) => say(&json!({"error": format!("{error:?}")})),
    }
}

fn say(what: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{what}").unwrap();
    out.flush().unwrap();
}
