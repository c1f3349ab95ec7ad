//! What is kept of a run: its nodes as they were expanded, with their policies. Written last when a run is enqueued,
//! so that a run without it never happened.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::artifact::Artifact;
use super::id::{JobId, NodeId, RunId};
use super::outcome::NodeOutcome;
use super::secret::Cut;
use super::time_text;
use crate::policy::{Kind, Policy};
use crate::time::Timestamp;

/// The version of the manifests that this release writes.
pub const MANIFEST_VERSION: u32 = 1;

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form.
    pub version: u32,
    /// The run.
    pub run_id: RunId,
    /// How the template was named on the command line.
    pub workflow_template_selector: String,
    /// Where it was read; manifests of earlier releases do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_template_source: Option<TemplateSource>,
    /// The template.
    pub workflow_template_id: String,
    /// Its version.
    pub workflow_template_version: String,
    /// The hash of the expanded template and its policies.
    pub policy_snapshot_hash: String,
    /// When the run was enqueued.
    #[serde(with = "time_text")]
    pub created_at: Timestamp,
    /// The parameters that it was expanded with.
    pub params: BTreeMap<String, String>,
    /// Its nodes.
    pub nodes: BTreeMap<NodeId, ManifestNode>,
}

/// The file of a template, and what was in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateSource {
    /// Its path from the root of the repository.
    pub file: String,
    /// The hash of its text, and of the texts that it imports.
    pub hash: String,
}

impl TemplateSource {
    /// Returns the source of a template, of which all texts are given by the names of their files.
    #[must_use]
    pub fn new(file: &str, texts: &BTreeMap<String, String>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for text in texts.iter().flat_map(|(name, text)| [name, text]) {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        Self { file: file.to_owned(), hash: hasher.finalize().to_string() }
    }
}

/// What is kept of a node: everything that its supervisor needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestNode {
    /// The job that runs it.
    pub job_id: JobId,
    /// What it is.
    pub kind: Kind,
    /// Its label, such as `cap.env.shell.command.run`.
    pub uses: String,
    /// Its arguments, expanded.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Its gates, expanded: `{ kind = "script", script }`, `{ kind = "cicd", … }`, `{ kind = "approval", … }`.
    #[serde(default)]
    pub gates: Vec<Value>,
    /// Whether its scripts end at the first line that fails. Runs of a release that had no such choice go on without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errexit: bool,
    /// What it makes, by how it ends.
    #[serde(default)]
    pub produces: BTreeMap<NodeOutcome, Vec<Artifact>>,
    /// The policy that it runs under, as a record of one line; see [`Policy::to_record`].
    pub policy: String,
    /// The rule that the policy came from, under which limits count.
    #[serde(default)]
    pub rule: Option<String>,
    /// Where it goes back to.
    #[serde(default)]
    pub loops: Vec<Loop>,
    /// How many times it may go back, and how its gate retries.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// The nodes that it leads to, whatever the outcome; a terminal node has none.
    #[serde(default)]
    pub routes: Vec<NodeId>,
    /// What the payloads of the artifacts that it makes have to look like, by type; see [`crate::job::misfit`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schemas: BTreeMap<String, Value>,
    /// Where values that nobody is to read were taken out of its arguments and gates, by the way to each text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cuts: BTreeMap<String, Vec<Cut>>,
}

/// An edge to a node that came before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// The outcome that takes it.
    pub on: NodeOutcome,
    /// Where it goes.
    pub to: NodeId,
}

/// How often a node may go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// `never`, `on_failure` or `until_gate`.
    pub mode: String,
    /// How many times.
    pub budget: u32,
}

/// Why the text of a file is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no JSON, or a field is not what it should be.
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("manifest has version {found}, and this release knows up to {MANIFEST_VERSION}")]
    Newer {
        /// Its version.
        found: u32,
    },
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let Head { version: found } = serde_json::from_str(text)?;
        if found > MANIFEST_VERSION {
            return Err(ManifestError::Newer { found });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Reads a manifest with one of its nodes and leaves the others out: a run of many nodes has a supervisor for each of
    /// them, and each of them would read all.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse_with(text: &str, node: &NodeId) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Form<'t> {
            version: u32,
            run_id: RunId,
            workflow_template_selector: String,
            workflow_template_source: Option<TemplateSource>,
            workflow_template_id: String,
            workflow_template_version: String,
            policy_snapshot_hash: String,
            #[serde(with = "time_text")]
            created_at: Timestamp,
            params: BTreeMap<String, String>,
            #[serde(borrow)]
            nodes: BTreeMap<Cow<'t, str>, &'t RawValue>,
        }
        let form: Form<'_> = serde_json::from_str(text)?;
        if form.version > MANIFEST_VERSION {
            return Err(ManifestError::Newer { found: form.version });
        }
        let wanted =
            form.nodes.get(node.as_str()).map(|text| serde_json::from_str(text.get())).transpose()?;
        Ok(Self {
            version: form.version,
            run_id: form.run_id,
            workflow_template_selector: form.workflow_template_selector,
            workflow_template_source: form.workflow_template_source,
            workflow_template_id: form.workflow_template_id,
            workflow_template_version: form.workflow_template_version,
            policy_snapshot_hash: form.policy_snapshot_hash,
            created_at: form.created_at,
            params: form.params,
            nodes: wanted.map(|found| (node.clone(), found)).into_iter().collect(),
        })
    }

    /// Returns the text of its file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("invariant: every key of a manifest is a string");
        text.push('\n');
        text
    }
}

impl ManifestNode {
    /// Returns the policy that it runs under.
    ///
    /// # Errors
    /// What was written is no policy.
    pub fn policy(&self) -> Result<Policy, crate::Problems> {
        Ok(Policy::from_record(&self.policy)?.policy)
    }
}
