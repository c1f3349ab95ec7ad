//! `cargo xtask dist`: what packages need beside the binary, written by the binary itself; must not install anything.
#![expect(clippy::print_stderr, reason = "telling where things are is the job of this binary")]

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::command::{Command, Failure};
use crate::step::{Step, workspace_root};

/// Writes manual pages and completions into `target/dist`.
pub(crate) const COMMAND: Command = Command {
    name: "dist",
    arguments: "[--debug]",
    about: "Builds the release and writes what packages need into target/dist: manual pages, completions",
    run,
};

/// The shells, and how packages call their scripts.
const SHELLS: [(&str, &str); 3] =
    [("bash", "tidewheel.bash"), ("zsh", "_tidewheel"), ("fish", "tidewheel.fish")];

/// A script that zsh loads when it is needed is the body of a function: the first call must complete something, too.
const ZSH_FIRST_CALL: &str =
    "\nif [[ $funcstack[1] == _tidewheel ]]; then\n    _clap_dynamic_completer_tidewheel \"$@\"\nfi\n";

fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let profile = match arguments {
        [] => "release",
        [only] if only == "--debug" => "debug",
        [other, ..] => {
            return Err(Failure::UnexpectedArgument { command: COMMAND.name, argument: other.clone() });
        }
    };
    let build = Step::cargo("build", ["build", "-p", "tidewheel-cli", "--bin", "tidewheel"]);
    let build = if profile == "release" { build.with(["--release"]) } else { build };
    build.run()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from);
    let place = target.join("dist");
    write(&target.join(profile).join("tidewheel"), &place)?;
    eprintln!("==> dist: man/ and completions/ are in {}", place.display());
    Ok(())
}

/// Lets the binary write all of it; what was there before is gone.
fn write(binary: &Path, place: &Path) -> Result<(), DistError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| DistError::Io { path, source }
    };
    for name in ["man", "completions"] {
        let folder = place.join(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(&folder)(error)),
            Ok(()) | Err(_) => fs::create_dir_all(&folder).map_err(fail(&folder))?,
        }
    }
    let man = place.join("man");
    said(binary, &["man".into(), man.clone().into()])?;
    if !man.join("tidewheel.1").is_file() {
        return Err(DistError::Missing(man.join("tidewheel.1")));
    }
    for (shell, name) in SHELLS {
        let mut script = said(binary, &["completions".into(), shell.into()])?;
        if shell == "zsh" {
            script.extend(ZSH_FIRST_CALL.as_bytes());
        }
        let path = place.join("completions").join(name);
        fs::write(&path, script).map_err(fail(&path))?;
    }
    Ok(())
}

/// Returns what the binary says.
fn said(binary: &Path, arguments: &[OsString]) -> Result<Vec<u8>, DistError> {
    let output = process::Command::new(binary).args(arguments).output();
    let output = output.map_err(|source| DistError::Io { path: binary.to_owned(), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(DistError::Refused { command: words.join(" "), said })
}

/// Why something for packages could not be written.
#[derive(Debug)]
pub(crate) enum DistError {
    /// A file cannot be written, or the binary not be started.
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The binary did not do what it was asked.
    Refused {
        /// What it was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// The binary said that all was well, and it is not there.
    Missing(PathBuf),
}

impl fmt::Display for DistError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(out, "'{}': {source}", path.display()),
            Self::Refused { command, said } => write!(out, "'tidewheel {command}' failed: {said}"),
            Self::Missing(path) => write!(out, "'{}' was not written", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Returns an empty directory with something that answers as the binary does.
    fn stage(name: &str, script: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("xtask-dist-{}-{name}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("tidewheel");
        fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, binary)
    }

    #[test]
    fn pages_and_scripts_are_written_and_old_ones_are_gone() {
        let script = r#"case $1 in man) echo page >"$2/tidewheel.1" ;; *) echo "for $2" ;; esac"#;
        let (folder, binary) = stage("all", script);
        let place = folder.join("dist");
        fs::create_dir_all(place.join("man")).unwrap();
        fs::write(place.join("man/tidewheel-gone.1"), "").unwrap();
        write(&binary, &place).unwrap();
        let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(read("man/tidewheel.1"), "page\n");
        assert!(!place.join("man/tidewheel-gone.1").exists());
        assert_eq!(read("completions/tidewheel.bash"), "for bash\n");
        assert_eq!(read("completions/tidewheel.fish"), "for fish\n");
        assert_eq!(read("completions/_tidewheel"), format!("for zsh\n{ZSH_FIRST_CALL}"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_binary_that_fails_is_told() {
        let (folder, binary) = stage("fails", "echo no space >&2; exit 1");
        let error = write(&binary, &folder.join("dist")).unwrap_err().to_string();
        assert!(error.starts_with("'tidewheel man ") && error.ends_with("failed: no space"), "{error}");
        let (_, binary) = stage("fails", "exit 0");
        let error = write(&binary, &folder.join("dist")).unwrap_err().to_string();
        assert!(error.ends_with("tidewheel.1' was not written"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    /// Nobody builds a package on every commit; a file that was moved shows here.
    #[test]
    fn every_file_of_the_package_is_there_or_made_here() {
        let manifest = workspace_root().join("crates/cli");
        let text = fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
        let (_, rest) = text.split_once("assets = [").unwrap();
        let (assets, _) = rest.split_once("\n]").unwrap();
        let sources: Vec<&str> =
            assets.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split('"').next()).collect();
        assert!(sources.len() > 8, "{sources:?}");
        for source in sources {
            let made = source.strip_prefix("../../target/dist/");
            let is_made = made.is_some_and(|made| {
                made == "man/*.1" || SHELLS.iter().any(|(_, name)| made == format!("completions/{name}"))
            });
            let folder = manifest.join(source.trim_end_matches("/*.md"));
            assert!(is_made || source == "target/release/tidewheel" || folder.exists(), "{source}");
        }
    }
}
