//! Pictures of a workflow as text: Mermaid, DOT and JSON. Names are escaped, whatever is in them.

use std::fmt::Write as _;

use serde::Serialize;

use crate::policy::Kind;
use crate::run::Run;
use crate::workflow::{Node, NodeIx, Workflow};

/// A workflow as a graph of nodes and edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphView {
    /// The version of this form.
    pub version: u32,
    /// The name of the workflow.
    pub workflow: String,
    /// The nodes, parents first.
    pub nodes: Vec<NodeView>,
    /// From node to node, by their places in the list.
    pub edges: Vec<EdgeView>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeView {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// Its identity.
    pub id: String,
    /// What it gives.
    pub gives: String,
    /// What somebody wrote on it.
    pub tags: Vec<String>,
}

/// One edge. `from` is `None` for the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeView {
    /// Where it begins.
    pub from: Option<NodeIx>,
    /// Where it ends.
    pub to: NodeIx,
}

impl Workflow {
    /// Returns the graph as data.
    #[must_use]
    pub fn graph_view(&self) -> GraphView {
        let graph = &self.0;
        let node = |node: &Node| NodeView {
            name: node.name.as_deref().map(str::to_owned),
            kind: node.kind,
            id: node.id.to_string(),
            gives: node.gives.to_string(),
            tags: node.tags.clone(),
        };
        let from_input = graph.roots.iter().map(|edge| EdgeView { from: None, to: edge.to });
        let between = (0..).zip(&graph.nodes).flat_map(|(from, node)| {
            node.children.iter().map(move |edge| EdgeView { from: Some(from), to: edge.to })
        });
        GraphView {
            version: 1,
            workflow: self.name().to_owned(),
            nodes: graph.nodes.iter().map(node).collect(),
            edges: from_input.chain(between).collect(),
        }
    }

    /// Returns a Mermaid flowchart.
    ///
    /// ```
    /// use tidewheel_core::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("w").add(step("a", |x: i64| x)).build()?;
    /// assert_eq!(
    ///     workflow.to_mermaid(),
    ///     "flowchart TD\n    input((input))\n    n0[\"a\"]\n    input --> n0\n"
    /// );
    /// # Ok::<(), tidewheel_core::workflow::BuildErrors>(())
    /// ```
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let view = self.graph_view();
        let mut text = String::from("flowchart TD\n    input((input))\n");
        for (ix, node) in view.nodes.iter().enumerate() {
            let (open, close) = match node.kind {
                Kind::Condition | Kind::Rule => ("{", "}"),
                Kind::Join => ("((", "))"),
                Kind::Map => ("[/", "/]"),
                Kind::Reduce => ("[\\", "\\]"),
                Kind::Accumulator | Kind::StateMachine => ("[(", ")]"),
                _ => ("[", "]"),
            };
            written(writeln!(text, "    n{ix}{open}\"{}\"{close}", mermaid_text(label(node))));
        }
        for edge in &view.edges {
            let from = edge.from.map_or_else(|| "input".to_owned(), |from| format!("n{from}"));
            written(writeln!(text, "    {from} --> n{}", edge.to));
        }
        text
    }

    /// Returns a graph for Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let view = self.graph_view();
        let mut text = String::new();
        written(writeln!(text, "digraph \"{}\" {{", dot_text(&view.workflow)));
        written(writeln!(text, "    input [shape=circle];"));
        for (ix, node) in view.nodes.iter().enumerate() {
            let shape = match node.kind {
                Kind::Condition | Kind::Rule => "diamond",
                Kind::Join => "circle",
                Kind::Map => "trapezium",
                Kind::Reduce => "invtrapezium",
                Kind::Accumulator | Kind::StateMachine => "cylinder",
                _ => "box",
            };
            written(writeln!(text, "    n{ix} [label=\"{}\", shape={shape}];", dot_text(label(node))));
        }
        for edge in &view.edges {
            let from = edge.from.map_or_else(|| "input".to_owned(), |from| format!("n{from}"));
            written(writeln!(text, "    {from} -> n{};", edge.to));
        }
        text.push_str("}\n");
        text
    }
}

impl Run {
    /// Returns a Mermaid sequence of what was produced: who gave what to whom, in the order of productions.
    #[must_use]
    pub fn to_mermaid_sequence(&self) -> String {
        let mut text = String::from("sequenceDiagram\n    participant input\n");
        let graph = &self.graph;
        for (ix, node) in graph.nodes.iter().enumerate() {
            written(writeln!(text, "    participant n{ix} as {}", mermaid_text(node.label())));
        }
        for row in &self.facts {
            let (Some(node), Some(parent)) = (row.node, row.parent) else { continue };
            let from =
                self.facts[parent as usize].node.map_or_else(|| "input".to_owned(), |ix| format!("n{ix}"));
            let given = self.facts[parent as usize].value.to_text().map_or_else(
                |_| "(a value that JSON cannot hold)".to_owned(),
                |value| shortened(value.get()),
            );
            written(writeln!(text, "    {from}->>n{node}: {}", mermaid_text(&given)));
        }
        text
    }
}

fn label(node: &NodeView) -> &str {
    node.name.as_deref().unwrap_or_else(|| node.kind.name())
}

/// Writing to a string cannot fail.
fn written(result: std::fmt::Result) {
    result.expect("invariant: writing to a string cannot fail");
}

/// Mermaid reads `#code;` in a text as a character; everything that means something to it is written so.
fn mermaid_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_alphanumeric() || " _-.,/+*=()".contains(character) {
            escaped.push(character);
        } else {
            written(write!(escaped, "#{};", u32::from(character)));
        }
    }
    escaped
}

fn dot_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            '\n' => escaped.push_str("\\n"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// As much of a value as fits on an arrow.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
