//! Rules that never act on the nodes of a definition: they match none of them, or another rule stands before them.
//! A definition refuses such rules of its own; rules of a configuration or of a run may be idle.

use std::collections::{BTreeMap, BTreeSet};

use super::matcher::Matcher;
use super::resolve::Rules;
use super::view::{Kind, NodeInfo};
use crate::document::{Problem, nearest, words};

/// So many names and tags are compared with a misspelt one.
const NAMES_COMPARED: usize = 200;

impl Rules {
    /// Returns the indexes of rules that match none of these nodes. A predicate is not asked and counts as one that
    /// matches, as does the default.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{NodeInfo, Policy, Rules, name, tag};
    ///
    /// let rules = Rules::new([(name("charge"), Policy::new()), (tag("network"), Policy::new())])?;
    /// assert_eq!(rules.unmatched([NodeInfo::step("charge")]), [1]);
    /// # Ok::<(), tidewheel::Problems>(())
    /// ```
    pub fn unmatched<'n>(&self, nodes: impl IntoIterator<Item = NodeInfo<'n>>) -> Vec<usize> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut others: Vec<usize> = Vec::new();
        for (index, rule) in self.as_slice().iter().enumerate() {
            match rule.matcher() {
                Matcher::Name(name) => by_name.entry(name).or_default().push(index),
                Matcher::Predicate(_) | Matcher::Default => {}
                Matcher::Pattern(_) | Matcher::Kind(_) | Matcher::Kinds(_) | Matcher::Tag(_) => {
                    others.push(index);
                }
            }
        }
        for node in nodes {
            if by_name.is_empty() && others.is_empty() {
                break;
            }
            if let Some(name) = node.name {
                by_name.remove(name);
            }
            others.retain(|index| !self.as_slice()[*index].matcher().matches(&node));
        }
        let mut unmatched: Vec<usize> = by_name.into_values().flatten().chain(others).collect();
        unmatched.sort_unstable();
        unmatched
    }

    /// Returns what is wrong with the rules that would never act on these nodes, each with its index. The first
    /// `overriding` rules were put before the others on purpose: what stands behind them is no mistake.
    pub(crate) fn idle<'n>(
        &self,
        nodes: impl Iterator<Item = NodeInfo<'n>> + Clone,
        overriding: usize,
    ) -> Vec<(usize, Problem)> {
        let unmatched = self.unmatched(nodes.clone());
        let mut behind: BTreeMap<usize, usize> = self.unreachable().into_iter().collect();
        self.note_named_behind(nodes.clone(), &mut behind);
        behind.retain(|index, earlier| {
            let is_override = *earlier < overriding && *index >= overriding;
            !is_override && !unmatched.contains(index)
        });
        let unmatched = unmatched.into_iter().map(|index| {
            let problem = unmatched_problem(self.as_slice()[index].matcher(), nodes.clone());
            (index, Problem { path: format!("policies[{index}].{}", problem.path), ..problem })
        });
        let behind = behind.into_iter().map(|(index, earlier)| {
            let matchers = [index, earlier].map(|index| self.as_slice()[index].matcher());
            let message = format!(
                "never acts: policies[{earlier}] ({}) comes first and matches all that `{}` matches",
                matchers[1], matchers[0]
            );
            let problem = Problem::new(format!("policies[{index}].match"), message);
            (index, problem.help(format!("put it before policies[{earlier}], or leave one of the two out")))
        });
        let mut idle: Vec<(usize, Problem)> = unmatched.chain(behind).collect();
        idle.sort_by_key(|(index, _)| *index);
        idle
    }

    /// Notes the rules for one name whose node gets an earlier rule, which is for its tag or kind.
    fn note_named_behind<'n>(
        &self,
        nodes: impl Iterator<Item = NodeInfo<'n>>,
        behind: &mut BTreeMap<usize, usize>,
    ) {
        let broad: Vec<(usize, &Matcher)> = (0..)
            .zip(self.as_slice())
            .map(|(index, rule)| (index, rule.matcher()))
            .filter(|(_, matcher)| matches!(matcher, Matcher::Kind(_) | Matcher::Kinds(_) | Matcher::Tag(_)))
            .collect();
        if broad.is_empty() {
            return;
        }
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, rule) in self.as_slice().iter().enumerate() {
            if let Matcher::Name(name) = rule.matcher() {
                named.entry(name).or_insert(index);
            }
        }
        for node in nodes {
            let Some(index) = node.name.and_then(|name| named.get(name)) else { continue };
            let earlier =
                broad.iter().find(|(_, matcher)| matcher.matches(&node)).map(|(earlier, _)| *earlier);
            if let Some(earlier) = earlier.filter(|earlier| earlier < index) {
                behind.entry(*index).or_insert(earlier);
            }
        }
    }
}

/// Says that a matcher matches no node, and what may have been meant.
fn unmatched_problem<'n>(matcher: &Matcher, nodes: impl Iterator<Item = NodeInfo<'n>>) -> Problem {
    let leave_out = |help: &str| format!("{help}, or leave the rule out");
    let meant = |word: &str, known: Vec<&str>, help: &str| match nearest(word, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => leave_out(help),
    };
    match matcher {
        Matcher::Name(name) => {
            let known = nodes.filter_map(|node| node.name).take(NAMES_COMPARED).collect();
            Problem::new("match.name", format!("matches nothing: no node is named `{name}`")).help(meant(
                name,
                known,
                "name a node that is there",
            ))
        }
        Matcher::Pattern(pattern) => {
            let message = format!("matches nothing: no node has a name that fits `{}`", pattern.text());
            Problem::new("match.pattern", message).help(leave_out("change the pattern"))
        }
        Matcher::Tag(tag) => {
            let tags: BTreeSet<&str> =
                nodes.flat_map(|node| node.tags.iter()).map(String::as_str).take(NAMES_COMPARED).collect();
            Problem::new("match.tag", format!("matches nothing: no node has the tag `{tag}`")).help(meant(
                tag,
                tags.into_iter().collect(),
                "put the tag on a node",
            ))
        }
        Matcher::Kind(kind) => {
            let message = format!("matches nothing: no node that runs is of the kind {kind}");
            Problem::new("match.kind", message).help(leave_out(&choose_of(&[*kind], nodes)))
        }
        Matcher::Kinds(kinds) => {
            let listed = words(kinds.iter().map(|kind| kind.name()));
            let message = format!("matches nothing: no node that runs is of the kinds {listed}");
            Problem::new("match.kinds", message).help(leave_out(&choose_of(kinds, nodes)))
        }
        Matcher::Predicate(_) | Matcher::Default => Problem::new("match", "matches nothing"),
    }
}

/// Says which kinds there are to choose from.
fn choose_of<'n>(kinds: &[Kind], nodes: impl Iterator<Item = NodeInfo<'n>>) -> String {
    if kinds.contains(&Kind::Join) {
        return "a join only waits: write the rule for the component that comes after it".to_owned();
    }
    let there: BTreeSet<&str> = nodes.map(|node| node.kind.name()).collect();
    match there.is_empty() {
        true => "add a node of that kind".to_owned(),
        false => format!("there are nodes of the kinds {}", words(there.into_iter())),
    }
}
