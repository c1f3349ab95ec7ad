//! Who a process of a job is: the variables that it is given, and how it is known by them later.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tidewheel_core::job::{JobId, NodeId, RunId};

use crate::process::Program;

/// What a supervisor and a waker have in their environment, so that nobody takes them for a part of the job that
/// started them.
pub(super) const DETACHED: &str = "TIDEWHEEL_DETACHED";
/// What tells the processes of a job from all others.
pub(super) const TOKEN: &str = "TIDEWHEEL_JOB_TOKEN";

/// The variables of a job that must not reach a job that it starts.
pub(super) const OF_A_JOB: [&str; 7] = [
    "TIDEWHEEL_JOB_ID",
    "TIDEWHEEL_RUN",
    "TIDEWHEEL_NODE",
    "TIDEWHEEL_ATTEMPT",
    "TIDEWHEEL_IDEMPOTENCY_KEY",
    "TIDEWHEEL_DIR",
    TOKEN,
];

/// Who the processes of an attempt are.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The job.
    pub job: JobId,
    /// Its run.
    pub run: Option<RunId>,
    /// Its node.
    pub node: Option<NodeId>,
    /// The start that it is, counted from one over the life of the job.
    pub attempt: u32,
    /// What makes two attempts the same piece of work.
    pub idempotency_key: String,
}

impl Identity {
    /// Gives a program the variables that tell it who it is.
    #[must_use]
    pub fn given_to(&self, program: Program, data: &Path) -> Program {
        let run = self.run.as_ref().map_or("", RunId::as_str);
        let node = self.node.as_ref().map_or("", NodeId::as_str);
        program
            .env("TIDEWHEEL_JOB_ID", self.job.as_str())
            .env("TIDEWHEEL_RUN", run)
            .env("TIDEWHEEL_NODE", node)
            .env("TIDEWHEEL_ATTEMPT", self.attempt.to_string())
            .env("TIDEWHEEL_IDEMPOTENCY_KEY", self.idempotency_key.as_str())
            .env("TIDEWHEEL_DIR", data)
            .env(TOKEN, token(&self.job, self.attempt, data))
    }
}

/// Returns what only the processes of this attempt have.
pub(super) fn token(job: &JobId, attempt: u32, data: &Path) -> OsString {
    let mut token = OsString::from(format!("{job}:{attempt}:"));
    token.push(one_name_of(data));
    token
}

/// Returns the name of a directory that is the same for everybody, however it was named.
fn one_name_of(data: &Path) -> PathBuf {
    data.canonicalize().unwrap_or_else(|_| data.to_owned())
}

/// Tells whether a token is of any attempt of a job.
pub(super) fn is_token_of(token: &[u8], job: &JobId, data: &Path) -> bool {
    let rest = token.strip_prefix(job.as_str().as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
    let Some(rest) = rest else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let path = rest[digits..].strip_prefix(b":");
    digits > 0 && path.is_some_and(|path| OsStr::from_bytes(path) == one_name_of(data).as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_its_job_in_its_directory_and_of_no_other() {
        let job = |id: &str| JobId::new(id).unwrap();
        let here = Path::new("/a/.tidewheel");
        for attempt in [0, 1, 12] {
            let token = token(&job("x"), attempt, here);
            assert!(is_token_of(token.as_bytes(), &job("x"), here));
            assert!(!is_token_of(token.as_bytes(), &job("x.1"), here));
            assert!(!is_token_of(token.as_bytes(), &job("xx"), here));
            assert!(!is_token_of(token.as_bytes(), &job("x"), Path::new("/b/.tidewheel")));
        }
        for none in ["", "x", "x:", "x:1", "x::/a/.tidewheel", "x:1:/a/.tidewheel/more"] {
            assert!(!is_token_of(none.as_bytes(), &job("x"), here), "{none}");
        }
    }
}
