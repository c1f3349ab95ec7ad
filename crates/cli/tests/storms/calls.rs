//! Every command that writes, ended at each of its calls and refused each of them: whatever the call, a person finds
//! whole records, no job lost and none run twice, and a command that failed said so.
//!
//! The calls are those of the real binary under `strace`, which kills the process as it makes its Nth call of a kind, or
//! answers that call with an error. Where `strace` is missing or may not trace, the seams of the library
//! (`crates/runner/tests/crash/failpoints.rs`, `crates/runner/tests/faults`) are all that is tried, and the test says so.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tidewheel_testkit::figure;

use crate::commands::{Case, Kept, all};
use crate::kills::manifests;
use crate::random::Random;
use crate::world::{Ran, World, eventually};
use crate::{is_active, is_full, tick};

/// A kind of call, whether a process is killed there, and what it may be answered with.
struct Call {
    name: &'static str,
    kills: bool,
    errors: &'static [&'static str],
}

/// The calls by which a command changes files, and those without which it cannot go on. Where nothing is changed there
/// is no moment to die at that the call before it has not.
const CALLS: &[Call] = &[
    Call { name: "openat", kills: true, errors: &["EIO", "EMFILE"] },
    Call { name: "openat2", kills: true, errors: &["EIO", "ENFILE", "ENOSPC"] },
    Call { name: "mkdir", kills: true, errors: &["ENOSPC", "EIO"] },
    Call { name: "mkdirat", kills: true, errors: &["ENOSPC", "EIO"] },
    Call { name: "write", kills: true, errors: &["ENOSPC", "EIO"] },
    Call { name: "writev", kills: true, errors: &["ENOSPC", "EIO"] },
    Call { name: "pwrite64", kills: true, errors: &["ENOSPC", "EIO"] },
    Call { name: "fsync", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "fdatasync", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "syncfs", kills: true, errors: &["EIO"] },
    Call { name: "rename", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "renameat", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "renameat2", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "link", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "linkat", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "unlink", kills: true, errors: &["EIO"] },
    Call { name: "unlinkat", kills: true, errors: &["EIO"] },
    Call { name: "rmdir", kills: true, errors: &["EIO"] },
    Call { name: "ftruncate", kills: true, errors: &["EIO", "ENOSPC"] },
    Call { name: "fallocate", kills: true, errors: &["ENOSPC"] },
    Call { name: "copy_file_range", kills: true, errors: &["ENOSPC"] },
    Call { name: "read", kills: false, errors: &["EIO"] },
    Call { name: "pread64", kills: false, errors: &["EIO"] },
    Call { name: "getdents64", kills: false, errors: &["EIO"] },
    Call { name: "clone3", kills: false, errors: &["EAGAIN"] },
];

/// What is not ours: libraries, and what the kernel says of processes. How often these are looked at depends on what else
/// the machine does.
const ELSEWHERE: &[&str] = &[
    "\"/proc/",
    "</proc",
    "\"/sys/",
    "</sys",
    "\"/etc/",
    "</etc",
    "\"/lib",
    "</lib",
    "\"/usr/",
    "</usr",
    "\"/dev/",
    "</dev",
    "<pipe:",
    "<socket:",
    "<anon_inode:",
];

/// What is in memory and answers with no error: where one thread makes such a call, no thread is refused its own of the
/// same number.
const SURE: &[&str] = &["<pipe:", "<socket:", "<anon_inode:"];

/// So many are tried in the test command, spread over all commands; a long run tries all, or as many as
/// `TIDEWHEEL_STORM_CALLS` says.
const FEW: usize = 90;

/// Where a fault once did harm, all calls are tried each time: a record that could not be read for a moment was taken for
/// damaged for ever, and a gc that was killed left jobs without their manifest.
const KNOWN: &[(&str, &str)] = &[("tick", "read"), ("jobs gc", "renameat")];

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Error(&'static str),
}

/// One call of one command, and what happens at it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    case: usize,
    call: &'static str,
    nth: usize,
    fault: Fault,
}

/// A command with the directory that each trial begins with.
struct Prepared {
    case: Case,
    world: World,
    words: Vec<String>,
}

#[test]
fn whatever_call_a_command_dies_or_fails_at_nothing_is_lost_doubled_or_silent() {
    let works = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("strace is missing or may not trace here: no call of a command was made to fail");
        figure::skipped("kills at single calls", "strace is missing or may not trace");
        return;
    }
    let wanted = std::env::var("TIDEWHEEL_STORM_COMMAND").ok();
    let cases = all().into_iter().filter(|case| wanted.as_deref().is_none_or(|wanted| case.name == wanted));
    let prepared: Vec<Prepared> = cases.map(prepare).collect();
    let mut trials: Vec<Trial> =
        prepared.iter().enumerate().flat_map(|(index, prepared)| trials_of(index, prepared)).collect();
    let known = trials.len();
    let given = std::env::var("TIDEWHEEL_STORM_CALLS").ok().map(|count| count.parse::<usize>().unwrap());
    if let Some(most) = given.or_else(|| (!is_full()).then_some(FEW)) {
        let mut random = Random::new("calls");
        let is_known = |trial: &Trial| KNOWN.contains(&(prepared[trial.case].case.name, trial.call));
        let (known, mut others): (Vec<Trial>, Vec<Trial>) = trials.into_iter().partition(is_known);
        while others.len() > most {
            others.swap_remove(random.below(others.len()));
        }
        trials = known.into_iter().chain(others).collect();
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (kills, errors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let prepared = &prepared[trial.case];
                    let came = catch_unwind(AssertUnwindSafe(|| attempt(prepared, trial)));
                    let came = came.unwrap_or_else(|panic| Err(said(&*panic)));
                    match came {
                        Ok(false) => {}
                        Ok(true) if trial.fault == Fault::Kill => drop(kills.fetch_add(1, Ordering::Relaxed)),
                        Ok(true) => drop(errors.fetch_add(1, Ordering::Relaxed)),
                        Err(what) => {
                            let of = format!(
                                "`{}`, {} number {}, {:?}: {what}",
                                prepared.case.name, trial.call, trial.nth, trial.fault
                            );
                            println!("{of}");
                            failures.lock().unwrap().push(of);
                        }
                    }
                }
            });
        }
    });
    let (kills, errors) = (kills.into_inner(), errors.into_inner());
    let failures = failures.into_inner().unwrap();
    let commands = prepared.len();
    println!("{commands} commands, {known} faults known, {kills} kills and {errors} errors at single calls");
    figure::counted("commands whose calls are made to fail", commands);
    figure::counted("kills at single calls", kills);
    figure::counted("errors at single calls", errors);
    assert!(
        failures.is_empty(),
        "{} of {} trials failed:\n{}",
        failures.len(),
        trials.len(),
        failures.join("\n")
    );
    assert!((kills + errors) * 2 > trials.len(), "most faults meet their call: {kills} and {errors}");
}

/// Returns what a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn prepare(case: Case) -> Prepared {
    let world = World::new();
    fs::create_dir(world.path("seen")).unwrap();
    let words = (case.prepare)(&world);
    eventually("nothing is under way", || world.processes().is_empty());
    Prepared { case, world, words }
}

/// Returns a directory like the prepared one. A new inode makes the index of the jobs stale, so that a pass mends it
/// where a pass changes nothing else.
fn copy_of(prepared: &Prepared) -> World {
    let world = World::new();
    fs::remove_dir_all(world.path("")).unwrap();
    copy(&prepared.world.path(""), &world.path(""));
    if prepared.case.is_at_rest {
        tick(&world);
    }
    world
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Runs the command under `strace`, which follows its threads, and not what it starts.
fn traced(world: &World, prepared: &Prepared, options: &[&str]) -> (Ran, String) {
    let record = world.outside().join("calls");
    let mut command = Command::new("strace");
    world.settle_in(&mut command);
    command.args(["-f", "-b", "execve", "-qq", "-e", "signal=none", "-s", "0"]).args(options);
    command.arg("-o").arg(&record).arg("--").arg(env!("CARGO_BIN_EXE_tidewheel")).args(&prepared.words);
    if let Some(lock) = handed_over(world, &prepared.words) {
        command.stdin(lock);
    }
    let ran = Ran::of(&mut command);
    (ran, fs::read_to_string(record).unwrap_or_default())
}

/// Returns the lock that a supervisor gets from the process that starts it.
fn handed_over(world: &World, words: &[String]) -> Option<File> {
    let [supervisor, _, id] = words else { return None };
    (supervisor == "__workflow-node").then(|| {
        let lock = File::options().read(true).write(true).open(world.in_jobs(id).join("run.lock")).unwrap();
        lock.try_lock().unwrap();
        lock
    })
}

/// Runs the command once without any fault, and returns what may happen at each of its calls.
fn trials_of(case: usize, prepared: &Prepared) -> Vec<Trial> {
    let world = copy_of(prepared);
    let names: Vec<String> = CALLS.iter().map(|call| format!("?{}", call.name)).collect();
    let (ran, record) = traced(&world, prepared, &["-y", "-e", &format!("trace={}", names.join(","))]);
    assert!((prepared.case.is_done)(&world, &prepared.words), "{}: {ran:?}", prepared.case.name);
    // Each thread counts its own calls.
    let mut made: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut ours: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut sure: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for line in record.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        if let Some((name, arguments)) = rest.trim_start().split_once('(') {
            let count = made.entry((name, thread)).or_default();
            *count += 1;
            if !ELSEWHERE.iter().any(|place| arguments.contains(place)) {
                ours.entry(name).or_default().insert(*count);
            }
            if SURE.iter().any(|place| arguments.contains(place)) {
                sure.entry(name).or_default().insert(*count);
            }
        }
    }
    let mut trials = Vec::new();
    for call in CALLS {
        for nth in ours.get(call.name).into_iter().flatten().copied() {
            let is_sure = sure.get(call.name).is_some_and(|sure| sure.contains(&nth));
            // A store has threads that wake each other by a write to memory, at no certain moment.
            let is_sure = is_sure || call.name == "write" && prepared.case.kept == Kept::Store;
            let error = (!is_sure).then(|| Fault::Error(call.errors[nth % call.errors.len()]));
            let faults = call.kills.then_some(Fault::Kill).into_iter().chain(error);
            trials.extend(faults.map(|fault| Trial { case, call: call.name, nth, fault }));
        }
    }
    assert!(trials.len() > 20, "{}: {} calls", prepared.case.name, trials.len());
    trials
}

/// Lets one call of a command fail, and looks at what a person finds. Returns whether the call was made.
fn attempt(prepared: &Prepared, trial: &Trial) -> Result<bool, String> {
    let (case, words) = (&prepared.case, &prepared.words);
    let world = copy_of(prepared);
    let what = match trial.fault {
        Fault::Kill => "signal=KILL".to_owned(),
        Fault::Error(error) => format!("error={error}"),
    };
    let (call, nth) = (trial.call, trial.nth);
    let options = [format!("trace={call}"), format!("inject={call}:{what}:when={nth}")];
    let (ran, record) = traced(&world, prepared, &["-e", &options[0], "-e", &options[1]]);
    let is_met = match trial.fault {
        Fault::Kill => ran.code.is_none(),
        Fault::Error(_) => record.contains("(INJECTED)"),
    };
    if let Fault::Error(_) = trial.fault {
        has_spoken(&world, prepared, trial, &ran, is_met)?;
    }
    let told = look(&world, case)?;
    let of_jobs = case.kept == Kept::Jobs;
    if of_jobs {
        let ran = world.run(&["tick"]);
        if ran.code != Some(0) {
            return Err(format!("the next tick fails: {ran:?}"));
        }
    }
    if case.is_repeated {
        let again = world.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        if !matches!(again.code, Some(0 | 1 | 10)) || again.code != Some(0) && again.err.is_empty() {
            return Err(format!("the same command again: {again:?}"));
        }
    }
    if of_jobs {
        settle(&world);
    }
    if !(case.is_done)(&world, words) {
        return Err(format!("it is not done in the end, after {ran:?}"));
    }
    let later = look(&world, case)?;
    for (id, mut lines) in told {
        // An attempt that is in the log and not in the record was never begun, and is begun anew.
        if lines.last().is_some_and(|line| line.contains("\"dispatched\"")) {
            lines.pop();
        }
        // What gc removed has no log any more.
        if later.get(&id).is_some_and(|later| !later.starts_with(&lines)) {
            return Err(format!("the log of {id} was {lines:?} and is {:?}", later[&id]));
        }
    }
    in_order(&world, case)?;
    Ok(is_met)
}

/// Checks what a command said that met an error: it did what was asked, or says that it did not.
fn has_spoken(
    world: &World,
    prepared: &Prepared,
    trial: &Trial,
    ran: &Ran,
    is_met: bool,
) -> Result<(), String> {
    let is_silent = ran.err.is_empty() && ran.out.is_empty() && !is_supervisor(&prepared.words);
    match ran.code {
        Some(0) if ran.err.contains("warning") || ran.out.contains("warning") => Ok(()),
        Some(0) if !(prepared.case.is_done)(world, &prepared.words) => {
            Err(format!("it says that all is well, and did nothing: {ran:?}"))
        }
        Some(0) => Ok(()),
        // The loader of the system found no library, and we never began.
        Some(127) if ran.err.contains("loading shared libraries") => Ok(()),
        // The standard library takes it for granted that a pipe can be read, and no pipe answers with an error.
        Some(101) if trial.call == "read" && ran.err.contains("library/std/src/process.rs") => Ok(()),
        Some(_) if ran.err.contains("panicked") => Err(format!("it panics: {ran:?}")),
        Some(1 | 10) if !is_met => Err(format!("it failed without a fault: {ran:?}")),
        // Where the words themselves could not be written, there are none.
        Some(1 | 10) if is_silent && trial.call != "write" => {
            Err(format!("it fails without a word: {ran:?}"))
        }
        Some(1 | 10) => Ok(()),
        Some(_) | None => Err(format!("it ends strangely: {ran:?}")),
    }
}

/// Returns whether this is the command that supervises a job, which says what it has to say in a file.
fn is_supervisor(words: &[String]) -> bool {
    words[0] == "__workflow-node"
}

/// Looks at everything as a person would, and returns the whole lines of the logs of the jobs.
fn look(world: &World, case: &Case) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut told = BTreeMap::new();
    if case.kept != Kept::Jobs {
        return Ok(told);
    }
    for id in world.job_dirs() {
        world.record(&id);
        let text = fs::read_to_string(world.in_jobs(&id).join("events.jsonl")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        told.insert(id, whole.lines().map(str::to_owned).collect());
    }
    let ran = world.run(&["runs", "list", "--format", "json"]);
    if ran.code != Some(0) || ran.out.contains("\"incomplete\"") {
        return Err(format!("a run is there in parts: {ran:?}"));
    }
    Ok(told)
}

/// Lets every job of a run come to its end.
fn settle(world: &World) {
    eventually("every job is over", || {
        let jobs: Vec<String> = manifests(world).into_values().flatten().collect();
        let is_over = jobs.iter().all(|id| !is_active(&world.status(id)));
        if !is_over {
            tick(world);
        }
        is_over
    });
    eventually("nobody is left", || world.processes().is_empty());
}

/// Checks that the doctor finds nothing broken, that no attempt ran twice and that nothing ran that no run asked for.
fn in_order(world: &World, case: &Case) -> Result<(), String> {
    let arguments = match case.kept {
        Kept::Store => &["doctor", "--store", "runs.db", "--format", "json"][..],
        Kept::Jobs | Kept::Files => &["doctor", "--format", "json"],
    };
    let ran = world.run(arguments);
    let found: Value = serde_json::from_str(&ran.out).map_err(|error| format!("{error}: {ran:?}"))?;
    let findings = found["findings"].as_array().unwrap().iter();
    let broken: Vec<&Value> = findings.filter(|finding| finding["level"] == "broken").collect();
    if !broken.is_empty() {
        return Err(format!("the doctor finds: {broken:?}"));
    }
    if world.path("twice").exists() {
        return Err(format!("an attempt ran twice: {:?}", fs::read_to_string(world.path("twice"))));
    }
    let runs = manifests(world);
    let jobs = if case.kept == Kept::Jobs { world.job_dirs() } else { Vec::new() };
    for id in jobs {
        let record = world.record(&id);
        let attempts = (1..100).filter(|attempt| world.path(&format!("seen/{id}.{attempt}")).exists());
        let last = record["metadata"]["workflow_node_attempt"].as_u64().unwrap_or(0);
        let run = record["metadata"]["workflow_run_id"].as_str().unwrap_or_default();
        let most = if runs.contains_key(run) { last } else { 0 };
        if attempts.max().unwrap_or(0) > most {
            return Err(format!("an attempt ran that is not recorded: {record}"));
        }
        if record["status"] == "succeeded"
            && !case.is_elsewhere
            && !world.path(&format!("seen/{id}.{last}")).exists()
        {
            return Err(format!("it succeeded without running: {record}"));
        }
    }
    Ok(())
}
