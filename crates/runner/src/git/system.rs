//! Who asks git: the seam, and the program of this machine.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

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
        let pipe = child.stdin.take();
        thread::scope(|scope| {
            if let (Some(mut pipe), Some(bytes)) = (pipe, call.input()) {
                // Git answers while it still reads, so that whoever wrote all of it first might wait for ever. Who does
                // not read all of it says why in the answer.
                scope.spawn(move || pipe.write_all(bytes));
            }
            child.wait_with_output()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_may_answer_while_it_is_still_being_told() {
        let world = tempfile::tempdir().unwrap();
        // More than two pipes hold, in both directions: each name is answered at once.
        let names = "x\n".repeat(1 << 18);
        let call = Call::new(["check-ignore", "--no-index", "--stdin", "--verbose", "--non-matching"]);
        let at = world.path();
        assert!(System::default().ask(at, &Call::new(["init", "-q"])).unwrap().status.success());
        let output = System::default().ask(at, &call.stdin(names)).unwrap();
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1 << 18);
    }
}
