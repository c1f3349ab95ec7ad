//! What the words of a command line can be where only the files of a repository know: ids, flows, parameters. Reads
//! files and changes none.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use tidewheel_core::job::template::Template;
use tidewheel_core::view::steers;
use tidewheel_store::jobs::{Files, JobStore as _};

use crate::jobs::{DirArguments, Flow, Place, Settings};

/// So many candidates are shown; nobody reads more, and an id can be begun.
const MOST: usize = 500;

/// The commands on jobs that take whole runs, too.
const TAKE_RUNS: [&str; 2] = ["explain", "wait"];

/// The commands that take a flow, with its flags and parameters.
const TAKE_FLOWS: [&str; 2] = ["run", "graph"];

/// The flags of those commands that have a value behind them.
const TAKE_VALUES: [&str; 6] = ["--dir", "--set", "--after", "--pin", "--repeat", "--format"];

/// Returns a command whose arguments know what they can be in the repository that the words speak of.
pub(super) fn added(command: Command, words: &[OsString]) -> Command {
    let asked = Arc::new(Asked::of(words));
    // Who has not begun a word wants to know what it can be; flags are offered where there is nothing else.
    let hides_flags = words.last().is_none_or(|word| word.is_empty());
    let of_command = |command: Command| {
        let command = of_command(command, &asked);
        if !hides_flags || command.get_positionals().next().is_none() {
            return command;
        }
        command.disable_help_flag(true).mut_args(|argument| {
            let is_flag = argument.get_long().is_some() || argument.get_short().is_some();
            if is_flag { argument.hide(true) } else { argument }
        })
    };
    let mut command = command;
    // Commands are few and not deep: jobs and runs have theirs, and those of runs once more.
    for name in names(&command) {
        command = command.mut_subcommand(&name, |inner| {
            let mut inner = of_command(inner);
            for name in names(&inner) {
                inner = inner.mut_subcommand(&name, of_command);
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
    let name = command.get_name().to_owned();
    let takes_runs = TAKE_RUNS.contains(&name.as_str());
    let mut command = command.mut_args(|argument| {
        let kind = match argument.get_id().as_str() {
            "job" | "jobs" if takes_runs => Kind::JobOrRun,
            "job" | "jobs" => Kind::Job,
            "after" => Kind::JobOrRun,
            "what" => Kind::FlowOrRun,
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
    let template = if TAKE_FLOWS.contains(&name.as_str()) { asked.template() } else { None };
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
    FlowOrRun,
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
        let takes_flow = words.get(1).is_some_and(|name| TAKE_FLOWS.contains(name));
        let flow = if takes_flow { flow(&words[2..]) } else { None };
        Self { place: Place::find(&DirArguments { dir }).ok(), flow: flow.map(str::to_owned) }
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
            Kind::Directory => return paths(&PathCompleter::dir(), current),
            Kind::File => return paths(&PathCompleter::any(), current),
            Kind::Job => self.jobs(text),
            Kind::Run => self.runs(),
            Kind::JobOrRun => {
                let runs = self.runs().into_iter().map(|run| format!("run:{run}"));
                runs.chain(self.jobs(text)).collect()
            }
            Kind::FlowOrRun => self.flows().into_iter().chain(self.runs()).collect(),
            Kind::Flow => self.flows(),
            Kind::Param => self.params(),
        };
        let fits = |word: &String| word.starts_with(text) && !word.contains(steers);
        let found = found.into_iter().filter(fits).take(MOST).map(CompletionCandidate::new);
        let mut found: Vec<CompletionCandidate> = found.collect();
        if matches!(kind, Kind::Flow | Kind::FlowOrRun) {
            // A flow may be any file.
            found.extend(paths(&PathCompleter::any().filter(is_flow), current));
        }
        found
    }

    /// Returns the jobs, newest first, and the nodes of a run whose beginning is `RUN/`.
    fn jobs(&self, text: &str) -> Vec<String> {
        let Some(survey) = self.store().and_then(|store| store.survey().ok()) else { return Vec::new() };
        let mut jobs = survey.glances();
        jobs.sort_unstable_by(|one, other| (other.created_at, one.id).cmp(&(one.created_at, other.id)));
        if let Some((run, _)) = text.split_once('/') {
            let start = format!("wf-{run}-");
            let of_run = |id: &str| id.strip_prefix(&start).map(|node| format!("{run}/{node}"));
            return jobs.iter().filter_map(|job| of_run(job.id)).collect();
        }
        jobs.iter().filter(|job| job.id.starts_with(text)).take(MOST).map(|job| job.id.to_owned()).collect()
    }

    /// Returns the runs that jobs belong to.
    fn runs(&self) -> Vec<String> {
        let Some(survey) = self.store().and_then(|store| store.survey().ok()) else { return Vec::new() };
        let runs: BTreeSet<String> =
            survey.glances().iter().filter_map(|job| job.run).map(str::to_owned).collect();
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

/// Returns the flow among the words behind the command: the first that is neither a flag nor the value of one.
fn flow<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        if TAKE_VALUES.contains(word) {
            words.next();
        }
    }
    None
}

/// Returns the files that a shell can be told of.
fn paths(completer: &PathCompleter, current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = completer.complete(current);
    let is_harmless = |path: &OsStr| path.to_str().is_some_and(|path| !path.contains(steers));
    found.retain(|candidate| is_harmless(candidate.get_value()));
    found
}

fn is_flow(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}
