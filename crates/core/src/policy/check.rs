//! What contradicts itself in a policy. A field that is accepted acts; one that cannot act is refused by
//! name.
//!
//! A parameter needs its feature to be said: `base_delay` without any `backoff` is a mistake, while
//! `backoff = "none"` beside it is somebody switching the feature off, which is fine.

use std::collections::{BTreeMap, BTreeSet};

use super::backoff::{Backoff, Jitter, JitterSeed};
use super::functions::{Compensation, Fallback, IdempotencyKey};
use super::options::{ErrorMatcher, OnFailure, is_type};
use super::resolved::Resolved;
use super::written::Policy;
use crate::document::Problem;
use crate::time::Span;

/// Deeper than any value that a record can be read back with.
const MOST_NESTING: usize = 24;

impl Policy {
    /// Returns everything that is wrong: what was kept while writing, then the contradictions.
    pub(super) fn all_problems(&self) -> Vec<Problem> {
        let mut problems = self.problems.clone();
        let mut found = |problem: Option<Problem>| problems.extend(problem);
        found(self.needs("backoff", &["max_retries"], "nothing is retried"));
        found(self.needs("base_delay", &["backoff"], "there is no delay"));
        found(self.needs("max_delay", &["backoff"], "there is no delay"));
        found(self.needs("jitter", &["backoff"], "there is no delay"));
        found(self.needs("retryable_errors", &["max_retries"], "nothing is retried"));
        found(self.needs("non_retryable_errors", &["max_retries"], "nothing is retried"));
        found(self.needs("retry_budget", &["max_retries"], "nothing is retried"));
        for (field, span) in self.spans() {
            if span.is_some_and(Span::is_zero) {
                found(Some(Problem::new(field, "must be longer than 0s")));
            } else if span.is_some_and(|span| span > Span::LONGEST) {
                found(Some(Problem::new(field, "is longer than 584 years")));
            }
        }
        for problem in self.check_delays().into_iter().chain(self.check_limits()).chain(self.check_names()) {
            found(Some(problem));
        }
        found(self.check_fallback());
        found(self.check_error_lists());
        found(self.check_start());
        problems
    }

    /// Refuses a parameter whose feature nobody mentioned.
    fn needs(&self, field: &'static str, features: &[&'static str], because: &str) -> Option<Problem> {
        let is_said = |name: &&str| self.says(name) || self.tried(name);
        if !self.says(field) || features.iter().any(is_said) {
            return None;
        }
        // A backoff of none is what is the case anyway: it needs no retries to be true.
        if field == "backoff" && self.backoff == Some(Backoff::None) {
            return None;
        }
        let feature = features.join(" or ");
        let message = format!("has no effect: {because} without {feature}");
        Some(Problem::new(field, message).help(format!("set {feature}, or leave {field} out")))
    }

    fn spans(&self) -> [(&'static str, Option<Span>); 11] {
        let limit = |limit: Option<super::options::Limit>| limit.and_then(super::options::Limit::span);
        [
            ("base_delay", self.base_delay),
            ("max_delay", self.max_delay),
            ("timeout", limit(self.timeout)),
            ("total_timeout", limit(self.total_timeout)),
            ("deadline", limit(self.deadline)),
            ("queue_timeout", self.queue_timeout),
            ("delay", self.delay),
            ("heartbeat", self.heartbeat),
            ("rate_limit.window", self.rate_limit.as_ref().map(|limit| limit.window)),
            ("retry_budget.refill", self.retry_budget.as_ref().map(|budget| budget.refill)),
            (
                "circuit_breaker.reset_timeout",
                self.circuit_breaker.as_ref().map(|breaker| breaker.reset_timeout),
            ),
        ]
    }

    fn check_delays(&self) -> Option<Problem> {
        let effective = Resolved::laid_over_defaults(self);
        let (base, max) = (effective.delays.base, effective.delays.max);
        // Without a backoff both are refused already; one that could not be read has no value to compare.
        let is_off = effective.delays.backoff == Backoff::None || self.max_retries == Some(0);
        if max >= base || is_off || self.tried("base_delay") || self.tried("max_delay") {
            return None;
        }
        let said = |said: bool| if said { "" } else { ", the default" };
        let message = format!(
            "is {max}{}, below base_delay, which is {base}{}",
            said(self.max_delay.is_some()),
            said(self.base_delay.is_some())
        );
        Some(Problem::new("max_delay", message).help("raise max_delay or lower base_delay"))
    }

    /// A longer bound inside a shorter one never acts.
    fn check_limits(&self) -> Vec<Problem> {
        let effective = Resolved::laid_over_defaults(self);
        let bounds = [
            ("heartbeat", self.heartbeat),
            ("timeout", effective.timeout.span()),
            ("total_timeout", effective.total_timeout.span()),
            ("deadline", effective.deadline.span()),
        ];
        let mut problems = Vec::new();
        if let (Some(deadline), Some(delay)) = (effective.deadline.span(), self.delay)
            && delay >= deadline
        {
            let message = format!("is {delay}, so the work could never start: deadline is {deadline}");
            problems.push(Problem::new("delay", message).help("lower delay or raise deadline"));
        }
        if let (Some(deadline), Some(queue)) = (effective.deadline.span(), self.queue_timeout)
            && queue > deadline
        {
            let message = format!("is {queue} and can never act: deadline is {deadline}");
            problems
                .push(Problem::new("queue_timeout", message).help("lower queue_timeout or raise deadline"));
        }
        let delays = effective.delays;
        if let Some(total) = effective.total_timeout.span()
            && effective.max_retries > 0
            && delays.jitter == Jitter::None
            && delays.max >= delays.base
            && delays.after(0, JitterSeed::new("", "")) >= total
        {
            let message = format!("is {total}, so no retry could start: the first delay is {}", delays.base);
            problems
                .push(Problem::new("total_timeout", message).help("raise total_timeout or lower base_delay"));
        }
        for (index, (inner, inner_span)) in bounds.iter().enumerate() {
            let shorter = bounds[index + 1..].iter().find(|(_, outer)| match (inner_span, outer) {
                (Some(inner), Some(outer)) => inner > outer,
                _ => false,
            });
            if let (Some(inner_span), Some((outer, Some(outer_span)))) = (inner_span, shorter) {
                let message = format!("is {inner_span} and can never act: {outer} is {outer_span}");
                problems.push(Problem::new(*inner, message).help(format!("lower {inner} or raise {outer}")));
            }
        }
        problems
    }

    /// Limits of nothing, and names that name nothing.
    fn check_names(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut at_least_one = |field: &str, count: Option<u32>| {
            if count == Some(0) {
                problems.push(Problem::new(field, "must be at least 1: with 0 nothing would ever run"));
            }
        };
        at_least_one("concurrency_limit", self.concurrency_limit.as_ref().map(|limit| limit.limit));
        at_least_one("rate_limit.count", self.rate_limit.as_ref().map(|limit| limit.count));
        let breaker = self.circuit_breaker.as_ref();
        at_least_one("circuit_breaker.failure_threshold", breaker.map(|breaker| breaker.failure_threshold));
        at_least_one("circuit_breaker.half_open_permits", breaker.map(|breaker| breaker.half_open_permits));
        if self.retry_budget.as_ref().is_some_and(|budget| budget.tokens == 0) {
            let problem =
                Problem::new("retry_budget.tokens", "must be at least 1: with 0 nothing is retried");
            problems.push(problem.help("set max_retries = 0 to retry nothing"));
        }
        let names = [
            ("rate_limit.name", self.rate_limit.as_ref().and_then(|limit| limit.name.as_deref())),
            (
                "concurrency_limit.name",
                self.concurrency_limit.as_ref().and_then(|limit| limit.name.as_deref()),
            ),
            ("circuit_breaker.name", breaker.map(|breaker| breaker.name.as_str())),
            ("retry_budget.name", self.retry_budget.as_ref().map(|budget| budget.name.as_str())),
            (
                "compensation",
                match &self.compensation {
                    Some(Compensation::Node(node)) => Some(node),
                    Some(Compensation::Function(_)) | None => None,
                },
            ),
            ("telemetry_prefix", self.telemetry_prefix.as_deref()),
            ("idempotency_key", self.idempotency_key.as_ref().and_then(IdempotencyKey::template)),
            ("idempotency_key.name", self.idempotency_key.as_ref().and_then(IdempotencyKey::scope)),
        ];
        for (field, name) in names {
            if name.is_some_and(|name| name.trim().is_empty()) {
                problems.push(Problem::new(field, "must not be empty"));
            }
        }
        if let Some(prefix) = &self.telemetry_prefix
            && !prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b))
        {
            problems.push(Problem::new("telemetry_prefix", "must have only letters, digits, _ and ."));
        }
        if let Some(template) = self.idempotency_key.as_ref().and_then(IdempotencyKey::template)
            && let Some(problem) = template_problem(template)
        {
            problems.push(Problem::new("idempotency_key", problem));
        }
        problems
    }

    fn check_fallback(&self) -> Option<Problem> {
        if self.on_failure == Some(OnFailure::Fallback) && self.fallback.is_none() && !self.tried("fallback")
        {
            let problem = Problem::new("on_failure", "is fallback, but there is no fallback");
            return Some(problem.help("give a fallback, or choose another action"));
        }
        let metadata = self.metadata.iter().flat_map(|metadata| metadata.values());
        if metadata.into_iter().any(is_too_deep) {
            return Some(Problem::new("metadata", "is nested too deep"));
        }
        match &self.fallback {
            Some(Fallback::Value(value)) if is_too_deep(value) => {
                Some(Problem::new("fallback.value", "is nested too deep"))
            }
            Some(Fallback::Overrides(overrides)) if overrides.values().any(is_too_deep) => {
                Some(Problem::new("fallback.overrides", "is nested too deep"))
            }
            Some(Fallback::Overrides(overrides)) if overrides.is_empty() => {
                Some(Problem::new("fallback.overrides", "must not be empty: the work would run as before"))
            }
            Some(Fallback::Overrides(_) | Fallback::Value(_) | Fallback::Function(_)) | None => None,
        }
    }

    fn check_error_lists(&self) -> Option<Problem> {
        let (only, never) = (self.retryable_errors.as_deref(), self.non_retryable_errors.as_deref());
        if only.is_some_and(<[ErrorMatcher]>::is_empty) {
            let problem = Problem::new("retryable_errors", "is empty: nothing would be retried");
            return Some(problem.help("set max_retries = 0 to retry nothing"));
        }
        if never.is_some_and(<[ErrorMatcher]>::is_empty) {
            return Some(
                Problem::new("non_retryable_errors", "is empty and has no effect").help("leave it out"),
            );
        }
        for (field, list) in [("retryable_errors", only), ("non_retryable_errors", never)] {
            let is_empty =
                |error: &ErrorMatcher| matches!(error, ErrorMatcher::Name(name) if name.trim().is_empty());
            if list.is_some_and(|list| list.iter().any(is_empty)) {
                return Some(Problem::new(field, "must not contain an empty word"));
            }
        }
        let codes: BTreeSet<i64> = only?.iter().filter_map(code).collect();
        // A type may be named by the last part of its path, so that is what tells two names apart.
        let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
        let names: BTreeMap<String, &str> =
            only?.iter().filter_map(name).map(|name| (last(name), name)).collect();
        let both = never?.iter().find(|error| match error {
            ErrorMatcher::Code(code) => codes.contains(code),
            ErrorMatcher::Name(name) => {
                names.get(&last(name)).is_some_and(|other| is_type(other, name) || is_type(name, other))
            }
            ErrorMatcher::Predicate(_) => false,
        })?;
        let message = format!("contains {both}, which is in retryable_errors too");
        Some(Problem::new("non_retryable_errors", message))
    }

    fn check_start(&self) -> Option<Problem> {
        if self.delay.is_some() && self.scheduled_at.is_some() {
            return Some(
                Problem::new("delay", "is given together with scheduled_at").help("keep one of them"),
            );
        }
        None
    }
}

fn code(error: &ErrorMatcher) -> Option<i64> {
    match error {
        ErrorMatcher::Code(code) => Some(*code),
        ErrorMatcher::Name(_) | ErrorMatcher::Predicate(_) => None,
    }
}

fn name(error: &ErrorMatcher) -> Option<&str> {
    match error {
        ErrorMatcher::Name(name) => Some(name),
        ErrorMatcher::Code(_) | ErrorMatcher::Predicate(_) => None,
    }
}

/// Tells whether a value is nested deeper than a record can be read back with, without recursion.
fn is_too_deep(value: &serde_json::Value) -> bool {
    let mut left = vec![(value, 0)];
    while let Some((value, depth)) = left.pop() {
        if depth > MOST_NESTING {
            return true;
        }
        match value {
            serde_json::Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            serde_json::Value::Object(map) => left.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Finds what is wrong with the `${…}` of a text.
fn template_problem(template: &str) -> Option<String> {
    let mut rest = template;
    while let Some(start) = rest.find("${") {
        rest = &rest[start + 2..];
        let Some(end) = rest.find('}') else {
            return Some("has a `${` without its `}`".to_owned());
        };
        let name = &rest[..end];
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Some(format!("has `${{{name}}}`, which names nothing"));
        }
        rest = &rest[end + 1..];
    }
    None
}
