//! Pictures of a workflow as text: Mermaid, DOT and JSON. Names are escaped, whatever is in them.

use std::fmt::Write as _;

use serde::Serialize;

use super::picture::{Arrow, Line, Picture, Shape, Spot, mermaid_text, put};
use crate::policy::Kind;
use crate::run::Run;
use crate::workflow::{self, NodeIx, Workflow};

/// A workflow as a graph of nodes and edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Graph {
    /// The version of this form.
    pub version: u32,
    /// The name of the workflow.
    pub workflow: String,
    /// The nodes, parents first.
    pub nodes: Vec<Node>,
    /// From node to node, by their places in the list.
    pub edges: Vec<Edge>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
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
pub struct Edge {
    /// Where it begins.
    pub from: Option<NodeIx>,
    /// Where it ends.
    pub to: NodeIx,
}

impl Workflow {
    /// Returns the graph as data.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let graph = &self.0;
        let node = |node: &workflow::Node| Node {
            name: node.name.as_deref().map(str::to_owned),
            kind: node.kind,
            id: node.id.to_string(),
            gives: node.gives.to_string(),
            tags: node.tags.clone(),
        };
        let from_input = graph.roots.iter().map(|edge| Edge { from: None, to: edge.to });
        let between = (0..).zip(graph.nodes.iter()).flat_map(|(from, node)| {
            node.children.iter().map(move |edge| Edge { from: Some(from), to: edge.to })
        });
        Graph {
            version: 1,
            workflow: self.name().to_owned(),
            nodes: graph.nodes.iter().map(node).collect(),
            edges: from_input.chain(between).collect(),
        }
    }

    /// Returns a Mermaid flowchart.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("w").add(step("a", |x: i64| x)).build()?;
    /// assert_eq!(
    ///     workflow.to_mermaid(),
    ///     "flowchart TD\n    input((input))\n    n0[\"a\"]\n    input --> n0\n"
    /// );
    /// # Ok::<(), tidewheel::workflow::BuildErrors>(())
    /// ```
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        picture(&self.graph()).mermaid()
    }

    /// Returns a graph for Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        picture(&self.graph()).dot()
    }
}

impl Run {
    /// Returns a Mermaid sequence of what was produced: who gave what to whom, in the order of productions.
    #[must_use]
    pub fn to_mermaid_sequence(&self) -> String {
        let mut text = String::from("sequenceDiagram\n    participant input\n");
        let graph = &self.graph;
        for (ix, node) in graph.nodes.iter().enumerate() {
            put(writeln!(text, "    participant n{ix} as {}", mermaid_text(node.label())));
        }
        for row in &self.facts {
            let (Some(node), Some(parent)) = (row.node, row.parent) else { continue };
            let from =
                self.facts[parent as usize].node.map_or_else(|| "input".to_owned(), |ix| format!("n{ix}"));
            let given = self.facts[parent as usize].value.to_text().map_or_else(
                |_| "(a value that JSON cannot hold)".to_owned(),
                |value| shortened(value.get()),
            );
            put(writeln!(text, "    {from}->>n{node}: {}", mermaid_text(&given)));
        }
        text
    }
}

/// The input stands first.
fn picture(view: &Graph) -> Picture {
    let input = Spot { id: "input".to_owned(), lines: Vec::new(), shape: Shape::Circle, look: None };
    let spot = |(ix, node): (usize, &Node)| Spot {
        id: format!("n{ix}"),
        lines: vec![node.name.as_deref().unwrap_or_else(|| node.kind.name()).to_owned()],
        shape: match node.kind {
            Kind::Condition | Kind::Rule => Shape::Diamond,
            Kind::Join => Shape::Circle,
            Kind::Map => Shape::Widening,
            Kind::Reduce => Shape::Narrowing,
            Kind::Accumulator | Kind::StateMachine => Shape::Cylinder,
            _ => Shape::Box,
        },
        look: None,
    };
    let arrow = |edge: &Edge| Arrow {
        from: edge.from.map_or(0, |from| from as usize + 1),
        to: edge.to as usize + 1,
        label: None,
        line: Line::Whole,
    };
    Picture {
        title: view.workflow.clone(),
        spots: [input].into_iter().chain(view.nodes.iter().enumerate().map(spot)).collect(),
        arrows: view.edges.iter().map(arrow).collect(),
    }
}

/// As much of a value as fits on an arrow.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
