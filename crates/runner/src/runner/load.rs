//! From the store into this process: runs are created, claimed, replayed and taken up again.

use std::sync::Arc;

use tidewheel_core::fact::{RunId, Value};
use tidewheel_core::run::Run;
use tidewheel_core::time::Span;
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{
    Append, Batch, Claim, Claimed, Guard, Lease, NewRun, RunRecord, Status, StoreError, Unavailable, Wanted,
};
use tokio::sync::{Semaphore, oneshot};

use super::active::{Active, Beginning, By, Lost, Mode, Right, waiting_for_people};
use super::core::{Core, Found, Registered};
use super::definition::Definition;
use super::error::StartError;
use super::handle::LOOK_AGAIN;
use super::keeper::AGAIN_AFTER;
use super::options::StartOptions;
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

/// So often may a run go wrong in this process before it is put aside.
const MOST_CRASHES: u32 = 3;

impl Core {
    /// Starts a run, or attaches to it if it exists.
    pub(super) async fn start(
        self: &Arc<Self>,
        id: &RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
        is_new: IsNew,
    ) -> Result<(), StartError> {
        if self.is_closing() {
            return Err(StartError::Closed);
        }
        let was_known = self.registered(workflow.name(), workflow.version()).is_some();
        self.register(workflow, options)?;
        let started = self.start_registered(id, workflow, options, input, is_new).await;
        if let Err(StartError::Changed { .. } | StartError::OtherWorkflow { .. }) = &started
            && !was_known
        {
            // Whoever comes with the right definition must not find this one in its place.
            self.unregister(workflow);
        }
        started
    }

    async fn start_registered(
        self: &Arc<Self>,
        id: &RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
        is_new: IsNew,
    ) -> Result<(), StartError> {
        self.check(workflow, options)?;
        if let Some(value) = &input {
            value.to_text().map_err(StartError::Input)?;
        }
        self.give(id, options);
        let is_full = self.options().takes_due_runs && self.room() == 0;
        if is_full {
            match self.enqueue(id, workflow, options, input.clone()).await? {
                Ok(()) => {
                    self.want_room(true);
                    self.look.notify_one();
                    return Ok(());
                }
                Err(Lost::Exists) if is_new == IsNew::Must => return Err(exists(id)),
                Err(_) => {}
            }
        }
        loop {
            match self.find_or_load(id) {
                Found::Here(_) if is_new == IsNew::Must => return Err(exists(id)),
                Found::Here(active) => {
                    check_same(id, workflow, active.workflow())?;
                    if self.wake(&active).await? {
                        return Ok(());
                    }
                }
                // Closed when it is done; that is no error here.
                Found::Wait(done) => drop(done.acquire().await),
                Found::Mine(_) => match self.create(id, workflow, options, input.clone()).await {
                    Ok(()) => return Ok(()),
                    Err(Lost::Exists) if is_new == IsNew::Must => return Err(exists(id)),
                    Err(lost @ (Lost::Exists | Lost::PerhapsOurs)) => {
                        let record = self.store().find(id).await?;
                        let is_ours =
                            record.as_ref().is_some_and(|record| record.owner == Some(self.owner()));
                        if is_new == IsNew::Must && !(is_ours && matches!(lost, Lost::PerhapsOurs)) {
                            return Err(exists(id));
                        }
                        if let Some(definition) = self.store().definition(id).await? {
                            let stored = Definition::read(id, &definition)?;
                            let changes = workflow.changes_since(&stored.signature);
                            if stored.signature.workflow == workflow.name() && !changes.is_empty() {
                                return Err(StartError::Changed { run: id.clone(), changes });
                            }
                        }
                        if let Some(record) = &record {
                            check_workflow(id, workflow, record)?;
                            // Somebody takes it when there is room.
                            if is_full && goes_on_by_itself(record.status) && record.owner.is_none() {
                                self.want_room(true);
                                self.look.notify_one();
                                return Ok(());
                            }
                        }
                        match self.open(id, Some(options), Wake::Attach).await? {
                            Opened::Here(active) if !self.wake(&active).await? => {}
                            Opened::Here(_) | Opened::Elsewhere => return Ok(()),
                        }
                    }
                    Err(lost @ (Lost::Crashed(_) | Lost::Otherwise(_) | Lost::NotAwaited(_))) => {
                        return Err(StartError::Store(StoreError::Other(lost.to_string().into())));
                    }
                },
            }
        }
    }

    /// Sees to it that a run that is here goes on, if it can. Tells whether it is still here.
    async fn wake(&self, active: &Arc<Active>) -> Result<bool, StartError> {
        // What somebody paused stays so, also when the program is started again.
        match active.mode() {
            // Somebody else creates it just now: when this returns, it is stored.
            Mode::Going | Mode::Paused if active.fence().is_none() => {
                let (ack, stored) = oneshot::channel();
                let is_asked = active.dismiss(By::Caller(ack), None);
                return Ok(is_asked && matches!(stored.await, Ok(Ok(()))));
            }
            Mode::Going | Mode::Paused => return Ok(true),
            // It is over, and leaves again.
            Mode::Aside { status: Status::Cancelled, .. } => {
                active.go_on();
                return Ok(true);
            }
            // It was put aside again, or is over: that is how it is.
            Mode::Leaving { status: Status::Parked | Status::Cancelled, .. }
            | Mode::Gone { status: Some(Status::Parked | Status::Cancelled), .. } => {
                self.until_gone(active).await;
                return Ok(true);
            }
            Mode::Aside { .. } | Mode::Leaving { .. } | Mode::Gone { .. } => {}
        }
        let (ack, stored) = oneshot::channel();
        if !active.resume(By::Caller(ack)) {
            self.until_gone(active).await;
            return Ok(false);
        }
        match stored.await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(lost)) => Err(StartError::Store(StoreError::Other(lost.to_string().into()))),
            Err(_) => Err(StartError::Closed),
        }
    }

    /// Waits until a run that leaves this process has left it.
    pub(super) async fn until_gone(&self, active: &Arc<Active>) {
        loop {
            let changed = self.changed.notified();
            let is_here = self.held(active.id()).is_some_and(|here| Arc::ptr_eq(&here, active));
            if !is_here || matches!(active.mode(), Mode::Going | Mode::Paused) {
                return;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.sleep(LOOK_AGAIN) => {}
            }
        }
    }

    async fn create(
        self: &Arc<Self>,
        id: &RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
    ) -> Result<(), Lost> {
        let new = NewRun {
            workflow: workflow.name().to_owned(),
            workflow_version: workflow.version(),
            definition: self.written(workflow, options),
            owner: Some(self.owner()),
        };
        let beginning = Beginning {
            run: fresh_run(id, workflow, options),
            workflow: workflow.clone(),
            deadline: options.deadline,
            checkpoints: options.checkpoints,
            right: Right::New(Box::new(new)),
            version: 0,
            mode: Mode::Going,
            pause_reason: None,
        };
        let active = Active::new(Arc::clone(self), beginning);
        self.hold(Arc::clone(&active));
        let (ack, stored) = oneshot::channel();
        active.create(input, ack);
        stored.await.unwrap_or_else(|_| Err(Lost::Otherwise("the runner shuts down".to_owned())))
    }

    /// Stores a run for which there is no room now. Somebody takes it when there is.
    async fn enqueue(
        &self,
        id: &RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
    ) -> Result<Result<(), Lost>, StartError> {
        let now = self.clock().now();
        let mut run = fresh_run(id, workflow, options);
        let mut events = Batch::new();
        let has_input = input.is_some();
        if let Some(input) = input {
            for event in run.plan_accepted(input, now, None) {
                let line = event.to_json(workflow).map_err(StartError::Input)?;
                events.push(&line);
            }
        }
        let append = Append {
            run: id.clone(),
            guard: Guard::New(Box::new(NewRun {
                workflow: workflow.name().to_owned(),
                workflow_version: workflow.version(),
                definition: self.written(workflow, options),
                owner: None,
            })),
            expected: 0,
            events,
            status: if has_input { Status::Running } else { Status::Waiting },
            reason: None,
            wake_at: has_input.then_some(now),
            handled: Vec::new(),
            letters: Vec::new(),
            checkpoint: None,
            release: false,
        };
        let answers = self.store().append(vec![append]).await?;
        Ok(match answers.into_iter().next() {
            Some(Ok(_)) => Ok(()),
            _ => Err(Lost::Exists),
        })
    }

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
                        let opened = loading.core.claim_one(&loading.id, given.as_ref(), wake).await;
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
    async fn take(&self, id: &RunId) -> Result<Option<(Lease, RunRecord, String)>, StoreError> {
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
                        active.lose(&Lost::Otherwise("it was claimed again".to_owned()));
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
    pub(super) async fn load(
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
                    self.obey(&active, &command);
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

    /// A run went wrong in this process in a way that is not the failure of its work. It is taken up again from
    /// what is stored; one that keeps going wrong is put aside.
    pub(super) fn crashed(self: &Arc<Self>, id: &RunId, why: String) {
        let count = self.count_crash(id);
        let (this, id) = (Arc::clone(self), id.clone());
        drop(tokio::runtime::Handle::try_current().map(|runtime| {
            runtime.spawn(async move {
                tracing::error!(run = %id, why, count, "run crashed and is taken up again");
                while let Err(error) = this.take_up_again(&id, count, &why).await {
                    tracing::error!(run = %id, error = crate::words(&error), "run cannot be taken up again");
                    if !is_passing(&error) || this.is_closing() {
                        return;
                    }
                    this.sleep(AGAIN_AFTER).await;
                }
            })
        }));
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

/// Tells whether an error is not that of the run, so that another try may go better.
pub(super) fn is_passing(error: &StartError) -> bool {
    matches!(error, StartError::Closed | StartError::Store(StoreError::Unavailable { .. }))
}

const fn goes_on_by_itself(status: Status) -> bool {
    matches!(status, Status::Running | Status::Waiting | Status::Completed | Status::Failed)
}

/// Whether a run must not exist yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsNew {
    Must,
    May,
}

fn exists(id: &RunId) -> StartError {
    StartError::Exists { run: id.clone() }
}

fn fresh_run(id: &RunId, workflow: &Workflow, options: &StartOptions) -> Run {
    let run = workflow.run(id.clone()).with_context(options.context.clone());
    match &options.policies {
        None => run,
        Some((rules, overlay)) => run.with_policies(rules.clone(), *overlay),
    }
}

fn check_same(id: &RunId, wanted: &Workflow, found: &Workflow) -> Result<(), StartError> {
    if wanted.name() != found.name() || wanted.version() != found.version() {
        return Err(StartError::OtherWorkflow {
            run: id.clone(),
            found: found.name().to_owned(),
            found_version: found.version(),
            wanted: wanted.name().to_owned(),
            wanted_version: wanted.version(),
        });
    }
    let changes = wanted.changes_since(&found.signature());
    if changes.is_empty() { Ok(()) } else { Err(StartError::Changed { run: id.clone(), changes }) }
}

fn check_workflow(id: &RunId, wanted: &Workflow, record: &RunRecord) -> Result<(), StartError> {
    if wanted.name() == record.workflow && wanted.version() == record.workflow_version {
        return Ok(());
    }
    Err(StartError::OtherWorkflow {
        run: id.clone(),
        found: record.workflow.clone(),
        found_version: record.workflow_version,
        wanted: wanted.name().to_owned(),
        wanted_version: wanted.version(),
    })
}
