//! What an operation may ask of whoever runs it, and where it writes down what it does.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidewheel_core::job::{Artifact, Manifest};
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::JobStoreError;

use crate::git::Git;

/// What is around a node: its run, what others made, what is configured.
pub trait Around: fmt::Debug {
    /// Returns the data directory.
    fn data(&self) -> &Path;

    /// Returns the present.
    fn now(&self) -> Timestamp;

    /// Reads the whole manifest of the run; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    fn manifest(&self) -> Result<Option<Manifest>, JobStoreError>;

    /// Reads what is in an artifact that the job needs: if a node of its run makes it, what that made, else what is
    /// newest.
    ///
    /// # Errors
    /// It cannot be read.
    fn payload(&self, artifact: &Artifact) -> Result<Option<Value>, JobStoreError>;

    /// Returns who asks git, such that what it starts is known as a part of the attempt.
    fn git(&self) -> Arc<dyn Git>;

    /// Writes values into the metadata of the record, at once; a null takes one away. What is noted is known after a
    /// crash.
    ///
    /// # Errors
    /// It cannot be written, or the attempt is not this process's any more.
    fn note(&self, values: &[(&str, Value)]) -> io::Result<()>;

    /// Reads a value of the metadata of the record as it is now.
    ///
    /// # Errors
    /// It cannot be read, or the attempt is not this process's any more.
    fn noted(&self, name: &str) -> io::Result<Option<Value>>;

    /// Reads a value of the metadata of every record of the run that has it.
    ///
    /// # Errors
    /// The manifest of the run cannot be read.
    fn noted_in_run(&self, name: &str) -> io::Result<Vec<Value>>;

    /// Adds a line to what the job says.
    fn say(&self, line: &str);

    /// Adds a line to what the job complains about.
    fn complain(&self, line: &str);

    /// Returns how an agent is called; `None` if there is no such agent.
    fn agent(&self, name: &str) -> Option<&AgentProgram>;
}

/// How an agent is called, with the values of all that it may know of the environment.
#[derive(Clone, Default)]
pub struct AgentProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The whole of its environment, beside what tells it which job it is.
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Where it runs, relative to the root; by default where its node runs.
    pub cwd: Option<String>,
}

/// Values of the environment are often secrets, so that only their names are shown.
impl fmt::Debug for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("AgentProgram")
            .field("argv", &self.argv)
            .field("env", &names)
            .field("timeout", &self.timeout)
            .field("cwd", &self.cwd)
            .finish()
    }
}
