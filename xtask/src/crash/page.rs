//! `docs/reliability.md`: what is tried, how, how often in the last run and what held. Every count comes from a suite that
//! passed; a count that is not there is said to be missing.

use std::fmt::Write as _;

use super::suites::{ROWS, Row};
use crate::report::{Conditions, Figures, code, date, minutes, plain, table, thousands};

/// The page, in the root of the workspace.
pub(crate) const PAGE: &str = "docs/reliability.md";

/// The last good run of a suite.
pub(crate) struct Run {
    pub(crate) suite: &'static str,
    pub(crate) conditions: Conditions,
    pub(crate) figures: Figures,
}

/// Returns the page.
pub(crate) fn page(runs: &[Run]) -> String {
    let mut text = String::from(BEGIN);
    let rows: Vec<Vec<String>> = ROWS
        .iter()
        .map(|row| vec![plain(row.figure).replace("\\`", "`"), count(row, runs), row.holds.to_owned()])
        .collect();
    text.push_str(&table(&["what", "in the last run", "what holds after each"], &rows));
    text.push_str(HOW);
    text.push_str("## The last run of each suite\n\n");
    let rows: Vec<Vec<String>> = runs.iter().map(of_run).collect();
    text.push_str(&table(&["suite", "command", "when", "commit", "took"], &rows));
    text.push_str(&machine(runs));
    text
}

/// Returns the counts as a table for a terminal.
pub(crate) fn table_for_people(runs: &[Run]) -> String {
    let widest = ROWS.iter().map(|row| row.figure.len()).max().unwrap_or(0);
    let mut text = String::from("==> crash: what held\n");
    for row in ROWS {
        let _ = writeln!(text, "    {:widest$}  {:>11}", row.figure, count(row, runs));
    }
    text
}

/// Returns how many there were, with the parts added up.
fn count(row: &Row, runs: &[Run]) -> String {
    let Some(run) = runs.iter().find(|run| run.suite == row.suite) else { return "not run".to_owned() };
    if let Some(why) = run.figures.skipped.get(row.figure) {
        return format!("not tried: {}", plain(why));
    }
    let is_of_row =
        |id: &str| id.strip_prefix(row.figure).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let counts = run.figures.measured.iter().filter(|(id, _)| is_of_row(id));
    let sum: f64 = counts.map(|(_, figure)| figure.median).sum();
    // Counts are whole.
    thousands(format!("{sum:.0}").parse().unwrap_or(0))
}

fn of_run(run: &Run) -> Vec<String> {
    let conditions = &run.conditions;
    let command = conditions.steps.first().map(|step| code(&step.command)).unwrap_or_default();
    let commit = conditions.commit.as_deref().map_or_else(
        || "not known".to_owned(),
        |commit| {
            let short: String = commit.chars().take(12).collect();
            format!("{}{}", code(&short), if conditions.is_changed { ", with changes" } else { "" })
        },
    );
    vec![run.suite.to_owned(), command, date(conditions.began), commit, minutes(conditions.seconds())]
}

/// Says on what machine the last of the runs was.
fn machine(runs: &[Run]) -> String {
    let Some(last) = runs.iter().map(|run| &run.conditions).max_by_key(|conditions| conditions.began) else {
        return String::new();
    };
    let known = |value: Option<String>| value.map_or_else(|| "not known".to_owned(), |value| plain(&value));
    let memory = last.memory_kib.map(|kib| format!("{:.1} GiB", kib as f64 / 1024.0 / 1024.0));
    format!(
        "The machine: {}, {} cores, {} of memory, Linux {}, {}.\n",
        known(last.processor.clone()),
        known(last.cores.map(|cores| cores.to_string())),
        known(memory),
        known(last.kernel.clone()),
        known(last.toolchain.clone()),
    )
}

const BEGIN: &str = "\
# Reliability

Written by `cargo xtask crash`: every count comes from a run in which nothing was lost, doubled or silent, and only the \
explanations are written by hand.
A part of each suite is in the test command, so that each commit passes it.
The counts are those of the last run of each suite, whose command at the end of the page says how long a run it was; without \
a COUNT, `cargo xtask crash` tries all single calls and ten times as many of the storms.

## What is tried, and what holds

";

const HOW: &str = "\
## How

- **Single calls**: `strace` runs each command that writes, counts its calls that open, write, sync, rename, link, remove, \
read and start threads, and then runs it again for each of them: once the process is killed as it makes the call, once the call \
is answered with an error (`EIO`, `ENOSPC`, `EMFILE`, `ENFILE`, `EAGAIN`).
  The commands are `run`, `tick`, `daemon`, `init`, `doctor --fix`, the supervisor of a job, `approve`, `reject`, `cancel`, \
`retry`, `gc`, `complete` and `fail` of jobs and of runs, and what is asked of a store.
  Calls are counted for each thread, so that a call which several threads make at the same place is met in one of them.
  Without `strace` the seams of the library remain: the places in a write of the store at which a process dies, and a store \
whose calls fail.
- **Kills and stops**: processes get `SIGKILL`, or `SIGSTOP` and later `SIGCONT`, at random moments while others go on; each \
job and each step leaves a mark for its attempt outside of what Tidewheel keeps, and in the end the marks are compared with the \
records and the logs.
- **Power failures**: the calls of a process are recorded, and a file system in memory keeps, drops, tears and reorders what \
was not synced before the power failed; what was answered to the process has to be there.
- **Flipped bits**: one bit of a database or of its log is changed; a reader has to notice, or find everything as it was.
- **Names**: paths, escapes, options, control characters and shells in every place that takes a name.

A random suite says its seed, and `TIDEWHEEL_STORM_SEED` or `TIDEWHEEL_CRASH_SEED` repeats it.
What is not tried: disks that lie about a sync, memory that fails, and file systems over a network.

";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Taken;

    fn run() -> Run {
        let mut figures = Figures::default();
        figures.add_lines(concat!(
            r#"{"id":"kills at single calls","unit":"count","median":1234,"samples":1}"#,
            "\n",
            r#"{"id":"errors at single calls","skipped":"strace is missing"}"#,
        ));
        let step = Taken {
            name: "calls".to_owned(),
            command: "A=full cargo test | x".to_owned(),
            seconds: 61.0,
            trouble: None,
        };
        let conditions = Conditions {
            began: 1_794_830_400,
            commit: Some("0123456789abcdef".to_owned()),
            cores: Some(2),
            steps: vec![step],
            ..Conditions::default()
        };
        Run { suite: "calls", conditions, figures }
    }

    #[test]
    fn the_page_says_what_was_counted_what_was_not_run_and_with_which_command() {
        let page = page(&[run()]);
        assert!(page.contains("| kills at single calls | 1,234 | every record can be read"), "{page}");
        assert!(
            page.contains("| errors at single calls | not tried: strace is missing | as above"),
            "{page}"
        );
        assert!(page.contains("| power failures over jobs | not run |"), "{page}");
        assert!(page.contains("| kills of `decide` | not run |"), "{page}");
        let last =
            r"| calls | `A=full cargo test \| x` | 2026-11-16 12:00 UTC | `0123456789ab` | 1 min 1 s |";
        assert!(page.contains(last), "{page}");
        assert!(page.ends_with(
            "The machine: not known, 2 cores, not known of memory, Linux not known, not known.\n"
        ));
    }

    #[test]
    fn parts_of_a_count_are_added_up() {
        let mut run = run();
        run.figures.add_lines(concat!(
            r#"{"id":"hostile names/types","unit":"count","median":1000000,"samples":1}"#,
            "\n",
            r#"{"id":"hostile names/records","unit":"count","median":2000,"samples":1}"#,
        ));
        run.suite = "storms";
        let row = ROWS.iter().find(|row| row.figure == "hostile names").unwrap();
        assert_eq!(count(row, &[run]), "1,002,000");
    }

    #[test]
    fn people_see_every_count_on_a_line() {
        let table = table_for_people(&[run()]);
        assert_eq!(table.lines().count(), ROWS.len() + 1);
        assert!(table.lines().nth(1).unwrap().ends_with("      1,234"), "{table}");
    }
}
