//! `tidewheel run`: makes jobs of a template and lets them run.

mod enqueue;
mod told;

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use tidewheel_core::job::JobId;
use tidewheel_core::job::template::Expanded;

use crate::commands::policy::Format;
use crate::error::{CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{
    DirArguments, FLAGS_WITH_VALUE, FLAGS_WITHOUT_VALUE, Flow, Follow, Followed, Given, Left, Opened, Place,
    Settings, Tells, concluded,
};
use crate::output;
use enqueue::{Enqueued, enqueue};

/// Run a flow: make jobs of a template, and let them run
///
/// FLOW is a file, an alias of config.toml, the id of a template, or the name
/// of a file in `.tidewheel/workflows/`. INPUTs and flags are what the template
/// declares under [cli]; --set gives any parameter. The jobs go on when the
/// command ends; with --follow it stays until they are over, and ends with 0 if
/// all succeeded, 1 if one failed, 10 if one is blocked.
///
/// Example:
///
///   $ tidewheel run release alpha --target main --follow
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The flow
    flow: String,
    /// Parameters by their place
    #[arg(value_name = "INPUT")]
    inputs: Vec<String>,
    #[command(flatten)]
    dir: DirArguments,
    /// Give a parameter its value; may be given several times
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
    /// Start only after this job, or after a run: `run:ID`; may be given several times
    #[arg(long, value_name = "JOB", conflicts_with = "check")]
    after: Vec<String>,
    /// Start only while this branch stands where it stands now
    #[arg(long, value_name = "BRANCH", conflicts_with = "check")]
    pin: Option<String>,
    /// Start only when a person has approved it
    #[arg(long, conflicts_with = "check")]
    require_approval: bool,
    /// Check the template and the parameters, and do nothing
    #[arg(long)]
    check: bool,
    /// Run it so many times, one after the other
    #[arg(long, value_name = "N", conflicts_with = "check", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Stay until the jobs are over
    #[arg(long, conflicts_with = "check")]
    follow: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// A flag of the template, as [`with_flags_named`] writes it
    #[arg(long, hide = true, allow_hyphen_values = true)]
    named: Vec<String>,
}

/// Writes the flags of a template so that the command line takes them: `--target main` becomes `--named=target=main`.
pub(crate) fn with_flags_named(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|name| name != "run" && name != "graph") {
        return arguments;
    }
    let mut written: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    written.extend(rest.by_ref().take(2));
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix("--")) else {
            written.push(argument);
            continue;
        };
        if flag.is_empty() {
            written.push(argument);
            break;
        }
        let name = flag.split('=').next().unwrap_or_default();
        let has_value = flag.contains('=');
        if FLAGS_WITH_VALUE.contains(&name) || FLAGS_WITHOUT_VALUE.contains(&name) {
            let takes_next = FLAGS_WITH_VALUE.contains(&name) && !has_value;
            written.push(argument);
            written.extend(rest.next_if(|_| takes_next));
            continue;
        }
        let mut named = OsString::from(format!("--named={flag}"));
        let is_value = |next: &OsString| !next.to_string_lossy().starts_with("--");
        if !has_value && let Some(value) = rest.next_if(is_value) {
            named.push("=");
            named.push(value);
        }
        written.push(named);
    }
    written.extend(rest);
    written
}

/// Runs the flow.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let ready = arguments.ready()?;
    if arguments.check {
        return told::checked(arguments, &ready.expanded);
    }
    let Ready { place, settings, flow, expanded } = ready;
    for refused in settings.secrets().1 {
        output::warning(&refused.to_string());
    }
    let opened = Opened::at(place, settings)?;
    let runs = enqueue(&opened, &flow, &expanded, arguments)?;
    told_or_aside(&runs, || {
        if arguments.follow {
            return follow(&opened, arguments, &expanded, &runs);
        }
        told::enqueued(arguments, &expanded, &runs)?;
        for run in &runs {
            concluded(&run.ticked)?;
        }
        Ok(Exit::Succeeded)
    })
}

/// Tells what becomes of runs. Where the output takes nothing any more, the standard error has what is enqueued: its
/// jobs go on, and are found by the id alone.
fn told_or_aside(runs: &[Enqueued], tell: impl FnOnce() -> Result<Exit, Ending>) -> Result<Exit, Ending> {
    tell().inspect_err(|ending| {
        if ending.is_of_output() {
            for run in runs.iter().take(MOST_TOLD) {
                let id = &run.id;
                output::aside(&format!(
                    "Run {id} is enqueued, and its jobs go on: `tidewheel runs show {id}` shows them."
                ));
            }
            if runs.len() > MOST_TOLD {
                output::aside(&format!(
                    "{} more runs are enqueued: `tidewheel runs list` has them.",
                    runs.len() - MOST_TOLD
                ));
            }
        }
    })
}

/// So many runs are told of one by one where the output takes nothing.
const MOST_TOLD: usize = 20;

/// Enqueues a flow in a directory, and says nothing. Returns its jobs, in the order of the template.
pub(crate) fn enqueue_quietly(dir: &Path, flow: &Path) -> Result<(Opened, Vec<JobId>), Ending> {
    let arguments = Arguments {
        flow: flow.display().to_string(),
        inputs: Vec::new(),
        dir: DirArguments { dir: Some(dir.to_owned()) },
        set: Vec::new(),
        after: Vec::new(),
        pin: None,
        require_approval: false,
        check: false,
        repeat: None,
        follow: false,
        format: Format::Text,
        named: Vec::new(),
    };
    let Ready { place, settings, flow, expanded } = arguments.ready()?;
    let opened = Opened::at(place, settings)?;
    let runs = enqueue(&opened, &flow, &expanded, &arguments)?;
    let jobs = runs.into_iter().flat_map(|run| run.jobs).collect();
    Ok((opened, jobs))
}

/// Waits for the runs, one after the other, until one of them does not succeed.
fn follow(
    opened: &Opened,
    arguments: &Arguments,
    expanded: &Expanded,
    runs: &[Enqueued],
) -> Result<Exit, Ending> {
    let mut followed: Vec<(&Enqueued, Followed)> = Vec::new();
    for run in runs {
        if arguments.format == Format::Text && runs.len() > 1 {
            output::text(&format!("run {} of {}: {}\n", run.index, runs.len(), run.id))?;
        }
        let follow = Follow {
            opened,
            jobs: run.jobs.clone(),
            tells: if arguments.format == Format::Text { Tells::Output } else { Tells::Aside },
            trouble: run.ticked.clone(),
            until: None,
            comes_back: format!(
                "`tidewheel jobs wait run:{id}` comes back to them, `tidewheel runs cancel {id}` ends them",
                id = run.id
            ),
        };
        let end = follow.run()?;
        let is_over = end.exit() != Exit::Succeeded || end.ending != Left::Over;
        followed.push((run, end));
        if is_over {
            break;
        }
    }
    told::followed(arguments, expanded, runs, &followed)
}

/// A flow with its parameters, where it is to run.
struct Ready {
    place: Place,
    settings: Settings,
    flow: Flow,
    expanded: Expanded,
}

impl Arguments {
    /// Finds the flow and checks it.
    fn ready(&self) -> Result<Ready, CommandError> {
        let place = Place::find(&self.dir)?;
        let settings = Settings::read(&place)?;
        let flow = Flow::find(&place, &settings, &self.flow)?;
        let given = Given { inputs: &self.inputs, set: &self.set, named: &self.named };
        let expanded = flow.expand_to_run(&given, &settings)?;
        Ok(Ready { place, settings, flow, expanded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// Returns what becomes of a command line.
    fn named(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_flags_named(words);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_of_the_template_are_told_from_our_own() {
        assert_eq!(
            named("tidewheel run x a --target main --follow --set k=v"),
            "tidewheel run x a --named=target=main --follow --set k=v"
        );
        assert_eq!(
            named("tidewheel run x --target=a=b --n -1"),
            "tidewheel run x --named=target=a=b --named=n=-1"
        );
        assert_eq!(named("tidewheel run x --dry --check"), "tidewheel run x --named=dry --check");
        assert_eq!(named("tidewheel run x --after --y"), "tidewheel run x --after --y");
        assert_eq!(named("tidewheel run x -- --target main"), "tidewheel run x -- --target main");
        assert_eq!(named("tidewheel jobs list --all"), "tidewheel jobs list --all");
    }

    #[test]
    fn every_flag_of_our_own_is_known() {
        let command = <Alone as clap::CommandFactory>::command();
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(name) = argument.get_long() else { continue };
            let takes_value = argument.get_action().takes_values();
            assert_eq!(FLAGS_WITH_VALUE.contains(&name), takes_value, "{name}");
            assert_eq!(FLAGS_WITHOUT_VALUE.contains(&name), !takes_value, "{name}");
        }
    }
}
