//! Which policy a node gets: the first rule that matches, laid over the defaults, never over later rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::matcher::{Matcher, Pattern};
use super::options::shared_settings;
use super::resolved::Resolved;
use super::view::NodeInfo;
use super::written::Policy;
use crate::document::{Problem, Problems};
use crate::fact::NodeId;

/// A matcher with its policy, checked.
#[derive(Clone, Debug)]
pub struct Rule {
    matcher: Matcher,
    policy: Policy,
    resolved: Arc<Resolved>,
}

impl Rule {
    /// Returns which nodes it is for.
    #[must_use]
    pub const fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Returns the rule as it was given.
    pub(crate) fn written(&self) -> (Matcher, Policy) {
        (self.matcher.clone(), self.policy.clone())
    }

    /// Returns the policy as somebody wrote it.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns what tells this rule from others, in every process, where a limit counts for the rule by itself.
    fn identity(&self, resolved: &Resolved) -> Option<String> {
        let counts_alone = resolved.rate_limit.as_ref().is_some_and(|limit| limit.name.is_none())
            || resolved.concurrency_limit.as_ref().is_some_and(|limit| limit.name.is_none());
        counts_alone.then(|| NodeId::hashed(&[self.to_record().as_bytes()]).to_string())
    }

    /// Returns the policy with every field.
    #[must_use]
    pub const fn resolved(&self) -> &Arc<Resolved> {
        &self.resolved
    }
}

/// Rules in order, all of them checked and their patterns compiled.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::{self, NodeInfo, Overlay, Policy, Rules};
///
/// let base = Rules::new([
///     (policy::pattern("^llm_"), Policy::llm()),
///     (policy::default(), Policy::new().timeout("30s")),
/// ])?;
/// let runtime = Rules::new([(policy::name("llm_judge"), Policy::llm().max_retries(9))])?;
/// let rules = base.overlaid(Some(runtime), Overlay::Merge);
///
/// assert_eq!(rules.resolve(&NodeInfo::step("llm_judge")).policy.max_retries, 9);
/// assert_eq!(rules.resolve(&NodeInfo::step("llm_classify")).policy.max_retries, 3);
/// assert_eq!(rules.resolve(&NodeInfo::step("store")).rule, Some(2));
/// # Ok::<(), tidewheel::Problems>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// What a node gets that no rule matches.
    fallthrough: Arc<Resolved>,
}

/// What runtime rules do to the rules that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    /// They come first.
    #[default]
    Merge,
    /// They stand alone.
    Replace,
}

/// The policy of a node, and where it comes from.
#[derive(Clone, Debug)]
pub struct Resolution<'a> {
    /// The index of the rule that won; `None` when none matched.
    pub rule: Option<usize>,
    /// The policy.
    pub policy: &'a Arc<Resolved>,
    /// Why no policy could be found: the predicate of `rule` panicked. The policy is the default one then, and nothing may
    /// run under it.
    pub problem: Option<Problem>,
}

impl Rules {
    /// Returns the components that are to undo something, as far as rules name them.
    pub fn compensations(&self) -> impl Iterator<Item = &str> {
        self.as_slice().iter().filter_map(|rule| match &rule.resolved().compensation {
            Some(super::functions::Compensation::Node(name)) => Some(name.as_str()),
            Some(super::functions::Compensation::Function(_)) | None => None,
        })
    }

    /// Checks rules and puts them together.
    ///
    /// # Errors
    /// Everything that is wrong with any of them, each with the index of its rule.
    pub fn new(rules: impl IntoIterator<Item = (Matcher, Policy)>) -> Result<Self, Problems> {
        let mut checked: Vec<Rule> = Vec::new();
        let mut problems = Vec::new();
        let mut shared: BTreeMap<(&'static str, String), (usize, String)> = BTreeMap::new();
        for (index, (matcher, policy)) in rules.into_iter().enumerate() {
            let at =
                |problem: Problem| Problem { path: format!("policies[{index}].{}", problem.path), ..problem };
            problems.extend(matcher_problem(&matcher).map(at));
            match policy.resolved() {
                Ok(resolved) => {
                    for (field, name, settings) in shared_settings(&resolved) {
                        let (first, before) =
                            shared.entry((field, name.clone())).or_insert_with(|| (index, settings.clone()));
                        if *before != settings {
                            let message = format!(
                                "shares the name `{name}` with policies[{first}], which says {before}"
                            );
                            let problem =
                                Problem::new(field, message).help("say the same, or take another name");
                            problems.push(at(problem));
                        }
                    }
                    let mut rule = Rule { matcher, policy, resolved: Arc::default() };
                    rule.resolved = Arc::new(Resolved { rule: rule.identity(&resolved), ..resolved });
                    checked.push(rule);
                }
                Err(found) => problems.extend(found.all().iter().cloned().map(at)),
            }
        }
        Problems::check(problems, Self { rules: checked, fallthrough: Arc::default() })
    }

    /// Finds the policy of a node. Equal nodes get equal policies; a predicate is called only until
    /// something matches. One that panics is the problem of the resolution.
    #[must_use]
    pub fn resolve(&self, node: &NodeInfo<'_>) -> Resolution<'_> {
        for (index, rule) in self.rules.iter().enumerate() {
            match rule.matcher.try_matches(node) {
                Ok(false) => {}
                Ok(true) => {
                    return Resolution { rule: Some(index), policy: &rule.resolved, problem: None };
                }
                Err(panic) => {
                    let name = node.name.unwrap_or_else(|| node.kind.name());
                    let message = format!("panicked for `{name}`: {}", panic.message);
                    let problem = Problem::new(format!("policies[{index}].match.predicate"), message)
                        .help("let the predicate answer for every node");
                    return Resolution {
                        rule: Some(index),
                        policy: &self.fallthrough,
                        problem: Some(problem),
                    };
                }
            }
        }
        Resolution { rule: None, policy: &self.fallthrough, problem: None }
    }

    /// Returns these rules under runtime rules; without any, unchanged.
    #[must_use]
    pub fn overlaid(&self, runtime: Option<Self>, overlay: Overlay) -> Self {
        match (runtime, overlay) {
            (None, _) => self.clone(),
            (Some(runtime), Overlay::Replace) => runtime,
            (Some(mut runtime), Overlay::Merge) => {
                runtime.rules.extend(self.rules.iter().cloned());
                runtime
            }
        }
    }

    /// Returns the rules in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the indexes of rules that can never win, with the rule that stands in their way.
    #[must_use]
    pub fn unreachable(&self) -> Vec<(usize, usize)> {
        let mut everything = None;
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        let mut patterns: Vec<(usize, &Pattern)> = Vec::new();
        let mut found = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let same = match &rule.matcher {
                Matcher::Kinds(_) | Matcher::Predicate(_) => None,
                matcher => Some(matcher.to_string()),
            };
            let fits = |(_, pattern): &&(usize, &Pattern)| match &rule.matcher {
                Matcher::Name(name) => pattern.fits(name),
                _ => false,
            };
            let in_the_way = everything
                .or_else(|| same.as_ref().and_then(|same| first.get(same).copied()))
                .or_else(|| patterns.iter().take(PATTERNS_TRIED).find(fits).map(|(earlier, _)| *earlier));
            found.extend(in_the_way.map(|earlier| (index, earlier)));
            match &rule.matcher {
                Matcher::Default if everything.is_none() => everything = Some(index),
                Matcher::Pattern(pattern) => patterns.push((index, pattern)),
                Matcher::Kinds(kinds) => {
                    for kind in kinds {
                        first.entry(Matcher::Kind(*kind).to_string()).or_insert(index);
                    }
                }
                Matcher::Name(_)
                | Matcher::Kind(_)
                | Matcher::Tag(_)
                | Matcher::Predicate(_)
                | Matcher::Default => {}
            }
            if let Some(same) = same {
                first.entry(same).or_insert(index);
            }
        }
        found
    }
}

/// Enough for any file a person writes; a bound keeps generated ones from costing their square.
const PATTERNS_TRIED: usize = 64;

/// Finds what is wrong with a matcher.
pub(super) fn matcher_problem(matcher: &Matcher) -> Option<Problem> {
    match matcher {
        Matcher::Pattern(pattern) => pattern.problem().map(|reason| {
            let message = format!("`{}` is no regular expression: {reason}", pattern.text());
            Problem::new("match.pattern", message)
        }),
        Matcher::Name(name) if name.is_empty() => Some(Problem::new("match.name", "must not be empty")),
        Matcher::Tag(tag) if tag.is_empty() => Some(Problem::new("match.tag", "must not be empty")),
        Matcher::Kinds(kinds) if kinds.is_empty() => Some(Problem::new("match.kinds", "must not be empty")),
        Matcher::Name(_)
        | Matcher::Kind(_)
        | Matcher::Kinds(_)
        | Matcher::Tag(_)
        | Matcher::Predicate(_)
        | Matcher::Default => None,
    }
}
