//! Who asks git: the seam, and the program of this machine.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use super::call::Call;

/// So many bytes fit into a pipe that is empty, on every system.
const PIPE: usize = 4_096;

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
        let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), call.input()) else {
            return child.wait_with_output();
        };
        if bytes.len() <= PIPE {
            // A git that does not read all of it says why in its answer.
            pipe.write_all(bytes).ok();
            drop(pipe);
            return child.wait_with_output();
        }
        thread::scope(|scope| {
            // Git answers while it still reads, so that writing all of it first might wait for ever.
            let writer = thread::Builder::new().spawn_scoped(scope, move || pipe.write_all(bytes));
            if let Err(error) = writer {
                // Its input is closed with the closure that holds it. What git makes of a part of it counts for nothing.
                child.kill().ok();
                child.wait()?;
                return Err(error);
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
