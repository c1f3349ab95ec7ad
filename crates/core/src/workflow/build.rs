//! From components to a graph: every name is found, every type fits, nothing runs in a circle; otherwise
//! everything that is wrong is said at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use petgraph::graph::{DiGraph, NodeIndex};

use super::assign::Assigned;
use super::component::{Body, Component};
use super::error::{BuildError, BuildErrors};
use super::extras::Extras;
use super::graph::{Check, Edge, Graph, Node, NodeIx, Op, Workflow};
use super::ports::{self, Declared, Ports};
use super::rule::Test;
use crate::fact::NodeId;
use crate::policy::{Kind, Matcher, Policy, Rules};
use crate::work::{PortType, Work};

/// A workflow that is being written.
#[derive(Clone, Debug)]
pub struct WorkflowBuilder {
    name: String,
    version: u32,
    components: Vec<Component>,
    policies: Vec<(Matcher, Policy)>,
    pub(super) declared: Declared,
}

impl WorkflowBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: 1,
            components: Vec::new(),
            policies: Vec::new(),
            declared: Declared::default(),
        }
    }

    /// Says which version of the workflow this is; one where nobody says. Runs that were stored under another
    /// version go on with that one, if somebody registers it, too.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a component. Components may be added in any order.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "adding a component is no arithmetic")]
    pub fn add(mut self, component: impl Into<Component>) -> Self {
        let mut component = component.into();
        let attached = std::mem::take(&mut component.attached);
        self.components.push(component);
        self.components.extend(attached);
        self
    }

    /// Adds components that come one after the other.
    #[must_use]
    pub fn pipeline(mut self, components: impl IntoIterator<Item = Component>) -> Self {
        let mut before: Option<String> = None;
        for mut component in components {
            if let Some(before) = before.take()
                && component.after.is_empty()
            {
                component.after = vec![before];
            }
            before = Some(component.name.clone());
            self = self.add(component);
        }
        self
    }

    /// Removes a component; what came after it comes after its parents. An unknown name changes nothing.
    #[must_use]
    pub fn remove(mut self, name: &str) -> Self {
        let Some(index) = self.components.iter().position(|component| component.name == name) else {
            return self;
        };
        let removed = self.components.remove(index);
        for component in &mut self.components {
            if component.after.iter().any(|parent| parent == name) {
                let parents = std::mem::take(&mut component.after);
                component.after = parents
                    .into_iter()
                    .flat_map(|parent| if parent == name { removed.after.clone() } else { vec![parent] })
                    .collect();
            }
        }
        self
    }

    /// Adds everything of another workflow. How strictly types are looked at stays as it was here.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.components.extend(other.components);
        self.policies.extend(other.policies);
        self.declared.input = self.declared.input.or(other.declared.input);
        self.declared.outputs.extend(other.declared.outputs);
        self
    }

    /// Adds a rule of policy after the ones that are there, so that the builder reads from top to bottom.
    #[must_use]
    pub fn policy(mut self, matcher: Matcher, policy: Policy) -> Self {
        self.policies.push((matcher, policy));
        self
    }

    /// Adds a rule of policy before the ones that are there.
    #[must_use]
    pub fn policy_first(mut self, matcher: Matcher, policy: Policy) -> Self {
        self.policies.insert(0, (matcher, policy));
        self
    }

    /// Replaces the rules of policy.
    #[must_use]
    pub fn policies(mut self, policies: impl IntoIterator<Item = (Matcher, Policy)>) -> Self {
        self.policies = policies.into_iter().collect();
        self
    }

    /// Checks everything and lowers it to a graph.
    ///
    /// # Errors
    /// Everything that is wrong, each with the name of its component.
    pub fn build(self) -> Result<Workflow, BuildErrors> {
        let mut errors = Vec::new();
        let rules = Rules::new(self.policies).unwrap_or_else(|problems| {
            errors.push(BuildError::Policies(problems));
            Rules::default()
        });
        check_names(&self.components, &mut errors);
        check_compensations(&self.components, &rules, &mut errors);
        if let Some(cycle) = find_cycle(&self.components) {
            errors.push(BuildError::Cycle { path: cycle });
        }
        if !errors.is_empty() {
            // What stands on its own is checked all the same, so that everything wrong is said at once.
            let sound = sound_parts(&self.components);
            Lowering::new(&sound).lower(self.name, rules, &mut errors);
            ports::check(&self.declared, &self.components, &mut errors);
            self.declared.checks.sift(&mut errors);
            return Err(BuildErrors(errors));
        }
        let mut graph = Lowering::new(&self.components).lower(self.name, rules, &mut errors);
        graph.version = self.version;
        ports::check(&self.declared, &self.components, &mut errors);
        let warnings = self.declared.checks.sift(&mut errors);
        let place =
            |(name, component): (String, String)| Some((name, *graph.by_name.get(component.as_str())?));
        let outputs = self.declared.outputs.into_iter().filter_map(place).collect();
        graph.ports = Ports { input: self.declared.input, outputs, warnings };
        if errors.is_empty() { Ok(Workflow(Arc::new(graph))) } else { Err(BuildErrors(errors)) }
    }
}

fn check_names(components: &[Component], errors: &mut Vec<BuildError>) {
    let mut seen = BTreeSet::new();
    for component in components {
        if component.name.is_empty() {
            errors.push(BuildError::NoName { kind: component.kind().name() });
        } else if !seen.insert(component.name.as_str()) {
            errors.push(BuildError::DuplicateName { name: component.name.clone() });
        }
    }
    let conditions: BTreeSet<&str> = components
        .iter()
        .filter(|component| matches!(component.body, Body::Condition(_)))
        .map(|component| component.name.as_str())
        .collect();
    for component in components {
        for meta in component.extras.reads.iter().filter(|meta| !seen.contains(meta.component())) {
            let (component, reads) = (component.name.clone(), meta.to_string());
            errors.push(BuildError::UnknownMeta { component, reads });
        }
        for parent in component.after.iter().filter(|parent| !seen.contains(parent.as_str())) {
            errors.push(BuildError::UnknownParent {
                component: component.name.clone(),
                parent: parent.clone(),
                known: seen.iter().take(9).map(|name| (*name).to_owned()).collect(),
            });
        }
        if let Body::Rule { test, reaction } = &component.body {
            if reaction.is_none() {
                errors.push(BuildError::IncompleteRule { rule: component.name.clone(), what: "then" });
            }
            match test {
                None => {
                    errors.push(BuildError::IncompleteRule { rule: component.name.clone(), what: "when" });
                }
                Some(test) => {
                    for condition in needs(test).filter(|name| !conditions.contains(name)) {
                        let (rule, condition) = (component.name.clone(), condition.to_owned());
                        errors.push(BuildError::UnresolvedCondition { rule, condition });
                    }
                }
            }
        }
    }
}

fn check_compensations(components: &[Component], rules: &Rules, errors: &mut Vec<BuildError>) {
    let undoing: BTreeSet<&str> = components
        .iter()
        .filter(|component| component.kind() == Kind::Compensation)
        .map(|component| component.name.as_str())
        .collect();
    for component in components {
        let is_alone = undoing.contains(component.name.as_str());
        for parent in component.after.iter().filter(|parent| is_alone || undoing.contains(parent.as_str())) {
            let (component, parent) = (component.name.clone(), parent.clone());
            errors.push(BuildError::Attached { component, parent });
        }
    }
    for name in rules.compensations().filter(|name| !undoing.contains(name)) {
        errors.push(BuildError::NoCompensation { name: name.to_owned() });
    }
}

/// Finds a circle and the way round it.
fn find_cycle(components: &[Component]) -> Option<Vec<String>> {
    let index: BTreeMap<&str, usize> =
        components.iter().enumerate().map(|(index, component)| (component.name.as_str(), index)).collect();
    let mut graph = DiGraph::<(), ()>::with_capacity(components.len(), components.len());
    for _ in components {
        graph.add_node(());
    }
    for (to, component) in components.iter().enumerate() {
        for parent in &component.after {
            if let Some(from) = index.get(parent.as_str()) {
                graph.add_edge(NodeIndex::new(*from), NodeIndex::new(to), ());
            }
        }
    }
    let start = petgraph::algo::toposort(&graph, None).err()?.node_id();
    // Every way back to the start is a circle; the one found first is shown.
    let mut came_from = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in graph.neighbors(node) {
            if next == start {
                let mut way = vec![start, node];
                let mut at = node;
                while at != start {
                    at = came_from[&at];
                    way.push(at);
                }
                way.reverse();
                // With a self-loop the start stands there three times.
                way.dedup();
                if way.len() == 1 {
                    way.push(start);
                }
                return Some(way.into_iter().map(|node| components[node.index()].name.clone()).collect());
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    Some(vec![components[start.index()].name.clone()])
}

/// The lowering of components, in an order in which parents come first.
struct Lowering<'c> {
    components: &'c [Component],
    order: Vec<usize>,
    nodes: Vec<Node>,
    by_name: BTreeMap<Arc<str>, NodeIx>,
    roots: Vec<Edge>,
    /// Rules whose conditions are not found yet.
    unresolved: Vec<(NodeIx, &'c Test)>,
}

impl<'c> Lowering<'c> {
    fn new(components: &'c [Component]) -> Self {
        Self {
            components,
            order: parents_first(components),
            nodes: Vec::with_capacity(components.len()),
            by_name: BTreeMap::new(),
            roots: Vec::new(),
            unresolved: Vec::new(),
        }
    }

    fn lower(mut self, name: String, rules: Rules, errors: &mut Vec<BuildError>) -> Graph {
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
        let by_id = (0..).zip(&self.nodes).map(|(ix, node)| (node.id, ix)).collect();
        let assigned = Arc::new(Assigned::new(rules, &self.nodes));
        Graph {
            name,
            version: 1,
            nodes: self.nodes,
            by_name: self.by_name,
            by_id,
            roots: self.roots,
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
            Body::Rule { reaction, .. } => reaction.as_ref().map(Work::inputs),
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
            Body::Rule { test: Some(test), reaction: Some(reaction) } => {
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

/// Returns the components that depend on nothing unknown, doubled or circular.
fn sound_parts(components: &[Component]) -> Vec<Component> {
    let mut sound: BTreeMap<&str, &Component> = BTreeMap::new();
    for index in parents_first(components) {
        let component = &components[index];
        let is_whole = match &component.body {
            Body::Rule { test, reaction } => {
                reaction.is_some()
                    && test.as_ref().is_some_and(|test| needs(test).all(|name| sound.contains_key(name)))
            }
            Body::Step(_)
            | Body::Condition(_)
            | Body::Map(_)
            | Body::Reduce { .. }
            | Body::Accumulator { .. }
            | Body::Compensation(_) => true,
        };
        let is_known = component.after.iter().all(|parent| sound.contains_key(parent.as_str()));
        if is_whole && is_known && !component.name.is_empty() {
            sound.entry(&component.name).or_insert(component);
        }
    }
    sound.into_values().cloned().collect()
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

/// Returns the names of the conditions that a test refers to.
fn needs(test: &Test) -> impl Iterator<Item = &str> {
    let mut names = Vec::new();
    let mut stack = vec![test];
    while let Some(test) = stack.pop() {
        match test {
            Test::Named(name) => names.push(name.as_str()),
            Test::Inline(_) => {}
            Test::All(tests) | Test::Any(tests) => stack.extend(tests),
            Test::Not(test) => stack.push(test),
        }
    }
    names.into_iter()
}

/// Orders components so that parents come first, otherwise as they were added.
fn parents_first(components: &[Component]) -> Vec<usize> {
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
