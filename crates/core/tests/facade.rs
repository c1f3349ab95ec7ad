//! The façade beyond its vectors: the order of the checks, the words of refusals, the forms of a line, and
//! its laws.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidewheel_core::decide::{
    Action, Answer, Budgets, ComputeRequest, Engine, Envelope, EvaluateRequest, ReasonCode, StepState,
    TurnRequest, Wiring, WorkOrder,
};

fn evaluate_request() -> Value {
    json!({
        "envelope": {
            "correlation_id": 6601, "turn_id": 7701,
            "max_retryable_reason_codes": 8, "max_diagnostics": 8, "max_backoff_ms": 30000,
        },
        "tenant_id": "tenant_demo", "work_order_id": "wo_123", "step_id": "step_1",
        "now_ns": 2_000_000_000_u64, "step_started_at_ns": 1_999_000_000_u64,
        "timeout_ms": 2000, "max_retries": 3, "retry_backoff_ms": 1000, "attempt_index": 0,
        "last_failure_reason_code": 11, "retryable_reason_codes": [11, 12], "wait_is_pause_only": true,
    })
}

fn compute_request() -> Value {
    json!({
        "envelope": {
            "correlation_id": 6601, "turn_id": 7701,
            "max_retryable_reason_codes": 8, "max_diagnostics": 8, "max_backoff_ms": 30000,
        },
        "tenant_id": "tenant_demo", "work_order_id": "wo_123", "step_id": "step_1",
        "now_ns": 2_000_000_000_u64, "retry_backoff_ms": 1000,
        "timeout_exceeded": false, "max_retries_reached": false, "retry_allowed": true,
        "attempt_index": 0, "next_attempt_index": 1, "wait_is_pause_only": true,
    })
}

/// Sets a field, with `.` for the way into the envelope; null leaves it out.
fn with(mut request: Value, path: &str, value: Value) -> Value {
    let mut place = &mut request;
    for part in path.split('.') {
        place = &mut place[part];
    }
    *place = value;
    request
}

fn without(mut request: Value, path: &str) -> Value {
    let (parent, name) = path.rsplit_once('.').map_or((None, path), |(parent, name)| (Some(parent), name));
    let object = match parent {
        Some(parent) => &mut request[parent],
        None => &mut request,
    };
    object.as_object_mut().unwrap().remove(name);
    request
}

fn evaluate(request: &Value) -> Value {
    serde_json::from_str(&Engine::default().evaluate_json(&request.to_string()).to_json()).unwrap()
}

fn compute(request: &Value) -> Value {
    serde_json::from_str(&Engine::default().compute_json(&request.to_string()).to_json()).unwrap()
}

/// The fields of an evaluation in the order in which they are checked.
const EVALUATE_ORDER: [&str; 18] = [
    "schema_version",
    "envelope.correlation_id",
    "envelope.turn_id",
    "envelope.max_retryable_reason_codes",
    "envelope.max_diagnostics",
    "envelope.max_backoff_ms",
    "tenant_id",
    "work_order_id",
    "step_id",
    "now_ns",
    "step_started_at_ns",
    "timeout_ms",
    "max_retries",
    "retry_backoff_ms",
    "attempt_index",
    "retryable_reason_codes",
    "last_failure_reason_code",
    "wait_is_pause_only",
];

const COMPUTE_ORDER: [&str; 17] = [
    "schema_version",
    "envelope.correlation_id",
    "envelope.turn_id",
    "envelope.max_retryable_reason_codes",
    "envelope.max_diagnostics",
    "envelope.max_backoff_ms",
    "tenant_id",
    "work_order_id",
    "step_id",
    "now_ns",
    "retry_backoff_ms",
    "wait_is_pause_only",
    "timeout_exceeded",
    "max_retries_reached",
    "retry_allowed",
    "attempt_index",
    "next_attempt_index",
];

/// With every field from some point on wrong, the first of them is reported, and the rest as diagnostics.
fn assert_order(order: &[&str], request: &Value, ask: fn(&Value) -> Value) {
    for first in 0..order.len() {
        let wrong =
            order[first..].iter().fold(request.clone(), |request, path| with(request, path, json!(-1.5)));
        let wrong = with(wrong, "zzz_unknown", json!(1));
        let answer = ask(&wrong);
        let last_part = |path: &str| path.rsplit('.').next().unwrap().to_owned();
        assert_eq!(answer["detail"]["field"], last_part(order[first]), "{answer}");
        assert_eq!(answer["reason_code"], "PH1_SCHED_INPUT_SCHEMA_INVALID");
        let mut rest: Vec<String> = order[first + 1..].iter().map(|path| last_part(path)).collect();
        rest.push("zzz_unknown".to_owned());
        rest.truncate(8);
        let diagnostics: Vec<&str> =
            answer["diagnostics"].as_array().unwrap().iter().map(|d| d["field"].as_str().unwrap()).collect();
        assert_eq!(diagnostics, rest);
    }
}

#[test]
fn evaluate_checks_its_fields_in_order_and_unknown_keys_last() {
    assert_order(&EVALUATE_ORDER, &evaluate_request(), evaluate);
}

#[test]
fn compute_checks_its_fields_in_order_and_unknown_keys_last() {
    assert_order(&COMPUTE_ORDER, &compute_request(), compute);
}

#[test]
fn a_missing_field_is_the_fault_of_upstream_in_evaluate_and_of_the_schema_in_compute() {
    for (order, request, ask, code) in [
        (
            &EVALUATE_ORDER[1..],
            evaluate_request(),
            evaluate as fn(&Value) -> Value,
            "PH1_SCHED_UPSTREAM_INPUT_MISSING",
        ),
        (&COMPUTE_ORDER[1..], compute_request(), compute, "PH1_SCHED_INPUT_SCHEMA_INVALID"),
    ] {
        for path in order.iter().filter(|path| **path != "last_failure_reason_code") {
            for answer in
                [ask(&without(request.clone(), path)), ask(&with(request.clone(), path, Value::Null))]
            {
                assert_eq!(answer["reason_code"], code, "{path}: {answer}");
                assert_eq!(answer["detail"]["field"], path.rsplit('.').next().unwrap());
                assert_eq!(answer["detail"]["reason"], "is missing");
            }
        }
    }
}

#[test]
fn a_field_of_the_wrong_type_is_refused_with_what_was_found() {
    for (path, value, reason) in [
        ("now_ns", json!("2000"), "must be an integer within 0..=18446744073709551615, found a string"),
        ("now_ns", json!(-1), "must be an integer within 0..=18446744073709551615, found a negative number"),
        (
            "timeout_ms",
            json!(1e3),
            "must be an integer within 0..=4294967295, found a number with a fraction or exponent",
        ),
        ("max_retries", json!(1025), "must be within 0..=1024, got 1025"),
        ("attempt_index", json!(65536), "must be an integer within 0..=65535"),
        ("step_id", json!("a b"), "must have only letters, digits and _ - : . /"),
        ("tenant_id", json!("  "), "must not be blank"),
        ("step_started_at_ns", json!(0), "must not be 0, nor must step_started_at_ns"),
        ("retryable_reason_codes", json!({}), "must be a list, found an object"),
        (
            "retryable_reason_codes",
            json!([11, "12"]),
            "must be an integer within 0..=4294967295, found a string",
        ),
        ("retryable_reason_codes", json!([11, 12, 11]), "must be unique, 11 is there twice"),
        ("envelope", json!([]), "must be an object, found a list"),
        ("wait_is_pause_only", json!("true"), "must be true or false, found a string"),
    ] {
        let answer = evaluate(&with(evaluate_request(), path, value));
        assert_eq!(answer["detail"]["reason"], reason, "{path}");
    }
}

#[test]
fn a_correlation_id_may_have_all_its_128_bits_and_comes_back_exactly() {
    let largest = u128::MAX.to_string();
    for written in [largest.clone(), format!("\"{largest}\"")] {
        let line = evaluate_request().to_string().replace("6601", &written);
        let answer = Engine::default().evaluate_json(&line).to_json();
        assert!(answer.contains(&format!(r#""correlation_id":{largest}"#)), "{answer}");
    }
    let beyond = "340282366920938463463374607431768211456";
    for bad in [beyond, "\"0x1\"", "\"\"", "\" 1\"", "\"+1\"", "1.0", "0", "\"0\"", "true"] {
        let line = evaluate_request().to_string().replace("6601", bad);
        let answer: Value = serde_json::from_str(&Engine::default().evaluate_json(&line).to_json()).unwrap();
        assert_eq!(answer["detail"]["field"], "correlation_id", "{bad}");
    }
}

#[test]
fn a_string_that_is_no_text_is_refused_as_such() {
    let line = evaluate_request().to_string().replace("tenant_demo", r"\ud800");
    let answer: Value = serde_json::from_str(&Engine::default().evaluate_json(&line).to_json()).unwrap();
    assert_eq!(answer["message"], "tenant_id has an escape sequence that stands for no text");
}

#[test]
fn a_key_given_twice_is_refused() {
    let line = evaluate_request().to_string().replacen('{', r#"{"max_retries": 9, "#, 1);
    let answer: Value = serde_json::from_str(&Engine::default().evaluate_json(&line).to_json()).unwrap();
    assert_eq!(answer["message"], "max_retries is given twice");
}

#[test]
fn every_unknown_key_is_told() {
    let request =
        ["a", "b", "c"].into_iter().fold(evaluate_request(), |request, key| with(request, key, json!(1)));
    let answer = evaluate(&with(request, "envelope.z", json!(1)));
    let told: Vec<&str> =
        answer["diagnostics"].as_array().unwrap().iter().map(|d| d["field"].as_str().unwrap()).collect();
    assert_eq!((answer["detail"]["field"].as_str().unwrap(), told), ("z", vec!["a", "b", "c"]));
}

#[test]
fn a_key_given_twice_is_found_in_a_large_object_too() {
    let many: String = (0..40).map(|index| format!("\"key{index}\": 1, ")).collect();
    let line = format!("{{\"request\": {{}}, \"engine_config\": {{{many}\"key7\": 2}}}}");
    let answer: Value = serde_json::from_str(&Engine::default().evaluate_json(&line).to_json()).unwrap();
    assert_eq!(answer["message"], "key7 is given twice");
}

#[test]
fn a_wrapped_engine_is_laid_over_the_one_that_is_asked() {
    let tight = Engine::new(Budgets { max_backoff_ms: 500, ..Budgets::default() }).unwrap();
    let line = json!({"engine_config": {"max_diagnostics": 1}, "request": evaluate_request()}).to_string();
    let answer: Value = serde_json::from_str(&tight.evaluate_json(&line).to_json()).unwrap();
    assert_eq!(answer["reason_code"], "PH1_SCHED_BUDGET_EXCEEDED");
    let wired = json!({"wiring_config": {}, "request": compute_request()}).to_string();
    assert!(matches!(tight.compute_json(&wired), Answer::ConfigError(_)));
}

#[test]
fn unknown_keys_are_refused_in_the_envelope_too_and_before_the_budgets() {
    let request = with(evaluate_request(), "envelope.surprise", json!(1));
    let request =
        with(with(request, "envelope.max_backoff_ms", json!(86_400_000)), "retry_backoff_ms", json!(300_001));
    let answer = evaluate(&request);
    assert_eq!(answer["reason_code"], "PH1_SCHED_INPUT_SCHEMA_INVALID");
    assert_eq!(answer["message"], "surprise is not a known field");
}

#[test]
fn the_last_attempt_cannot_be_retried_whatever_the_next_index_says() {
    for next in [0, 1, 65_535] {
        let request =
            with(with(compute_request(), "attempt_index", json!(65_535)), "next_attempt_index", json!(next));
        let answer = compute(&request);
        assert_eq!(answer["reason_code"], "PH1_SCHED_INTERNAL_PIPELINE_ERROR", "{next}");
    }
}

#[test]
fn the_envelope_and_the_engine_bound_the_diagnostics() {
    let wrong =
        EVALUATE_ORDER[6..].iter().fold(evaluate_request(), |request, path| with(request, path, json!([])));
    let count = |answer: Value| answer["diagnostics"].as_array().map_or(0, Vec::len);
    assert_eq!(count(evaluate(&with(wrong.clone(), "envelope.max_diagnostics", json!(2)))), 2);
    let wrapped = json!({"engine_config": {"max_diagnostics": 1}, "request": wrong});
    assert_eq!(count(evaluate(&wrapped)), 1);
    assert_eq!(count(evaluate(&with(evaluate_request(), "step_id", json!(7)))), 0);
}

#[test]
fn a_line_is_a_request_or_a_request_with_its_engine() {
    assert_eq!(evaluate(&evaluate_request()), evaluate(&json!({"request": evaluate_request()})));
    let kind = |line: &str| -> Value {
        serde_json::from_str(&Engine::default().evaluate_json(line).to_json()).unwrap()
    };
    for (line, field, reason) in [
        ("[]", "request", "must be an object, found a list"),
        ("null", "request", "must be an object, found null"),
        ("7", "request", "must be an object, found an integer"),
        (r#"{"\ud800": 1}"#, "request", "has a key with an escape sequence that stands for no text"),
        (r#""x""#, "request", "must be an object, found a string"),
        (r#"{"request": 1}"#, "request", "must be an object, found an integer"),
        (r#"{"engine_config": {}}"#, "request", "is missing"),
        (r#"{"request": {}, "extra": 1}"#, "extra", "is not a known field"),
    ] {
        let answer = kind(line);
        assert_eq!(answer["kind"], "refuse", "{line}");
        assert_eq!(
            (&answer["detail"]["field"], &answer["detail"]["reason"]),
            (&json!(field), &json!(reason)),
            "{line}"
        );
    }
    for (line, message) in [
        (
            r#"{"engine_config": {"max_backoff_ms": 0}, "request": {}}"#,
            "max_backoff_ms must be within 1..=86400000, got 0",
        ),
        (
            r#"{"engine_config": {"max_diagnostics": 256}, "request": {}}"#,
            "max_diagnostics must be an integer within 1..=16",
        ),
        (r#"{"engine_config": {"x": 1}, "request": {}}"#, "x is not a known field"),
        (r#"{"engine_config": 1, "request": {}}"#, "engine_config must be an object, found an integer"),
        (
            r#"{"wiring_config": {}, "request": {}}"#,
            "wiring_config has no effect here: only a turn has a wiring",
        ),
    ] {
        let answer = kind(line);
        assert_eq!(
            (&answer["kind"], &answer["message"]),
            (&json!("config_error"), &json!(message)),
            "{line}"
        );
    }
}

#[test]
fn a_switched_off_engine_looks_at_nothing() {
    let engine = Engine::default();
    let off = r#"{"wiring_config": {"sched_enabled": false}, "request": 7}"#;
    assert_eq!(engine.turn_json(off), Answer::NotInvoked);
    let broken = r#"{"wiring_config": {"sched_enabled": "no"}, "request": {}}"#;
    assert!(matches!(engine.turn_json(broken), Answer::ConfigError(_)));
    let request = turn_request(StepFacts { attempt_index: 9, ..StepFacts::default() });
    assert_eq!(engine.turn(&Wiring::default().disabled(), &request), Ok(None));
}

#[test]
fn an_engine_or_a_wiring_out_of_range_cannot_exist() {
    for (budgets, field) in [
        (Budgets { max_retryable_reason_codes: 33, ..Budgets::default() }, "max_retryable_reason_codes"),
        (Budgets { max_diagnostics: 17, ..Budgets::default() }, "max_diagnostics"),
        (Budgets { max_backoff_ms: 86_400_001, ..Budgets::default() }, "max_backoff_ms"),
    ] {
        assert_eq!(Engine::new(budgets).unwrap_err().field, field);
        assert_eq!(Wiring::new(budgets).unwrap_err().field, field);
    }
}

/// The numbers of a step that its evaluation depends on.
#[derive(Clone, Copy, Debug)]
struct StepFacts {
    now_ns: u64,
    step_started_at_ns: u64,
    timeout_ms: u32,
    max_retries: u16,
    retry_backoff_ms: u32,
    attempt_index: u16,
    last_failure: Option<u32>,
}

impl Default for StepFacts {
    fn default() -> Self {
        Self {
            now_ns: 2_000_000_000,
            step_started_at_ns: 1_999_000_000,
            timeout_ms: 2_000,
            max_retries: 3,
            retry_backoff_ms: 1_000,
            attempt_index: 0,
            last_failure: Some(11),
        }
    }
}

fn step(facts: StepFacts) -> StepState<'static> {
    StepState {
        work: WorkOrder {
            tenant_id: Cow::Borrowed("tenant"),
            work_order_id: Cow::Borrowed("order"),
            step_id: Cow::Borrowed("step"),
        },
        now_ns: facts.now_ns,
        step_started_at_ns: facts.step_started_at_ns,
        timeout_ms: facts.timeout_ms,
        max_retries: facts.max_retries,
        retry_backoff_ms: facts.retry_backoff_ms,
        attempt_index: facts.attempt_index,
        last_failure_reason_code: facts.last_failure,
        retryable_reason_codes: Cow::Borrowed(&[11, 12]),
        wait_is_pause_only: true,
    }
}

fn turn_request(facts: StepFacts) -> TurnRequest<'static> {
    TurnRequest { schema_version: 1, correlation_id: 5, turn_id: 6, step: step(facts) }
}

fn facts() -> impl Strategy<Value = StepFacts> {
    let times = prop_oneof![
        (1..5_000_000_000_u64, 0..3_000_000_000_u64),
        (Just(u64::MAX - 2_000_000_000), 0..=2_000_000_000_u64),
    ];
    let last = prop_oneof![Just(None), Just(Some(11)), Just(Some(12)), Just(Some(99))];
    (times, 1..3_000_u32, 0..5_u16, 1..=300_000_u32, 0..6_u16, last).prop_map(
        |(
            (step_started_at_ns, elapsed),
            timeout_ms,
            max_retries,
            retry_backoff_ms,
            attempt_index,
            last_failure,
        )| {
            StepFacts {
                now_ns: step_started_at_ns + elapsed,
                step_started_at_ns,
                timeout_ms,
                max_retries,
                retry_backoff_ms,
                attempt_index,
                last_failure,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn an_evaluation_is_the_table_of_its_three_questions(facts in facts()) {
        let engine = Engine::default();
        let envelope = envelope();
        let request = EvaluateRequest { schema_version: 1, envelope, step: step(facts) };
        let evaluation = engine.evaluate(&request).unwrap();
        let timeout = facts.now_ns - facts.step_started_at_ns >= u64::from(facts.timeout_ms) * 1_000_000;
        let spent = facts.attempt_index >= facts.max_retries;
        let retryable = matches!(facts.last_failure, Some(11 | 12));
        let reason = match (timeout, spent, retryable) {
            (true, _, _) => ReasonCode::Timeout,
            (_, true, _) => ReasonCode::MaxRetriesReached,
            (_, _, false) => ReasonCode::NotRetryable,
            _ => ReasonCode::OkPolicyEvaluate,
        };
        prop_assert_eq!(evaluation.reason_code, reason);
        prop_assert_eq!((evaluation.timeout_exceeded, evaluation.max_retries_reached), (timeout, spent));
        prop_assert_eq!(evaluation.retry_allowed, reason == ReasonCode::OkPolicyEvaluate);
        prop_assert_eq!(evaluation.next_attempt_index, facts.attempt_index + u16::from(evaluation.retry_allowed));
    }

    #[test]
    fn a_turn_is_an_evaluation_and_a_computation_one_after_the_other(facts in facts()) {
        let engine = Engine::default();
        let request = turn_request(facts);
        let turn = engine.turn(&Wiring::default(), &request).unwrap().unwrap();
        let envelope = envelope();
        let evaluate = EvaluateRequest { schema_version: 1, envelope, step: step(facts) };
        let evaluation = engine.evaluate(&evaluate).unwrap();
        prop_assert_eq!(&turn.evaluation, &evaluation);
        let compute = ComputeRequest {
            schema_version: 1,
            envelope,
            work: evaluate.step.work.clone(),
            now_ns: facts.now_ns,
            retry_backoff_ms: evaluation.retry_backoff_ms,
            timeout_exceeded: evaluation.timeout_exceeded,
            max_retries_reached: evaluation.max_retries_reached,
            retry_allowed: evaluation.retry_allowed,
            attempt_index: evaluation.attempt_index,
            next_attempt_index: evaluation.next_attempt_index,
            wait_is_pause_only: true,
        };
        prop_assert_eq!(&turn.computation, &engine.compute(&compute).unwrap());
        let due = facts.now_ns.saturating_add(u64::from(facts.retry_backoff_ms) * 1_000_000);
        match turn.computation.decision.action {
            Action::RetryAt(at) => prop_assert!(evaluation.retry_allowed && at.as_nanos() == due),
            Action::Fail => prop_assert!(evaluation.timeout_exceeded || evaluation.max_retries_reached),
            Action::Wait(wake) => prop_assert!(!evaluation.retry_allowed && wake.is_none()),
        }
    }
}

fn envelope() -> Envelope {
    let Budgets { max_retryable_reason_codes, max_diagnostics, max_backoff_ms } = Budgets::default();
    Envelope { correlation_id: 5, turn_id: 6, max_retryable_reason_codes, max_diagnostics, max_backoff_ms }
}
