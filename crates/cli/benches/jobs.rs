//! What a job costs: per node in a chain and in a fan-out, per tick and per view over a long history, beside GNU make
//! and ninja on the same graphs in the same run. Whole commands are timed from outside, best and median of several.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidewheel_runner::job::{Options, Scheduler};
use tidewheel_testkit::figure;

const BINARY: &str = env!("CARGO_BIN_EXE_tidewheel");

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    if is_wanted("jobs version") {
        let empty = Place::new();
        commands("--version, whole command", "jobs/version", 40, || empty.run(&["--version"]));
    }
    // Some file systems look at every file that was deleted in the last minute before they make another one, so that
    // nothing is deleted before the end, and the long histories come last.
    let mut places = Vec::new();
    if is_wanted("jobs chain") {
        chain(&mut places);
    }
    if is_wanted("jobs fan-out") {
        fan_out(&mut places);
    }
    if is_wanted("jobs over a run") {
        over_a_run(&mut places);
    }
    if is_wanted("jobs history") {
        history(&mut places);
    }
}

/// How commands over a whole run grow with its jobs: two of them run, the others wait.
fn over_a_run(places: &mut Vec<Place>) {
    for &count in figure::quick_or(&[100, 200][..], &[250, 1_000, 2_000, 10_000]) {
        let place = Place::with_history(0);
        fs::write(place.path.join(".tidewheel/config.toml"), "[scheduler]\ncapacity = 2\n").unwrap();
        fs::write(place.path.join("wide.toml"), sleepers(count)).unwrap();
        let (mut cancels, mut retries) = (Vec::new(), Vec::new());
        place.run(&["run", "wide.toml"]);
        for _ in 0..rounds(3) {
            cancels.push(place.timed(&["runs", "cancel", "run_"]));
            retries.push(place.timed(&["runs", "retry", "run_"]));
        }
        place.run(&["runs", "cancel", "run_"]);
        tell(&format!("runs cancel, {count} jobs"), &format!("jobs/over a run/runs cancel/{count}"), cancels);
        tell(&format!("runs retry, {count} jobs"), &format!("jobs/over a run/runs retry/{count}"), retries);
        places.push(place);
    }
}

/// A template of nodes that sleep, each on one line: a template of 10,000 has to stay below 1 MiB.
fn sleepers(count: usize) -> String {
    let mut text = String::from("id = \"template.bench\"\nversion = \"v1\"\nnodes = [\n");
    for index in 0..count {
        writeln!(
            text,
            "{{id=\"n{index}\",kind=\"shell\",uses=\"cap.env.shell.command.run\",args={{script=\"sleep 600\"}}}},"
        )
        .unwrap();
    }
    text.push_str("]\n");
    text
}

/// How ticks and views grow with finished jobs, and with active ones.
fn history(places: &mut Vec<Place>) {
    for &count in figure::quick_or(&[100, 1_000][..], &[100, 1_000, 10_000, 100_000]) {
        let times_each = figure::quick_or(2, 10);
        let place = Place::with_history(count);
        place.run(&["tick"]);
        let scheduler = place.scheduler();
        scheduler.tick().unwrap();
        let times: Vec<Duration> = (0..20)
            .map(|_| {
                let began = Instant::now();
                scheduler.tick().unwrap();
                began.elapsed()
            })
            .collect();
        let id = |name: &str| format!("jobs/history/{name}/{count}");
        let tick = id("no-op tick in process");
        figure::goal(&tick, TICK_GOAL_NS);
        tell(&format!("no-op tick in process, {count} finished"), &tick, times);
        let tick = id("tick, whole command");
        figure::goal(&tick, TICK_GOAL_NS);
        commands(&format!("tick, whole command, {count} finished"), &tick, times_each, || {
            place.run(&["tick"]);
        });
        for reading in READING {
            let id = id(reading);
            if reading == "jobs schedule" && count <= 10_000 {
                figure::goal(&id, SCHEDULE_GOAL_NS);
            }
            let words: Vec<&str> = reading.split(' ').map(|word| place.named(word)).collect();
            commands(&format!("{}, {count} finished", shown(&words)), &id, times_each, || place.run(&words));
        }
        places.push(place);
    }
}

/// A tick with nothing to do may take this long, over any history.
const TICK_GOAL_NS: f64 = 5e6;
/// A schedule may take this long over 10,000 records.
const SCHEDULE_GOAL_NS: f64 = 20e6;
/// A node of a chain may take this long.
const NODE_GOAL_NS: f64 = 5e6;

/// The reading commands; `RUN` is one in the middle of the history, `NODE` one of its jobs, `JOB` the whole id of that.
const READING: [&str; 14] = [
    "jobs list --format json",
    "jobs list --format table",
    "jobs schedule",
    "jobs schedule --format json",
    "jobs schedule --all --format json",
    "jobs schedule --job NODE",
    "jobs show NODE",
    "jobs status JOB",
    "jobs tail NODE",
    "jobs explain NODE",
    "runs list",
    "runs show RUN",
    "runs timeline RUN",
    "graph RUN",
];

/// Returns a command as it is named in the figures, without long ids.
fn shown(words: &[&str]) -> String {
    let word = |word: &&str| if word.len() > 32 { "ID".to_owned() } else { (*word).to_owned() };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A chain of 50 `true`, on an empty history and on a long one, beside make and ninja.
fn chain(places: &mut Vec<Place>) {
    const LENGTH: usize = 50;
    let template = nodes(LENGTH, after_the_one_before);
    for &count in figure::quick_or(&[0][..], &[0, 10_000]) {
        let place = Place::with_history(count);
        place.run(&["tick"]);
        fs::write(place.path.join("chain.toml"), &template).unwrap();
        let times =
            (0..rounds(5)).map(|_| place.follow("chain.toml") / u32::try_from(LENGTH).unwrap()).collect();
        let id = format!("jobs/chain/{count}");
        figure::goal(&id, NODE_GOAL_NS);
        tell(&format!("chain of {LENGTH} true, per node, {count} old records"), &id, times);
        places.push(place);
    }
    let mut rules = String::from("all: n49\n");
    for index in 0..LENGTH {
        let before = if index == 0 { String::new() } else { format!("n{}", index - 1) };
        writeln!(rules, "n{index}: {before}\n\t@true\n.PHONY: n{index}").unwrap();
    }
    let before = |index: usize| if index == 0 { String::new() } else { format!("n{}", index - 1) };
    let ids = ["jobs/chain/make".to_owned(), "jobs/chain/ninja".to_owned()];
    peers("chain of 50", ids, LENGTH, &rules, before);
}

/// Many `true` at once, two at a time, each under a lock of its own.
fn fan_out(places: &mut Vec<Place>) {
    for &width in figure::quick_or(&[100][..], &[100, 1_000]) {
        let template =
            nodes(width, |index| format!("locks = [{{ key = \"k{index}\", mode = \"exclusive\" }}]"));
        let place = Place::with_history(0);
        fs::write(place.path.join(".tidewheel/config.toml"), "[scheduler]\ncapacity = 2\n").unwrap();
        fs::write(place.path.join("wide.toml"), &template).unwrap();
        let count = u32::try_from(width).unwrap();
        let times = (0..rounds(3)).map(|_| place.follow("wide.toml") / count).collect();
        let id = format!("jobs/fan-out/{width}");
        tell(&format!("fan-out of {width} true, two at once, per node"), &id, times);
        places.push(place);
        let mut rules = String::from("all:");
        for index in 0..width {
            write!(rules, " n{index}").unwrap();
        }
        rules.push('\n');
        for index in 0..width {
            writeln!(rules, "n{index}:\n\t@true\n.PHONY: n{index}").unwrap();
        }
        let ids = [format!("jobs/fan-out/make/{width}"), format!("jobs/fan-out/ninja/{width}")];
        peers(&format!("fan-out of {width}"), ids, width, &rules, |_| String::new());
    }
}

/// Runs the same graph with make and, where it is installed, ninja.
fn peers(name: &str, ids: [String; 2], width: usize, makefile: &str, before: impl Fn(usize) -> String) {
    let [make_id, ninja_id] = ids;
    let place = Place::new();
    let count = u32::try_from(width).unwrap();
    fs::write(place.path.join("Makefile"), makefile).unwrap();
    let time = |program: &str| -> Option<Vec<Duration>> {
        (0..rounds(5))
            .map(|_| {
                let began = Instant::now();
                let mut command = Command::new(program);
                command.arg("-j2").current_dir(&place.path).stdout(Stdio::null()).stderr(Stdio::null());
                command.status().ok()?.success().then(|| began.elapsed() / count)
            })
            .collect()
    };
    match time("make") {
        Some(times) => tell(&format!("  make -j2, {name}, per node"), &make_id, times),
        None => not_installed("make", &make_id),
    }
    let mut ninja = String::from("rule t\n  command = true\n");
    for index in 0..width {
        writeln!(ninja, "build n{index}: t {}", before(index)).unwrap();
    }
    fs::write(place.path.join("build.ninja"), ninja).unwrap();
    match time("ninja") {
        Some(times) => tell(&format!("  ninja -j2, {name}, per node"), &ninja_id, times),
        None => not_installed("ninja", &ninja_id),
    }
}

fn not_installed(program: &str, id: &str) {
    let why = format!("{program} is not installed");
    println!("  {why}");
    figure::skipped(id, &why);
}

/// Returns how often something is measured.
fn rounds(usual: usize) -> usize {
    figure::quick_or(1, usual)
}

/// A template of nodes that do nothing.
fn nodes(count: usize, more: impl Fn(usize) -> String) -> String {
    let mut text = String::from("id = \"template.bench\"\nversion = \"v1\"\n");
    for index in 0..count {
        let more = more(index);
        writeln!(
            text,
            "[[nodes]]\nid = \"n{index}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = {{ command = [\"true\"] }}\n{more}"
        )
        .unwrap();
    }
    text
}

fn after_the_one_before(index: usize) -> String {
    if index == 0 { String::new() } else { format!("after = [{{ node_id = \"n{}\" }}]", index - 1) }
}

/// A directory with a history.
struct Place {
    path: PathBuf,
    /// What stands for ids of the history in commands.
    names: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { path: folder.path().to_owned(), names: Vec::new(), _folder: folder }
    }

    /// Makes a place in which so many jobs have succeeded, ten in each run: one run is real, the others are like it.
    fn with_history(count: usize) -> Self {
        let mut place = Self::new();
        fs::create_dir_all(place.path.join(".tidewheel/jobs")).unwrap();
        if count == 0 {
            return place;
        }
        fs::write(place.path.join("ten.toml"), nodes(10, after_the_one_before)).unwrap();
        place.follow("ten.toml");
        let jobs = place.path.join(".tidewheel/jobs");
        let manifests = fs::read_dir(jobs.join("runs")).unwrap();
        let manifest = manifests.map(|entry| entry.unwrap().path()).next().unwrap();
        let real = manifest.file_stem().unwrap().to_str().unwrap().to_owned();
        let manifest = fs::read_to_string(&manifest).unwrap();
        let ids = (0..10).map(|node| format!("wf-{real}-n{node}"));
        let records: Vec<(String, String)> = ids
            .map(|id| {
                let record = fs::read_to_string(jobs.join(&id).join("job.json")).unwrap();
                (id, record)
            })
            .collect();
        for run in 1..count / 10 {
            let name = format!("run_{run:032x}");
            fs::write(jobs.join(format!("runs/{name}.json")), manifest.replace(&real, &name)).unwrap();
            for (id, record) in &records {
                let directory = jobs.join(id.replace(&real, &name));
                fs::create_dir(&directory).unwrap();
                fs::write(directory.join("job.json"), record.replace(&real, &name)).unwrap();
            }
        }
        let run = count / 20;
        let job = format!("wf-run_{run:032x}-n3");
        place.names = vec![("RUN", format!("{run:032x}")), ("NODE", job[8..].to_owned()), ("JOB", job)];
        place
    }

    fn named<'a>(&'a self, word: &'a str) -> &'a str {
        self.names.iter().find(|(name, _)| *name == word).map_or(word, |(_, id)| id)
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new(BINARY);
        let ran = command.args(arguments).current_dir(&self.path).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn timed(&self, arguments: &[&str]) -> Duration {
        let began = Instant::now();
        self.run(arguments);
        began.elapsed()
    }

    fn follow(&self, template: &str) -> Duration {
        self.timed(&["run", template, "--follow", "--format", "json"])
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler::open(Options {
            root: self.path.clone(),
            data: self.path.join(".tidewheel"),
            binary: PathBuf::from(BINARY),
            actor: "bench".to_owned(),
            capacity: 2,
            probe_interval: Options::PROBE_INTERVAL,
            log_limit: Options::LOG_LIMIT,
            agents: std::collections::BTreeMap::new(),
            secrets: tidewheel_core::job::Secrets::default(),
            cleans_cancelled: false,
            tell_of_wait: None,
            now: None,
        })
        .unwrap()
    }
}

fn commands(name: &str, id: &str, times: usize, mut run: impl FnMut()) {
    run();
    let times = (0..times)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    tell(name, id, times);
}

fn tell(name: &str, id: &str, mut times: Vec<Duration>) {
    figure::took(id, 1, &times);
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:<62} best {:>8.2} ms, median {:>8.2} ms",
        millis(times[0]),
        millis(times[times.len() / 2])
    );
}
