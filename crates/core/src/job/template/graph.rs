//! What follows what in a template: whether everything can start at all, what comes before what, and which edges go
//! back. Nodes are numbers here.

use crate::job::{AfterPolicy, NodeOutcome};

/// The edges of a template.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// The nodes that each is after, and how those have to end.
    pub(super) after: Vec<Vec<(usize, AfterPolicy)>>,
    /// For each node and each artifact that it needs, the nodes that make it; only if any does.
    pub(super) made_by: Vec<Vec<Made>>,
}

/// An artifact that a node needs, and who makes it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) by: Vec<usize>,
    /// Whether only they can: nothing that was there before counts.
    pub(super) only_here: bool,
}

/// An edge to a node that came before, or to one that handles an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) on: NodeOutcome,
    pub(super) to: usize,
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Self {
        Self { after: vec![Vec::new(); nodes], made_by: vec![Vec::new(); nodes] }
    }

    /// Adds that one node is after another, once.
    pub(super) fn add(&mut self, node: usize, after: usize, policy: AfterPolicy) {
        if !self.after[node].contains(&(after, policy)) {
            self.after[node].push((after, policy));
        }
    }

    /// Returns the nodes that come right after each.
    fn followers(&self) -> Vec<Vec<usize>> {
        let mut followers = vec![Vec::new(); self.after.len()];
        for (node, after) in self.after.iter().enumerate() {
            for (before, _) in after {
                followers[*before].push(node);
            }
            for made in &self.made_by[node] {
                for before in &made.by {
                    followers[*before].push(node);
                }
            }
        }
        followers
    }

    /// Tells the handlers from the loops among edges that are taken when a node did not succeed: an edge to a node that
    /// comes before its own is a loop. Where two edges would be each other's loop, the first is the handler.
    pub(super) fn tell_apart(&mut self, edges: &[Edge]) -> (Vec<Edge>, Vec<Edge>) {
        let (mut handlers, mut loops) = (Vec::new(), Vec::new());
        let mut followers = self.followers();
        let mut reach = Reach::default();
        for edge in edges {
            if edge.from == edge.to || reach.leads(&followers, edge.to, edge.from) {
                loops.push(*edge);
                continue;
            }
            handlers.push(*edge);
            if !followers[edge.from].contains(&edge.to) {
                followers[edge.from].push(edge.to);
                reach.grow(&followers, edge.from, edge.to);
            }
        }
        for Edge { from, on, to } in &handlers {
            self.add(*to, *from, policy_of(*on));
        }
        (handlers, loops)
    }

    /// Finds nodes that can never start because they wait for each other: ways round that have no node in common.
    pub(super) fn circles(&self) -> Vec<Vec<usize>> {
        let count = self.after.len();
        let mut waits: Vec<usize> = Vec::with_capacity(count);
        let mut open: Vec<Vec<bool>> = Vec::with_capacity(count);
        for (after, made_by) in self.after.iter().zip(&self.made_by) {
            open.push(made_by.iter().map(|made| made.only_here).collect());
            waits.push(after.len() + made_by.iter().filter(|made| made.only_here).count());
        }
        let mut after_of: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut needed_by: Vec<Vec<(usize, usize)>> = vec![Vec::new(); count];
        for node in 0..count {
            for (before, _) in &self.after[node] {
                after_of[*before].push(node);
            }
            for (which, made) in self.made_by[node].iter().enumerate().filter(|(_, made)| made.only_here) {
                for before in &made.by {
                    needed_by[*before].push((node, which));
                }
            }
        }
        let mut can_start = vec![false; count];
        let mut ready: Vec<usize> = (0..count).filter(|node| waits[*node] == 0).collect();
        let mut circles = Vec::new();
        let mut first = 0;
        loop {
            let Some(node) = ready.pop() else {
                let Some(start) = (first..count).find(|node| !can_start[*node]) else { return circles };
                first = start;
                // What waits for a way round that was found is no second mistake.
                let round = self.way_round(start, &can_start);
                ready.extend(round.iter().skip(1));
                circles.push(round);
                continue;
            };
            if std::mem::replace(&mut can_start[node], true) {
                continue;
            }
            let mut release = |next: usize| {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            };
            for next in &after_of[node] {
                release(*next);
            }
            for (next, which) in &needed_by[node] {
                // The first that makes it is enough.
                if std::mem::take(&mut open[*next][*which]) {
                    release(*next);
                }
            }
        }
    }

    /// Follows what stuck nodes wait for until one comes again. Invariant: what a stuck node waits for is stuck.
    fn way_round(&self, start: usize, can_start: &[bool]) -> Vec<usize> {
        let mut seen = vec![usize::MAX; can_start.len()];
        let mut way = Vec::new();
        let mut node = start;
        while seen[node] == usize::MAX {
            seen[node] = way.len();
            way.push(node);
            let after = self.after[node].iter().map(|(before, _)| *before);
            let stuck = |made: &&Made| made.only_here && made.by.iter().all(|by| !can_start[*by]);
            let made = self.made_by[node].iter().filter(stuck).flat_map(|made| made.by.iter().copied());
            let Some(next) = after.chain(made).find(|before| !can_start[*before]) else { break };
            node = next;
        }
        let mut round = way.split_off(seen[node].min(way.len()));
        // The way was walked against the edges; it is told along them, from the node that is written first.
        round.reverse();
        if let Some(first) = round.iter().enumerate().min_by_key(|(_, node)| **node).map(|(at, _)| at) {
            round.rotate_left(first);
        }
        round.extend(round.first().copied());
        round
    }

    /// Returns those of some nodes that none of them comes before, and those that come before none of them. What runs
    /// only when something went wrong is no end.
    pub(super) fn ends(&self, of: &[bool]) -> (Vec<usize>, Vec<usize>) {
        let is_of = |node: &usize| of[*node];
        let conditional = self.conditional(of);
        let mut leads_on = vec![false; of.len()];
        for node in (0..of.len()).filter(is_of).filter(|node| !conditional[*node]) {
            for (before, _) in &self.after[node] {
                leads_on[*before] = true;
            }
        }
        let is_root = |node: &usize| self.after[*node].iter().all(|(before, _)| !of[*before]);
        let roots = (0..of.len()).filter(is_of).filter(is_root).collect();
        let sinks =
            (0..of.len()).filter(is_of).filter(|node| !leads_on[*node] && !conditional[*node]).collect();
        (roots, sinks)
    }

    /// Finds the nodes that run only when something went wrong with some nodes, and what follows those.
    fn conditional(&self, of: &[bool]) -> Vec<bool> {
        let mut found = vec![false; self.after.len()];
        let mut left: Vec<usize> = Vec::new();
        let mut success: Vec<Vec<usize>> = vec![Vec::new(); self.after.len()];
        for (node, after) in self.after.iter().enumerate() {
            for (before, policy) in after.iter().filter(|(before, _)| of[*before]) {
                match policy {
                    AfterPolicy::Success => success[*before].push(node),
                    AfterPolicy::Completion => {}
                    AfterPolicy::Failed
                    | AfterPolicy::Blocked
                    | AfterPolicy::Cancelled
                    | AfterPolicy::Failure => {
                        left.push(node);
                    }
                }
            }
        }
        while let Some(node) = left.pop() {
            if !std::mem::replace(&mut found[node], true) {
                left.extend(&success[node]);
            }
        }
        found
    }
}

/// Returns how a node has to end so that its handler runs.
const fn policy_of(outcome: NodeOutcome) -> AfterPolicy {
    match outcome {
        NodeOutcome::Succeeded => AfterPolicy::Success,
        NodeOutcome::Failed => AfterPolicy::Failed,
        NodeOutcome::Blocked => AfterPolicy::Blocked,
        NodeOutcome::Cancelled => AfterPolicy::Cancelled,
        NodeOutcome::Skipped => AfterPolicy::Completion,
    }
}

/// What can be reached from the nodes that were asked about, so that many edges to one node cost one walk.
#[derive(Default)]
struct Reach {
    from: std::collections::BTreeMap<usize, Bits>,
}

impl Reach {
    fn leads(&mut self, followers: &[Vec<usize>], from: usize, to: usize) -> bool {
        let reached = self.from.entry(from).or_insert_with(|| {
            let mut reached = Bits(vec![0; followers.len().div_ceil(64)]);
            reached.walk(followers, from);
            reached
        });
        reached.has(to)
    }

    /// Takes in an edge that was added.
    fn grow(&mut self, followers: &[Vec<usize>], from: usize, to: usize) {
        for (start, reached) in &mut self.from {
            if (*start == from || reached.has(from)) && reached.set(to) {
                reached.walk(followers, to);
            }
        }
    }
}

/// One bit for each node.
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, node: usize) -> bool {
        self.0[node / 64] & (1 << (node % 64)) != 0
    }

    /// Sets a bit; tells whether it was not set.
    fn set(&mut self, node: usize) -> bool {
        let was = self.has(node);
        self.0[node / 64] |= 1 << (node % 64);
        !was
    }

    /// Marks what can be reached from a node.
    fn walk(&mut self, followers: &[Vec<usize>], from: usize) {
        let mut left = vec![from];
        while let Some(node) = left.pop() {
            for next in &followers[node] {
                if self.set(*next) {
                    left.push(*next);
                }
            }
        }
    }
}
