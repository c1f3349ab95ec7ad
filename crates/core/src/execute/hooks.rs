//! What is called before and after the work of a component. A hook that panics is a failure of the work.

use super::executed::Outcome;
use super::runnable::Runnable;
use crate::event::Phase;
use crate::policy::{Failure, Kind};
use crate::work::call_user;
use crate::workflow::Op;

impl Runnable {
    /// Tells whether this is what hooks are about: the work of a rule, not the look at its condition; what a
    /// component does, not how it is undone.
    fn has_hooks(&self) -> bool {
        match self.phase {
            Phase::Match => matches!(self.graph.node(self.node).op, Op::Condition(_)),
            Phase::Work => true,
            Phase::Undo => self.node().kind == Kind::Compensation,
        }
    }

    pub(super) fn before_hooks(&self) -> Option<Failure> {
        let hooks = &self.graph.node(self.node).extras.before;
        if hooks.is_empty() || !self.has_hooks() {
            return None;
        }
        let input = self.input.whole();
        let call = || hooks.iter().try_for_each(|hook| hook.call()(&self.node(), &input));
        call_user(call).flatten().err()
    }

    pub(super) fn after_hooks(&self, outcome: Outcome) -> Outcome {
        let hooks = &self.graph.node(self.node).extras.after;
        let Outcome::Completed(output) = &outcome else { return outcome };
        if hooks.is_empty() || !self.has_hooks() {
            return outcome;
        }
        let input = self.input.whole();
        let call = || hooks.iter().try_for_each(|hook| hook.call()(&self.node(), &input, output));
        match call_user(call).flatten() {
            Ok(()) => outcome,
            Err(failure) => Outcome::Failed(failure),
        }
    }
}
