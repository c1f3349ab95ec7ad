//! Hides values that nobody is to read in what is kept of jobs. Names that others are found by stay as they are: what
//! would have to be hidden there is refused when a run is made.

use serde_json::Value;

use super::event::{JobEvent, JobEventKind};
use super::id::NodeId;
use super::manifest::{Manifest, ManifestNode};
use super::metadata::Metadata;
use super::outcome::JobOutcome;
use super::record::Record;
use super::secret::{OverlapError, Secrets};

/// Why a run cannot be kept without a value that nobody is to read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HideError {
    /// A name of it has such a value, and a name is what others look for.
    #[error(
        "{place} of node `{node}` has the value of a secret in it; let the job read it from its environment instead"
    )]
    InName {
        /// Where.
        place: &'static str,
        /// The node.
        node: String,
    },
    /// Two values overlap, so that an argument could not be put together again.
    #[error("node `{node}`: {source}; let the job read them from its environment instead")]
    Overlap {
        /// The node.
        node: NodeId,
        /// Where.
        source: OverlapError,
    },
}

/// What records, events and runs are found by.
const NAMES: [&str; 9] = [
    Metadata::RUN_ID,
    Metadata::NODE_ID,
    Metadata::NODE_OUTCOME,
    Metadata::LOOP_TO,
    Metadata::EXECUTION_ROOT,
    Metadata::WORKTREE_PATH,
    Metadata::WORKTREE_NAME,
    Metadata::BREAKER_PERMIT,
    Metadata::POLICY_SNAPSHOT_HASH,
];

impl Secrets {
    /// Hides values in the records and the manifest of a run that is about to be kept. From the arguments and the gates
    /// of nodes they are taken out so that whoever runs a node and knows them puts them back.
    ///
    /// # Errors
    /// A value stands where it cannot be hidden.
    pub fn hide_in_run(&self, records: &mut [Record], manifest: &mut Manifest) -> Result<(), HideError> {
        if self.is_empty() {
            return Ok(());
        }
        for record in records {
            let schedule = serde_json::to_value(&record.schedule).unwrap_or_default();
            let node = record.metadata.text(Metadata::NODE_ID).unwrap_or(record.id.as_str()).to_owned();
            let place = if self.is_in(&Value::from(record.id.as_str())) {
                Some("the id")
            } else if self.is_in(&schedule) {
                Some("an artifact, a lock, a branch or a key")
            } else {
                None
            };
            if let Some(place) = place {
                return Err(HideError::InName { place, node: self.hide(&node).into_owned() });
            }
            self.hide_in_record(record);
        }
        manifest.params.values_mut().for_each(|value| self.hide_in(value));
        self.hide_in(&mut manifest.workflow_template_selector);
        for (id, node) in &mut manifest.nodes {
            self.hide_in_node(id, node)?;
        }
        Ok(())
    }

    fn hide_in_node(&self, id: &NodeId, node: &mut ManifestNode) -> Result<(), HideError> {
        if self.is_in(&Value::from(node.policy.as_str())) {
            return Err(HideError::InName { place: "the policy", node: id.to_string() });
        }
        let overlap = |source| HideError::Overlap { node: id.clone(), source };
        for (name, value) in &mut node.args {
            let name = name.replace('~', "~0").replace('/', "~1");
            self.cut(value, &format!("/args/{name}"), &mut node.cuts).map_err(overlap)?;
        }
        for (index, gate) in node.gates.iter_mut().enumerate() {
            self.cut(gate, &format!("/gates/{index}"), &mut node.cuts).map_err(overlap)?;
        }
        Ok(())
    }

    /// Hides values in a record.
    pub fn hide_in_record(&self, record: &mut Record) {
        if self.is_empty() {
            return;
        }
        record.command.iter_mut().for_each(|word| self.hide_in(word));
        for (name, value) in record.metadata.iter_mut() {
            if !NAMES.contains(&name) {
                self.hide_in_value(value);
            }
        }
        let schedule = &mut record.schedule;
        let reason = schedule.wait_reason.as_mut().map(|reason| &mut reason.detail);
        let approval = schedule.approval.as_mut();
        let said = approval.and_then(|approval| approval.reason.as_mut());
        reason.into_iter().chain(said).for_each(|text| self.hide_in(text));
    }

    /// Hides values in how a job ended.
    pub fn hide_in_outcome(&self, outcome: &mut JobOutcome) {
        outcome.summary.iter_mut().chain(&mut outcome.complaint).for_each(|text| self.hide_in(text));
    }

    /// Hides values in what happened to a job.
    pub fn hide_in_event(&self, event: &mut JobEvent) {
        match &mut event.event {
            JobEventKind::AttemptFailed { message, error, .. } => {
                self.hide_in(message);
                let complaint = error.as_mut().and_then(|error| error.complaint.as_mut());
                complaint.into_iter().for_each(|text| self.hide_in(text));
            }
            JobEventKind::Withdrawn { reason: text }
            | JobEventKind::Completed { summary: Some(text), .. } => self.hide_in(text),
            JobEventKind::Dispatched { .. }
            | JobEventKind::Completed { summary: None, .. }
            | JobEventKind::Rewound { .. }
            | JobEventKind::Decided { .. } => {}
        }
    }

    /// Tells whether a value stands anywhere in a document.
    fn is_in(&self, value: &Value) -> bool {
        let mut hidden = value.clone();
        self.hide_in_value(&mut hidden);
        hidden != *value
    }
}

impl ManifestNode {
    /// Puts the values back that were taken out of the arguments and the gates.
    ///
    /// # Errors
    /// One of them is not known here.
    pub fn put_back(&mut self, secrets: &Secrets) -> Result<(), super::secret::MissingSecret> {
        for (way, cuts) in std::mem::take(&mut self.cuts) {
            let mut steps = way.splitn(4, '/').skip(1);
            let (part, step) = (steps.next(), steps.next().unwrap_or_default());
            let rest = steps.next().map(|rest| format!("/{rest}")).unwrap_or_default();
            let whole = match part {
                Some("args") => self.args.get_mut(&step.replace("~1", "/").replace("~0", "~")),
                _ => step.parse().ok().and_then(|index: usize| self.gates.get_mut(index)),
            };
            if let Some(Value::String(text)) = whole.and_then(|whole| whole.pointer_mut(&rest)) {
                *text = secrets.put_back(text, &cuts)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobId, WaitKind, WaitReason};
    use crate::time::Timestamp;

    fn secrets() -> Secrets {
        Secrets::new([("TOKEN".to_owned(), b"s3cr3t".to_vec())]).0
    }

    fn node(args: Value) -> ManifestNode {
        let text = serde_json::json!({
            "job_id": "j", "kind": "shell", "uses": "x", "policy": "{}",
            "args": args, "gates": [{ "kind": "script", "script": "check s3cr3t" }],
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn arguments_are_kept_without_the_value_and_run_with_it() {
        let id = NodeId::new("n").unwrap();
        let whole = node(serde_json::json!({ "command": ["curl", "-u", "s3cr3t:s3cr3t"], "a/b": "s3cr3t" }));
        let mut kept = whole.clone();
        secrets().hide_in_node(&id, &mut kept).unwrap();
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
        let mut read: ManifestNode = serde_json::from_str(&text).unwrap();
        read.put_back(&secrets()).unwrap();
        assert_eq!(read, whole);
        assert_eq!(kept.put_back(&Secrets::default()).unwrap_err().name, "TOKEN");
    }

    #[test]
    fn records_keep_their_names_and_lose_the_value() {
        let mut record = Record::new(JobId::new("j").unwrap(), Timestamp::from_millis(0));
        record.command = vec!["echo s3cr3t".to_owned()];
        record.metadata.set(Metadata::NODE_ID, "s3cr3t");
        record.metadata.set(Metadata::DEAD_LETTER, "it said s3cr3t");
        record.schedule.wait_reason = Some(WaitReason::new(WaitKind::Schedule, "s3cr3t".to_owned()));
        secrets().hide_in_record(&mut record);
        assert_eq!(record.command, ["echo ***"]);
        assert_eq!(record.metadata.text(Metadata::NODE_ID), Some("s3cr3t"));
        assert_eq!(record.metadata.text(Metadata::DEAD_LETTER), Some("it said ***"));
        assert_eq!(record.schedule.wait_reason.unwrap().detail, "***");
    }
}
