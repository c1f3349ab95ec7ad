//! Policies as texts and records: every field is read and written, and what cannot act is refused by name.

use tidewheel_core::Problems;
use tidewheel_core::decide::{OnCircuitOpen, OnNotRetryable, RetryPolicy};
use tidewheel_core::policy::{
    self, Backoff, CircuitBreaker, Failure, Fallback, Jitter, NodeInfo, OnFailure, OnOpen, Policy, Recovery,
    Rules,
};
use tidewheel_core::time::Span;

const EVERY_FIELD: &str = r#"
max_retries = 4
backoff = { kind = "exponential", coefficient = 1.5 }
jitter = "equal"
base_delay = "250ms"
max_delay = "1m"
timeout = "10s"
total_timeout = "5m"
deadline = "1h"
on_failure = "dead_letter"
fallback = { overrides = { model = "small", depth = 2 } }
compensation = "undo_charge"
retryable_errors = [429, 503, "timeout"]
non_retryable_errors = ["InvalidRequest"]
retry_budget = { name = "api", tokens = 20, refill = "1s" }
circuit_breaker = { name = "api", failure_threshold = 3, reset_timeout = "30s", half_open_permits = 2, on_open = "skip" }
execution_mode = "durable"
priority = "high"
idempotency_key = "order-${input.id}"
queue_timeout = "2m"
concurrency_limit = { limit = 8, name = "db" }
rate_limit = { count = 100, window = "1m", name = "api" }
delay = "5s"
heartbeat = "3s"
checkpoint_after = true
telemetry_prefix = "billing.charge"
log_level = "debug"
metadata = { team = "billing", tier = 1 }
"#;

#[test]
fn every_field_is_read_and_comes_back_from_its_record() {
    let policy = Policy::from_toml(EVERY_FIELD).unwrap();
    for field in Policy::FIELDS.iter().filter(|field| **field != "scheduled_at") {
        assert!(policy.to_record().contains(&format!("\"{field}\":")), "{field} is not in the record");
    }
    let record = policy.to_record();
    let again = Policy::from_record(&record).unwrap();
    assert_eq!(again.policy.to_record(), record);
    assert!(again.functions.is_empty());
    assert_eq!(format!("{:?}", again.policy.resolved()), format!("{:?}", policy.resolved()));
    let plain = record.replacen(r#""v":1,"#, "", 1);
    assert_eq!(
        Policy::from_json(&plain).unwrap().to_record(),
        record,
        "but for its version, a record is a policy"
    );

    let resolved = policy.resolved().unwrap();
    assert_eq!(
        resolved.delays.backoff,
        Backoff::Exponential(policy::Coefficient::from_milli(1_500).unwrap())
    );
    assert_eq!(resolved.circuit_breaker.unwrap().half_open_permits, 2);
}

#[test]
fn scheduled_at_takes_an_instant_as_text_or_as_toml_has_it() {
    for text in ["scheduled_at = 2026-03-01T12:00:00Z", "scheduled_at = '2026-03-01T13:00:00+01:00'"] {
        let policy = Policy::from_toml(text).unwrap();
        assert_eq!(policy.to_record(), r#"{"v":1,"scheduled_at":"2026-03-01T12:00:00Z"}"#);
    }
}

#[test]
fn milliseconds_may_be_spelt_in_the_name() {
    let spelt = r#"{"max_retries": 1, "backoff": "fixed", "base_delay_ms": 100, "max_delay_ms": 200, "timeout_ms": 50,
        "total_timeout_ms": 5000, "deadline_ms": 9000, "queue_timeout_ms": 70, "delay_ms": 80, "heartbeat_interval_ms": 40,
        "rate_limit": {"count": 1, "window_ms": 1000},
        "circuit_breaker": {"name": "b", "reset_timeout_ms": 60000},
        "retry_budget": {"name": "r", "tokens": 1, "refill_ms": 10}}"#;
    let policy = Policy::from_json(spelt).unwrap().resolved().unwrap();
    assert_eq!(policy.heartbeat, Some(Span::from_millis(40)));
    assert_eq!(policy.rate_limit.unwrap().window, Span::from_secs(1));
    assert_eq!(policy.circuit_breaker, Some(CircuitBreaker::new("b")));
    assert!(Policy::from_toml("timeout_ms = 'infinity'").is_ok());
    assert!(Policy::from_toml("heartbeat_ms = 5").is_ok());
}

#[test]
fn backoff_jitter_means_exponential_with_full_jitter() {
    let policy = Policy::from_toml("max_retries = 1\nbackoff = 'jitter'").unwrap().resolved().unwrap();
    assert_eq!((policy.delays.backoff, policy.delays.jitter), (Backoff::exponential(), Jitter::Full));
    let contradiction =
        Policy::from_toml("max_retries = 1\nbackoff = 'jitter'\njitter = 'none'").unwrap_err();
    assert_eq!(
        contradiction.to_string(),
        r#"line 3, column 10: jitter: is none, but backoff = "jitter" means exponential with full jitter"#
    );
}

/// Each text has exactly one thing wrong with it, said so.
const REFUSED: &[(&str, &str)] = &[
    (
        "base_delay = '1s'",
        "line 1, column 14: base_delay: has no effect: there is no delay without backoff (set backoff, or leave base_delay out)",
    ),
    (
        "backoff = 'fixed'",
        "line 1, column 11: backoff: has no effect: nothing is retried without max_retries (set max_retries, or leave backoff out)",
    ),
    (
        "max_retries = 1\njitter = 'full'",
        "line 2, column 10: jitter: has no effect: there is no delay without backoff (set backoff, or leave jitter out)",
    ),
    (
        "max_retries = 1\nbackoff = 'fixed'\nbase_delay = '1m'",
        "line 1, column 1: max_delay: is 30s, the default, below base_delay, which is 1m (raise max_delay or lower base_delay)",
    ),
    (
        "max_retries = 1\nbackoff = 'fixed'\nbase_delay = '2s'\nmax_delay = '1s'",
        "line 4, column 13: max_delay: is 1s, below base_delay, which is 2s (raise max_delay or lower base_delay)",
    ),
    (
        "on_failure = 'fallback'",
        "line 1, column 14: on_failure: is fallback, but there is no fallback (give a fallback, or choose another action)",
    ),
    (
        "timeout = '1s'\ntimeout_ms = 1000",
        "line 2, column 1: timeout: is given twice, as timeout and as timeout_ms (keep one of them)",
    ),
    (
        "heartbeat_ms = 1\nheartbeat_interval_ms = 1",
        "line 2, column 1: heartbeat: is given twice, as heartbeat_ms and as heartbeat_interval_ms (keep one of them)",
    ),
    (
        "timeout = 30",
        "line 1, column 11: timeout: 30 has no unit (write timeout = \"30s\" or timeout_ms = 30)",
    ),
    (
        "timeout = '30'",
        "line 1, column 11: timeout: `30` is no span of time: it has no unit: write 30s or 500ms",
    ),
    ("timeout = '0s'", "line 1, column 11: timeout: must be longer than 0s"),
    ("timeout = true", "line 1, column 11: timeout: must be a span such as \"30s\", found a boolean"),
    (
        "timeout_ms = 1.5",
        "line 1, column 14: timeout_ms: must be a whole number of milliseconds, found a number with a fraction",
    ),
    ("queue_timeout = 'infinity'", "line 1, column 17: queue_timeout: must have an end"),
    (
        "timeout = '10s'\ntotal_timeout = '5s'",
        "line 1, column 11: timeout: is 10s and can never act: total_timeout is 5s (lower timeout or raise total_timeout)",
    ),
    (
        "total_timeout = '10s'\ndeadline = '5s'",
        "line 1, column 17: total_timeout: is 10s and can never act: deadline is 5s (lower total_timeout or raise deadline)",
    ),
    (
        "timeout = '1s'\nheartbeat = '2s'",
        "line 2, column 13: heartbeat: is 2s and can never act: timeout is 1s (lower heartbeat or raise timeout)",
    ),
    (
        "concurrency_limit = 0",
        "line 1, column 21: concurrency_limit: must be at least 1: with 0 nothing would ever run",
    ),
    (
        "rate_limit = { count = 0, window = '1s' }",
        "line 1, column 14: rate_limit.count: must be at least 1: with 0 nothing would ever run",
    ),
    ("rate_limit = { count = 1 }", "line 1, column 14: rate_limit.window: is missing"),
    (
        "rate_limit = { count = 1, window = '0s' }",
        "line 1, column 14: rate_limit.window: must be longer than 0s",
    ),
    (
        "delay = '1h'\ndeadline = '1s'",
        "line 1, column 9: delay: is 1h, so the work could never start: deadline is 1s (lower delay or raise deadline)",
    ),
    (
        "queue_timeout = '1h'\ndeadline = '1s'",
        "line 1, column 17: queue_timeout: is 1h and can never act: deadline is 1s (lower queue_timeout or raise deadline)",
    ),
    (
        "max_retries = 1\nbackoff = 'fixed'\nbase_delay = '2s'\ntotal_timeout = '1s'",
        "line 4, column 17: total_timeout: is 1s, so no retry could start: the first delay is 2s (raise total_timeout or lower base_delay)",
    ),
    (
        "max_retries = 1\nretryable_errors = ['RateLimited']\nnon_retryable_errors = ['api::RateLimited']",
        "line 3, column 24: non_retryable_errors: contains api::RateLimited, which is in retryable_errors too",
    ),
    ("rate_limit = 10", "line 1, column 14: rate_limit: must be a table, found an integer"),
    (
        "circuit_breaker = { name = 'b', failure_threshold = 0 }",
        "line 1, column 19: circuit_breaker.failure_threshold: must be at least 1: with 0 nothing would ever run",
    ),
    (
        "circuit_breaker = { name = 'b', half_open_permits = 0 }",
        "line 1, column 19: circuit_breaker.half_open_permits: must be at least 1: with 0 nothing would ever run",
    ),
    ("circuit_breaker = { failure_threshold = 1 }", "line 1, column 19: circuit_breaker.name: is missing"),
    (
        "circuit_breaker = { name = 'b', on_open = 'explode' }",
        "line 1, column 43: circuit_breaker.on_open: must be one of wait, fail, skip, got `explode`",
    ),
    (
        "max_retries = 1\nretry_budget = { name = 'b', tokens = 0, refill = '1s' }",
        "line 2, column 16: retry_budget.tokens: must be at least 1: with 0 nothing is retried (set max_retries = 0 to retry nothing)",
    ),
    (
        "retry_budget = { name = 'b', tokens = 1, refill = '1s' }",
        "line 1, column 16: retry_budget: has no effect: nothing is retried without max_retries (set max_retries, or leave retry_budget out)",
    ),
    (
        "max_retries = 1\nretryable_errors = []",
        "line 2, column 20: retryable_errors: is empty: nothing would be retried (set max_retries = 0 to retry nothing)",
    ),
    (
        "max_retries = 1\nretryable_errors = [1, 'x']\nnon_retryable_errors = ['x']",
        "line 3, column 24: non_retryable_errors: contains x, which is in retryable_errors too",
    ),
    (
        "max_retries = 1\nretryable_errors = [1, 2.5]",
        "line 2, column 24: retryable_errors: must be a list of codes and names, found a number with a fraction",
    ),
    (
        "max_retries = 1\nbackoff = { kind = 'linear', coefficient = 2 }",
        "line 2, column 44: backoff.coefficient: has no effect: only exponential has one, not linear",
    ),
    (
        "max_retries = 1\nbackoff = { kind = 'exponential', coefficient = 0.5 }",
        "line 2, column 49: backoff.coefficient: must be a number from 1, with at most three decimals",
    ),
    (
        "max_retries = 1\nbackoff = 'quadratic'",
        "line 2, column 11: backoff: must be one of none, fixed, linear, exponential, jitter, got `quadratic`",
    ),
    (
        "fallback = 7",
        "line 1, column 12: fallback: must be { value = … } or { overrides = { … } }, found an integer",
    ),
    ("fallback = {}", "line 1, column 12: fallback: must be { value = … } or { overrides = { … } }"),
    (
        "fallback = { value = 1, overrides = { a = 1 } }",
        "line 1, column 12: fallback: must be { value = … } or { overrides = { … } }",
    ),
    (
        "fallback = { overrides = {} }",
        "line 1, column 12: fallback.overrides: must not be empty: the work would run as before",
    ),
    (
        "delay = '1s'\nscheduled_at = 2026-03-01T12:00:00Z",
        "line 1, column 9: delay: is given together with scheduled_at (keep one of them)",
    ),
    (
        "scheduled_at = 2026-03-01",
        "line 1, column 16: scheduled_at: `2026-03-01` is no instant: write one such as 2026-03-01T12:00:00Z",
    ),
    ("idempotency_key = 'a-${'", "line 1, column 19: idempotency_key: has a `${` without its `}`"),
    ("idempotency_key = 'a-${}'", "line 1, column 19: idempotency_key: has `${}`, which names nothing"),
    (
        "telemetry_prefix = 'a b'",
        "line 1, column 20: telemetry_prefix: must have only letters, digits, _ and .",
    ),
    ("compensation = ''", "line 1, column 16: compensation: must not be empty"),
    ("metadata = 1", "line 1, column 12: metadata: must be a table, found an integer"),
    ("metadata = { x = nan }", "line 1, column 12: metadata: has a number that JSON cannot hold"),
    (
        "max_retries = 99999999999999999999999999999999999999999",
        "line 1, column 15: max_retries: must be an integer, found a number too large",
    ),
    ("frobnicate = 1", "line 1, column 1: frobnicate: is not a known field"),
];

#[test]
fn what_cannot_act_is_refused_by_name_and_place() {
    for (text, message) in REFUSED {
        let problems = Policy::from_toml(text).map(|policy| policy.to_record()).unwrap_err();
        assert_eq!(problems.to_string(), *message, "{text}");
    }
}

#[test]
fn the_builder_refuses_what_the_text_refuses() {
    let problems = Policy::new()
        .timeout("ten")
        .on_failure(OnFailure::Fallback)
        .concurrency_limit(0)
        .rate_limit(0, "1s")
        .resolved()
        .unwrap_err();
    let paths: Vec<&str> = problems.all().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["timeout", "concurrency_limit", "rate_limit.count", "on_failure"]);
}

#[test]
fn switching_a_feature_off_beside_its_parameters_is_fine() {
    for text in
        ["backoff = 'none'\nbase_delay = '1s'", "max_retries = 0\nbackoff = 'fixed'", "backoff = 'none'"]
    {
        assert!(Policy::from_toml(text).is_ok(), "{text}");
    }
    assert!(Policy::llm().max_retries(0).resolved().is_ok());
}

#[test]
fn a_file_of_rules_keeps_its_order_and_reports_every_problem_at_its_place() {
    let rules = Rules::from_toml(
        "[[policies]]\nmatch = { pattern = '^llm_' }\nmax_retries = 3\n\n[[policies]]\nmatch = { default = true }\ntimeout = '30s'\n",
    )
    .unwrap();
    assert_eq!(rules.resolve(&NodeInfo::step("llm_x")).rule, Some(0));
    assert_eq!(rules.resolve(&NodeInfo::step("x")).rule, Some(1));
    assert_eq!(
        rules.to_records(),
        [
            r#"{"v":1,"match":{"pattern":"^llm_"},"max_retries":3}"#,
            r#"{"v":1,"match":{"default":true},"timeout":"30s"}"#
        ]
    );

    let problems = Rules::from_toml(
        "[[policies]]\nmatch = { pattern = '(' }\n[[policies]]\ntimeout = 'x'\n[[policies]]\nmatch = { name = 'a', tag = 'b' }\n\
         [[policies]]\nmatch = { kind = 'stepp' }\n[[policies]]\nmatch = {}\n[[policies]]\nmatch = { nam = 'x' }\n[[policies]]\nmatch = { default = false }\n",
    )
    .unwrap_err();
    let expected = "\
line 2, column 21: policies[0].match.pattern: `(` is no regular expression: unclosed group
line 3, column 1: policies[1].match: is missing (write match = { name = \"…\" } or match = { default = true })
line 4, column 11: policies[1].timeout: `x` is no span of time: write it like 500ms, 30s, 10m or 2h 30m
line 6, column 9: policies[2].match: must have exactly one of name, pattern, kind, kinds, tag, default, has name, tag (write one rule for each)
line 8, column 18: policies[3].match.kind: must be one of step, condition, rule, join, map, reduce, accumulator, state_machine, compensation, builtin, shell, agent, gate, got `stepp` (did you mean `step`?)
line 10, column 9: policies[4].match: must have one of name, pattern, kind, kinds, tag, default
line 12, column 11: policies[5].match.nam: is not a known field (did you mean `name`?)
line 14, column 21: policies[6].match.default: must be true; leave the rule out instead";
    assert_eq!(problems.to_string(), expected);
}

#[test]
fn json_has_the_same_places() {
    let source = "{\n  \"policies\": [\n    {\"match\": {\"name\": \"é\"}, \"timeout\": \"x\"}\n  ]\n}";
    let problems = Rules::from_json(source).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "line 3, column 41: policies[0].timeout: `x` is no span of time: write it like 500ms, 30s, 10m or 2h 30m"
    );
    let syntax = Rules::from_json("{\n  \"policies\": [,]\n}").unwrap_err();
    assert_eq!(syntax.to_string(), "line 2, column 16: expected value");
    let unknown = Policy::from_json(r#"{"max_retries": 1, "speed": 2}"#).unwrap_err();
    assert!(unknown.to_string().starts_with("line 1, column 20: speed: is not a known field"), "{unknown}");
    let escape = Policy::from_json(r#"{"telemetry_prefix": "\ud800"}"#).unwrap_err();
    assert_eq!(escape.to_string(), "line 1, column 22: has an escape sequence that stands for no text");
    let twice = Policy::from_json(r#"{"max_retries": 1, "max_retries": 2}"#).unwrap_err();
    assert_eq!(twice.to_string(), "line 1, column 1: has the key `max_retries` twice");
}

#[test]
fn documents_that_are_no_policies_say_what_is_wanted() {
    let text = |result: Result<Rules, Problems>| result.unwrap_err().to_string();
    assert_eq!(
        text(Rules::from_toml("")),
        "line 1, column 1: policies: is missing (write one table of `policies` for each rule)"
    );
    assert_eq!(
        text(Rules::from_toml("policies = 1")),
        "line 1, column 12: policies: must be a list of tables, found an integer (write one table for each rule)"
    );
    assert_eq!(text(Rules::from_json("[]")), "line 1, column 1: must be a table, found a list");
    let deep = format!("{{\"metadata\": {}1{}}}", "[".repeat(200), "]".repeat(200));
    assert!(Policy::from_json(&deep).unwrap_err().to_string().ends_with("is nested too deep"));
}

#[test]
fn a_file_with_thousands_of_problems_is_read_in_no_time_and_says_how_many_there_are() {
    let text: String = (0..20_000).map(|index| format!("field_{index} = {index}\n")).collect();
    let problems = Policy::from_toml(&text).unwrap_err();
    assert_eq!(problems.all().len(), 201);
    assert!(problems.to_string().ends_with("and 19800 more problems like these"));
}

#[test]
fn functions_are_left_out_of_records_and_named() {
    let policy = Policy::new()
        .max_retries(2)
        .fallback(|_, _, _| Recovery::value(1))
        .on_failure(OnFailure::Fallback)
        .compensation(|_, _| Ok(()))
        .idempotency_key(|node, _| node.name.unwrap_or_default().to_owned())
        .retryable_errors([policy::ErrorMatcher::from(7), policy::ErrorMatcher::predicate(|_| true)]);
    let rules = Rules::new([(policy::predicate(|_| true), policy)]).unwrap();
    let record = &rules.to_records()[0];
    assert_eq!(
        record,
        r#"{"v":1,"max_retries":2,"on_failure":"fallback","retryable_errors":[7],"functions":["match","fallback","compensation","retryable_errors","idempotency_key"]}"#
    );
    let read = Rules::rule_from_record(record).unwrap();
    assert!(read.matcher.is_none());
    assert_eq!(read.functions.len(), 5);
    assert!(read.policy.resolved().is_err(), "a fallback that is not there is missed, not forgotten");
}

#[test]
fn a_policy_answers_which_failures_it_retries() {
    let retries = |policy: &Policy, failure: &Failure| policy.resolved().unwrap().retries(failure);
    let (limited, invalid) = (Failure::new("x").code(429), Failure::new("x").code("invalid"));
    let all = Policy::new().max_retries(1);
    assert!(retries(&all, &limited) && retries(&all, &invalid));
    assert!(!retries(&all, &limited.clone().non_retryable()));
    let only = all.clone().retryable_errors([429]);
    assert!(retries(&only, &limited) && !retries(&only, &invalid));
    let except = all.non_retryable_errors(["invalid"]);
    assert!(retries(&except, &limited) && !retries(&except, &invalid));
}

#[test]
fn the_builder_may_say_infinity_and_say_it_again() {
    let policy = Policy::new().timeout("bad").timeout("10s").total_timeout("infinity").deadline("1h");
    assert_eq!(policy.resolved().unwrap().timeout.to_string(), "10s");
    let merged = Policy::new().timeout("bad").merge(Policy::new().timeout("infinity"));
    assert_eq!(merged.resolved().unwrap().timeout.to_string(), "infinity");
    let broken = Policy::new().merge(Policy::new().timeout("bad"));
    assert_eq!(broken.resolved().unwrap_err().all().len(), 1);
}

#[test]
fn what_could_not_be_read_back_is_refused_before_it_is_written() {
    let deep = (0..40).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let breaker = CircuitBreaker { reset_timeout: Span::from_millis(u64::MAX), ..CircuitBreaker::new("b") };
    for policy in [
        Policy::new().metadata("a", deep.clone()),
        Policy::new().fallback_value(deep),
        Policy::new().circuit_breaker(breaker),
        Policy::new().max_retries(1).retryable_errors([""]),
    ] {
        assert!(policy.resolved().is_err(), "{policy:?}");
    }
}

#[test]
fn one_shared_name_has_one_set_of_settings() {
    let breaker = |threshold| CircuitBreaker { failure_threshold: threshold, ..CircuitBreaker::new("api") };
    let problems = Rules::new([
        (policy::name("a"), Policy::new().circuit_breaker(breaker(1)).shared_rate_limit("r", 1, "1s")),
        (policy::name("b"), Policy::new().circuit_breaker(breaker(2)).shared_rate_limit("r", 1, "1s")),
    ])
    .unwrap_err();
    assert_eq!(
        problems.to_string(),
        "policies[1].circuit_breaker: shares the name `api` with policies[0], which says failure_threshold 1, \
         reset_timeout 1m, half_open_permits 1 (say the same, or take another name)"
    );
}

#[test]
fn rules_from_rust_are_checked_like_those_from_a_file() {
    let problems =
        Rules::new([(policy::pattern("("), Policy::new()), (policy::kinds([]), Policy::new())]).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "policies[0].match.pattern: `(` is no regular expression: unclosed group\n\
         policies[1].match.kinds: must not be empty"
    );
}

#[test]
fn a_record_of_another_version_is_refused_and_so_are_functions_that_cannot_be() {
    for (record, message) in [
        ("{}", "line 1, column 1: v: is missing"),
        (r#"{"v":2}"#, "line 1, column 1: v: is 2, but this release reads version 1"),
        (
            r#"{"v":1,"functions":["timeout"]}"#,
            "line 1, column 21: functions: must be names out of match, fallback, compensation, retryable_errors, \
             non_retryable_errors, idempotency_key",
        ),
    ] {
        assert_eq!(Policy::from_record(record).unwrap_err().to_string(), message);
    }
    let both = r#"{"v":1,"match":{"default":true},"functions":["match"]}"#;
    assert!(Rules::rule_from_record(both).is_err());
}

#[test]
fn null_in_json_is_as_good_as_leaving_a_field_out() {
    let policy =
        Policy::from_json(r#"{"max_retries": 1, "deadline_ms": null, "fallback": {"value": null}}"#).unwrap();
    assert_eq!(policy.to_record(), r#"{"v":1,"max_retries":1,"fallback":{"value":null}}"#);
}

#[test]
fn a_policy_in_the_kernels_terms_looks_ahead_and_fails_where_an_open_breaker_skips() {
    let retries = |on_open| {
        let breaker = CircuitBreaker { on_open, ..CircuitBreaker::new("b") };
        RetryPolicy::from(&Policy::io().circuit_breaker(breaker).resolved().unwrap())
    };
    assert!(retries(OnOpen::Wait).lookahead);
    assert_eq!(retries(OnOpen::Wait).on_circuit_open, OnCircuitOpen::Wait);
    assert_eq!(retries(OnOpen::Fail).on_circuit_open, OnCircuitOpen::Fail);
    assert_eq!(retries(OnOpen::Skip).on_circuit_open, OnCircuitOpen::Fail);
    assert_eq!(retries(OnOpen::Wait).on_not_retryable, OnNotRetryable::Fail);
}

#[test]
fn a_fallback_value_is_data_and_comes_back() {
    let policy = Policy::new().fallback_value(vec![1, 2]);
    let again = Policy::from_record(&policy.to_record()).unwrap().policy.resolved().unwrap();
    assert!(matches!(again.fallback, Some(Fallback::Value(value)) if value == serde_json::json!([1, 2])));
}

#[test]
fn keys_of_json_are_sorted_because_hashes_depend_on_it() {
    let value: serde_json::Value = serde_json::from_str(r#"{"b": 1, "a": 2}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"a":2,"b":1}"#, "serde_json's preserve_order must stay off");
}
