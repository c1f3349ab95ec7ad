//! What a policy may not say of a job, which is a process of its own: each field that could not act is refused by name.

use super::functions::{Compensation, Fallback};
use super::options::{ExecutionMode, OnFailure};
use super::written::Policy;
use crate::document::Problem;

impl Policy {
    /// Returns what is refused when the policy is one of jobs. The paths are the fields.
    pub(crate) fn problems_for_jobs(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, message: String| problems.push(Problem::new(field, message));
        if let Some(mode) = self.execution_mode
            && mode != ExecutionMode::External
        {
            refuse(
                "execution_mode",
                format!("is {mode}, but a job is a process of its own: only external fits"),
            );
        }
        if self.checkpoint_after.is_some() {
            refuse("checkpoint_after", "has no effect on a job: each record is kept as a whole".to_owned());
        }
        if self.telemetry_prefix.is_some() {
            refuse(
                "telemetry_prefix",
                "has no effect on a job: a process has telemetry of its own".to_owned(),
            );
        }
        if self.log_level.is_some() {
            refuse("log_level", "has no effect on a job: its log is what its process writes".to_owned());
        }
        match &self.fallback {
            Some(Fallback::Overrides(overrides)) => {
                let is_args =
                    overrides.len() == 1 && overrides.get("args").is_some_and(serde_json::Value::is_object);
                if !is_args {
                    refuse(
                        "fallback",
                        "must be { value = … } or { overrides = { args = { … } } } for a job".to_owned(),
                    );
                }
            }
            Some(Fallback::Function(_)) => {
                refuse(
                    "fallback",
                    "must be { value = … } or { overrides = { args = { … } } } for a job".to_owned(),
                );
            }
            Some(Fallback::Value(_)) | None => {}
        }
        match &self.compensation {
            Some(Compensation::Function(_)) => {
                refuse("compensation", "must be the id of a node for a job".to_owned());
            }
            Some(Compensation::Node(_)) if self.on_failure != Some(OnFailure::Compensate) => {
                refuse(
                    "compensation",
                    "has no effect on a job without on_failure = \"compensate\" in the same rule".to_owned(),
                );
            }
            None if self.on_failure == Some(OnFailure::Compensate) && !self.tried("compensation") => {
                refuse("on_failure", "is compensate, but there is no compensation".to_owned());
            }
            Some(Compensation::Node(_)) | None => {}
        }
        problems
    }
}
