//! `tidewheel graph`: what comes after what in a flow, or in a run with where its jobs stand. Changes nothing.

use clap::{Args, ValueEnum};
use tidewheel_core::view::jobs::{FlowAsk, FlowView};
use tidewheel_store::jobs::JobStore as _;

use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{DirArguments, Flow, Given, Opened, Place, Settings, run_of};
use crate::output::{self, harmless};

/// Draw what comes after what: of a flow, or of a run
///
/// FLOW is what `tidewheel run` takes, with its INPUTs and flags; nothing is
/// enqueued. RUN is the id of a run, any beginning or end of it, or run:ID; the
/// picture has where its jobs stand.
///
/// In a tree, each node stands in a layer below all that it waits for, and under
/// it one line for each edge. Mermaid and DOT are for programs that draw.
///
/// Example:
///
///   $ tidewheel graph release alpha
///   $ tidewheel graph run_5c --format dot | dot -Tsvg > run.svg
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The flow, or the run
    #[arg(value_name = "FLOW|RUN")]
    what: String,
    /// Parameters of the flow by their place
    #[arg(value_name = "INPUT")]
    inputs: Vec<String>,
    #[command(flatten)]
    dir: DirArguments,
    /// Give a parameter its value; may be given several times
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
    /// How the graph is printed
    #[arg(long, value_enum, default_value_t)]
    format: GraphFormat,
    /// A flag of the template, as the command line of `run` writes it
    #[arg(long, hide = true, allow_hyphen_values = true)]
    named: Vec<String>,
}

/// How the graph is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// For people: layer by layer, with one line for each edge
    #[default]
    Tree,
    /// A flowchart, as web pages and many editors draw it
    Mermaid,
    /// For Graphviz
    Dot,
    /// For programs: one object with a `version`
    Json,
}

/// As many edges are drawn by Mermaid where nobody tells it otherwise.
const MERMAID_EDGES: usize = 500;

/// Draws the graph.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let view = arguments.view()?;
    match arguments.format {
        GraphFormat::Json => output::json(&view)?,
        GraphFormat::Tree => {
            let mut text = String::new();
            for line in view.tree() {
                text.push_str(&harmless(&line));
                text.push('\n');
            }
            output::text(&text)?;
        }
        GraphFormat::Dot => output::text(&view.to_dot())?,
        GraphFormat::Mermaid => {
            output::text(&view.to_mermaid())?;
            if view.edges.len() > MERMAID_EDGES {
                output::hint(&format!(
                    "Mermaid draws at most {MERMAID_EDGES} edges unless its `maxEdges` allows more, and these are {}; \
                     Graphviz draws them all.",
                    view.edges.len()
                ));
            }
        }
    }
    Ok(Exit::Succeeded)
}

impl Arguments {
    fn view(&self) -> Result<FlowView, CommandError> {
        let place = Place::find(&self.dir)?;
        let settings = Settings::read(&place)?;
        if self.what.starts_with("run:") {
            return self.of_run(&Opened::at(place, settings)?);
        }
        let missing = match Flow::find(&place, &settings, &self.what) {
            Ok(flow) => return self.of_flow(&flow, &settings),
            Err(error) if error.code != Code::FlowMissing => return Err(error),
            Err(error) => error,
        };
        match self.of_run(&Opened::at(place, settings)?) {
            Err(error) if error.code == Code::RunMissing => {
                let runs =
                    format!("There is no such run, either: {} lists them.", Opened::command("runs list"));
                Err(missing.hint(runs))
            }
            found => found,
        }
    }

    fn of_flow(&self, flow: &Flow, settings: &Settings) -> Result<FlowView, CommandError> {
        let given = Given { inputs: &self.inputs, set: &self.set, named: &self.named };
        let expanded = flow.expand(&given, settings)?;
        FlowView::of_template(&expanded).map_err(|found| flow.wrong(&found))
    }

    fn of_run(&self, opened: &Opened) -> Result<FlowView, CommandError> {
        let jobs = opened.jobs()?;
        let run = run_of(&jobs.briefs, &self.what)?;
        if !(self.inputs.is_empty() && self.set.is_empty() && self.named.is_empty()) {
            let message = format!("run {run} has its parameters already: INPUTs and flags are for flows");
            return Err(CommandError::new(Code::FlowRefused, message));
        }
        let manifest = opened.store().manifest(&run).unwrap_or_else(|error| {
            output::warning(&format!("unable to load the manifest of run {run}: {error}"));
            None
        });
        let ask = FlowAsk { briefs: &jobs.briefs, run: &run, manifest: manifest.as_ref() };
        Ok(FlowView::of(&ask, &|artifact| opened.is_present(artifact)))
    }
}
