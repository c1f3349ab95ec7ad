//! A policy as somebody wrote it: the fields they care about, and what was wrong with them.

use serde::Serialize;

use super::backoff::{Backoff, Jitter};
use super::functions::{Compensation, Fallback, Function, IdempotencyKey};
use super::options::{
    CircuitBreaker, ConcurrencyLimit, ErrorMatcher, ExecutionMode, Limit, LogLevel, OnFailure, Priority,
    RateLimit, RetryBudget,
};
use super::resolved::Resolved;
use super::view::{Failure, NodeInfo, Overrides, Recovery};
use crate::document::{Problem, Problems};
use crate::fact::{Value, json_of};
use crate::time::{IntoLimit, IntoSpan, Span, SpanError, Timestamp};

/// Defines the fields once, so that none can be forgotten where all of them matter.
macro_rules! fields {
    ($($name:ident: $Type:ty,)+) => {
        /// How a piece of work is to be run, as far as somebody said.
        ///
        /// What is not said has its default. A value that means nothing is kept as a problem and reported
        /// when the policy is resolved, with every other problem.
        ///
        /// ```
        /// # use tidewheel_core as tidewheel;
        /// use tidewheel::policy::{Backoff, OnFailure, Policy};
        ///
        /// let policy = Policy::new().max_retries(3).backoff(Backoff::exponential()).timeout("10s");
        /// let resolved = policy.resolved()?;
        /// assert_eq!(resolved.max_retries, 3);
        /// assert_eq!(resolved.on_failure, OnFailure::Halt); // the default
        ///
        /// let error = Policy::new().timeout("ten seconds").resolved().unwrap_err();
        /// assert!(error.to_string().starts_with("timeout: `ten seconds` is no span of time"));
        /// # Ok::<(), tidewheel::Problems>(())
        /// ```
        #[derive(Clone, Debug, Default)]
        pub struct Policy {
            $(pub(super) $name: Option<$Type>,)+
            pub(super) problems: Vec<Problem>,
            /// Fields that somebody wrote in a way that means nothing.
            pub(super) unreadable: Vec<&'static str>,
        }

        impl Policy {
            /// The names of all fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($name),)+];

            /// Returns this policy with everything that `overrides` says laid over it.
            #[must_use]
            pub fn merge(mut self, overrides: Self) -> Self {
                $(if overrides.$name.is_some() {
                    self.forget_problems(stringify!($name));
                    self.$name = overrides.$name;
                })+
                self.problems.extend(overrides.problems);
                self.unreadable.extend(overrides.unreadable);
                self
            }

            /// Tells whether a field was said, by its name.
            #[must_use]
            pub fn says(&self, field: &str) -> bool {
                match field {
                    $(stringify!($name) => self.$name.is_some(),)+
                    _ => false,
                }
            }
        }
    };
}

fields! {
    max_retries: u32,
    backoff: Backoff,
    jitter: Jitter,
    base_delay: Span,
    max_delay: Span,
    timeout: Limit,
    total_timeout: Limit,
    deadline: Limit,
    on_failure: OnFailure,
    fallback: Fallback,
    compensation: Compensation,
    retryable_errors: Vec<ErrorMatcher>,
    non_retryable_errors: Vec<ErrorMatcher>,
    retry_budget: RetryBudget,
    circuit_breaker: CircuitBreaker,
    execution_mode: ExecutionMode,
    priority: Priority,
    idempotency_key: IdempotencyKey,
    queue_timeout: Span,
    concurrency_limit: ConcurrencyLimit,
    rate_limit: RateLimit,
    delay: Span,
    scheduled_at: Timestamp,
    heartbeat: Span,
    checkpoint_after: bool,
    telemetry_prefix: String,
    log_level: LogLevel,
    metadata: serde_json::Map<String, serde_json::Value>,
}

impl Policy {
    /// Returns a policy that says nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lays the policy over the defaults.
    ///
    /// # Errors
    /// Every value that means nothing and every pair of values that contradict each other.
    pub fn resolved(&self) -> Result<Resolved, Problems> {
        Problems::check(self.all_problems(), ()).map(|()| Resolved::laid_over_defaults(self))
    }

    /// How many attempts may follow the first.
    #[must_use]
    pub const fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// How the delay between attempts grows.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// How the delay is spread.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = Some(jitter);
        self
    }

    /// The first delay.
    #[must_use]
    pub fn base_delay(mut self, span: impl IntoSpan) -> Self {
        self.base_delay = self.span("base_delay", span);
        self
    }

    /// The longest delay.
    #[must_use]
    pub fn max_delay(mut self, span: impl IntoSpan) -> Self {
        self.max_delay = self.span("max_delay", span);
        self
    }

    /// How long one attempt may take: a span, or `"infinity"`, which is the default.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::Policy;
    /// use tidewheel::time::Span;
    ///
    /// assert_eq!(Policy::new().timeout("1m 30s").resolved()?.timeout.span(), Some(Span::from_secs(90)));
    /// assert_eq!(Policy::new().timeout("infinity").resolved()?.timeout.span(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn timeout(mut self, span: impl IntoLimit) -> Self {
        self.timeout = self.limit("timeout", span);
        self
    }

    /// How long all attempts may take together.
    #[must_use]
    pub fn total_timeout(mut self, span: impl IntoLimit) -> Self {
        self.total_timeout = self.limit("total_timeout", span);
        self
    }

    /// How long after the acceptance of its input the work may still run.
    #[must_use]
    pub fn deadline(mut self, span: impl IntoLimit) -> Self {
        self.deadline = self.limit("deadline", span);
        self
    }

    /// What happens when the work has failed for good.
    #[must_use]
    pub const fn on_failure(mut self, action: OnFailure) -> Self {
        self.on_failure = Some(action);
        self
    }

    /// What to do once after the last attempt failed: a function of the node, its input and the failure.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Policy, Recovery};
    ///
    /// // Where nobody answers, the rate of yesterday is better than none.
    /// let policy = Policy::new().max_retries(2).fallback(|_node, _input, _failure| Recovery::value(1.07));
    /// assert!(policy.says("fallback"));
    /// ```
    #[must_use]
    pub fn fallback(
        mut self,
        fallback: impl Fn(&NodeInfo<'_>, &Value, &Failure) -> Recovery + Send + Sync + 'static,
    ) -> Self {
        self.fallback = Some(Fallback::Function(Function::new(std::sync::Arc::new(fallback))));
        self
    }

    /// Takes a value as the result after the last attempt failed.
    #[must_use]
    pub fn fallback_value(mut self, value: impl Serialize) -> Self {
        match json_of(&value) {
            Ok(value) => self.fallback = Some(Fallback::Value(value)),
            Err(error) => {
                self.problems.push(Problem::new("fallback", format!("cannot be written as JSON: {error}")));
                self.unreadable.push("fallback");
            }
        }
        self
    }

    /// Runs the work once more with overrides after the last attempt failed.
    #[must_use]
    pub fn fallback_overrides(mut self, overrides: Overrides) -> Self {
        self.fallback = Some(Fallback::Overrides(overrides));
        self
    }

    /// How the finished work is undone: a function of the node and of what it had produced.
    #[must_use]
    pub fn compensation(
        mut self,
        undo: impl Fn(&NodeInfo<'_>, &Value) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.compensation = Some(Compensation::Function(Function::new(std::sync::Arc::new(undo))));
        self
    }

    /// The node that undoes the finished work.
    #[must_use]
    pub fn compensation_node(mut self, name: impl Into<String>) -> Self {
        self.compensation = Some(Compensation::Node(name.into()));
        self
    }

    /// Retries only these failures, by code, type or predicate.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{ErrorMatcher, Failure, Policy};
    ///
    /// let busy = [ErrorMatcher::from(429), ErrorMatcher::from("timeout")];
    /// let policy = Policy::new().max_retries(3).retryable_errors(busy).resolved()?;
    /// assert!(policy.retries(&Failure::new("too many requests").code(429)));
    /// assert!(!policy.retries(&Failure::new("no such account").code(404)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn retryable_errors<E: Into<ErrorMatcher>>(mut self, errors: impl IntoIterator<Item = E>) -> Self {
        self.retryable_errors = Some(errors.into_iter().map(Into::into).collect());
        self
    }

    /// Never retries these failures, by code, type or predicate.
    #[must_use]
    pub fn non_retryable_errors<E: Into<ErrorMatcher>>(
        mut self,
        errors: impl IntoIterator<Item = E>,
    ) -> Self {
        self.non_retryable_errors = Some(errors.into_iter().map(Into::into).collect());
        self
    }

    /// Takes each retry from a shared budget.
    #[must_use]
    pub fn retry_budget(mut self, name: impl Into<String>, tokens: u32, refill: impl IntoSpan) -> Self {
        if let Some(refill) = self.span("retry_budget.refill", refill) {
            self.retry_budget = Some(RetryBudget { name: name.into(), tokens, refill });
        }
        self
    }

    /// Stops calling what keeps failing.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{CircuitBreaker, Policy};
    ///
    /// let breaker = CircuitBreaker { failure_threshold: 3, ..CircuitBreaker::new("bank") };
    /// let policy = Policy::new().circuit_breaker(breaker); // shared by all work that names `bank`
    /// assert!(policy.resolved().is_ok());
    /// ```
    #[must_use]
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.circuit_breaker = Some(breaker);
        self
    }

    /// How the work is executed.
    #[must_use]
    pub const fn execution_mode(mut self, mode: ExecutionMode) -> Self {
        self.execution_mode = Some(mode);
        self
    }

    /// Who goes first when slots are few.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// What makes two pieces of work the same: a function of the node and its input.
    #[must_use]
    pub fn idempotency_key(
        mut self,
        key: impl Fn(&NodeInfo<'_>, &Value) -> String + Send + Sync + 'static,
    ) -> Self {
        self.idempotency_key = Some(IdempotencyKey::Function(Function::new(std::sync::Arc::new(key))));
        self
    }

    /// What makes two pieces of work the same: a text with `${…}` in it.
    #[must_use]
    pub fn idempotency_key_template(mut self, template: impl Into<String>) -> Self {
        self.idempotency_key = Some(IdempotencyKey::Template(template.into()));
        self
    }

    /// What makes two pieces of work the same among all that name this scope, whatever their node and workflow: a
    /// function of the node and its input.
    #[must_use]
    pub fn shared_idempotency_key(
        self,
        scope: impl Into<String>,
        key: impl Fn(&NodeInfo<'_>, &Value) -> String + Send + Sync + 'static,
    ) -> Self {
        self.idempotency_key(key).sharing_key(scope.into())
    }

    /// What makes two pieces of work the same among all that name this scope, whatever their node and workflow: a text
    /// with `${…}` in it.
    #[must_use]
    pub fn shared_idempotency_key_template(
        self,
        scope: impl Into<String>,
        template: impl Into<String>,
    ) -> Self {
        self.idempotency_key_template(template).sharing_key(scope.into())
    }

    fn sharing_key(mut self, scope: String) -> Self {
        let share = |key| IdempotencyKey::Shared { scope, key: Box::new(key) };
        self.idempotency_key = self.idempotency_key.map(share);
        self
    }

    /// How long the work may wait for a slot.
    #[must_use]
    pub fn queue_timeout(mut self, span: impl IntoSpan) -> Self {
        self.queue_timeout = self.span("queue_timeout", span);
        self
    }

    /// How many pieces of this work may run at once.
    #[must_use]
    pub fn concurrency_limit(mut self, limit: u32) -> Self {
        self.concurrency_limit = Some(ConcurrencyLimit { limit, name: None });
        self
    }

    /// How many pieces of work that share a name may run at once.
    #[must_use]
    pub fn shared_concurrency_limit(mut self, name: impl Into<String>, limit: u32) -> Self {
        self.concurrency_limit = Some(ConcurrencyLimit { limit, name: Some(name.into()) });
        self
    }

    /// How many pieces of this work may start in any window.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::Policy;
    ///
    /// let policy = Policy::new().rate_limit(100, "1m").resolved()?;
    /// assert_eq!(policy.rate_limit.map(|rate| rate.count), Some(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rate_limit(mut self, count: u32, window: impl IntoSpan) -> Self {
        if let Some(window) = self.span("rate_limit.window", window) {
            self.rate_limit = Some(RateLimit { count, window, name: None });
        }
        self
    }

    /// How many pieces of work that share a name may start in any window.
    #[must_use]
    pub fn shared_rate_limit(mut self, name: impl Into<String>, count: u32, window: impl IntoSpan) -> Self {
        if let Some(window) = self.span("rate_limit.window", window) {
            self.rate_limit = Some(RateLimit { count, window, name: Some(name.into()) });
        }
        self
    }

    /// How long to wait before the first attempt.
    #[must_use]
    pub fn delay(mut self, span: impl IntoSpan) -> Self {
        self.delay = self.span("delay", span);
        self
    }

    /// When the first attempt may start.
    #[must_use]
    pub const fn scheduled_at(mut self, instant: Timestamp) -> Self {
        self.scheduled_at = Some(instant);
        self
    }

    /// How long the work may be silent.
    #[must_use]
    pub fn heartbeat(mut self, span: impl IntoSpan) -> Self {
        self.heartbeat = self.span("heartbeat", span);
        self
    }

    /// Whether the state of the run is kept as a whole after this work.
    #[must_use]
    pub const fn checkpoint_after(mut self, checkpoint: bool) -> Self {
        self.checkpoint_after = Some(checkpoint);
        self
    }

    /// What the names of its telemetry begin with.
    #[must_use]
    pub fn telemetry_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.telemetry_prefix = Some(prefix.into());
        self
    }

    /// The level at which its events are logged.
    #[must_use]
    pub const fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Adds something that telemetry and logs carry along.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Tells whether somebody wrote a field in a way that means nothing.
    pub(super) fn tried(&self, field: &str) -> bool {
        self.unreadable.contains(&field)
    }

    fn span(&mut self, field: &'static str, span: impl IntoSpan) -> Option<Span> {
        self.understood(field, span.into_span())
    }

    fn limit(&mut self, field: &'static str, span: impl IntoLimit) -> Option<Limit> {
        let limit = self.understood(field, span.into_limit())?;
        Some(limit.map_or(Limit::Infinity, Limit::After))
    }

    /// Keeps what was wrong with a field until it is said again.
    fn understood<T>(&mut self, field: &'static str, given: Result<T, SpanError>) -> Option<T> {
        let head = field.split('.').next().unwrap_or(field);
        self.forget_problems(head);
        match given {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.push(Problem::new(field, error.to_string()));
                self.unreadable.push(head);
                None
            }
        }
    }

    /// Forgets what was wrong with a field, because it is said anew.
    fn forget_problems(&mut self, field: &str) {
        self.problems.retain(|problem| problem.path.split('.').next() != Some(field));
        self.unreadable.retain(|unreadable| *unreadable != field);
    }
}
