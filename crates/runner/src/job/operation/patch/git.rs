//! Git as a program that reads patches, away from every repository and from what anybody configured.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::git::ELSEWHERE;

/// Runs git in a directory that belongs to no repository. Returns what it says.
///
/// # Errors
/// What git complains about.
pub(super) fn git(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, String> {
    let mut command = Command::new("git");
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    let output = command
        .args(["-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap_or(directory))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git said nothing");
    Err(line.trim_start_matches("error: ").trim_start_matches("fatal: ").to_owned())
}
