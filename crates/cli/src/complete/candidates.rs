//! What the words of a command line can be where only the files of a repository know: ids, flows, parameters. Reads
//! files and changes none.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use tidewheel_core::job::template::Template;
use tidewheel_store::jobs::{Files, JobStore as _};

use crate::jobs::{DirArguments, Flow, Place, Settings};
use crate::output::harmless;

/// So many candidates are shown; nobody reads more, and an id can be begun.
const MOST: usize = 500;

/// Returns a command whose arguments know what they can be in the repository that the words speak of.
pub(super) fn added(command: Command, words: &[OsString]) -> Command {
    let asked = Arc::new(Asked::of(words));
    let mut command = command;
    // Commands are few and not deep: jobs and runs have theirs, and those of runs once more.
    for name in names(&command) {
        command = command.mut_subcommand(&name, |inner| {
            let mut inner = of_command(inner, &asked);
            for name in names(&inner) {
                inner = inner.mut_subcommand(&name, |inner| of_command(inner, &asked));
            }
            inner
        });
    }
    command
}

fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect()
}

/// Adds candidates to the arguments of one command, which are known by their names.
fn of_command(command: Command, asked: &Arc<Asked>) -> Command {
    let is_run = command.get_name() == "run";
    let mut command = command.mut_args(|argument| {
        let kind = match argument.get_id().as_str() {
            "job" | "jobs" => Kind::Job,
            "after" => Kind::JobOrRun,
            "run" => Kind::Run,
            "flow" => Kind::Flow,
            "set" => Kind::Param,
            "dir" | "keep" => Kind::Directory,
            "file" | "store" => Kind::File,
            _ => return argument,
        };
        let asked = Arc::clone(asked);
        argument.add(ArgValueCompleter::new(move |current: &OsStr| asked.candidates(kind, current)))
    });
    let template = if is_run { asked.template() } else { None };
    for flag in template.iter().flat_map(Template::flags) {
        // A flag of the template that is one of ours is refused when the template is read.
        if command.get_arguments().any(|argument| argument.get_long() == Some(flag.flag)) {
            continue;
        }
        let help = format!("sets the parameter {}", flag.param);
        // The command line wants names that live as long as the process, which ends when this is answered.
        let long: &'static str = flag.flag.to_owned().leak();
        let id: &'static str = format!("flag of the template: {long}").leak();
        command = command.arg(Arg::new(id).long(long).num_args(1).help(help));
    }
    command
}

/// What a word can be.
#[derive(Clone, Copy)]
enum Kind {
    Job,
    Run,
    JobOrRun,
    Flow,
    Param,
    Directory,
    File,
}

/// What the words say about where to look.
struct Asked {
    place: Option<Place>,
    /// The flow that is to be run.
    flow: Option<String>,
}

impl Asked {
    fn of(words: &[OsString]) -> Self {
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let named = words.iter().position(|word| *word == "--dir").and_then(|at| words.get(at + 1).copied());
        let dir = named.or_else(|| words.iter().find_map(|word| word.strip_prefix("--dir=")));
        let dir = dir.filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let is_run = words.get(1) == Some(&"run");
        let flow = if is_run { words.get(2).filter(|word| !word.starts_with('-')) } else { None };
        Self { place: Place::find(&DirArguments { dir }).ok(), flow: flow.map(|flow| (*flow).to_owned()) }
    }

    /// Returns the template of the flow that is to be run.
    fn template(&self) -> Option<Template> {
        let (place, flow) = (self.place.as_ref()?, self.flow.as_ref()?);
        let settings = Settings::look(place).ok()?.unwrap_or_default();
        Flow::try_find(place, &settings, flow).map(|flow| flow.template)
    }

    fn candidates(&self, kind: Kind, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(text) = current.to_str() else { return Vec::new() };
        let found = match kind {
            Kind::Directory => return PathCompleter::dir().complete(current),
            Kind::File => return PathCompleter::any().complete(current),
            Kind::Job => self.jobs(text),
            Kind::Run => self.runs(),
            Kind::JobOrRun => {
                let runs = self.runs().into_iter().map(|run| format!("run:{run}"));
                runs.chain(self.jobs(text)).collect()
            }
            Kind::Flow => self.flows(),
            Kind::Param => self.params(),
        };
        let fits =
            |word: &String| word.starts_with(text) && matches!(harmless(word), std::borrow::Cow::Borrowed(_));
        let found = found.into_iter().filter(fits).take(MOST).map(CompletionCandidate::new);
        let mut found: Vec<CompletionCandidate> = found.collect();
        if matches!(kind, Kind::Flow) {
            // A flow may be any file.
            found.extend(PathCompleter::any().filter(is_flow).complete(current));
        }
        found
    }

    /// Returns the jobs, newest first, and the nodes of a run whose beginning is `RUN/`.
    fn jobs(&self, text: &str) -> Vec<String> {
        let Some(jobs) = self.store().and_then(|store| store.jobs().ok()) else { return Vec::new() };
        let mut jobs: Vec<_> = jobs.briefs.into_values().collect();
        jobs.sort_by(|one, other| (&other.created_at, &one.id).cmp(&(&one.created_at, &other.id)));
        if let Some((run, _)) = text.split_once('/') {
            let of_run =
                |id: &str| id.strip_prefix(&format!("wf-{run}-")).map(|node| format!("{run}/{node}"));
            return jobs.iter().filter_map(|job| of_run(job.id.as_str())).collect();
        }
        jobs.iter().map(|job| job.id.to_string()).collect()
    }

    /// Returns the runs that jobs belong to.
    fn runs(&self) -> Vec<String> {
        let Some(jobs) = self.store().and_then(|store| store.jobs().ok()) else { return Vec::new() };
        let runs: BTreeSet<String> =
            jobs.briefs.values().filter_map(|job| job.run.as_ref()).map(ToString::to_string).collect();
        runs.into_iter().collect()
    }

    fn store(&self) -> Option<Files> {
        Files::open_existing(&self.place.as_ref()?.data).ok()
    }

    /// Returns the aliases and the workflows by the names of their files.
    fn flows(&self) -> Vec<String> {
        let Some(place) = &self.place else { return Vec::new() };
        let settings = Settings::look(place).ok().and_then(Result::ok).unwrap_or_default();
        Flow::names(place, &settings)
    }

    /// Returns the parameters of the flow, ready for their values.
    fn params(&self) -> Vec<String> {
        let template = self.template();
        template.iter().flat_map(Template::params).map(|(name, _)| format!("{name}=")).collect()
    }
}

fn is_flow(path: &std::path::Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|extension| extension == "toml")
}
