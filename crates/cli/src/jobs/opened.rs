//! The jobs of a place, opened to look at them or to change them, with errors that say what to do.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;

use tidewheel_core::job::{Answer, Artifact, Brief, JobId, JobStatus, Question, Record, RunId};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::{FindError, find_run};
use tidewheel_runner::job::{Options, Scheduler, SchedulerError, Ticked, carried_token};
use tidewheel_runner::probe::Prober;
use tidewheel_store::jobs::{Files, Holder, JobStore as _, JobStoreError};

use super::actor::actor;
use super::place::{DirArguments, Place};
use super::settings::Settings;
use crate::error::{Code, CommandError, Ending, cause};
use crate::exit::Exit;
use crate::output;
use crate::store::{held_now, now, with_causes};

/// The jobs of a place. Looking at them writes nothing; whoever changes them asks for the scheduler.
pub(crate) struct Opened {
    pub(crate) place: Place,
    pub(crate) settings: Settings,
    pub(crate) now: Timestamp,
    store: Files,
    scheduler: OnceCell<Scheduler>,
}

impl Opened {
    /// Opens the jobs of a place.
    pub(crate) fn open(arguments: &DirArguments) -> Result<Self, CommandError> {
        let place = Place::find(arguments)?;
        let settings = Settings::read(&place)?;
        Self::at(place, settings)
    }

    /// Opens the jobs of a place whose configuration was read.
    pub(crate) fn at(place: Place, settings: Settings) -> Result<Self, CommandError> {
        output::hide(settings.secrets().0);
        let store = Files::open_existing(&place.data).map_err(|error| unfit(&error))?;
        Ok(Self { place, settings, now: now(), store, scheduler: OnceCell::new() })
    }

    /// Returns the store.
    pub(crate) const fn store(&self) -> &Files {
        &self.store
    }

    /// Returns the scheduler. The data directory is made if it is not there.
    pub(crate) fn scheduler(&self) -> Result<&Scheduler, CommandError> {
        if let Some(scheduler) = self.scheduler.get() {
            return Ok(scheduler);
        }
        let scheduler = Scheduler::open(self.options()?).map_err(|error| refused(&error))?;
        Ok(self.scheduler.get_or_init(|| scheduler))
    }

    /// Returns the scheduler of a supervisor, which says nothing of waits: no person reads along.
    pub(super) fn silent_scheduler(&self) -> Result<Scheduler, CommandError> {
        let options = Options { tell_of_wait: None, ..self.options()? };
        Scheduler::open(options).map_err(|error| refused(&error))
    }

    /// Lends the slot of the job that this command runs in, as long as the value lives: the command waits for jobs of the
    /// same directory, and at capacity 1 none of them could start. `None` outside of a job.
    pub(crate) fn lend_slot(&self) -> Option<File> {
        let token = std::env::var_os("TIDEWHEEL_JOB_TOKEN").or_else(carried_token)?;
        let (job, _) = token.to_str()?.split_once(':')?;
        self.scheduler().ok()?.lend_slot(&JobId::new(job).ok()?, &token)
    }

    /// Does one pass over all jobs. Where there are none, none is needed.
    pub(crate) fn tick(&self) -> Result<Ticked, CommandError> {
        if !self.has_jobs() {
            return Ok(Ticked::default());
        }
        self.scheduler()?.tick().map_err(|error| refused(&error))
    }

    /// Does one pass over all jobs while the caller waits for them, and returns what came of it. That there is no room
    /// ends no waiting: there may be some later.
    pub(crate) fn pass(&self) -> Result<Ticked, CommandError> {
        if !self.has_jobs() {
            return Ok(Ticked::default());
        }
        match self.scheduler()?.tick() {
            Ok(ticked) => Ok(ticked),
            Err(error) if error.lacks_room() => {
                Ok(Ticked { errors: vec![with_causes(&error)], ..Ticked::default() })
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// Tells whether there is anything where the jobs are, be it what it should be or not.
    pub(crate) fn has_jobs(&self) -> bool {
        let found = fs::symlink_metadata(self.place.data.join("jobs"));
        !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns who acts.
    pub(crate) fn actor(&self) -> String {
        actor(|name| std::env::var(name).ok())
    }

    /// Returns the record of the job that a text means.
    pub(crate) fn record(&self, text: &str) -> Result<Record, CommandError> {
        let id = self.find(text)?;
        self.read(&id)
    }

    /// Returns the record of a job.
    pub(crate) fn read(&self, id: &JobId) -> Result<Record, CommandError> {
        let record = self.store().record(id).map_err(|error| unreadable(id.as_str(), &error))?;
        record.ok_or_else(|| unfound(&FindError::NoJob { text: id.to_string() }))
    }

    /// Tells whether a job is on record as running, and whoever ran it is gone.
    pub(crate) fn is_lost(&self, job: &Brief) -> bool {
        if job.status != JobStatus::Running || self.store().has_supervisor(&job.id) {
            return false;
        }
        // It may have ended since it was looked at.
        let now = self.store().record(&job.id).ok().flatten();
        now.is_some_and(|now| now.status == JobStatus::Running && now.started_at == job.started_at)
    }

    /// Tells whether an artifact that no job makes is there.
    pub(crate) fn is_present(&self, artifact: &Artifact) -> bool {
        let question = match artifact {
            Artifact::Custom { type_id, key } => {
                Question::Marker { type_id: type_id.clone(), key: key.clone(), of: None }
            }
            Artifact::PlanBranch { .. }
            | Artifact::PlanDoc { .. }
            | Artifact::PlanCommits { .. }
            | Artifact::TargetBranch { .. }
            | Artifact::MergeSentinel { .. }
            | Artifact::CommandPatch { .. } => Question::Artifact(artifact.clone()),
        };
        let prober = Prober::new(&self.place.root, &self.place.data, &self.store);
        prober.answer(&question) == Answer::Yes
    }

    /// Returns a command as people write it, for hints.
    pub(crate) fn command(words: &str) -> String {
        format!("`tidewheel {words}`")
    }

    fn options(&self) -> Result<Options, CommandError> {
        let binary = std::env::current_exe().map_err(|error| {
            let message = format!("cannot find the own binary: {}", cause(&error));
            CommandError::new(Code::JobsUnavailable, message).after(&error)
        })?;
        Ok(Options {
            root: self.place.root.clone(),
            data: self.place.data.clone(),
            binary,
            actor: self.actor(),
            capacity: self.settings.capacity(),
            probe_interval: self.settings.config.probe_interval,
            log_limit: self.settings.config.log_size,
            cleans_cancelled: self.settings.config.cleanup_worktree,
            agents: self.settings.agents(),
            secrets: self.settings.secrets().0,
            tell_of_wait: Some(tell_of_wait),
            now: held_now(),
        })
    }
}

/// Says who holds the scheduler lock that this process waits for.
fn tell_of_wait(holder: Option<&Holder>) {
    let Some(Holder { pid, name, is_stopped, about }) = holder else {
        return output::aside("waiting for the scheduler lock, which another process holds");
    };
    let about = about.as_deref().unwrap_or(name);
    let stopped = if *is_stopped {
        format!("; it is stopped, and `kill -CONT {pid}` lets it go on")
    } else {
        String::new()
    };
    output::aside(&format!("waiting for the scheduler lock, which process {pid} holds ({about}){stopped}"));
}

/// Returns the id of the run that a text means.
pub(crate) fn run_of(briefs: &BTreeMap<JobId, Brief>, text: &str) -> Result<RunId, CommandError> {
    find_run(briefs, text).cloned().map_err(|error| unfound(&error))
}

/// Returns the error of a text that means no job or no run.
pub(super) fn unfound(error: &FindError) -> CommandError {
    match error {
        FindError::NoJob { .. } => CommandError::new(Code::JobMissing, error.to_string())
            .hint(format!("{} lists the jobs.", Opened::command("jobs list --all"))),
        FindError::NoRun { .. } => CommandError::new(Code::RunMissing, error.to_string())
            .hint(format!("{} lists the runs.", Opened::command("runs list"))),
        FindError::Ambiguous { .. } => CommandError::new(Code::JobAmbiguous, error.to_string())
            .hint("Write more of the id, or RUN/NODE."),
    }
}

pub(super) fn unreadable(id: &str, error: &JobStoreError) -> CommandError {
    damaged(id, &with_causes(error))
}

/// Returns the error of a record that cannot be read, and of which somebody said why.
pub(super) fn damaged(id: &str, why: &str) -> CommandError {
    let message = format!("unable to load background job {id}: {why}");
    CommandError::of_words(Code::JobDamaged, &message).hint(format!(
        "{} says what to do about it; all other jobs are as they were.",
        Opened::command("doctor")
    ))
}

/// Returns the error of a store that cannot do its part.
pub(crate) fn unfit(error: &JobStoreError) -> CommandError {
    let refused = match error {
        JobStoreError::Io { source, .. } => {
            CommandError::new(Code::JobsUnavailable, format!("{error}: {}", cause(source))).after(source)
        }
        JobStoreError::Record(_)
        | JobStoreError::Manifest(_)
        | JobStoreError::Json { .. }
        | JobStoreError::Held { .. }
        | JobStoreError::Broken => CommandError::new(Code::JobsUnavailable, with_causes(error)),
    };
    refused.hint(format!("{} looks at everything around it.", Opened::command("doctor")))
}

/// Returns the error of a scheduler that did not do what it was asked.
pub(crate) fn refused(error: &SchedulerError) -> CommandError {
    match error {
        SchedulerError::NoJob(id) => unfound(&FindError::NoJob { text: id.to_string() }),
        SchedulerError::Store(error) => unfit(error),
        SchedulerError::Approve(_)
        | SchedulerError::Artifact(_)
        | SchedulerError::Cancel(_)
        | SchedulerError::External(_)
        | SchedulerError::Rewind(_)
        | SchedulerError::NotHandedOver(_)
        | SchedulerError::Enqueue(_) => CommandError::new(Code::JobRefused, with_causes(error)),
        SchedulerError::AlreadyServed => CommandError::new(Code::JobRefused, with_causes(error)).hint(
            "It may be the small process that an earlier command left for a retry or a delay; `tidewheel doctor` \
             names it. You can end it: a daemon takes over what it waits for.",
        ),
        SchedulerError::NotReset(_)
        | SchedulerError::StillRunning(_)
        | SchedulerError::NotEnded { .. }
        | SchedulerError::Processes { .. }
        | SchedulerError::Unwritten { .. } => CommandError::of_words(Code::JobsTrouble, &with_causes(error)),
    }
}

/// Fails if what was wanted of a job could not be written: then it did not happen, whatever else did.
pub(crate) fn happened(ticked: &Ticked, job: &JobId) -> Result<(), Ending> {
    if ticked.unwritten.contains(job) { concluded(ticked).map(drop) } else { Ok(()) }
}

/// Prints what a pass could not do, and returns how the command ends then.
pub(crate) fn concluded(ticked: &Ticked) -> Result<Exit, Ending> {
    ticked.warnings.iter().for_each(|warning| output::warning(warning));
    let Some((last, others)) = ticked.errors.split_last() else { return Ok(Exit::Succeeded) };
    for error in others {
        output::error(&CommandError::of_words(Code::JobsTrouble, error));
    }
    Err(CommandError::of_words(Code::JobsTrouble, last).into())
}
