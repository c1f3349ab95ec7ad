//! Where a workflow meets the outside: the type of its input, its outputs by name, and how strictly types are
//! looked at. Types inside are checked where components are connected.

use std::collections::{BTreeMap, BTreeSet};

use super::build::WorkflowBuilder;
use super::component::{Body, Component};
use super::error::BuildError;
use super::graph::{NodeIx, Workflow};
use crate::work::{PortType, Work};

/// What happens when the type that a port gives is not the one that the next takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortChecks {
    /// The workflow is refused.
    #[default]
    Refuse,
    /// The workflow is built and says so; see [`Workflow::warnings`].
    Warn,
    /// Nobody looks: a value that does not fit is the failure of whatever takes it.
    Off,
}

impl PortChecks {
    /// Takes what is about types out of what is wrong, and returns what is to be warned of.
    pub(super) fn sift(self, errors: &mut Vec<BuildError>) -> Vec<BuildError> {
        if self == Self::Refuse {
            return Vec::new();
        }
        let (types, others) = std::mem::take(errors).into_iter().partition(BuildError::is_about_types);
        *errors = others;
        if self == Self::Warn { types } else { Vec::new() }
    }
}

/// The ports as they were declared.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    pub(super) checks: PortChecks,
    pub(super) input: Option<PortType>,
    /// Names and components.
    pub(super) outputs: Vec<(String, String)>,
}

/// The ports of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    pub(crate) input: Option<PortType>,
    pub(crate) outputs: BTreeMap<String, NodeIx>,
    pub(crate) warnings: Vec<BuildError>,
}

impl WorkflowBuilder {
    /// Says what happens when types do not fit; without it, the workflow is refused.
    #[must_use]
    pub const fn port_checks(mut self, checks: PortChecks) -> Self {
        self.declared.checks = checks;
        self
    }

    /// Declares the type of the input. Whatever takes the input must take that type.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let builder = Workflow::new("words").add(step("length", |text: String| text.len()));
    /// let errors = builder.clone().input::<u32>().build().unwrap_err();
    /// assert_eq!(errors.to_string(), "length: takes text, but the input is integer");
    ///
    /// let workflow = builder.input::<String>().output("letters", "length").build()?;
    /// let mut run = workflow.run("first");
    /// run.react_until_satisfied("tidewheel".to_owned())?;
    /// assert_eq!(run.output::<usize>("letters")?, Some(9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn input<T: 'static>(mut self) -> Self {
        self.declared.input = Some(PortType::of::<T>());
        self
    }

    /// Declares an output: a name for what a component gives, so that whoever reads it need not know the
    /// component. See [`Run::output`](crate::run::Run::output).
    #[must_use]
    pub fn output(mut self, name: impl Into<String>, component: impl Into<String>) -> Self {
        self.declared.outputs.push((name.into(), component.into()));
        self
    }
}

impl Workflow {
    /// Returns what would have been refused without [`PortChecks::Warn`].
    #[must_use]
    pub fn warnings(&self) -> &[BuildError] {
        &self.0.ports.warnings
    }

    /// Returns the type of the input, where it is declared.
    #[must_use]
    pub fn input_type(&self) -> Option<&PortType> {
        self.0.ports.input.as_ref()
    }

    /// Returns the declared outputs, sorted by name, each with its component and its type.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &str, &PortType)> {
        self.0.ports.outputs.iter().map(|(name, ix)| {
            let node = self.0.node(*ix);
            (name.as_str(), node.label(), &node.gives)
        })
    }
}

/// Says what is wrong with the declared ports.
pub(super) fn check(declared: &Declared, components: &[Component], errors: &mut Vec<BuildError>) {
    if let Some(input) = &declared.input {
        for component in components.iter().filter(|component| component.after.is_empty()) {
            if let Some(takes) = takes(component).filter(|takes| !input.fits(takes)) {
                let (component, input) = (component.name.clone(), input.clone());
                errors.push(BuildError::InputMismatch { component, input, takes });
            }
        }
    }
    let known: BTreeSet<&str> = components.iter().map(|component| component.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for (output, component) in &declared.outputs {
        if !known.contains(component.as_str()) {
            let (output, component) = (output.clone(), component.clone());
            errors.push(BuildError::UnknownOutput { output, component });
        }
        if !seen.insert(output) {
            errors.push(BuildError::DuplicateOutput { output: output.clone() });
        }
    }
}

/// Returns what a component takes from the input; `None` if that is no question of types.
fn takes(component: &Component) -> Option<PortType> {
    let argument = |work: &Work| match work.inputs() {
        [one] => Some(one.clone()),
        // That it takes too many arguments is said by itself.
        _ => None,
    };
    let list = |item: PortType| PortType::List(Box::new(item));
    match &component.body {
        Body::Step(work) | Body::Condition(work) => argument(work),
        Body::Rule { reaction, .. } => argument(reaction),
        Body::Map(work) => argument(work).map(list),
        Body::Reduce { takes, .. } => Some(list(takes.clone())),
        Body::Accumulator { takes, .. } => Some(takes.clone()),
        // It takes no input.
        Body::Compensation(_) => None,
    }
}
