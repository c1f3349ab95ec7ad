//! What can go wrong on the command line: each error with its kind, its code, its page and its hints.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::exit::Exit;

/// Why a command ends before its work is done.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Whoever read our output has gone, as `head` does when it has enough. That is no error.
    ReaderGone,
    /// Something is wrong, and a person has to know.
    Error(CommandError),
}

impl Ending {
    /// Returns whether it is the output that takes nothing any more, for whatever reason.
    pub(crate) fn is_of_output(&self) -> bool {
        match self {
            Self::ReaderGone => true,
            Self::Error(error) => error.code == Code::OutputUnwritable,
        }
    }

    /// Says of an output that could not be written that what was asked for is done all the same.
    pub(crate) fn after_the_fact(self) -> Self {
        match self {
            Self::Error(error) if error.code == Code::OutputUnwritable => {
                Self::Error(error.hint("What was asked for is done: only what was to be printed is missing."))
            }
            other => other,
        }
    }
}

impl From<CommandError> for Ending {
    fn from(error: CommandError) -> Self {
        Self::Error(error)
    }
}

/// An error that a person meets.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// Whose turn it is.
    pub(crate) kind: Kind,
    /// The code, whose page says what to do.
    pub(crate) code: Code,
    /// What happened, as a sentence.
    pub(crate) message: String,
    /// What to try, each as a sentence.
    pub(crate) hints: Vec<String>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whoever typed the command or wrote its input.
    User,
    /// Whoever wrote the configuration that was read, such as a file of policies.
    Config,
    /// Whoever runs the machine: a disk is full, a right is missing, a file was damaged or is of a later release.
    World,
    /// Us.
    Internal,
}

impl CommandError {
    /// Returns an error without hints.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { kind: code.kind(), code, message: message.into(), hints: Vec::new() }
    }

    /// Returns the error of a flag that would change nothing, and why it would not.
    pub(crate) fn idle(flag: &str, why: &str) -> Self {
        Self::new(Code::FlagIdle, format!("`{flag}` has no effect here: {why}."))
            .hint(format!("Leave out `{flag}`."))
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds what to do about what the system said. What the system does not let us do is not our own fault.
    pub(crate) fn after(mut self, error: &io::Error) -> Self {
        if self.kind == Kind::Internal {
            self.kind = Kind::World;
        }
        remedy(error).into_iter().fold(self, Self::hint)
    }

    /// Returns an error from what others put into words: the number of an error of the system in it is left out, and
    /// says what to do.
    pub(crate) fn of_words(code: Code, words: &str) -> Self {
        const BEFORE: &str = " (os error ";
        let number =
            |(_, rest): (&str, &str)| rest.split_once(')').and_then(|(number, _)| number.parse().ok());
        let Some(number) = words.split_once(BEFORE).and_then(number) else { return Self::new(code, words) };
        let message = words.replace(&format!("{BEFORE}{number})"), "");
        Self::new(code, message).after(&io::Error::from_raw_os_error(number))
    }

    /// Returns the error of an output that cannot be written, or no error when its reader has gone.
    pub(crate) fn of_output(error: &io::Error) -> Ending {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Ending::ReaderGone;
        }
        Self::new(Code::OutputUnwritable, format!("The output cannot be written: {}.", cause(error))).into()
    }

    /// Returns the exit code that goes with it.
    pub(crate) const fn exit(&self) -> Exit {
        match self.code {
            Code::LinesUnreadable | Code::FlowRefused | Code::OtherSide | Code::FlagIdle => Exit::Usage,
            Code::InputMissing
            | Code::InputUnreadable
            | Code::OutputUnwritable
            | Code::PolicyFileTooLarge
            | Code::PolicyFileNotText
            | Code::PolicyFileInvalid
            | Code::DemoWorkerFailed
            | Code::StoreMissing
            | Code::StoreForeign
            | Code::StoreNewer
            | Code::StoreUnavailable
            | Code::RunMissing
            | Code::RunAmbiguous
            | Code::RunDamaged
            | Code::NothingThere
            | Code::NotAsked
            | Code::JobMissing
            | Code::JobAmbiguous
            | Code::JobDamaged
            | Code::JobRefused
            | Code::JobsTrouble
            | Code::JobsUnavailable
            | Code::JobsUnfinished
            | Code::FlowMissing
            | Code::FlowInvalid
            | Code::FlowUnpinned
            | Code::ConfigInvalid
            | Code::NotWatched => Exit::Failed,
        }
    }
}

/// Says what to do about what the system does not let be done, where there is something to do.
pub(crate) fn remedy(error: &io::Error) -> Option<&'static str> {
    if let Some(Errno::MFILE | Errno::NFILE) = Errno::from_io_error(error) {
        return Some(
            "Too many files are open: end what has so many, or allow more with `ulimit -n`, and try again.",
        );
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Some("Work as its owner, or give yourself the right, or use another directory.")
        }
        io::ErrorKind::ReadOnlyFilesystem => Some(
            "The file system is mounted for reading only: looking works, and running needs another directory.",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Some("Make room on the disk, and try again; what is on record stays as it is.")
        }
        io::ErrorKind::NotADirectory => Some("A file is where a directory should be: move it away."),
        io::ErrorKind::IsADirectory => Some("A directory is where a file should be: move it away."),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            Some("The machine has no room for more processes or memory: end something, and try again.")
        }
        _ => None,
    }
}

/// Says what the system said, without its number.
pub(crate) fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// Defines the codes once, so that each has its number and is in the list.
macro_rules! codes {
    ($($(#[$meta:meta])* $Variant:ident = $name:literal, $Kind:ident;)+) => {
        /// The errors that a person can meet. A number is never used again for something else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$meta])* $Variant,)+ }

        impl Code {
            /// Every code.
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$Variant,)+];

            const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name,)+ }
            }

            const fn kind(self) -> Kind {
                match self { $(Self::$Variant => Kind::$Kind,)+ }
            }
        }
    };
}

codes! {
    /// There is no file with that name.
    InputMissing = "TW0001", User;
    /// The file is there, but cannot be read.
    InputUnreadable = "TW0002", User;
    /// The output cannot be written.
    OutputUnwritable = "TW0003", User;
    /// Some lines of the input are not JSON.
    LinesUnreadable = "TW0004", User;
    /// The file is too large for a file of policies.
    PolicyFileTooLarge = "TW0005", Config;
    /// The file of policies is not UTF-8.
    PolicyFileNotText = "TW0006", Config;
    /// Something in the file of policies is wrong.
    PolicyFileInvalid = "TW0007", Config;
    /// The worker of the demo could not do its part.
    DemoWorkerFailed = "TW0008", Internal;
    /// There is no store with that name.
    StoreMissing = "TW0009", User;
    /// The file is no store of ours.
    StoreForeign = "TW0010", User;
    /// The store was written by a later release.
    StoreNewer = "TW0011", World;
    /// The store is there, but cannot be used now.
    StoreUnavailable = "TW0012", World;
    /// There is no such run.
    RunMissing = "TW0013", User;
    /// Several runs begin so.
    RunAmbiguous = "TW0014", User;
    /// What is stored of a run cannot be read.
    RunDamaged = "TW0015", World;
    /// The run has no such component, work or result.
    NothingThere = "TW0016", User;
    /// What was to be asked of a run would change nothing.
    NotAsked = "TW0017", User;
    /// There is no such job.
    JobMissing = "TW0018", User;
    /// Several jobs or runs begin or end so.
    JobAmbiguous = "TW0019", User;
    /// The record of a job cannot be read.
    JobDamaged = "TW0020", World;
    /// What was asked of a job cannot be done as the job is.
    JobRefused = "TW0021", User;
    /// A pass of the scheduler could not do something.
    JobsTrouble = "TW0022", World;
    /// The data directory cannot be used.
    JobsUnavailable = "TW0023", User;
    /// The jobs that were waited for are not over.
    JobsUnfinished = "TW0024", User;
    /// There is no such flow.
    FlowMissing = "TW0025", User;
    /// Something in a template is wrong.
    FlowInvalid = "TW0026", Config;
    /// A flow cannot be run with these arguments.
    FlowRefused = "TW0027", User;
    /// Something in the configuration is wrong.
    ConfigInvalid = "TW0028", Config;
    /// The schedule cannot be watched here, or not so.
    NotWatched = "TW0029", User;
    /// The command is one of the other kind of runs.
    OtherSide = "TW0030", User;
    /// Jobs cannot be pinned to a branch.
    FlowUnpinned = "TW0031", User;
    /// A flag changes nothing beside the others.
    FlagIdle = "TW0032", User;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn each_code_has_a_page_and_each_page_a_code() {
        let codes: BTreeSet<String> = Code::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(codes.len(), Code::ALL.len(), "each number is used once");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let mut pages = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if name == "README" {
                // The list of them all.
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.starts_with(&format!("# {name}: ")), "{name}: the page begins with its code");
            for heading in ["## What happened", "## What to do"] {
                assert!(text.contains(heading), "{name}: the page has a part `{heading}`");
            }
            pages.insert(name);
        }
        assert_eq!(codes, pages);
    }

    #[test]
    fn the_number_of_the_system_is_left_out() {
        assert_eq!(cause(&io::Error::from_raw_os_error(2)), "No such file or directory");
        assert_eq!(cause(&io::Error::other("it is late")), "it is late");
        let told =
            CommandError::of_words(Code::JobsTrouble, "job a: cannot open x: Is a directory (os error 21)");
        assert_eq!(told.message, "job a: cannot open x: Is a directory");
        assert_eq!(told.hints, ["A directory is where a file should be: move it away."]);
        for words in ["job a is held", "it said (os error", " (os error x)"] {
            let told = CommandError::of_words(Code::JobsTrouble, words);
            assert_eq!((told.message.as_str(), told.hints.len()), (words, 0));
        }
    }

    /// A full disk was told as an internal error.
    #[test]
    fn what_the_system_does_not_let_us_do_is_no_fault_of_ours_and_has_a_remedy() {
        let errors = [Errno::NOSPC, Errno::DQUOT, Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::ISDIR];
        for errno in errors.into_iter().chain([Errno::NOTDIR, Errno::MFILE, Errno::NFILE, Errno::NOMEM]) {
            for code in Code::ALL {
                let told = CommandError::new(*code, "x").after(&errno.into());
                assert!(told.kind != Kind::Internal && told.hints.len() == 1, "{code} {errno:?}");
            }
        }
    }
}
