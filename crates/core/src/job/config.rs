//! What is configured for all jobs of a repository: `config.toml`. Unknown keys are refused, and every problem is
//! reported at once with its place. The file itself is read by others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::script::{foreign_interpreter, script_argv};
use crate::document::{self, Data, Entry, Format, Node, Problem, Problems, Report, Table};
use crate::policy::{self, Limit, Policy, Rules, word_enum};
use crate::time::Span;

/// As long as a log of a job grows before it is turned over.
pub const DEFAULT_LOG_SIZE: u64 = 64 * 1024 * 1024;
/// A log that is turned over at less would be mostly notes of that.
const LEAST_LOG_SIZE: u64 = 4 * 1024;
/// So often is looked at what nobody tells of.
pub const DEFAULT_PROBE_INTERVAL: Span = Span::from_secs(5);
/// So long are jobs kept that have ended.
pub const DEFAULT_GC_DAYS: u32 = 7;

/// What is configured for all jobs of a repository.
///
/// ```
/// use tidewheel_core::job::{Config, KnownFields};
///
/// let config = Config::parse("[scheduler]\ncapacity = 4", KnownFields::default())?;
/// assert_eq!(config.capacity, Some(4));
/// assert_eq!(config.gc_days, 7);
/// # Ok::<(), tidewheel_core::Problems>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// Aliases of templates, and the files that they stand for.
    pub commands: BTreeMap<String, String>,
    /// How agents are called, by name.
    pub agents: BTreeMap<String, Agent>,
    /// The variables of the environment whose values are hidden wherever something is kept or shown.
    pub secrets: Vec<String>,
    /// How many jobs run at once; by default as many as there are cores.
    pub capacity: Option<u32>,
    /// How often the scheduler checks conditions outside of it, such as branches and a clean tree.
    pub probe_interval: Span,
    /// Whether a job that is cancelled loses its worktree.
    pub cleanup_worktree: bool,
    /// How many days a job is kept after its end.
    pub gc_days: u32,
    /// How many bytes a log grows to before it is turned over.
    pub log_size: u64,
    /// How jobs are listed.
    pub list: Display,
    /// How one job is shown.
    pub show: Display,
    /// The policies of all templates; those of a template itself come before them.
    pub rules: Rules,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            commands: BTreeMap::new(),
            agents: BTreeMap::new(),
            secrets: Vec::new(),
            capacity: None,
            probe_interval: DEFAULT_PROBE_INTERVAL,
            cleanup_worktree: false,
            gc_days: DEFAULT_GC_DAYS,
            log_size: DEFAULT_LOG_SIZE,
            list: Display::default(),
            show: Display::default(),
            rules: Rules::default(),
        }
    }
}

/// How an agent is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// The program and its arguments. What was written as a text is for a shell.
    pub argv: Vec<String>,
    /// The variables of the environment that reach it, beside [`Agent::USUAL_ENV`].
    pub env: Vec<String>,
    /// How long it may take.
    pub timeout: Option<Span>,
    /// Where it runs, relative to the root of the repository; by default where its node runs.
    pub cwd: Option<String>,
}

impl Agent {
    /// The agent of a node that names none.
    pub const DEFAULT: &'static str = "default";
    /// The variables that reach every agent: without them hardly a program runs, and none of them is a secret.
    pub const USUAL_ENV: [&'static str; 12] = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM",
        "TMPDIR", "TZ",
    ];
}

/// How something is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Display {
    /// The fields, in order; the usual ones where nobody says.
    pub fields: Option<Vec<String>>,
    /// The form.
    pub format: Option<DisplayFormat>,
}

word_enum! {
    /// The forms in which jobs are shown.
    pub enum DisplayFormat {
        /// A line for each field.
        Block = "block",
        /// A line for each job.
        Table = "table",
        /// For programs.
        Json = "json",
    }
}

/// The fields that views know; with none of them, any name is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownFields<'a> {
    /// Those of a list.
    pub list: &'a [&'a str],
    /// Those of one job.
    pub show: &'a [&'a str],
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(source: &str, known: KnownFields<'_>) -> Result<Self, Problems> {
        let mut report = Report::new(source);
        let node = document::read(source, Format::Toml)?;
        let read = report.table("", node).map(|top| read(top, known, &mut report));
        let (config, rules) = report.finish(read)?;
        Ok(Self { rules: Rules::new(rules)?, ..config })
    }
}

type Written = Vec<(policy::Matcher, Policy)>;

fn read(mut top: Table<'_>, known: KnownFields<'_>, report: &mut Report<'_>) -> (Config, Written) {
    let mut config = Config {
        commands: texts(&mut top, "commands", report, |text| {
            let is_file = text.strip_prefix("file:").is_some_and(|path| !path.trim().is_empty());
            if is_file { Ok(()) } else { Err(format!("must be \"file:PATH\", got `{text}`")) }
        }),
        agents: agents(&mut top, report),
        ..Config::default()
    };
    if let Some(mut secrets) = top.table("secrets", report) {
        config.secrets = variables(&mut secrets, "env", report);
        secrets.finish(report, &["env"]);
    }
    if let Some(mut scheduler) = top.table("scheduler", report) {
        config.capacity = at_least_one(&mut scheduler, "capacity", report);
        if let Some(interval) = scheduler.span("probe_interval", report) {
            if interval.is_zero() {
                scheduler.fail("probe_interval", "must be longer than 0s".to_owned(), report);
            }
            config.probe_interval = interval;
        }
        scheduler.finish(report, &["capacity", "probe_interval"]);
    }
    if let Some(mut jobs) = top.table("jobs", report) {
        if let Some(mut cancel) = jobs.table("cancel", report) {
            config.cleanup_worktree = cancel.boolean("cleanup_worktree", report).unwrap_or(false);
            cancel.finish(report, &["cleanup_worktree"]);
        }
        if let Some(mut gc) = jobs.table("gc", report) {
            config.gc_days = gc.uint("days", report).unwrap_or(DEFAULT_GC_DAYS);
            gc.finish(report, &["days"]);
        }
        if let Some(mut logs) = jobs.table("logs", report) {
            config.log_size = size(&mut logs, "max_size", report).unwrap_or(DEFAULT_LOG_SIZE);
            logs.finish(report, &["max_size"]);
        }
        jobs.finish(report, &["cancel", "gc", "logs"]);
    }
    if let Some(mut display) = top.table("display", report) {
        if let Some(mut lists) = display.table("lists", report) {
            config.list = shown(&mut lists, "jobs", known.list, report);
            config.show = shown(&mut lists, "jobs_show", known.show, report);
            lists.finish(report, &["jobs", "jobs_show"]);
        }
        display.finish(report, &["lists"]);
    }
    let rules = rules(&mut top, report);
    let fields = ["commands", "agents", "secrets", "scheduler", "jobs", "display", "policies"];
    top.finish(report, &fields);
    (config, rules)
}

fn rules(top: &mut Table<'_>, report: &mut Report<'_>) -> Written {
    let mut rules = Vec::new();
    match top.take("policies") {
        Some(Entry { value: Node { data: Data::List(items), .. }, .. }) => {
            for (index, item) in items.into_iter().enumerate() {
                let path = format!("policies[{index}]");
                rules.extend(policy::rule(&path, item, report, Policy::problems_for_jobs));
            }
        }
        Some(entry) => {
            let message = format!("must be a list of tables, found {}", entry.value.kind());
            top.fail("policies", message, report);
        }
        None => {}
    }
    rules
}

/// Reads a table of texts.
fn texts(
    top: &mut Table<'_>,
    name: &str,
    report: &mut Report<'_>,
    check: impl Fn(&str) -> Result<(), String>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Some(table) = top.table(name, report) else { return found };
    for entry in &table.entries {
        let problem = match &entry.value.data {
            _ if entry.key.trim().is_empty() => Some("must have a name".to_owned()),
            Data::String(text) => check(text).err(),
            _ => Some(format!("must be a string, found {}", entry.value.kind())),
        };
        match (problem, &entry.value.data) {
            (Some(message), _) => {
                report.at(entry.value.span.clone(), Problem::new(table.path_to(&entry.key), message));
            }
            (None, Data::String(text)) => {
                found.insert(entry.key.to_string(), text.clone().into_owned());
            }
            (None, _) => {}
        }
    }
    found
}

fn agents(top: &mut Table<'_>, report: &mut Report<'_>) -> BTreeMap<String, Agent> {
    let mut agents = BTreeMap::new();
    let Some(table) = top.table("agents", report) else { return agents };
    for Entry { key, key_span, value } in table.entries {
        if key.trim().is_empty() {
            report.at(key_span, Problem::new("agents", "must have a name"));
        }
        let Some(mut agent) = report.table(&format!("agents.{key}"), value) else { continue };
        let command = agent.required("command", report, |agent, name, _| agent.take(name));
        let args = agent.list("args", report, text).unwrap_or_default();
        let errexit = agent.boolean("errexit", report);
        if errexit.is_some()
            && command.as_ref().is_some_and(|command| matches!(command.value.data, Data::List(_)))
        {
            let message = "does nothing: the command is a list, which no shell reads".to_owned();
            agent.fail("errexit", message, report);
        }
        let errexit = errexit.unwrap_or(true);
        let argv = command.and_then(|command| match argv(&command.value, args, errexit) {
            Ok(argv) => Some(argv),
            Err(message) => {
                agent.fail("command", message.to_owned(), report);
                None
            }
        });
        let env = variables(&mut agent, "env", report);
        let timeout = agent.limit("timeout", report).and_then(Limit::span);
        if timeout.is_some_and(Span::is_zero) {
            agent.fail("timeout", "must be longer than 0s".to_owned(), report);
        }
        let cwd = agent.string("cwd", report).map(Cow::into_owned);
        if let Some(cwd) = &cwd
            && (cwd.trim().is_empty() || cwd.starts_with('/') || cwd.split('/').any(|step| step == ".."))
        {
            let message = "must be a directory in the repository, relative to its root".to_owned();
            agent.fail("cwd", message, report);
        }
        agent.finish(report, &["command", "errexit", "args", "env", "timeout", "cwd"]);
        agents.insert(key.into_owned(), Agent { argv: argv.unwrap_or_default(), env, timeout, cwd });
    }
    agents
}

fn text(node: &Node<'_>) -> Result<String, String> {
    match &node.data {
        Data::String(text) => Ok(text.clone().into_owned()),
        _ => Err(format!("must be a list of texts, found {}", node.kind())),
    }
}

/// Puts a command and its arguments together: a text is read by a shell, a list is run as it is.
fn argv(command: &Node<'_>, args: Vec<String>, errexit: bool) -> Result<Vec<String>, &'static str> {
    const FOREIGN: &str =
        "begins with a `#!` line, and `sh` reads it all the same: write a list with the program first";
    const WRONG: &str = "must be a text for a shell, or a list with a program first";
    let mut argv: Vec<String> = match &command.data {
        Data::String(text) if text.trim().is_empty() => return Err("must not be empty"),
        Data::String(text) if foreign_interpreter(text).is_some() => return Err(FOREIGN),
        Data::String(text) if args.is_empty() => script_argv(text, errexit),
        // The arguments come to the end of the command, and no shell reads them.
        Data::String(text) => {
            let mut argv = script_argv(&format!("{} \"$@\"", text.trim_end()), errexit);
            argv.push("sh".to_owned());
            argv
        }
        Data::List(words) => words.iter().map(text).collect::<Result<_, _>>().map_err(|_| WRONG)?,
        _ => return Err(WRONG),
    };
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(WRONG);
    }
    argv.extend(args);
    Ok(argv)
}

/// Reads a list of names of variables.
fn variables(table: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Vec<String> {
    let names = table.list(name, report, |node| match &node.data {
        Data::String(name) if !name.is_empty() && !name.contains(['=', '\0']) => {
            Ok(name.clone().into_owned())
        }
        Data::String(name) => Err(format!("has `{name}`, which is no name of a variable")),
        _ => Err(format!("must be a list of names of variables, found {}", node.kind())),
    });
    names.unwrap_or_default()
}

fn at_least_one(table: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Option<u32> {
    let number = table.uint(name, report);
    if number == Some(0) {
        table.fail(name, "must be at least 1: with 0 nothing would ever run".to_owned(), report);
    }
    number
}

/// Reads a size: a number of bytes, or a text such as `64MiB`.
fn size(table: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Option<u64> {
    let entry = table.take(name)?;
    let size = match &entry.value.data {
        Data::Integer(bytes) => u64::try_from(*bytes).ok(),
        Data::String(text) => bytes(text),
        _ => None,
    };
    if size.is_none_or(|size| size == 0) {
        table.fail(name, "must be a size such as \"64MiB\"".to_owned(), report);
    } else if size.is_some_and(|size| size < LEAST_LOG_SIZE) {
        table.fail(name, "must be at least 4KiB".to_owned(), report);
    }
    size
}

fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns the name of a field that people may write in several ways: `Waited on`, `waited-on`.
pub(crate) fn field_name(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == '_' || c == '-');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("_")
}

fn shown(lists: &mut Table<'_>, name: &str, known: &[&str], report: &mut Report<'_>) -> Display {
    let Some(mut table) = lists.table(name, report) else { return Display::default() };
    let fields = table.list("fields", report, |node| match &node.data {
        Data::String(field) if known.is_empty() || known.contains(&field_name(field).as_str()) => {
            Ok(field.clone().into_owned())
        }
        Data::String(field) => {
            let near = document::nearest(&field_name(field), known);
            let near = near.map(|near| format!(" did you mean `{near}`?")).unwrap_or_default();
            Err(format!("has no field `{field}`;{near} known are {}", known.join(", ")))
        }
        _ => Err(format!("must be a list of fields, found {}", node.kind())),
    });
    if fields.as_ref().is_some_and(Vec::is_empty) {
        table.fail("fields", "must not be empty".to_owned(), report);
    }
    let format = table.word("format", report, DisplayFormat::ALL, DisplayFormat::name);
    table.finish(report, &["fields", "format"]);
    Display { fields, format }
}
