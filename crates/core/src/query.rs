//! What a run knows: productions, facts, failures, and where they come from.

use std::cmp::Ordering;

use crate::decide::ReasonCode;
use crate::document::nearest;
use crate::event::{Absence, FactIx, LineageIx};
use crate::fact::{FactId, Payload, Value, ValueError};
use crate::policy::Failure;
use crate::run::{FactRow, FoldRow, JoinRow, Run, Status};
use crate::time::Timestamp;
use crate::workflow::{NodeIx, Op};

/// A fact as people look at it.
#[derive(Clone, Debug)]
pub struct Fact<'r> {
    /// Its identity.
    pub id: FactId,
    /// The component that produced it; `None` for an input or a node without a name.
    pub producer: Option<&'r str>,
    /// Its value.
    pub value: &'r Value,
    /// How many productions lie between it and its input.
    pub depth: u32,
    /// The input it comes from, counted from zero.
    pub input: u32,
}

/// A failure as people look at it.
#[derive(Clone, Debug)]
pub struct Failed<'r> {
    /// The component that failed.
    pub component: Option<&'r str>,
    /// Why.
    pub failure: &'r Failure,
    /// How many attempts were made.
    pub attempts: u32,
    /// Whether its policy lets it pass.
    pub skipped: bool,
    /// Why no further attempt was made, if somebody decided.
    pub reason: Option<ReasonCode>,
    /// The input it comes from, counted from zero.
    pub input: u32,
}

/// Why a run cannot say what a component produced.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// # use tidewheel_core::QueryError;
/// use tidewheel::workflow::{Workflow, step};
///
/// let run = Workflow::new("numbers").add(step("double", |x: i64| x * 2)).build()?.run("run-1");
/// let error = run.result::<i64>("doubel").unwrap_err();
/// assert!(matches!(&error, QueryError::NoComponent { nearest, .. } if nearest == &["double"]));
/// assert_eq!(error.to_string(), "there is no component `doubel`; the nearest is `double`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// There is no such component.
    #[error("there is no component `{name}`{}", near(nearest))]
    NoComponent {
        /// The name.
        name: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// There is no such output.
    #[error("no output is declared as `{name}`{}", near(nearest))]
    NoOutput {
        /// The name.
        name: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// A value is of another type.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// Says which names are near.
pub(crate) fn near(nearest: &[String]) -> String {
    let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [name] => format!("; the nearest is {name}"),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}

/// So many names that are near are given.
const MOST_NEAR: usize = 3;

/// Returns the known names that a name is near to, in their order.
pub(crate) fn nearest_names<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<String> {
    let is_near = |candidate: &&str| nearest(name, &[candidate]).is_some();
    known.into_iter().filter(is_near).take(MOST_NEAR).map(str::to_owned).collect()
}

impl Run {
    /// Returns everything that was produced, in an order that does not depend on who ran what when: by input,
    /// by place in the graph, by place in a map.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .pipeline([step("inc", |x: i64| x + 1), step("double", |x: i64| x * 2)])
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied(20_i64)?;
    /// let who: Vec<_> = run.productions().iter().map(|fact| fact.producer).collect();
    /// assert_eq!(who, [Some("inc"), Some("double")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn productions(&self) -> Vec<Fact<'_>> {
        self.sorted(|_, row| row.node.is_some_and(|node| self.is_production(node)))
    }

    /// Returns what a component produced, in the same order.
    ///
    /// # Errors
    /// There is no such component.
    pub fn productions_of(&self, component: &str) -> Result<Vec<Fact<'_>>, QueryError> {
        let node = self.component(component)?;
        Ok(self.sorted(|_, row| row.node == Some(node)))
    }

    pub(crate) fn component(&self, name: &str) -> Result<NodeIx, QueryError> {
        self.graph.by_name.get(name).copied().ok_or_else(|| QueryError::NoComponent {
            name: name.to_owned(),
            nearest: nearest_names(name, self.graph.by_name.keys().map(AsRef::as_ref)),
        })
    }

    /// Returns the inputs and everything that was produced.
    #[must_use]
    pub fn reactions(&self) -> Vec<Fact<'_>> {
        self.sorted(|_, row| row.node.is_none_or(|node| self.is_production(node)))
    }

    /// Returns what a component produced last: for the last input that it has something of. Of an accumulator or a state
    /// machine, that is its current state, whichever input changed it last.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let mut run = Workflow::new("numbers").add(step("inc", |x: i64| x + 1)).build()?.run("run-1");
    /// assert_eq!(run.result::<i64>("inc")?, None);
    /// run.react_until_satisfied(1_i64)?;
    /// run.react_until_satisfied(41_i64)?;
    /// assert_eq!(run.result::<i64>("inc")?, Some(42));
    /// assert_eq!(run.results::<i64>("inc")?, [2, 42]); // all of them
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such component, or the value is not of that type.
    pub fn result<T: Payload>(&self, component: &str) -> Result<Option<T>, QueryError> {
        let node = self.component(component)?;
        Ok(self.last_of(node).map(|row| row.value.get::<T>()).transpose()?)
    }

    /// Returns the last value of a declared output, as [`Run::result`] does of a component.
    ///
    /// # Errors
    /// No output has that name, or the value is not of that type.
    pub fn output<T: Payload>(&self, name: &str) -> Result<Option<T>, QueryError> {
        let outputs = &self.graph.ports.outputs;
        let node = outputs.get(name).copied().ok_or_else(|| QueryError::NoOutput {
            name: name.to_owned(),
            nearest: nearest_names(name, outputs.keys().map(AsRef::as_ref)),
        })?;
        Ok(self.last_of(node).map(|row| row.value.get::<T>()).transpose()?)
    }

    /// Returns what a component produced last for an input, among the first so many facts of the run. Of a state, that is
    /// the current one, as soon as the input had its turn.
    #[must_use]
    pub fn value_for(&self, component: &str, input: u32, facts: usize) -> Option<&Value> {
        let node = *self.graph.by_name.get(component)?;
        let of_input = |row: &&FactRow| self.lineages[row.lineage as usize].input == input;
        let made = self.facts[..facts.min(self.facts.len())].iter().rev();
        let mut made = made.filter(|row| row.node == Some(node));
        let newest = made.clone().next();
        let own = made.find(of_input)?;
        // An earlier input that was retried had its turn after later ones.
        let current = if matches!(self.graph.node(node).op, Op::State(_)) { newest } else { None };
        Some(&current.unwrap_or(own).value)
    }

    /// Tells whether a component gives one value for each input: it is not inside a map.
    #[must_use]
    pub fn gives_one_value(&self, component: &str) -> bool {
        self.graph.by_name.get(component).is_some_and(|node| self.graph.node(*node).scope.is_empty())
    }

    /// Returns who produced each fact from the given one on, by component and input.
    pub fn producers_from(&self, fact: usize) -> impl Iterator<Item = (Option<&str>, u32)> {
        self.facts.iter().skip(fact).map(|row| {
            let producer = row.node.and_then(|node| self.graph.node(node).name.as_deref());
            (producer, self.lineages[row.lineage as usize].input)
        })
    }

    /// Returns the last input that was no signal, counted from zero; the last signal if there was nothing else.
    #[must_use]
    pub fn last_input(&self) -> Option<u32> {
        let inputs = (0..self.inputs_len()).rev();
        inputs.clone().find(|input| !self.signals.contains(input)).or_else(|| inputs.into_iter().next())
    }

    /// Returns how many inputs there were.
    #[must_use]
    pub fn inputs_len(&self) -> u32 {
        crate::run::index(self.inputs.len())
    }

    /// Returns what policies see of the node that an activation is about.
    #[must_use]
    pub fn node_of(&self, act: crate::event::ActIx) -> Option<crate::policy::NodeInfo<'_>> {
        self.acts.get(act as usize).map(|row| self.graph.node(row.node).info())
    }

    /// Returns how many activations are not over.
    #[must_use]
    pub const fn open_len(&self) -> usize {
        self.open
    }

    /// Tells whether something failed that its policy did not let pass.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failures.values().any(|row| !row.skipped)
    }

    /// Returns how many failures were skipped: the policies of their work let them pass, and the run completes without
    /// what that work would have given.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::Outcome;
    /// use tidewheel::policy::Failure;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let mut run = Workflow::new("news").add(step("publish", |text: String| text)).build()?.run("run-1");
    /// run.plan("hello".to_owned());
    /// for runnable in run.prepare() {
    ///     run.apply(runnable.executed(Outcome::Skipped(Failure::new("no network"))));
    /// }
    /// assert_eq!((run.has_failed(), run.skipped_failures()), (false, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn skipped_failures(&self) -> usize {
        self.failures.values().filter(|row| row.skipped).count()
    }

    /// Tells whether all that is left waits for its next attempt.
    #[must_use]
    pub fn only_waits(&self) -> bool {
        self.open > 0 && self.delayed == self.open
    }

    /// Returns when the first of what waits for a time is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// Returns everything that a component produced.
    ///
    /// # Errors
    /// There is no such component, or a value is not of that type.
    pub fn results<T: Payload>(&self, component: &str) -> Result<Vec<T>, QueryError> {
        let values = self.productions_of(component)?.into_iter().map(|fact| fact.value.get::<T>());
        Ok(values.collect::<Result<_, _>>()?)
    }

    /// Returns everything that failed or was skipped, in the order of productions.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let parse = step("parse", |text: String| text.parse::<i64>());
    /// let mut run = Workflow::new("numbers").add(parse).build()?.run("run-1");
    /// run.react_until_satisfied("forty-two".to_owned())?;
    /// let failed = &run.failures()[0];
    /// assert_eq!((failed.component, failed.attempts), (Some("parse"), 1));
    /// assert!(run.has_failed() && run.result::<i64>("parse")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn failures(&self) -> Vec<Failed<'_>> {
        let mut acts: Vec<_> = self.failures.iter().collect();
        acts.sort_by_key(|(act, _)| {
            let row = &self.acts[**act as usize];
            let input = self.lineages[row.lineage as usize].input;
            (input, self.graph.node(row.node).rank, self.way_to(row.lineage), **act)
        });
        let failed = acts.into_iter().map(|(act, failure)| {
            let row = &self.acts[*act as usize];
            Failed {
                component: self.graph.node(row.node).name.as_deref(),
                failure: &failure.failure,
                attempts: failure.attempts,
                skipped: failure.skipped,
                reason: failure.reason,
                input: self.lineages[row.lineage as usize].input,
            }
        });
        failed.collect()
    }

    /// Returns why nothing came from a component for an input, if that is so. That a condition was not true is
    /// remembered only where something waits for what comes after it.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::event::Absence;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .add(step("parse", |text: String| text.parse::<i64>()))
    ///     .add(step("double", |x: i64| x * 2).after("parse"))
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied("forty-two".to_owned())?;
    /// assert_eq!(run.absence("double", 0), Some(Absence::UpstreamFailed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn absence(&self, component: &str, input: u32) -> Option<Absence> {
        let node = *self.graph.by_name.get(component)?;
        let lineage = *self.inputs.get(input as usize)?;
        self.absent.get(&(node, lineage)).copied()
    }

    /// Returns what an input caused.
    #[must_use]
    pub fn caused_by(&self, input: u32) -> Vec<Fact<'_>> {
        let is_of = |lineage: LineageIx| self.lineages[lineage as usize].input == input;
        self.sorted(|_, row| is_of(row.lineage) && row.node.is_some_and(|node| self.is_production(node)))
    }

    /// Returns what came from a fact, from what came from it, and so on; the fact itself is not among it. What
    /// a join or a reduce gives came from all of its parts; a state came from the facts that it was fed.
    #[must_use]
    pub fn produced_since(&self, fact: FactId) -> Vec<Fact<'_>> {
        let Some(first) = self.facts.iter().position(|row| row.id == fact) else { return Vec::new() };
        // Whatever a fact came from stands before it, so that one pass finds everything.
        let mut came = vec![false; self.facts.len()];
        for (at, row) in self.facts.iter().enumerate().skip(first + 1) {
            let is_of = |part: &FactIx| *part as usize == first || came[*part as usize];
            came[at] = row.parent.as_ref().is_some_and(is_of) || self.parts_of(row).any(|part| is_of(&part));
        }
        self.sorted(|at, row| came[at as usize] && row.node.is_some_and(|node| self.is_production(node)))
    }

    /// Returns the facts that a join or a reduce was given for what it produced.
    fn parts_of(&self, row: &FactRow) -> impl Iterator<Item = FactIx> {
        let place = row.node.map(|node| (node, row.lineage));
        let join = place.and_then(|place| self.joins.get(&place));
        let fold = place.and_then(|place| self.folds.get(&place));
        join.into_iter().flat_map(JoinRow::came).chain(fold.into_iter().flat_map(FoldRow::came))
    }

    /// Returns the way from an input to a fact, the input first.
    #[must_use]
    pub fn ancestry(&self, fact: FactId) -> Vec<Fact<'_>> {
        let mut way = Vec::new();
        let mut at = self.facts.iter().position(|row| row.id == fact);
        while let Some(index) = at {
            way.push(self.shown(&self.facts[index]));
            at = self.facts[index].parent.map(|parent| parent as usize);
        }
        way.reverse();
        way
    }

    /// Returns how many facts a component produced.
    ///
    /// # Errors
    /// There is no such component.
    pub fn fact_count(&self, component: &str) -> Result<usize, QueryError> {
        let node = self.component(component)?;
        Ok(self.facts.iter().filter(|row| row.node == Some(node)).count())
    }

    /// Returns how many facts there are, inputs and items of maps among them.
    #[must_use]
    pub const fn facts_len(&self) -> usize {
        self.facts.len()
    }

    /// Forgets every fact; the workflow stays.
    pub fn purge_memory(&mut self) {
        let fresh = self.workflow().run(self.id.clone());
        let context = std::sync::Arc::clone(&self.context);
        let (assigned, runtime) = (std::sync::Arc::clone(&self.assigned), std::mem::take(&mut self.runtime));
        // Inputs count from zero again, and every one of them comes after what was added.
        let mut since = std::mem::take(&mut self.since);
        since.values_mut().filter(|since| **since != crate::compose::NOT_YET).for_each(|since| *since = 0);
        // What is still out belongs to what was forgotten; it shall not come back to something new.
        let mut acts = std::mem::take(&mut self.acts);
        acts.iter_mut().for_each(|row| row.status = Status::Over);
        *self = Self { context, acts, assigned, runtime, since, ..fresh };
    }

    fn is_production(&self, node: NodeIx) -> bool {
        !matches!(self.graph.node(node).op, Op::FanOut { .. } | Op::Condition(_))
    }

    fn sorted(&self, wanted: impl Fn(FactIx, &FactRow) -> bool) -> Vec<Fact<'_>> {
        let rows = (0..).zip(&self.facts).filter(|(fact, row)| wanted(*fact, row));
        let mut keyed: Vec<_> = rows
            .map(|(fact, row)| {
                let rank = row.node.map_or(0, |node| self.graph.node(node).rank + 1);
                (self.lineages[row.lineage as usize].input, rank, self.way_to(row.lineage), fact, row)
            })
            .collect();
        keyed.sort_by(|one, other| (one.0, one.1, &one.2, one.3).cmp(&(other.0, other.1, &other.2, other.3)));
        keyed.into_iter().map(|(.., row)| self.shown(row)).collect()
    }

    /// Returns the fact of a node that comes last in the order of productions, in one pass.
    fn last_of(&self, node: NodeIx) -> Option<&FactRow> {
        let mut own = self.facts.iter().filter(|row| row.node == Some(node));
        if matches!(self.graph.node(node).op, Op::State(_)) {
            // The current state, also where an earlier input that was retried had its turn after later ones.
            return own.next_back();
        }
        // Of equals, the one that came later is the last, as in the order of productions.
        own.max_by(|one, other| self.order_of(one.lineage, other.lineage))
    }

    /// Compares two lineages of one node by input and place in the maps around it; they are equally deep.
    pub(crate) fn order_of(&self, mut one: LineageIx, mut other: LineageIx) -> Ordering {
        let mut order = Ordering::Equal;
        while one != other {
            let (row, other_row) = (&self.lineages[one as usize], &self.lineages[other as usize]);
            order = row.index.cmp(&other_row.index);
            let (Some(parent), Some(other_parent)) = (row.parent, other_row.parent) else { break };
            (one, other) = (parent, other_parent);
        }
        order
    }

    /// Returns the places in the maps around a lineage, outermost first.
    fn way_to(&self, lineage: LineageIx) -> Vec<u32> {
        let mut way = Vec::new();
        let mut at = &self.lineages[lineage as usize];
        while let Some(parent) = at.parent {
            way.push(at.index);
            at = &self.lineages[parent as usize];
        }
        way.reverse();
        way
    }

    fn shown<'r>(&'r self, row: &'r FactRow) -> Fact<'r> {
        Fact {
            id: row.id,
            producer: row.node.and_then(|node| self.graph.node(node).name.as_deref()),
            value: &row.value,
            depth: row.depth,
            input: self.lineages[row.lineage as usize].input,
        }
    }
}
