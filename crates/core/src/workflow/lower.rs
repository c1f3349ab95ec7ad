//! From components to the nodes and edges of a graph, parents first; what does not fit is noted on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assign::Assigned;
use super::component::{Body, Component};
use super::error::BuildError;
use super::extras::Extras;
use super::graph::{Check, Edge, Graph, Node, NodeIx, Op};
use super::ports::Ports;
use super::rule::Test;
use crate::fact::NodeId;
use crate::policy::{Kind, Rules};
use crate::work::{PortType, Work};

/// The lowering of components, in an order in which parents come first.
pub(super) struct Lowering<'c> {
    components: &'c [Component],
    order: Vec<usize>,
    nodes: Vec<Node>,
    by_name: BTreeMap<Arc<str>, NodeIx>,
    roots: Vec<Edge>,
    /// Rules whose conditions are not found yet.
    unresolved: Vec<(NodeIx, &'c Test)>,
}

impl<'c> Lowering<'c> {
    pub(super) fn new(components: &'c [Component]) -> Self {
        Self {
            components,
            order: parents_first(components),
            nodes: Vec::with_capacity(components.len()),
            by_name: BTreeMap::new(),
            roots: Vec::new(),
            unresolved: Vec::new(),
        }
    }

    pub(super) fn lower(mut self, name: String, rules: Rules, errors: &mut Vec<BuildError>) -> Graph {
        for index in std::mem::take(&mut self.order) {
            self.lower_one(&self.components[index], errors);
        }
        for (ix, test) in std::mem::take(&mut self.unresolved) {
            let check = self.resolved(test);
            if let Op::Rule { test, .. } = &mut self.nodes[ix as usize].op {
                *test = check;
            }
        }
        self.mark_awaited();
        self.mark_read();
        let by_id: BTreeMap<NodeId, NodeIx> =
            (0..).zip(&self.nodes).map(|(ix, node)| (node.id, ix)).collect();
        let assigned = Arc::new(Assigned::new(rules, &self.nodes));
        if let Err(problems) = assigned.check() {
            errors.push(BuildError::Policies(problems));
        }
        Graph {
            name,
            version: 1,
            nodes: self.nodes.into(),
            by_name: Arc::new(self.by_name),
            by_id: Arc::new(by_id),
            roots: self.roots.into(),
            assigned,
            ports: Ports::default(),
        }
    }

    fn lower_one(&mut self, component: &'c Component, errors: &mut Vec<BuildError>) {
        let parents: Vec<NodeIx> = component.after.iter().map(|name| self.by_name[name.as_str()]).collect();
        self.check_same_map(component, &parents, errors);
        let takes = match &component.body {
            Body::Step(work) | Body::Condition(work) | Body::Map(work) => Some(work.inputs()),
            Body::Compensation(_) => None,
            Body::Rule { reaction, .. } => Some(reaction.inputs()),
            Body::Reduce { .. } | Body::Accumulator { .. } => None,
        };
        if let Some(takes) = takes {
            self.check_ports(component, &parents, takes, errors);
        }
        if let Body::Rule { test: Some(test), .. } = &component.body {
            for takes in inline(test).map(Work::inputs).filter(|takes| takes.len() > 1) {
                self.check_ports(component, &parents, takes, errors);
            }
        }
        match &component.body {
            Body::Step(work) => {
                self.push_after(component, &parents, Op::Step(work.clone()), work.output().clone());
            }
            Body::Compensation(work) => {
                let name: Arc<str> = Arc::from(component.name.as_str());
                let (op, gives) = (Op::Step(work.clone()), work.output().clone());
                let ix = self.push(op, Kind::Compensation, Some(Arc::clone(&name)), component, gives);
                self.by_name.insert(name, ix);
            }
            Body::Condition(work) => {
                let gives = self.given(&parents);
                self.push_after(component, &parents, Op::Condition(work.clone()), gives);
            }
            Body::Rule { test: Some(test), reaction } => {
                // The conditions it refers to may come later; they are found when all nodes are there.
                let (op, gives) = (
                    Op::Rule { test: Check::All(Vec::new()), reaction: reaction.clone() },
                    reaction.output(),
                );
                let ix = self.push_after(component, &parents, op, gives.clone());
                self.unresolved.push((ix, test));
            }
            Body::Rule { .. } => {}
            Body::Map(work) => self.lower_map(component, &parents, work, errors),
            Body::Reduce { reducer, takes, gives } => {
                let scope = parents
                    .first()
                    .map_or_else(Vec::new, |parent| self.nodes[*parent as usize].scope.clone());
                self.check_reduced(component, &parents, takes, scope.is_empty(), errors);
                let fan_out = scope.last().copied();
                let op = Op::FanIn { reducer: reducer.clone(), fan_out };
                let ix = self.push_after(component, &parents, op, gives.clone());
                if let Some(fan_out) = fan_out {
                    self.nodes[ix as usize].scope.pop();
                    if let Op::FanOut { fan_ins, .. } = &mut self.nodes[fan_out as usize].op {
                        fan_ins.push(ix);
                    }
                }
            }
            Body::Accumulator { stateful, takes, gives, .. } => {
                self.check_ports(component, &parents, std::slice::from_ref(takes), errors);
                self.push_after(component, &parents, Op::State(stateful.clone()), gives.clone());
            }
        }
    }

    /// A map is a fan-out without a name and a step that has the name and runs for each item.
    fn lower_map(
        &mut self,
        component: &Component,
        parents: &[NodeIx],
        work: &Work,
        errors: &mut Vec<BuildError>,
    ) {
        if let [parent] = parents {
            let gives = &self.nodes[*parent as usize].gives;
            if !matches!(gives, PortType::List(_) | PortType::Any | PortType::OneOf(_) | PortType::Tuple(_)) {
                errors.push(BuildError::NoList {
                    component: component.name.clone(),
                    parent: self.nodes[*parent as usize].label().to_owned(),
                    gives: gives.clone(),
                });
            }
        }
        let parent = self.joined(component, parents);
        let item = work.inputs().first().cloned().unwrap_or(PortType::Any);
        let fan_out = self.push(
            Op::FanOut { work: work.clone(), fan_ins: Vec::new() },
            Kind::Map,
            None,
            component,
            item,
        );
        self.connect(parent, fan_out, 0);
        let step = self.push(
            Op::Step(work.clone()),
            Kind::Map,
            Some(Arc::from(component.name.as_str())),
            component,
            work.output().clone(),
        );
        self.connect(Some(fan_out), step, 0);
        self.nodes[step as usize].scope.push(fan_out);
        self.by_name.insert(Arc::from(component.name.as_str()), step);
    }

    fn push_after(&mut self, component: &Component, parents: &[NodeIx], op: Op, gives: PortType) -> NodeIx {
        let parent = self.joined(component, parents);
        let name: Arc<str> = Arc::from(component.name.as_str());
        let ix = self.push(op, component.kind(), Some(Arc::clone(&name)), component, gives);
        self.connect(parent, ix, 0);
        self.by_name.insert(name, ix);
        ix
    }

    /// Several parents come together in a join of their own.
    fn joined(&mut self, component: &Component, parents: &[NodeIx]) -> Option<NodeIx> {
        if parents.len() < 2 {
            return parents.first().copied();
        }
        let gives =
            PortType::Tuple(parents.iter().map(|ix| self.nodes[*ix as usize].gives.clone()).collect());
        let join = self.push(Op::Join, Kind::Join, None, component, gives);
        for (slot, parent) in (0..).zip(parents) {
            self.connect(Some(*parent), join, slot);
        }
        Some(join)
    }

    fn push(
        &mut self,
        op: Op,
        kind: Kind,
        name: Option<Arc<str>>,
        component: &Component,
        gives: PortType,
    ) -> NodeIx {
        let ix = NodeIx::try_from(self.nodes.len()).expect("invariant: a workflow has fewer than 2^32 nodes");
        let version = component.version.to_le_bytes();
        let gives_text = gives.to_string();
        let needs = format!("{:?}", component.extras.needs);
        let named = name.is_some();
        let naming: &[u8] = if named { b"named" } else { b"unnamed" };
        let id = NodeId::hashed(&[
            kind.name().as_bytes(),
            b"\0",
            naming,
            b"\0",
            component.name.as_bytes(),
            b"\0",
            &version,
            gives_text.as_bytes(),
            b"\0",
            component.after.join("\0").as_bytes(),
            b"\0",
            needs.as_bytes(),
        ]);
        self.nodes.push(Node {
            id,
            name,
            kind,
            tags: component.tags.clone(),
            op,
            children: Vec::new(),
            parents: 0,
            scope: Vec::new(),
            rank: ix,
            awaited: false,
            gives,
            extras: if named { component.extras.clone() } else { Extras::default() },
            is_read: false,
        });
        ix
    }

    /// Without a parent, the node takes the input.
    fn connect(&mut self, parent: Option<NodeIx>, to: NodeIx, slot: u32) {
        let edge = Edge { to, slot };
        match parent {
            None => self.roots.push(edge),
            Some(parent) => {
                let parent = &mut self.nodes[parent as usize];
                parent.children.push(edge);
                let scope = parent.scope.clone();
                self.nodes[to as usize].scope = scope;
            }
        }
        self.nodes[to as usize].parents += 1;
    }

    fn given(&self, parents: &[NodeIx]) -> PortType {
        match parents {
            [] => PortType::Any,
            [one] => self.nodes[*one as usize].gives.clone(),
            several => {
                PortType::Tuple(several.iter().map(|ix| self.nodes[*ix as usize].gives.clone()).collect())
            }
        }
    }

    fn resolved(&self, test: &Test) -> Check {
        match test {
            Test::Named(name) => match self.by_name.get(name.as_str()) {
                Some(ix) => Check::Named(*ix),
                // Only where the build fails anyway.
                None => Check::Any(Vec::new()),
            },
            Test::Inline(work) => Check::Inline(work.clone()),
            Test::All(tests) => Check::All(tests.iter().map(|test| self.resolved(test)).collect()),
            Test::Any(tests) => Check::Any(tests.iter().map(|test| self.resolved(test)).collect()),
            Test::Not(test) => Check::Not(Box::new(self.resolved(test))),
        }
    }

    fn check_same_map(&self, component: &Component, parents: &[NodeIx], errors: &mut Vec<BuildError>) {
        let Some((first, rest)) = parents.split_first() else { return };
        let node = |ix: NodeIx| &self.nodes[ix as usize];
        if let Some(other) = rest.iter().find(|other| node(**other).scope != node(*first).scope) {
            errors.push(BuildError::MixedMaps {
                component: component.name.clone(),
                one: node(*first).label().to_owned(),
                other: node(*other).label().to_owned(),
            });
        }
    }

    fn check_ports(
        &self,
        component: &Component,
        parents: &[NodeIx],
        takes: &[PortType],
        errors: &mut Vec<BuildError>,
    ) {
        let is_map = matches!(component.body, Body::Map(_));
        let mismatch = |parent: NodeIx, takes: &PortType| {
            let node = &self.nodes[parent as usize];
            let taken = if is_map { PortType::List(Box::new(takes.clone())) } else { takes.clone() };
            // Whether a map gets a list at all is said by itself.
            let fits = node.gives.fits(&taken) || (is_map && !matches!(node.gives, PortType::List(_)));
            (!fits).then(|| BuildError::PortMismatch {
                component: component.name.clone(),
                parent: node.label().to_owned(),
                gives: node.gives.clone(),
                takes: taken,
            })
        };
        match (parents, takes) {
            ([] | [_], [takes]) => errors.extend(parents.first().and_then(|parent| mismatch(*parent, takes))),
            // One argument takes all parents as a list or a tuple.
            (_, [takes]) => {
                let gives = self.given(parents);
                let takes = if is_map { PortType::List(Box::new(takes.clone())) } else { takes.clone() };
                if !gives.fits(&takes) {
                    errors.push(BuildError::PortMismatch {
                        component: component.name.clone(),
                        parent: component.after.join(", "),
                        gives,
                        takes,
                    });
                }
            }
            (parents, takes) if parents.len() == takes.len() => {
                errors
                    .extend(parents.iter().zip(takes).filter_map(|(parent, takes)| mismatch(*parent, takes)));
            }
            (parents, takes) => errors.push(BuildError::WrongArity {
                component: component.name.clone(),
                takes: takes.len(),
                parents: parents.len().max(1),
            }),
        }
    }

    /// A reduce takes the items of a map, or a list where there is none.
    fn check_reduced(
        &self,
        component: &Component,
        parents: &[NodeIx],
        takes: &PortType,
        is_list: bool,
        errors: &mut Vec<BuildError>,
    ) {
        let [parent] = parents else { return };
        let node = &self.nodes[*parent as usize];
        let takes = if is_list { PortType::List(Box::new(takes.clone())) } else { takes.clone() };
        if !node.gives.fits(&takes) {
            errors.push(BuildError::PortMismatch {
                component: component.name.clone(),
                parent: node.label().to_owned(),
                gives: node.gives.clone(),
                takes,
            });
        }
    }

    /// Marks what somebody reads, so that a run keeps it at hand.
    fn mark_read(&mut self) {
        let read: Vec<NodeIx> = self
            .components
            .iter()
            .flat_map(|component| &component.extras.reads)
            .filter_map(|meta| self.by_name.get(meta.component()).copied())
            .collect();
        for ix in read {
            self.nodes[ix as usize].is_read = true;
        }
    }

    /// Marks, from the end to the beginning, what something after it waits for.
    fn mark_awaited(&mut self) {
        for ix in (0..self.nodes.len()).rev() {
            let awaited = self.nodes[ix].children.iter().any(|edge| {
                let child = &self.nodes[edge.to as usize];
                child.awaited || matches!(child.op, Op::Join | Op::FanIn { .. } | Op::State(_))
            });
            let fans_in = matches!(&self.nodes[ix].op, Op::FanOut { fan_ins, .. } if !fan_ins.is_empty());
            self.nodes[ix].awaited = awaited || fans_in;
        }
    }
}

/// Returns the functions that a test calls itself.
fn inline(test: &Test) -> impl Iterator<Item = &Work> {
    let mut works = Vec::new();
    let mut stack = vec![test];
    while let Some(test) = stack.pop() {
        match test {
            Test::Inline(work) => works.push(work),
            Test::Named(_) => {}
            Test::All(tests) | Test::Any(tests) => stack.extend(tests),
            Test::Not(test) => stack.push(test),
        }
    }
    works.into_iter()
}

/// Orders components so that parents come first, otherwise as they were added.
pub(super) fn parents_first(components: &[Component]) -> Vec<usize> {
    let index: BTreeMap<&str, usize> =
        components.iter().enumerate().map(|(index, component)| (component.name.as_str(), index)).collect();
    let mut children = vec![Vec::new(); components.len()];
    let mut missing = vec![0_usize; components.len()];
    for (to, component) in components.iter().enumerate() {
        for from in component.after.iter().filter_map(|name| index.get(name.as_str())) {
            children[*from].push(to);
            missing[to] += 1;
        }
    }
    let mut ready: BTreeSet<usize> = (0..components.len()).filter(|index| missing[*index] == 0).collect();
    let mut order = Vec::with_capacity(components.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for child in &children[next] {
            missing[*child] -= 1;
            if missing[*child] == 0 {
                ready.insert(*child);
            }
        }
    }
    order
}
