//! Adds lines to the events of a job. A line that a crash cut off is taken away first, or it would spoil the next; so is
//! a start that a crash kept from being one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::OFlags;
use tidewheel_core::job::{JobEvent, JobEventKind};

use super::beneath::regular;
use super::folders::Folders;
use super::{aside, layout};

/// Adds events; returns the file, which is to be synced, and how long it was before.
pub(super) fn events(
    folders: &mut Folders<'_>,
    folder: &str,
    events: &[&JobEvent],
) -> io::Result<(File, u64)> {
    let mut text = String::new();
    for event in events {
        text.push_str(&serde_json::to_string(event)?);
        text.push('\n');
    }
    let file = match open(folders, folder, OFlags::CREATE) {
        Ok(file) => file,
        // A process of the job may have put something else there, and what happened to the job must not be lost by it.
        Err(error) => {
            let inside = folders.get(folder)?;
            if !aside::clear(folders.root, &*inside, &format!("{folder}/{}", layout::EVENTS))? {
                return Err(error);
            }
            open(folders, folder, OFlags::CREATE)?
        }
    };
    let mut length = before(&file, file.metadata()?.len())?;
    if let Some(first) = events.iter().find(|event| is_start(event)) {
        length = without_start(&file, length, first.attempt)?;
    }
    file.set_len(length)?;
    if let Err(error) = file.write_all_at(text.as_bytes(), length) {
        drop(file.set_len(length));
        return Err(error);
    }
    if length == 0 {
        folders.change(folder);
    }
    Ok((file, length))
}

/// Takes the events after some length away again.
pub(super) fn cut(folders: &mut Folders<'_>, folder: &str, length: u64) {
    if let Ok(file) = open(folders, folder, OFlags::empty()) {
        drop(file.set_len(length));
    }
}

fn open(folders: &mut Folders<'_>, folder: &str, more: OFlags) -> io::Result<File> {
    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let open = folders.get(folder)?;
    regular(&*open, layout::EVENTS, FLAGS | more)
}

const fn is_start(event: &JobEvent) -> bool {
    matches!(event.event, JobEventKind::Dispatched { .. })
}

/// Returns how long the whole lines are without a last one that tells of this very start: who wrote it died before the
/// record said so, and it never was.
fn without_start(file: &File, length: u64, attempt: u32) -> io::Result<u64> {
    let start = before(file, length.saturating_sub(1))?;
    let mut line = vec![0; usize::try_from(length - start).unwrap_or(0)];
    file.read_exact_at(&mut line, start)?;
    let is_same = |event: JobEvent| is_start(&event) && event.attempt == attempt;
    Ok(if serde_json::from_slice(&line).is_ok_and(is_same) { start } else { length })
}

/// Returns where the last whole line before a place ends.
fn before(file: &File, mut end: u64) -> io::Result<u64> {
    let mut buffer = [0; 512];
    while end > 0 {
        let start = end.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(part, start)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_not_counted() {
        let file = tempfile::tempfile().unwrap();
        for (text, length) in
            [("", 0), ("a", 0), ("a\n", 2), ("a\nbc", 2), (&format!("a\n{}", "b".repeat(2_000)), 2)]
        {
            file.set_len(0).unwrap();
            file.write_all_at(text.as_bytes(), 0).unwrap();
            assert_eq!(before(&file, file.metadata().unwrap().len()).unwrap(), length, "{text:?}");
        }
    }

    #[test]
    fn only_a_last_line_that_tells_of_the_same_start_is_taken_away() {
        let line = |attempt: u32, event: &str| {
            format!("{{\"at\":\"2026-02-01T12:00:00Z\",\"attempt\":{attempt},\"event\":{event}}}\n")
        };
        let start = r#"{"dispatched":{"policy_attempt":0,"stdout_offset":0,"stderr_offset":0}}"#;
        let end = r#"{"completed":{"outcome":"failed","exit_code":1,"summary":null}}"#;
        let withdrawn = r#"{"withdrawn":{"reason":"no"}}"#;
        let file = tempfile::tempfile().unwrap();
        for (lines, attempt, is_cut) in [
            (vec![line(1, start)], 1, true),
            (vec![line(1, start)], 2, false),
            (vec![line(1, start), line(1, end)], 1, false),
            (vec![line(1, start), line(1, withdrawn)], 1, false),
            (vec![line(1, start), line(1, end), line(2, start)], 2, true),
            (vec!["no event\n".to_owned()], 1, false),
            (vec![], 1, false),
        ] {
            file.set_len(0).unwrap();
            file.write_all_at(lines.concat().as_bytes(), 0).unwrap();
            let length = lines.concat().len() as u64;
            let last = lines.last().map_or(0, |line| line.len() as u64);
            let expected = if is_cut { length - last } else { length };
            assert_eq!(without_start(&file, length, attempt).unwrap(), expected, "{lines:?}");
        }
    }
}
