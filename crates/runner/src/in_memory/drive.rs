//! Drives a run in memory until nothing is left to do. It is lent for that time only: however it ends, the owner has it
//! back.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use tidewheel_core::Ticket;
use tidewheel_core::policy::{Overlay, Rules};
use tidewheel_core::run::Run;
use tidewheel_core::workflow::Workflow;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::state::{GROUP, Shared, State};
use crate::limits::Limits;
use crate::pool::{Place, Pool};
use crate::react::{Options, SyncWork};
use crate::timers::Timers;

/// Runs until nothing is left to do. The owner has the run back when the future is over or dropped.
pub(crate) async fn drive(owner: &mut Run, options: Options) {
    let clock = options.clock_or_real();
    let timers = Timers::new(Arc::clone(&clock), Handle::current());
    let sync_work = options.sync_work;
    let pool = Pool::new(options.max_concurrency.unwrap_or(usize::MAX), sync_work, Arc::clone(&timers));
    let has_gates = owner.nodes().any(|(_, policy, _)| policy.is_gated());
    let has_compensations = owner.workflow().has_compensations();
    let workflow_name = Arc::from(owner.workflow().name());
    let run = std::mem::replace(owner, stand_in());
    let began_at = clock.now();
    let shared = Arc::new_cyclic(|this| Shared {
        this: Weak::clone(this),
        began_at,
        deadline: options.deadline.map(|span| began_at.saturating_add(span)),
        clock,
        checkpoint: options.checkpoint,
        pool: Arc::clone(&pool),
        limits: Limits::in_memory(Arc::clone(&timers), options.max_concurrency.is_none()),
        has_gates,
        has_compensations,
        workflow_name,
        timers,
        satisfied: Notify::new(),
        state: Mutex::new(State { run: Some(run), ..State::default() }),
    });
    // Invariant: the lease is dropped before the worker, which then finds nothing that somebody else must do.
    let mut work = pin!(match sync_work {
        SyncWork::Inline => Some(pool.worker_here().work_here()),
        SyncWork::Threads => None,
    });
    let lease = Lease { owner, rules_after: options.rules_after, shared };
    lease.shared.go_on(lease.shared.lock());
    if let Some(work) = work.as_mut().as_pin_mut() {
        work.await;
    }
    while !lease.shared.lock().is_satisfied() {
        lease.shared.satisfied.notified().await;
    }
}

/// A run that is driven. When it is dropped, the owner has the run back.
struct Lease<'r> {
    owner: &'r mut Run,
    /// What the run has again then, if the rules of one call were over its own.
    rules_after: Option<Rules>,
    shared: Arc<Shared>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let run = state.run.take();
        let out = std::mem::take(&mut state.out);
        let waiting = std::mem::take(&mut state.waiting);
        let held = std::mem::take(&mut state.held);
        let deciding = std::mem::take(&mut state.deciding);
        drop(state);
        let places: Vec<Place> = out.keys().copied().collect();
        self.shared.pool.close(GROUP, &places);
        self.shared.timers.close();
        if let Some(mut run) = run {
            // What is not over is offered again, in the order in which it was handed out.
            let tickets = out.into_iter().map(|(place, out)| (place, out.ticket));
            let mut open: BTreeMap<Place, Ticket> = tickets.collect();
            open.extend(waiting.into_iter().map(|(place, driven)| (place, driven.runnable.ticket())));
            open.extend(held.into_iter().map(|(place, waiting)| (place, waiting.ticket)));
            open.extend(deciding);
            for ticket in open.values() {
                run.give_back(ticket);
            }
            if let Some(rules) = self.rules_after.take() {
                run = run.with_policies(rules, Overlay::Replace);
            }
            *self.owner = run;
        }
    }
}

/// Returns what the owner holds while the run is driven.
fn stand_in() -> Run {
    static NOTHING: LazyLock<Workflow> =
        LazyLock::new(|| Workflow::new("").build().expect("invariant: where no component is, none is wrong"));
    NOTHING.run("")
}
