//! Policies that would be accepted and then do nothing are refused by name, before anything runs.

use tidewheel_core::policy::{ExecutionMode, Kind, NodeInfo, OnFailure, Resolved, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::{Problem, Problems, Runnable};

use crate::react::SyncWork;

/// Checks that everything that the rules say can act.
///
/// # Errors
/// Every field that cannot act on pieces of work by themselves, with its rule.
pub fn check_rules(rules: &Rules) -> Result<(), Problems> {
    check_rules_at(rules, Home::Piece)
}

/// Where work is done and kept: what a policy can do depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// One piece of work by itself.
    Piece,
    Memory,
    Store,
}

fn check_rules_at(rules: &Rules, home: Home) -> Result<(), Problems> {
    let mut problems = Vec::new();
    for (index, rule) in rules.as_slice().iter().enumerate() {
        let at =
            |problem: Problem| Problem { path: format!("policies[{index}].{}", problem.path), ..problem };
        problems.extend(cannot_act(rule.resolved(), home).map(at));
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
    Problems::check(run.policy_problems().cloned().collect(), ())?;
    let workflow = run.workflow();
    let undoes = |name: &&str| workflow.node_info(name).is_some_and(|node| node.kind == Kind::Compensation);
    let unknown = run.rules().compensations().filter(|name| !undoes(name)).map(|name| {
        Problem::new("compensation", format!("`{name}` is no compensation of the workflow"))
            .help(format!("add compensation(\"{name}\", …)"))
    });
    let unable =
        run.nodes().filter(|(node, policy, _)| policy.compensation.is_some() && !can_be_undone(node));
    let unable = unable.map(|(node, ..)| {
        let name = node.name.unwrap_or_else(|| node.kind.name());
        Problem::new(
            format!("{name}.compensation"),
            format!("`{name}` cannot be undone: it is of kind {}", node.kind),
        )
        .help("name it for steps, rules, maps or reduces")
    });
    let unstorable = workflow.initial_states().filter(|_| home == Home::Store).filter_map(|(name, state)| {
        let why = state.unserialisable()?;
        Some(Problem::new(format!("{name}.initial"), format!("cannot be stored: {}", why.message)))
    });
    Problems::check(unknown.chain(unable).chain(unstorable).collect(), ())?;
    let bounded = run.nodes().filter_map(|(node, policy, is_async)| {
        let field = bound(policy).filter(|_| !is_async && node.kind != Kind::Join)?;
        (place(&node) == SyncWork::Inline).then(|| not_inline(&node, field))
    });
    Problems::check(bounded.collect(), ())
}

/// Checks that what bounds an attempt can act on a piece of work where it is done.
///
/// # Errors
/// The node of the work.
pub(super) fn check_place(
    runnable: &Runnable,
    policy: &Resolved,
    sync_work: SyncWork,
) -> Result<(), Problems> {
    let field = bound(policy).filter(|_| sync_work == SyncWork::Inline && !runnable.is_async());
    Problems::check(field.map(|field| not_inline(&runnable.node(), field)).into_iter().collect(), ())
}

/// Returns the field that may give an attempt up while it runs.
fn bound(policy: &Resolved) -> Option<&'static str> {
    let is_timed = policy.timeout.span().is_some() || policy.total_timeout.span().is_some();
    is_timed.then_some("timeout").or_else(|| policy.heartbeat.map(|_| "heartbeat"))
}

fn not_inline(node: &NodeInfo<'_>, field: &str) -> Problem {
    let name = node.name.unwrap_or_else(|| node.kind.name());
    Problem::new(format!("{name}.{field}"), "cannot act: work that is not async cannot be given up inline")
        .help(format!("run it on threads, make it async, or take the {field} away"))
}

/// Checks that a compensation would be found when it is needed: what is undone is looked up in the rules of the run.
///
/// # Errors
/// The policy is not that of the run.
pub(super) fn check_compensation(runnable: &Runnable, policy: &Resolved) -> Result<(), Problems> {
    let is_there = runnable.policy().compensation.is_some();
    let is_lost = policy.compensation.is_some() && !is_there;
    let problem = || {
        Problem::new("compensation", "cannot act: it is looked for in the rules of the run, which have none")
            .help("give the run the same rules, with Run::with_policies")
    };
    Problems::check(is_lost.then(problem).into_iter().collect(), ())
}

/// Checks that a policy can act on a piece of work by itself.
///
/// # Errors
/// Every field that cannot.
pub fn check_policy(policy: &Resolved) -> Result<(), Problems> {
    Problems::check(cannot_act(policy, Home::Piece).collect(), ())
}

/// Tells whether there is something to undo: a condition does nothing, and a state cannot go back.
const fn can_be_undone(node: &NodeInfo<'_>) -> bool {
    !matches!(node.kind, Kind::Condition | Kind::Accumulator | Kind::StateMachine)
}

fn cannot_act(policy: &Resolved, home: Home) -> impl Iterator<Item = Problem> {
    let needs_store = match home {
        Home::Store => None,
        Home::Memory | Home::Piece => Some((NEEDS_STORE, "start the run with a Runner")),
    };
    let needs_run = match home {
        Home::Store | Home::Memory => None,
        Home::Piece => Some((NEEDS_RUN, "drive the run with react_until_satisfied or a Runner")),
    };
    let on_failure = match policy.on_failure {
        OnFailure::Halt | OnFailure::Skip | OnFailure::Fallback | OnFailure::Compensate => false,
        OnFailure::DeadLetter | OnFailure::Pause => true,
    };
    let mode = policy.execution_mode.is_some_and(|mode| match mode {
        ExecutionMode::Sync | ExecutionMode::Async => false,
        ExecutionMode::Durable | ExecutionMode::External => true,
    });
    let fields = [
        (on_failure, "on_failure", needs_store),
        (mode, "execution_mode", needs_store),
        (policy.idempotency_key.is_some(), "idempotency_key", needs_store),
        (policy.checkpoint_after, "checkpoint_after", needs_store),
        (policy.retry_budget.is_some(), "retry_budget", needs_run),
        (policy.circuit_breaker.is_some(), "circuit_breaker", needs_run),
        (policy.concurrency_limit.is_some(), "concurrency_limit", needs_run),
        (policy.rate_limit.is_some(), "rate_limit", needs_run),
        (policy.delay.is_some(), "delay", needs_run),
        (policy.scheduled_at.is_some(), "scheduled_at", needs_run),
    ];
    let said = fields.into_iter().filter(|(is_said, ..)| *is_said);
    said.filter_map(|(_, field, why)| {
        let (why, help) = why?;
        Some(Problem::new(field, why).help(help))
    })
}

const NEEDS_STORE: &str = "cannot act in memory: it needs a store";
const NEEDS_RUN: &str = "cannot act on a piece of work by itself: it is about others, too";
