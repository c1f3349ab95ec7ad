//! A directory to run the binary in, and what came of a run. Tests share nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// An empty directory.
pub(crate) struct Home(TempDir);

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts a file into the directory, with the folders above it.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Returns the command, with an environment that says nothing.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
        command.arg0("tidewheel").args(arguments).env_clear().current_dir(self.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command without input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments), b"")
    }

    /// Runs the command with an input.
    pub(crate) fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        Ran::of(self.command(arguments), input.as_ref())
    }

    /// Runs the command under variables of the environment.
    pub(crate) fn run_under(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Ran::of(command, b"")
    }
}

impl Ran {
    /// Runs a command with an input, which may be more than pipes hold.
    pub(crate) fn of(mut command: Command, input: &[u8]) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        std::thread::scope(|scope| {
            // A command that does not read its input closes the pipe, which is its right.
            scope.spawn(move || stdin.write_all(input).ok());
            let err = scope.spawn(move || {
                let mut err = Vec::new();
                stderr.read_to_end(&mut err).unwrap();
                err
            });
            let mut out = Vec::new();
            if let Some(mut stdout) = child.stdout.take() {
                stdout.read_to_end(&mut out).unwrap();
            }
            let status = child.wait().unwrap();
            Self {
                code: status.code(),
                out: String::from_utf8(out).unwrap(),
                err: String::from_utf8(err.join().unwrap()).unwrap(),
            }
        })
    }

    /// Returns the lines of the output.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.out.lines().collect()
    }

    /// Fails unless all went well without a word on the standard error.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self
    }
}

/// The whole of it, as snapshots keep it.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.out)?;
        if !self.err.is_empty() {
            write!(f, "--- stderr\n{}", self.err)?;
        }
        match self.code {
            Some(0) => Ok(()),
            Some(code) => write!(f, "--- exit code {code}"),
            None => f.write_str("--- killed"),
        }
    }
}
