//! Clears the way for a file of ours: what stands in its place and is no regular file is removed where nothing is lost
//! with it, and else set aside under another name in the same directory. Each time is noted until a caller asks.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::beneath::Root;
use super::obstacle::in_words;
use super::signature::Found;

/// How the names begin under which something is set aside. No file of ours has such a name, and no marker counts by it.
const ASIDE: &str = ".in-the-way.";

/// Takes away what is in the place of a regular file, in an open directory. Returns whether it did; a regular file, and
/// nothing at all, are in nobody's way.
pub(super) fn clear(root: &Root, folder: impl AsFd, path: &str) -> io::Result<bool> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let Some(found) = Found::at(&folder, name)? else { return Ok(false) };
    let removed = match found.kind {
        FileType::RegularFile => return Ok(false),
        // What is in it is not ours to remove.
        FileType::Directory => unlinkat(&folder, name, AtFlags::REMOVEDIR),
        FileType::Symlink | FileType::Fifo | FileType::Socket => unlinkat(&folder, name, AtFlags::empty()),
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Err(Errno::EXIST),
    };
    let became = match removed {
        Ok(()) => "was removed".to_owned(),
        Err(_) => format!("is now `{}`", set_aside(&folder, name)?),
    };
    let (place, what) = (root.path(path), in_words(found.kind));
    root.note(format!("{} was {what} where a file belongs, and {became}", place.display()));
    Ok(true)
}

/// Gives something another name, and returns that.
fn set_aside(folder: impl AsFd, name: &str) -> io::Result<String> {
    let mut aside = format!("{ASIDE}{name}");
    for count in 2_u32.. {
        if Found::at(&folder, &aside)?.is_none() {
            break;
        }
        aside = format!("{ASIDE}{name}.{count}");
    }
    match renameat_with(&folder, name, &folder, &aside, RenameFlags::NOREPLACE) {
        // A file system that cannot promise it; the name was free a moment ago.
        Err(Errno::INVAL | Errno::NOSYS) => renameat(&folder, name, &folder, &aside)?,
        renamed => renamed?,
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_in_the_way_goes_and_nothing_that_is_in_it_is_lost() {
        let world = tempfile::tempdir().unwrap();
        let job = world.path().join("jobs/a");
        fs::create_dir_all(&job).unwrap();
        let root = Root::open(world.path()).unwrap().unwrap();
        let clears = || clear(&root, root.folder("jobs/a").unwrap(), "jobs/a/x").unwrap();
        let (path, said) = (job.join("x"), |became: &str| format!("{}/x was {became}", job.display()));
        assert!(!clears(), "nothing is there");
        fs::write(&path, "ours").unwrap();
        assert!(!clears(), "it is a file");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(clears() && !path.exists());
        symlink("/nowhere/x", &path).unwrap();
        assert!(clears() && path.symlink_metadata().is_err());
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(clears() && !path.exists());
        for text in ["one", "two"] {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("mine"), text).unwrap();
            assert!(clears() && !path.exists());
        }
        let kept = |name: &str| fs::read_to_string(job.join(name).join("mine")).unwrap();
        assert_eq!((kept(".in-the-way.x"), kept(".in-the-way.x.2")), ("one".to_owned(), "two".to_owned()));
        let expected = [
            said("a directory where a file belongs, and was removed"),
            said("a link where a file belongs, and was removed"),
            said("a pipe where a file belongs, and was removed"),
            said("a directory where a file belongs, and is now `.in-the-way.x`"),
            said("a directory where a file belongs, and is now `.in-the-way.x.2`"),
        ];
        assert_eq!(root.take_notes(), expected);
        assert_eq!(root.take_notes(), [""; 0]);
    }
}
