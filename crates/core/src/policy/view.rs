//! The small views that policies see of the engine: the node, the failure, and the ways to recover.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::options::word_enum;
use crate::fact::Value;
use crate::time::Span;
use crate::work::{IntoWork, Work};

word_enum! {
    /// What a node is: a component of a workflow or a job of a template.
    pub enum Kind {
        /// Ordinary work.
        Step = "step",
        /// A question about a fact.
        Condition = "condition",
        /// A condition with a reaction.
        Rule = "rule",
        /// Waits for several facts of one lineage.
        Join = "join",
        /// Fans a list out.
        Map = "map",
        /// Folds a list.
        Reduce = "reduce",
        /// Keeps a state over facts.
        Accumulator = "accumulator",
        /// A state with reactions.
        StateMachine = "state_machine",
        /// Undoes what another component did.
        Compensation = "compensation",
        /// A job that the scheduler itself runs.
        Builtin = "builtin",
        /// A job that is a shell command.
        Shell = "shell",
        /// A job that is an agent.
        Agent = "agent",
        /// A job that opens or stays shut.
        Gate = "gate",
    }
}

/// What matchers see of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeInfo<'a> {
    /// The name; some nodes have none.
    pub name: Option<&'a str>,
    /// What it is.
    pub kind: Kind,
    /// What somebody wrote on it.
    pub tags: &'a [String],
}

impl<'a> NodeInfo<'a> {
    /// Returns the view of a step with a name and no tags.
    #[must_use]
    pub const fn step(name: &'a str) -> Self {
        Self { name: Some(name), kind: Kind::Step, tags: &[] }
    }

    /// Returns the view of a node without a name.
    #[must_use]
    pub const fn unnamed(kind: Kind) -> Self {
        Self { name: None, kind, tags: &[] }
    }
}

/// What policies see of a failure.
///
/// It can be written, and read back by [`Failure::from_json`]; it has no `Deserialize`, because work that
/// returns `Result<T, Failure>` could then not be told from work whose value is that `Result`.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use std::time::Duration;
/// use tidewheel::policy::{Failure, Policy};
///
/// let busy = Failure::new("too many requests").code(429).retry_after(Duration::from_secs(20));
/// let wrong = Failure::new("no such account").code("unknown_account").non_retryable();
/// let policy = Policy::new().max_retries(3).resolved()?;
/// assert!(policy.retries(&busy) && !policy.retries(&wrong));
/// assert_eq!(busy.to_string(), "[429] too many requests");
/// # Ok::<(), tidewheel::Problems>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// A number or a word that the failing work chose: `429`, `timeout`, `lost`.
    pub code: Option<ErrorCode>,
    /// The type of the error, with its path.
    pub type_name: Option<Cow<'static, str>>,
    /// What it says.
    pub message: String,
    /// How long the failure asks to wait before another attempt.
    pub retry_after: Option<Span>,
    /// Whether the failure itself says that another attempt is of no use.
    pub non_retryable: bool,
}

impl Failure {
    /// Returns a failure that only says something.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Returns the failure of an error, with its type and its chain of causes.
    pub fn of<E: std::error::Error>(error: &E) -> Self {
        let mut message = error.to_string();
        push_causes(&mut message, error.source());
        Self { type_name: Some(Cow::Borrowed(std::any::type_name::<E>())), message, ..Self::default() }
    }

    /// Returns the failure of an error whose type is not known, with its chain of causes.
    #[must_use]
    pub fn chain(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        push_causes(&mut message, error.source());
        Self::new(message)
    }

    /// Reads a failure that was written.
    ///
    /// # Errors
    /// The text is no failure.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let form: FailureForm<'_> = serde_json::from_str(text)?;
        Ok(Self {
            code: form.code,
            type_name: form.type_name.map(|name| Cow::Owned(name.into_owned())),
            message: form.message.into_owned(),
            retry_after: form.retry_after_ms.map(Span::from_millis),
            non_retryable: form.non_retryable,
        })
    }

    /// Puts a code on it.
    #[must_use]
    pub fn code(mut self, code: impl Into<ErrorCode>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Asks for a wait before another attempt, rounded up to whole milliseconds.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.retry_after = Some(Span::from_millis(millis).min(Span::LONGEST));
        self
    }

    /// Says that another attempt is of no use.
    #[must_use]
    pub const fn non_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }
}

/// The written form of a failure.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureForm<'a> {
    code: Option<ErrorCode>,
    type_name: Option<Cow<'a, str>>,
    message: Cow<'a, str>,
    retry_after_ms: Option<u64>,
    non_retryable: bool,
}

impl Serialize for Failure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FailureForm {
            code: self.code.clone(),
            type_name: self.type_name.as_deref().map(Cow::Borrowed),
            message: Cow::Borrowed(&self.message),
            retry_after_ms: self.retry_after.map(Span::as_millis),
            non_retryable: self.non_retryable,
        }
        .serialize(serializer)
    }
}

fn push_causes(message: &mut String, mut source: Option<&(dyn std::error::Error + 'static)>) {
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "[{code}] {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// A number or a word for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// An exit code, a status of HTTP, a reason code.
    Number(i64),
    /// A word such as `timeout`.
    Word(Cow<'static, str>),
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl From<i64> for ErrorCode {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&'static str> for ErrorCode {
    fn from(word: &'static str) -> Self {
        Self::Word(Cow::Borrowed(word))
    }
}

impl From<String> for ErrorCode {
    fn from(word: String) -> Self {
        Self::Word(Cow::Owned(word))
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Word(word) => serializer.serialize_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match (value.as_i64(), value.as_str()) {
            (Some(number), _) => Ok(Self::Number(number)),
            (_, Some(word)) => Ok(Self::Word(Cow::Owned(word.to_owned()))),
            _ => Err(serde::de::Error::custom("an error code is an integer or a word")),
        }
    }
}

/// Named values that a fallback gives to the work it retries.
pub type Overrides = serde_json::Map<String, serde_json::Value>;

/// How to go on after the last attempt failed.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// Take this value as the result.
    Value(Value),
    /// Run the same work once more with these overrides in its context.
    RetryWith(Overrides),
    /// Run other work once, on the same input.
    Run(Work),
}

impl Recovery {
    /// Takes a value as the result.
    pub fn value<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
        Self::Value(Value::new(value))
    }

    /// Runs the same work once more with overrides.
    pub fn retry_with<K: Into<String>, V: Into<serde_json::Value>>(
        overrides: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self::RetryWith(overrides.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// Runs other work once, on the same input: any function that could be a step.
    pub fn run<M>(work: impl IntoWork<M>) -> Self {
        Self::Run(work.into_work())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_what_policies_ask_for() {
        let failure = Failure::new("slow down").code(429).retry_after(Duration::from_micros(6_999_001));
        assert_eq!(failure.retry_after, Some(Span::from_secs(7)), "a wait is never cut short");
        let stored = serde_json::to_string(&failure).unwrap();
        assert_eq!(Failure::from_json(&stored).unwrap(), failure);
        assert_eq!(failure.to_string(), "[429] slow down");
        let longest = Failure::new("x").retry_after(Duration::MAX);
        let stored = serde_json::to_string(&longest).unwrap();
        assert_eq!(Failure::from_json(&stored).unwrap(), longest);
    }

    #[test]
    fn a_failure_tells_its_causes() {
        let error = "x".parse::<u8>().map_err(std::io::Error::other).unwrap_err();
        let outer = std::io::Error::other(error);
        assert_eq!(Failure::of(&outer).message, "invalid digit found in string");
    }
}
