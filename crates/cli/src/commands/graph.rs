//! `tidewheel graph`: what comes after what in a flow, or in a run with where its jobs stand. Changes nothing.

use clap::{Args, ValueEnum};
use tidewheel_core::view::jobs::{FlowAsk, FlowView};
use tidewheel_store::jobs::JobStore as _;

use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{DirArguments, Flow, Given, Opened, Place, Settings};
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
        GraphFormat::Tree => output::text(&tree(&view))?,
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

/// Draws the lines for people.
fn tree(view: &FlowView) -> String {
    view.tree().iter().map(|line| format!("{}\n", harmless(line))).collect()
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
        let (run, jobs) = opened.run(&self.what)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use serde_json::json;
    use tidewheel_core::job::{Brief, RunId};

    /// Reads a statement of DOT, and returns what is left of it without its strings.
    fn without_strings(line: &str) -> String {
        let (mut left, mut rest) = (String::new(), line.chars());
        while let Some(c) = rest.next() {
            if c != '"' {
                left.push(c);
                continue;
            }
            loop {
                match rest.next() {
                    Some('\\') => assert!(rest.next().is_some_and(|next| "\"\\n".contains(next)), "{line}"),
                    Some('"') => break,
                    Some(_) => {}
                    None => panic!("a string does not end: {line}"),
                }
            }
        }
        left
    }

    /// Reads a text of Mermaid: nothing in it means anything but the characters that are given by number.
    fn is_text(text: &str) -> bool {
        text.replace("<br/>", "").split('#').enumerate().all(|(place, part)| {
            let part = if place == 0 { Some(part) } else { part.split_once(';').map(|(_, rest)| rest) };
            part.is_some_and(|part| !part.contains(['"', '<', '>', '&', '`', ';', '|', '{', '}', '[', ']']))
        })
    }

    #[test]
    fn foreign_text_breaks_no_graph() {
        let mut foreign = Foreign::new("graphs");
        let run = RunId::of_bits(7);
        for _ in 0..foreign::count() / 6 {
            let texts: [String; 6] = std::array::from_fn(|_| foreign.text());
            let [name, detail, lock, branch, key, made] = &texts;
            // What it makes is not what it needs.
            let (needed, made) = (format!("needed {key}"), format!("made {made}"));
            let form = json!({ "id": "a", "status": "waiting_on_deps", "created_at": "2026-02-01T12:00:00Z",
                "name": name, "run": run, "node": "a", "is_runnable": true, "schedule": {
                    "wait_reason": { "kind": "dependencies", "detail": detail },
                    "locks": [{ "key": lock, "mode": "exclusive" }],
                    "pinned_head": { "branch": branch, "oid": branch },
                    "dependencies": [{ "artifact": { "custom": { "type_id": needed, "key": key } } }],
                    "artifacts": [{ "custom": { "type_id": made, "key": made } }],
                } });
            let job: Brief = serde_json::from_value(form).expect("it is a job");
            let jobs = [(job.id.clone(), job)].into();
            let view = FlowView::of(&FlowAsk { briefs: &jobs, run: &run, manifest: None }, &|_| false);
            let lines = Some(view.tree().len());
            Shown { text: &tree(&view), lines, ..Shown::default() }.check(&texts);
            let dot = view.to_dot();
            Shown { text: &dot, lines: Some(5), ..Shown::default() }.check(&texts);
            let read: Vec<String> = dot.lines().map(without_strings).collect();
            assert_eq!([read[0].as_str(), read[4].as_str()], ["digraph  {", "}"], "{dot}");
            assert!(read[1].starts_with("    n0 [label=, shape=") && read[1].ends_with("];"), "{dot}");
            assert!(read[2].starts_with("    n1 [label=, shape=") && read[2].ends_with("];"), "{dot}");
            assert_eq!(read[3], "    n1 -> n0 [label=];", "{dot}");
            let mermaid = view.to_mermaid();
            Shown { text: &mermaid, ..Shown::default() }.check(&texts);
            for line in mermaid.lines() {
                let parts: Vec<&str> = line.split('"').collect();
                assert!(matches!(parts[..], [_] | [_, _, _]), "{mermaid}");
                assert!(parts.get(1).is_none_or(|text| is_text(text)), "{mermaid}");
            }
            let shapes = mermaid.lines().filter(|line| line.starts_with("    n")).count();
            assert_eq!(shapes, 3, "{mermaid}");
        }
    }
}
