//! Policies from texts, TOML or JSON: one policy, or a file of rules. Unknown fields are refused, units are
//! checked, and every problem is reported at once with its place.

use std::borrow::Cow;

use super::backoff::{Backoff, Coefficient, Jitter};
use super::functions::{Compensation, Fallback, IdempotencyKey};
use super::matcher::{self, Matcher};
use super::options::{
    CircuitBreaker, ConcurrencyLimit, ErrorMatcher, ExecutionMode, LogLevel, OnFailure, OnOpen, Priority,
    RateLimit, RetryBudget,
};
use super::resolve::{Rules, matcher_problem};
use super::view::Kind;
use super::written::Policy;
use crate::document::{self, Data, Entry, Format, Node, Problem, Problems, Report, Table, words};
use crate::time::Timestamp;

impl Policy {
    /// Reads one policy from TOML.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::Policy;
    ///
    /// let policy = Policy::from_toml("max_retries = 2\nbackoff = 'linear'\ntimeout = '10s'")?;
    /// assert_eq!(policy.resolved()?.max_retries, 2);
    ///
    /// let error = Policy::from_toml("max_retrys = 2").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 1, column 1: max_retrys: is not a known field (did you mean `max_retries`?)"
    /// );
    /// # Ok::<(), tidewheel::Problems>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn from_toml(source: &str) -> Result<Self, Problems> {
        read_policy(source, Format::Toml)
    }

    /// Reads one policy from JSON.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn from_json(source: &str) -> Result<Self, Problems> {
        read_policy(source, Format::Json)
    }
}

impl Rules {
    /// Reads a file of `[[policies]]`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn from_toml(source: &str) -> Result<Self, Problems> {
        read_rules(source, Format::Toml)
    }

    /// Reads an object with a list `policies`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn from_json(source: &str) -> Result<Self, Problems> {
        read_rules(source, Format::Json)
    }
}

fn read_policy(source: &str, format: Format) -> Result<Policy, Problems> {
    let mut report = Report::new(source);
    let node = document::read(source, format)?;
    let policy = report.table("", node).map(|mut table| {
        let policy = policy(&mut table, &mut report);
        table.finish(&mut report, Policy::FIELDS);
        policy
    });
    report.finish(policy)
}

fn read_rules(source: &str, format: Format) -> Result<Rules, Problems> {
    let mut report = Report::new(source);
    let node = document::read(source, format)?;
    let mut rules = Vec::new();
    if let Some(mut top) = report.table("", node) {
        if let Some(place) = template(&top) {
            let problem = Problem::new("", "this is a template of jobs, and no file of policies");
            let help = "`tidewheel run FILE --check` checks it, with its policies";
            report.at(place, problem.help(help));
            return report.finish(None);
        }
        match top.take("policies") {
            Some(Entry { value: Node { data: Data::List(items), .. }, .. }) => {
                for (index, item) in items.into_iter().enumerate() {
                    rules.extend(rule(&format!("policies[{index}]"), item, &mut report, |_| Vec::new()));
                }
            }
            Some(entry) => {
                let message = format!("must be a list of tables, found {}", entry.value.kind());
                report.at(
                    entry.value.span,
                    Problem::new("policies", message).help("write one table for each rule"),
                );
            }
            None => {
                let problem = Problem::new("policies", "is missing");
                report.at(0..0, problem.help("write one table of `policies` for each rule"));
            }
        }
        top.finish(&mut report, &["policies"]);
    }
    let rules = report.finish(Some(rules))?;
    Rules::new(rules)
}

/// Finds where a document says that it is a template of jobs.
fn template(top: &Table<'_>) -> Option<std::ops::Range<usize>> {
    let is_list = |entry: &&Entry<'_>| matches!(entry.value.data, Data::List(_));
    let mut parts = ["nodes", "imports"].into_iter();
    parts.find_map(|name| top.peek(name).filter(is_list).map(|entry| entry.key_span.clone()))
}

/// Reads a policy with its matcher. What else is wrong with the policy where it is used comes as a function, whose
/// problems name their field.
pub(crate) fn rule(
    path: &str,
    node: Node<'_>,
    report: &mut Report<'_>,
    refused: impl FnOnce(&Policy) -> Vec<Problem>,
) -> Option<(Matcher, Policy)> {
    let span = node.span.clone();
    let mut table = report.table(path, node)?;
    let matcher = match table.take("match") {
        Some(entry) => matcher_of(&format!("{path}.match"), entry.value, report),
        None => {
            let problem = Problem::new(format!("{path}.match"), "is missing");
            report.at(span, problem.help("write match = { name = \"…\" } or match = { default = true }"));
            None
        }
    };
    let policy = policy(&mut table, report);
    for problem in refused(&policy) {
        let place = table.place_of(&problem.path);
        report.at(place, Problem { path: table.path_to(&problem.path), ..problem });
    }
    let known: Vec<&str> = Policy::FIELDS.iter().copied().chain(["match"]).collect();
    table.finish(report, &known);
    Some((matcher?, policy))
}

/// Reads a matcher: a table with exactly one of its words.
pub(super) fn matcher_of(path: &str, node: Node<'_>, report: &mut Report<'_>) -> Option<Matcher> {
    const WORDS: [&str; 6] = ["name", "pattern", "kind", "kinds", "tag", "default"];
    let span = node.span.clone();
    if let Data::String(text) = &node.data {
        let problem = Problem::new(path, "must be a table, found a string");
        let help = match text.as_ref() {
            "default" => Some("write match = { default = true }".to_owned()),
            name => document::is_plain(name).then(|| format!("write match = {{ name = \"{name}\" }}")),
        };
        report.at(span, problem.help_from(help));
        return None;
    }
    let mut table = report.table(path, node)?;
    if table.entries.len() > 1 {
        let given: Vec<&str> = table.entries.iter().map(|entry| entry.key.as_ref()).collect();
        let message = format!("must have exactly one of {}, has {}", WORDS.join(", "), given.join(", "));
        report.at(span, Problem::new(path, message).help("write one rule for each"));
        return None;
    }
    let kind_named = |name: &str| {
        let unknown =
            || format!("must be one of {}, got `{name}`", words(Kind::ALL.iter().map(|kind| kind.name())));
        Kind::from_name(name).ok_or_else(unknown)
    };
    let value_span = table.entries.first().map_or_else(|| span.clone(), |entry| entry.value.span.clone());
    let found = if let Some(name) = table.string("name", report) {
        Some(matcher::name(name))
    } else if let Some(pattern) = table.string("pattern", report) {
        Some(matcher::pattern(&pattern))
    } else if let Some(name) = table.string("kind", report) {
        let kind = Kind::from_name(&name);
        if kind.is_none() {
            let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            table.fail_with_words("kind", &all, &name, report);
        }
        kind.map(matcher::kind)
    } else if let Some(names) = table.list("kinds", report, |node| match &node.data {
        Data::String(name) => kind_named(name),
        _ => Err(format!("must be a list of words, found {}", node.kind())),
    }) {
        Some(matcher::kinds(names))
    } else if let Some(tag) = table.string("tag", report) {
        Some(matcher::tag(tag))
    } else {
        match table.boolean("default", report) {
            Some(true) => Some(matcher::default()),
            Some(false) => {
                table.fail("default", "must be true; leave the rule out instead".to_owned(), report);
                None
            }
            None => None,
        }
    };
    if table.is_untouched() && report.problems_in(&span) == 0 {
        report.at(span, Problem::new(path, format!("must have one of {}", WORDS.join(", "))));
    }
    table.finish(report, &WORDS);
    let found = found?;
    match matcher_problem(&found) {
        Some(problem) => {
            let parent = path.strip_suffix("match").unwrap_or(path);
            report.at(value_span, Problem { path: format!("{parent}{}", problem.path), ..problem });
            None
        }
        None => Some(found),
    }
}

/// Reads the fields of a policy and checks them against each other.
fn policy(table: &mut Table<'_>, report: &mut Report<'_>) -> Policy {
    let policy = fields(table, report);
    for problem in policy.all_problems() {
        let place = table.place_of(&problem.path);
        report.at(place, Problem { path: table.path_to(&problem.path), ..problem });
    }
    policy
}

/// Reads the fields of a policy, each for itself.
pub(super) fn fields(table: &mut Table<'_>, report: &mut Report<'_>) -> Policy {
    let mut policy = Policy::new();
    policy.max_retries = table.uint("max_retries", report);
    policy.backoff = backoff(table, report, &mut policy.jitter);
    if let Some(jitter) = table.word("jitter", report, Jitter::ALL, Jitter::name) {
        if policy.jitter.is_some_and(|implied| implied != jitter) {
            let message = format!("is {jitter}, but backoff = \"jitter\" means exponential with full jitter");
            table.fail("jitter", message, report);
        }
        policy.jitter = Some(jitter);
    }
    policy.base_delay = table.span("base_delay", report);
    policy.max_delay = table.span("max_delay", report);
    policy.timeout = table.limit("timeout", report);
    policy.total_timeout = table.limit("total_timeout", report);
    policy.deadline = table.limit("deadline", report);
    policy.on_failure = table.word("on_failure", report, OnFailure::ALL, OnFailure::name);
    policy.fallback = fallback(table, report);
    policy.compensation =
        table.string("compensation", report).map(|node| Compensation::Node(node.into_owned()));
    policy.retryable_errors = table.list("retryable_errors", report, error_matcher);
    policy.non_retryable_errors = table.list("non_retryable_errors", report, error_matcher);
    policy.retry_budget = retry_budget(table, report);
    policy.circuit_breaker = circuit_breaker(table, report);
    policy.execution_mode = table.word("execution_mode", report, ExecutionMode::ALL, ExecutionMode::name);
    policy.priority = table.word("priority", report, Priority::ALL, Priority::name);
    policy.idempotency_key = idempotency_key(table, report);
    policy.queue_timeout = table.span("queue_timeout", report);
    policy.concurrency_limit = concurrency_limit(table, report);
    policy.rate_limit = rate_limit(table, report);
    policy.delay = table.span("delay", report);
    policy.scheduled_at = scheduled_at(table, report);
    policy.heartbeat = table.span("heartbeat", report);
    policy.checkpoint_after = table.boolean("checkpoint_after", report);
    policy.telemetry_prefix = table.string("telemetry_prefix", report).map(Cow::into_owned);
    policy.log_level = table.word("log_level", report, LogLevel::ALL, LogLevel::name);
    policy.metadata = table.json_object("metadata", report);
    let is_lost = |name: &&&str| table.was_given(name) && !policy.says(name);
    policy.unreadable = Policy::FIELDS.iter().filter(is_lost).copied().collect();
    policy
}

/// Reads a word, or a table with a coefficient. The word `jitter` means exponential with full jitter.
fn backoff(table: &mut Table<'_>, report: &mut Report<'_>, jitter: &mut Option<Jitter>) -> Option<Backoff> {
    let entry = table.take("backoff")?;
    let (kind, coefficient) = match &entry.value.data {
        Data::String(word) => (word.clone().into_owned(), None),
        Data::Table(_) => {
            let mut inner = report.table(&table.path_to("backoff"), entry.value)?;
            let kind = inner.required("kind", report, Table::string)?;
            let coefficient = inner.take("coefficient").and_then(|entry| {
                let found = match entry.value.data {
                    Data::Integer(number) => u32::try_from(number).ok().map(f64::from),
                    Data::Float(number) => Some(number),
                    _ => None,
                };
                let coefficient = found.and_then(Coefficient::from_number);
                if coefficient.is_none() {
                    let message = "must be a number from 1, with at most three decimals";
                    report.at(entry.value.span, Problem::new(inner.path_to("coefficient"), message));
                }
                coefficient
            });
            if inner.was_given("coefficient") && kind != "exponential" {
                inner.fail(
                    "coefficient",
                    format!("has no effect: only exponential has one, not {kind}"),
                    report,
                );
            }
            let kind = kind.into_owned();
            inner.finish(report, &["kind", "coefficient"]);
            (kind, coefficient)
        }
        _ => {
            let message = format!("must be a word or a table, found {}", entry.value.kind());
            table.fail("backoff", message, report);
            return None;
        }
    };
    match kind.as_str() {
        "none" => Some(Backoff::None),
        "fixed" => Some(Backoff::Fixed),
        "linear" => Some(Backoff::Linear),
        "exponential" => Some(Backoff::Exponential(coefficient.unwrap_or(Coefficient::DOUBLE))),
        "jitter" => {
            *jitter = Some(Jitter::Full);
            Some(Backoff::exponential())
        }
        _ => {
            let kinds = ["none", "fixed", "linear", "exponential", "jitter"];
            table.fail_with_words("backoff", &kinds, &kind, report);
            None
        }
    }
}

fn fallback(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<Fallback> {
    const FORMS: &str = "must be { value = … } or { overrides = { … } }";
    let entry = table.take("fallback")?;
    let span = entry.value.span.clone();
    if !matches!(entry.value.data, Data::Table(_)) {
        table.fail("fallback", format!("{FORMS}, found {}", entry.value.kind()), report);
        return None;
    }
    let mut inner = report.table(&table.path_to("fallback"), entry.value)?;
    let overrides = inner.json_object("overrides", report);
    let value = inner.take_any("value").and_then(|entry| {
        let value = entry.value.to_json();
        if value.is_none() {
            inner.fail("value", "has a number that JSON cannot hold".to_owned(), report);
        }
        value
    });
    let (has_value, has_overrides) = (inner.was_given("value"), inner.was_given("overrides"));
    if has_value == has_overrides && inner.entries.is_empty() {
        report.at(span, Problem::new(table.path_to("fallback"), FORMS));
    }
    inner.finish(report, &["value", "overrides"]);
    if has_value && has_overrides {
        return None;
    }
    value.map(Fallback::Value).or_else(|| overrides.map(Fallback::Overrides))
}

fn error_matcher(node: &Node<'_>) -> Result<ErrorMatcher, String> {
    match &node.data {
        Data::Integer(number) => i64::try_from(*number)
            .map(ErrorMatcher::Code)
            .map_err(|_| format!("has {number}, which is out of range")),
        Data::String(name) if !name.trim().is_empty() => Ok(ErrorMatcher::Name(name.clone().into_owned())),
        Data::String(_) => Err("must not contain an empty word".to_owned()),
        _ => Err(format!("must be a list of codes and names, found {}", node.kind())),
    }
}

fn retry_budget(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<RetryBudget> {
    let mut inner = table.table("retry_budget", report)?;
    let name = inner.required("name", report, Table::string);
    let tokens = inner.required("tokens", report, Table::uint);
    let refill = inner.required("refill", report, Table::span);
    inner.finish(report, &["name", "tokens", "refill"]);
    Some(RetryBudget { name: name?.into_owned(), tokens: tokens?, refill: refill? })
}

fn circuit_breaker(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<CircuitBreaker> {
    let mut inner = table.table("circuit_breaker", report)?;
    let name = inner.required("name", report, Table::string);
    let failure_threshold = inner.uint("failure_threshold", report);
    let reset_timeout = inner.span("reset_timeout", report);
    let half_open_permits = inner.uint("half_open_permits", report);
    let on_open = inner.word("on_open", report, OnOpen::ALL, OnOpen::name);
    inner.finish(report, &["name", "failure_threshold", "reset_timeout", "half_open_permits", "on_open"]);
    let usual = CircuitBreaker::new(name?);
    Some(CircuitBreaker {
        failure_threshold: failure_threshold.unwrap_or(usual.failure_threshold),
        reset_timeout: reset_timeout.unwrap_or(usual.reset_timeout),
        half_open_permits: half_open_permits.unwrap_or(usual.half_open_permits),
        on_open: on_open.unwrap_or(usual.on_open),
        name: usual.name,
    })
}

fn rate_limit(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<RateLimit> {
    let mut inner = table.table("rate_limit", report)?;
    let count = inner.required("count", report, Table::uint);
    let window = inner.required("window", report, Table::span);
    let name = inner.string("name", report).map(Cow::into_owned);
    inner.finish(report, &["count", "window", "name"]);
    Some(RateLimit { count: count?, window: window?, name })
}

/// Reads a number, or a table with a number and a name.
fn concurrency_limit(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<ConcurrencyLimit> {
    if let Some(Entry { value: Node { data: Data::Table(_), .. }, .. }) = table.peek("concurrency_limit") {
        let mut inner = table.table("concurrency_limit", report)?;
        let limit = inner.required("limit", report, Table::uint);
        let name = inner.string("name", report).map(Cow::into_owned);
        inner.finish(report, &["limit", "name"]);
        return Some(ConcurrencyLimit { limit: limit?, name });
    }
    table.uint("concurrency_limit", report).map(|limit| ConcurrencyLimit { limit, name: None })
}

/// Reads a text with `${…}` in it, or a table with it and the name of a scope.
fn idempotency_key(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<IdempotencyKey> {
    if let Some(Entry { value: Node { data: Data::Table(_), .. }, .. }) = table.peek("idempotency_key") {
        let mut inner = table.table("idempotency_key", report)?;
        let template = inner.required("key", report, Table::string).map(Cow::into_owned);
        let scope = inner.required("name", report, Table::string).map(Cow::into_owned);
        inner.finish(report, &["key", "name"]);
        let key = Box::new(IdempotencyKey::Template(template?));
        return Some(IdempotencyKey::Shared { scope: scope?, key });
    }
    table.string("idempotency_key", report).map(|text| IdempotencyKey::Template(text.into_owned()))
}

/// Reads an instant with an offset; TOML has a form of its own for it.
fn scheduled_at(table: &mut Table<'_>, report: &mut Report<'_>) -> Option<Timestamp> {
    let entry = table.take("scheduled_at")?;
    let text = match &entry.value.data {
        Data::String(text) => text.as_ref(),
        Data::Datetime(text) => text,
        _ => {
            let message =
                format!("must be an instant such as 2026-03-01T12:00:00Z, found {}", entry.value.kind());
            table.fail("scheduled_at", message, report);
            return None;
        }
    };
    Timestamp::parse(text).map_err(|error| table.fail("scheduled_at", error.to_string(), report)).ok()
}
