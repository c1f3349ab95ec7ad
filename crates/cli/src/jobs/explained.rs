//! What there is to explain of a job or a run: reads records, events and the ends of logs, looks at the repository, and
//! changes nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tidewheel_core::job::{Brief, Facts, JobEvent, JobEventKind, JobId, Metadata, Question, Record, RunId};
use tidewheel_core::view::jobs::explain::{
    AttemptOutcome, Explanation, OutputLine, Piece, RunExplanation, RunSubject, Subject, Told, World,
    explain_job, explain_run,
};
use tidewheel_runner::job::{LogFile, LogParts};
use tidewheel_runner::probe::Prober;
use tidewheel_store::jobs::{JobStore as _, Jobs};

use super::opened::{Opened, unfit};
use crate::error::CommandError;
use crate::view::logs::plain;

/// So many last lines of each stream are shown of an attempt.
const LINES: usize = 5;

/// No more of a log than this is read for them.
const TAIL: u64 = 8 * 1024;

/// So many questions are asked of the repository; what is not known then is told as the last pass found it.
const MOST_ASKED: usize = 100;

/// The last words of as many jobs are read.
const MOST_LOOKED_INTO: usize = 100;

/// A job, explained.
pub(crate) struct Explained {
    pub(crate) why: Explanation,
    /// What could not be read for it, and why not; and what was in the way of its supervisor.
    pub(crate) unread: Vec<String>,
}

/// Explains a job.
pub(crate) fn explained_job(opened: &Opened, mut jobs: Jobs, id: &JobId) -> Result<Explained, CommandError> {
    let record = opened.read(id)?;
    // It may have gone on since the list was read.
    let job = Brief::from(&record);
    jobs.briefs.insert(id.clone(), job.clone());
    let mut unread = Vec::new();
    let events = read_history(opened, &job, &mut unread);
    let mut told = Told::of(&events, record.status, retries_allowed(opened, &record));
    let dir = opened.place.data.join("jobs").join(id.as_str());
    for (place, stream) in ["stdout", "stderr"].into_iter().enumerate() {
        if let Err(error) = add_output(&mut told, &dir, place, stream) {
            unread.push(format!("{stream} of job {id} cannot be read: {error}"));
        }
    }
    match add_supervisor(opened, &mut told, &dir, &job) {
        Ok(warnings) => unread.extend(warnings),
        Err(error) => {
            unread.push(format!("what the supervisor of job {id} said cannot be read: {error}"));
        }
    }
    let dead_letter = record.metadata.text(Metadata::DEAD_LETTER);
    let subject = Subject { job: &job, dead_letter, told: &told };
    Ok(Explained { why: asked(opened, &jobs, |world| explain_job(world, subject)), unread })
}

/// Reads what happened to a job; what cannot be read is not told, and that is said.
fn read_history(opened: &Opened, job: &Brief, unread: &mut Vec<String>) -> Vec<JobEvent> {
    let id = &job.id;
    let (wrong, events) = match opened.store().history(id) {
        Ok(history) => (history.wrong_of(job), history.events),
        Err(error) => (Some(unfit(&error).message), Vec::new()),
    };
    unread.extend(wrong.map(|wrong| {
        format!(
            "the history of job {id} is damaged, and some of it is missing here: events.jsonl: {wrong}; \
             `tidewheel doctor` says what to do"
        )
    }));
    events
}

/// Explains a run.
pub(crate) fn explained_run(opened: &Opened, jobs: &Jobs, run: &RunId) -> RunExplanation {
    // What cannot be read says nothing of jobs that are gone.
    let manifest = opened.store().manifest(run).ok().flatten();
    let subject = RunSubject { run, manifest: manifest.as_ref() };
    asked(opened, jobs, |world| explain_run(world, subject))
}

/// Returns what a job that has ended said last: what blocked it, or why it failed.
fn last_words(opened: &Opened, jobs: &Jobs, id: &JobId) -> Option<String> {
    if jobs.briefs.get(id)?.status.is_blocked() {
        return opened.store().outcome(id).ok().flatten()?.summary;
    }
    let events = opened.store().history(id).ok()?.events;
    let failed = events.iter().rev().find_map(|event| match &event.event {
        JobEventKind::AttemptFailed { message, .. } => Some(message.clone()),
        JobEventKind::Dispatched { .. }
        | JobEventKind::Withdrawn { .. }
        | JobEventKind::Completed { .. }
        | JobEventKind::Rewound { .. }
        | JobEventKind::Decided { .. } => None,
    });
    // A failure that no decision judged stands in the record's end.
    failed.or_else(|| {
        events.into_iter().rev().find_map(|event| match event.event {
            JobEventKind::Completed { summary, .. } => summary,
            JobEventKind::Dispatched { .. }
            | JobEventKind::AttemptFailed { .. }
            | JobEventKind::Withdrawn { .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => None,
        })
    })
}

/// Explains with what is known, and looks at the world for what is not.
fn asked<T>(
    opened: &Opened,
    jobs: &Jobs,
    explain: impl Fn(World<'_>) -> Result<T, std::collections::BTreeSet<Question>>,
) -> T {
    let prober = Prober::new(&opened.place.root, &opened.place.data, opened.store());
    let mut facts = Facts::default();
    let mut left = MOST_ASKED;
    let lost = jobs.briefs.values().filter(|job| opened.is_lost(job)).map(|job| job.id.clone()).collect();
    // The same jobs are asked about again with each answer.
    let known: RefCell<BTreeMap<JobId, Option<String>>> = RefCell::default();
    let last_words = |id: &JobId| {
        if let Some(said) = known.borrow().get(id) {
            return said.clone();
        }
        if known.borrow().len() >= MOST_LOOKED_INTO {
            return None;
        }
        let said = last_words(opened, jobs, id);
        known.borrow_mut().insert(id.clone(), said.clone());
        said
    };
    loop {
        let world = World {
            briefs: &jobs.briefs,
            unreadable: &jobs.unreadable,
            lost: &lost,
            last_words: &last_words,
            facts: &facts,
            capacity: opened.settings.capacity(),
            now: opened.now,
            may_ask: left > 0,
        };
        match explain(world) {
            Ok(explained) => return explained,
            Err(questions) => {
                for question in questions.into_iter().take(left) {
                    left -= 1;
                    let answer = prober.answer(&question);
                    facts.add(question, answer);
                }
            }
        }
    }
}

/// Returns how many retries the policy of a job allows, if its run tells.
fn retries_allowed(opened: &Opened, record: &Record) -> Option<u32> {
    let (run, node) = (record.run()?, record.node()?);
    let manifest = opened.store().manifest_with(&run, &node).ok().flatten()?;
    let policy = manifest.nodes.get(&node)?.policy().ok()?;
    policy.resolved().ok().map(|policy| policy.max_retries)
}

/// Adds the last lines that each attempt wrote to a stream.
fn add_output(told: &mut Told, dir: &Path, place: usize, stream: &'static str) -> io::Result<()> {
    let LogParts { mut aside, mut now, extent } = LogFile::parts(&dir.join(format!("{stream}.log")))?;
    for (attempt, piece) in told.pieces(place, extent).into_iter().enumerate() {
        let Some(piece) = piece else { continue };
        let file = if piece.is_aside { &mut aside } else { &mut now };
        let Some(file) = file else { continue };
        for text in last_lines(file, piece)? {
            told.attempts[attempt].output.push(OutputLine { stream, text });
        }
    }
    Ok(())
}

/// Adds what the supervisor of a last attempt that was lost had to say. One that was not lost has put the end on record:
/// what it met on the way is returned.
fn add_supervisor(opened: &Opened, told: &mut Told, dir: &Path, job: &Brief) -> io::Result<Vec<String>> {
    let Some(last) = told.attempts.last_mut() else { return Ok(Vec::new()) };
    let is_lost = last.outcome == AttemptOutcome::Lost || opened.is_lost(job);
    let mut file = match LogFile::read(&dir.join("supervisor.log")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    let written = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    // Supervisors of earlier attempts wrote to the same file.
    if last.started_at.is_some_and(|began| u128::from(began.as_nanos()) > written) {
        return Ok(Vec::new());
    }
    let lines = last_lines(&mut file, Piece { is_aside: false, from: 0, to: found.len() })?;
    if !is_lost {
        let warnings = lines.iter().filter_map(|line| line.strip_prefix("warning: "));
        return Ok(warnings.map(str::to_owned).collect());
    }
    last.output.extend(lines.into_iter().map(|text| OutputLine { stream: OutputLine::SUPERVISOR, text }));
    Ok(Vec::new())
}

/// Reads the last lines of a piece of a log.
fn last_lines(file: &mut File, piece: Piece) -> io::Result<Vec<String>> {
    let from = piece.from.max(piece.to.saturating_sub(TAIL));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(piece.to.saturating_sub(from)).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.lines().collect();
    // The beginning of a line that was not read whole says nothing, unless it is all there is.
    if from > piece.from && lines.len() > 1 {
        lines.remove(0);
    }
    let lines = lines.into_iter().map(plain).filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
    Ok(lines[lines.len().saturating_sub(LINES)..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8], from: u64, to: u64) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, text).unwrap();
        last_lines(&mut File::open(path).unwrap(), Piece { is_aside: false, from, to }).unwrap()
    }

    #[test]
    fn only_the_last_lines_of_the_piece_are_read() {
        assert_eq!(lines_of(b"one\ntwo\nthree\nfour\n", 4, 14), ["two", "three"]);
        assert_eq!(lines_of(b"1\n2\n3\n4\n5\n6\n7\n", 0, 14), ["3", "4", "5", "6", "7"]);
        let long = [vec![b'x'; 9_000], b"\nend\n".to_vec()].concat();
        assert_eq!(lines_of(&long, 0, 9_005), ["end"]);
        assert_eq!(lines_of(b"", 5, 9), [""; 0]);
    }

    #[test]
    fn what_steers_a_terminal_is_left_out() {
        assert_eq!(lines_of(b"\x1b[31mred\x1b[0m\n\xff\x1b]0;t\x07\n", 0, 40), ["red", "\u{fffd}"]);
    }
}
