//! Policies as records: what is data is kept, what is a function is left out by type and named.

use serde::Serialize;
use serde::ser::SerializeStruct as _;

use super::backoff::{Backoff, Jitter};
use super::functions::{Compensation, Fallback};
use super::matcher::Matcher;
use super::options::{
    CircuitBreaker, ConcurrencyLimit, ErrorMatcher, ExecutionMode, Limit, LogLevel, OnFailure, Priority,
    RateLimit, RetryBudget,
};
use super::parse::{fields, matcher_of};
use super::resolve::{Rule, Rules};
use super::view::Kind;
use super::written::Policy;
use crate::document::{self, Data, Format, Problem, Problems, Report, Table};
use crate::time::Span;

/// A policy read back from a record.
#[derive(Clone, Debug)]
pub struct RecordedPolicy {
    /// Its data.
    pub policy: Policy,
    /// The fields whose functions were left out; whoever resumes has to bring them.
    pub functions: Vec<String>,
}

/// A rule read back from a record.
#[derive(Clone, Debug)]
pub struct RecordedRule {
    /// Which nodes it is for; `None` when that is a function.
    pub matcher: Option<Matcher>,
    /// Its policy.
    pub policy: Policy,
    /// What was left out: fields of the policy, and `match` for a predicate.
    pub functions: Vec<String>,
}

impl Policy {
    /// Returns the policy as a record of one line, in the form of policy files. Functions are left out and
    /// named under `functions`.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Policy, Recovery};
    ///
    /// let policy = Policy::fast_fail().fallback(|_, _, _| Recovery::value(0));
    /// let record = policy.to_record();
    /// assert_eq!(
    ///     record,
    ///     r#"{"v":1,"max_retries":0,"timeout":"5s","on_failure":"halt","functions":["fallback"]}"#
    /// );
    /// assert_eq!(Policy::from_record(&record)?.functions, ["fallback"]);
    /// # Ok::<(), tidewheel::Problems>(())
    /// ```
    #[must_use]
    pub fn to_record(&self) -> String {
        write(&PolicyForm::of(self, None))
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is no record of a policy.
    pub fn from_record(record: &str) -> Result<RecordedPolicy, Problems> {
        let mut report = Report::new(record);
        let node = document::read(record, Format::Json)?;
        let read = report.table("", node).map(|mut table| {
            let functions = functions(&mut table, &mut report);
            let policy = fields(&mut table, &mut report);
            table.finish(&mut report, Self::FIELDS);
            RecordedPolicy { policy, functions }
        });
        report.finish(read)
    }
}

impl Rule {
    pub(super) fn to_record(&self) -> String {
        write(&PolicyForm::of(self.policy(), Some(self.matcher())))
    }
}

impl Rules {
    /// Returns the rules as records, one line each, in order.
    #[must_use]
    pub fn to_records(&self) -> Vec<String> {
        self.as_slice().iter().map(Rule::to_record).collect()
    }

    /// Reads a record of one rule back.
    ///
    /// # Errors
    /// The text is no record of a rule.
    pub fn rule_from_record(record: &str) -> Result<RecordedRule, Problems> {
        let mut report = Report::new(record);
        let node = document::read(record, Format::Json)?;
        let read = report.table("", node).map(|mut table| {
            let functions = functions(&mut table, &mut report);
            let is_left_out = functions.iter().any(|name| name == "match");
            let matcher = match table.take("match") {
                Some(entry) if is_left_out => {
                    report.at(
                        entry.key_span,
                        Problem::new("match", "is given, but functions says it was left out"),
                    );
                    None
                }
                Some(entry) => matcher_of("match", entry.value, &mut report),
                None => {
                    if !is_left_out {
                        report.at(0..0, Problem::new("match", "is missing"));
                    }
                    None
                }
            };
            let policy = fields(&mut table, &mut report);
            table.finish(&mut report, Policy::FIELDS);
            RecordedRule { matcher, policy, functions }
        });
        report.finish(read)
    }
}

/// The version of the form of records.
const VERSION: u32 = 1;

/// Reads what stands around the fields of a policy: the version, and the functions that were left out.
fn functions(table: &mut Table<'_>, report: &mut Report<'_>) -> Vec<String> {
    let before = report.len();
    match table.uint("v", report) {
        Some(VERSION) => {}
        Some(found) => {
            report
                .at(0..0, Problem::new("v", format!("is {found}, but this release reads version {VERSION}")));
        }
        None if report.len() == before => report.at(0..0, Problem::new("v", "is missing")),
        None => {}
    }
    let may_hold_a_function =
        ["match", "fallback", "compensation", "retryable_errors", "non_retryable_errors", "idempotency_key"];
    let read = |node: &document::Node<'_>| match &node.data {
        Data::String(name) if may_hold_a_function.contains(&name.as_ref()) => Ok(name.clone().into_owned()),
        _ => Err(format!("must be names out of {}", may_hold_a_function.join(", "))),
    };
    table.list("functions", report, read).unwrap_or_default()
}

fn write(form: &impl Serialize) -> String {
    serde_json::to_string(form).expect("invariant: a record has no key that is not a string")
}

/// A key as it is written: a text, or a table where a scope is named.
struct KeyForm<'a> {
    key: &'a str,
    name: Option<&'a str>,
}

impl Serialize for KeyForm<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(name) = self.name else { return serializer.serialize_str(self.key) };
        let mut table = serializer.serialize_struct("KeyForm", 2)?;
        table.serialize_field("key", self.key)?;
        table.serialize_field("name", name)?;
        table.end()
    }
}

/// The data of a policy. There is no variant anywhere in it that could hold a function.
#[derive(Serialize)]
struct PolicyForm<'a> {
    v: u32,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    matcher: Option<MatcherForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<BackoffForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<Jitter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_delay: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_delay: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_timeout: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<OnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<FallbackForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compensation: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retryable_errors: Vec<ErrorForm<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    non_retryable_errors: Vec<ErrorForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_budget: Option<&'a RetryBudget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    circuit_breaker: Option<&'a CircuitBreaker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_mode: Option<ExecutionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<KeyForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_timeout: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency_limit: Option<&'a ConcurrencyLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<&'a RateLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_after: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    telemetry_prefix: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<LogLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a serde_json::Map<String, serde_json::Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<&'static str>,
}

impl<'a> PolicyForm<'a> {
    fn of(policy: &'a Policy, matcher: Option<&'a Matcher>) -> Self {
        let mut functions = Vec::new();
        let matcher = matcher.and_then(|matcher| match MatcherForm::of(matcher) {
            Some(form) => Some(form),
            None => {
                functions.push("match");
                None
            }
        });
        let fallback = match &policy.fallback {
            Some(Fallback::Value(value)) => Some(FallbackForm::Value(value)),
            Some(Fallback::Overrides(overrides)) => Some(FallbackForm::Overrides(overrides)),
            Some(Fallback::Function(_)) => {
                functions.push("fallback");
                None
            }
            None => None,
        };
        let compensation = match &policy.compensation {
            Some(Compensation::Node(node)) => Some(node.as_str()),
            Some(Compensation::Function(_)) => {
                functions.push("compensation");
                None
            }
            None => None,
        };
        let mut errors = |field, list: &'a Option<Vec<ErrorMatcher>>| {
            let list = list.as_deref().unwrap_or_default();
            let forms: Vec<_> = list.iter().filter_map(ErrorForm::of).collect();
            if forms.len() < list.len() {
                functions.push(field);
            }
            forms
        };
        let retryable_errors = errors("retryable_errors", &policy.retryable_errors);
        let non_retryable_errors = errors("non_retryable_errors", &policy.non_retryable_errors);
        let idempotency_key = policy.idempotency_key.as_ref().and_then(|key| {
            let form = key.template().map(|key_text| KeyForm { key: key_text, name: key.scope() });
            if form.is_none() {
                functions.push("idempotency_key");
            }
            form
        });
        Self {
            v: VERSION,
            matcher,
            max_retries: policy.max_retries,
            backoff: policy.backoff.map(BackoffForm),
            jitter: policy.jitter,
            base_delay: policy.base_delay,
            max_delay: policy.max_delay,
            timeout: policy.timeout,
            total_timeout: policy.total_timeout,
            deadline: policy.deadline,
            on_failure: policy.on_failure,
            fallback,
            compensation,
            retryable_errors,
            non_retryable_errors,
            retry_budget: policy.retry_budget.as_ref(),
            circuit_breaker: policy.circuit_breaker.as_ref(),
            execution_mode: policy.execution_mode,
            priority: policy.priority,
            idempotency_key,
            queue_timeout: policy.queue_timeout,
            concurrency_limit: policy.concurrency_limit.as_ref(),
            rate_limit: policy.rate_limit.as_ref(),
            delay: policy.delay,
            scheduled_at: policy.scheduled_at.map(|instant| instant.to_string()),
            heartbeat: policy.heartbeat,
            checkpoint_after: policy.checkpoint_after,
            telemetry_prefix: policy.telemetry_prefix.as_deref(),
            log_level: policy.log_level,
            metadata: policy.metadata.as_ref(),
            functions,
        }
    }
}

/// A word, or a table when the coefficient is not the usual one.
struct BackoffForm(Backoff);

impl Serialize for BackoffForm {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Backoff::Exponential(coefficient) if self.0 != Backoff::exponential() => {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("kind", self.0.name())?;
                map.serialize_entry("coefficient", &(f64::from(coefficient.as_milli()) / 1_000.0))?;
                map.end()
            }
            Backoff::None | Backoff::Fixed | Backoff::Linear | Backoff::Exponential(_) => {
                serializer.serialize_str(self.0.name())
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum FallbackForm<'a> {
    Value(&'a serde_json::Value),
    Overrides(&'a serde_json::Map<String, serde_json::Value>),
}

enum ErrorForm<'a> {
    Code(i64),
    Name(&'a str),
}

impl<'a> ErrorForm<'a> {
    fn of(matcher: &'a ErrorMatcher) -> Option<Self> {
        match matcher {
            ErrorMatcher::Code(code) => Some(Self::Code(*code)),
            ErrorMatcher::Name(name) => Some(Self::Name(name)),
            ErrorMatcher::Predicate(_) => None,
        }
    }
}

impl Serialize for ErrorForm<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Code(code) => serializer.serialize_i64(*code),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum MatcherForm<'a> {
    Name(&'a str),
    Pattern(&'a str),
    Kind(Kind),
    Kinds(&'a [Kind]),
    Tag(&'a str),
    Default(bool),
}

impl<'a> MatcherForm<'a> {
    fn of(matcher: &'a Matcher) -> Option<Self> {
        Some(match matcher {
            Matcher::Name(name) => Self::Name(name),
            Matcher::Pattern(pattern) => Self::Pattern(pattern.text()),
            Matcher::Kind(kind) => Self::Kind(*kind),
            Matcher::Kinds(kinds) => Self::Kinds(kinds),
            Matcher::Tag(tag) => Self::Tag(tag),
            Matcher::Default => Self::Default(true),
            Matcher::Predicate(_) => return None,
        })
    }
}
