//! Finding and reading a flow: a file, an alias, the id of a template, or the name of a file among the workflows.
//! Nothing outside of the repository is read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tidewheel_core::Problems;
use tidewheel_core::job::template::{MOST_BYTES, Source, Template};

use super::place::Place;
use super::settings::Settings;
use crate::error::{Code, CommandError, cause};
use crate::view::problems;

/// A template that was found, with what was read for it.
pub(crate) struct Flow {
    pub(crate) template: Template,
    /// The alias that it was named by, if it was one.
    pub(crate) alias: Option<String>,
    /// Its file, as messages name it.
    file: String,
    /// The texts of its files, by name.
    sources: BTreeMap<String, String>,
}

impl Flow {
    /// Finds and reads a flow.
    pub(crate) fn find(place: &Place, settings: &Settings, name: &str) -> Result<Self, CommandError> {
        let finder = Finder::new(place)?;
        let named = name.strip_prefix("file:");
        if let Some(path) = named {
            return finder.load(&finder.written(Path::new(path)), None);
        }
        if finder.here.join(name).is_file() {
            return finder.load(&finder.here.join(name), None);
        }
        if let Some(file) = settings.config.commands.get(name) {
            let path = file.strip_prefix("file:").unwrap_or(file);
            return finder.load(&finder.root.join(path), Some(name));
        }
        if let Some(path) = finder.with_id(name)? {
            return finder.load(&path, None);
        }
        if let Some(path) = finder.bare(name) {
            return finder.load(&path, None);
        }
        Err(finder.missing(name, settings))
    }

    /// Draws what is wrong with it, and returns the error that sums it up.
    pub(crate) fn wrong(&self, found: &Problems) -> CommandError {
        wrong(found, &self.file, &self.sources)
    }
}

fn wrong(found: &Problems, file: &str, sources: &BTreeMap<String, String>) -> CommandError {
    problems::draw_all(found, file, sources);
    let count = problems::counted(found.all().len());
    CommandError::new(Code::FlowInvalid, format!("`{file}` has {count}."))
}

/// Why a template could not be read: the file, or what is in it, with the texts that were read.
enum Trouble {
    Unreadable(String),
    Wrong(Problems, String, BTreeMap<String, String>),
}

struct Finder {
    /// The root of the repository, without links.
    root: PathBuf,
    /// Where the command was typed.
    here: PathBuf,
    workflows: PathBuf,
}

impl Finder {
    fn new(place: &Place) -> Result<Self, CommandError> {
        let fail = |error: &io::Error| {
            let message = format!("`{}` cannot be used: {}.", place.root.display(), cause(error));
            CommandError::new(Code::JobsUnavailable, message)
        };
        let root = fs::canonicalize(&place.root).map_err(|error| fail(&error))?;
        let here = std::env::current_dir().map_err(|error| fail(&error))?;
        Ok(Self { workflows: root.join(".tidewheel/workflows"), root, here })
    }

    /// Returns a path that somebody typed: from here, or from the root if there is none from here.
    fn written(&self, path: &Path) -> PathBuf {
        let from_here = self.here.join(path);
        if from_here.exists() { from_here } else { self.root.join(path) }
    }

    /// Returns the template with that id, or `id@version`, among the workflows.
    fn with_id(&self, name: &str) -> Result<Option<PathBuf>, CommandError> {
        let mut found = self.files().into_iter().filter(|path| {
            // What is wrong with others is not told to whoever looks for this one.
            let template = self.try_load(path).ok().map(|flow| flow.template);
            let id = template.map(|template| (template.id().to_owned(), template.version().to_owned()));
            id.is_some_and(|(id, version)| id == name || format!("{id}@{version}") == name)
        });
        let first = found.next();
        let Some(second) = found.next() else { return Ok(first) };
        let shown = |path: PathBuf| format!("`{}`", path.strip_prefix(&self.root).unwrap_or(&path).display());
        let shown: Vec<String> = first.into_iter().chain([second]).chain(found).map(shown).collect();
        let message = format!("Several flows have the id `{name}`: {}.", shown.join(", "));
        Err(CommandError::new(Code::FlowMissing, message).hint("Give the name of the file, with its ending."))
    }

    /// Returns the file of that name among the workflows.
    fn bare(&self, name: &str) -> Option<PathBuf> {
        self.files().into_iter().find(|path| {
            path.file_stem().is_some_and(|stem| stem == name)
                || path.file_name().is_some_and(|file| file == name)
        })
    }

    /// Returns the workflows, sorted by name.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.workflows).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect();
        files.sort();
        files
    }

    fn load(&self, path: &Path, alias: Option<&str>) -> Result<Flow, CommandError> {
        let flow = self.try_load(path).map_err(|trouble| match trouble {
            Trouble::Unreadable(why) => {
                let shown = path.strip_prefix(&self.root).unwrap_or(path).display();
                CommandError::new(Code::FlowMissing, format!("The flow `{shown}` cannot be read: {why}."))
            }
            Trouble::Wrong(found, file, sources) => wrong(&found, &file, &sources),
        })?;
        Ok(Flow { alias: alias.map(str::to_owned), ..flow })
    }

    fn try_load(&self, path: &Path) -> Result<Flow, Trouble> {
        let main = self.read(path).map_err(Trouble::Unreadable)?;
        let file = main.file.clone();
        let mut sources = BTreeMap::from([(file.clone(), main.text.clone())]);
        let template = Template::load(main, |path, from| {
            let folder = self.root.join(from);
            let source = self.read(&folder.parent().unwrap_or(&self.root).join(path))?;
            sources.insert(source.file.clone(), source.text.clone());
            Ok(source)
        });
        match template {
            Ok(template) => Ok(Flow { template, alias: None, file, sources }),
            Err(found) => Err(Trouble::Wrong(found, file, sources)),
        }
    }

    /// Reads a file of the repository.
    fn read(&self, path: &Path) -> Result<Source, String> {
        let path = fs::canonicalize(path).map_err(|error| cause(&error))?;
        let inside =
            path.strip_prefix(&self.root).map_err(|_| format!("it is outside of {}", self.root.display()))?;
        let file = inside.display().to_string();
        let metadata = fs::metadata(&path).map_err(|error| cause(&error))?;
        if !metadata.is_file() {
            return Err("it is no file".to_owned());
        }
        let mut text = String::new();
        let opened = File::open(&path).map_err(|error| cause(&error))?;
        opened.take(MOST_BYTES as u64 + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
            _ => cause(&error),
        })?;
        if text.len() > MOST_BYTES {
            return Err(format!("it is larger than {MOST_BYTES} bytes"));
        }
        Ok(Source { file, text })
    }

    fn missing(&self, name: &str, settings: &Settings) -> CommandError {
        let message = format!("There is no flow `{name}`: no file, no alias, no template with this id.");
        let error = CommandError::new(Code::FlowMissing, message);
        let stems = self.files();
        let stems =
            stems.iter().filter_map(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into_owned());
        let mut known: Vec<String> = settings.config.commands.keys().cloned().chain(stems).collect();
        known.sort();
        known.dedup();
        const MOST: usize = 20;
        if known.is_empty() {
            error.hint("Put templates into `.tidewheel/workflows/`, or give the name of a file.")
        } else {
            known.truncate(MOST);
            error.hint(format!("There are {}.", known.join(", ")))
        }
    }
}
