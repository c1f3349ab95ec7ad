//! A node of a template as it is after its parameters were put in, with the places where its parts stand.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};

use super::label::Label;
use crate::job::{AfterPolicy, Artifact, Branch, Lock, NodeOutcome, Precondition, Retry};
use crate::policy::Kind;

/// Where something stands: the number of its file, and the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) span: Range<usize>,
}

/// Another node, by its whole id, and where it is named.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) id: String,
    /// As it is written.
    pub(super) written: String,
    pub(super) place: Place,
}

/// An artifact, and where it is named.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) artifact: Artifact,
    pub(super) place: Place,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Its whole id, with the names of the imports that lead to it.
    pub(super) id: String,
    /// Whether it has an id that it can be known by. What is wrong with it was reported; the rest of the node is looked
    /// at all the same.
    pub(super) is_named: bool,
    /// The way to it, as messages have it.
    pub(super) path: String,
    pub(super) place: Place,
    /// The number of the instance of the file that it stands in.
    pub(super) instance: usize,
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    /// Missing where the label is none; that was reported.
    pub(super) label: Option<&'static Label>,
    pub(super) uses: String,
    pub(super) uses_place: Place,
    pub(super) args: Map<String, Value>,
    pub(super) arg_places: BTreeMap<String, Place>,
    /// The arguments that were empty texts, and were taken out: parameters without a value.
    pub(super) empty_args: Vec<String>,
    pub(super) after: Vec<(Target, AfterPolicy)>,
    pub(super) needs: Vec<Named>,
    pub(super) produces: BTreeMap<NodeOutcome, Vec<Named>>,
    pub(super) locks: Vec<Lock>,
    pub(super) preconditions: Vec<Precondition>,
    /// The branch whose head it is pinned to; the current one where none is named.
    pub(super) pin: Option<Option<Branch>>,
    pub(super) gates: Vec<(Gate, Place)>,
    /// Whether its scripts end at the first line that fails, and where that is said.
    pub(super) errexit: Option<(bool, Place)>,
    /// How often its loops go back, and where that is said.
    pub(super) retry: Option<(Retry, Place)>,
    pub(super) on: Vec<(NodeOutcome, Target)>,
    pub(super) tags: Vec<String>,
    pub(super) unread: Unread,
}

/// What of a node could not be read, so that it is not missed a second time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unread {
    /// The arguments as a whole.
    pub(super) args: bool,
    /// Something that it needs or makes.
    pub(super) artifacts: bool,
    pub(super) gates: bool,
    /// A node that it is after, or that comes after it.
    pub(super) edges: bool,
}

/// What has to open before a node counts as done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Gate {
    /// A person.
    Approval {
        /// Whether it is needed at all.
        required: bool,
    },
    /// A script that has to succeed.
    Script {
        /// The script.
        script: String,
    },
    /// Checks that have to succeed.
    Cicd {
        /// The script; there may be none.
        script: String,
        /// Whether a fix is tried before they fail.
        auto_resolve: bool,
    },
}

impl Gate {
    /// Returns the word that files use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Approval { .. } => "approval",
            Self::Script { .. } => "script",
            Self::Cicd { .. } => "cicd",
        }
    }

    /// Returns the label that views show.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Approval { required } => format!("approval(required={required})"),
            Self::Script { script } => format!("script(script={script})"),
            Self::Cicd { script, auto_resolve } => {
                format!("cicd(script={script}, auto_resolve={auto_resolve})")
            }
        }
    }
}
