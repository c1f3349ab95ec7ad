//! Who is told what happened in a run: hooks and subscribers, in the order in which it was stored. Nobody is told
//! under the lock of the run.

use std::sync::Arc;

use tidewheel_core::event::Event;
use tidewheel_core::policy::{Kind, NodeInfo};
use tidewheel_core::run::Run;
use tidewheel_core::work::call_user;
use tidewheel_store::{Status, Version};

use super::life::Active;
use super::state::{Heard, Telling, What};
use crate::runner::hooks::RunEvent;

impl Active {
    /// Tells whoever listens what was stored, in the order in which it was stored.
    pub(super) fn tell_all(&self) {
        let mut is_first = true;
        loop {
            let telling = {
                let mut state = self.lock();
                if is_first && state.is_telling {
                    return;
                }
                is_first = false;
                let telling = state.to_tell.pop_front();
                state.is_telling = telling.is_some();
                telling
            };
            let Some(Telling { first, heard, idle }) = telling else { return };
            self.tell(first, &heard, idle);
        }
    }

    fn tell(&self, first: Version, heard: &[Heard], idle: Option<Status>) {
        for heard in heard {
            let version = first + u64::from(heard.place);
            self.core.publish(RunEvent { run: self.id.clone(), version, event: Arc::clone(&heard.line) });
        }
        let Some(hooks) = &self.core.options().hooks else { return };
        for (name, kind, what) in heard.iter().filter_map(|heard| heard.what.as_ref()) {
            let named = name.as_deref().and_then(|name| self.workflow.node_info(name));
            let node = named.unwrap_or_else(|| NodeInfo::unnamed(*kind));
            match what {
                What::Dispatched(attempt) => {
                    self.call_hook("dispatched", || hooks.dispatched(&self.id, &node, *attempt));
                }
                What::Completed => self.call_hook("completed", || hooks.completed(&self.id, &node)),
                What::Failed(failure) => {
                    self.call_hook("failed", || hooks.failed(&self.id, &node, failure));
                }
            }
        }
        if let Some(status) = idle {
            self.call_hook("idle", || hooks.idle(&self.id, status));
        }
    }

    /// Calls one hook. One that panics is logged, and the next one is called.
    fn call_hook(&self, hook: &'static str, call: impl FnOnce()) {
        if let Err(panic) = call_user(call) {
            tracing::error!(run = %self.id, hook, why = panic.message, "hook panicked");
            self.core.metrics().panic("hook");
        }
    }
}

/// Returns what hooks are told of an event.
pub(super) fn what_of(event: &Event, run: &Run) -> Option<(Option<String>, Kind, What)> {
    let (act, what) = match event {
        Event::RunnableDispatched { act, attempt, .. } => (act, What::Dispatched(*attempt)),
        Event::RunnableCompleted { act, .. } => (act, What::Completed),
        Event::RunnableFailed { act, failure, .. } | Event::RunnableSkipped { act, failure, .. } => {
            (act, What::Failed(failure.clone()))
        }
        _ => return None,
    };
    let node = run.node_of(*act)?;
    Some((node.name.map(str::to_owned), node.kind, what))
}
