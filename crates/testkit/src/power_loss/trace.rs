//! What `strace` wrote, as calls that a disk understands. Only calls that succeeded count.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::disk::{DiskModel, DiskOp};

/// The calls that change a file system or sync it, and those that say where the next write goes.
pub const TRACED_CALLS: &str = "openat,openat2,open,creat,lseek,write,pwrite64,writev,pwritev,rename,renameat,\
                                renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,\
                                truncate,fallocate,copy_file_range,sendfile,fsync,fdatasync,syncfs,sync";

/// Returns a command that runs another one and records its calls in a file, if the machine has `strace` and lets it
/// work.
#[must_use]
pub fn strace(record: &Path, program: &Path) -> Option<Command> {
    let works = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", "signal=none", "-e"]);
    command.arg(format!("trace={TRACED_CALLS}")).arg("-o").arg(record).arg("--").arg(program);
    Some(command)
}

/// Reads a record of calls beneath a folder, in which these folders were before. What is written to stdout is kept, too: it says what was answered when.
///
/// # Panics
/// The record has a call that changes files and that the model does not know, or that cannot be read.
#[must_use]
pub fn parse_trace(text: &str, root: &str, existing: &[&str]) -> DiskModel {
    let mut disk = DiskModel::new(root, existing);
    let mut unfinished: BTreeMap<&str, String> = BTreeMap::new();
    let mut places: BTreeMap<(String, usize), Place> = BTreeMap::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.trim_start().split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid, begun.to_owned());
            continue;
        }
        let call = if rest.starts_with("<... ") {
            let Some(begun) = unfinished.remove(pid) else { continue };
            let end = rest.split_once("resumed>").map_or("", |(_, end)| end);
            format!("{begun}{end}")
        } else {
            rest.to_owned()
        };
        if let Some(call) = Call::parse(&call) {
            apply(&call, &mut disk, &mut places);
        }
    }
    disk
}

/// Where the next write through an open file goes.
#[derive(Clone, Copy)]
enum Place {
    At(u64),
    End,
}

/// A call that succeeded.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    answer: &'a str,
}

impl<'a> Call<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        let end = rest.rfind(") ")?;
        let answer = rest[end + 1..].trim_start().strip_prefix("= ")?;
        if answer.starts_with('-') || answer.starts_with('?') {
            return None;
        }
        // Everything that people write is in hexadecimal digits, so a comma is a comma of the call.
        let arguments = rest[..end].split(", ").collect();
        Some(Self { name, arguments, answer })
    }

    /// Returns the path of a folder that is open and a name in it.
    fn at(&self, folder: usize) -> Option<String> {
        let name = text(self.arguments.get(folder + 1)?)?;
        Some(if name.starts_with('/') {
            name
        } else {
            joined(&open_path(self.arguments.get(folder)?)?, &name)
        })
    }

    /// Returns the path of a file that is open.
    fn open(&self, argument: usize) -> Option<String> {
        open_path(self.arguments.get(argument)?)
    }
}

fn apply(call: &Call<'_>, disk: &mut DiskModel, places: &mut BTreeMap<(String, usize), Place>) {
    let number = |text: &str| text.split('<').next().and_then(|text| text.trim().parse::<u64>().ok());
    let at = |argument: usize| call.arguments.get(argument).copied().unwrap_or_default();
    let descriptor = |text: &str| text.split('<').next().unwrap_or_default().to_owned();
    match call.name {
        "openat" | "openat2" | "open" | "creat" => {
            let Some(path) = open_path(call.answer) else { return };
            let flags = call.arguments.join(",");
            if flags.contains("O_CREAT") || call.name == "creat" {
                disk.record(DiskOp::Create(path.clone()));
            }
            if flags.contains("O_TRUNC") || call.name == "creat" {
                disk.record(DiskOp::SetLen(path.clone(), 0));
            }
            if let Some(file) = disk.file_at(&path) {
                let place = if flags.contains("O_APPEND") { Place::End } else { Place::At(0) };
                places.insert((descriptor(call.answer), file), place);
            }
        }
        "lseek" => {
            if let (Some(path), Some(to)) = (call.open(0), number(call.answer))
                && let Some(file) = disk.file_at(&path)
                && let Some(place @ Place::At(_)) = places.get_mut(&(descriptor(at(0)), file))
            {
                *place = Place::At(to);
            }
        }
        "write" => {
            let Some(data) = bytes(at(1)) else { return };
            if at(0).starts_with("1<") {
                disk.record(DiskOp::Said(String::from_utf8_lossy(&data).into_owned()));
                return;
            }
            let (Some(path), Some(written)) = (call.open(0), number(call.answer)) else { return };
            let Some(file) = disk.file_at(&path) else { return };
            let data = data[..usize::try_from(written).map_or(data.len(), |written| written.min(data.len()))]
                .to_vec();
            let end = disk.len_of(file);
            let place = places.entry((descriptor(at(0)), file)).or_insert(Place::End);
            let offset = match place {
                Place::End => end,
                Place::At(offset) => {
                    let from = *offset;
                    *offset += data.len() as u64;
                    from
                }
            };
            disk.record(DiskOp::Write { path, offset, data });
        }
        "pwrite64" => {
            let (Some(path), Some(data), Some(offset)) = (call.open(0), bytes(at(1)), number(at(3))) else {
                return;
            };
            disk.record(DiskOp::Write { path, offset, data });
        }
        "ftruncate" => {
            if let (Some(path), Some(length)) = (call.open(0), number(at(1))) {
                disk.record(DiskOp::SetLen(path, length));
            }
        }
        "rename" => rename(disk, text(at(0)), text(at(1))),
        "renameat" | "renameat2" => rename(disk, call.at(0), call.at(2)),
        "unlink" => remove(disk, text(at(0))),
        "unlinkat" if at(2).contains("AT_REMOVEDIR") => remove(disk, call.at(0)),
        "unlinkat" => remove(disk, call.at(0)),
        "rmdir" => remove(disk, text(at(0))),
        "mkdir" => make_folder(disk, text(at(0))),
        "mkdirat" => make_folder(disk, call.at(0)),
        "fsync" | "fdatasync" => {
            if let Some(path) = call.open(0) {
                disk.record(DiskOp::Sync(path));
            }
        }
        "syncfs" | "sync" => disk.record(DiskOp::SyncAll),
        other => {
            let is_ours =
                call.arguments.iter().filter_map(|argument| open_path(argument)).any(|path| disk.has(&path));
            assert!(!is_ours, "the model of the disk does not know the call `{other}`");
        }
    }
}

fn rename(disk: &mut DiskModel, from: Option<String>, to: Option<String>) {
    if let (Some(from), Some(to)) = (from, to) {
        disk.record(DiskOp::Rename(from, to));
    }
}

fn remove(disk: &mut DiskModel, path: Option<String>) {
    if let Some(path) = path {
        disk.record(DiskOp::Remove(path));
    }
}

fn make_folder(disk: &mut DiskModel, path: Option<String>) {
    if let Some(path) = path {
        disk.record(DiskOp::MakeFolder(path));
    }
}

fn joined(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// Reads the path behind a number such as `7<\x2f\x61>`.
fn open_path(argument: &str) -> Option<String> {
    let (_, path) = argument.split_once('<')?;
    let path = String::from_utf8(unescaped(path.split_once('>')?.0)?).ok()?;
    // A file without a name any more is written by its process only.
    if path.ends_with(" (deleted)") { None } else { Some(path) }
}

fn text(argument: &str) -> Option<String> {
    String::from_utf8(bytes(argument)?).ok()
}

fn bytes(argument: &str) -> Option<Vec<u8>> {
    unescaped(argument.strip_prefix('"')?.strip_suffix('"')?)
}

/// Reads text in which every byte is written as `\x2f`.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    text.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte.get(..2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    #[test]
    fn calls_become_what_they_do_to_the_disk() {
        let (root, a, b) = (hex("/d"), hex("a"), hex("b"));
        let trace = format!(
            "1  mkdir(\"{root}\", 0755) = 0\n\
             1  openat(AT_FDCWD<{root}>, \"{a}\", O_WRONLY|O_CREAT, 0644) = 3<{root}\\x2f{a}>\n\
             1  write(3<{root}\\x2f{a}>, \"{}\", 2) = 2\n\
             2  fsync(3<{root}\\x2f{a}> <unfinished ...>\n\
             1  write(3<{root}\\x2f{a}>, \"{}\", 1) = 1\n\
             2  <... fsync resumed>) = 0\n\
             1  renameat(4<{root}>, \"{a}\", 4<{root}>, \"{b}\") = 0\n\
             1  unlinkat(4<{root}>, \"{a}\", 0) = -1 ENOENT (No such file or directory)\n\
             1  write(1<{}>, \"{}\", 5) = 5\n",
            hex("hi"),
            hex("!"),
            hex("pipe:[1]"),
            hex("done\n"),
        );
        let disk = parse_trace(&trace, "/d", &[]);
        let write = |offset, data: &str| DiskOp::Write {
            path: "/d/a".to_owned(),
            offset,
            data: data.as_bytes().to_vec(),
        };
        let expected = [
            DiskOp::SyncAll,
            DiskOp::Create("/d/a".to_owned()),
            write(0, "hi"),
            write(2, "!"),
            DiskOp::Sync("/d/a".to_owned()),
            DiskOp::Rename("/d/a".to_owned(), "/d/b".to_owned()),
            DiskOp::Said("done\n".to_owned()),
        ];
        assert_eq!(disk.ops(), expected);
    }
}
