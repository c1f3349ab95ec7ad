//! How long a decision takes: the bare kernel, and a whole turn of the façade from structs and from JSON.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has failed")]

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tidewheel_core::decide::{
    CircuitView, Engine, Outcome, RetryPolicy, Situation, StepState, TurnRequest, Wiring, WorkOrder, decide,
};
use tidewheel_core::policy::{Backoff, Coefficient, Jitter, JitterSeed, Policy};
use tidewheel_core::time::Timestamp;
use tidewheel_testkit::figure;

/// A decision may take this many nanoseconds.
const GOAL_NS: f64 = 50.0;

/// Goal: at most 50 ns a decision, whatever the outcome. An exponential backoff costs a step for each attempt
/// until its cap, which matters only for coefficients close to one.
///
/// For comparison in the same run: a backoff as people write it by hand, without limits, reasons or a circuit.
fn kernel(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel");
    let steady = RetryPolicy::from(&Policy::llm().total_timeout("10m").resolved().unwrap());
    let jittered =
        RetryPolicy::from(&Policy::llm().jitter(Jitter::Full).total_timeout("10m").resolved().unwrap());
    let failed = Situation::failed(2, Timestamp::from_millis(10_000), JitterSeed::new("run-1", "classify"));
    let open = Situation { circuit: CircuitView::OpenUntil(Timestamp::from_millis(20_000)), ..failed };
    let running = Situation { outcome: Outcome::Running, ..failed };
    // The slowest kind of policy: a coefficient just above one takes many small steps to a late attempt.
    let mut creeping = steady;
    creeping.max_retries = 1_000;
    creeping.delays.backoff = Backoff::Exponential(Coefficient::from_milli(1_010).unwrap());
    for (name, policy, situation) in [
        ("retry", steady, failed),
        ("retry_400_of_a_coefficient_of_1.01", creeping, Situation { attempt: 400, ..failed }),
        ("retry_with_jitter", jittered, failed),
        ("retries_spent", steady, Situation { attempt: 3, ..failed }),
        ("circuit_open", steady, open),
        ("running", steady, running),
    ] {
        if situation.attempt < 400 {
            figure::goal(&format!("kernel/{name}"), GOAL_NS);
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| decide(black_box(&policy), black_box(&situation)));
        });
    }
    group.bench_function("retry_comparison_backoff_by_hand", |bencher| {
        bencher.iter(|| {
            let (attempt, now_ms) = (black_box(2_u32), black_box(10_000_u64));
            (attempt < black_box(3)).then(|| now_ms + (black_box(1_000_u64) << attempt).min(30_000))
        });
    });
    group.finish();
}

/// For comparison in the same run: the same turn when the caller has to own every string, which is what an
/// interface over owned types costs before it decides anything.
fn turn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("turn");
    let (engine, wiring, request) = (Engine::default(), Wiring::default(), request());
    group.bench_function("from_structs", |bencher| {
        bencher.iter(|| {
            let turn = engine.turn(black_box(&wiring), black_box(&request));
            black_box(turn.is_ok())
        });
    });
    group.bench_function("from_structs_comparison_owned_strings", |bencher| {
        bencher.iter(|| {
            let owned = owned(black_box(&request));
            let turn = engine.turn(black_box(&wiring), &owned);
            black_box(turn.is_ok())
        });
    });
    let line = r#"{"tenant_id":"tenant_demo","work_order_id":"wo_123","step_id":"step_1","now_ns":2000000000,"step_started_at_ns":1999000000,"timeout_ms":2000,"max_retries":3,"retry_backoff_ms":1000,"attempt_index":0,"last_failure_reason_code":11,"retryable_reason_codes":[11,12],"wait_is_pause_only":true,"correlation_id":9801,"turn_id":2801}"#;
    group.bench_function("from_json", |bencher| {
        bencher.iter(|| black_box(engine.turn_json(black_box(line))));
    });
    group.bench_function("from_json_to_json", |bencher| {
        bencher.iter(|| engine.turn_json(black_box(line)).to_json());
    });
    group.bench_function("from_json_comparison_parse_only", |bencher| {
        bencher.iter(|| {
            serde_json::from_str::<serde_json::Value>(black_box(line)).map(|value| value.is_object())
        });
    });
    group.finish();
}

fn request() -> TurnRequest<'static> {
    TurnRequest {
        schema_version: 1,
        correlation_id: 9801,
        turn_id: 2801,
        step: StepState {
            work: WorkOrder {
                tenant_id: Cow::Borrowed("tenant_demo"),
                work_order_id: Cow::Borrowed("wo_123"),
                step_id: Cow::Borrowed("step_1"),
            },
            now_ns: 2_000_000_000,
            step_started_at_ns: 1_999_000_000,
            timeout_ms: 2_000,
            max_retries: 3,
            retry_backoff_ms: 1_000,
            attempt_index: 0,
            last_failure_reason_code: Some(11),
            retryable_reason_codes: Cow::Borrowed(&[11, 12]),
            wait_is_pause_only: true,
        },
    }
}

fn owned(request: &TurnRequest<'_>) -> TurnRequest<'static> {
    let step = &request.step;
    TurnRequest {
        step: StepState {
            work: WorkOrder {
                tenant_id: Cow::Owned(step.work.tenant_id.to_string()),
                work_order_id: Cow::Owned(step.work.work_order_id.to_string()),
                step_id: Cow::Owned(step.work.step_id.to_string()),
            },
            retryable_reason_codes: Cow::Owned(step.retryable_reason_codes.to_vec()),
            ..*step
        },
        ..*request
    }
}

criterion_group!(benches, kernel, turn);
criterion_main!(benches);
