//! The graph of a flow as text: layer by layer for people, and as a picture for programs that draw.

use std::fmt::Write as _;

use super::flow::{FlowEdge, FlowLink, FlowNode, FlowPart, FlowView};
use crate::job::JobStatus;
use crate::view::picture::{Arrow, Line, Look, Picture, Shape, Spot};

impl FlowView {
    /// Returns the lines for people: each node in its layer, and under it one line for each edge.
    #[must_use]
    pub fn tree(&self) -> Vec<String> {
        let own = self.nodes.iter().filter(|node| node.is == FlowPart::Node).count();
        let mut lines = vec![self.headline(own)];
        let mut edges = self.edges.chunk_by(|one, next| home(one) == home(next)).peekable();
        let mut layer = 0;
        for (place, node) in self.nodes.iter().enumerate().take(own) {
            if node.layer != layer {
                layer = node.layer;
                lines.extend([String::new(), format!("Layer {layer}")]);
            }
            lines.push(format!("  {}", self.line(node)));
            let Some(of_node) = edges.next_if(|edges| edges.first().map(home) == Some(place)) else {
                continue;
            };
            for (index, edge) in of_node.iter().enumerate() {
                let branch = if index + 1 == of_node.len() { "`--" } else { "|--" };
                lines.push(format!("  {branch} {}", self.edge(edge)));
            }
        }
        lines
    }

    /// Writes a Mermaid flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.picture().mermaid()
    }

    /// Writes a graph for Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        self.picture().dot()
    }

    fn headline(&self, own: usize) -> String {
        let mut line = match (&self.run, &self.template) {
            (Some(run), Some(template)) => format!("{run} of {template}"),
            (Some(run), None) => run.clone(),
            (None, template) => template.clone().unwrap_or_default(),
        };
        let (nodes, layers) = (counted(own, "node"), counted(self.layers, "layer"));
        let _ = write!(line, ": {nodes} in {layers}, {}", counted(self.edges.len(), "edge"));
        line
    }

    /// Says all of a node in one line.
    fn line(&self, node: &FlowNode) -> String {
        let mut line = node.id.clone();
        if let Some(status) = node.status {
            let _ = write!(line, " {status}");
        }
        if has_name(node) {
            let _ = write!(line, " [{}]", node.name);
        }
        if let Some(uses) = &node.uses {
            let _ = write!(line, " [{}]", short(uses));
        }
        // Why a job was not needed is said by its edges.
        if let Some(wait) = node.wait.as_ref().filter(|_| node.status != Some(JobStatus::Skipped)) {
            let _ = write!(line, " [wait: {wait}]");
        }
        for (what, said) in self.gates(node) {
            let _ = write!(line, " [{what}: {said}]");
        }
        line
    }

    /// Returns what stands before a node beside other nodes, and what comes out of it.
    fn gates(&self, node: &FlowNode) -> Vec<(&'static str, String)> {
        let mut gates: Vec<(&'static str, String)> = Vec::new();
        if let Some(state) = node.approval {
            let said = if self.run.is_some() { state.name() } else { "required" };
            gates.push(("approval", said.to_owned()));
        }
        if !node.locks.is_empty() {
            let locks: Vec<String> = node.locks.iter().map(ToString::to_string).collect();
            gates.push(("locks", locks.join(", ")));
        }
        gates.extend(node.pinned.iter().map(|branch| ("pinned", branch.clone())));
        if !node.preconditions.is_empty() {
            gates.push(("preconditions", node.preconditions.join(", ")));
        }
        if !node.produces.is_empty() {
            gates.push(("produces", node.produces.join(", ")));
        }
        gates
    }

    fn edge(&self, edge: &FlowEdge) -> String {
        let label = label(&edge.what);
        let (from, to) = edge.ends;
        let other = match edge.what {
            FlowLink::After { .. } | FlowLink::Artifact { .. } => &self.nodes[from],
            FlowLink::Loop { .. } => &self.nodes[to],
        };
        if let FlowLink::Loop { on, budget } = edge.what {
            let most = counted(budget as usize, "time");
            return format!("on.{on} -> {} [goes back, at most {most}]", other.id);
        }
        let said = match (other.is, other.status) {
            (FlowPart::Node, Some(status)) => format!("{} {status}", other.id),
            (FlowPart::Node, None) => other.id.clone(),
            (FlowPart::Job | FlowPart::Missing, Some(status)) => {
                format!("{} {status} [outside]", other.job_id.as_deref().unwrap_or(&other.id))
            }
            (FlowPart::Job | FlowPart::Missing, None) => {
                format!("{} missing", other.job_id.as_deref().unwrap_or(&other.id))
            }
            (FlowPart::Artifact, _) => format!("[{}]", other.state.unwrap_or("from outside")),
        };
        format!("{label} -> {said}")
    }

    fn picture(&self) -> Picture {
        let spot = |(place, node): (usize, &FlowNode)| Spot {
            id: format!("n{place}"),
            lines: self.said(node),
            shape: shape(node),
            look: look(node),
        };
        let arrow = |edge: &FlowEdge| Arrow {
            from: edge.ends.0,
            to: edge.ends.1,
            label: match &edge.what {
                FlowLink::After { policy: crate::job::AfterPolicy::Success } => None,
                what => Some(label(what)),
            },
            line: match edge.what {
                FlowLink::After { policy: crate::job::AfterPolicy::Success } | FlowLink::Artifact { .. } => {
                    Line::Whole
                }
                FlowLink::After { .. } => Line::Dashed,
                FlowLink::Loop { .. } => Line::Back,
            },
        };
        let title = self.run.as_ref().or(self.template.as_ref());
        Picture {
            title: title.cloned().unwrap_or_default(),
            spots: self.nodes.iter().enumerate().map(spot).collect(),
            arrows: self.edges.iter().map(arrow).collect(),
        }
    }

    /// Returns what stands in the shape of a node.
    fn said(&self, node: &FlowNode) -> Vec<String> {
        let mut lines = match node.is {
            FlowPart::Node => vec![node.id.clone()],
            FlowPart::Job | FlowPart::Missing | FlowPart::Artifact => vec![node.name.clone()],
        };
        match (node.is, node.status, node.state) {
            (_, Some(status), _) => lines.push(status.name().to_owned()),
            (FlowPart::Missing, ..) => lines.push("missing".to_owned()),
            (_, None, Some(state)) => lines.push(state.to_owned()),
            (FlowPart::Node | FlowPart::Job | FlowPart::Artifact, None, None) => {}
        }
        if has_name(node) {
            lines.insert(1, node.name.clone());
        }
        let before = self.gates(node).into_iter().filter(|(what, _)| *what != "produces");
        lines.extend(before.map(|(what, said)| format!("{what}: {said}")));
        lines
    }
}

/// Returns the node that an edge is shown with.
fn home(edge: &FlowEdge) -> usize {
    match edge.what {
        FlowLink::After { .. } | FlowLink::Artifact { .. } => edge.ends.1,
        FlowLink::Loop { .. } => edge.ends.0,
    }
}

fn label(what: &FlowLink) -> String {
    match what {
        FlowLink::After { policy } => format!("after:{policy}"),
        FlowLink::Artifact { artifact } => format!("needs {artifact}"),
        FlowLink::Loop { on, budget } => {
            format!("on.{on} goes back, at most {}", counted(*budget as usize, "time"))
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Tells whether somebody gave a node a name of its own.
fn has_name(node: &FlowNode) -> bool {
    node.is == FlowPart::Node && node.name != node.id && node.name != made_of(&node.id)
}

/// Returns the name that a node has if nobody gave it one.
fn made_of(id: &str) -> String {
    id.replace("__", " / ").replace('_', " ")
}

/// Returns what a node does without where it does so.
fn short(uses: &str) -> &str {
    let families = ["cap.env.shell.", "cap.env.builtin.", "cap.", "control."];
    families.into_iter().find_map(|family| uses.strip_prefix(family)).unwrap_or(uses)
}

fn shape(node: &FlowNode) -> Shape {
    let uses = node.uses.as_deref().unwrap_or_default();
    match node.is {
        FlowPart::Artifact => Shape::Cylinder,
        FlowPart::Job | FlowPart::Missing => Shape::Box,
        FlowPart::Node if node.approval.is_some() => Shape::Hexagon,
        FlowPart::Node if uses.starts_with("control.") => Shape::Diamond,
        FlowPart::Node if uses.starts_with("cap.agent.") => Shape::Round,
        FlowPart::Node => Shape::Box,
    }
}

/// Returns the colours of a node: those of where its job stands.
const fn look(node: &FlowNode) -> Option<&'static Look> {
    let outside = match node.is {
        FlowPart::Node => false,
        FlowPart::Job | FlowPart::Missing | FlowPart::Artifact => true,
    };
    match node.status {
        _ if outside => Some(&OUTSIDE),
        None => None,
        Some(JobStatus::Queued) => Some(&QUEUED),
        Some(JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks) => {
            Some(&WAITING)
        }
        Some(JobStatus::Running) => Some(&RUNNING),
        Some(JobStatus::Succeeded) => Some(&SUCCEEDED),
        Some(JobStatus::Failed) => Some(&FAILED),
        Some(JobStatus::Cancelled) => Some(&CANCELLED),
        Some(JobStatus::BlockedByDependency | JobStatus::BlockedByApproval) => Some(&BLOCKED),
        Some(JobStatus::Skipped) => Some(&SKIPPED),
    }
}

const fn colours(name: &'static str, fill: &'static str, stroke: &'static str) -> Look {
    Look { name, fill, stroke, is_dashed: false }
}

static QUEUED: Look = colours("queued", "#eaeef2", "#57606a");
static WAITING: Look = colours("waiting", "#fff8c5", "#9a6700");
static RUNNING: Look = colours("running", "#ddf4ff", "#0969da");
static SUCCEEDED: Look = colours("succeeded", "#dafbe1", "#1a7f37");
static FAILED: Look = colours("failed", "#ffd7d5", "#cf222e");
static CANCELLED: Look = colours("cancelled", "#d0d7de", "#57606a");
static BLOCKED: Look = colours("blocked", "#ffe2c2", "#bc4c00");
static SKIPPED: Look = Look { name: "skipped", fill: "#f6f8fa", stroke: "#8c959f", is_dashed: true };
static OUTSIDE: Look = Look { name: "outside", fill: "#ffffff", stroke: "#8c959f", is_dashed: true };
