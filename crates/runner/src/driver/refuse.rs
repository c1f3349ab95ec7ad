//! Policies that would be accepted and then do nothing are refused by name, before anything runs.

use tidewheel_core::policy::{ExecutionMode, Kind, NodeInfo, OnFailure, Priority, Resolved, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::{Problem, Problems, Runnable};

use crate::react::SyncWork;

/// Checks that everything that the rules say can act.
///
/// # Errors
/// Every field that cannot act yet, with its rule.
pub fn check_rules(rules: &Rules) -> Result<(), Problems> {
    check_rules_at(rules, Home::Memory)
}

/// Where runs are kept: what a policy can do depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    Memory,
    Store,
}

fn check_rules_at(rules: &Rules, home: Home) -> Result<(), Problems> {
    let mut problems = Vec::new();
    for (index, rule) in rules.as_slice().iter().enumerate() {
        problems.extend(not_yet(rule.resolved(), home).into_iter().map(|field| {
            Problem::new(format!("policies[{index}].{field}"), "cannot act here yet")
                .help("leave it out: a field that is accepted acts")
        }));
    }
    Problems::check(problems, ())
}

/// Checks that everything that the rules of a run say can act on its nodes.
///
/// # Errors
/// Every field that cannot act, with its rule or its node.
pub(crate) fn check_run(
    run: &Run,
    home: Home,
    place: impl Fn(&NodeInfo<'_>) -> SyncWork,
) -> Result<(), Problems> {
    check_rules_at(run.rules(), home)?;
    let bounded = run.nodes().filter(|(node, policy, is_async)| {
        !is_async && node.kind != Kind::Join && is_bounded(policy) && place(node) == SyncWork::Inline
    });
    Problems::check(bounded.map(|(node, ..)| not_inline(&node)).collect(), ())
}

/// Checks that the timeouts of a policy can act on a piece of work where it is done.
///
/// # Errors
/// The node of the work.
pub(super) fn check_place(
    runnable: &Runnable,
    policy: &Resolved,
    sync_work: SyncWork,
) -> Result<(), Problems> {
    let is_blind = sync_work == SyncWork::Inline && !runnable.is_async() && is_bounded(policy);
    let problems = if is_blind { vec![not_inline(&runnable.node())] } else { Vec::new() };
    Problems::check(problems, ())
}

fn is_bounded(policy: &Resolved) -> bool {
    policy.timeout.span().is_some() || policy.total_timeout.span().is_some()
}

fn not_inline(node: &NodeInfo<'_>) -> Problem {
    let name = node.name.unwrap_or_else(|| node.kind.name());
    Problem::new(format!("{name}.timeout"), "cannot act: work that is not async cannot be given up inline")
        .help("run it on threads, make it async, or take the timeout away")
}

/// Checks one policy by itself.
///
/// # Errors
/// Every field that cannot act yet.
pub fn check_policy(policy: &Resolved) -> Result<(), Problems> {
    let problem = |field| {
        Problem::new(field, "cannot act here yet").help("leave it out: a field that is accepted acts")
    };
    Problems::check(not_yet(policy, Home::Memory).into_iter().map(problem).collect(), ())
}

fn not_yet(policy: &Resolved, home: Home) -> Vec<&'static str> {
    let on_failure = match policy.on_failure {
        OnFailure::Halt | OnFailure::Skip | OnFailure::Fallback => None,
        OnFailure::Compensate | OnFailure::DeadLetter | OnFailure::Pause => Some("on_failure"),
    };
    let mode = policy.execution_mode.filter(|mode| match mode {
        ExecutionMode::Sync | ExecutionMode::Async => false,
        // Nothing outlives memory.
        ExecutionMode::Durable => home == Home::Memory,
        ExecutionMode::External => true,
    });
    [
        on_failure,
        policy.compensation.as_ref().map(|_| "compensation"),
        policy.retry_budget.as_ref().map(|_| "retry_budget"),
        policy.circuit_breaker.as_ref().map(|_| "circuit_breaker"),
        mode.map(|_| "execution_mode"),
        (policy.priority != Priority::Normal).then_some("priority"),
        policy.idempotency_key.as_ref().map(|_| "idempotency_key"),
        policy.queue_timeout.map(|_| "queue_timeout"),
        policy.concurrency_limit.as_ref().map(|_| "concurrency_limit"),
        policy.rate_limit.as_ref().map(|_| "rate_limit"),
        policy.delay.map(|_| "delay"),
        policy.scheduled_at.map(|_| "scheduled_at"),
        policy.heartbeat.map(|_| "heartbeat"),
        policy.checkpoint_after.then_some("checkpoint_after"),
        policy.telemetry_prefix.as_ref().map(|_| "telemetry_prefix"),
        policy.log_level.map(|_| "log_level"),
        (!policy.metadata.is_empty()).then_some("metadata"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
