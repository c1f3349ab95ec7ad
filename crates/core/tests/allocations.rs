//! What must not allocate does not: a decision, a turn over structs, the resolution of a policy.

use std::borrow::Cow;

use tidewheel_core::decide::{
    Engine, RetryPolicy, Situation, StepState, TurnRequest, Wiring, WorkOrder, decide,
};
use tidewheel_core::policy::{self, Jitter, JitterSeed, NodeInfo, Policy, Rules};
use tidewheel_core::time::Timestamp;
use tidewheel_testkit::{CountingAllocator, allocations_in};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_decision_allocates_nothing() {
    let policy = RetryPolicy::from(&Policy::llm().jitter(Jitter::Full).resolved().unwrap());
    let situation = Situation::failed(2, Timestamp::from_millis(1), JitterSeed::new("run", "node"));
    let (count, decision) = allocations_in(|| decide(&policy, &situation));
    assert_eq!(count, 0);
    assert_eq!(decision.attempt_next, 3);
}

#[test]
fn a_turn_over_structs_allocates_nothing() {
    let request = TurnRequest {
        schema_version: 1,
        correlation_id: 1,
        turn_id: 1,
        step: StepState {
            work: WorkOrder {
                tenant_id: Cow::Borrowed("tenant"),
                work_order_id: Cow::Borrowed("order"),
                step_id: Cow::Borrowed("step"),
            },
            now_ns: 2_000_000_000,
            step_started_at_ns: 1_000_000_000,
            timeout_ms: 60_000,
            max_retries: 3,
            retry_backoff_ms: 1_000,
            attempt_index: 0,
            last_failure_reason_code: Some(11),
            retryable_reason_codes: Cow::Borrowed(&[11, 12]),
            wait_is_pause_only: true,
        },
    };
    let (engine, wiring) = (Engine::default(), Wiring::default());
    let (count, turn) = allocations_in(|| engine.turn(&wiring, &request));
    assert_eq!(count, 0);
    assert!(turn.unwrap().unwrap().evaluation.retry_allowed);
}

#[test]
fn a_resolution_allocates_nothing() {
    let rules = Rules::new([
        (policy::name("other"), Policy::new()),
        (policy::pattern("^llm_"), Policy::llm()),
        (policy::default(), Policy::io()),
    ])
    .unwrap();
    let node = NodeInfo::step("llm_classify");
    // A pattern prepares its scratch space the first time a thread uses it.
    assert_eq!(rules.resolve(&node).rule, Some(1));
    let (count, resolution) = allocations_in(|| rules.resolve(&node));
    assert_eq!(count, 0);
    assert_eq!(resolution.policy.max_retries, 3);
}
