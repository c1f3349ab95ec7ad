//! Who asks git: the seam, and the program of this machine.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::call::Call;

/// Asks git.
pub trait Git: fmt::Debug + Send + Sync {
    /// Asks something at a directory, and waits for the answer.
    ///
    /// # Errors
    /// There is no git, or no such directory.
    fn ask(&self, at: &Path, call: &Call) -> io::Result<Output>;
}

/// The git of this machine.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// What its processes are known by.
    variables: Vec<(OsString, OsString)>,
}

impl System {
    /// Lets its processes be known by a variable.
    #[must_use]
    pub fn known_by(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

impl Git for System {
    fn ask(&self, at: &Path, call: &Call) -> io::Result<Output> {
        let program = call.program(at);
        let mut command = Command::new(program.name().unwrap_or_default());
        for name in program.unset() {
            command.env_remove(name);
        }
        // What it says is read by us, and what it only looks at is not refreshed under somebody's hands.
        command.args(program.args()).current_dir(at).envs(program.vars());
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let stdin = if call.input().is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), call.input()) {
            // Who does not read all of it says why in the answer.
            let _unread = pipe.write_all(bytes);
        }
        child.wait_with_output()
    }
}
