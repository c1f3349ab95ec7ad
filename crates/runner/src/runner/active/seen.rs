//! What a caller sees of a run that this process drives: a result, why there is none, or that it has to wait.

use tidewheel_core::event::Absence;
use tidewheel_core::fact::Value;
use tidewheel_core::policy::Failure;
use tidewheel_core::time::Timestamp;
use tidewheel_store::Status;
use tokio::sync::oneshot;

use super::life::Active;
use super::state::Mode;

/// What a caller sees when it asks for a result.
pub(in crate::runner) enum Seen {
    Value(Value),
    Failed(Box<Failure>),
    /// It failed, and its policy lets that pass.
    Skipped(Box<Failure>),
    Absent(Option<Absence>),
    NoInput,
    Over {
        status: Status,
    },
    Wait(oneshot::Receiver<()>),
}

impl Active {
    /// Returns what a component has for the last input, as far as it is stored; or a channel to wait on.
    pub(in crate::runner) fn see(&self, component: &str) -> Seen {
        let mut state = self.lock();
        if let Mode::Gone { .. } = state.mode {
            return Seen::Over { status: Status::Running };
        }
        let Some(input) = state.run.last_input() else { return Seen::NoInput };
        let is_over = !state.run.is_runnable() && state.in_flight.is_none() && state.fresh.events.is_empty();
        if is_over || state.run.gives_one_value(component) {
            let stored = state.stored_facts;
            if let Some(value) = state.run.value_for(component, input, stored) {
                return Seen::Value(value.clone());
            }
        }
        if is_over {
            let failures = state.run.failures();
            let own =
                failures.iter().find(|failed| failed.component == Some(component) && failed.input == input);
            return match own {
                Some(failed) if failed.skipped => Seen::Skipped(Box::new(failed.failure.clone())),
                Some(failed) => Seen::Failed(Box::new(failed.failure.clone())),
                None => Seen::Absent(state.run.absence(component, input)),
            };
        }
        state.wait_for(Some(component.to_owned()))
    }

    /// Returns how the run is, when nothing is left to do or it does not go on by itself.
    pub(in crate::runner) fn see_end(&self) -> Seen {
        let mut state = self.lock();
        let is_stored = state.in_flight.is_none() && state.fresh.events.is_empty();
        if !state.run.is_runnable() && is_stored && state.mode == Mode::Going {
            let status = state.condition(Timestamp::from_nanos(0)).0;
            return Seen::Over { status };
        }
        state.wait_for(None)
    }
}
