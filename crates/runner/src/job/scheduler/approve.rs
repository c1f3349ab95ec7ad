//! What a person says to a job that asks for approval.

use tidewheel_core::job::{By, JobId, Record, approve, loop_back, reject};

use super::Scheduler;
use super::error::SchedulerError;
use super::pass::Pass;
use super::ticked::Ticked;

impl Scheduler {
    /// Approves a job, and lets it go on.
    ///
    /// # Errors
    /// There is no such job, or it waits for no approval.
    pub fn approve(&self, id: &JobId) -> Result<(Record, Ticked), SchedulerError> {
        self.decide_approval(id, |pass, mut record| {
            let event = approve(&mut record, By { actor: &self.options.actor, at: pass.now })?;
            pass.batch.events.push((record.id.clone(), event));
            pass.change(record);
            Ok(())
        })
    }

    /// Rejects a job, which ends it.
    ///
    /// # Errors
    /// There is no such job, or it waits for no approval.
    pub fn reject(&self, id: &JobId, reason: Option<&str>) -> Result<(Record, Ticked), SchedulerError> {
        self.decide_approval(id, |pass, mut record| {
            let by = By { actor: &self.options.actor, at: pass.now };
            let (outcome, event) = reject(&mut record, reason, by)?;
            pass.batch.outcomes.push(outcome);
            pass.batch.events.push((record.id.clone(), event));
            if let Some(node) = pass.node_of(record.run().as_ref(), record.node().as_ref()) {
                loop_back(&mut record, &node, pass.now);
            }
            pass.change(record);
            Ok(())
        })
    }

    fn decide_approval<'s>(
        &'s self,
        id: &JobId,
        decide: impl FnOnce(&mut Pass<'s>, Record) -> Result<(), SchedulerError>,
    ) -> Result<(Record, Ticked), SchedulerError> {
        let mut pass = self.pass()?;
        let record = pass.record(id)?;
        decide(&mut pass, record)?;
        let ticked = pass.conclude()?;
        let record = self.store_record(id)?;
        Ok((record, ticked))
    }
}
