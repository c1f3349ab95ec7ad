//! Whatever comes in, something sensible comes out: 120,000 arbitrary inputs through every door that takes
//! text. A panic anywhere fails the test; so does an answer that is no JSON or a problem without its place.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use proptest::prelude::*;
use serde_json::{Value, json};
use tidewheel_core::Problems;
use tidewheel_core::decide::{Engine, Record, decide_json, delay_json};
use tidewheel_core::policy::{NodeInfo, Policy, Rules};
use tidewheel_core::time::{Span, Timestamp};

/// Words that mean something to one of the readers, so that arbitrary inputs get past the first check.
const WORDS: &[&str] = &[
    "envelope",
    "correlation_id",
    "turn_id",
    "max_backoff_ms",
    "max_diagnostics",
    "max_retryable_reason_codes",
    "tenant_id",
    "work_order_id",
    "step_id",
    "now_ns",
    "step_started_at_ns",
    "timeout_ms",
    "max_retries",
    "retry_backoff_ms",
    "attempt_index",
    "next_attempt_index",
    "last_failure_reason_code",
    "retryable_reason_codes",
    "wait_is_pause_only",
    "retry_allowed",
    "timeout_exceeded",
    "max_retries_reached",
    "request",
    "engine_config",
    "wiring_config",
    "sched_enabled",
    "policy",
    "context",
    "seed",
    "salt",
    "run_id",
    "node",
    "outcome",
    "running",
    "failed",
    "code",
    "breaker",
    "closed",
    "open_until_ns",
    "retry_on",
    "all",
    "only",
    "except",
    "decision",
    "action",
    "policies",
    "match",
    "name",
    "pattern",
    "kind",
    "kinds",
    "tag",
    "default",
    "backoff",
    "jitter",
    "exponential",
    "coefficient",
    "coefficient_milli",
    "base_delay",
    "base_delay_ms",
    "max_delay",
    "timeout",
    "total_timeout",
    "deadline",
    "on_failure",
    "fallback",
    "value",
    "overrides",
    "retryable_errors",
    "non_retryable_errors",
    "retry_budget",
    "tokens",
    "refill",
    "circuit_breaker",
    "failure_threshold",
    "reset_timeout",
    "half_open_permits",
    "rate_limit",
    "count",
    "window",
    "concurrency_limit",
    "limit",
    "scheduled_at",
    "heartbeat",
    "metadata",
    "functions",
    "priority",
    "high",
    "step",
    "^llm_",
    "(",
    "30s",
    "500ms",
    "infinity",
    "2h 30m",
    "-1s",
    "${x}",
    "${",
    "2026-03-01T12:00:00Z",
    "d545349f2c148255",
    "",
    " ",
    "é",
    "\u{0}",
    "\u{202e}",
    "a\"b",
    "\\",
];

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..5_u64).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![9 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => any::<String>()]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A request that is right but for a few places.
fn nearly_right() -> impl Strategy<Value = Value> {
    let right = json!({
        "envelope": {"correlation_id": 1, "turn_id": 1, "max_retryable_reason_codes": 8, "max_diagnostics": 8, "max_backoff_ms": 30000},
        "tenant_id": "t", "work_order_id": "w", "step_id": "s", "now_ns": 9, "step_started_at_ns": 3,
        "timeout_ms": 2000, "max_retries": 3, "retry_backoff_ms": 1000, "attempt_index": 0,
        "last_failure_reason_code": 11, "retryable_reason_codes": [11, 12], "wait_is_pause_only": true,
        "next_attempt_index": 1, "timeout_exceeded": false, "max_retries_reached": false, "retry_allowed": true,
    });
    let kernel = json!({
        "policy": {"max_retries": 3, "backoff": "exponential", "base_delay_ms": 1000, "max_delay_ms": 30000,
            "coefficient_milli": 2000, "jitter": "full", "total_timeout_ms": null, "retry_on": {"only": [1]},
            "on_not_retryable": "fail", "lookahead": true, "on_circuit_open": "wait"},
        "context": {"now_ns": 10, "step_started_at_ns": 9, "run_deadline_ns": null, "attempt_index": 3,
            "outcome": {"failed": {"code": 11, "retry_after_ms": 5}}, "breaker": {"open_until_ns": 3},
            "retry_tokens": null, "cancelled": true, "seed": {"salt": "v1", "run_id": "r", "node": "n"}},
    });
    let rules = json!({"policies": [{"match": {"name": "a"}, "max_retries": 2, "backoff": "fixed", "base_delay": "1s",
        "circuit_breaker": {"name": "b"}, "rate_limit": {"count": 1, "window": "1s"}, "metadata": {"a": [1]}}]});
    (
        prop::sample::select(vec![right, kernel, rules]),
        prop::collection::vec((any::<prop::sample::Index>(), json_value()), 0..4),
    )
        .prop_map(|(mut whole, changes)| {
            for (place, value) in changes {
                let mut paths = Vec::new();
                collect_paths(&whole, String::new(), &mut paths);
                *whole.pointer_mut(&paths[place.index(paths.len())]).unwrap() = value;
            }
            whole
        })
}

fn collect_paths(value: &Value, path: String, paths: &mut Vec<String>) {
    paths.push(path.clone());
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_paths(inner, format!("{path}/{key}"), paths);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect_paths(inner, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
}

/// Text that looks like TOML or JSON from afar.
fn nearly_text() -> impl Strategy<Value = String> {
    const GLUE: &[&str] = &[
        " = ",
        "\n",
        "\n[[policies]]\n",
        "{",
        "}",
        "[",
        "]",
        ", ",
        ": ",
        "\"",
        "'",
        "'''",
        "#",
        ".",
        "-",
        "\t",
        "\r\n",
        "1",
        "0.5",
        "1e400",
        "true",
        "nan",
        "inf",
        "0x7f",
        "1979-05-27",
        "\\u0000",
    ];
    let piece = prop_oneof![prop::sample::select(GLUE).prop_map(str::to_owned), word()];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Sends a text through every door.
fn through_every_door(text: &str) {
    let engine = Engine::default();
    for answer in [
        engine.evaluate_json(text),
        engine.compute_json(text),
        engine.turn_json(text),
        decide_json(text),
        delay_json(text),
    ] {
        let answer: Value = serde_json::from_str(&answer.to_json()).expect("an answer is JSON");
        assert!(answer["kind"].is_string());
        if answer["kind"] == "refuse" {
            assert!(answer["detail"]["field"].is_string() && answer["detail"]["reason"].is_string());
        }
    }
    for result in [Policy::from_toml(text), Policy::from_json(text)] {
        match result {
            Ok(policy) => {
                let record = policy.to_record();
                let again = Policy::from_record(&record).expect("a record can be read").policy;
                assert_eq!(again.to_record(), record);
                assert!(policy.resolved().is_ok(), "what was read has no contradiction");
            }
            Err(problems) => assert_places(&problems, text),
        }
    }
    for result in [Rules::from_toml(text), Rules::from_json(text)] {
        match result {
            Ok(rules) => {
                let _resolution = rules.resolve(&NodeInfo::step("a"));
                assert!(rules.unreachable().iter().all(|(never, because)| because < never));
                for record in rules.to_records() {
                    Rules::rule_from_record(&record).expect("a record can be read");
                }
            }
            Err(problems) => assert_places(&problems, text),
        }
    }
    // These may fail, but not otherwise.
    drop((Policy::from_record(text), Rules::rule_from_record(text), Record::from_json(text)));
    drop((Span::parse(text), Timestamp::parse(text)));
}

fn assert_places(problems: &Problems, text: &str) {
    for problem in problems.all() {
        let place = problem.location.as_ref().expect("a problem of a text has a place");
        assert!(place.span.start <= place.span.end && place.span.end <= text.len(), "{problem}");
        assert!(text.is_char_boundary(place.span.start) && text.is_char_boundary(place.span.end));
        assert!(place.line >= 1 && place.column >= 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_json_never_panics(value in json_value()) {
        through_every_door(&value.to_string());
    }

    #[test]
    fn nearly_right_requests_never_panic(value in nearly_right()) {
        through_every_door(&value.to_string());
    }

    #[test]
    fn arbitrary_text_never_panics(text in nearly_text()) {
        through_every_door(&text);
    }
}
