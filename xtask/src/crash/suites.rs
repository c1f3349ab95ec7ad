//! The long suites: what each runs, and what its counts are called; runs nothing itself.

use std::num::NonZeroU32;

use crate::step::Step;

/// One suite: the word that chooses it, and what it runs.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) step: Step,
}

/// A line of the table: a count and what holds after each of what was counted.
pub(crate) struct Row {
    /// The name of the figure; figures of the form `NAME/PART` are added up.
    pub(crate) figure: &'static str,
    /// The suite that counts it.
    pub(crate) suite: &'static str,
    /// What holds.
    pub(crate) holds: &'static str,
}

/// Enough kills to meet each window between two writes several times, in a few minutes.
const KILLS_OF_THE_BINARY: NonZeroU32 = NonZeroU32::new(500).expect("invariant: 500 is not zero");

/// As many for the library, which has more windows.
const KILLS_OF_THE_LIBRARY: NonZeroU32 = NonZeroU32::new(2_000).expect("invariant: 2000 is not zero");

/// As many for a process that writes jobs: one is quick to start and to check.
const KILLS_OF_THE_JOB_STORE: NonZeroU32 = NonZeroU32::new(1_000).expect("invariant: 1000 is not zero");

/// What the crash suites read; their own defaults are small, so that `ci` stays quick.
const KILLS_VARIABLE: &str = "TIDEWHEEL_CRASH_KILLS";

/// What the crash suite of the store of jobs reads.
const JOB_STORE_VARIABLE: &str = "TIDEWHEEL_TEST_KILLS";

/// What the suite of stopped writers of a store reads.
const STOPS_VARIABLE: &str = "TIDEWHEEL_TEST_STOPS";

/// What the power failures over jobs read: how many states of the disk are tried. `ci` tries a few.
const POWER_VARIABLE: &str = "TIDEWHEEL_TEST_POWER_STATES";

/// As many states as meet each pair of unsynced writes several times.
const POWER_FAILURES: &str = "20000";

/// What the suite of single calls reads: how many faults are drawn from all of them.
const CALLS_VARIABLE: &str = "TIDEWHEEL_STORM_CALLS";

/// What makes the storms and the foreign texts as many as they get; a small part of them is a part of `ci`.
const STORM_VARIABLE: &str = "TIDEWHEEL_STORM";

/// Returns the suites, with this many kills each.
pub(crate) fn suites(given: Option<NonZeroU32>) -> Vec<Suite> {
    let kills = |usual: NonZeroU32| given.unwrap_or(usual).to_string();
    // One test at a time where each wants the machine for itself.
    let test = |name, package: &str, target: &str, filters: &[&str]| Suite {
        name,
        step: Step::cargo(name, ["test", "-p", package, "--test", target, "--"])
            .with(filters)
            .with(["--test-threads=1", "--nocapture"]),
    };
    let with =
        |suite: Suite, variable, value: String| Suite { step: suite.step.variable(variable, value), ..suite };
    let full = |suite| with(suite, STORM_VARIABLE, "full".to_owned());
    let calls = test("calls", "tidewheel-cli", "storms", &["calls::"]);
    let storms = test("storms", "tidewheel-cli", "storms", &["--skip", "calls::"]);
    vec![
        match given {
            None => full(calls),
            Some(count) => with(calls, CALLS_VARIABLE, count.to_string()),
        },
        // Whoever names a count wants a shorter run: then it is the part that the test command has.
        if given.is_none() { full(storms) } else { storms },
        with(
            test("library", "tidewheel-runner", "crash", &["kills::", "crews::", "failpoints::", "aborts::"]),
            KILLS_VARIABLE,
            kills(KILLS_OF_THE_LIBRARY),
        ),
        with(
            test("power", "tidewheel-store", "store", &["job_power::"]),
            POWER_VARIABLE,
            POWER_FAILURES.to_owned(),
        ),
        with(
            test("job-files", "tidewheel-store", "store", &["job_crash::"]),
            JOB_STORE_VARIABLE,
            kills(KILLS_OF_THE_JOB_STORE),
        ),
        with(
            test("stopped-writers", "tidewheel-store", "store", &["a_process_that_is_stopped_anywhere"]),
            STOPS_VARIABLE,
            kills(KILLS_OF_THE_BINARY),
        ),
        full(test("bits", "tidewheel-store", "store", &["bit_rot::"])),
        full(test("git", "tidewheel-cli", "scenarios", &["git_crashes::"])),
        with(
            test("decide", "tidewheel-cli", "cli", &["crash::"]),
            KILLS_VARIABLE,
            kills(KILLS_OF_THE_BINARY),
        ),
        Suite {
            name: "texts",
            // Optimised, or a million texts through each place would take an hour.
            step: Step::cargo("texts", ["test", "--release", "-p", "tidewheel-cli", "--bins"])
                .with(["--", "foreign"])
                .variable(STORM_VARIABLE, "full"),
        },
    ]
}

const NOT_TWICE: &str = "no job is lost, and none runs an attempt twice";
const AS_UNDISTURBED: &str = "every run ends as one that was not disturbed, each fact is there once, and no work that was over runs again";

/// Every count, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    Row {
        figure: "kills at single calls",
        suite: "calls",
        holds: "every record can be read, a run is there as a whole or not at all, no attempt runs twice, the log keeps \
                its decisions, the next pass and the same command succeed, and `doctor` finds nothing broken",
    },
    Row {
        figure: "errors at single calls",
        suite: "calls",
        holds: "as above; and a command that failed says so, one that says nothing did its part, and none panics",
    },
    Row { figure: "kills of commands", suite: "storms", holds: NOT_TWICE },
    Row { figure: "kills of schedulers", suite: "storms", holds: NOT_TWICE },
    Row { figure: "kills of racing schedulers", suite: "storms", holds: NOT_TWICE },
    Row { figure: "kills of daemons", suite: "storms", holds: NOT_TWICE },
    Row { figure: "kills of supervisors", suite: "storms", holds: NOT_TWICE },
    Row {
        figure: "kills on the way from a spec to a merged branch",
        suite: "storms",
        holds: "the branch is merged once, and nothing is left behind",
    },
    Row {
        figure: "stops of commands",
        suite: "storms",
        holds: "every job runs once: a process that slept writes nothing that is no longer so",
    },
    Row { figure: "stops of schedulers", suite: "storms", holds: "as above" },
    Row { figure: "stops of daemons", suite: "storms", holds: "as above" },
    Row { figure: "stops of supervisors", suite: "storms", holds: "as above" },
    Row {
        figure: "hostile names",
        suite: "storms",
        holds: "a name reaches nothing outside of the directory, and steers no terminal",
    },
    Row { figure: "kills of library workers, 1 process", suite: "library", holds: AS_UNDISTURBED },
    Row { figure: "kills of library workers, 2 processes", suite: "library", holds: AS_UNDISTURBED },
    Row { figure: "kills of library workers, 4 processes", suite: "library", holds: AS_UNDISTURBED },
    Row {
        figure: "kills of library workers under limits",
        suite: "library",
        holds: "as above; and rates, slots and budgets hold over all processes together",
    },
    Row { figure: "stops of library workers", suite: "library", holds: AS_UNDISTURBED },
    Row {
        figure: "power failures over jobs",
        suite: "power",
        holds: "what was answered is there, a run is there as a whole or not at all, and every record can be read",
    },
    Row {
        figure: "kills of writers of jobs",
        suite: "job-files",
        holds: "every record is whole, and the index says what the records say",
    },
    Row {
        figure: "stops of writers of a store",
        suite: "stopped-writers",
        holds: "no other process waits for ever, and the one that is stopped is named",
    },
    Row {
        figure: "flipped bits",
        suite: "bits",
        holds: "nothing that was stored changes or is missing without a word",
    },
    Row {
        figure: "kills at calls of git",
        suite: "git",
        holds: "a retry ends where an undisturbed run ends",
    },
    Row {
        figure: "kills of `decide`",
        suite: "decide",
        holds: "what was printed is right, and the rest can be asked again",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, given: Option<u32>) -> String {
        let suites = suites(given.and_then(NonZeroU32::new));
        suites.into_iter().find(|suite| suite.name == name).unwrap().step.to_string()
    }

    #[test]
    fn the_suites_get_the_count_and_the_storms_are_whole() {
        let store = "cargo test -p tidewheel-store --test store -- job_crash:: --test-threads=1 --nocapture";
        assert_eq!(shown("job-files", None), format!("TIDEWHEEL_TEST_KILLS=1000 {store}"));
        assert_eq!(shown("job-files", Some(7)), format!("TIDEWHEEL_TEST_KILLS=7 {store}"));
        let storms = "cargo test -p tidewheel-cli --test storms --";
        let end = "--test-threads=1 --nocapture";
        assert_eq!(shown("calls", None), format!("TIDEWHEEL_STORM=full {storms} calls:: {end}"));
        assert_eq!(shown("calls", Some(7)), format!("TIDEWHEEL_STORM_CALLS=7 {storms} calls:: {end}"));
        assert_eq!(shown("storms", None), format!("TIDEWHEEL_STORM=full {storms} --skip calls:: {end}"));
        assert_eq!(shown("storms", Some(7)), format!("{storms} --skip calls:: {end}"));
        let power = "cargo test -p tidewheel-store --test store -- job_power:: --test-threads=1 --nocapture";
        assert_eq!(shown("power", Some(7)), format!("TIDEWHEEL_TEST_POWER_STATES=20000 {power}"));
    }

    #[test]
    fn every_count_is_of_a_suite() {
        let suites = suites(None);
        for row in ROWS {
            assert!(suites.iter().any(|suite| suite.name == row.suite), "{}", row.figure);
        }
    }
}
