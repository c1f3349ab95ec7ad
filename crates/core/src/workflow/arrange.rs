//! The same graph with its nodes at other places, so that whatever was said of nodes by their places stays
//! true when a definition grows. It changes nothing of what nodes do or of the order of productions.

use std::sync::Arc;

use super::assign::Assigned;
use super::graph::{Check, Edge, Graph, Node, NodeIx, Op};
use super::ports::Ports;

impl Graph {
    /// Returns the graph with each node at the place that is given for it. The places are those of the graph,
    /// in another order.
    pub(crate) fn arranged(&self, places: &[NodeIx]) -> Self {
        let at = |ix: NodeIx| places[ix as usize];
        let mut moved: Vec<(NodeIx, &Node)> = places.iter().copied().zip(self.nodes.iter()).collect();
        moved.sort_unstable_by_key(|(place, _)| *place);
        let nodes: Arc<[Node]> = moved.into_iter().map(|(_, node)| node.arranged(&at)).collect();
        Self {
            name: self.name.clone(),
            version: self.version,
            by_name: Arc::new(self.by_name.iter().map(|(name, ix)| (Arc::clone(name), at(*ix))).collect()),
            by_id: Arc::new(self.by_id.iter().map(|(id, ix)| (*id, at(*ix))).collect()),
            roots: arranged_edges(&self.roots, &at).into(),
            assigned: Arc::new(Assigned::new(self.assigned.rules.clone(), &nodes)),
            ports: Ports {
                input: self.ports.input.clone(),
                outputs: self.ports.outputs.iter().map(|(name, ix)| (name.clone(), at(*ix))).collect(),
                warnings: self.ports.warnings.clone(),
            },
            nodes,
        }
    }

    /// Returns the component that a node belongs to: nodes without a name stand right before the one that has
    /// it.
    pub(crate) fn component_of(&self, ix: NodeIx) -> Option<&str> {
        let mut node = self.node(ix);
        while node.name.is_none() {
            node = self.node(node.children.first()?.to);
        }
        node.name.as_deref()
    }
}

impl Node {
    fn arranged(&self, at: &impl Fn(NodeIx) -> NodeIx) -> Self {
        let op = match &self.op {
            Op::Rule { test, reaction } => Op::Rule { test: test.arranged(at), reaction: reaction.clone() },
            Op::FanOut { work, fan_ins } => {
                Op::FanOut { work: work.clone(), fan_ins: fan_ins.iter().map(|ix| at(*ix)).collect() }
            }
            Op::FanIn { reducer, fan_out } => {
                Op::FanIn { reducer: reducer.clone(), fan_out: fan_out.map(at) }
            }
            Op::Step(_) | Op::Condition(_) | Op::Join | Op::State(_) => self.op.clone(),
        };
        Self {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            tags: self.tags.clone(),
            op,
            children: arranged_edges(&self.children, at),
            parents: self.parents,
            scope: self.scope.iter().map(|ix| at(*ix)).collect(),
            rank: self.rank,
            awaited: self.awaited,
            gives: self.gives.clone(),
            extras: self.extras.clone(),
            is_read: self.is_read,
        }
    }
}

impl Check {
    /// The depth is that of the expression, which a person wrote.
    fn arranged(&self, at: &impl Fn(NodeIx) -> NodeIx) -> Self {
        match self {
            Self::Named(ix) => Self::Named(at(*ix)),
            Self::Inline(work) => Self::Inline(work.clone()),
            Self::All(checks) => Self::All(checks.iter().map(|check| check.arranged(at)).collect()),
            Self::Any(checks) => Self::Any(checks.iter().map(|check| check.arranged(at)).collect()),
            Self::Not(check) => Self::Not(Box::new(check.arranged(at))),
        }
    }
}

fn arranged_edges(edges: &[Edge], at: &impl Fn(NodeIx) -> NodeIx) -> Vec<Edge> {
    edges.iter().map(|edge| Edge { to: at(edge.to), slot: edge.slot }).collect()
}
