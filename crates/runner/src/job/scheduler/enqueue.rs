//! New jobs: a run with its gates is there as a whole, or not at all.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use tidewheel_core::job::{Brief, JobId, Manifest, Record};

use super::Scheduler;
use super::error::SchedulerError;
use super::ticked::Ticked;

impl Scheduler {
    /// Enqueues the jobs of a run, and lets start what may start.
    ///
    /// What they wait for at first is judged before they are written, so that none is written twice for it.
    ///
    /// # Errors
    /// Nothing was enqueued.
    pub fn enqueue(&self, records: Vec<Record>, manifest: Manifest) -> Result<Ticked, SchedulerError> {
        let (mut records, mut manifest) = (records, manifest);
        let hidden = self.options.secrets.hide_in_run(&mut records, &mut manifest);
        hidden.map_err(|error| SchedulerError::Enqueue(error.to_string()))?;
        let mut pass = self.pass()?;
        let outside: BTreeSet<JobId> = records
            .iter()
            .flat_map(|record| &record.schedule.after)
            .map(|after| after.job_id.clone())
            .collect();
        for record in records {
            pass.change(record);
        }
        for id in outside {
            // What ended long ago is not among the active jobs, and counts all the same.
            if let Entry::Vacant(vacant) = pass.jobs.briefs.entry(id.clone()) {
                match self.store_record(&id) {
                    Ok(record) => {
                        vacant.insert(Brief::from(&record));
                    }
                    Err(SchedulerError::NoJob(id)) => {
                        return Err(SchedulerError::Enqueue(format!("unknown --after job id: {id}")));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        pass.batch.manifest = Some(manifest);
        pass.conclude_enqueue()
    }
}
