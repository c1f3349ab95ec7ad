//! Opens the index, follows what other processes added to it, and builds it from the records where it is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use tidewheel_core::job::JobId;

use super::check::look_around;
use super::done::{self, Done};
use super::line::Entry;
use super::live::{Live, Seen};
use super::merge::is_visible;
use crate::jobs::JobStoreError;
use crate::jobs::files::beneath::{FILE_MODE, Root, clear_way};
use crate::jobs::files::layout::{JOBS, RUNS};
use crate::jobs::files::scan;
use crate::jobs::files::signature::{Found, Signature};

/// The index, as one process has it open.
#[derive(Debug)]
pub(in crate::jobs::files) struct Index {
    pub(super) live: Live,
    pub(super) done: Done,
    /// Where the next look at jobs that are over begins.
    pub(super) cursor: u64,
    file: File,
    inode: u64,
    /// How many bytes of the log we know.
    length: u64,
    /// How long it would have been if it had been written as a whole when it was read or written so last.
    compact: u64,
    /// How many bytes of lines that are crossed out we have seen.
    pub(super) waste: u64,
    generation: u64,
    /// What was found before the turn, which need not look for it any more.
    pub(super) ahead: Option<Ahead>,
}

/// What a look around found.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Jobs that are not as the index says.
    pub(super) suspects: BTreeSet<JobId>,
    /// Where the next look at jobs that are over begins.
    pub(super) cursor: u64,
}

/// The name of the log.
const NAME: &str = "index.live";

/// How long the first line of the log is, and where in it the cursor stands.
const HEADER: usize = 96;
const CURSOR: u64 = 75;

/// What the directories say of which we do not know whether it is so: nothing is equal to it.
pub(super) const UNKNOWN: i64 = -1;

impl Index {
    /// Opens the index; `None` if there is none that can be trusted.
    pub(super) fn open(root: &Root, flags: OFlags) -> io::Result<Option<Self>> {
        let Some(boot) = boot() else { return Ok(None) };
        let file = match root.open_at(&format!("{JOBS}/{NAME}"), flags | OFlags::NONBLOCK | OFlags::NOFOLLOW)
        {
            Ok(fd) => File::from(fd),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = Found::of(&file)?;
        let Signature(_, size, inode) = found.signature;
        if found.kind != FileType::RegularFile {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
        let Some((head, lines)) = text.split_at_checked(HEADER) else { return Ok(None) };
        let Some((generation, cursor)) = parse_header(head, &boot) else { return Ok(None) };
        let mut live = Live::default();
        let Ok(replayed) = live.replay(lines) else { return Ok(None) };
        let Some(done) = Done::open(root, generation, live.seen.done, flags)? else { return Ok(None) };
        if live.seen == Seen::default() {
            // It was never closed: its writer died before it knew anything.
            return Ok(None);
        }
        // A process that lives for one job must see, too, that the log is mostly about how jobs were.
        let (length, compact) = ((HEADER + replayed.counted) as u64, (HEADER + replayed.alive) as u64);
        let (waste, ahead) = (0, None);
        Ok(Some(Self { live, done, cursor, file, inode, length, compact, waste, generation, ahead }))
    }

    /// Takes over what others have added since; returns whether that was possible.
    pub(super) fn follow(&mut self, root: &Root) -> io::Result<bool> {
        let Some(found) = root.look(&format!("{JOBS}/{NAME}"))? else { return Ok(false) };
        let Signature(_, size, inode) = found.signature;
        if inode != self.inode || size < self.length {
            return Ok(false);
        }
        let Some(done) = root.look(&format!("{JOBS}/{}", done::NAME))? else { return Ok(false) };
        if !self.done.is(done.signature) {
            return Ok(false);
        }
        if size > self.length {
            let mut bytes = vec![0; usize::try_from(size - self.length).unwrap_or(0)];
            self.file.read_exact_at(&mut bytes, self.length)?;
            let Ok(text) = String::from_utf8(bytes) else { return Ok(false) };
            let Ok(replayed) = self.live.replay(&text) else { return Ok(false) };
            self.length += replayed.counted as u64;
            self.done.length = self.live.seen.done;
        }
        Ok(true)
    }

    /// Opens the index before a turn, and looks around for what was changed by hand; `None` if there is none that can
    /// be trusted.
    pub(in crate::jobs::files) fn ahead_of_turn(root: &Root, before: Option<Self>) -> Option<Self> {
        let followed = before.and_then(|mut before| before.follow(root).ok()?.then_some(before));
        let mut index = match followed {
            Some(index) => index,
            None => Self::open(root, OFlags::RDWR).ok()??,
        };
        index.ahead = Some(look_around(&index, root).ok()?);
        Some(index)
    }

    /// Opens the index for a turn, and builds it where there is none.
    pub(in crate::jobs::files) fn for_turn(root: &Root, before: Option<Self>) -> Result<Self, JobStoreError> {
        if let Some(mut before) = before
            && before.follow(root).unwrap_or(false)
        {
            return Ok(before);
        }
        match Self::open(root, OFlags::RDWR) {
            Ok(Some(index)) => Ok(index),
            // Whatever is wrong with it, it can be built anew.
            Ok(None) | Err(_) => Self::build(root),
        }
    }

    /// Builds the index from the records.
    pub(in crate::jobs::files) fn build(root: &Root) -> Result<Self, JobStoreError> {
        // What the directories are known by comes first: what changes while we read is seen the next time.
        let seen = look(root)?;
        let scan = scan::scan(root)?;
        let entries = scan.jobs.into_iter().map(|(id, (signature, state))| {
            let is_hidden = false;
            (id, Entry { signature, state, is_hidden })
        });
        let live = Live { entries: entries.collect(), strange: scan.strange, seen, ..Live::default() };
        Self::create(root, live, "")
    }

    /// Writes the index as a whole, with these lines of jobs that are over, and more of them from the live ones.
    pub(super) fn create(root: &Root, mut live: Live, over: &str) -> Result<Self, JobStoreError> {
        let fail_at = |name: &str, source| JobStoreError::Io {
            verb: "write",
            path: root.path(&format!("{JOBS}/{name}")),
            source,
        };
        let fail = |source| fail_at(NAME, source);
        let fail_done = |source| fail_at(done::NAME, source);
        let mut runs = BTreeMap::new();
        super::check::look_at_runs(&live, root, &mut runs);
        for entry in live.entries.values_mut() {
            entry.is_hidden = entry.brief().is_some_and(|brief| !is_visible(brief, &runs));
        }
        let mut text = over.to_owned();
        for id in super::merge::unneeded(&live) {
            if let Some(entry) = live.entries.remove(&id) {
                entry.write(&id, &mut text);
            }
        }
        let generation = generation();
        let boot = boot().unwrap_or_else(|| "-".repeat(36));
        let folder = root.folder(JOBS).map_err(fail)?;
        let text = format!("{}{text}", done::header(generation));
        let done = replace(&folder, done::NAME, &text).map_err(fail_done)?;
        let file = replace(&folder, NAME, &header(&boot, generation, 0)).map_err(fail)?;
        let done = Done::new(done, text.len() as u64);
        let inode = Found::of(&file).map_err(fail)?.signature.2;
        live.seen.done = done.length;
        let length = HEADER as u64;
        let (cursor, compact, waste, ahead) = (0, length, 0, None);
        let mut index = Self { live, done, cursor, file, inode, length, compact, waste, generation, ahead };
        // Our own files have changed the directory; if nobody made a job in the meantime, it is as we know it.
        let now = look(root)?;
        index.see(&now, 0);
        let mut lines = index.live.lines();
        index.live.seen.write(&mut lines);
        index.append(&lines).map_err(fail)?;
        index.compact = index.length;
        Ok(index)
    }

    /// Takes over what the directories are known by after we changed them ourselves: `made` of the links are ours.
    pub(super) fn see(&mut self, now: &Seen, made: i64) {
        let seen = &mut self.live.seen;
        // Some file systems do not count directories; there we cannot tell our changes from those of others.
        let is_counted = seen.links > 1 && i64::from(now.links) == i64::from(seen.links) + made;
        seen.jobs = if is_counted && seen.jobs != UNKNOWN { now.jobs } else { UNKNOWN };
        seen.links = now.links;
        seen.runs = now.runs;
    }

    /// Adds lines to the log; what a writer that died left at its end is cut off.
    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.file.metadata()?.len() > self.length {
            self.file.set_len(self.length)?;
        }
        self.file.write_all_at(lines.as_bytes(), self.length)?;
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Returns how many bytes of the log we know.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Tells whether most of the log says what is not so any more.
    pub(super) const fn is_long(&self) -> bool {
        const ENOUGH: u64 = 64 << 10;
        self.length > self.compact + self.compact / 2 + ENOUGH
    }

    /// Writes the log as a whole.
    pub(super) fn rewrite(&mut self, root: &Root) -> Result<(), JobStoreError> {
        let fail =
            |source| JobStoreError::Io { verb: "write", path: root.path(&format!("{JOBS}/{NAME}")), source };
        let boot = boot().unwrap_or_else(|| "-".repeat(36));
        let mut text = header(&boot, self.generation, self.cursor);
        text.push_str(&self.live.lines());
        let mut closed = self.live.seen;
        // Until the new name is accounted for, the directory counts as changed.
        closed.jobs = UNKNOWN;
        closed.write(&mut text);
        let folder = root.folder(JOBS).map_err(fail)?;
        self.file = replace(&folder, NAME, &text).map_err(fail)?;
        self.inode = Found::of(&self.file).map_err(fail)?.signature.2;
        self.length = text.len() as u64;
        self.compact = self.length;
        let now = look(root)?;
        self.see(&now, 0);
        let mut text = String::new();
        self.live.seen.write(&mut text);
        self.append(&text).map_err(fail)
    }

    /// Moves the cursor, also for the next process.
    pub(super) fn move_cursor(&mut self, to: u64) {
        if to != self.cursor {
            self.cursor = to;
            // Whoever does not find it begins elsewhere, and that is all.
            self.file.write_all_at(format!("{to:020}").as_bytes(), CURSOR).ok();
        }
    }
}

/// Looks at the directories.
pub(super) fn look(root: &Root) -> Result<Seen, JobStoreError> {
    // Of a directory that was changed a moment ago, a further change may not show.
    const MOMENT: i64 = 20_000_000;
    let at = |path: &str| {
        root.look(path).map_err(|source| JobStoreError::Io { verb: "read", path: root.path(path), source })
    };
    let (jobs, runs) = (at(JOBS)?, at(RUNS)?);
    let (mut time, links) = jobs.map_or((0, 0), |found| (found.signature.0, found.links));
    if links <= 1 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        if i64::try_from(now).is_ok_and(|now| now.saturating_sub(time) < MOMENT) {
            time = UNKNOWN;
        }
    }
    Ok(Seen { jobs: time, links, runs: runs.map_or(0, |found| found.signature.0), done: 0 })
}

/// Returns whether there is a log of live jobs, whatever is in it.
pub(in crate::jobs::files) fn is_there(root: &Root) -> bool {
    root.look(&format!("{JOBS}/{NAME}")).is_ok_and(|found| found.is_some())
}

/// Takes the files of the index away, so that the next turn builds it: it could not be kept up. They are a cache.
pub(in crate::jobs::files) fn forget(root: &Root) {
    if let Ok(folder) = root.folder(JOBS) {
        for name in [NAME, done::NAME] {
            // One that is missing already is as good.
            unlinkat(&folder, name, AtFlags::empty()).ok();
        }
    }
}

fn header(boot: &str, generation: u64, cursor: u64) -> String {
    format!("tidewheel-live 1 {boot} {generation:020} {cursor:020}\n")
}

/// Tells whether a log begins as one does that was written before the machine started.
pub(super) fn is_of_earlier_start(log: &str) -> bool {
    let head = log.get(..HEADER);
    let of = head.and_then(|head| head.strip_prefix("tidewheel-live 1 ")?.get(..36));
    let own = boot();
    of.is_some_and(|of| {
        own.as_deref() != Some(of) && head.is_some_and(|head| parse_header(head, of).is_some())
    })
}

fn parse_header(head: &str, boot: &str) -> Option<(u64, u64)> {
    let rest = head.strip_prefix("tidewheel-live 1 ")?.strip_prefix(boot)?.strip_prefix(' ')?;
    let (generation, cursor) = rest.strip_suffix('\n')?.split_once(' ')?;
    Some((generation.parse().ok()?, cursor.parse().unwrap_or(0)))
}

/// Returns what this start of the machine is known by: an index from before it may have lost something.
fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| text.len() == 36)
}

/// Returns a number that no other index of this directory has.
fn generation() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(0)
}

/// Replaces one of our files, which nobody syncs. Where a directory with something in it has its place, it gets no name.
fn replace(folder: &impl std::os::fd::AsFd, name: &str, text: &str) -> io::Result<File> {
    const FLAGS: OFlags =
        OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let temporary = format!("{name}.tmp");
    // Only whoever has the turn writes here; one that died may have left it.
    match unlinkat(folder, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR) if clear_way(folder, &temporary) => {}
        Err(error) => return Err(error.into()),
    }
    let file = File::from(openat(folder, &temporary, FLAGS, FILE_MODE)?);
    file.write_all_at(text.as_bytes(), 0)?;
    let place = || renameat(folder, &temporary, folder, name);
    match place() {
        Ok(()) => {}
        Err(Errno::ISDIR) if clear_way(folder, name) => place()?,
        // Then only this turn has it, and the next one builds its own: nobody has to do without.
        Err(Errno::ISDIR) => unlinkat(folder, &temporary, AtFlags::empty())?,
        Err(error) => return Err(error.into()),
    }
    Ok(file)
}
