//! `tidewheel jobs schedule --watch`: the schedule, drawn again and again in place.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use tidewheel_core::view::jobs::{Buckets, Row, Schedule, latest_line, watched};
use tidewheel_runner::job::LogFile;
use tidewheel_store::jobs::JobStore as _;

use super::schedule::{Arguments, summary};
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{Opened, unfit};
use crate::output;
use crate::store::now;
use crate::terminal;
use crate::view::columns::cut;
use crate::view::logs::plain;

/// Clears the screen and goes to its first corner.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// So much of the end of a log is read.
const TAIL: u64 = 16 * 1024;

/// Draws the schedule until somebody has seen enough.
pub(super) fn run(opened: &Opened, arguments: &Arguments) -> Result<Exit, Ending> {
    let is_seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if !is_seen || !arguments.has_ansi() {
        let message = "`--watch` requires an interactive TTY with ANSI enabled; rerun without `--watch` for static output.";
        return Err(CommandError::new(Code::NotWatched, message).into());
    }
    loop {
        output::text(&format!("{CLEAR}{}", frame(opened, arguments)?))?;
        std::thread::sleep(Duration::from_millis(arguments.interval_ms()));
    }
}

/// Draws it once.
fn frame(opened: &Opened, arguments: &Arguments) -> Result<String, CommandError> {
    let mut jobs = opened.store().jobs().map_err(|error| unfit(&error))?;
    let focus = arguments.focus(&mut jobs)?;
    let schedule = Schedule::of(&jobs.briefs, &arguments.ask(focus.as_ref()));
    let rows: Vec<Row<'_>> = schedule.rows().collect();
    let Buckets { queued, waiting, running, blocked, terminal } =
        Buckets::of(rows.iter().map(|row| row.status));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Schedule Watch | refreshed {} | interval={}ms | top={}",
        tidewheel_core::view::absolute(now()),
        arguments.interval_ms(),
        arguments.top()
    );
    let _ = writeln!(
        text,
        "State: queued={queued} waiting={waiting} running={running} blocked={blocked} terminal={terminal}\n"
    );
    if schedule.is_empty() {
        text.push_str("Schedule (Summary)\n(no scheduled jobs)\n");
    } else {
        text.push_str(&summary(&schedule, arguments.top()));
    }
    text.push_str("\nRunning Job Output\n");
    match watched(&rows, focus.as_ref().map(tidewheel_core::job::JobId::as_str), arguments.top()) {
        Some(job) => {
            let latest = latest(&opened.place.data.join("jobs").join(job));
            let latest = latest.unwrap_or_else(|| "(no output yet)".to_owned());
            let _ = writeln!(text, "Running job: {job}\nLatest line: {latest}");
        }
        None => text.push_str("No running job\nLatest line: (none)\n"),
    }
    // A line that the terminal breaks would push the others out of sight.
    let canvas = terminal::canvas();
    Ok(text.lines().fold(String::new(), |mut drawn, line| {
        let _ = writeln!(drawn, "{}", cut(line, canvas.width, canvas));
        drawn
    }))
}

/// Returns the last line of the log that was written last; of two equally old ones, of the complaints.
fn latest(dir: &Path) -> Option<String> {
    let tail = |stream: &str| {
        let mut file = LogFile::read(&dir.join(format!("{stream}.log"))).ok()?;
        let metadata = file.metadata().ok()?;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL))).ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        let line = latest_line(&String::from_utf8_lossy(&bytes))?.to_owned();
        Some((metadata.modified().ok()?, format!("[{stream}] {}", plain(&line))))
    };
    let (stdout, stderr) = (tail("stdout"), tail("stderr"));
    match (stdout, stderr) {
        (Some(out), Some(err)) => Some(if err.0 >= out.0 { err.1 } else { out.1 }),
        (one, other) => one.or(other).map(|(_, line)| line),
    }
}
