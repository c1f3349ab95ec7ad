//! A handful of files, as they are in a directory: read from it, written to it, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::super::beneath::{self, BeneathError};

/// A file that is patched has at most so many bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Files by their paths.
pub(super) type Tree = BTreeMap<String, Plain>;

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    pub(super) is_program: bool,
}

/// Reads the files with these names, as far as they are there. A link is none.
pub(super) fn read(directory: &Path, names: &BTreeSet<String>) -> Result<Tree, String> {
    let mut tree = Tree::new();
    for name in names {
        tree.extend(read_one(directory, name)?.map(|plain| (name.clone(), plain)));
    }
    Ok(tree)
}

/// Reads a file, if it is there.
pub(super) fn read_one(directory: &Path, name: &str) -> Result<Option<Plain>, String> {
    let fail = |error: BeneathError| match error {
        BeneathError::Outside => format!("`{name}` is a link, or lies behind one"),
        other => format!("cannot read `{name}`: {other}"),
    };
    let Some(file) = beneath::open_plain(directory, name).map_err(fail)? else { return Ok(None) };
    let about = file.metadata().map_err(|error| fail(error.into()))?;
    if about.is_dir() {
        return Ok(None);
    }
    let is_program = about.permissions().mode() & 0o100 != 0;
    Ok(Some(Plain { bytes: beneath::read_file(file, MOST_BYTES).map_err(fail)?, is_program }))
}

/// Writes files into a directory that is ours alone.
pub(super) fn write_all(directory: &Path, tree: &Tree) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    for (name, plain) in tree {
        write(directory, name, plain)?;
    }
    Ok(())
}

/// Puts a file in its place, beside which it was written before.
pub(super) fn write(directory: &Path, name: &str, plain: &Plain) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("cannot write `{name}`: {error}");
    let place = directory.join(name);
    let below = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
    let real = beneath::make_folder(directory, below).map_err(fail)?;
    // No link on the way leads elsewhere.
    let expected = directory.canonicalize().map_err(fail)?;
    if real != expected.join(below) {
        return Err(format!("`{name}` lies behind a link"));
    }
    let temporary = real.join(format!(".tidewheel-patch.{}", std::process::id()));
    fs::remove_file(&temporary).ok();
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(&plain.bytes)?;
        let mode = file.metadata()?.permissions().mode();
        let mode = if plain.is_program { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&temporary, &place)
    });
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written.map_err(fail)
}

/// Removes a file, and the directories above it that are empty then.
pub(super) fn remove(directory: &Path, name: &str) -> Result<(), String> {
    match fs::remove_file(directory.join(name)) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("cannot remove `{name}`: {error}")),
    }
    let mut above = Path::new(name).parent();
    while let Some(parent) = above.filter(|parent| !parent.as_os_str().is_empty()) {
        if fs::remove_dir(directory.join(parent)).is_err() {
            break;
        }
        above = parent.parent();
    }
    Ok(())
}

/// Returns everything beneath a directory that is ours alone.
pub(super) fn walk(directory: &Path) -> Result<Tree, String> {
    let fail = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut tree = Tree::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(directory.join(&folder)).map_err(fail)?;
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err("a patch names a file whose name is not UTF-8".to_owned());
            };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                tree.extend(read_one(directory, &path)?.map(|plain| (path, plain)));
            } else {
                return Err(format!("a patch makes `{path}`, which is no ordinary file"));
            }
        }
    }
    Ok(tree)
}
