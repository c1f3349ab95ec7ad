//! How many appends per second: in SQLite by the size of a call, beside what the disk and bare SQLite can do on
//! this machine, and in memory; and how long one call takes beside a process that writes all the time.
//! `-- million` creates and lists a million runs instead.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_store::{
    Append, Batch, Filter, Guard, Lease, Memory, NewCommand, NewRun, OwnerId, RealClock, Sqlite, Status,
    Store,
};
use tidewheel_testkit::figure::{self, Unit};
use tokio::runtime::{Builder, Runtime};

/// Returns how long each case runs.
fn round() -> Duration {
    figure::quick_or(Duration::from_millis(200), Duration::from_secs(2))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    if let Some(path) = std::env::args().skip_while(|argument| argument != HOG).nth(1) {
        return hog(&runtime, path);
    }
    if words.iter().any(|word| word == "million") {
        return million(&runtime, folder.path());
    }
    if !is_wanted("store append") {
        return;
    }
    let tell = |id: &str, rate: f64| figure::measured(id, Unit::PerSecond, &[rate]);
    let rate = syncs(folder.path());
    tell("append/write and fdatasync", rate);
    println!("{:<44} {rate:>9.0} /s", "write 4 KiB + fdatasync");
    let rate = bare(folder.path());
    tell("append/bare SQLite", rate);
    println!("{:<44} {rate:>9.0} /s", "bare SQLite, one event per commit");
    for size in [1, 10, 100, 500, 1_000] {
        let path = folder.path().join(format!("calls of {size}.db"));
        let store = Sqlite::open(path, Arc::new(RealClock::new())).unwrap();
        let rate = runtime.block_on(calls(&store, size));
        tell(&format!("append/calls/{size}"), rate);
        let name = format!("SQLite, calls of {size}");
        println!("{name:<44} {rate:>9.0} appends/s, {} commits", store.commits());
    }
    for callers in [10, 100, 500] {
        let path = folder.path().join(format!("callers {callers}.db"));
        let store = Arc::new(Sqlite::open(path, Arc::new(RealClock::new())).unwrap());
        let rate = runtime.block_on(callers_at_once(&store, callers));
        tell(&format!("append/callers/{callers}"), rate);
        let name = format!("SQLite, {callers} callers with one append each");
        println!("{name:<44} {rate:>9.0} appends/s, {} commits", store.commits());
    }
    for size in [1, 100] {
        let rate = runtime.block_on(calls(&Memory::new(Arc::new(RealClock::new())), size));
        tell(&format!("append/memory/{size}"), rate);
        println!("{:<44} {rate:>9.0} appends/s", format!("memory, calls of {size}"));
    }
    beside_a_hog(&runtime, &folder.path().join("hog.db"));
    for length in figure::quick_or(&[1_000, 10_000][..], &[1_000, 10_000, 100_000]) {
        grown(&runtime, folder.path(), *length);
        grown_bare(folder.path(), *length);
    }
}

/// So many events go into one call while a log grows.
const CALL: usize = 100;

/// Times the growth of one log to a length, and reading it.
fn grown(runtime: &Runtime, folder: &Path, length: usize) {
    let store = Sqlite::open(folder.join(format!("log of {length}.db")), Arc::new(RealClock::new())).unwrap();
    runtime.block_on(async {
        let owner = store.join(Span::from_secs(600)).await.unwrap().owner;
        let lease = start(&store, 1, owner).await.remove(0);
        let mut times = Vec::with_capacity(length / CALL);
        for call in 0..length / CALL {
            let expected = u64::try_from(1 + call * CALL).unwrap();
            let mut append = more(&lease, expected);
            for _ in 1..CALL {
                append.events.push(&event());
            }
            let began = Instant::now();
            store.append(vec![append]).await.unwrap().remove(0).unwrap();
            times.push(began.elapsed());
        }
        figure::took(&format!("log/append/{length}"), CALL, &times);
        let mut reads = Vec::new();
        for _ in 0..5 {
            let began = Instant::now();
            let stored = store.read(&lease.run, 0).await.unwrap();
            reads.push(began.elapsed());
            assert_eq!(stored.iter().map(|stored| stored.events.len() as usize).sum::<usize>(), length + 1);
        }
        figure::took(&format!("log/read/{length}"), length, &reads);
        tell_log("log", length, times, reads);
    });
}

/// The same with bare SQLite: a row for each event, as many in a commit.
fn grown_bare(folder: &Path, length: usize) {
    let mut connection = rusqlite::Connection::open(folder.join(format!("bare log of {length}.db"))).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE events (body TEXT)",
        )
        .unwrap();
    let mut times = Vec::with_capacity(length / CALL);
    for _ in 0..length / CALL {
        let bodies: Vec<String> = (0..CALL).map(|_| event()).collect();
        let began = Instant::now();
        let transaction = connection.transaction().unwrap();
        for body in bodies {
            transaction.prepare_cached("INSERT INTO events VALUES (?1)").unwrap().execute([body]).unwrap();
        }
        transaction.commit().unwrap();
        times.push(began.elapsed());
    }
    figure::took(&format!("log/append, bare/{length}"), CALL, &times);
    let mut reads = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let mut select = connection.prepare("SELECT body FROM events ORDER BY rowid").unwrap();
        let bodies: Vec<String> =
            select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        reads.push(began.elapsed());
        assert_eq!(bodies.len(), length);
    }
    figure::took(&format!("log/read, bare/{length}"), length, &reads);
    tell_log("bare SQLite", length, times, reads);
}

fn tell_log(name: &str, length: usize, mut appends: Vec<Duration>, mut reads: Vec<Duration>) {
    appends.sort_unstable();
    reads.sort_unstable();
    let each = |times: &[Duration], items: usize| times[times.len() / 2].as_nanos() / items as u128;
    println!(
        "{:<44} {:>9} ns to append an event, {} ns to read one",
        format!("{name} of {length} events"),
        each(&appends, CALL),
        each(&reads, length)
    );
}

/// The argument of a process that writes all the time.
const HOG: &str = "hog";

fn hog(runtime: &Runtime, path: String) {
    let store = Arc::new(Sqlite::open(path, Arc::new(RealClock::new())).unwrap());
    let rate = runtime.block_on(callers_at_once(&store, 500));
    println!("{:<44} {rate:>9.0} appends/s", "that process, with 500 callers");
}

/// Measures calls of this process while another one writes all the time.
fn beside_a_hog(runtime: &Runtime, path: &Path) {
    let store = Sqlite::open(path, Arc::new(RealClock::new())).unwrap();
    runtime.block_on(store.append(vec![new_run(1_000_000, None)])).unwrap();
    let mut hog =
        std::process::Command::new(std::env::current_exe().unwrap()).arg(HOG).arg(path).spawn().unwrap();
    let run = RunId::new("run 1000000");
    let (mut sends, mut lists) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        while store.find(&RunId::new("run 499")).await.unwrap().is_none() {}
        while hog.try_wait().unwrap().is_none() {
            let began = Instant::now();
            let command = NewCommand { run: run.clone(), kind: "signal".to_owned(), body: "{}".to_owned() };
            store.send(command).await.unwrap().unwrap();
            sends.push(began.elapsed());
            let began = Instant::now();
            store.list(Filter::default()).await.unwrap();
            lists.push(began.elapsed());
        }
    });
    for (name, mut times) in [("send", sends), ("list", lists)] {
        figure::took(&format!("append/beside a writer, {name}"), 1, &times);
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        let name = format!("{name} beside a process that writes all the time");
        println!(
            "{name}: {} calls, median {:?}, p99 {:?}, slowest {:?}",
            times.len(),
            at(50),
            at(99),
            at(100)
        );
    }
}

fn syncs(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("syncs")).unwrap();
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < round() {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / began.elapsed().as_secs_f64()
}

fn bare(folder: &Path) -> f64 {
    let connection = rusqlite::Connection::open(folder.join("bare.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE events (body TEXT)",
        )
        .unwrap();
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < round() {
        connection.prepare_cached("INSERT INTO events VALUES (?1)").unwrap().execute([event()]).unwrap();
        count += 1;
    }
    f64::from(count) / began.elapsed().as_secs_f64()
}

/// One caller that writes to so many runs in each call.
async fn calls(store: &dyn Store, size: u32) -> f64 {
    let owner = store.join(Span::from_secs(600)).await.unwrap().owner;
    let leases = start(store, size, owner).await;
    let (began, mut version) = (Instant::now(), 1);
    while began.elapsed() < round() {
        let appends = leases.iter().map(|lease| more(lease, version)).collect();
        assert!(store.append(appends).await.unwrap().iter().all(Result::is_ok));
        version += 1;
    }
    f64::from(size) * (version - 1) as f64 / began.elapsed().as_secs_f64()
}

/// Many callers, each with a run of its own.
async fn callers_at_once(store: &Arc<Sqlite>, callers: u32) -> f64 {
    let owner = store.join(Span::from_secs(600)).await.unwrap().owner;
    let leases = start(&**store, callers, owner).await;
    let began = Instant::now();
    let tasks: Vec<_> = leases
        .into_iter()
        .map(|lease| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut version = 1;
                while began.elapsed() < round() {
                    store.append(vec![more(&lease, version)]).await.unwrap().remove(0).unwrap();
                    version += 1;
                }
                version - 1
            })
        })
        .collect();
    let mut total = 0;
    for task in tasks {
        total += task.await.unwrap();
    }
    total as f64 / began.elapsed().as_secs_f64()
}

fn million(runtime: &Runtime, folder: &Path) {
    const RUNS: u32 = 1_000_000;
    let store = Sqlite::open(folder.join("million.db"), Arc::new(RealClock::new())).unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        for thousand in 0..RUNS / 1_000 {
            let appends = (0..1_000).map(|run| new_run(thousand * 1_000 + run, None)).collect();
            assert!(store.append(appends).await.unwrap().iter().all(Result::is_ok));
        }
        println!("created {RUNS} runs in {:?}", began.elapsed());
        let began = Instant::now();
        let (mut filter, mut listed) = (Filter { limit: Some(1_000), ..Filter::default() }, 0);
        loop {
            let page = store.list(filter.clone()).await.unwrap();
            listed += page.rows.len();
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        println!("listed {listed} runs in {:?}", began.elapsed());
        for filter in [
            Filter { statuses: vec![Status::Running], ..Filter::default() },
            Filter { statuses: vec![Status::Failed, Status::Running], ..Filter::default() },
            Filter { workflow: Some("flow".to_owned()), ..Filter::default() },
            Filter { id_prefix: Some("run 99999".to_owned()), ..Filter::default() },
            Filter { id_prefix: Some("run".to_owned()), ..Filter::default() },
            Filter { id_prefix: Some("none".to_owned()), ..Filter::default() },
            Filter {
                id_prefix: Some("run 1234".to_owned()),
                statuses: vec![Status::Running],
                ..Filter::default()
            },
        ] {
            let began = Instant::now();
            let rows = store.list(filter.clone()).await.unwrap().rows.len();
            println!("first page, {rows} rows, in {:?}: {filter:?}", began.elapsed());
        }
        let owner = store.join(Span::from_secs(600)).await.unwrap().owner;
        let began = Instant::now();
        let workflows = vec![("flow".to_owned(), 1)];
        let wanted = tidewheel_store::Wanted::Due { workflows, limit: 1_000 };
        let claimed = store.claim(tidewheel_store::Claim { owner, wanted }).await.unwrap();
        println!("claimed {} runs in {:?}", claimed.runs.len(), began.elapsed());
    });
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak of memory unknown"));
}

async fn start(store: &dyn Store, count: u32, owner: OwnerId) -> Vec<Lease> {
    let appends = (0..count).map(|run| new_run(run, Some(owner))).collect();
    store.append(appends).await.unwrap().into_iter().map(Result::unwrap).collect()
}

fn event() -> String {
    let value = "x".repeat(120);
    format!(
        r#"{{"type":"runnable_completed","node":"node_0a1b2c3d4e5f60718293a4b5c6d7e8f9","value":"{value}"}}"#
    )
}

fn new_run(run: u32, owner: Option<OwnerId>) -> Append {
    let definition = r#"{"workflow":"flow"}"#.to_owned();
    let new = NewRun { workflow: "flow".to_owned(), workflow_version: 1, definition, owner };
    let lease = Lease { run: RunId::new(&format!("run {run}")), key: 0, fence: 0 };
    let wake_at = owner.is_none().then_some(tidewheel_core::time::Timestamp::from_nanos(0));
    Append { guard: Guard::New(Box::new(new)), wake_at, ..more(&lease, 0) }
}

fn more(lease: &Lease, expected: u64) -> Append {
    let mut events = Batch::new();
    events.push(&event());
    Append {
        run: lease.run.clone(),
        guard: Guard::Held { key: lease.key, fence: lease.fence },
        expected,
        events,
        status: Status::Running,
        reason: None,
        wake_at: None,
        handled: Vec::new(),
        checkpoint: None,
        letters: Vec::new(),
        release: false,
    }
}
