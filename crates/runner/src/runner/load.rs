//! From the store into this process: runs are claimed, replayed and taken up again.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::run::Run;
use tidewheel_core::time::Span;
use tidewheel_core::work::CaughtFuture;
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{Claim, Claimed, Lease, RunRecord, Status, StoreError, Unavailable, Wanted};
use tokio::sync::{Semaphore, oneshot};

use super::active::{Active, Beginning, Lost, Mode, Right, waiting_for_people};
use super::core::Core;
use super::definition::Definition;
use super::error::StartError;
use super::held::Found;
use super::options::StartOptions;
use super::registry::Registered;
use crate::telemetry;

/// Where a run is.
pub(super) enum Opened {
    Here(Arc<Active>),
    /// Another process drives it.
    Elsewhere,
}

/// What to do with a run that somebody stopped, paused or parked. One that is kept so is here to be asked
/// something, and leaves then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// A program started it again: it goes on, unless somebody paused it. What was lost too often is put aside
    /// again.
    Attach,
    /// It stays as it is.
    Keep,
}

/// What is on its way already is looked at again after this.
const SOON: Span = Span::from_millis(5);

impl Core {
    /// Finds a run here, or claims it and loads it.
    pub(super) async fn open(
        self: &Arc<Self>,
        id: &RunId,
        given: Option<&StartOptions>,
        wake: Wake,
    ) -> Result<Opened, StartError> {
        loop {
            if self.is_closing() && self.held(id).is_none() {
                return Err(StartError::Closed);
            }
            match self.find_or_load(id) {
                Found::Here(active) => return Ok(Opened::Here(active)),
                Found::Wait(done) => drop(done.acquire().await),
                Found::Mine(done) => {
                    // In a task of its own: whoever asked may stop waiting, and what is claimed must not be
                    // forgotten half-way.
                    let loading = Loading { core: Arc::clone(self), id: id.clone(), done };
                    let (given, (tell, told)) = (given.cloned(), oneshot::channel());
                    drop(tokio::spawn(async move {
                        let claiming = Box::pin(loading.core.claim_one(&loading.id, given.as_ref(), wake));
                        let opened = CaughtFuture::new(claiming).await.unwrap_or_else(|panic| {
                            // It may belong to this process by now, and no task drives it.
                            loading.core.set_unsure();
                            loading.core.look.notify_one();
                            tracing::error!(run = %loading.id, why = panic.message, "loading a run panicked");
                            let message = format!("loading it panicked: {}", panic.message);
                            Err(StartError::unreadable(&loading.id, message))
                        });
                        drop(loading);
                        if let Err(Ok(Opened::Here(active))) = tell.send(opened) {
                            active.go_on();
                        }
                    }));
                    return told.await.unwrap_or(Err(StartError::Closed));
                }
            }
        }
    }

    async fn claim_one(
        self: &Arc<Self>,
        id: &RunId,
        given: Option<&StartOptions>,
        wake: Wake,
    ) -> Result<Opened, StartError> {
        let Some(record) = self.store().find(id).await? else {
            return Err(StartError::NotFound { run: id.clone() });
        };
        // Without its definition nothing could be done with it here, so it stays where it is.
        self.definition_of(&record)?;
        match self.take(id).await? {
            Some((lease, record, definition)) => {
                Ok(Opened::Here(self.load(lease, &record, &definition, given, wake).await?))
            }
            None => Ok(Opened::Elsewhere),
        }
    }

    /// Claims a run that nobody drives, or that is this process's without being here: the answer to an earlier
    /// claim got lost, or it went wrong here.
    pub(super) async fn take(&self, id: &RunId) -> Result<Option<(Lease, RunRecord, String)>, StoreError> {
        loop {
            let owner = self.owner();
            let claimed = self.claim(Claim { owner, wanted: Wanted::Run(id.clone()) }).await?;
            if let Some(taken) = claimed.runs.into_iter().next() {
                return Ok(Some(taken));
            }
            match self.store().find(id).await?.map(|record| record.owner) {
                Some(Some(found)) if found == owner => {
                    self.claims_again();
                    let claimed = self.claim(Claim { owner, wanted: Wanted::Again(id.clone()) }).await?;
                    if let Some(taken) = claimed.runs.into_iter().next() {
                        return Ok(Some(taken));
                    }
                }
                // It was given back in between.
                Some(None) if !self.is_closing() => {}
                Some(_) | None => return Ok(None),
            }
            self.sleep(SOON).await;
        }
    }

    /// Claims runs. If the answer may have got lost, what it would have given is looked for later.
    pub(super) async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        let claimed = self.store().claim(claim).await;
        if let Err(StoreError::Unavailable { why: Unavailable::Io, .. } | StoreError::Other(_)) = &claimed {
            self.set_unsure();
        }
        claimed
    }

    /// Loads a run that was claimed because it was due, when so many runs of this process had been claimed again.
    pub(super) async fn load_due(
        self: &Arc<Self>,
        lease: Lease,
        record: &RunRecord,
        definition: &str,
        claimed_again: u64,
    ) -> Result<(), StartError> {
        let loading = loop {
            match self.find_or_load(&record.id) {
                Found::Mine(done) => break Loading { core: Arc::clone(self), id: record.id.clone(), done },
                Found::Wait(done) => drop(done.acquire().await),
                Found::Here(active) => match active.fence() {
                    // Somebody here wanted it at the same time and claimed it again.
                    Some(fence) if fence >= lease.fence => return Ok(()),
                    // It was somebody else's since and does not know it yet.
                    Some(_) if active.is_quiet() => {
                        active.lose(&Lost::Lease("it was claimed again".to_owned()));
                    }
                    // It has left, and is about to learn that.
                    Some(_) | None => tokio::select! {
                        biased;
                        () = self.changed.notified() => {}
                        () = self.sleep(SOON) => {}
                    },
                },
            }
        };
        // It may have been one of those, and have left since: then nothing of this is true any more.
        if self.claimed_again() != claimed_again {
            match self.store().find(&record.id).await {
                Ok(Some(found)) if found.fence == lease.fence => {}
                Ok(_) => return Ok(()),
                Err(error) => {
                    self.give_back(vec![lease]);
                    return Err(error.into());
                }
            }
        }
        let active = self.load(lease, record, definition, None, Wake::Keep).await?;
        drop(loading);
        active.go_on();
        Ok(())
    }

    /// Loads a run that was claimed. If that fails, the run is given back as it was.
    async fn load(
        self: &Arc<Self>,
        lease: Lease,
        record: &RunRecord,
        definition: &str,
        given: Option<&StartOptions>,
        wake: Wake,
    ) -> Result<Arc<Active>, StartError> {
        let loaded = self.replay(&lease, record, definition, given, wake).await;
        let active = match loaded {
            Ok(_) if self.is_closing() => Err(StartError::Closed),
            loaded => loaded,
        };
        let active = match active {
            Ok(active) => active,
            Err(error) => {
                self.give_back(vec![lease]);
                return Err(error);
            }
        };
        self.hold(Arc::clone(&active));
        // Read when everybody can find the run here: whatever is asked later, its owner is told of.
        match self.store().commands_of(active.id()).await {
            Ok(commands) => {
                for command in commands {
                    active.guarded(|| self.obey(&active, &command));
                }
            }
            Err(error) => {
                tracing::warn!(run = %active.id(), error = crate::words(&error), "commands cannot be read");
                self.look.notify_one();
            }
        }
        active.go_on_if_it_may();
        Ok(active)
    }

    async fn replay(
        self: &Arc<Self>,
        lease: &Lease,
        record: &RunRecord,
        definition: &str,
        given: Option<&StartOptions>,
        wake: Wake,
    ) -> Result<Arc<Active>, StartError> {
        let (run, registered, definition) = self.read_run(record, definition, given).await?;
        let missing = |missing| StartError::Context { missing };
        registered.workflow.check_context(run.context()).map_err(missing)?;
        let mode = match (record.status, wake) {
            (Status::Paused, Wake::Keep | Wake::Attach) => Mode::Paused,
            // It was stopped while it waited for a person, and still does.
            (Status::Stopped | Status::Parked, Wake::Attach) if !waiting_for_people(&run).is_empty() => {
                Mode::Paused
            }
            (Status::Stopped | Status::Parked, Wake::Attach)
            | (Status::Running | Status::Waiting | Status::Completed | Status::Failed, _) => Mode::Going,
            (status @ (Status::Stopped | Status::Parked), Wake::Keep) | (status @ Status::Cancelled, _) => {
                Mode::Aside { status, reason: record.reason.clone() }
            }
        };
        if mode == Mode::Going && matches!(record.status, Status::Paused | Status::Stopped | Status::Parked) {
            telemetry::resume(&record.id);
        }
        let beginning = Beginning {
            run,
            workflow: registered.workflow.clone(),
            deadline: definition.deadline,
            checkpoints: definition.checkpoints,
            right: Right::Held(lease.clone()),
            version: record.version,
            pause_reason: record.reason.clone().filter(|_| mode == Mode::Paused),
            mode,
        };
        Ok(Active::new(Arc::clone(self), beginning))
    }

    /// Reads a run as it is stored, without driving it.
    pub(super) async fn read_run(
        &self,
        record: &RunRecord,
        definition: &str,
        given: Option<&StartOptions>,
    ) -> Result<(Run, Arc<Registered>, Definition), StartError> {
        let id = &record.id;
        let registered = self.definition_of(record)?;
        let definition = Definition::read(id, definition)?;
        let changes = registered.workflow.changes_since(&definition.signature);
        if !changes.is_empty() {
            return Err(StartError::Changed { run: id.clone(), changes });
        }
        let own = self.given(id);
        let given = given.filter(|given| given.holds_what_is_not_stored()).or(own.as_deref());
        let given = given.unwrap_or(&registered.options);
        let rules = definition.rules(id, given.policies.as_ref())?;
        let options = StartOptions { policies: rules, ..given.clone() };
        let stored = self.store().read(id, 0).await?;
        let mut lines = Vec::new();
        for batch in &stored {
            lines.extend(batch.events.events().map_err(|error| StartError::batch(id, error))?);
        }
        let run = fresh_run(id, &registered.workflow, &options);
        let run = run.replayed_json(lines).map_err(|error| StartError::replay(id, error))?;
        Ok((run, registered, definition))
    }

    fn definition_of(&self, record: &RunRecord) -> Result<Arc<Registered>, StartError> {
        self.registered(&record.workflow, record.workflow_version).ok_or_else(|| StartError::Unregistered {
            run: record.id.clone(),
            workflow: record.workflow.clone(),
            version: record.workflow_version,
        })
    }
}

/// A run that somebody loads. Whoever waits for it is told when this is over, however it ends.
struct Loading {
    core: Arc<Core>,
    id: RunId,
    done: Arc<Semaphore>,
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.core.give_up_loading(&self.id, &self.done);
    }
}

/// Returns a run with what it is given, to which nothing has happened yet.
pub(super) fn fresh_run(id: &RunId, workflow: &Workflow, options: &StartOptions) -> Run {
    let run = workflow.run(id.clone()).with_context(options.context.clone());
    match &options.policies {
        None => run,
        Some((rules, overlay)) => run.with_policies(rules.clone(), *overlay),
    }
}
