//! How ids and instants are written for people: short and seen from now at a terminal, in full everywhere else, unless
//! somebody asks for the other. Programs get both in full.

use std::borrow::Cow;
use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use tidewheel_core::job::RunId;
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::jobs::{Field, Known, ShortIds};
use tidewheel_core::view::{absolute, relative};
use tidewheel_store::jobs::{Glance, Survey};

use crate::error::CommandError;

/// How ids and instants are written
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct MannerArguments {
    /// How ids are written; without it short in tables on a terminal, full everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) ids: Option<Ids>,
    /// How instants are written; without it relative in tables on a terminal, absolute everywhere else and always in JSON
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) times: Option<Times>,
}

/// How ids are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ids {
    /// As much as tells them apart, which every command takes for the whole
    Short,
    /// As they are
    Full,
}

/// How instants are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Times {
    /// How long ago they were
    Relative,
    /// In UTC
    Absolute,
}

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Cells under headings.
    Table,
    /// Lines with labels, for people and for whatever reads by line.
    Lines,
}

impl MannerArguments {
    /// Returns the arguments of somebody who only says how ids are written.
    pub(crate) const fn with_ids(ids: Option<Ids>) -> Self {
        Self { ids, times: None }
    }

    /// Refuses what programs are not given: what they read has ids and instants as they are.
    pub(crate) fn check_for_json(self) -> Result<(), CommandError> {
        let why = "with `--format json` it is always in full";
        match self {
            Self { ids: Some(Ids::Short), .. } => Err(CommandError::idle("--ids short", why)),
            Self { times: Some(Times::Relative), .. } => Err(CommandError::idle("--times relative", why)),
            Self { ids: Some(Ids::Full) | None, times: Some(Times::Absolute) | None } => Ok(()),
        }
    }

    /// Returns how ids are written.
    pub(crate) fn ids(self, form: Form) -> Ids {
        self.ids.unwrap_or_else(|| if is_seen(form) { Ids::Short } else { Ids::Full })
    }

    /// Returns how instants are written.
    pub(crate) fn times(self, form: Form) -> Times {
        self.times.unwrap_or_else(|| if is_seen(form) { Times::Relative } else { Times::Absolute })
    }

    /// Returns how something about jobs is written, now. Short names need all of them.
    pub(crate) fn of<'s>(
        self,
        form: Form,
        survey: &'s Survey,
        all: &[Glance<'s>],
        now: Timestamp,
    ) -> Manner<'s> {
        let names = || all.iter().map(|glance| (glance.id, glance.run));
        let short = match self.ids(form) {
            Ids::Short => Some(ShortIds::of(names(), &survey.unreadable)),
            Ids::Full => None,
        };
        Manner { short, times: self.times(form), now }
    }
}

/// Tells whether a person looks at a table.
fn is_seen(form: Form) -> bool {
    form == Form::Table && std::io::stdout().is_terminal()
}

/// How ids and instants are written.
#[derive(Debug)]
pub(crate) struct Manner<'a> {
    short: Option<ShortIds<'a>>,
    times: Times,
    now: Timestamp,
}

impl Manner<'_> {
    /// Writes the id of a run.
    pub(crate) fn run<'i>(&self, id: &'i RunId) -> Cow<'i, str> {
        self.short.as_ref().map_or(Cow::Borrowed(id.as_str()), |short| short.run(id))
    }

    /// Writes a text that may name jobs.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.short.as_ref().map_or(Cow::Borrowed(text), |short| short.within(text))
    }

    /// Writes an instant.
    pub(crate) fn instant(&self, at: Timestamp) -> String {
        match self.times {
            Times::Relative => relative(at, self.now),
            Times::Absolute => absolute(at),
        }
    }

    /// Writes a field of a job as people read it: what is not there is nothing.
    pub(crate) fn field(&self, field: Field, job: Known<'_>) -> Option<String> {
        if self.times == Times::Relative
            && let Some(at) = field.instant(job)
        {
            return Some(relative(at, self.now));
        }
        let said = field.of(job).filter(|said| !said.is_empty() && said != "none")?;
        match (field, self.text(&said)) {
            // What was asked of the shell is shown as it was.
            (Field::Command | Field::AgentCommand, _) | (_, Cow::Borrowed(_)) => Some(said),
            (_, Cow::Owned(short)) => Some(short),
        }
    }
}
