//! Other processes for the tests: this test binary, started again, with a part to play.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{InputError, Runner, RunnerOptions};
use tidewheel_store::Status;

use crate::work::{WORKFLOWS, inputs_of, workflow_of, write_down};

const PART: &str = "TIDEWHEEL_TEST_PART";
const FOLDER: &str = "TIDEWHEEL_TEST_FOLDER";
const NUMBER: &str = "TIDEWHEEL_TEST_NUMBER";
const STANDS_STILL_AFTER: &str = "TIDEWHEEL_TEST_STANDS_STILL_AFTER";
const MARK: &str = "said: ";
/// What a process says that stands still in the middle of an execution.
pub(crate) const STANDS_STILL: &str = "in the middle";

/// As many runs are started together.
pub(crate) const RUNS: usize = 200;

/// What another process does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Starts one generation of runs after the other, or goes on with the one that was not over.
    Run,
    /// As [`Part::Run`], and ends well after one generation.
    Finish,
    /// Lets the runs of the first generation come to their end, and dies at a place in the store on the way.
    Die { place: usize, nth: u64 },
    /// Waits for the end of its input, and lets the runs of the first generation come to their end beside another
    /// process that does the same.
    Together,
    /// Lets the runs of a generation come to their end beside others that do the same, and ends. With a short lease,
    /// others take over what it has when it is stopped.
    Share { generation: usize, has_short_lease: bool },
    /// Drives whatever is due, with a short lease, until its input ends.
    Drive,
    /// Puts runs with one input each into the store and drives none of them. Says how many bytes each of them took in
    /// memory.
    Queue { from: usize, count: usize },
    /// Meets a disk that fails, and checks that everybody is told.
    Break,
    /// Works on as much as it can, until its input ends. Says how many runs came to their end.
    Hog,
    /// Drives runs of which one aborts the process, until all have an end.
    Abort,
    /// As [`Part::Run`], with work under limits.
    Limited,
    /// As [`Part::Limited`], and ends well after one generation.
    LimitedFinish,
}

/// Where the processes of a test meet.
#[derive(Clone, Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("runs.db")
    }

    pub(crate) fn effects(&self) -> PathBuf {
        self.0.join("effects")
    }

    fn generations(&self) -> PathBuf {
        self.0.join("generations")
    }

    /// Returns how many generations are over.
    pub(crate) fn generation(&self) -> usize {
        std::fs::read(self.generations()).map_or(0, |bytes| bytes.len())
    }

    pub(crate) fn end_generation(&self) {
        let mut file = std::fs::File::options().append(true).create(true).open(self.generations()).unwrap();
        file.write_all(b".").unwrap();
    }
}

pub(crate) fn run_id(generation: usize, number: usize) -> String {
    format!("g{generation}-{number}")
}

/// Another process; it dies with this value.
pub(crate) struct Other {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn start(part: Part, folder: &Folder, number: u32) -> Self {
        Self::start_standing_still(part, folder, number, None)
    }

    /// Starts a process that stands still in the middle of an execution, after so many others, and says so.
    pub(crate) fn start_standing_still(part: Part, folder: &Folder, number: u32, after: Option<u64>) -> Self {
        let words = match part {
            Part::Die { place, nth } => format!("Die {place} {nth}"),
            Part::Queue { from, count } => format!("Queue {from} {count}"),
            Part::Share { generation, has_short_lease } => format!("Share {generation} {has_short_lease}"),
            Part::Run
            | Part::Finish
            | Part::Together
            | Part::Drive
            | Part::Break
            | Part::Hog
            | Part::Abort
            | Part::Limited
            | Part::LimitedFinish => format!("{part:?}"),
        };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "other::another_process", "--ignored", "--nocapture", "--test-threads=1"])
            .env(PART, words)
            .env(FOLDER, &folder.0)
            .env(NUMBER, number.to_string())
            .env(STANDS_STILL_AFTER, after.map_or_else(String::new, |after| after.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Returns what it says next; `None` if it says nothing any more.
    pub(crate) fn says(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness speaks on the same line now and then; a word that was cut short by death counts not.
            if let Some((_, said)) = line.split_once(MARK)
                && let Some(said) = said.strip_suffix('\n')
            {
                return Some(said.to_owned());
            }
        }
    }

    /// Kills it as `kill -9` does. It must be alive.
    pub(crate) fn kill(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it did not end by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has killed itself or comes to its end. Tells whether it killed itself.
    pub(crate) fn has_died(&mut self) -> bool {
        let status = self.child.wait().unwrap();
        let is_killed = status.signal() == Some(rustix::process::Signal::KILL.as_raw());
        assert!(is_killed || status.success(), "it ended with {status}");
        is_killed
    }

    /// Waits for its end, and returns the signal that ended it.
    pub(crate) fn died_of(&mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        assert!(status.signal().is_some() || status.success(), "it ended with {status}");
        status.signal()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops it, and waits until each of its threads stands: one that was about to write would write first.
    pub(crate) fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
        let stands = |task: &Path| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('T'))
        };
        let threads = format!("/proc/{}/task", self.child.id());
        while !std::fs::read_dir(&threads).unwrap().all(|task| stands(&task.unwrap().path())) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Returns whether it has come to its end, which must be a good one.
    pub(crate) fn is_over(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none_or(|status| status.success()), "it ended with {ended:?}");
        ended.is_some()
    }

    /// Lets it end in peace.
    pub(crate) fn finish(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for its end and tells whether it ended well.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.finish();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

#[test]
#[ignore = "other tests start it in another process"]
fn another_process() {
    let Ok(part) = std::env::var(PART) else { return };
    let folder = Folder(std::env::var_os(FOLDER).unwrap().into());
    let number: u32 = std::env::var(NUMBER).unwrap().parse().unwrap();
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        // Whoever started this process must learn of a panic in any of its tasks.
        std::process::abort();
    }));
    write_down(&folder.effects(), number, stand_still);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match part.split(' ').collect::<Vec<_>>()[..] {
            ["Run"] => loop {
                one_generation(&folder, number).await;
            },
            ["Finish"] => one_generation(&folder, number).await,
            ["Die", place, nth] => {
                let place = tidewheel_store::sqlite::failpoint::ALL[place.parse::<usize>().unwrap()];
                tidewheel_store::sqlite::failpoint::arm(place, nth.parse().unwrap());
                one_generation(&folder, number).await;
            }
            ["Together"] => together(&folder).await,
            ["Share", generation, has_short_lease] => {
                share(&folder, generation.parse().unwrap(), has_short_lease.parse().unwrap()).await;
            }
            ["Drive"] => drive(&folder).await,
            ["Queue", from, count] => queue(&folder, from.parse().unwrap(), count.parse().unwrap()).await,
            ["Break"] => crate::broken::meet_a_broken_disk(&folder).await,
            ["Hog"] => hog(&folder).await,
            ["Abort"] => crate::aborts::drive(&folder).await,
            ["Limited"] => crate::limited::generations(&folder, number, false).await,
            ["LimitedFinish"] => crate::limited::generations(&folder, number, true).await,
            _ => panic!("there is no part {part}"),
        }
    });
}

/// Does what a program does that is started again after a crash: the same as before.
async fn one_generation(folder: &Folder, number: u32) {
    let generation = folder.generation();
    // Some processes have room for all runs, and in others most wait in the store.
    let room = if number.is_multiple_of(2) { 2 * RUNS } else { RUNS / 4 };
    let options = RunnerOptions::new().max_concurrency(8).max_active_runs(room).lease(Span::from_secs(5));
    let runner = open(folder, options).await;
    say("open");
    all_of(&runner, generation).await;
    folder.end_generation();
    runner.shutdown().await;
}

/// Returns whether another process keeps the store from being written for now. On a crowded machine, one that has its
/// turn to write may not get to run for seconds; a program tries again then.
fn is_busy(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.into_iter().any(|cause| cause.to_string().contains("has been writing for too long"))
}

/// Opens the store of the folder as soon as it can be written.
async fn open(folder: &Folder, options: RunnerOptions) -> Runner {
    loop {
        match Runner::open_with(folder.database(), options.clone()).await {
            Ok(runner) => return runner,
            Err(error) => assert!(is_busy(&error), "{error:?}"),
        }
    }
}

/// Starts all runs of a generation, gives them what they need, and waits for their ends.
async fn all_of(runner: &Runner, generation: usize) {
    let mut tasks = Vec::new();
    for number in 0..RUNS {
        let runner = runner.clone();
        tasks.push(tokio::spawn(async move {
            while let Err(error) = one_of(&runner, generation, number).await {
                // This process was stopped for so long that others took over what it had; it goes on like a new one.
                assert!(error.to_string().contains("lease") || is_busy(error.as_ref()), "{error}");
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Starts a run, gives it what it needs, and waits for its end.
async fn one_of(
    runner: &Runner,
    generation: usize,
    number: usize,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let run = runner.start(run_id(generation, number).as_str(), workflow_of(number)).await?;
    for (key, input) in inputs_of(number).into_iter().enumerate() {
        // It was lost too often; the test kills the process, so the step is not to blame.
        while let Err(error) = run.input_keyed(key.to_string(), input).await {
            match error {
                // Another process may have resumed it since.
                InputError::Over { status: Status::Parked, .. } => drop(run.resume().await),
                // Another process gave this input, and the run came to its end with it.
                InputError::Over { status: Status::Completed, .. } => break,
                error => return Err(error.into()),
            }
        }
    }
    loop {
        match run.wait().await? {
            Status::Completed => return Ok(()),
            Status::Parked => drop(run.resume().await),
            status => panic!("{} is {status}", run.id()),
        }
    }
}

async fn together(folder: &Folder) {
    let options = RunnerOptions::new().max_concurrency(4).max_active_runs(RUNS / 3);
    let runner = open(folder, options).await;
    say("open");
    until_the_end().await;
    all_of(&runner, 0).await;
    runner.shutdown().await;
}

async fn share(folder: &Folder, generation: usize, has_short_lease: bool) {
    let lease = if has_short_lease { SHORT_LEASE } else { Span::from_secs(5) };
    let options = RunnerOptions::new().max_concurrency(4).max_active_runs(RUNS / 2).lease(lease);
    let runner = open(folder, options).await;
    say("open");
    all_of(&runner, generation).await;
    say("over");
    runner.shutdown().await;
}

pub(crate) const SHORT_LEASE: Span = Span::from_millis(600);

async fn drive(folder: &Folder) {
    let options = RunnerOptions::new().max_concurrency(4).max_active_runs(40).lease(SHORT_LEASE);
    let runner = open(folder, options).await;
    for workflow in &*WORKFLOWS {
        runner.register(workflow).unwrap();
    }
    say("open");
    until_the_end().await;
    runner.shutdown().await;
}

/// A run that is never over.
pub(crate) fn endless() -> Workflow {
    let wait = async |x: i64| -> i64 {
        std::future::pending::<()>().await;
        x
    };
    Workflow::new("endless").add(step("wait", wait)).build().unwrap()
}

/// Returns the numbers of runs that have one input, without end.
pub(crate) fn with_one_input() -> impl Iterator<Item = usize> {
    (0..).filter(|number| inputs_of(*number).len() == 1)
}

async fn queue(folder: &Folder, from: usize, count: usize) {
    // There is room for one run, and that never ends.
    let options = RunnerOptions::new().max_active_runs(1);
    let runner = open(folder, options).await;
    runner.run("endless", &endless(), 0_i64).await.unwrap();
    let before = resident();
    let mut tasks = Vec::new();
    let numbers: Vec<usize> = with_one_input().skip(from).take(count).collect();
    for part in numbers.chunks(count.div_ceil(64)) {
        let (runner, part) = (runner.clone(), part.to_vec());
        tasks.push(tokio::spawn(async move {
            for number in part {
                let input = inputs_of(number)[0];
                runner.run(run_id(0, number).as_str(), workflow_of(number), input).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let bytes = resident().saturating_sub(before);
    say(&format!("{}", bytes / count.max(1)));
    until_the_end().await;
    std::process::exit(0);
}

/// Returns how much memory this process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

/// As many runs of the busy process wait for what others ask of them.
pub(crate) const ASKED: usize = 100;

async fn hog(folder: &Folder) {
    let runner = Runner::open(folder.database()).await.unwrap();
    for number in 0..ASKED {
        runner.run(format!("endless-{number}").as_str(), &endless(), 0_i64).await.unwrap();
    }
    let ended = Arc::new(AtomicU64::new(0));
    for lane in 0..1_000 {
        let (runner, ended) = (runner.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            for round in 0.. {
                let run = runner.run(format!("{lane}-{round}").as_str(), &WORKFLOWS[0], lane).await.unwrap();
                assert_eq!(run.wait().await.unwrap(), Status::Completed);
                ended.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    say("busy");
    until_the_end().await;
    say(&ended.load(Ordering::Relaxed).to_string());
    std::process::exit(0);
}

async fn until_the_end() {
    let read = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
    };
    tokio::task::spawn_blocking(read).await.unwrap();
}

/// Stands still in the middle of the execution that was chosen.
fn stand_still(before: u64) {
    static AFTER: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var(STANDS_STILL_AFTER).ok().and_then(|text| text.parse().ok()));
    if *AFTER == Some(before) {
        say(STANDS_STILL);
        loop {
            std::thread::park();
        }
    }
}

pub(crate) fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{what}").unwrap();
    out.flush().unwrap();
}

/// Opens the database of a folder, to look at it.
pub(crate) fn store_in(folder: &Path) -> tidewheel_store::Sqlite {
    let clock = Arc::new(tidewheel_store::RealClock::new());
    tidewheel_store::Sqlite::open(Folder(folder.to_owned()).database(), clock).unwrap()
}
