//! The log of what is known of live jobs. Its lines count up to the last one that closes them; only notes of records
//! that are being written count at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tidewheel_core::job::JobId;

use super::line::{Entry, Line};
use super::threads::in_two;

/// What the log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Live {
    pub(super) entries: BTreeMap<JobId, Entry>,
    /// Directories whose names are no ids, and why.
    pub(super) strange: BTreeMap<String, String>,
    /// Records that somebody is writing, or was when it died.
    pub(super) touching: BTreeSet<JobId>,
    pub(super) seen: Seen,
}

/// What the directories were known by when the log was closed, and how much of the other file counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// When a name in the directory of the jobs changed last.
    pub(super) jobs: i64,
    /// How many links it had.
    pub(super) links: u32,
    /// When a name in the directory of the manifests changed last.
    pub(super) runs: i64,
    /// How many bytes of the lines of the other jobs count.
    pub(super) done: u64,
}

/// How much of a text counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replayed {
    /// Its bytes up to the last line that counts.
    pub(super) counted: usize,
    /// The bytes of those lines that say how a job is; the others say how it was.
    pub(super) alive: usize,
}

/// What the last line about a job says.
enum Latest<'t> {
    Known(Line<'t>, usize),
    Dropped,
}

/// The log makes no sense: somebody else wrote into it.
#[derive(Debug)]
pub(super) struct Damaged;

impl Live {
    /// Takes over lines. Only the last one of each job is read to its end.
    pub(super) fn replay(&mut self, text: &str) -> Result<Replayed, Damaged> {
        let mut pending: Vec<&str> = Vec::new();
        let mut latest: BTreeMap<&str, Latest<'_>> = BTreeMap::new();
        let (mut at, mut counted) = (0, 0);
        while let Some(end) = text[at..].find('\n') {
            let line = &text[at..at + end];
            at += end + 1;
            match line.as_bytes().first() {
                Some(b'T') => {
                    // Notes stand alone: lines before them that were never closed are those of a writer that died.
                    pending.clear();
                    for id in line[1..].split_ascii_whitespace() {
                        self.touching.insert(JobId::new(id).map_err(|_| Damaged)?);
                    }
                    counted = at;
                }
                Some(b'C') => {
                    for line in pending.drain(..) {
                        self.close(line, &mut latest)?;
                    }
                    self.seen = Seen::parse(&line[1..]).ok_or(Damaged)?;
                    self.touching.clear();
                    counted = at;
                }
                Some(_) => pending.push(line),
                None => return Err(Damaged),
            }
        }
        let mut alive = 0;
        let mut known = Vec::with_capacity(latest.len());
        for (id, latest) in latest {
            match latest {
                Latest::Known(line, length) => {
                    known.push(line);
                    alive += length;
                }
                Latest::Dropped => {
                    self.entries.remove(id);
                }
            }
        }
        let entries = in_two(&known, |lines| lines.iter().map(|line| line.entry()).collect());
        if self.entries.is_empty() {
            // In order from the start, so that the map is made at once.
            self.entries = entries.into_iter().collect::<Option<_>>().ok_or(Damaged)?;
        } else {
            for entry in entries {
                let (id, entry) = entry.ok_or(Damaged)?;
                self.entries.insert(id, entry);
            }
        }
        Ok(Replayed { counted, alive })
    }

    /// Takes over a line that was closed.
    fn close<'t>(
        &mut self,
        line: &'t str,
        latest: &mut BTreeMap<&'t str, Latest<'t>>,
    ) -> Result<(), Damaged> {
        match line.as_bytes().first() {
            Some(b'D') => {
                latest.insert(&line[1..], Latest::Dropped);
            }
            Some(b'S') => self.strange = serde_json::from_str(&line[1..]).map_err(|_| Damaged)?,
            Some(_) | None => {
                let known = Line::parse(line).ok_or(Damaged)?;
                latest.insert(known.id, Latest::Known(known, line.len() + 1));
            }
        }
        Ok(())
    }

    /// Returns the lines of all that is known, without the one that closes them.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for (id, entry) in &self.entries {
            entry.write(id, &mut text);
        }
        if !self.strange.is_empty() {
            strange(&self.strange, &mut text);
        }
        text
    }
}

impl Seen {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            jobs: words.next()?.parse().ok()?,
            links: words.next()?.parse().ok()?,
            runs: words.next()?.parse().ok()?,
            done: words.next()?.parse().ok()?,
        })
    }

    /// Writes the line that closes those before it.
    pub(super) fn write(&self, text: &mut String) {
        let Self { jobs, links, runs, done } = self;
        writeln!(text, "C{jobs} {links} {runs} {done}").expect("invariant: a string takes any text");
    }
}

/// Writes that a job is not live any more.
pub(super) fn drop_line(id: &JobId, text: &mut String) {
    writeln!(text, "D{id}").expect("invariant: a string takes any text");
}

/// Writes the note of records that are about to be written.
pub(super) fn touch_line<'i>(ids: impl Iterator<Item = &'i JobId>, text: &mut String) {
    text.push('T');
    for id in ids {
        text.push(' ');
        text.push_str(id.as_str());
    }
    text.push('\n');
}

/// Writes all names that are no ids.
pub(super) fn strange(names: &BTreeMap<String, String>, text: &mut String) {
    let names = serde_json::to_string(names).expect("invariant: every key is a string");
    writeln!(text, "S{names}").expect("invariant: a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::files::read::State;
    use crate::jobs::files::signature::Signature;

    fn entry(size: u64) -> Entry {
        Entry { signature: Signature(1, size, 2), state: State::Vacant, is_hidden: false }
    }

    /// Whatever a writer had written when it died, nothing is known wrongly, and what it was writing is read again.
    #[test]
    fn a_log_that_ends_anywhere_says_what_was_closed_and_what_is_being_written() {
        let id = |text| JobId::new(text).unwrap();
        let seen = |done| Seen { jobs: 1, links: 3, runs: 2, done };
        let mut text = String::new();
        entry(1).write(&id("a"), &mut text);
        seen(10).write(&mut text);
        let first = text.len();
        touch_line([id("a"), id("b")].iter(), &mut text);
        let noted = text.len();
        drop_line(&id("a"), &mut text);
        entry(2).write(&id("b"), &mut text);
        seen(20).write(&mut text);
        for end in 0..=text.len() {
            let mut live = Live::default();
            let counted = live.replay(&text[..end]).unwrap().counted;
            let expected = if end == text.len() {
                end
            } else {
                [0, first, noted].into_iter().rfind(|at| *at <= end).unwrap()
            };
            assert_eq!(counted, expected, "{end}");
            assert_eq!(live.touching.len(), if (noted..text.len()).contains(&end) { 2 } else { 0 });
            assert_eq!(live.entries.contains_key("a"), (first..text.len()).contains(&end), "{end}");
            assert_eq!(live.entries.contains_key("b"), end == text.len(), "{end}");
        }
    }
}
