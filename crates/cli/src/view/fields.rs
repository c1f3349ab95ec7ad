//! The fields of a policy as people write them: `timeout = "30s"`. Knows every field there is.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tidewheel_core::policy::{Backoff, Compensation, ErrorMatcher, Fallback, IdempotencyKey, Resolved};

/// Returns every field with its value, in the order of the documentation; null where there is none.
pub(crate) fn of(policy: &Resolved) -> Vec<(&'static str, Value)> {
    // No `..` here: a new field has to be shown.
    let Resolved {
        max_retries,
        delays,
        timeout,
        total_timeout,
        deadline,
        on_failure,
        fallback,
        compensation,
        retryable_errors,
        non_retryable_errors,
        retry_budget,
        circuit_breaker,
        execution_mode,
        priority,
        idempotency_key,
        queue_timeout,
        concurrency_limit,
        rate_limit,
        delay,
        scheduled_at,
        heartbeat,
        checkpoint_after,
        telemetry_prefix,
        log_level,
        metadata,
        ..
    } = policy;
    vec![
        ("max_retries", value(max_retries)),
        ("backoff", backoff(delays.backoff)),
        ("jitter", value(delays.jitter)),
        ("base_delay", value(delays.base)),
        ("max_delay", value(delays.max)),
        ("timeout", value(timeout)),
        ("total_timeout", value(total_timeout)),
        ("deadline", value(deadline)),
        ("on_failure", value(on_failure)),
        ("fallback", fallback.as_ref().map_or(Value::Null, fallback_value)),
        ("compensation", compensation.as_ref().map_or(Value::Null, compensation_value)),
        ("retryable_errors", retryable_errors.as_deref().map_or(Value::Null, errors)),
        ("non_retryable_errors", errors(non_retryable_errors)),
        ("retry_budget", value(retry_budget)),
        ("circuit_breaker", value(circuit_breaker)),
        ("execution_mode", value(execution_mode)),
        ("priority", value(priority)),
        ("idempotency_key", idempotency_key.as_ref().map_or(Value::Null, key_value)),
        ("queue_timeout", value(queue_timeout)),
        ("concurrency_limit", value(concurrency_limit)),
        ("rate_limit", value(rate_limit)),
        ("delay", value(delay)),
        ("scheduled_at", value(scheduled_at.map(|instant| instant.to_string()))),
        ("heartbeat", value(heartbeat)),
        ("checkpoint_after", value(checkpoint_after)),
        ("telemetry_prefix", value(telemetry_prefix)),
        ("log_level", value(log_level)),
        ("metadata", value(metadata)),
    ]
}

/// Writes a value as a policy file in TOML has it, on one line; `-` where there is none.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(table) if table.is_empty() => "{}".to_owned(),
        Value::Object(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {}", key_of(key), written(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Returns the fields of a record, without what is no field.
pub(crate) fn of_record(record: &str) -> Map<String, Value> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(record).expect("invariant: a record is an object of JSON");
    fields.remove("match");
    fields.remove("functions");
    fields.remove("v");
    fields
}

fn value(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("invariant: a field has no key that is not a string")
}

fn backoff(backoff: Backoff) -> Value {
    match backoff {
        Backoff::Exponential(coefficient) if backoff != Backoff::exponential() => {
            json!({ "kind": backoff.name(), "coefficient": f64::from(coefficient.as_milli()) / 1_000.0 })
        }
        Backoff::None | Backoff::Fixed | Backoff::Linear | Backoff::Exponential(_) => backoff.name().into(),
    }
}

/// Files hold no functions; a place for them keeps this complete.
const FUNCTION: &str = "(function)";

fn fallback_value(fallback: &Fallback) -> Value {
    match fallback {
        Fallback::Value(value) => json!({ "value": value }),
        Fallback::Overrides(overrides) => json!({ "overrides": overrides }),
        Fallback::Function(_) => FUNCTION.into(),
    }
}

fn compensation_value(compensation: &Compensation) -> Value {
    match compensation {
        Compensation::Node(node) => node.as_str().into(),
        Compensation::Function(_) => FUNCTION.into(),
    }
}

fn key_value(key: &IdempotencyKey) -> Value {
    let text: Value = key.template().unwrap_or(FUNCTION).into();
    match key.scope() {
        Some(scope) => serde_json::json!({ "key": text, "name": scope }),
        None => text,
    }
}

fn errors(errors: &[ErrorMatcher]) -> Value {
    let error = |error: &ErrorMatcher| -> Value {
        match error {
            ErrorMatcher::Code(code) => (*code).into(),
            ErrorMatcher::Name(name) => name.as_str().into(),
            ErrorMatcher::Predicate(_) => FUNCTION.into(),
        }
    };
    errors.iter().map(error).collect()
}

/// Writes a key, in quotes where TOML wants them.
fn key_of(key: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { Value::from(key).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use tidewheel_core::policy::{Policy, Rules};

    #[test]
    fn every_field_is_shown_in_order() {
        let shown: Vec<&str> = of(&Resolved::default()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(shown, Policy::FIELDS);
    }

    /// What is shown could be pasted into a file and would mean the same.
    #[test]
    fn what_is_shown_can_be_read_again() {
        let source = r#"
            [[policies]]
            match = { default = true }
            max_retries = 3
            backoff = { kind = "exponential", coefficient = 1.5 }
            timeout = "10s"
            fallback = { value = { "a b" = [1, 2.5, "x"], c = true } }
            retryable_errors = [429, "timeout"]
            rate_limit = { count = 3, window = "1m", name = "api" }
            circuit_breaker = { name = "db" }
            scheduled_at = 2026-03-01T12:00:00Z
            metadata = { team = "a\u009b" }
        "#;
        let rules = Rules::from_toml(source).unwrap();
        let all = of(rules.as_slice()[0].resolved());
        let said = of_record(&rules.to_records()[0]);
        let mut again = "[[policies]]\nmatch = { default = true }\n".to_owned();
        for (name, value) in all.iter().filter(|(name, _)| said.contains_key(*name)) {
            let _ = writeln!(again, "{name} = {}", written(value));
            // Parts that nobody said are filled in, so only simple values are equal.
            assert!(value.is_object() || said[*name] == *value, "{name}");
        }
        assert_eq!(of(Rules::from_toml(&again).unwrap().as_slice()[0].resolved()), all);
    }
}
