//! Pieces that have to have a slot in time: those that get none are failed. What begins is none of its business.

use std::sync::Arc;

use tidewheel_core::Outcome;
use tidewheel_core::policy::Failure;

use super::failure::{TASK, no_slot};
use super::job::Job;
use super::slots::Pool;
use super::state::State;
use crate::telemetry;

impl Pool {
    /// Sees to it that pieces are failed that do not get a slot in time. One timer is for all of them.
    pub(super) fn look_after_impatient(self: &Arc<Self>, state: &mut State) {
        let Some(((at, _), _)) = state.impatient.first_key_value() else { return };
        match state.impatience {
            Some((earlier, _)) if earlier <= *at => return,
            Some(timer) => self.timers.cancel(timer),
            None => {}
        }
        let pool = Arc::downgrade(self);
        state.impatience = Some(self.timers.at(*at, move || {
            if let Some(pool) = pool.upgrade() {
                pool.fail_impatient();
            }
        }));
    }

    fn fail_impatient(self: &Arc<Self>) {
        let now = self.timers.clock().now();
        let mut state = self.lock();
        state.impatience = None;
        let mut late = Vec::new();
        while let Some(first) = state.impatient.first_entry().filter(|first| first.key().0 <= now) {
            let ((until, place), spot) = first.remove_entry();
            let queue = if spot.needs_task { &mut state.later } else { &mut state.ready };
            late.extend(queue.take_late(spot, place, until));
        }
        self.look_after_impatient(&mut state);
        drop(state);
        for job in late {
            let why = no_slot(job.runnable.policy().queue_timeout);
            telemetry::timeout(&job.runnable, job.runnable.policy(), &why);
            self.fail(job, why);
        }
    }

    /// Tells the caller that handed a piece in that it failed without a slot.
    pub(super) fn fail(&self, job: Job, why: Failure) {
        self.timers.supervisor().call(TASK, || job.sink.ended(job.place, Outcome::Failed(why)));
    }
}
