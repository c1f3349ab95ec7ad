//! What keeps a runner going beside its runs: it stays an owner, takes runs that are due, and obeys what people
//! ask through the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidewheel_core::fact::{RunId, RunnableId, Value};
use tidewheel_core::policy::Failure;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Token;
use tidewheel_store::{Claim, Command, Filter, NewCommand, Status, StoreError, Wanted};

use super::active::{Active, By, Lost, Said};
use super::core::Core;
use super::error::StartError;
use super::held::MOST_RESTING;
use super::load::{Opened, Wake};

/// As many runs are claimed at once.
const CLAIMED_AT_ONCE: usize = 512;

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
    pub(super) fn command(&self, run: &RunId) -> NewCommand {
        let kind = match self {
            Self::Input { .. } => "input",
            Self::Signal { .. } => "signal",
            Self::Cancel => "cancel",
            Self::CancelWork { .. } => "cancel_work",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::Retry { .. } => "retry",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::Heartbeat { .. } => "heartbeat",
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
        let is_taken = match serde_json::from_str(&command.body) {
            Ok(Asked::Input { value, key }) => active.input_asked(Value::stored(value), key, command.id),
            Ok(Asked::Signal { component, value }) => {
                active.signal(&component, Value::stored(value), by).unwrap_or_else(|error| {
                    tracing::warn!(run = %command.run, %error, "signal is not taken");
                    true
                })
            }
            Ok(Asked::Cancel) => active.cancel(by),
            Ok(Asked::CancelWork { work }) => active.cancel_work(work, by).is_some(),
            Ok(Asked::Pause) => active.pause(by),
            Ok(Asked::Resume) => active.resume(by),
            Ok(Asked::Stop) => active.leave(Some(Status::Stopped), by),
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

    /// Stays an owner. One that came too late gives everything up and begins anew.
    pub(super) async fn stay_owner(self: Arc<Self>) {
        let lease = self.options().lease;
        let mut renewed_at = self.clock().now();
        loop {
            let mut is_alone = false;
            tokio::select! {
                biased;
                () = self.sleep(Span::from_millis(lease.as_millis() / 3)) => {}
                () = self.late.notified() => {}
            }
            let asked_at = self.clock().now();
            match self.store().renew(self.owner(), lease).await {
                Ok(Ok(renewed)) => {
                    renewed_at = asked_at;
                    is_alone = renewed.is_alone;
                }
                Ok(Err(_)) if self.is_closing() => return,
                Ok(Err(refused)) => {
                    self.begin_anew(&refused.to_string()).await;
                    renewed_at = self.clock().now();
                }
                Err(error) => {
                    tracing::warn!(error = crate::words(&error), "lease cannot be renewed");
                    let two_thirds = Span::from_millis(lease.as_millis() * 2 / 3);
                    if self.clock().now() >= renewed_at.saturating_add(two_thirds) {
                        self.begin_anew("the lease could not be renewed").await;
                        renewed_at = self.clock().now();
                    }
                }
            }
            let gives_back = self.give_up_resting(0);
            // Nobody is told when another process dies: its runs are looked for now and then. What is given back may be
            // due again soon.
            if gives_back || !is_alone {
                self.look.notify_one();
            }
        }
    }

    async fn begin_anew(&self, why: &str) {
        tracing::error!(why, "runs are given up: another process may have them");
        for active in self.all_held() {
            active.lose(&Lost::Otherwise(why.to_owned()));
        }
        // What is given up is free for others at once, if the store can be reached, and otherwise in time.
        drop(self.store().leave(self.owner()).await);
        loop {
            match self.store().join(self.options().lease).await {
                Ok(owner) => {
                    self.set_owner(owner);
                    self.look.notify_one();
                    return;
                }
                Err(StoreError::Closed | StoreError::Broken) => return std::future::pending().await,
                Err(_) => self.sleep(AGAIN_AFTER).await,
            }
        }
    }

    /// Takes runs that are due, and obeys what people ask.
    pub(super) async fn watch_store(self: Arc<Self>) {
        while !self.is_closing() {
            let next_due = match self.look_around().await {
                Ok(next_due) => next_due,
                Err(error) => {
                    tracing::warn!(error = crate::words(&error), "the store cannot be used");
                    self.sleep(AGAIN_AFTER).await;
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
                self.obey(&active, &command);
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
                match self.load_due(lease, &record, &definition, claimed_again).await {
                    Ok(()) => {}
                    // The run is not to blame, and stays due.
                    Err(StartError::Store(
                        error @ (StoreError::Unavailable { .. } | StoreError::Broken | StoreError::Closed),
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
        self.clock().sleep_until(self.clock().now().saturating_add(span)).await;
    }

    async fn until(&self, at: Option<Timestamp>) {
        match at {
            Some(at) => self.clock().sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}
