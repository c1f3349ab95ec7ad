//! One run of cargo as a named step: shows it, measures it and says how it failed; hides no output.
#![expect(
    clippy::print_stderr,
    reason = "showing progress is the job of this binary; stdout belongs to the tools that it runs"
)]

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// A call of cargo in the root of the workspace, with a name for people.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    name: &'static str,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl Step {
    /// Returns a step that runs cargo with `arguments`.
    pub(crate) fn cargo<A: AsRef<OsStr>>(name: &'static str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self { name, arguments: Vec::new(), variables: Vec::new() }.with(arguments)
    }

    /// Adds arguments.
    pub(crate) fn with<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable for this step only.
    pub(crate) fn variable(mut self, key: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((key, value.into()));
        self
    }

    /// Runs the step to its end and returns how long it took.
    pub(crate) fn run(&self) -> Result<Duration, StepError> {
        eprintln!("==> {}: {self}", self.name);
        let started = Instant::now();
        let status = Command::new(cargo())
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(key, value)| (key, value)))
            .current_dir(workspace_root())
            .status();
        let elapsed = started.elapsed();

        match status {
            Ok(status) if status.success() => {
                eprintln!("==> {}: passed in {}", self.name, Seconds(elapsed));
                Ok(elapsed)
            }
            Ok(status) => {
                Err(StepError::Failed { step: self.name, command: self.to_string(), status, elapsed })
            }
            Err(source) => Err(StepError::NotStarted { step: self.name, program: cargo(), source }),
        }
    }
}

/// Shows the step as a line that can be pasted into a shell.
impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.variables {
            write!(out, "{key}={} ", Quoted(value))?;
        }
        out.write_str("cargo")?;
        for argument in &self.arguments {
            write!(out, " {}", Quoted(argument))?;
        }
        Ok(())
    }
}

/// Why a step did not succeed.
#[derive(Debug)]
pub(crate) enum StepError {
    /// Cargo could not be started at all.
    NotStarted {
        /// The name of the step.
        step: &'static str,
        /// What should have been started.
        program: OsString,
        /// What the operating system said.
        source: io::Error,
    },
    /// Cargo ran and reported a failure.
    Failed {
        /// The name of the step.
        step: &'static str,
        /// The line to paste into a shell to see it again.
        command: String,
        /// How cargo ended.
        status: ExitStatus,
        /// How long the step had been running.
        elapsed: Duration,
    },
}

impl StepError {
    /// Returns what happened in a few words, without the command.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::NotStarted { source, .. } => format!("cannot be started: {source}"),
            Self::Failed { status, elapsed, .. } => {
                format!("failed after {} ({status})", Seconds(*elapsed))
            }
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { step, program, source } => {
                write!(out, "{step}: cannot start '{}': {source}", program.display())
            }
            Self::Failed { step, command, status, elapsed } => write!(
                out,
                "{step} failed after {} ({status})\nto run only this step: {command}",
                Seconds(*elapsed)
            ),
        }
    }
}

/// A duration as seconds with one decimal, since no step is worth measuring more finely.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.1} s", self.0.as_secs_f64())
    }
}

/// A word of a command line, quoted if a shell would take it apart.
struct Quoted<'a>(&'a OsStr);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            out.write_str(&text)
        } else {
            write!(out, "'{}'", text.replace('\'', r"'\''"))
        }
    }
}

/// Returns the cargo that started us, so that one toolchain does everything.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the root of the workspace, so that a chore works from every directory below it.
///
/// The value at run time comes first: two checkouts that share a target directory can share the binary.
pub(crate) fn workspace_root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map(Path::to_owned).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_as_a_line_for_a_shell() {
        let step = Step::cargo("docs", ["doc", "--no-deps"]).variable("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(step.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_quote_inside_a_word_survives_the_shell() {
        assert_eq!(Quoted(OsStr::new("it's")).to_string(), r"'it'\''s'");
        assert_eq!(Quoted(OsStr::new("")).to_string(), "''");
    }

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(workspace_root().join("Cargo.lock").is_file());
    }
}
