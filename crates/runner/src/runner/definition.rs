//! What a run is created with and needs again when it is resumed, as one JSON text in the store.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{Matcher, Overlay, Policy, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::workflow::Workflow;
use tidewheel_core::{Problems, Signature};

use super::error::StartError;
use super::options::{Checkpoints, StartOptions};

/// What a run was created with.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) signature: Signature,
    pub(super) deadline: Option<Span>,
    pub(super) checkpoints: Checkpoints,
    rules: Vec<String>,
    overlay: Overlay,
}

/// The version of the form.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    v: u32,
    signature: Signature,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    checkpoints: CheckpointsForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policies: Option<PoliciesForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckpointsForm {
    EveryCycle,
    EveryN(u32),
    OnComplete,
    Manual,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PoliciesForm {
    overlay: OverlayForm,
    rules: Vec<Box<RawValue>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OverlayForm {
    Merge,
    Replace,
}

impl Definition {
    /// Writes down what a run is created with.
    pub(super) fn written(workflow: &Workflow, options: &StartOptions) -> String {
        let policies = options.policies.as_ref().map(|(rules, overlay)| PoliciesForm {
            overlay: match overlay {
                Overlay::Merge => OverlayForm::Merge,
                Overlay::Replace => OverlayForm::Replace,
            },
            rules: rules
                .to_records()
                .into_iter()
                .filter_map(|rule| RawValue::from_string(rule).ok())
                .collect(),
        });
        let form = Form {
            v: VERSION,
            signature: workflow.signature(),
            deadline_ms: options.deadline.map(Span::as_millis),
            checkpoints: match options.checkpoints.unwrap_or_default() {
                Checkpoints::EveryCycle => CheckpointsForm::EveryCycle,
                Checkpoints::EveryN(n) => CheckpointsForm::EveryN(n),
                Checkpoints::OnComplete => CheckpointsForm::OnComplete,
                Checkpoints::Manual => CheckpointsForm::Manual,
            },
            policies,
        };
        serde_json::to_string(&form).expect("invariant: a definition has no key that is not a string")
    }

    /// Reads what a run was created with.
    pub(super) fn read(run: &RunId, text: &str) -> Result<Self, StartError> {
        let form: Form = serde_json::from_str(text).map_err(|error| StartError::unreadable(run, error))?;
        if form.v != VERSION {
            let message = format!("its definition has version {}, this release reads {VERSION}", form.v);
            return Err(StartError::unreadable(run, message));
        }
        let (overlay, rules) = form.policies.map_or((Overlay::Merge, Vec::new()), |policies| {
            let overlay = match policies.overlay {
                OverlayForm::Merge => Overlay::Merge,
                OverlayForm::Replace => Overlay::Replace,
            };
            (overlay, policies.rules.iter().map(|rule| rule.get().to_owned()).collect())
        });
        Ok(Self {
            signature: form.signature,
            deadline: form.deadline_ms.map(Span::from_millis),
            checkpoints: match form.checkpoints {
                CheckpointsForm::EveryCycle => Checkpoints::EveryCycle,
                CheckpointsForm::EveryN(n) => Checkpoints::EveryN(n),
                CheckpointsForm::OnComplete => Checkpoints::OnComplete,
                CheckpointsForm::Manual => Checkpoints::Manual,
            },
            rules,
            overlay,
        })
    }

    /// Returns the options that are not those that the run was created with, by name. What is not said is none.
    pub(super) fn other_options(&self, options: &StartOptions) -> Vec<&'static str> {
        let mut others = Vec::new();
        let are_other = |(rules, overlay): &(Rules, Overlay)| {
            *overlay != self.overlay || rules.to_records() != self.rules
        };
        if options.policies.as_ref().is_some_and(are_other) {
            others.push("policies");
        }
        if options.deadline.is_some() && options.deadline != self.deadline {
            others.push("deadline");
        }
        if options.checkpoints.is_some_and(|checkpoints| checkpoints != self.checkpoints) {
            others.push("checkpoints");
        }
        others
    }

    /// Returns the rules of the run: those that were stored, or those that are given again where the stored
    /// ones hold functions.
    pub(super) fn rules(
        &self,
        run: &RunId,
        given: Option<&(Rules, Overlay)>,
    ) -> Result<Option<(Rules, Overlay)>, StartError> {
        if self.rules.is_empty() {
            return Ok(None);
        }
        let is_same = |(rules, overlay): &&(Rules, Overlay)| {
            *overlay == self.overlay && rules.to_records() == self.rules
        };
        if let Some((rules, overlay)) = given.filter(is_same) {
            return Ok(Some((rules.clone(), *overlay)));
        }
        let mut rules: Vec<(Matcher, Policy)> = Vec::new();
        for (index, record) in self.rules.iter().enumerate() {
            let unreadable = |problems: Problems| StartError::unreadable(run, problems);
            let rule = Rules::rule_from_record(record).map_err(unreadable)?;
            let Some(matcher) = rule.matcher.filter(|_| rule.functions.is_empty()) else {
                let (run, functions) = (run.clone(), rule.functions);
                return Err(StartError::Functions { run, rule: index, functions });
            };
            rules.push((matcher, rule.policy));
        }
        let rules = Rules::new(rules).map_err(|problems| StartError::unreadable(run, problems))?;
        Ok(Some((rules, self.overlay)))
    }
}
