//! What is wrong with a workflow, all of it at once, each with the name of its component.

use std::fmt;

use crate::document::Problems;
use crate::query::near;
use crate::work::PortType;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two components have one name.
    #[error("{name}: there are two components with this name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A component has no name.
    #[error("a {kind} has no name")]
    NoName {
        /// What it is.
        kind: &'static str,
    },
    /// A component comes after one that is not there.
    #[error("{component}: comes after `{parent}`, which is no component{}", hint(.known))]
    UnknownParent {
        /// The component.
        component: String,
        /// What it comes after.
        parent: String,
        /// The names that are there.
        known: Vec<String>,
    },
    /// Components come after each other in a circle.
    #[error("{}: these come after each other in a circle", crate::view::abridged_chain(path))]
    Cycle {
        /// The way round, the first name again at the end.
        path: Vec<String>,
    },
    /// A function takes another number of arguments than it gets.
    #[error("{component}: its function takes {takes} arguments, but it comes after {parents} components")]
    WrongArity {
        /// The component.
        component: String,
        /// The arguments of its function.
        takes: usize,
        /// The components it comes after.
        parents: usize,
    },
    /// What a component gives is not what the next one takes.
    #[error("{component}: takes {takes}, but `{parent}` gives {gives}")]
    PortMismatch {
        /// The component.
        component: String,
        /// The one before it.
        parent: String,
        /// What that one gives.
        gives: PortType,
        /// What this one takes.
        takes: PortType,
    },
    /// A map comes after something that gives no list.
    #[error("{component}: maps over a list, but `{parent}` gives {gives}")]
    NoList {
        /// The map.
        component: String,
        /// The one before it.
        parent: String,
        /// What that one gives.
        gives: PortType,
    },
    /// Something takes the input, but not of its declared type.
    #[error("{component}: takes {takes}, but the input is {input}")]
    InputMismatch {
        /// The component.
        component: String,
        /// The type of the input.
        input: PortType,
        /// What this one takes.
        takes: PortType,
    },
    /// An output is of a component that is not there.
    #[error("output {output}: is of `{component}`, which is no component")]
    UnknownOutput {
        /// The output.
        output: String,
        /// The component.
        component: String,
    },
    /// Two outputs have one name.
    #[error("output {output}: there are two outputs with this name")]
    DuplicateOutput {
        /// The name.
        output: String,
    },
    /// A rule refers to a condition that is not there.
    #[error(
        "{rule}: refers to the condition `{condition}`, which is no condition (add condition(\"{condition}\", …))"
    )]
    UnresolvedCondition {
        /// The rule.
        rule: String,
        /// The condition.
        condition: String,
    },
    /// A component reads a value of one that is not there.
    #[error("{component}: reads {reads}, but there is no such component{}", near(.nearest))]
    UnknownMeta {
        /// The component.
        component: String,
        /// What it reads.
        reads: String,
        /// The names that are nearest to it.
        nearest: Vec<String>,
    },
    /// A join of parts that belong to different maps.
    #[error("{component}: joins `{one}` and `{other}`, which are not items of the same map (reduce first)")]
    MixedMaps {
        /// The component.
        component: String,
        /// One part.
        one: String,
        /// The other.
        other: String,
    },
    /// A rule has no condition.
    #[error("{rule}: has no when (a step runs for every fact: write step(\"{rule}\", …))")]
    IncompleteRule {
        /// The rule.
        rule: String,
    },
    /// A component comes after one that undoes something, or that one comes after others.
    #[error("{component}: comes after `{parent}`, but what undoes something stands by itself")]
    Attached {
        /// The component.
        component: String,
        /// What it comes after.
        parent: String,
    },
    /// A policy names what is not there to undo something.
    #[error(
        "policies: `{name}` is to undo something and is no compensation (add compensation(\"{name}\", …))"
    )]
    NoCompensation {
        /// The name.
        name: String,
    },
    /// The policies are wrong.
    #[error("{0}")]
    Policies(Problems),
}

impl BuildError {
    /// Tells whether it is only about types that do not fit, which may be left to the values.
    pub(super) const fn is_about_types(&self) -> bool {
        match self {
            Self::PortMismatch { .. } | Self::NoList { .. } | Self::InputMismatch { .. } => true,
            Self::DuplicateName { .. }
            | Self::NoName { .. }
            | Self::UnknownParent { .. }
            | Self::Cycle { .. }
            | Self::WrongArity { .. }
            | Self::UnknownOutput { .. }
            | Self::DuplicateOutput { .. }
            | Self::UnresolvedCondition { .. }
            | Self::UnknownMeta { .. }
            | Self::MixedMaps { .. }
            | Self::Attached { .. }
            | Self::NoCompensation { .. }
            | Self::IncompleteRule { .. }
            | Self::Policies(_) => false,
        }
    }
}

fn hint(known: &[String]) -> String {
    if known.is_empty() {
        return String::new();
    }
    let some: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
    let more = if known.len() > some.len() { ", …" } else { "" };
    format!(" (there are {}{more})", some.join(", "))
}

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildErrors(pub(crate) Vec<BuildError>);

impl BuildErrors {
    /// Returns them in the order in which they were found.
    #[must_use]
    pub fn all(&self) -> &[BuildError] {
        &self.0
    }
}

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildErrors {}
