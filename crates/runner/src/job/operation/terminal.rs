//! `terminal`: the end of a way. It leads nowhere.

use super::node::{Node, NodeEnd};

pub(super) fn run(node: &Node<'_>) -> NodeEnd {
    if node.node.routes.is_empty() && node.node.loops.is_empty() {
        NodeEnd::succeeded("terminal sink reached")
    } else {
        NodeEnd::failed("terminal policy node must not declare outgoing routes", 1).non_retryable()
    }
}
