//! The store that commands look at: opened so that looking changes nothing, with errors that say what to do.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;
use tidewheel_runner::{AskError, Control};
use tidewheel_store::sqlite::{self, Examined, Options};
use tidewheel_store::{
    Clock as _, Filter, Page, RealClock, RunRecord, Sqlite, Store as _, StoreError, Unavailable,
};

use crate::error::{Code, CommandError, cause};
use crate::output;

/// Where the runs are
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The SQLite file that the runs are kept in
    #[arg(long, value_name = "FILE")]
    pub(crate) store: PathBuf,
}

/// What may be done with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing of it changes, and nobody who drives runs notices.
    Look,
    /// Rows may be written.
    Ask,
}

/// A store that is open.
pub(crate) struct Opened {
    runtime: tokio::runtime::Runtime,
    store: Arc<Sqlite>,
    pub(crate) control: Control,
    pub(crate) name: String,
    pub(crate) now: Timestamp,
}

impl Opened {
    /// Opens a store that must be there.
    pub(crate) fn open(arguments: &StoreArguments, purpose: Purpose) -> Result<Self, CommandError> {
        let path = &arguments.store;
        let name = path.display().to_string();
        must_be_there(path, &name)?;
        let options = match purpose {
            Purpose::Look => Options::new().readers(1).patience(PATIENCE).read_only(),
            Purpose::Ask => Options::new().readers(1),
        };
        let store = Sqlite::open_with(path, Arc::new(RealClock::new()), &options)
            .map_err(|error| cannot_open(path, &error))?;
        let runtime = crate::runtime::current_thread();
        let runtime = runtime.map_err(|error| {
            let message = format!("The store `{name}` cannot be used: {}.", cause(&error));
            CommandError::new(Code::StoreUnavailable, message).after(&error)
        })?;
        let store = Arc::new(store);
        let damage = store.damage();
        for what in &damage {
            output::warning(&format!("The store `{name}` is damaged: {what}."));
        }
        if !damage.is_empty() {
            output::hint(&format!("`tidewheel doctor --store {name}` says what to do."));
        }
        let control = Control::new(Arc::clone(&store) as Arc<dyn tidewheel_store::Store>);
        Ok(Self { runtime, store, control, name, now: now() })
    }

    /// Returns the store itself.
    pub(crate) fn store(&self) -> &Sqlite {
        &self.store
    }

    /// Returns a command on this store as people write it, for hints.
    pub(crate) fn command(&self, words: &str) -> String {
        format!("`tidewheel runs {words} --store {}`", self.name)
    }

    /// Waits for an answer of the store.
    pub(crate) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, CommandError> {
        self.runtime.block_on(answer).map_err(|error| self.failed(&error))
    }

    /// Waits for an answer to what was asked of a run.
    pub(crate) fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, AskError>>,
    ) -> Result<T, CommandError> {
        self.runtime.block_on(answer).map_err(|error| self.refused(&error))
    }

    /// Returns a run; what a process that is gone still has is driven by nobody.
    pub(crate) fn find(&self, id: &RunId) -> Result<Option<RunRecord>, CommandError> {
        let mut found = self.wait(self.store.find(id))?;
        self.see_owners(found.as_mut_slice())?;
        Ok(found)
    }

    /// Returns a page of runs; what a process that is gone still has is driven by nobody.
    pub(crate) fn list(&self, filter: Filter) -> Result<Page<RunRecord>, CommandError> {
        let mut page = self.wait(self.store.list(filter))?;
        self.see_owners(&mut page.rows)?;
        Ok(page)
    }

    fn see_owners(&self, records: &mut [RunRecord]) -> Result<(), CommandError> {
        if records.iter().all(|record| record.owner.is_none()) {
            return Ok(());
        }
        let there = self.wait(self.store.owners())?;
        for record in records {
            record.owner = record.owner.filter(|owner| there.contains(owner));
        }
        Ok(())
    }

    /// Returns the run with that id, or the one whose id begins so.
    pub(crate) fn run(&self, id: &str) -> Result<RunRecord, CommandError> {
        if let Some(record) = self.find(&RunId::new(id))? {
            return Ok(record);
        }
        let filter = Filter { id_prefix: Some(id.to_owned()), limit: Some(MOST_NAMED), ..Filter::default() };
        let page = self.list(filter)?;
        match <[RunRecord; 1]>::try_from(page.rows) {
            Ok([record]) if !id.is_empty() => Ok(record),
            Ok(_) => Err(self.no_run(id)),
            Err(rows) if rows.is_empty() || id.is_empty() => Err(self.no_run(id)),
            Err(rows) => {
                let mut names: Vec<String> = rows.iter().map(|row| format!("`{}`", row.id)).collect();
                if page.next.is_some() {
                    names.push("others".to_owned());
                }
                let message = format!("Several runs begin with `{id}`: {}.", names.join(", "));
                Err(CommandError::new(Code::RunAmbiguous, message)
                    .hint("Write more of the id, so that only one begins so."))
            }
        }
    }

    fn no_run(&self, id: &str) -> CommandError {
        let message = format!("There is no run `{id}` in `{}`, and none that begins so.", self.name);
        CommandError::new(Code::RunMissing, message).hint(format!("{} lists the runs.", self.command("list")))
    }

    /// Returns the error of a store that was opened and then failed.
    fn failed(&self, error: &StoreError) -> CommandError {
        match error {
            StoreError::Damaged { .. } | StoreError::DamagedRow { .. } => damaged(&with_causes(error)),
            StoreError::Newer { .. }
            | StoreError::Unavailable { .. }
            | StoreError::Broken
            | StoreError::Moved { .. }
            | StoreError::Closed
            | StoreError::Other(_) => unavailable(Path::new(&self.name), error),
        }
    }

    /// Returns the error of something that was not asked.
    pub(crate) fn refused(&self, error: &AskError) -> CommandError {
        match error {
            AskError::NotFound { run } => self.no_run(run.as_str()),
            AskError::Store(error) => self.failed(error),
            AskError::Unreadable { .. } => damaged(&with_causes(error)),
            AskError::NoComponent { run, component, known } => no_component(run, component, known),
            AskError::NoWork { run, .. } => {
                let message = format!("{}.", sentence(&with_causes(error)));
                CommandError::new(Code::NothingThere, message)
                    .hint(format!("{} lists its work.", self.command(&format!("show {run} --format json"))))
            }
            AskError::Idle { .. } | AskError::Work { .. } | AskError::Refused(_) => {
                CommandError::new(Code::NotAsked, format!("{}.", sentence(&with_causes(error))))
            }
            AskError::Token(_) => {
                CommandError::new(Code::NotAsked, format!("{}.", sentence(&error.to_string())))
                    .hint("`tidewheel runs explain RUN` shows the token of work that somebody outside ends.")
            }
        }
    }
}

/// Reading waits for nobody but those who hold the file as a whole, and a person waits, too.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many candidates are named where an id is not unique.
const MOST_NAMED: u32 = 10;

/// Returns the present. Tests hold it still with `TIDEWHEEL_NOW`, so that ages can be compared.
pub(crate) fn now() -> Timestamp {
    held_now().unwrap_or_else(|| RealClock::new().now())
}

/// Returns the instant that somebody holds the present at.
pub(crate) fn held_now() -> Option<Timestamp> {
    std::env::var("TIDEWHEEL_NOW").ok().and_then(|text| Timestamp::parse(&text).ok())
}

/// Returns the error of a component that a run does not have.
pub(crate) fn no_component(run: &RunId, component: &str, known: &[String]) -> CommandError {
    let message = format!("Run `{run}` has no component `{component}`.");
    let error = CommandError::new(Code::NothingThere, message);
    if known.is_empty() { error } else { error.hint(format!("It has {}.", listed(known))) }
}

/// Lists names as people do; very many are cut.
fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        shown.push(format!("{} others", names.len() - MOST));
    }
    shown.join(", ")
}

/// Looks at a store as a whole, so that nothing of it changes.
pub(crate) fn examine(path: &Path) -> Result<Examined, CommandError> {
    let name = path.display().to_string();
    must_be_there(path, &name)?;
    let options = Options::new().patience(PATIENCE).read_only();
    sqlite::examine(path, &options, now()).map_err(|error| cannot_open(path, &error))
}

fn must_be_there(path: &Path, name: &str) -> Result<(), CommandError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("There is no store `{name}`.");
            Err(CommandError::new(Code::StoreMissing, message)
                .hint("It is the file that your program gives to `Runner::open`."))
        }
        Err(error) => {
            let message = format!("The store `{name}` cannot be used: {}.", cause(&error));
            Err(with_way_in(CommandError::new(Code::StoreUnavailable, message), &error))
        }
        Ok(found) if found.is_dir() => {
            let message = format!("The store `{name}` cannot be used: it is a directory.");
            Err(CommandError::new(Code::StoreUnavailable, message).hint("Give the name of a file in it."))
        }
        Ok(found) if found.len() == 0 => {
            let message = format!("`{name}` is no store of Tidewheel: it is empty.");
            Err(CommandError::new(Code::StoreForeign, message))
        }
        Ok(_) => Ok(()),
    }
}

fn cannot_open(path: &Path, error: &StoreError) -> CommandError {
    let name = path.display();
    match error {
        StoreError::Newer { found, known } => {
            let message =
                format!("The store `{name}` has version {found}, and this release knows {known} only.");
            CommandError::new(Code::StoreNewer, message)
                .hint("Use the release that your programs use, or a later one.")
        }
        StoreError::Other(_) if sqlite::is_damage(error) && begins_as_database(path) => {
            unavailable(path, error)
        }
        StoreError::Other(source) => {
            let message = format!("`{name}` is no store of Tidewheel: {source}.");
            CommandError::new(Code::StoreForeign, message)
        }
        StoreError::Unavailable { .. }
        | StoreError::Damaged { .. }
        | StoreError::DamagedRow { .. }
        | StoreError::Broken
        | StoreError::Moved { .. }
        | StoreError::Closed => unavailable(path, error),
    }
}

/// Tells whether a file begins as every database of SQLite does, even if it ends soon after.
fn begins_as_database(path: &Path) -> bool {
    const BEGINNING: &[u8] = b"SQLite format 3\0";
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut begin));
    read.is_ok() && !begin.is_empty() && BEGINNING.starts_with(&begin)
}

fn unavailable(path: &Path, error: &StoreError) -> CommandError {
    let name = path.display();
    let refused = |said: &str| {
        CommandError::new(Code::StoreUnavailable, format!("The store `{name}` cannot be used: {said}."))
    };
    match error {
        StoreError::Unavailable { why: why @ (Unavailable::Io | Unavailable::ReadOnly), source } => {
            // SQLite does not say what the system said, so it is asked again.
            match (open_often(path), cannot_write_beside(path)) {
                (Err(error), _) => with_way_in(refused(&cause(&error)), &error),
                (Ok(()), Some(error)) => refused(&format!(
                    "SQLite has to make files beside it, even to read it, and its directory cannot be written: {}",
                    cause(&error)
                ))
                .hint(format!(
                    "Give yourself the right to write there, or copy `{name}` to a directory that you may write, with \
                     `{name}-wal` if there is one, and look at the copy."
                )),
                // What caused it again is a number of SQLite.
                (Ok(()), None) => refused(&format!("{why}: {source}")),
            }
        }
        StoreError::Unavailable { why: why @ Unavailable::Full, source } => {
            refused(&format!("{why}: {source}")).after(&io::ErrorKind::StorageFull.into())
        }
        StoreError::Unavailable { why: why @ Unavailable::Busy, source } => refused(&format!(
            "{why}: {source}"
        ))
        .hint(format!("Try again when it is free; `fuser {name}` names the processes that have it open.")),
        StoreError::Other(source) if sqlite::is_damage(error) => {
            let message = format!("The store `{name}` is damaged: {source}.");
            CommandError::new(Code::StoreUnavailable, message).hint(format!(
                "Stop the programs that use it and take it from a backup, or save what can be read: \
                 `sqlite3 {name} .recover`."
            ))
        }
        StoreError::Newer { .. }
        | StoreError::Damaged { .. }
        | StoreError::DamagedRow { .. }
        | StoreError::Broken
        | StoreError::Moved { .. }
        | StoreError::Closed
        | StoreError::Other(_) => refused(&with_causes(error)),
    }
}

/// Adds what to do about a store that the system does not let be opened.
fn with_way_in(refused: CommandError, error: &io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            refused.hint("Work as its owner, or give yourself the right to read it and to write beside it.")
        }
        // It is the name that is wrong, and not what is there.
        io::ErrorKind::NotADirectory => {
            refused.hint("Check the name: it is the file that your program gives to `Runner::open`.")
        }
        _ => refused.after(error),
    }
}

/// Opens a store as many times as SQLite opens files for it, so that the system says what is against that.
fn open_often(path: &Path) -> io::Result<()> {
    const OFTEN: usize = 16;
    let files: io::Result<Vec<File>> = (0..OFTEN).map(|_| File::open(path)).collect();
    files.map(drop)
}

/// Returns what the system says against files beside a store, if it lets none be made there.
fn cannot_write_beside(path: &Path) -> Option<io::Error> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).err().map(Into::into)
}

fn damaged(said: &str) -> CommandError {
    CommandError::new(Code::RunDamaged, format!("{}.", sentence(said)))
        .hint("All other runs of the store are as they were.")
}

/// Returns what an error says, with its causes.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

/// Begins a text as a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
