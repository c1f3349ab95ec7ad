//! Finding and reading a flow: a file, an alias, the id of a template, or the name of a file among the workflows.
//! Nothing outside of the repository is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tidewheel_core::job::TemplateSource;
use tidewheel_core::job::template::{BindError, Expanded, Inputs, MOST_BYTES, Source, Template};
use tidewheel_core::policy::Rules;
use tidewheel_core::{Problem, Problems, nearest};
use tidewheel_store::jobs::{Access, open_regular};

use super::place::Place;
use super::settings::Settings;
use crate::error::{Code, CommandError, cause};
use crate::view::problems::Wrong;

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

/// What is given to a flow on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) inputs: &'a [String],
    pub(crate) set: &'a [String],
    pub(crate) named: &'a [String],
}

impl Flow {
    /// Finds and reads a flow.
    pub(crate) fn find(place: &Place, settings: &Settings, name: &str) -> Result<Self, CommandError> {
        let finder = Finder::new(place)?;
        match finder.file_of(settings, name)? {
            Some((path, alias)) => finder.load(&path, alias),
            None => Err(finder.missing(name, settings)),
        }
    }

    /// Finds and reads a flow for those who have nobody to tell what is wrong.
    pub(crate) fn try_find(place: &Place, settings: &Settings, name: &str) -> Option<Self> {
        let finder = Finder::new(place).ok()?;
        let (path, _) = finder.file_of(settings, name).ok()??;
        finder.try_load(&path).ok()
    }

    /// Reads the flow of a file, by its path from the root of the repository. Returns `None` where it is no flow.
    pub(crate) fn try_read(place: &Place, file: &str) -> Option<Self> {
        let finder = Finder::new(place).ok()?;
        finder.try_load(&finder.root.join(file)).ok()
    }

    /// Returns where it was read, and what was in it.
    pub(crate) fn source(&self) -> TemplateSource {
        TemplateSource::new(&self.file, &self.sources)
    }

    /// Returns the aliases and the workflows by the names of their files, sorted.
    pub(crate) fn names(place: &Place, settings: &Settings) -> Vec<String> {
        Finder::new(place).map(|finder| finder.names(settings)).unwrap_or_default()
    }

    /// Checks each workflow of a place, and returns what is wrong with those that are not in order.
    pub(crate) fn check_all(
        place: &Place,
        settings: &Settings,
    ) -> Result<Vec<Result<(), Wrong>>, CommandError> {
        let finder = Finder::new(place)?;
        let check = |path: &PathBuf| {
            let flow = finder.try_load(path).map_err(|trouble| match trouble {
                Trouble::Unreadable(why) => {
                    let file = path.strip_prefix(&finder.root).unwrap_or(path).display().to_string();
                    let problem = Problem::new("", format!("cannot be read: {why}"));
                    let problems = Problems::check(vec![problem], ()).expect_err("invariant: there is one");
                    Wrong { file, problems, sources: BTreeMap::new() }
                }
                Trouble::Wrong(found) => found,
            })?;
            flow.check(&settings.config.rules)
        };
        Ok(finder.files().iter().map(check).collect())
    }

    /// Checks it without anybody who gives its parameters. One that is empty where nobody says has to be given, so
    /// some values are tried: a word, a number.
    fn check(self, rules: &Rules) -> Result<(), Wrong> {
        let empty: Vec<String> = self
            .template
            .params()
            .filter(|(_, value)| value.is_empty())
            .map(|(name, _)| name.to_owned())
            .collect();
        let mut fewest: Option<Problems> = None;
        for value in [None, Some("x"), Some("1")] {
            let given = empty.iter().filter_map(|name| Some((name.clone(), value?.to_owned()))).collect();
            match self.template.expand(&given, rules) {
                Ok(_) => return Ok(()),
                Err(found) => {
                    let is_better = fewest.as_ref().is_none_or(|best| found.all().len() < best.all().len());
                    fewest = if is_better { Some(found) } else { fewest };
                }
            }
        }
        match fewest {
            Some(problems) => Err(Wrong { file: self.file, problems, sources: self.sources }),
            None => Ok(()),
        }
    }

    /// Gives its parameters their values, and checks everything, for those who only look.
    pub(crate) fn expand(&self, given: &Given<'_>, settings: &Settings) -> Result<Expanded, CommandError> {
        self.expand_for(given, settings, None)
    }

    /// Does the same for completion, which has no place to report problems.
    pub(crate) fn try_expand(&self, given: &Given<'_>, settings: &Settings) -> Option<Expanded> {
        let inputs = Inputs { positional: given.inputs.to_vec(), named: Vec::new(), set: given.set.to_vec() };
        let bound = self.template.bind(&inputs).ok()?;
        self.template.expand_for(&bound, &settings.config.rules, None).ok()
    }

    /// Does the same for those who want to run it: its agents have to be there, too.
    pub(crate) fn expand_to_run(
        &self,
        given: &Given<'_>,
        settings: &Settings,
    ) -> Result<Expanded, CommandError> {
        let agents = settings.config.agents.keys().cloned().collect();
        self.expand_for(given, settings, Some(&agents))
    }

    /// Flags are written `flag=value`.
    fn expand_for(
        &self,
        given: &Given<'_>,
        settings: &Settings,
        agents: Option<&BTreeSet<String>>,
    ) -> Result<Expanded, CommandError> {
        let mut named = Vec::with_capacity(given.named.len());
        for text in given.named {
            let Some((flag, value)) = text.split_once('=') else {
                let message = format!("flag `--{text}` needs a value");
                return Err(misspelt(CommandError::new(Code::FlowRefused, message), text));
            };
            named.push((flag.to_owned(), value.to_owned()));
        }
        let inputs = Inputs { positional: given.inputs.to_vec(), named, set: given.set.to_vec() };
        let bound = self.template.bind(&inputs);
        let bound = bound.map_err(|error| {
            let refused = CommandError::new(Code::FlowRefused, error.to_string());
            if let BindError::UnknownFlag { flag, near: None, .. } = &error {
                return misspelt(refused, flag);
            }
            refused
        })?;
        let expanded = self.template.expand_for(&bound, &settings.config.rules, agents);
        expanded.map_err(|found| self.wrong(&found))
    }

    /// Draws what is wrong with it, and returns the error that sums it up.
    pub(crate) fn wrong(&self, found: &Problems) -> CommandError {
        let (file, sources) = (self.file.clone(), self.sources.clone());
        Wrong { file, problems: found.clone(), sources }.told(Code::FlowInvalid)
    }
}

/// Adds the flag of the command itself that somebody may have meant.
fn misspelt(error: CommandError, flag: &str) -> CommandError {
    match nearest(flag, &[&FLAGS_WITH_VALUE[..], &FLAGS_WITHOUT_VALUE].concat()) {
        Some(near) => error.hint(format!("Did you mean `--{near}`?")),
        None => error,
    }
}

/// The flags of the commands that take a flow, first those with a value; all others are those of its template.
pub(crate) const FLAGS_WITH_VALUE: [&str; 6] = ["set", "after", "pin", "repeat", "format", "dir"];
pub(crate) const FLAGS_WITHOUT_VALUE: [&str; 4] = ["require-approval", "check", "follow", "help"];

/// Why a template could not be read: the file, or what is in it.
enum Trouble {
    Unreadable(String),
    Wrong(Wrong),
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

    /// Returns the file of a flow, with the alias that it was named by if it was one.
    fn file_of<'n>(
        &self,
        settings: &Settings,
        name: &'n str,
    ) -> Result<Option<(PathBuf, Option<&'n str>)>, CommandError> {
        if let Some(path) = name.strip_prefix("file:") {
            return Ok(Some((self.written(Path::new(path)), None)));
        }
        if self.here.join(name).is_file() {
            return Ok(Some((self.here.join(name), None)));
        }
        if let Some(file) = settings.config.commands.get(name) {
            let path = file.strip_prefix("file:").unwrap_or(file);
            return Ok(Some((self.root.join(path), Some(name))));
        }
        let path = self.with_id(name)?;
        Ok(path.or_else(|| self.bare(name)).map(|path| (path, None)))
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
            Trouble::Wrong(found) => found.told(Code::FlowInvalid),
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
            Err(problems) => Err(Trouble::Wrong(Wrong { file, problems, sources })),
        }
    }

    /// Reads a file of the repository.
    fn read(&self, path: &Path) -> Result<Source, String> {
        let path = fs::canonicalize(path).map_err(|error| cause(&error))?;
        let inside =
            path.strip_prefix(&self.root).map_err(|_| format!("it is outside of {}", self.root.display()))?;
        let file = inside.display().to_string();
        let metadata = fs::metadata(&path).map_err(|error| cause(&error))?;
        if metadata.is_dir() {
            return Err("it is a directory".to_owned());
        }
        if !metadata.is_file() {
            return Err("it is no file".to_owned());
        }
        let mut bytes = Vec::new();
        // What it is may have changed since it was looked at.
        let opened = open_regular(&self.root, inside, Access::Read).map_err(|error| cause(&error))?;
        opened.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| cause(&error))?;
        if bytes.len() > MOST_BYTES {
            return Err(format!("it is larger than {MOST_BYTES} bytes, which no template is"));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8; save it as UTF-8")
        })?;
        Ok(Source { file, text })
    }

    fn missing(&self, name: &str, settings: &Settings) -> CommandError {
        if !name.is_empty() && self.here.join(name).is_dir() {
            let error =
                CommandError::new(Code::FlowMissing, format!("`{name}` is a directory, and no flow."));
            return error.hint("Give the name of a file in it.");
        }
        let message = format!("There is no flow `{name}`: no file, no alias, no template with this id.");
        let error = CommandError::new(Code::FlowMissing, message);
        let mut known = self.names(settings);
        const MOST: usize = 20;
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        if let Some(near) = nearest(name, &names) {
            return error.hint(format!("Did you mean `{near}`?"));
        }
        if known.is_empty() {
            return error
                .hint("Put templates into `.tidewheel/workflows/`, or give the name of a file.")
                .hint("`tidewheel init` makes a first one, `hello`.");
        }
        known.truncate(MOST);
        match known.as_slice() {
            [only] => error.hint(format!("There is {only}.")),
            several => error.hint(format!("There are {}.", several.join(", "))),
        }
    }

    /// Returns the aliases and the workflows by the names of their files, sorted.
    fn names(&self, settings: &Settings) -> Vec<String> {
        let files = self.files();
        let stems =
            files.iter().filter_map(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into_owned());
        let mut known: Vec<String> = settings.config.commands.keys().cloned().chain(stems).collect();
        known.sort();
        known.dedup();
        known
    }
}
