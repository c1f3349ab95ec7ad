//! What keeps a runner going beside its runs: it stays an owner, takes runs that are due, and obeys what people
//! ask through the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidewheel_core::command::RunCommand;
use tidewheel_core::fact::{RunId, RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::{CaughtFuture, Token};
use tidewheel_store::{Claim, Command, Filter, NewCommand, Refused, Renewed, Status, StoreError, Wanted};
use tokio::task::AbortHandle;

use super::active::{Active, By, Lost, Said, Taken};
use super::core::Core;
use super::error::StartError;
use super::held::MOST_RESTING;
use super::load::{Opened, Wake};

/// As many runs are claimed at once.
const CLAIMED_AT_ONCE: usize = 512;

/// As many runs that were started here with something that is not stored are looked for elsewhere at once.
const LOOKED_FOR_AT_ONCE: usize = 64;

/// A store that failed is asked again after this.
pub(super) const AGAIN_AFTER: Span = Span::from_millis(250);

/// What somebody asks of a run through the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Asked {
    Input {
        value: Box<RawValue>,
        #[serde(default)]
        key: Option<String>,
    },
    Signal {
        component: String,
        value: Box<RawValue>,
    },
    Cancel,
    CancelWork {
        work: RunnableId,
    },
    Pause,
    Resume,
    Stop,
    Checkpoint,
    Retry {
        /// One piece of work; all that failed without it.
        #[serde(default)]
        work: Option<RunnableId>,
    },
    Complete {
        token: String,
        value: Box<RawValue>,
    },
    Fail {
        token: String,
        failure: Box<RawValue>,
    },
    Heartbeat {
        token: String,
    },
}

impl Asked {
    /// Returns the row of the table of commands by status that it is in.
    pub(super) const fn verb(&self) -> RunCommand {
        match self {
            Self::Input { .. } => RunCommand::Input,
            Self::Signal { .. } => RunCommand::Signal,
            Self::Cancel | Self::CancelWork { .. } => RunCommand::Cancel,
            Self::Pause => RunCommand::Pause,
            Self::Resume => RunCommand::Resume,
            Self::Stop => RunCommand::Stop,
            Self::Checkpoint => RunCommand::Checkpoint,
            Self::Retry { .. } => RunCommand::Retry,
            Self::Complete { .. } => RunCommand::Complete,
            Self::Fail { .. } => RunCommand::Fail,
            Self::Heartbeat { .. } => RunCommand::Heartbeat,
        }
    }

    /// Returns whether the status of the run alone says what it does. What is about one piece of work depends on that.
    pub(super) const fn is_of_whole_run(&self) -> bool {
        !matches!(
            self,
            Self::CancelWork { .. } | Self::Complete { .. } | Self::Fail { .. } | Self::Heartbeat { .. }
        )
    }

    pub(super) fn command(&self, run: &RunId) -> NewCommand {
        let kind = match self {
            Self::CancelWork { .. } => "cancel_work",
            other => other.verb().name(),
        };
        let body = serde_json::to_string(self).expect("invariant: a command has no key that is not a string");
        NewCommand { run: run.clone(), kind: kind.to_owned(), body }
    }
}

impl Core {
    /// Does what somebody asked of a run. What cannot be understood is put away, and said in the log.
    /// What comes too late for the run here is left where it is: it makes the run due as soon as it has left.
    pub(super) fn obey(&self, active: &Arc<Active>, command: &Command) {
        let by = By::Command(command.id);
        let is_taken = |taken: Taken| !matches!(taken, Taken::Not);
        let is_taken = match serde_json::from_str(&command.body) {
            Ok(Asked::Input { value, key }) => is_taken(active.input(Value::stored(value), key, by)),
            Ok(Asked::Signal { component, value }) => {
                active.signal(&component, Value::stored(value), by).map_or_else(
                    |error| {
                        tracing::warn!(run = %command.run, %error, "signal is not taken");
                        true
                    },
                    is_taken,
                )
            }
            Ok(Asked::Cancel) => is_taken(active.cancel(by)),
            Ok(Asked::CancelWork { work }) => active.cancel_work(work, by).is_some(),
            Ok(Asked::Pause) => is_taken(active.pause(by)),
            Ok(Asked::Resume) => is_taken(active.resume(by)),
            Ok(Asked::Stop) => is_taken(active.stop(by)),
            Ok(Asked::Checkpoint) => is_taken(active.checkpoint(by)),
            Ok(Asked::Retry { work }) => active.retry(work, by).is_some(),
            Ok(Asked::Complete { token, value }) => {
                self.obey_outside(active, command, &token, Ok(Said::Completed(Value::stored(value))))
            }
            Ok(Asked::Fail { token, failure }) => {
                let failure = Failure::from_json(failure.get()).map(Said::Failed);
                self.obey_outside(active, command, &token, failure)
            }
            Ok(Asked::Heartbeat { token }) => self.obey_outside(active, command, &token, Ok(Said::Alive)),
            Err(error) => {
                tracing::warn!(run = %command.run, kind = command.kind, %error, "command is not understood");
                active.dismiss(by, Some(format!("it was not understood: {error}")))
            }
        };
        tracing::debug!(run = %command.run, kind = command.kind, is_taken, "command");
    }

    fn obey_outside(
        &self,
        active: &Active,
        command: &Command,
        token: &str,
        said: Result<Said, serde_json::Error>,
    ) -> bool {
        let by = By::Command(command.id);
        match (token.parse::<Token>(), said) {
            (Ok(token), Ok(said)) => {
                let was_there = active.end_from_outside(&token, said, by);
                if was_there == Some(false) {
                    tracing::warn!(run = %command.run, %token, "nobody waits for this token");
                }
                was_there.is_some()
            }
            (Err(error), _) => {
                tracing::warn!(run = %command.run, %error, "command is not understood");
                active.dismiss(by, Some(error.to_string()))
            }
            (_, Err(error)) => {
                tracing::warn!(run = %command.run, %error, "command is not understood");
                active.dismiss(by, Some(error.to_string()))
            }
        }
    }

    /// Starts what keeps the runner going. Each task is started again when it panics.
    pub(super) fn start_tasks(self: &Arc<Self>) -> Vec<AbortHandle> {
        let supervisor = self.supervisor();
        let committer = || {
            let committer = Arc::clone(self.committer());
            supervisor.spawn("committer", move |_| Arc::clone(&committer).serve())
        };
        let (owner, watcher) = (Arc::clone(self), Arc::clone(self));
        vec![
            committer(),
            committer(),
            supervisor.spawn("lease keeper", move |_| Arc::clone(&owner).stay_owner()),
            supervisor.spawn("store watcher", move |restarts| {
                if restarts > 0 {
                    // Runs that it had claimed and not loaded belong to this process, and no task drives them.
                    watcher.set_unsure();
                }
                Arc::clone(&watcher).watch_store()
            }),
        ]
    }

    /// Stays an owner. One that came too late gives everything up and begins anew.
    pub(super) async fn stay_owner(self: Arc<Self>) {
        let lease = self.options().lease;
        let mut renewed_at = self.local_clock().now();
        loop {
            let mut is_alone = false;
            tokio::select! {
                biased;
                () = self.sleep(Span::from_millis(lease.as_millis() / 3)) => {}
                () = self.late.notified() => {}
            }
            let asked_at = self.local_clock().now();
            match self.renew().await {
                Ok(Ok(renewed)) => {
                    renewed_at = asked_at;
                    is_alone = renewed.is_alone;
                }
                Ok(Err(_)) if self.is_closing() => return,
                Ok(Err(refused)) => {
                    self.begin_anew(&refused.to_string()).await;
                    renewed_at = self.local_clock().now();
                }
                Err(error) => {
                    tracing::warn!(error = crate::words(&error), "lease cannot be renewed");
                    let two_thirds = Span::from_millis(lease.as_millis() * 2 / 3);
                    if self.local_clock().now() >= renewed_at.saturating_add(two_thirds) {
                        self.begin_anew("the lease could not be renewed").await;
                        renewed_at = self.local_clock().now();
                    }
                }
            }
            self.forget_what_is_elsewhere().await;
            let gives_back = self.give_up_resting(0);
            // Nobody is told when another process dies: its runs are looked for now and then. What is given back may be
            // due again soon.
            if gives_back || !is_alone {
                self.look.notify_one();
            }
        }
    }

    /// Renews the lease, and takes the store's time from the answer.
    async fn renew(&self) -> Result<Result<Renewed, Refused>, StoreError> {
        let asked = self.local_clock().now();
        let answer = self.store().renew(self.owner(), self.options().lease).await;
        if let Ok(Ok(renewed)) = &answer {
            self.store_clock().set(asked, renewed.now, self.local_clock().now());
        }
        answer
    }

    /// Finds out what became of the lease and of the store's time while the machine was suspended. Returns whether this
    /// process may claim runs.
    async fn is_owner_after_suspend(&self) -> Result<bool, StoreError> {
        if !self.was_suspended() {
            return Ok(true);
        }
        let is_owner = match self.renew().await {
            Ok(renewed) => renewed.is_ok(),
            Err(error) => {
                self.forget_suspend();
                return Err(error);
            }
        };
        if !is_owner {
            // The lease keeper gives up what is another's by now, and begins anew.
            self.late.notify_one();
        }
        Ok(is_owner)
    }

    /// Forgets what runs were started with here that are over, or that another process has by now.
    async fn forget_what_is_elsewhere(&self) {
        for id in self.given_and_gone(LOOKED_FOR_AT_ONCE) {
            let Ok(found) = self.store().find(&id).await else { return };
            let is_ours = found.is_some_and(|record| {
                let is_over = matches!(record.status, Status::Completed | Status::Failed | Status::Cancelled);
                !is_over && record.owner.is_none_or(|owner| owner == self.owner())
            });
            if !is_ours && self.held(&id).is_none() {
                self.forget_given(&id);
            }
        }
    }

    async fn begin_anew(&self, why: &str) {
        tracing::error!(why, "runs are given up: another process may have them");
        for active in self.all_held() {
            active.lose(&Lost::Lease(why.to_owned()));
        }
        // What is given up is free for others at once, if the store can be reached, and otherwise in time.
        drop(self.store().leave(self.owner()).await);
        loop {
            let asked = self.local_clock().now();
            match self.store().join(self.options().lease).await {
                Ok(joined) => {
                    self.store_clock().set(asked, joined.now, self.local_clock().now());
                    self.set_owner(joined.owner);
                    self.look.notify_one();
                    return;
                }
                Err(StoreError::Closed | StoreError::Broken | StoreError::Moved { .. }) => {
                    return std::future::pending().await;
                }
                Err(_) => self.sleep(AGAIN_AFTER).await,
            }
        }
    }

    /// Takes runs that are due, and obeys what people ask.
    pub(super) async fn watch_store(self: Arc<Self>) {
        let mut has_failed = false;
        while !self.is_closing() {
            let next_due = match self.look_around().await {
                Ok(next_due) => {
                    has_failed = false;
                    self.committer().set_watch_trouble(None);
                    next_due
                }
                Err(error) => {
                    tracing::warn!(error = crate::words(&error), "the store cannot be used");
                    // One failure may be over at once, and then nothing stood in the way of anything.
                    if std::mem::replace(&mut has_failed, true) {
                        self.committer().set_watch_trouble(Some(crate::words(&error)));
                        self.sleep(AGAIN_AFTER).await;
                    }
                    continue;
                }
            };
            tokio::select! {
                biased;
                () = self.look.notified() => {}
                () = self.store().alerted(self.owner()) => {}
                () = self.until(next_due) => {}
            }
        }
    }

    /// Does everything that there is to do, and returns when there will be more.
    async fn look_around(self: &Arc<Self>) -> Result<Option<Timestamp>, StoreError> {
        if !self.is_owner_after_suspend().await? {
            return Ok(None);
        }
        let most_resting = MOST_RESTING.min(self.options().max_active_runs);
        self.give_up_resting(most_resting);
        let leases = self.take_leases();
        if !leases.is_empty()
            && let Err(error) = self.store().release(leases.clone()).await
        {
            self.give_back(leases);
            return Err(error);
        }
        if self.take_unsure()
            && let Err(error) = self.find_own().await
        {
            self.set_unsure();
            return Err(error);
        }
        for command in self.store().commands(self.owner()).await? {
            if let Some(active) = self.held(&command.run) {
                active.guarded(|| self.obey(&active, &command));
            }
        }
        let workflows = self.registered_names();
        if !self.options().takes_due_runs || workflows.is_empty() {
            return Ok(None);
        }
        loop {
            // Asked for before looking, so that whoever rests in between says so.
            self.want_room(true);
            let limit = self.room().min(CLAIMED_AT_ONCE);
            if limit == 0 || self.is_closing() {
                // Whoever leaves or rests says so.
                return Ok(None);
            }
            self.want_room(false);
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let wanted = Wanted::Due { workflows: workflows.clone(), limit };
            let claimed_again = self.claimed_again();
            let claimed = self.claim(Claim { owner: self.owner(), wanted }).await?;
            let count = claimed.runs.len();
            let mut passing = None;
            for (lease, record, definition) in claimed.runs {
                let id = record.id.clone();
                let loading = Box::pin(self.load_due(lease, &record, &definition, claimed_again));
                let loaded = match CaughtFuture::new(loading).await {
                    Ok(loaded) => loaded,
                    // It is this run's alone: the others go on, and it is tried again, but not for ever.
                    Err(panic) => {
                        self.crashed(&id, panic.message);
                        continue;
                    }
                };
                match loaded {
                    Ok(()) => {}
                    // The run is not to blame, and stays due.
                    Err(StartError::Store(
                        error @ (StoreError::Unavailable { .. }
                        | StoreError::Broken
                        | StoreError::Moved { .. }
                        | StoreError::Closed),
                    )) => passing = Some(error),
                    Err(StartError::Closed) => return Ok(None),
                    Err(error) => {
                        tracing::error!(run = %id, error = crate::words(&error), "run cannot be taken up");
                        self.put_aside(&id, &crate::words(&error)).await;
                    }
                }
            }
            if let Some(error) = passing {
                return Err(error);
            }
            if count < limit as usize {
                return Ok(claimed.next_due);
            }
        }
    }

    /// Takes up runs that are this process's and that it does not know of: the answer to a claim got lost.
    async fn find_own(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut filter = Filter::default();
        loop {
            let page = self.store().list(filter.clone()).await?;
            let own = page.rows.into_iter().filter(|record| record.owner == Some(self.owner()));
            for record in own.filter(|record| self.held(&record.id).is_none()) {
                match self.open(&record.id, None, Wake::Keep).await {
                    Ok(Opened::Here(active)) => active.go_on(),
                    Ok(Opened::Elsewhere) => {}
                    Err(StartError::Store(error)) if matches!(error, StoreError::Unavailable { .. }) => {
                        return Err(error);
                    }
                    Err(error) => self.put_aside(&record.id, &crate::words(&error)).await,
                }
            }
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Puts a run aside that nobody here can take up, so that it is not tried again and again.
    async fn put_aside(&self, id: &RunId, why: &str) {
        if let Err(error) = self.park(id, why.to_owned()).await {
            tracing::error!(run = %id, error = crate::words(&error), "run cannot be put aside");
        }
    }

    pub(super) async fn sleep(&self, span: Span) {
        let clock = self.local_clock();
        clock.sleep_until(clock.now().saturating_add(span)).await;
    }

    async fn until(&self, at: Option<Timestamp>) {
        match at {
            Some(at) => self.clock().sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}
