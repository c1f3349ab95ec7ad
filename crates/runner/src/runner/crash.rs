//! A run that went wrong in this process, in a way that is not the failure of its work: it is taken up again from what is
//! stored, and put aside if it keeps going wrong.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_store::{Append, Batch, Guard, Status, StoreError};

use super::core::Core;
use super::error::StartError;
use super::keeper::AGAIN_AFTER;
use super::load::{Opened, Wake};
use crate::telemetry;

/// So often may a run go wrong in this process before it is put aside.
const MOST_CRASHES: u32 = 3;

impl Core {
    /// A run went wrong in this process in a way that is not the failure of its work. It is taken up again from
    /// what is stored; one that keeps going wrong is put aside.
    pub(super) fn crashed(self: &Arc<Self>, id: &RunId, why: String) {
        let count = self.count_crash(id);
        let (this, id) = (Arc::clone(self), id.clone());
        let taking_up = async move {
            tracing::error!(run = %id, why, count, "run crashed and is taken up again");
            while let Err(error) = this.take_up_again(&id, count, &why).await {
                tracing::error!(run = %id, error = crate::words(&error), "run cannot be taken up again");
                if !is_passing(&error) || this.is_closing() {
                    return;
                }
                this.sleep(AGAIN_AFTER).await;
            }
        };
        self.spawn(taking_up);
    }

    async fn take_up_again(self: &Arc<Self>, id: &RunId, count: u32, why: &str) -> Result<(), StartError> {
        if count >= MOST_CRASHES {
            // Whoever resumes it gives it as many chances again.
            self.forget_crashes(id);
            return self.park(id, why.to_owned()).await;
        }
        if let Opened::Here(active) = self.open(id, None, Wake::Keep).await? {
            active.go_on();
        }
        Ok(())
    }

    /// Puts a run aside with the reason.
    pub(super) async fn park(&self, id: &RunId, reason: String) -> Result<(), StartError> {
        let Some((lease, record, _)) = self.take(id).await? else { return Ok(()) };
        let told = reason.clone();
        let append = Append {
            run: id.clone(),
            guard: Guard::Held { key: lease.key, fence: lease.fence },
            expected: record.version,
            events: Batch::new(),
            status: Status::Parked,
            reason: Some(reason),
            wake_at: None,
            handled: Vec::new(),
            letters: Vec::new(),
            checkpoint: None,
            release: true,
        };
        if let Err(error) = self.store().append(vec![append]).await {
            self.give_back(vec![lease]);
            return Err(error.into());
        }
        self.metrics().run(Status::Parked);
        telemetry::park(id, &told);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// Tells whether an error is not that of the run, so that another try may go better.
fn is_passing(error: &StartError) -> bool {
    matches!(error, StartError::Closed | StartError::Store(StoreError::Unavailable { .. }))
}
