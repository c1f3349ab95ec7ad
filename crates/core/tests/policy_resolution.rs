//! How a node gets its policy: the scenarios F1 to F9, then the laws of resolution.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tidewheel_core::policy::{
    self, Backoff, ExecutionMode, Jitter, Kind, Limit, Matcher, NodeInfo, OnFailure, Overlay, Policy,
    Priority, Rules,
};
use tidewheel_core::time::Span;

fn retries(rules: &Rules, node: &NodeInfo<'_>) -> u32 {
    rules.resolve(node).policy.max_retries
}

fn times(count: u32) -> Policy {
    Policy::new().max_retries(count)
}

#[test]
fn f1_the_defaults() {
    let policy = Policy::default().resolved().unwrap();
    assert_eq!(policy.max_retries, 0);
    assert_eq!(policy.delays.backoff, Backoff::None);
    assert_eq!(policy.delays.jitter, Jitter::None);
    assert_eq!(policy.delays.base, Span::from_millis(500));
    assert_eq!(policy.delays.max, Span::from_millis(30_000));
    assert_eq!(policy.timeout, Limit::Infinity);
    assert_eq!(policy.total_timeout, Limit::Infinity);
    assert_eq!(policy.deadline, Limit::Infinity);
    assert_eq!(policy.on_failure, OnFailure::Halt);
    assert!(policy.fallback.is_none() && policy.compensation.is_none());
    assert_eq!(policy.mode_in_memory(), ExecutionMode::Sync);
    assert_eq!(policy.priority, Priority::Normal);
    assert!(policy.retryable_errors.is_none() && policy.non_retryable_errors.is_empty());
    assert!(
        policy.retry_budget.is_none() && policy.circuit_breaker.is_none() && policy.idempotency_key.is_none()
    );
    assert!(
        policy.queue_timeout.is_none() && policy.concurrency_limit.is_none() && policy.rate_limit.is_none()
    );
    assert!(policy.delay.is_none() && policy.scheduled_at.is_none() && policy.heartbeat.is_none());
    assert!(!policy.checkpoint_after && policy.telemetry_prefix.is_none());
    assert!(policy.log_level.is_none() && policy.metadata.is_empty());
}

#[test]
fn f2_names_match_exactly_and_patterns_match_names() {
    let rules =
        Rules::new([(policy::name("generate"), times(7)), (policy::pattern("^llm_"), times(3))]).unwrap();
    assert_eq!(retries(&rules, &NodeInfo::step("generate")), 7);
    assert_eq!(retries(&rules, &NodeInfo::step("generate_more")), 0);
    assert_eq!(retries(&rules, &NodeInfo::step("llm_classify")), 3);
    assert_eq!(retries(&rules, &NodeInfo::step("llm_summarize")), 3);
    assert_eq!(retries(&rules, &NodeInfo::step("classify")), 0);
    assert_eq!(retries(&rules, &NodeInfo::step("not_llm_")), 0);
}

#[test]
fn f3_kinds_tags_predicates_and_default() {
    let tags = ["slow".to_owned()];
    let tagged = NodeInfo { name: Some("x"), kind: Kind::Reduce, tags: &tags };
    let rules = Rules::new([
        (policy::kind(Kind::Condition), times(1)),
        (policy::kinds([Kind::Map, Kind::Accumulator]), times(2)),
        (policy::tag("slow"), times(3)),
        (policy::predicate(|node| node.name == Some("special")), times(4)),
        (policy::default(), times(5)),
    ])
    .unwrap();
    assert_eq!(retries(&rules, &NodeInfo::unnamed(Kind::Condition)), 1);
    assert_eq!(retries(&rules, &NodeInfo::unnamed(Kind::Map)), 2);
    assert_eq!(retries(&rules, &NodeInfo::unnamed(Kind::Accumulator)), 2);
    assert_eq!(retries(&rules, &tagged), 3);
    assert_eq!(retries(&rules, &NodeInfo::step("special")), 4);
    assert_eq!(retries(&rules, &NodeInfo::step("other")), 5);
}

#[test]
fn f4_a_node_without_a_name_falls_through_to_the_default_rule() {
    let rules = Rules::new([
        (policy::name("join"), times(1)),
        (policy::pattern(".*"), times(2)),
        (policy::predicate(|node| node.name.is_some()), times(3)),
        (policy::default(), times(99)),
    ])
    .unwrap();
    assert_eq!(retries(&rules, &NodeInfo::unnamed(Kind::Join)), 99);
}

#[test]
fn f5_the_first_match_wins_and_is_laid_over_the_defaults_not_over_later_rules() {
    let rules = Rules::new([
        (policy::name("s"), times(10)),
        (policy::name("s"), times(20).timeout("1s")),
        (policy::default(), Policy::new().priority(Priority::High)),
    ])
    .unwrap();
    let resolution = rules.resolve(&NodeInfo::step("s"));
    assert_eq!((resolution.rule, resolution.policy.max_retries), (Some(0), 10));
    assert_eq!(resolution.policy.timeout, Limit::Infinity);
    assert_eq!(resolution.policy.priority, Priority::Normal);
}

#[test]
fn f6_runtime_rules_come_first_or_alone_and_none_change_nothing() {
    let base = Rules::new([(policy::name("s"), times(1)), (policy::name("t"), times(2))]).unwrap();
    let runtime = || Some(Rules::new([(policy::name("s"), times(5))]).unwrap());
    let (s, t) = (NodeInfo::step("s"), NodeInfo::step("t"));

    let merged = base.overlaid(runtime(), Overlay::Merge);
    assert_eq!((retries(&merged, &s), retries(&merged, &t)), (5, 2));
    let replaced = base.overlaid(runtime(), Overlay::Replace);
    assert_eq!((retries(&replaced, &s), retries(&replaced, &t)), (5, 0));
    for unchanged in [
        base.overlaid(None, Overlay::Merge),
        base.overlaid(None, Overlay::Replace),
        base.overlaid(Some(Rules::default()), Overlay::Merge),
    ] {
        assert_eq!((retries(&unchanged, &s), retries(&unchanged, &t)), (1, 2));
    }
    let empty = Rules::default().resolve(&s).policy.max_retries;
    assert_eq!(empty, Policy::default().resolved().unwrap().max_retries);
}

#[test]
fn f7_a_predicate_is_called_only_until_something_matches() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = |answer: bool| {
        let calls = Arc::clone(&calls);
        policy::predicate(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            answer
        })
    };
    let rules = Rules::new([
        (policy::name("early"), times(1)),
        (counted(false), times(2)),
        (counted(true), times(3)),
        (counted(true), times(4)),
    ])
    .unwrap();
    assert_eq!(retries(&rules, &NodeInfo::step("early")), 1);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(retries(&rules, &NodeInfo::step("late")), 3);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn f8_unknown_fields_and_wrong_types_are_refused_when_a_policy_is_made() {
    for (text, part) in [
        ("max_retires = 3", "did you mean `max_retries`?"),
        ("max_retries = 'three'", "must be an integer, found a string"),
        ("max_retries = -1", "must be within 0..=4294967295, got -1"),
        (
            "on_failure = 'explode'",
            "must be one of halt, skip, fallback, compensate, dead_letter, pause, got `explode`",
        ),
    ] {
        let error = Policy::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn f9_presets_and_what_may_be_laid_over_them() {
    let llm = Policy::llm().resolved().unwrap();
    assert_eq!(
        (llm.max_retries, llm.delays.backoff, llm.on_failure),
        (3, Backoff::exponential(), OnFailure::Halt)
    );
    assert_eq!((llm.delays.base, llm.delays.max), (Span::from_secs(1), Span::from_secs(30)));
    assert_eq!(llm.timeout, Limit::After(Span::from_secs(30)));

    let io = Policy::io().resolved().unwrap();
    assert_eq!((io.max_retries, io.delays.backoff, io.on_failure), (2, Backoff::Linear, OnFailure::Skip));
    assert_eq!((io.delays.base, io.timeout), (Span::from_millis(500), Limit::After(Span::from_secs(10))));

    let fast = Policy::fast_fail().resolved().unwrap();
    assert_eq!((fast.max_retries, fast.on_failure), (0, OnFailure::Halt));
    assert_eq!(fast.timeout, Limit::After(Span::from_secs(5)));

    let tuned = Policy::llm().max_retries(9).timeout("1m").resolved().unwrap();
    assert_eq!((tuned.max_retries, tuned.timeout), (9, Limit::After(Span::from_secs(60))));
    assert_eq!(tuned.delays, llm.delays);
    let merged = Policy::io().merge(Policy::new().max_retries(0).backoff(Backoff::None)).resolved().unwrap();
    assert_eq!(
        (merged.max_retries, merged.delays.backoff, merged.on_failure),
        (0, Backoff::None, OnFailure::Skip)
    );
}

/// A matcher as data, so that a naive evaluator can read it too.
#[derive(Clone, Debug)]
enum Plain {
    Name(&'static str),
    Prefix(&'static str),
    Kind(Kind),
    Tag(&'static str),
    Predicate(bool),
    Default,
}

impl Plain {
    fn matcher(&self) -> Matcher {
        match self.clone() {
            Self::Name(name) => policy::name(name),
            Self::Prefix(prefix) => policy::pattern(&format!("^{prefix}")),
            Self::Kind(kind) => policy::kind(kind),
            Self::Tag(tag) => policy::tag(tag),
            Self::Predicate(answer) => policy::predicate(move |_| answer),
            Self::Default => policy::default(),
        }
    }

    fn accepts(&self, name: Option<&str>, kind: Kind, tags: &[String]) -> bool {
        match self {
            Self::Name(wanted) => name == Some(wanted),
            Self::Prefix(prefix) => name.is_some_and(|name| name.starts_with(prefix)),
            Self::Kind(wanted) => kind == *wanted,
            Self::Tag(wanted) => tags.iter().any(|tag| tag == wanted),
            Self::Predicate(answer) => *answer,
            Self::Default => true,
        }
    }
}

const NAMES: [&str; 5] = ["a", "ab", "abc", "b", ""];

fn plain() -> impl Strategy<Value = Plain> {
    prop_oneof![
        prop::sample::select(&NAMES[..4]).prop_map(Plain::Name),
        prop::sample::select(&NAMES[..]).prop_map(Plain::Prefix),
        prop::sample::select(Kind::ALL).prop_map(Plain::Kind),
        prop::sample::select(&NAMES[..4]).prop_map(Plain::Tag),
        prop::bool::weighted(0.2).prop_map(Plain::Predicate),
        Just(Plain::Default),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn resolution_is_the_first_match_for_every_list_and_every_node(
        rules in prop::collection::vec(plain(), 0..8),
        name in prop::option::of(prop::sample::select(&NAMES[..])),
        kind in prop::sample::select(Kind::ALL),
        tags in prop::collection::vec(prop::sample::select(&NAMES[..4]).prop_map(str::to_owned), 0..3),
    ) {
        let checked = Rules::new(rules.iter().zip(1..).map(|(plain, count)| (plain.matcher(), times(count)))).unwrap();
        let node = NodeInfo { name, kind, tags: &tags };
        let expected = rules.iter().position(|plain| plain.accepts(name, kind, &tags));
        let resolution = checked.resolve(&node);
        prop_assert_eq!(resolution.rule, expected);
        let count = expected.map_or(0, |index| u32::try_from(index).unwrap() + 1);
        prop_assert_eq!(resolution.policy.max_retries, count);
        for (never, because) in checked.unreachable() {
            prop_assert!(because < never && expected != Some(never), "rule {} was said never to win", never);
        }
    }
}
