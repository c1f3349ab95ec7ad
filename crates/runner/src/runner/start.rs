//! Starts runs, or attaches to those that exist: created here, stored for when there is room, or taken up again. How a
//! stored run is read is not its business.

use std::sync::Arc;

use tidewheel_core::fact::{RunId, Value};
use tidewheel_core::workflow::Workflow;
use tidewheel_store::{Append, Batch, Guard, NewRun, OwnerId, Status};
use tokio::sync::oneshot;

use super::active::{Active, Beginning, By, Lost, Mode, Right, Taken};
use super::core::Core;
use super::definition::Definition;
use super::error::StartError;
use super::handle::LOOK_AGAIN;
use super::held::Found;
use super::load::{Opened, Wake, fresh_run};
use super::options::StartOptions;

/// Whether a run must not exist yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsNew {
    Must,
    May,
}

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
        // What this run is given is for it alone: others get what the workflow was registered with.
        self.register_for(workflow, options)?;
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
        if is_new == IsNew::May {
            self.check_options(id, options).await?;
        }
        let before = self.give(id, options);
        let started = self.create_or_attach(id, workflow, options, input, is_new).await;
        if let Err(StartError::OtherOptions { .. }) = &started {
            // Another caller created the run in this moment, and what it was given stays the run's.
            self.give_again(id, before);
        }
        started
    }

    async fn create_or_attach(
        self: &Arc<Self>,
        id: &RunId,
        workflow: &Workflow,
        options: &StartOptions,
        input: Option<Value>,
        is_new: IsNew,
    ) -> Result<(), StartError> {
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
                        // It may have been created since the options were checked.
                        return self.check_options(id, options).await;
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
                        if matches!(lost, Lost::Exists) {
                            self.check_options(id, options).await?;
                        }
                        if let Some(record) = &record {
                            check_workflow(id, workflow, &record.workflow, record.workflow_version)?;
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
                    Err(lost) => return Err(StartError::of_loss(id, lost)),
                },
            }
        }
    }

    /// Refuses options that would have no effect on a run that exists: what it was created with is stored, and one that
    /// is loaded here has its context.
    async fn check_options(&self, id: &RunId, options: &StartOptions) -> Result<(), StartError> {
        let mut others = Vec::new();
        if !options.is_plain()
            && let Some(definition) = self.store().definition(id).await?
        {
            others = Definition::read(id, &definition)?.other_options(options);
        }
        let is_other = |active: Arc<Active>| active.look(|run| *run.context() != options.context);
        if options.has_context && self.held(id).is_some_and(is_other) {
            others.push("context");
        }
        if others.is_empty() {
            Ok(())
        } else {
            Err(StartError::OtherOptions { run: id.clone(), options: others })
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
        match active.resume(By::Caller(ack)) {
            Taken::Not => {
                self.until_gone(active).await;
                return Ok(false);
            }
            // It came to its end, or was cancelled, in this moment: that is how it is.
            Taken::NoEffect { .. } => return Ok(true),
            Taken::Done | Taken::AlreadySo => {}
        }
        match stored.await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(lost)) => Err(StartError::of_loss(active.id(), lost)),
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
        let beginning = Beginning {
            run: fresh_run(id, workflow, options),
            workflow: workflow.clone(),
            deadline: options.deadline,
            checkpoints: options.checkpoints.unwrap_or_default(),
            right: Right::New(Box::new(self.new_run(workflow, options, Some(self.owner())))),
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
            guard: Guard::New(Box::new(self.new_run(workflow, options, None))),
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

    /// Returns what is stored of a run that is created.
    fn new_run(&self, workflow: &Workflow, options: &StartOptions, owner: Option<OwnerId>) -> NewRun {
        NewRun {
            workflow: workflow.name().to_owned(),
            workflow_version: workflow.version(),
            definition: self.written(workflow, options),
            owner,
        }
    }
}

const fn goes_on_by_itself(status: Status) -> bool {
    matches!(status, Status::Running | Status::Waiting | Status::Completed | Status::Failed)
}

fn exists(id: &RunId) -> StartError {
    StartError::Exists { run: id.clone() }
}

fn check_same(id: &RunId, wanted: &Workflow, found: &Workflow) -> Result<(), StartError> {
    check_workflow(id, wanted, found.name(), found.version())?;
    let changes = wanted.changes_since(&found.signature());
    if changes.is_empty() { Ok(()) } else { Err(StartError::Changed { run: id.clone(), changes }) }
}

fn check_workflow(id: &RunId, wanted: &Workflow, found: &str, found_version: u32) -> Result<(), StartError> {
    if wanted.name() == found && wanted.version() == found_version {
        return Ok(());
    }
    Err(StartError::OtherWorkflow {
        run: id.clone(),
        found: found.to_owned(),
        found_version,
        wanted: wanted.name().to_owned(),
        wanted_version: wanted.version(),
    })
}
