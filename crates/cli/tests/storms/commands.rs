//! The commands that write, each with what it finds and how a person sees that it did its part.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::process::Command;
use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::policy::Failure;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{RealClock, Sqlite, Store as _};

use crate::flow;
use crate::world::{Ran, World, eventually};

/// A command and what it works on.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What it works on.
    pub(crate) kept: Kept,
    /// Makes what the command finds, and returns its words.
    pub(crate) prepare: fn(&World) -> Vec<String>,
    /// Whether what the command promises is so.
    pub(crate) is_done: fn(&World, &[String]) -> bool,
    /// Whether a person would give the command once more after it failed.
    pub(crate) is_repeated: bool,
    /// Whether a pass changes nothing of what the command finds.
    pub(crate) is_at_rest: bool,
    /// Whether jobs succeed without a process of ours.
    pub(crate) is_elsewhere: bool,
}

/// Where a command keeps what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Jobs in their directory.
    Jobs,
    /// Plain files.
    Files,
    /// Runs in the file of a program.
    Store,
}

/// What every job does: it leaves a mark for its attempt, and notices if one is already there.
const SCRIPT: &str = "mkdir seen/$TIDEWHEEL_JOB_ID.$TIDEWHEEL_ATTEMPT || echo $TIDEWHEEL_JOB_ID >>twice";
/// A job whose supervisor is killed gets another attempt.
const AGAIN: &str = "[[policies]]\nmatch = { default = true }\nmax_retries = 5\nbackoff = \"none\"\n\
                     retryable_errors = [\"lost\"]\n";

impl Case {
    const fn of_jobs(
        name: &'static str,
        prepare: fn(&World) -> Vec<String>,
        is_done: fn(&World, &[String]) -> bool,
    ) -> Self {
        Self {
            name,
            kept: Kept::Jobs,
            prepare,
            is_done,
            is_repeated: true,
            is_at_rest: true,
            is_elsewhere: false,
        }
    }

    const fn of_store(
        name: &'static str,
        prepare: fn(&World) -> Vec<String>,
        is_done: fn(&World, &[String]) -> bool,
    ) -> Self {
        Self { kept: Kept::Store, is_at_rest: false, ..Self::of_jobs(name, prepare, is_done) }
    }
}

/// Returns every command that writes.
pub(crate) fn all() -> Vec<Case> {
    let on_lost = |name, is_repeated, prepare| Case {
        is_at_rest: false,
        is_repeated,
        ..Case::of_jobs(name, prepare, |world, _| {
            world.job_dirs().iter().all(|id| world.status(id) != "running" || is_supervised(world, id))
        })
    };
    let done_elsewhere = |name, prepare| Case {
        is_elsewhere: true,
        ..Case::of_jobs(name, prepare, |world, words| {
            world.record(&words[2])["schedule"]["external"].is_null()
        })
    };
    let sent = |name, prepare| Case::of_store(name, prepare, |world, words| is_sent(world, &words[2]));
    vec![
        Case::of_jobs(
            "run",
            |world| {
                chain(world, SCRIPT);
                words(&["run", "chain"])
            },
            |world, _| !world.job_dirs().is_empty() && !crate::kills::manifests(world).is_empty(),
        ),
        Case::of_jobs(
            "jobs approve",
            |world| words(&["jobs", "approve", &gated(world)]),
            |world, words| {
                let approval = &world.record(&words[2])["schedule"]["approval"];
                approval["state"] == "approved"
            },
        ),
        Case::of_jobs(
            "jobs reject",
            |world| words(&["jobs", "reject", &gated(world), "--reason", "no"]),
            |world, words| world.record(&words[2])["schedule"]["approval"]["state"] == "rejected",
        ),
        Case::of_jobs(
            "jobs cancel",
            |world| words(&["jobs", "cancel", &gated(world)]),
            |world, words| world.status(&words[2]) == "cancelled",
        ),
        Case::of_jobs(
            "runs cancel",
            |world| words(&["runs", "cancel", &run_of(&gated(world))]),
            |world, _| world.job_dirs().iter().all(|id| !crate::is_active(&world.status(id))),
        ),
        Case::of_jobs(
            "jobs retry",
            |world| words(&["jobs", "retry", &failed(world)]),
            |world, words| world.status(&words[2]) != "failed",
        ),
        Case::of_jobs(
            "runs retry",
            |world| words(&["runs", "retry", &run_of(&failed(world))]),
            |world, words| world.status(&format!("wf-{}-one", words[2])) != "failed",
        ),
        Case::of_jobs(
            "jobs gc",
            |world| {
                over(world);
                words(&["jobs", "gc", "--days", "0"])
            },
            |world, _| is_empty(world),
        ),
        Case::of_jobs(
            "runs gc",
            |world| {
                over(world);
                words(&["runs", "gc", "--days", "0"])
            },
            |world, _| is_empty(world),
        ),
        done_elsewhere("jobs complete", |world| {
            let (id, token) = elsewhere(world);
            words(&["jobs", "complete", &id, "--token", &token, "--value", "7"])
        }),
        done_elsewhere("jobs fail", |world| {
            let (id, token) = elsewhere(world);
            words(&["jobs", "fail", &id, "--token", &token, "--reason", "no"])
        }),
        on_lost("tick", true, |world| {
            lost(world);
            words(&["tick"])
        }),
        on_lost("daemon", true, |world| {
            lost(world);
            words(&["daemon", "--until-idle"])
        }),
        on_lost("doctor --fix", true, |world| {
            lost(world);
            fs::remove_file(world.in_jobs("index.live")).unwrap();
            words(&["doctor", "--fix"])
        }),
        // The next pass is what goes on after a supervisor, and not another one.
        on_lost("__workflow-node", false, |world| words(&["__workflow-node", "--job-id", &lost(world)])),
        Case {
            kept: Kept::Files,
            is_at_rest: false,
            ..Case::of_jobs(
                "init",
                |world| {
                    fs::remove_dir_all(world.path(".tidewheel")).unwrap();
                    words(&["init"])
                },
                |world, _| world.run(&["init", "--check"]).code == Some(0),
            )
        },
        sent("runs cancel --store", |world| stored(world, &["cancel", "open"])),
        sent("runs pause --store", |world| stored(world, &["pause", "open"])),
        sent("runs signal --store", |world| stored(world, &["signal", "open", "work", "5"])),
        sent("runs retry --store", |world| stored(world, &["retry", "broken"])),
        Case::of_store(
            "runs gc --store",
            |world| {
                make_store(world);
                words(&["runs", "gc", "--older-than", "0s", "--yes", "--store", "runs.db"])
            },
            |world, _| runs_left(world) == ["open"],
        ),
    ]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Writes a flow of two nodes, of which the second comes after the first.
fn chain(world: &World, script: &str) {
    let nodes = [("one", script, ""), ("two", SCRIPT, "after = [\"one\"]")];
    let nodes = nodes.map(|(id, script, more)| (id.to_owned(), script.to_owned(), more.to_owned()));
    world.flow("chain", &(flow(nodes) + AGAIN));
}

/// Returns the id of the first job of a run that waits for an approval.
fn gated(world: &World) -> String {
    chain(world, SCRIPT);
    format!("wf-{}-one", world.enqueue(&["chain", "--require-approval"]))
}

/// Returns the run of a job that is the first of its run.
fn run_of(id: &str) -> String {
    id.strip_prefix("wf-").unwrap().strip_suffix("-one").unwrap().to_owned()
}

/// Returns a job that failed, and would not fail again.
fn failed(world: &World) -> String {
    chain(world, &format!("{SCRIPT}; test -e works"));
    let id = format!("wf-{}-one", world.enqueue(&["chain"]));
    world.wait(&id);
    assert_eq!(world.status(&id), "failed");
    world.file("works", "");
    id
}

/// Lets two runs come to their ends.
fn over(world: &World) {
    chain(world, SCRIPT);
    for _ in 0..2 {
        let ran = world.run(&["run", "chain", "--follow"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

/// Returns a job that waits for a worker elsewhere, and its token.
fn elsewhere(world: &World) -> (String, String) {
    let produces = "produces.succeeded = [{ custom = { type_id = \"answer\", key = \"k\" } }]";
    let nodes = [("one", produces), ("two", "after = [\"one\"]")];
    let text = flow(nodes.map(|(id, more)| (id.to_owned(), SCRIPT.to_owned(), more.to_owned())));
    let contract = "[[artifact_contracts]]\nid = \"answer\"\nversion = \"v1\"\n[[nodes]]";
    let policy = "[[policies]]\nmatch = { name = \"one\" }\nexecution_mode = \"external\"\n";
    world.flow("chain", &(text.replacen("[[nodes]]", contract, 1) + policy));
    let id = format!("wf-{}-one", world.enqueue(&["chain"]));
    let token = world.record(&id)["schedule"]["external"]["token"].as_str().unwrap().to_owned();
    (id, token)
}

/// Returns a job that is recorded as running, whose supervisor died before its first instruction.
fn lost(world: &World) -> String {
    let id = gated(world);
    let mut command = Command::new("strace");
    world.settle_in(&mut command);
    // The one that is killed is what the command starts; its own start is not counted.
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=execve", "-e"]);
    command.args([
        "inject=execve:signal=KILL:when=1",
        "--",
        env!("CARGO_BIN_EXE_tidewheel"),
        "jobs",
        "approve",
    ]);
    let ran = Ran::of(command.arg(&id));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.status(&id), "running");
    eventually("nothing is under way", || world.processes().is_empty());
    assert!(!is_supervised(world, &id));
    id
}

/// Returns whether a process holds the lock of a job.
fn is_supervised(world: &World, id: &str) -> bool {
    let lock = fs::File::open(world.in_jobs(id).join("run.lock"));
    lock.is_ok_and(|lock| lock.try_lock().is_err())
}

/// Returns whether a person finds no run and no job. What is left of a run whose removal was interrupted is removed when
/// it is a day old, as what is left of one that was not enqueued.
fn is_empty(world: &World) -> bool {
    let listed = |arguments: &[&str], name: &str| world.json(arguments)[name] == serde_json::json!([]);
    listed(&["jobs", "list", "--all"], "jobs") && listed(&["runs", "list"], "runs")
}

/// Makes a store, and returns the words of a command on it.
fn stored(world: &World, command: &[&str]) -> Vec<String> {
    make_store(world);
    words(&[&["runs"], command, &["--no-wait", "--store", "runs.db"]].concat())
}

/// Makes a store with a run that is over, one that failed and one that waits for input, which no process drives.
fn make_store(world: &World) {
    let path = world.path("runs.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let runner = Runner::open_with(&path, RunnerOptions::new()).await.unwrap();
        let work = |x: i64| if x < 0 { Err(Failure::new("below zero")) } else { Ok(x + 1) };
        let workflow = Workflow::new("flow").add(step("work", work)).build().unwrap();
        runner.start("open", &workflow).await.unwrap();
        for (id, input) in [("done", 1_i64), ("broken", -1)] {
            let run = runner.run(id, &workflow, input).await.unwrap();
            run.wait().await.unwrap();
        }
        runner.shutdown().await;
    });
    // The threads of the store end with the runtime, and the last of them tidies up; one that is closed has done so.
    drop(runtime);
    with_store(world, async |_| ());
}

fn with_store<T>(world: &World, look: impl AsyncFnOnce(&Sqlite) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(world.path("runs.db"), Arc::new(RealClock::new())).unwrap();
        let seen = look(&store).await;
        store.close().await;
        seen
    })
}

/// Returns whether something was asked of a run.
fn is_sent(world: &World, run: &str) -> bool {
    with_store(world, async |store| !store.commands_of(&RunId::new(run)).await.unwrap().is_empty())
}

/// Returns the runs that are in the store, each of which can be read.
fn runs_left(world: &World) -> Vec<String> {
    with_store(world, async |store| {
        let page = store.list(tidewheel_store::Filter::default()).await.unwrap();
        let mut left = Vec::new();
        for row in page.rows {
            let log = store.read(&row.id, 0).await.unwrap();
            let events: usize = log.iter().map(|stored| stored.events.events().unwrap().len()).sum();
            assert_eq!(events as u64, row.version, "{} is there in parts", row.id);
            left.push(row.id.to_string());
        }
        left.sort();
        left
    })
}
