//! The vectors of the decision engine, all of them, through the doors that users have.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use serde_json::value::RawValue;
use tidewheel_core::decide::{Engine, decide_json, delay_json};

/// A vector with its request as raw text, because its integers go beyond 2^53.
#[derive(serde::Deserialize)]
struct Facade<'a> {
    id: String,
    capability_id: String,
    #[serde(borrow)]
    engine_config: &'a RawValue,
    wiring_config: Option<&'a RawValue>,
    request: &'a RawValue,
    expected: serde_json::Value,
}

#[derive(serde::Deserialize)]
struct Kernel<'a> {
    id: String,
    kind: String,
    #[serde(borrow)]
    policy: &'a RawValue,
    context: Option<&'a RawValue>,
    seed: Option<&'a RawValue>,
    attempt_index: Option<u32>,
    expected: serde_json::Value,
}

#[derive(serde::Deserialize)]
struct Vectors<'a> {
    #[serde(borrow)]
    vectors: Vec<Facade<'a>>,
    extension_vectors: Vec<Kernel<'a>>,
}

const VECTORS: &str = include_str!("data/decision.json");

#[test]
fn every_facade_vector_is_answered_as_expected() {
    let vectors: Vectors<'_> = serde_json::from_str(VECTORS).unwrap();
    let engine = Engine::default();
    for vector in &vectors.vectors {
        let wiring = vector.wiring_config.map_or("null", RawValue::get);
        let line = format!(
            r#"{{"engine_config": {}, "wiring_config": {wiring}, "request": {}}}"#,
            vector.engine_config, vector.request
        );
        let answer = match vector.capability_id.as_str() {
            "SCHED_POLICY_EVALUATE" => engine.evaluate_json(&line),
            "SCHED_DECISION_COMPUTE" => engine.compute_json(&line),
            "SCHED_TURN" => engine.turn_json(&line),
            other => panic!("{}: no capability {other}", vector.id),
        };
        assert_answer(&vector.id, &vector.expected, &answer.to_json());
    }
    assert_eq!(vectors.vectors.len(), 149);
}

#[test]
fn every_kernel_vector_is_answered_as_expected() {
    let vectors: Vectors<'_> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors.extension_vectors {
        let answer = match vector.kind.as_str() {
            "decision" => {
                let line =
                    format!(r#"{{"policy": {}, "context": {}}}"#, vector.policy, vector.context.unwrap());
                decide_json(&line).to_json()
            }
            "delay" => {
                let (seed, attempt) = (vector.seed.unwrap(), vector.attempt_index.unwrap());
                let line =
                    format!(r#"{{"policy": {}, "seed": {seed}, "attempt_index": {attempt}}}"#, vector.policy);
                delay_json(&line).to_json()
            }
            other => panic!("{}: no kind {other}", vector.id),
        };
        assert_answer(&vector.id, &vector.expected, &answer);
    }
    assert_eq!(vectors.extension_vectors.len(), 48);
}

#[test]
fn the_order_of_the_code_list_is_not_observable() {
    let vectors: Vectors<'_> = serde_json::from_str(VECTORS).unwrap();
    let answer = |id: &str| {
        let vector = vectors.vectors.iter().find(|vector| vector.id == id).unwrap();
        Engine::default().evaluate_json(vector.request.get()).to_json()
    };
    assert_eq!(answer("E001"), answer("E006"));
}

/// What is expected is a part of the answer; the answer may say more.
fn assert_answer(id: &str, expected: &serde_json::Value, answer: &str) {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    assert!(includes(&answer, expected), "{id}: expected {expected}\n  got {answer}");
}

fn includes(whole: &serde_json::Value, part: &serde_json::Value) -> bool {
    match (whole, part) {
        (serde_json::Value::Object(whole), serde_json::Value::Object(part)) => {
            part.iter().all(|(key, expected)| whole.get(key).is_some_and(|found| includes(found, expected)))
        }
        _ => whole == part,
    }
}
