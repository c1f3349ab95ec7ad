//! Which nodes a rule is for.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use super::functions::Function;
use super::view::{Failure, Kind, NodeInfo};
use crate::work::call_user;

/// A test of a node.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// The node with this name.
    Name(String),
    /// Nodes whose name fits a pattern.
    Pattern(Pattern),
    /// Nodes of a kind.
    Kind(Kind),
    /// Nodes of one of these kinds.
    Kinds(Vec<Kind>),
    /// Nodes with a tag.
    Tag(String),
    /// Whatever a function says.
    Predicate(Function<dyn Fn(&NodeInfo<'_>) -> bool + Send + Sync>),
    /// Every node.
    Default,
}

impl Matcher {
    /// Returns whether the node passes. A predicate that panics lets nothing pass.
    #[must_use]
    pub fn matches(&self, node: &NodeInfo<'_>) -> bool {
        self.try_matches(node).unwrap_or(false)
    }

    /// Returns whether the node passes.
    ///
    /// # Errors
    /// The predicate panicked.
    pub fn try_matches(&self, node: &NodeInfo<'_>) -> Result<bool, Failure> {
        Ok(match self {
            Self::Name(name) => node.name == Some(name),
            Self::Pattern(pattern) => node.name.is_some_and(|name| pattern.fits(name)),
            Self::Kind(kind) => node.kind == *kind,
            Self::Kinds(kinds) => kinds.contains(&node.kind),
            Self::Tag(tag) => node.tags.contains(tag),
            Self::Predicate(test) => call_user(|| test.call()(node))?,
            Self::Default => true,
        })
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "name {name}"),
            Self::Pattern(pattern) => write!(f, "pattern {}", pattern.text()),
            Self::Kind(kind) => write!(f, "kind {kind}"),
            Self::Kinds(kinds) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                write!(f, "kinds {}", names.join(", "))
            }
            Self::Tag(tag) => write!(f, "tag {tag}"),
            Self::Predicate(_) => f.write_str("predicate"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A regular expression over names, compiled once. One that is none is kept until the rules are put together
/// and every problem is reported.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    compiled: Result<Regex, String>,
}

impl Pattern {
    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Tells whether a name fits.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(name))
    }

    /// Returns what is wrong with it.
    pub(super) fn problem(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }
}

/// Matches the node with a name.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{NodeInfo, name};
///
/// assert!(name("charge").matches(&NodeInfo::step("charge")));
/// assert!(!name("charge").matches(&NodeInfo::step("charge_card")));
/// ```
pub fn name(name: impl Into<String>) -> Matcher {
    Matcher::Name(name.into())
}

/// Matches nodes whose name fits a regular expression, anywhere in the name unless it is anchored.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{NodeInfo, pattern};
///
/// assert!(pattern("^fetch_").matches(&NodeInfo::step("fetch_rates")));
/// assert!(!pattern("^fetch_").matches(&NodeInfo::step("prefetch_rates")));
/// ```
#[must_use]
pub fn pattern(pattern: &str) -> Matcher {
    let compiled = Regex::new(pattern).map_err(|error| {
        // The last line says what is wrong; the lines before it draw a caret that would stand nowhere.
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    });
    Matcher::Pattern(Pattern { text: pattern.to_owned(), compiled })
}

/// Matches nodes of a kind.
#[must_use]
pub const fn kind(kind: Kind) -> Matcher {
    Matcher::Kind(kind)
}

/// Matches nodes of one of several kinds.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{Kind, NodeInfo, kinds};
///
/// let folds = kinds([Kind::Reduce, Kind::Accumulator]);
/// assert!(folds.matches(&NodeInfo::unnamed(Kind::Reduce)));
/// assert!(!folds.matches(&NodeInfo::step("charge")));
/// ```
pub fn kinds(kinds: impl IntoIterator<Item = Kind>) -> Matcher {
    Matcher::Kinds(kinds.into_iter().collect())
}

/// Matches nodes with a tag.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{NodeInfo, tag};
///
/// let tags = ["network".to_owned()];
/// assert!(tag("network").matches(&NodeInfo { tags: &tags, ..NodeInfo::step("fetch") }));
/// ```
pub fn tag(tag: impl Into<String>) -> Matcher {
    Matcher::Tag(tag.into())
}

/// Matches whatever a function says. It is called only for nodes that no earlier rule matched. Where it panics,
/// the policy of a node cannot be found out: `build` and the start of a run refuse it by name, and work that runs nevertheless fails.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{NodeInfo, predicate};
///
/// let unnamed_or_test = predicate(|node| node.name.is_none_or(|name| name.ends_with("_test")));
/// assert!(unnamed_or_test.matches(&NodeInfo::step("unit_test")));
/// ```
pub fn predicate(test: impl Fn(&NodeInfo<'_>) -> bool + Send + Sync + 'static) -> Matcher {
    Matcher::Predicate(Function::new(Arc::new(test)))
}

/// Matches every node.
#[must_use]
pub const fn default() -> Matcher {
    Matcher::Default
}
