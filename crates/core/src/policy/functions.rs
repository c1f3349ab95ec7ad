//! The policy fields that may hold code. Data and functions are told apart by type, so that a function can
//! never slip into a record.

use std::fmt;
use std::sync::Arc;

use super::view::{Failure, NodeInfo, Overrides, Recovery};
use crate::fact::Value;
use crate::work::call_user;

/// A shared function of the user's. What it captured is dropped wherever its last owner lets go of it, also under locks and
/// in tasks of all runs, so that a panic of a destructor ends here.
pub struct Function<F: ?Sized>(Option<Arc<F>>);

impl<F: ?Sized> Function<F> {
    pub(crate) const fn new(function: Arc<F>) -> Self {
        Self(Some(function))
    }

    /// Returns the function, to be called.
    #[must_use]
    pub fn call(&self) -> &F {
        self.0.as_deref().expect("invariant: only the destructor takes it")
    }
}

impl<F: ?Sized> Drop for Function<F> {
    fn drop(&mut self) {
        let function = self.0.take();
        drop(call_user(|| drop(function)));
    }
}

impl<F: ?Sized> Clone for Function<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: ?Sized> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(function)")
    }
}

/// Sees the node, its input and the failure, and says how to go on.
pub type FallbackFn = dyn Fn(&NodeInfo<'_>, &Value, &Failure) -> Recovery + Send + Sync;
/// Sees the node and what it had produced, and undoes it.
pub type CompensationFn = dyn Fn(&NodeInfo<'_>, &Value) -> Result<(), Failure> + Send + Sync;
/// Sees the node and its input, and says what makes the work the same.
pub type KeyFn = dyn Fn(&NodeInfo<'_>, &Value) -> String + Send + Sync;

/// What to do once after the last attempt failed.
#[derive(Clone, Debug)]
pub enum Fallback {
    /// Take this value as the result.
    Value(serde_json::Value),
    /// Run the same work once more with these overrides.
    Overrides(Overrides),
    /// Ask a function, which sees the node, the input and the failure.
    Function(Function<FallbackFn>),
}

/// How to undo finished work.
#[derive(Clone, Debug)]
pub enum Compensation {
    /// Run the node with this name.
    Node(String),
    /// Call a function, which sees the node and what it had produced.
    Function(Function<CompensationFn>),
}

/// What makes two pieces of work the same: those of one node of one workflow, unless a scope is named.
#[derive(Clone, Debug)]
pub enum IdempotencyKey {
    /// A text with `${…}` in it.
    Template(String),
    /// A function of the node and the input.
    Function(Function<KeyFn>),
    /// A key that counts for all work of a named scope, whatever its node and workflow.
    Shared {
        /// The scope.
        scope: String,
        /// The key.
        key: Box<Self>,
    },
}

impl IdempotencyKey {
    /// Returns the scope that is named.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        match self {
            Self::Shared { scope, .. } => Some(scope),
            Self::Template(_) | Self::Function(_) => None,
        }
    }

    /// Returns the text with `${…}` in it; `None` for a function.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        match self {
            Self::Template(template) => Some(template),
            Self::Function(_) => None,
            Self::Shared { key, .. } => key.template(),
        }
    }
}
