//! The values that policy fields take.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::functions::Function;
use super::resolved::Resolved;
use super::view::{ErrorCode, Failure};
use crate::time::Span;

/// Defines an enum whose variants are words in policy files and logs.
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $Name:ident { $($(#[$vmeta:meta])* $Variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name { $($(#[$vmeta])* $Variant,)+ }

        impl $Name {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$Variant,)+];

            /// Returns the word that files and logs use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $word,)+ }
            }

            /// Returns the variant with that word.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.name() == name)
            }
        }

        impl ::std::fmt::Display for $Name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::serde::Serialize for $Name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $Name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <::std::borrow::Cow<'de, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                Self::from_name(&word).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|variant| variant.name()).collect();
                    ::serde::de::Error::custom(format!("`{word}` is none of {}", known.join(", ")))
                })
            }
        }
    };
}
pub(crate) use word_enum;

word_enum! {
    /// What happens when work has failed for good and no fallback helps.
    pub enum OnFailure {
        /// The work is failed; what depends on it does not run.
        Halt = "halt",
        /// The work is skipped; what depends on it does not run.
        Skip = "skip",
        /// The fallback decides; needs one.
        Fallback = "fallback",
        /// What was done is undone, in reverse order.
        Compensate = "compensate",
        /// The work is put aside with its input, error and history, to be driven again later.
        DeadLetter = "dead_letter",
        /// The run waits for a person.
        Pause = "pause",
    }
}

word_enum! {
    /// How work is executed.
    pub enum ExecutionMode {
        /// Inline; with a store, its completion is stored and it may run again after a crash.
        Sync = "sync",
        /// Beside other work.
        Async = "async",
        /// Stored before it starts and after it ends.
        Durable = "durable",
        /// Completed from outside by a token.
        External = "external",
    }
}

word_enum! {
    /// Who goes first when slots are few.
    pub enum Priority {
        /// Before the others.
        High = "high",
        /// Like most.
        Normal = "normal",
        /// After the others, but not never.
        Low = "low",
    }
}

word_enum! {
    /// The level at which a policy's events are logged.
    pub enum LogLevel {
        /// Not at all.
        Off = "off",
        /// A human must act.
        Error = "error",
        /// Recovered, look later.
        Warn = "warn",
        /// A state changed.
        Info = "info",
        /// Why.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

word_enum! {
    /// What an open circuit breaker does to work.
    pub enum OnOpen {
        /// It waits until the breaker lets a probe through.
        Wait = "wait",
        /// It fails.
        Fail = "fail",
        /// It is skipped, whatever `on_failure` says.
        Skip = "skip",
    }
}

/// A bound in time that may be absent on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No bound.
    #[default]
    Infinity,
    /// This long.
    After(Span),
}

impl Limit {
    /// Returns the span of a bound that exists.
    #[must_use]
    pub const fn span(self) -> Option<Span> {
        match self {
            Self::Infinity => None,
            Self::After(span) => Some(span),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Infinity => f.write_str("infinity"),
            Self::After(span) => span.fmt(f),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// At most so many starts in any window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// How many.
    pub count: u32,
    /// In how long.
    pub window: Span,
    /// Shared by everything with this name; by the rule's work without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// At most so many pieces of work at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyLimit {
    /// How many.
    pub limit: u32,
    /// Shared by everything with this name; by the rule's work without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Stops calling what keeps failing, for everything that shares the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitBreaker {
    /// Who shares it.
    pub name: String,
    /// How many failures in a row open it.
    pub failure_threshold: u32,
    /// How long it stays open.
    pub reset_timeout: Span,
    /// How many probes may pass when it is half open; as many successes close it.
    pub half_open_permits: u32,
    /// What it does to work while it is open.
    pub on_open: OnOpen,
}

impl CircuitBreaker {
    /// Returns a breaker that opens after 5 failures in a row, for 60 seconds, and lets one probe through.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            failure_threshold: 5,
            reset_timeout: Span::from_secs(60),
            half_open_permits: 1,
            on_open: OnOpen::Wait,
        }
    }
}

/// A shared allowance of retries, so that an outage is not made worse by everybody retrying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetryBudget {
    /// Who shares it.
    pub name: String,
    /// How many retries it holds at most.
    pub tokens: u32,
    /// How long it takes to get one back.
    pub refill: Span,
}

/// Returns what a policy shares with others by name: the field, the name, and the settings as text. One name
/// has one state, so it must have one set of settings.
pub(super) fn shared_settings(policy: &Resolved) -> Vec<(&'static str, String, String)> {
    let mut shared = Vec::new();
    if let Some(breaker) = &policy.circuit_breaker {
        let CircuitBreaker { failure_threshold, reset_timeout, half_open_permits, .. } = breaker;
        let settings = format!(
            "failure_threshold {failure_threshold}, reset_timeout {reset_timeout}, half_open_permits {half_open_permits}"
        );
        shared.push(("circuit_breaker", breaker.name.clone(), settings));
    }
    if let Some(budget) = &policy.retry_budget {
        let settings = format!("tokens {}, refill {}", budget.tokens, budget.refill);
        shared.push(("retry_budget", budget.name.clone(), settings));
    }
    if let Some(RateLimit { count, window, name: Some(name) }) = &policy.rate_limit {
        shared.push(("rate_limit", name.clone(), format!("count {count}, window {window}")));
    }
    if let Some(ConcurrencyLimit { limit, name: Some(name) }) = &policy.concurrency_limit {
        shared.push(("concurrency_limit", name.clone(), format!("limit {limit}")));
    }
    shared
}

/// Which failures a list of errors means.
#[derive(Clone, Debug)]
pub enum ErrorMatcher {
    /// A number: an exit code, a status, a reason code.
    Code(i64),
    /// A word: a failure's code, its type, or the last part of its type's path.
    Name(String),
    /// Whatever a function says.
    Predicate(Function<dyn Fn(&Failure) -> bool + Send + Sync>),
}

impl ErrorMatcher {
    /// Returns a matcher for an error type.
    #[must_use]
    pub fn of<E: 'static>() -> Self {
        Self::Name(std::any::type_name::<E>().to_owned())
    }

    /// Returns a matcher for whatever a function says.
    pub fn predicate(test: impl Fn(&Failure) -> bool + Send + Sync + 'static) -> Self {
        Self::Predicate(Function::new(std::sync::Arc::new(test)))
    }

    /// Tells whether it means this failure.
    #[must_use]
    pub fn matches(&self, failure: &Failure) -> bool {
        match self {
            Self::Code(number) => failure.code == Some(ErrorCode::Number(*number)),
            Self::Name(name) => {
                matches!(&failure.code, Some(ErrorCode::Word(word)) if word == name)
                    || failure.type_name.as_deref().is_some_and(|path| is_type(path, name))
            }
            Self::Predicate(test) => test.call()(failure),
        }
    }
}

/// Tells whether a path such as `app::api::RateLimited` is the type `RateLimited` or that very path.
pub(super) fn is_type(path: &str, name: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with("::"))
}

impl fmt::Display for ErrorMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
            Self::Predicate(_) => f.write_str("(function)"),
        }
    }
}

impl From<i64> for ErrorMatcher {
    fn from(number: i64) -> Self {
        Self::Code(number)
    }
}

impl From<&str> for ErrorMatcher {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for ErrorMatcher {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_meant_by_code_by_type_and_by_the_last_part_of_the_type() {
        let limited = Failure {
            code: Some(ErrorCode::Number(429)),
            type_name: Some("app::api::RateLimited".into()),
            ..Failure::default()
        };
        for (matcher, expected) in [
            (ErrorMatcher::from(429), true),
            (ErrorMatcher::from(500), false),
            (ErrorMatcher::from("RateLimited"), true),
            (ErrorMatcher::from("api::RateLimited"), true),
            (ErrorMatcher::from("app::api::RateLimited"), true),
            (ErrorMatcher::from("Limited"), false),
            (ErrorMatcher::from("429"), false),
            (ErrorMatcher::predicate(|failure| failure.message.is_empty()), true),
        ] {
            assert_eq!(matcher.matches(&limited), expected, "{matcher}");
        }
        assert!(ErrorMatcher::from("timeout").matches(&Failure::new("late").code("timeout")));
        assert!(ErrorMatcher::of::<std::fmt::Error>().matches(&Failure::of(&std::fmt::Error)));
    }
}
