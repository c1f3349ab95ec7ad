//! The definitions that runs of this process may have: made known once, and checked then. Runs are not its business.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use tidewheel_core::Problems;
use tidewheel_core::policy::NodeInfo;
use tidewheel_core::workflow::Workflow;

use super::core::Core;
use super::definition::Definition;
use super::error::StartError;
use super::options::{Executor, StartOptions};
use crate::driver::{Home, check_run};
use crate::react::SyncWork;

/// Definitions by their names and versions.
pub(super) type Registry = BTreeMap<(String, u32), Arc<Registered>>;

/// A definition that runs of this process may have.
pub(super) struct Registered {
    pub(super) workflow: Workflow,
    /// What runs are given that nobody started here by hand.
    pub(super) options: StartOptions,
    /// What is stored with a run that is started without options.
    pub(super) definition: Arc<str>,
}

impl Core {
    /// Makes a definition known, so that its runs can be driven here.
    pub(super) fn register(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        self.add(workflow, options, options.clone())
    }

    /// Makes the definition of a run known that is about to start with these options, and forgets the options.
    pub(super) fn register_for(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        self.add(workflow, options, StartOptions::new())
    }

    fn add(&self, workflow: &Workflow, options: &StartOptions, kept: StartOptions) -> Result<(), StartError> {
        let key = (workflow.name().to_owned(), workflow.version());
        if let Some(known) = self.registered(workflow.name(), workflow.version()) {
            check_unchanged(&known.workflow, workflow)?;
            // A run that started before made the definition known, and its own options are for it alone.
            if kept.holds_what_is_not_stored() && !known.options.holds_what_is_not_stored() {
                let (workflow, definition) = (known.workflow.clone(), Arc::clone(&known.definition));
                let registered = Registered { workflow, options: kept, definition };
                self.lock_registry().insert(key, Arc::new(registered));
            }
            return Ok(());
        }
        self.check(workflow, &StartOptions { policies: None, ..options.clone() })?;
        let definition = Definition::written(workflow, &StartOptions::new()).into();
        let new = Registered { workflow: workflow.clone(), options: kept, definition };
        let known = Arc::clone(self.lock_registry().entry(key).or_insert_with(|| Arc::new(new)));
        self.look.notify_one();
        check_unchanged(&known.workflow, workflow)
    }

    /// Takes a definition back that no run has.
    pub(super) fn unregister(&self, workflow: &Workflow) {
        let mut registry = self.lock_registry();
        let key = (workflow.name().to_owned(), workflow.version());
        if registry.get(&key).is_some_and(|known| known.workflow.is_same(workflow)) {
            registry.remove(&key);
        }
    }

    /// Checks that everything that a run would be given can act.
    pub(super) fn check(&self, workflow: &Workflow, options: &StartOptions) -> Result<(), StartError> {
        let missing = |missing| StartError::Context { missing };
        workflow.check_context(&options.context).map_err(missing)?;
        // Without rules of its own it was checked when it was registered.
        let is_known = |known: Arc<Registered>| known.workflow.is_same(workflow);
        if options.policies.is_none()
            && self.registered(workflow.name(), workflow.version()).is_some_and(is_known)
        {
            return Ok(());
        }
        let mut run = workflow.run("");
        if let Some((rules, overlay)) = &options.policies {
            run = run.with_policies(rules.clone(), *overlay);
        }
        let unknown = run
            .nodes()
            .filter_map(|(node, ..)| self.options().try_executor_of(&node).err().map(|problem| *problem));
        Problems::check(unknown.collect(), ()).map_err(StartError::Policies)?;
        let is_inline = |node: &NodeInfo<'_>| self.options().executor_of(node) != Executor::Threads;
        check_run(
            &run,
            Home::Store,
            |node| if is_inline(node) { SyncWork::Inline } else { SyncWork::Threads },
        )
        .map_err(StartError::Policies)
    }

    /// Writes down what a run of a registered workflow is created with.
    pub(super) fn written(&self, workflow: &Workflow, options: &StartOptions) -> String {
        let known = self.registered(workflow.name(), workflow.version());
        match known.filter(|known| options.is_plain() && known.workflow.is_same(workflow)) {
            Some(known) => known.definition.as_ref().to_owned(),
            None => Definition::written(workflow, options),
        }
    }

    pub(super) fn registered(&self, workflow: &str, version: u32) -> Option<Arc<Registered>> {
        self.lock_registry().get(&(workflow.to_owned(), version)).cloned()
    }

    pub(super) fn registered_names(&self) -> Vec<(String, u32)> {
        self.lock_registry().keys().cloned().collect()
    }

    fn lock_registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two definitions of one name and version must have the same nodes and the same rules: a run that is loaded again has those
/// that are registered. Functions in rules cannot be compared.
fn check_unchanged(known: &Workflow, given: &Workflow) -> Result<(), StartError> {
    if known.is_same(given) {
        return Ok(());
    }
    let changes = given.changes_since(&known.signature());
    let (workflow, version) = (given.name().to_owned(), given.version());
    if !changes.is_empty() {
        return Err(StartError::Registered { workflow, version, changes });
    }
    match first_other_rule(known, given) {
        Some(rule) => Err(StartError::RegisteredPolicies { workflow, version, rule }),
        None => Ok(()),
    }
}

/// Returns the first rule in which two definitions differ.
fn first_other_rule(known: &Workflow, given: &Workflow) -> Option<usize> {
    let (known, given) = (known.rules().to_records(), given.rules().to_records());
    (0..known.len().max(given.len())).find(|index| known.get(*index) != given.get(*index))
}
