//! What a policy may not say of a job, which is a process of its own: each field that could not act is refused by name.

use super::functions::{Compensation, Fallback};
use super::options::{ErrorMatcher, ExecutionMode, OnFailure};
use super::written::Policy;
use crate::document::{Problem, nearest};

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
        for (field, list) in [
            ("retryable_errors", self.retryable_errors.as_deref()),
            ("non_retryable_errors", self.non_retryable_errors.as_deref()),
        ] {
            if let Some(message) = list.and_then(meant_by_no_job) {
                refuse(field, message);
            }
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
                } else if self.execution_mode == Some(ExecutionMode::External) {
                    refuse(
                        "fallback",
                        "has overrides, but execution_mode = \"external\" runs nothing here that takes them: \
                         only { value = … } fits"
                            .to_owned(),
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

/// The words for failures of jobs; all other failures are exit codes.
const WORDS: [&str; 3] = ["heartbeat", "lost", "timeout"];

/// Says what is wrong with a list of errors none of which a job can have, or with a word that is nearly one of ours. What
/// steps of the library have may stand beside what jobs have, so that both can share a rule.
fn meant_by_no_job(list: &[ErrorMatcher]) -> Option<String> {
    let is_of_jobs = |error: &ErrorMatcher| match error {
        ErrorMatcher::Code(code) => (1..=255).contains(code),
        ErrorMatcher::Name(word) => WORDS.contains(&word.as_str()),
        ErrorMatcher::Predicate(_) => true,
    };
    let misspelt = list.iter().find_map(|error| match error {
        ErrorMatcher::Name(word) if !is_of_jobs(error) => {
            Some((word, nearest(&word.to_lowercase(), &WORDS)?))
        }
        ErrorMatcher::Code(_) | ErrorMatcher::Name(_) | ErrorMatcher::Predicate(_) => None,
    });
    if let Some((word, near)) = misspelt {
        return Some(format!("contains {word}, which no job fails with; did you mean {near}?"));
    }
    let has_effect = list.is_empty() || list.iter().any(is_of_jobs);
    (!has_effect).then(|| {
        "has no effect on a job, which fails with an exit code from 1 to 255, timeout, heartbeat or lost"
            .to_owned()
    })
}
