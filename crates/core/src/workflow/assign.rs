//! Which policy each node runs under: found once for a definition and its rules, not for every piece of work.

use std::sync::Arc;

use super::graph::{Node, NodeIx, Op};
use crate::policy::{Resolved, Rules};

/// The policies of the nodes of a graph, by place.
#[derive(Debug, Default)]
pub(crate) struct Assigned {
    pub(crate) rules: Rules,
    nodes: Vec<Assignment>,
}

#[derive(Debug)]
struct Assignment {
    policy: Arc<Resolved>,
    /// Whether the policy changes nothing: the work is called, and that is all.
    is_plain: bool,
    /// Whether the policy may not let the work begin as it is.
    is_gated: bool,
    /// Whether a condition is looked at where it stands: one that is async, hooked or under a policy is handed
    /// out like a step.
    looks_inline: bool,
}

impl Assigned {
    pub(crate) fn new(rules: Rules, nodes: &[Node]) -> Self {
        let assignment = |node: &Node| {
            let policy = Arc::clone(rules.resolve(&node.info()).policy);
            // A join calls no function; a policy has nothing to act on.
            let is_plain = policy.is_plain() || matches!(node.op, Op::Join);
            let is_gated = !is_plain && policy.is_gated();
            let looks_inline = is_plain && can_look_inline(node, nodes);
            Assignment { looks_inline, is_gated, is_plain, policy }
        };
        let nodes = nodes.iter().map(assignment).collect();
        Self { rules, nodes }
    }

    pub(crate) fn policy(&self, node: NodeIx) -> &Arc<Resolved> {
        &self.nodes[node as usize].policy
    }

    pub(crate) fn is_plain(&self, node: NodeIx) -> bool {
        self.nodes[node as usize].is_plain
    }

    pub(crate) fn is_gated(&self, node: NodeIx) -> bool {
        self.nodes[node as usize].is_gated
    }

    pub(crate) fn looks_inline(&self, node: NodeIx) -> bool {
        self.nodes[node as usize].looks_inline
    }
}

fn can_look_inline(node: &Node, nodes: &[Node]) -> bool {
    let is_async = match &node.op {
        Op::Condition(work) => work.is_async(),
        Op::Rule { test, .. } => test.is_async(nodes),
        Op::Step(_) | Op::Join | Op::FanOut { .. } | Op::FanIn { .. } | Op::State(_) => false,
    };
    let is_hooked = matches!(node.op, Op::Condition(_))
        && !(node.extras.before.is_empty() && node.extras.after.is_empty());
    !is_async && !is_hooked
}
