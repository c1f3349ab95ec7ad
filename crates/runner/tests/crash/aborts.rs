//! One step aborts the process, again and again, beside many that are innocent: it alone is put aside.

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{Runner, RunnerOptions};
use tidewheel_store::{Status, Store as _};

use crate::other::{Folder, Other, Part, store_in};
use crate::proof::Lives;

const INNOCENT: usize = 100;
/// The run that aborts stands in the middle of the others.
const ABORTER: usize = INNOCENT / 2;

fn id(number: usize) -> String {
    format!("run-{number:03}")
}

fn workflow() -> Workflow {
    let work = async |number: usize| {
        if number == ABORTER {
            std::process::abort();
        }
        // Long enough that others are under way, too, when the process ends.
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        number
    };
    Workflow::new("some abort").add(step("work", work)).build().unwrap()
}

/// Starts all runs, or goes on with them, until each has an end.
pub(crate) async fn drive(folder: &Folder) {
    let options = RunnerOptions::new().max_concurrency(8).lease(Span::from_secs(5));
    let runner = Runner::open_with(folder.database(), options).await.unwrap();
    let workflow = workflow();
    let mut tasks = Vec::new();
    for number in 0..=INNOCENT {
        let (runner, workflow) = (runner.clone(), workflow.clone());
        tasks.push(tokio::spawn(async move {
            let run = runner.start(id(number).as_str(), &workflow).await.unwrap();
            // One that was put aside takes no input, and had it before.
            drop(run.input_keyed("one", number).await);
            run.wait().await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    runner.shutdown().await;
}

#[test]
fn a_step_that_aborts_the_process_is_put_aside_and_its_neighbours_end() {
    const MOST_LIVES: usize = 20;
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder(temporary.path().to_owned());
    let mut lives = Lives::default();
    let mut aborts = 0;
    while let Some(signal) = Other::start(Part::Abort, &folder, lives.begin()).died_of() {
        assert_eq!(signal, rustix::process::Signal::ABORT.as_raw());
        aborts += 1;
        assert!(aborts < MOST_LIVES, "it was not put aside");
    }
    println!("{aborts} aborts until the step was put aside");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = store_in(&folder.0);
        for number in 0..=INNOCENT {
            let record = store.find(&RunId::new(&id(number))).await.unwrap().unwrap();
            if number == ABORTER {
                assert_eq!(record.status, Status::Parked);
                assert_eq!(record.reason.as_deref(), Some("`work` was lost 3 times with its process"));
            } else {
                assert_eq!(record.status, Status::Completed, "{}: {:?}", record.id, record.reason);
            }
        }
    });
    // Nothing is left that was noted of what was under way.
    let beside = std::fs::read_dir(folder.0.join("runs.db-tidewheel")).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("executes-")).collect::<Vec<_>>(), [""; 0]);
}
