//! How work is run: what people write, and which policy a component gets.
//!
//! A [`Policy`] says only what matters; the rest has its defaults. Whoever has a [`Resolved`] need not check it again.
//!
//! ```
//! use tidewheel::policy::{
//!     Backoff, Coefficient, DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY, Delays, ExecutionMode, Jitter, JitterSeed, Limit,
//!     LogLevel, OnFailure, Policy, Priority, Resolved,
//! };
//! use tidewheel::time::Span;
//!
//! let policy = Policy::new()
//!     .max_retries(3)
//!     .backoff(Backoff::Exponential(Coefficient::from_number(1.5).ok_or("out of range")?))
//!     .jitter(Jitter::Full)
//!     .timeout("10s")
//!     .on_failure(OnFailure::Skip)
//!     .execution_mode(ExecutionMode::Durable)
//!     .priority(Priority::High)
//!     .log_level(LogLevel::Debug);
//! let resolved: Resolved = policy.resolved()?;
//! assert_eq!(resolved.timeout, Limit::After(Span::from_secs(10)));
//! assert_eq!(resolved.total_timeout, Limit::Infinity);
//!
//! let delays: &Delays = &resolved.delays;
//! assert_eq!((delays.base, delays.max), (DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY));
//! // Jitter is no chance: the same run, component and attempt give the same delay in every process.
//! let seed = JitterSeed::new("run-1", "fetch");
//! assert_eq!(delays.after(1, seed), delays.after(1, seed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Which policy a component gets is a list of rules, and the first match wins:
//!
//! ```
//! use tidewheel::policy::{
//!     Kind, Matcher, NodeInfo, Overlay, Pattern, Policy, RecordedPolicy, RecordedRule, Resolution, Rule, Rules,
//!     default, kind, kinds, name, pattern, predicate, tag,
//! };
//!
//! let rules = Rules::new([
//!     (name("charge"), Policy::new().max_retries(9)),
//!     (pattern("^llm_"), Policy::llm()),
//!     (tag("slow"), Policy::new().timeout("1h")),
//!     (kind(Kind::Condition), Policy::fast_fail()),
//!     (kinds([Kind::Map, Kind::Reduce]), Policy::io()),
//!     (predicate(|node| node.tags.len() > 3), Policy::new()),
//!     (default(), Policy::new().timeout("30s")),
//! ])?;
//! let Resolution { rule, policy, .. } = rules.resolve(&NodeInfo::step("llm_classify"));
//! assert_eq!((rule, policy.max_retries), (Some(1), 3));
//! let slow = ["slow".to_owned()];
//! assert_eq!(rules.resolve(&NodeInfo { tags: &slow, ..NodeInfo::step("sort") }).rule, Some(2));
//!
//! // What a list is made of can be looked at.
//! let second: &Rule = &rules.as_slice()[1];
//! let Matcher::Pattern(of_llms) = second.matcher() else { return Err("no pattern".into()) };
//! let of_llms: &Pattern = of_llms;
//! assert!(of_llms.fits("llm_write"));
//!
//! // A run may lay its own rules over them.
//! let hurried = Rules::new([(name("charge"), Policy::fast_fail())])?;
//! let overlaid = rules.overlaid(Some(hurried), Overlay::Merge);
//! assert_eq!(overlaid.resolve(&NodeInfo::step("charge")).rule, Some(0));
//!
//! // As text, in a file and back; functions are named and left out.
//! let recorded: RecordedPolicy = Policy::from_record(&Policy::llm().to_record())?;
//! assert!(recorded.functions.is_empty());
//! let recorded: RecordedRule = Rules::rule_from_record(&rules.to_records()[5])?;
//! assert!(recorded.matcher.is_none(), "a predicate is a function");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A failure has a code, a type and a message, and policies match it. What helps may be a value, other arguments or
//! other work:
//!
//! ```
//! use serde_json::json;
//! use tidewheel::policy::{
//!     Compensation, ErrorCode, ErrorMatcher, Failure, Fallback, FallbackFn, Function, IdempotencyKey, Overrides, Policy, Recovery,
//! };
//!
//! let failure = Failure::new("slow down").code(429);
//! assert_eq!(failure.code, Some(ErrorCode::Number(429)));
//! let policy = Policy::new()
//!     .max_retries(2)
//!     .retryable_errors([ErrorMatcher::Code(429), ErrorMatcher::of::<std::io::Error>(), "timeout".into()])
//!     .fallback(|_, _, failure| match &failure.code {
//!         Some(ErrorCode::Number(503)) => Recovery::retry_with([("model", "small")]),
//!         _ => Recovery::value("nobody knows"),
//!     })
//!     .idempotency_key_template("order-${order_id}")
//!     .compensation_node("refund")
//!     .resolved()?;
//! assert!(policy.retries(&failure) && !policy.retries(&Failure::new("wrong").code(400)));
//! assert!(matches!(&policy.idempotency_key, Some(IdempotencyKey::Template(text)) if text.ends_with("${order_id}")));
//! assert!(matches!(&policy.compensation, Some(Compensation::Node(node)) if node == "refund"));
//!
//! let Some(Fallback::Function(function)) = &policy.fallback else { return Err("no fallback".into()) };
//! let function: &Function<FallbackFn> = function;
//! let node = tidewheel::policy::NodeInfo::step("ask");
//! let input = tidewheel::fact::Value::new(1);
//! let Recovery::RetryWith(overrides) = function.call()(&node, &input, &Failure::new("down").code(503)) else {
//!     return Err("no other arguments".into());
//! };
//! let overrides: Overrides = overrides;
//! assert_eq!(overrides["model"], json!("small"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Limits are pure state machines, for schedulers of your own: they get the time, and remember who was let in.
//!
//! ```
//! use tidewheel::policy::{
//!     Admission, Breaker, Budget, CircuitBreaker, ConcurrencyLimit, OnOpen, Permit, Policy, Rate, RateLimit,
//!     RetryBudget, Slot, Slots,
//! };
//! use tidewheel::time::{Span, Timestamp};
//!
//! let now = Timestamp::from_millis(10_000);
//! let second = Span::from_secs(1);
//!
//! let limit = RateLimit { count: 2, window: second, name: None };
//! let mut rate = Rate::default();
//! assert_eq!([rate.take(&limit, now), rate.take(&limit, now)], [Slot::Now, Slot::Now]);
//! assert_eq!(rate.take(&limit, now), Slot::At(now.saturating_add(second)));
//!
//! let limit = ConcurrencyLimit { limit: 1, name: Some("db".to_owned()) };
//! let mut slots = Slots::default();
//! slots.take(7);
//! assert!(!slots.has_room(limit.limit));
//! slots.give_back(7);
//! assert!(slots.has_room(limit.limit));
//!
//! let config = CircuitBreaker { failure_threshold: 1, on_open: OnOpen::Fail, ..CircuitBreaker::new("api") };
//! let mut breaker = Breaker::default();
//! let Admission::Admitted(permit) = breaker.admit(&config, now) else { return Err("it is closed".into()) };
//! let permit: Permit = permit;
//! breaker.failed(&config, permit, now);
//! assert!(matches!(breaker.admit(&config, now), Admission::Refused(_)));
//!
//! let config = RetryBudget { name: "api".to_owned(), tokens: 1, refill: second };
//! let budget = Budget::default();
//! let spent = budget.take(&config, now).ok_or("there is one")?;
//! assert!(spent.take(&config, now).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_core::policy::{
    Admission, Backoff, Breaker, Budget, CircuitBreaker, Coefficient, Compensation, CompensationFn,
    ConcurrencyLimit, DEFAULT_BASE_DELAY, DEFAULT_MAX_DELAY, Delays, ErrorCode, ErrorMatcher, ExecutionMode,
    Failure, Fallback, FallbackFn, Function, IdempotencyKey, Jitter, JitterSeed, KeyFn, Kind, Limit,
    LogLevel, Matcher, NodeInfo, OnFailure, OnOpen, Overlay, Overrides, Pattern, Permit, Policy, Priority,
    Rate, RateLimit, RecordedPolicy, RecordedRule, Recovery, Resolution, Resolved, RetryBudget, Rule, Rules,
    Slot, Slots, default, kind, kinds, name, pattern, predicate, tag,
};
