//! What somebody outside ends a piece of work with.

use std::fmt;
use std::str::FromStr;

use crate::fact::{RunId, RunnableId};

/// One attempt at a piece of work that somebody outside ends: `run:work:attempt`. Attempts of work that was given all
/// of them again say which time that is: `run:work:0.1`.
///
/// It is a name and no secret: whoever may write to the store may end the work.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::work::Token;
///
/// let text = "order:7:work_00112233445566778899aabbccddeeff:0";
/// let token: Token = text.parse()?;
/// assert_eq!(token.run.as_str(), "order:7");
/// assert_eq!(token.to_string(), text);
/// # Ok::<(), tidewheel::work::TokenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The run.
    pub run: RunId,
    /// The piece of work.
    pub work: RunnableId,
    /// The attempt, counted from zero.
    pub attempt: u32,
    /// How often the work was given all its attempts again.
    pub round: u32,
}

/// A text is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no token: one is `run:work:attempt`, as the work was given it")]
pub struct TokenError {
    /// The text.
    pub text: String,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.run, self.work, self.attempt)?;
        if self.round > 0 { write!(f, ".{}", self.round) } else { Ok(()) }
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A run may have colons in its id.
        let mut parts = text.rsplitn(3, ':');
        let token = (|| {
            let attempt = parts.next()?;
            let (attempt, round) = attempt.split_once('.').unwrap_or((attempt, "0"));
            let (attempt, round) = (attempt.parse().ok()?, round.parse().ok()?);
            let work = RunnableId::parse(parts.next()?)?;
            let run = parts.next().filter(|run| !run.is_empty())?;
            Some(Self { run: RunId::new(run), work, attempt, round })
        })();
        token.ok_or_else(|| TokenError { text: text.to_owned() })
    }
}
