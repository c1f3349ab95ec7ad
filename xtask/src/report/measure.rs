//! Runs every benchmark once for the report and keeps where, when and how long; a benchmark that fails is told and
//! leaves its figures out, and the others go on.
#![expect(clippy::print_stderr, reason = "showing progress is the job of this binary")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::conditions::{Conditions, Taken};
use crate::bench;
use crate::command::Failure;
use crate::step::{Seconds, Step, workspace_root};

/// Where figures and conditions are kept between the measurement and the page.
pub(crate) struct Kept {
    pub(crate) folder: PathBuf,
}

impl Kept {
    /// Returns the place of this checkout.
    pub(crate) fn here() -> Self {
        Self { folder: workspace_root().join("target/bench-report") }
    }

    /// Returns the file of the lines that our own benchmarks write.
    pub(crate) fn lines(&self) -> PathBuf {
        self.folder.join("figures.jsonl")
    }

    /// Returns the folder of criterion.
    pub(crate) fn criterion(&self) -> PathBuf {
        self.folder.join("criterion")
    }

    /// Returns the file of the conditions.
    pub(crate) fn conditions(&self) -> PathBuf {
        self.folder.join("conditions.json")
    }

    /// Begins anew, so that no figure of an earlier run stands beside one of this.
    fn clear(&self) -> Result<(), Failure> {
        let failed = |source| Failure::File { path: self.folder.clone(), source };
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        std::fs::create_dir_all(&self.folder).map_err(failed)
    }
}

/// Measures everything.
pub(crate) fn measure(kept: &Kept, is_quick: bool) -> Result<Conditions, Failure> {
    let mut conditions = Conditions::now(is_quick);
    kept.clear()?;
    let planned = planned(is_quick);
    let (began, count) = (Instant::now(), planned.len());
    let mut without = None;
    for (index, plan) in planned.into_iter().enumerate() {
        let so_far = Seconds(began.elapsed());
        eprintln!("==> report: {} of {count}, {} ({so_far} so far)", index + 1, plan.name);
        if without == Some(plan.needs) {
            eprintln!("==> {}: {LEFT_OUT}", plan.name);
            conditions.steps.push(Taken { trouble: Some(LEFT_OUT.to_owned()), ..plan.untaken() });
            continue;
        }
        let taken = take(&plan, kept, is_quick);
        // What is measured quickly only shows that all can be measured, and what could not be built is not measured.
        if plan.name == BUILD && taken.trouble.is_none() && !is_quick {
            eprintln!("==> report: waiting until the machine is at rest");
            conditions.come_to_rest();
            if conditions.was_busy() {
                eprintln!("==> report: others use this machine now, so that the figures will say little");
            }
        }
        if taken.trouble.is_some() && plan.is_needed {
            without = Some(plan.needs);
        }
        conditions.steps.push(taken);
        // After each, so that a report that was interrupted has a page all the same.
        let path = kept.conditions();
        conditions.keep(&path).map_err(|source| Failure::File { path, source })?;
    }
    Ok(conditions)
}

/// The step that builds, and measures nothing.
pub(crate) const BUILD: &str = "build";

/// What is said of a step that could not succeed.
const LEFT_OUT: &str = "left out, since what it needs did not succeed";

/// A step of the plan.
struct Plan {
    name: &'static str,
    step: Step,
    /// What the step belongs to; if one that is needed fails, the others are left out.
    needs: Build,
    is_needed: bool,
}

impl Plan {
    fn untaken(&self) -> Taken {
        // Without the variables, which name a path of this machine.
        let command = self.step.to_string();
        Taken { name: self.name.to_owned(), command, seconds: 0.0, trouble: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    Ours,
    Peers,
}

/// Our benchmarks, in the order in which they run. Those of jobs make and delete many files, which slows some file
/// systems for a minute, and so they come last.
const BENCHMARKS: [(&str, Harness); 9] = [
    ("decide", Harness::Criterion),
    ("resolve", Harness::Criterion),
    ("growth", Harness::Own),
    ("driver", Harness::Own),
    ("parallel", Harness::Own),
    ("durable", Harness::Own),
    ("timers", Harness::Own),
    ("append", Harness::Own),
    ("jobs", Harness::Criterion),
];

/// Who reads the options of a benchmark. Our own harness takes words, and no options of criterion's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harness {
    Criterion,
    Own,
}

/// Less than criterion's own 3 and 5 seconds: the whole report should be over in 25 minutes.
const FULL: [&str; 3] = ["--", "--warm-up-time=1", "--measurement-time=3"];
const QUICK: [&str; 4] = ["--", "--warm-up-time=0.1", "--measurement-time=0.2", "--sample-size=10"];

fn planned(is_quick: bool) -> Vec<Plan> {
    let ours = |name, step, is_needed| Plan { name, step, needs: Build::Ours, is_needed };
    let peers = |name, step, is_needed| Plan { name, step, needs: Build::Peers, is_needed };
    let mut plans = vec![ours(BUILD, bench::ours(BUILD).with(["--benches", "--no-run"]), true)];
    for (name, harness) in BENCHMARKS {
        let step = bench::ours(name).with(["--bench", name]);
        let step = match (harness, is_quick) {
            (Harness::Own, _) => step,
            (Harness::Criterion, false) => step.with(FULL),
            (Harness::Criterion, true) => step.with(QUICK),
        };
        plans.push(ours(name, step, false));
    }
    plans.push(peers("peers, fetch", bench::peers_fetched(), true));
    plans.push(peers("peers", bench::peers_measured(), false));
    plans
}

fn take(plan: &Plan, kept: &Kept, is_quick: bool) -> Taken {
    let mut step = variables(plan.step.clone(), kept);
    if is_quick {
        step = step.variable("TIDEWHEEL_BENCH_QUICK", "1");
    }
    let began = Instant::now();
    let trouble = step.run().err().map(|error| {
        eprintln!("==> {}: {error}", plan.name);
        error.in_short()
    });
    Taken { seconds: began.elapsed().as_secs_f64(), trouble, ..plan.untaken() }
}

fn variables(step: Step, kept: &Kept) -> Step {
    let path = |path: &Path| path.as_os_str().to_owned();
    // Benchmarks run in the folders of their crates, so that the paths must be whole.
    step.variable("TIDEWHEEL_BENCH_FILE", path(&kept.lines()))
        .variable("CRITERION_HOME", path(&kept.criterion()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_built_before_anything_is_measured_and_the_peers_come_last() {
        let plans = planned(false);
        let shown: Vec<String> = plans.iter().map(|plan| plan.step.to_string()).collect();
        let ours = "cargo bench -p tidewheel-core -p tidewheel-store -p tidewheel-runner -p tidewheel-cli";
        assert_eq!(shown[0], format!("{ours} --benches --no-run"));
        assert_eq!(shown[1], format!("{ours} --bench decide -- --warm-up-time=1 --measurement-time=3"));
        assert_eq!(shown[3], format!("{ours} --bench growth"));
        assert!(shown[11].starts_with("cargo run --release"), "{}", shown[11]);
        assert_eq!(plans.len(), 12);
    }

    #[test]
    fn quick_measurements_are_short() {
        let jobs = planned(true).into_iter().find(|plan| plan.name == "jobs").unwrap();
        let shown = jobs.step.to_string();
        assert!(shown.ends_with("-- --warm-up-time=0.1 --measurement-time=0.2 --sample-size=10"), "{shown}");
    }

    #[test]
    fn every_benchmark_of_the_workspace_is_run() {
        for of in ["core", "store", "runner", "cli"] {
            let folder = workspace_root().join("crates").join(of).join("benches");
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                let uses_criterion = std::fs::read_to_string(&path).unwrap().contains("criterion_main!");
                let (_, harness) = BENCHMARKS.iter().find(|(known, _)| *known == name).unwrap();
                assert!(!uses_criterion || *harness == Harness::Criterion, "{name}");
            }
        }
    }
}
