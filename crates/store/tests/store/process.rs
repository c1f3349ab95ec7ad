//! Other processes for the tests: this test binary, started again, with a part to play. A test that plays in
//! its own process could not be killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};
use tidewheel_core::fact::RunId;
use tidewheel_store::{Letter, NewDeadLetter, RealClock, Sqlite, Store as _};

use crate::fixture::{LEASE, command, more, new_run, write};

const PART: &str = "TIDEWHEEL_TEST_PART";
const DATABASE: &str = "TIDEWHEEL_TEST_DATABASE";
const MARK: &str = "said: ";

/// The runs that a writer writes to, all in one call.
pub(crate) const RUNS: [&str; 3] = ["a", "b", "c"];

/// What another process does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Opens the database and says so.
    Open,
    /// Becomes an owner with a run that is due, says so, and waits.
    Own,
    /// Asks something of the first run and handles it with a write to all of them, which also puts work of the
    /// first one aside, again and again.
    Write,
    /// As [`Part::Write`], and dies at the place and the time in the variables.
    #[cfg(feature = "failpoints")]
    Die { place: usize, nth: u64 },
    /// Writes, and meets a disk that fails.
    #[cfg(feature = "failpoints")]
    Break,
    /// Begins a transaction, says so, and waits in the middle of it.
    Hold,
    /// Has fifty callers that write all the time, and says at the end how often.
    Hog,
}

/// Another process; it dies with this value.
pub(crate) struct Other {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn start(part: Part, database: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::another_process", "--ignored", "--nocapture", "--test-threads=1"])
            .env(PART, words(part))
            .env(DATABASE, database)
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

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it, and waits until each of its threads stands.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stands = |task: &Path| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('T'))
        };
        let threads = format!("/proc/{}/task", self.child.id());
        while !std::fs::read_dir(&threads).unwrap().all(|task| stands(&task.unwrap().path())) {
            std::thread::yield_now();
        }
    }

    /// Lets it go on after it was stopped.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Lets it end in peace.
    pub(crate) fn finish(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
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

fn words(part: Part) -> String {
    match part {
        #[cfg(feature = "failpoints")]
        Part::Die { place, nth } => format!("Die {place} {nth}"),
        #[cfg(feature = "failpoints")]
        Part::Break => format!("{part:?}"),
        Part::Open | Part::Own | Part::Write | Part::Hold | Part::Hog => format!("{part:?}"),
    }
}

#[tokio::test]
#[ignore = "other tests start it in another process"]
async fn another_process() {
    let Ok(part) = std::env::var(PART) else { return };
    let database = std::env::var_os(DATABASE).unwrap();
    let store = Sqlite::open(database, Arc::new(RealClock::new())).unwrap();
    match part.split(' ').collect::<Vec<_>>()[..] {
        ["Open"] => say("open"),
        ["Own"] => {
            let owner = store.join(LEASE).await.unwrap().owner;
            let mut run = new_run("owned", Some(owner));
            run.wake_at = Some(tidewheel_core::time::Timestamp::from_nanos(0));
            write(&store, run).await.unwrap().unwrap();
            say(&owner.0.to_string());
            wait_for_the_end();
        }
        ["Write"] => write_for_ever(&store).await,
        #[cfg(feature = "failpoints")]
        ["Die", place, nth] => {
            let place = tidewheel_store::sqlite::failpoint::ALL[place.parse::<usize>().unwrap()];
            tidewheel_store::sqlite::failpoint::arm(place, nth.parse().unwrap());
            write_for_ever(&store).await;
        }
        #[cfg(feature = "failpoints")]
        ["Break"] => {
            let lease = write(&store, new_run(RUNS[0], None)).await.unwrap().unwrap();
            tidewheel_store::sqlite::failpoint::fail_sync();
            for _ in 0..2 {
                let broken = write(&store, more(&lease, 1)).await;
                assert!(matches!(broken, Err(tidewheel_store::StoreError::Broken)), "{broken:?}");
                let broken = store.find(&lease.run).await;
                assert!(matches!(broken, Err(tidewheel_store::StoreError::Broken)), "{broken:?}");
            }
            say("broken");
        }
        ["Hold"] => {
            let bare = rusqlite::Connection::open(store.path()).unwrap();
            bare.execute_batch("BEGIN IMMEDIATE").unwrap();
            say("in a transaction");
            wait_for_the_end();
            bare.execute_batch("ROLLBACK").unwrap();
        }
        ["Hog"] => hog(Arc::new(store)).await,
        _ => panic!("there is no part {part}"),
    }
}

async fn write_for_ever(store: &Sqlite) {
    let owner = store.join(LEASE).await.unwrap().owner;
    let new = RUNS.map(|run| new_run(run, Some(owner))).to_vec();
    let leases: Vec<_> = store.append(new).await.unwrap().into_iter().map(Result::unwrap).collect();
    say("1");
    for version in 1.. {
        let asked = store.send(command(RUNS[0])).await.unwrap().unwrap();
        let mut appends: Vec<_> = leases.iter().map(|lease| more(lease, version)).collect();
        appends[0].handled.push(asked);
        appends[0].checkpoint = Some(format!("[{version}]"));
        let letter = NewDeadLetter { work: "w".into(), node: "n".into(), body: version.to_string() };
        appends[0].letters.push(Letter::Bury(letter));
        assert!(store.append(appends).await.unwrap().iter().all(Result::is_ok));
        say(&(version + 1).to_string());
    }
}

async fn hog(store: Arc<Sqlite>) {
    let owner = store.join(LEASE).await.unwrap().owner;
    let written = Arc::new(AtomicU64::new(0));
    for caller in 0..50 {
        let (store, written) = (Arc::clone(&store), Arc::clone(&written));
        tokio::spawn(async move {
            let lease =
                write(&*store, new_run(&format!("hog {caller}"), Some(owner))).await.unwrap().unwrap();
            for version in 1.. {
                write(&*store, more(&lease, version)).await.unwrap().unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while store.find(&RunId::new("hog 49")).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    say("busy");
    tokio::task::spawn_blocking(wait_for_the_end).await.unwrap();
    say(&written.load(Ordering::Relaxed).to_string());
    std::process::exit(0);
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{what}").unwrap();
    out.flush().unwrap();
}

fn wait_for_the_end() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}
