//! Looks at what people wrote: the configuration with its aliases and agents, and the templates.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tidewheel_core::job::Agent;

use super::folder::kind;
use crate::doctor::facts::{Complaint, Kind};
use crate::error::CommandError;
use crate::jobs::{Flow, Place, Settings};
use crate::view::problems::Wrong;

/// Where the templates are.
const WORKFLOWS: &str = ".tidewheel/workflows";

/// What people wrote, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) config: Option<Vec<Complaint>>,
    pub(super) templates: (usize, Vec<Complaint>),
    pub(super) lost_aliases: Vec<(String, String)>,
    pub(super) agents: Vec<(String, String, bool)>,
}

/// Looks at what people wrote.
pub(super) fn written(place: &Place) -> Written {
    let mut written = Written::default();
    let has_config = fs::symlink_metadata(place.data.join("config.toml")).is_ok();
    let (settings, complaints) = match Settings::look(place) {
        Ok(Ok(settings)) => (settings, Vec::new()),
        Ok(Err(wrong)) => (Settings::default(), complaints(&wrong)),
        Err(error) => (Settings::default(), vec![unreadable(".tidewheel/config.toml", &error)]),
    };
    let is_sound = complaints.is_empty();
    written.config = has_config.then_some(complaints);
    match Flow::check_all(place, &settings) {
        Ok(checked) => {
            // A template may need what a configuration has that cannot be read; its own faults come after that.
            let wrong = checked.iter().filter_map(|checked| checked.as_ref().err()).filter(|_| is_sound);
            written.templates = (checked.len(), wrong.flat_map(complaints_of).collect());
        }
        Err(error) => written.templates = (0, vec![unreadable(WORKFLOWS, &error)]),
    }
    if kind(&place.root.join(WORKFLOWS)) == Kind::Other {
        let complaint = Complaint {
            file: WORKFLOWS.to_owned(),
            line: None,
            message: "the directory of the templates is no directory".to_owned(),
            help: Some("Move it away; `tidewheel init` makes the directory".to_owned()),
        };
        written.templates = (0, vec![complaint]);
    }
    for (alias, file) in &settings.config.commands {
        let path = file.strip_prefix("file:").unwrap_or(file);
        if !place.root.join(path).is_file() {
            written.lost_aliases.push((alias.clone(), path.to_owned()));
        }
    }
    for (name, agent) in &settings.config.agents {
        if let Some(program) = agent.argv.first() {
            written.agents.push((name.clone(), program.clone(), is_found(program, agent, &place.root)));
        }
    }
    written
}

fn unreadable(file: &str, error: &CommandError) -> Complaint {
    let help = error.hints.first().map(|hint| hint.trim_end_matches('.').to_owned());
    Complaint { file: file.to_owned(), line: None, message: error.message.clone(), help }
}

fn complaints_of(wrong: &Wrong) -> Vec<Complaint> {
    complaints(wrong)
}

fn complaints(wrong: &Wrong) -> Vec<Complaint> {
    let complaint = |problem: &tidewheel_core::Problem| Complaint {
        file: problem.file.clone().unwrap_or_else(|| wrong.file.clone()),
        line: problem.location.as_ref().map(|location| location.line),
        message: if problem.path.is_empty() {
            problem.message.clone()
        } else {
            format!("{}: {}", problem.path, problem.message)
        },
        help: problem.help.clone(),
    };
    wrong.problems.all().iter().map(complaint).collect()
}

/// Tells whether a program is there, as the system would look for it.
fn is_found(program: &str, agent: &Agent, root: &Path) -> bool {
    let is_program = |path: PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let folder = agent.cwd.as_deref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd));
        return is_program(folder.join(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).any(|folder| is_program(folder.join(program)))
}
