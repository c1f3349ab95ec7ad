//! Sweeps up files that were on their way when their writer died. What a living writer, or one of another machine, may
//! still put into its place is left alone.

use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::beneath::{self, Root};
use super::folders::Folders;
use super::signature::Found;

/// A file that was written so long ago is not on its way any more. Writers in another container, whose numbers mean
/// nothing here, take milliseconds.
const OLD: Duration = Duration::from_secs(60);

/// Removes what dead writers left in a directory. It is nobody's any more, so that no error counts.
pub(super) fn sweep(folders: &mut Folders<'_>, path: &str) {
    let Ok(folder) = folders.get(path) else { return };
    for (name, _) in beneath::names(&*folder).unwrap_or_default() {
        let Some((name, writer)) =
            std::str::from_utf8(&name).ok().and_then(|name| Some((name, writer(name)?)))
        else {
            continue;
        };
        if is_dead(writer)
            && Found::at(&*folder, name).is_ok_and(|found| found.is_some_and(is_old))
            && unlinkat(&*folder, name, AtFlags::empty()).is_ok()
        {
            folders.change(path);
        }
    }
}

/// Tells whether a file in a directory of ours is what a writer that died has left.
pub(super) fn is_leftover(root: &Root, path: &str, name: &str) -> bool {
    // Whoever has the turn replaces the index by way of these; they are there for a moment only.
    let is_of_index = name.starts_with("index.") && name.ends_with(".tmp");
    (is_of_index || writer(name).is_some_and(is_dead))
        && root.look(path).is_ok_and(|found| found.is_some_and(is_old))
}

/// Returns who wrote a temporary file: `.<name>.<process>.<count>.tmp`.
fn writer(name: &str) -> Option<Pid> {
    let mut parts = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplitn(3, '.');
    let (count, process, _) = (parts.next()?, parts.next()?, parts.next()?);
    count.parse::<u64>().ok()?;
    Pid::from_raw(process.parse().ok().filter(|process| *process > 0)?)
}

fn is_dead(process: Pid) -> bool {
    test_kill_process(process) == Err(Errno::SRCH)
}

/// Tells whether nobody has written something for so long that nobody is about to.
pub(super) fn is_old(found: Found) -> bool {
    let written = Duration::from_nanos(found.signature.0.try_into().unwrap_or(0));
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + written);
    age.is_ok_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_have_a_writer() {
        let number = |name| writer(name).map(Pid::as_raw_pid);
        assert_eq!(number(".job.json.17.0.tmp"), Some(17));
        assert_eq!(number(".a.17.3.tmp"), Some(17));
        for name in [
            "job.json",
            "job.json.17.0.tmp",
            ".job.json",
            ".17.0.tmp",
            ".a.x.0.tmp",
            ".a.17.x.tmp",
            ".a.-1.0.tmp",
        ] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
