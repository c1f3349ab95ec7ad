//! What is configured in `config.toml`, as far as the commands need it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use tidewheel_core::job::{
    Agent, Config, Display, DisplayFormat, JobId, KnownFields, SecretRefused, Secrets,
};
use tidewheel_core::view::jobs::{Field, LIST_FIELDS, SHOW_FIELDS};
use tidewheel_runner::job::operation::AgentProgram;
use tidewheel_store::jobs::{Files, JobStore as _, read_regular};

use super::place::Place;
use crate::error::{Code, CommandError, cause};
use crate::input::cannot_read;
use crate::output;
use crate::view::problems::Wrong;

/// No configuration is larger.
const MOST_CONFIG: u64 = 4 << 20;

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people: a block for each job
    Block,
    /// For people: a line for each job
    Table,
    /// For programs: one object with a `version`
    Json,
}

/// Which fields are shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) fields: Vec<Field>,
    pub(crate) format: ListFormat,
    /// Whether somebody has chosen the fields.
    pub(crate) is_chosen: bool,
}

/// What is configured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) config: Config,
}

impl Settings {
    /// Reads the configuration of a place; without a file it is the default.
    pub(crate) fn read(place: &Place) -> Result<Self, CommandError> {
        Self::look(place)?.map_err(|wrong| wrong.told(Code::ConfigInvalid))
    }

    /// Reads the configuration of a place as [`Settings::read`] does, and leaves it to others to tell what is wrong.
    pub(crate) fn look(place: &Place) -> Result<Result<Self, Wrong>, CommandError> {
        let file = ".tidewheel/config.toml".to_owned();
        let read = read_regular(&place.data, Path::new("config.toml"), MOST_CONFIG).and_then(|bytes| {
            let text = bytes.map(String::from_utf8).transpose();
            text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
        });
        let text = match read {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Ok(Self::default())),
            // The data directory itself may be a file.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => {
                return Ok(Ok(Self::default()));
            }
            // Whether there is such a file, nobody knows who may not look.
            Err(error) if place.is_closed() => {
                let message = format!("`{}` cannot be read: {}.", place.data.display(), cause(&error));
                let refused = CommandError::new(Code::JobsUnavailable, message).after(&error);
                return Err(refused.hint("`tidewheel doctor` looks at everything around it."));
            }
            Err(error) => return Err(cannot_read(&file, &error).after(&error)),
        };
        let known: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
        let config = Config::parse(&text, KnownFields { list: &known, show: &known });
        Ok(config.map(|config| Self { config }).map_err(|problems| {
            let sources = BTreeMap::from([(file.clone(), text)]);
            Wrong { file, problems, sources }
        }))
    }

    /// Reads the configuration for a job that was started when it was in order: what is wrong by now is passed over.
    /// What was to be hidden then is hidden all the same.
    pub(crate) fn read_for_job(place: &Place, id: &JobId) -> Self {
        Self::read(place).unwrap_or_else(|error| {
            output::error(&error);
            let record = Files::open_existing(&place.data).and_then(|store| store.record(id));
            let snapshot = record.ok().flatten().and_then(|record| record.config_snapshot);
            let names =
                snapshot.and_then(|snapshot| serde_json::from_value(snapshot["secrets"]["env"].clone()).ok());
            Self { config: Config { secrets: names.unwrap_or_default(), ..Config::default() } }
        })
    }

    /// Returns what a job has to remember of the configuration.
    pub(crate) fn snapshot(&self) -> Option<Value> {
        let names = &self.config.secrets;
        (!names.is_empty()).then(|| json!({ "secrets": { "env": names } }))
    }

    /// Returns how agents are called. Of our environment, only what each of them may know reaches it.
    pub(crate) fn agents(&self) -> BTreeMap<String, AgentProgram> {
        let program = |agent: &Agent| {
            let names = Agent::USUAL_ENV.into_iter().chain(agent.env.iter().map(String::as_str));
            AgentProgram {
                argv: agent.argv.clone(),
                env: names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect(),
                timeout: agent.timeout.map(|timeout| Duration::from_millis(timeout.as_millis())),
                cwd: agent.cwd.clone(),
            }
        };
        self.config.agents.iter().map(|(name, agent)| (name.clone(), program(agent))).collect()
    }

    /// Returns what nobody is to read, as far as our environment has it, and what of it cannot be hidden.
    pub(crate) fn secrets(&self) -> (Secrets, Vec<SecretRefused>) {
        let value = |name: &String| Some((name.clone(), std::env::var_os(name)?.into_vec()));
        Secrets::new(self.config.secrets.iter().filter_map(value))
    }

    /// Returns how jobs are listed.
    pub(crate) fn list(&self) -> Shown {
        Shown::of(&self.config.list, LIST_FIELDS)
    }

    /// Returns how one job is shown.
    pub(crate) fn show(&self) -> Shown {
        Shown::of(&self.config.show, SHOW_FIELDS)
    }

    /// Returns how many jobs run at once.
    pub(crate) fn capacity(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.config.capacity.unwrap_or_else(|| u32::try_from(cores()).unwrap_or(u32::MAX))
    }
}

impl Shown {
    fn of(display: &Display, usual: &[Field]) -> Self {
        let chosen = display.fields.as_ref();
        let chosen: Option<Vec<Field>> =
            chosen.map(|names| names.iter().filter_map(|name| Field::parse(name)).collect());
        let format = match display.format {
            None | Some(DisplayFormat::Block) => ListFormat::Block,
            Some(DisplayFormat::Table) => ListFormat::Table,
            Some(DisplayFormat::Json) => ListFormat::Json,
        };
        Self { is_chosen: chosen.is_some(), fields: chosen.unwrap_or_else(|| usual.to_vec()), format }
    }
}
