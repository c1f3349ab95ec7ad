//! From components to a graph: every name is found, every type fits, nothing runs in a circle; otherwise
//! everything that is wrong is said at once.

use std::sync::Arc;

use super::check::{check_compensations, check_idle, check_names, find_cycle, sound_parts};
use super::component::Component;
use super::error::{BuildError, BuildErrors};
use super::graph::Workflow;
use super::lower::Lowering;
use super::ports::{self, Declared, Ports};
use crate::policy::{Matcher, Policy, Rules};

/// A workflow that is being written.
#[derive(Clone, Debug)]
pub struct WorkflowBuilder {
    name: String,
    version: u32,
    components: Vec<Component>,
    policies: Vec<(Matcher, Policy)>,
    /// How many of them were put before the others.
    overriding: usize,
    pub(super) declared: Declared,
}

impl WorkflowBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: 1,
            components: Vec::new(),
            policies: Vec::new(),
            overriding: 0,
            declared: Declared::default(),
        }
    }

    /// Says which version of the workflow this is; one where nobody says. Runs that were stored under another
    /// version go on with that one, if somebody registers it, too.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a component. Components may be added in any order.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "adding a component is no arithmetic")]
    pub fn add(mut self, component: impl Into<Component>) -> Self {
        let mut component = component.into();
        let attached = std::mem::take(&mut component.attached);
        self.components.push(component);
        self.components.extend(attached);
        self
    }

    /// Adds components that come one after the other.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .pipeline([step("inc", |x: i64| x + 1), step("double", |x: i64| x * 2)])
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.react_until_satisfied(20_i64)?;
    /// assert_eq!(run.result::<i64>("double")?, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pipeline(mut self, components: impl IntoIterator<Item = Component>) -> Self {
        let mut before: Option<String> = None;
        for mut component in components {
            if let Some(before) = before.take()
                && component.after.is_empty()
            {
                component.after = vec![before];
            }
            before = Some(component.name.clone());
            self = self.add(component);
        }
        self
    }

    /// Removes a component, and the rules of policy for its name; what came after it comes after its parents. An
    /// unknown name changes nothing.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let numbers = Workflow::new("numbers").pipeline([
    ///     step("inc", |x: i64| x + 1),
    ///     step("square", |x: i64| x * x),
    ///     step("double", |x: i64| x * 2),
    /// ]);
    /// let mut run = numbers.remove("square").build()?.run("run-1");
    /// run.react_until_satisfied(20_i64)?;
    /// assert_eq!(run.result::<i64>("double")?, Some(42)); // now right after `inc`
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn remove(mut self, name: &str) -> Self {
        let Some(index) = self.components.iter().position(|component| component.name == name) else {
            return self;
        };
        let removed = self.components.remove(index);
        let is_for_it = |(matcher, _): &(Matcher, Policy)| matches!(matcher, Matcher::Name(of) if of == name);
        self.overriding -= self.policies[..self.overriding].iter().filter(|rule| is_for_it(rule)).count();
        self.policies.retain(|rule| !is_for_it(rule));
        for component in &mut self.components {
            if component.after.iter().any(|parent| parent == name) {
                let parents = std::mem::take(&mut component.after);
                component.after = parents
                    .into_iter()
                    .flat_map(|parent| if parent == name { removed.after.clone() } else { vec![parent] })
                    .collect();
            }
        }
        self
    }

    /// Adds everything of another workflow. How strictly types are looked at stays as it was here.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let numbers = Workflow::new("numbers").add(step("inc", |x: i64| x + 1));
    /// let report = Workflow::new("report").add(step("say", |x: i64| format!("it is {x}")).after("inc"));
    /// let mut run = numbers.merge(report).build()?.run("run-1");
    /// run.react_until_satisfied(41_i64)?;
    /// assert_eq!(run.result::<String>("say")?.as_deref(), Some("it is 42"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.components.extend(other.components);
        self.policies.extend(other.policies);
        self.declared.input = self.declared.input.or(other.declared.input);
        self.declared.outputs.extend(other.declared.outputs);
        self
    }

    /// Adds a rule of policy after the ones that are there, so that the builder reads from top to bottom.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{NodeInfo, Policy, default, name};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .add(step("inc", |x: i64| x + 1))
    ///     .policy(name("inc"), Policy::new().max_retries(3)) // the first that matches counts
    ///     .policy(default(), Policy::new().timeout("30s"))
    ///     .build()?;
    /// assert_eq!(workflow.rules().resolve(&NodeInfo::step("inc")).policy.max_retries, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn policy(mut self, matcher: Matcher, policy: Policy) -> Self {
        self.policies.push((matcher, policy));
        self
    }

    /// Adds a rule of policy before the ones that are there. It may take the place of some of them.
    #[must_use]
    pub fn policy_first(mut self, matcher: Matcher, policy: Policy) -> Self {
        self.policies.insert(0, (matcher, policy));
        self.overriding += 1;
        self
    }

    /// Replaces the rules of policy.
    #[must_use]
    pub fn policies(mut self, policies: impl IntoIterator<Item = (Matcher, Policy)>) -> Self {
        self.policies = policies.into_iter().collect();
        self.overriding = 0;
        self
    }

    /// Checks everything and lowers it to a graph.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let lonely = step("double", |x: i64| x * 2).after("inc");
    /// let errors = Workflow::new("numbers").add(lonely).build().unwrap_err();
    /// assert!(errors.to_string().contains("inc"), "{errors}");
    /// ```
    ///
    /// A rule of policy that would never act is refused, too: one whose name, pattern, tag or kind no component has, and
    /// one behind another rule that matches all that it matches. Rules for components that a run is to get later belong
    /// to the definition that has those components, or to the run.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Policy, name};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let charge = step("charge", |cents: u64| cents);
    /// let orders = Workflow::new("orders").add(charge).policy(name("chrage"), Policy::new().max_retries(3));
    /// assert_eq!(
    ///     orders.build().unwrap_err().to_string(),
    ///     "policies[0].match.name: matches nothing: no node is named `chrage` (did you mean `charge`?)",
    /// );
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong, each with the name of its component.
    pub fn build(self) -> Result<Workflow, BuildErrors> {
        let mut errors = Vec::new();
        let rules = Rules::new(self.policies).unwrap_or_else(|problems| {
            errors.push(BuildError::Policies(problems));
            Rules::default()
        });
        check_names(&self.components, &mut errors);
        check_compensations(&self.components, &rules, &mut errors);
        check_idle(self.components.iter().map(Component::info), &rules, self.overriding, &mut errors);
        if let Some(cycle) = find_cycle(&self.components) {
            errors.push(BuildError::Cycle { path: cycle });
        }
        if !errors.is_empty() {
            // What stands on its own is checked all the same, so that everything wrong is said at once.
            let sound = sound_parts(&self.components);
            Lowering::new(&sound).lower(self.name, rules, &mut errors);
            ports::check(&self.declared, &self.components, &mut errors);
            self.declared.checks.sift(&mut errors);
            return Err(BuildErrors(errors));
        }
        let mut graph = Lowering::new(&self.components).lower(self.name, rules, &mut errors);
        graph.version = self.version;
        ports::check(&self.declared, &self.components, &mut errors);
        let warnings = self.declared.checks.sift(&mut errors);
        let place =
            |(name, component): (String, String)| Some((name, *graph.by_name.get(component.as_str())?));
        let outputs = self.declared.outputs.into_iter().filter_map(place).collect();
        graph.ports = Ports { input: self.declared.input, outputs, warnings };
        if errors.is_empty() { Ok(Workflow(Arc::new(graph))) } else { Err(BuildErrors(errors)) }
    }
}
