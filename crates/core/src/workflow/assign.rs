//! Which policy each node runs under: found once for a definition and its rules, not for every piece of work.

use std::sync::Arc;

use super::graph::{Node, NodeIx, Op};
use crate::document::{Problem, Problems};
use crate::policy::{Failure, Resolved, Rules};

/// The policies of the nodes of a graph, by place.
#[derive(Debug, Default)]
pub(crate) struct Assigned {
    pub(crate) rules: Rules,
    nodes: Vec<Assignment>,
    /// Whether the policy of some node changes anything.
    pub(crate) acts: bool,
    /// Whether some condition is handed out like a step: then answers are kept for others that ask for them.
    pub(crate) hands_out_conditions: bool,
}

#[derive(Debug)]
struct Assignment {
    policy: Arc<Resolved>,
    /// Why its policy cannot be found out, and what its work fails with.
    refusal: Option<Box<(Problem, Failure)>>,
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
            let resolution = rules.resolve(&node.info());
            let mut policy = Arc::clone(resolution.policy);
            // A join calls no function, so that a rule that cannot be asked is not in its way.
            let problem = resolution.problem.filter(|_| !matches!(node.op, Op::Join));
            let refusal = problem.map(|problem| {
                let message = format!("its policy is not known: {problem}");
                Box::new((problem, Failure::new(message).code("policy_panicked").non_retryable()))
            });
            if matches!(node.op, Op::FanOut { .. }) && !policy.is_plain() {
                policy = Arc::new(taking_apart(&policy));
            }
            // A join calls no function; a policy has nothing to act on.
            let is_plain = policy.is_plain() || matches!(node.op, Op::Join);
            let is_gated = !is_plain && policy.is_gated();
            let looks_inline = is_plain && refusal.is_none() && can_look_inline(node, nodes);
            Assignment { looks_inline, is_gated, is_plain, policy, refusal }
        };
        let assigned: Vec<Assignment> = nodes.iter().map(assignment).collect();
        let is_asked = |node: &Node| matches!(node.op, Op::Condition(_) | Op::Rule { .. });
        let hands_out_conditions =
            nodes.iter().zip(&assigned).any(|(node, given)| is_asked(node) && !given.looks_inline);
        let acts = assigned.iter().any(|given| !given.is_plain);
        Self { rules, nodes: assigned, acts, hands_out_conditions }
    }

    pub(crate) fn policy(&self, node: NodeIx) -> &Arc<Resolved> {
        &self.nodes[node as usize].policy
    }

    /// Returns what the work of a node fails with because its policy cannot be found out.
    pub(crate) fn refusal(&self, node: NodeIx) -> Option<&Failure> {
        self.nodes[node as usize].refusal.as_deref().map(|(_, failure)| failure)
    }

    /// Returns every reason why the policy of a node is not known.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.nodes.iter().filter_map(|node| node.refusal.as_deref()).map(|(problem, _)| problem)
    }

    /// Checks that the policy of every node is known.
    ///
    /// # Errors
    /// The rules that cannot be asked.
    pub(crate) fn check(&self) -> Result<(), Problems> {
        let mut problems: Vec<Problem> = self.problems().cloned().collect();
        // One rule that panics for every node is one thing to mend.
        problems.dedup_by(|later, earlier| later.path == earlier.path);
        Problems::check(problems, ())
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

/// Returns the policy of the part of a map that takes the list apart: what it says of failures. All else, such as rates,
/// delays and what undoes an item, is about the items.
fn taking_apart(policy: &Resolved) -> Resolved {
    Resolved { on_failure: policy.on_failure, fallback: policy.fallback.clone(), ..Resolved::default() }
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
