//! Asks the table of commands by status what a command does to a run as it stands, and answers where that is nothing.

use tidewheel_core::command::{Effect, RunCommand};
use tidewheel_core::time::Timestamp;
use tidewheel_store::Status;

use super::life::Active;
use super::state::{By, State};

/// What became of a command that a run was given.
#[derive(Debug)]
pub(in crate::runner) enum Taken {
    /// The run is about to leave this process and did not take it: the caller loads the run again.
    Not,
    /// It takes effect. The caller is answered when that is stored.
    Done,
    /// What it asks for is so already. The caller is answered when that is stored.
    AlreadySo,
    /// It would have no effect. Nothing was changed, and the caller is not answered in any other way.
    NoEffect { status: Status, why: &'static str },
}

impl Active {
    /// Returns who asked, if the command takes effect; otherwise it is answered here. A process that asked through the
    /// store finds the refusal in the log.
    pub(super) fn by_table(
        &self,
        state: &mut State,
        command: RunCommand,
        by: By,
        now: Timestamp,
    ) -> Result<By, Taken> {
        let status = state.condition(now).0;
        match command.effect_on_run(status) {
            Effect::Acts => Ok(by),
            Effect::AlreadySo => {
                match by {
                    // Another caller may have asked for it a moment ago: it holds when that is stored.
                    By::Caller(ack) if state.fresh.is_empty() => state.when_stored(ack),
                    by @ (By::Caller(_) | By::Command(_)) => state.answer(by),
                }
                Err(Taken::AlreadySo)
            }
            Effect::Refused(why) => {
                if let By::Command(_) = by {
                    tracing::warn!(run = %self.id(), %command, %status, why, "command has no effect");
                    self.refuse(state, by, format!("the run is {status}: {why}"));
                }
                Err(Taken::NoEffect { status, why })
            }
        }
    }
}
