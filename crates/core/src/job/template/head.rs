//! What a file of a template says about itself, before any parameter has a value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::scope::{Found, Params};
use crate::document::{self, Data, Entry, Node, Problem, Report, Table};
use crate::job::NodeId;

/// What a file says about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) version: String,
    /// Parameters with what they are where nobody says.
    pub(super) params: Params,
    /// Where that stands.
    pub(super) param_places: BTreeMap<String, Range<usize>>,
    pub(super) cli: Cli,
    pub(super) imports: Vec<Import>,
    /// Whether it is a document at all.
    pub(super) is_text: bool,
    /// How the ids of nodes begin that are not known, as those of an import that cannot be read.
    pub(super) lost: Vec<String>,
}

/// How parameters are given on a command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Cli {
    /// The parameters that are given by their place.
    pub(super) positional: Vec<String>,
    /// Flags, and the parameters that they set.
    pub(super) named: BTreeMap<String, String>,
}

/// One template inside another.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) path: String,
    /// The number of its file, once that is known.
    pub(super) file: usize,
    /// What it is given, with its place.
    pub(super) params: Vec<(String, String, Range<usize>)>,
    /// Where it is asked for.
    pub(super) place: Range<usize>,
    /// Whether something that it is given cannot be read.
    pub(super) has_unread: bool,
}

/// The fields of a template.
pub(super) const FIELDS: &[&str] = &[
    "id",
    "version",
    "params",
    "policy",
    "policies",
    "artifact_contracts",
    "nodes",
    "imports",
    "links",
    "cli",
];

/// Flags of the command line itself, which a template cannot have for its own.
pub(super) const TAKEN_FLAGS: &[&str] = &[
    "set",
    "after",
    "require-approval",
    "check",
    "repeat",
    "follow",
    "format",
    "pin",
    "dir",
    "help",
    "version",
    "color",
    "utc",
    "quiet",
    "verbose",
    "wait",
    "no-wait",
    "store",
];

impl Head {
    /// Returns what is known of a file that cannot be read: it may have any parameter and any node.
    pub(super) fn unread() -> Self {
        let params = Params { has_more: true, ..Params::default() };
        Self { params, lost: vec![String::new()], ..Self::default() }
    }
}

/// Reads the head as far as it can be read. What is left of the table is for later.
pub(super) fn read(node: Node<'_>, report: &mut Report<'_>) -> Head {
    let Some(mut top) = report.table("", node) else { return Head::unread() };
    if let Some(problem) = no_template(&top) {
        report.at(top.span.clone(), problem);
        // Everything else that is missing follows from it.
        return Head { is_text: true, lost: vec![String::new()], ..Head::default() };
    }
    let id = required_word(&mut top, "id", report);
    let version = required_word(&mut top, "version", report);
    let mut param_places = BTreeMap::new();
    if let Some(Entry { value: Node { data: Data::Table(entries), .. }, .. }) = top.peek("params") {
        param_places.extend(entries.iter().map(|entry| (entry.key.to_string(), entry.value.span.clone())));
    }
    let params = params(&mut top, report);
    let cli = cli(&mut top, &params, report);
    let (imports, lost) = imports(&mut top, report);
    let (id, version) = (id.unwrap_or_default(), version.unwrap_or_default());
    Head { id, version, params, param_places, cli, imports, is_text: true, lost }
}

/// Says what a file is that has nothing of a template.
fn no_template(top: &Table<'_>) -> Option<Problem> {
    let has = |name: &str| top.peek(name).is_some();
    if top.entries.is_empty() {
        let problem = Problem::new("", "the file is empty: a template has an id, a version and nodes");
        return Some(problem.help("`tidewheel init` makes a first one, `hello`"));
    }
    let is_policies = top.entries.iter().all(|entry| entry.key == "policies");
    if is_policies && has("policies") {
        let problem =
            Problem::new("", "this is a file of policies and no template: it has no id and no nodes");
        return Some(problem.help("`tidewheel policy check FILE` checks it"));
    }
    None
}

/// Reads a word that must be there.
fn required_word(top: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Option<String> {
    if top.is_misspelt(name, FIELDS) {
        return None;
    }
    if top.peek(name).is_none() {
        let example = if name == "version" { "v1" } else { "…" };
        let problem = Problem::new(name, "is missing");
        report.at(
            top.span.clone(),
            problem.help(format!("write {name} = \"{example}\" at the top of the file")),
        );
        return None;
    }
    word(top, name, report)
}

/// Reads a word that stands in messages, records and file names of people.
fn word(table: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Option<String> {
    const LONGEST: usize = 120;
    if let Some(Entry { value: Node { data: Data::Integer(number), span }, .. }) = table.peek(name) {
        let problem = Problem::new(table.path_to(name), "must be a string, found an integer");
        report.at(span.clone(), problem.help(format!("write {name} = \"{number}\"")));
        return None;
    }
    let text = table.string(name, report)?;
    let reason = if text.trim().is_empty() {
        "must not be empty"
    } else if text.len() > LONGEST {
        "must have at most 120 bytes"
    } else if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "must have no blanks and no control characters"
    } else {
        return Some(text.into_owned());
    };
    table.fail(name, reason.to_owned(), report);
    None
}

fn params(top: &mut Table<'_>, report: &mut Report<'_>) -> Params {
    let mut params = Params::default();
    let Some(table) = top.table("params", report) else {
        // Whoever wrote something else there, or misspelt it, meant to declare some.
        let is_meant = |entry: &Entry<'_>| document::nearest(&entry.key, FIELDS) == Some("params");
        params.has_more = top.was_given("params") || top.entries.iter().any(is_meant);
        return params;
    };
    for entry in &table.entries {
        let path = table.path_to(&entry.key);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if entry.key.is_empty() || !entry.key.chars().all(is_plain) {
            let message = "must be named with letters, digits, `_`, `-` and `.` only";
            report.at(entry.key_span.clone(), Problem::new(path, message));
            params.open.insert(entry.key.to_string());
        } else if let Some(text) = scalar(&entry.value) {
            params.values.insert(entry.key.to_string(), text);
        } else {
            params.open.insert(entry.key.to_string());
            let message = format!("must be a text, a number or a boolean, found {}", entry.value.kind());
            report.at(entry.value.span.clone(), Problem::new(path, message));
        }
    }
    params
}

/// Returns the text of a value that has no parts.
pub(super) fn scalar(node: &Node<'_>) -> Option<String> {
    match &node.data {
        Data::String(text) => Some(text.clone().into_owned()),
        Data::Integer(number) => Some(number.to_string()),
        Data::Float(number) if number.is_finite() => Some(number.to_string()),
        Data::Boolean(value) => Some(value.to_string()),
        Data::Float(_) | Data::Null | Data::Datetime(_) | Data::List(_) | Data::Table(_) => None,
    }
}

fn cli(top: &mut Table<'_>, params: &Params, report: &mut Report<'_>) -> Cli {
    let mut cli = Cli::default();
    let Some(mut table) = top.table("cli", report) else { return cli };
    let known = |name: &str| match params.find(name) {
        Found::Value(_) | Found::Open => Ok(()),
        Found::Unknown => {
            let names: Vec<&str> = params.values.keys().map(String::as_str).collect();
            let near = document::nearest(name, &names);
            let near = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            Err(format!("names `{name}`, which is no parameter{near}"))
        }
    };
    let read = |node: &Node<'_>| match &node.data {
        Data::String(name) => known(name).map(|()| name.clone().into_owned()),
        _ => Err(format!("must be a list of parameters, found {}", node.kind())),
    };
    cli.positional = table.list("positional", report, read).unwrap_or_default();
    let twice = (1..cli.positional.len()).find(|at| cli.positional[..*at].contains(&cli.positional[*at]));
    if let Some(twice) = twice {
        table.fail("positional", format!("names `{}` twice", cli.positional[twice]), report);
    }
    if let Some(named) = table.table("named", report) {
        for entry in &named.entries {
            let path = named.path_to(&entry.key);
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
            let is_flag =
                entry.key.starts_with(|c: char| c.is_ascii_lowercase()) && entry.key.chars().all(is_plain);
            let problem = match &entry.value.data {
                _ if !is_flag => {
                    Some("must be named with lower case letters, digits, `-` and `_` only".to_owned())
                }
                _ if TAKEN_FLAGS.contains(&entry.key.as_ref()) => {
                    Some(format!("cannot be a flag of a template: `--{}` is taken", entry.key))
                }
                Data::String(name) => known(name).err(),
                _ => Some(format!("must be the name of a parameter, found {}", entry.value.kind())),
            };
            match (problem, &entry.value.data) {
                (Some(message), _) => report.at(entry.value.span.clone(), Problem::new(path, message)),
                (None, Data::String(name)) => {
                    cli.named.insert(entry.key.to_string(), name.clone().into_owned());
                }
                (None, _) => {}
            }
        }
    }
    table.finish(report, &["positional", "named"]);
    cli
}

/// Reads the imports, and says how the ids of nodes begin of those that cannot be read.
fn imports(top: &mut Table<'_>, report: &mut Report<'_>) -> (Vec<Import>, Vec<String>) {
    let mut imports: Vec<Import> = Vec::new();
    let before = report.len();
    let items = tables(top, "imports", report);
    let mut lost = vec![String::new(); usize::from(report.len() > before)];
    for (index, item) in items.into_iter().enumerate() {
        let before = report.len();
        let Some(mut table) = report.table(&format!("imports[{index}]"), item) else {
            lost.push(String::new());
            continue;
        };
        const KNOWN: &[&str] = &["name", "path", "params"];
        let name = table.required_string("name", KNOWN, report).map(Cow::into_owned);
        let path = table.required_string("path", KNOWN, report).map(Cow::into_owned);
        let place = table.place_of("path");
        if let Some(name) = &name {
            if let Err(error) = NodeId::new(name) {
                table.fail("name", error.to_string(), report);
            } else if imports.iter().any(|import| import.name == *name) {
                table.fail("name", format!("is `{name}`, as that of another import"), report);
            }
        }
        if path.as_deref().is_some_and(|path| path.trim().is_empty() || path.contains('\0')) {
            table.fail("path", "must name a file".to_owned(), report);
        }
        let is_lost = report.len() > before || name.is_none() || path.is_none();
        let before = report.len();
        let mut params = Vec::new();
        if let Some(given) = table.table("params", report) {
            for entry in &given.entries {
                let span = entry.value.span.clone();
                match scalar(&entry.value) {
                    Some(text) => params.push((entry.key.to_string(), text, span)),
                    None => {
                        let kind = entry.value.kind();
                        let message = format!("must be a text, a number or a boolean, found {kind}");
                        report.at(span, Problem::new(given.path_to(&entry.key), message));
                    }
                }
            }
        }
        table.finish(report, KNOWN);
        if is_lost {
            lost.push(name.as_deref().map_or_else(String::new, prefix));
        }
        if let (Some(name), Some(path), false) = (name, path, is_lost) {
            let has_unread = report.len() > before;
            imports.push(Import { name, path, file: 0, params, place, has_unread });
        }
    }
    (imports, lost)
}

/// Returns how the ids of the nodes of an import begin.
pub(super) fn prefix(import: &str) -> String {
    format!("{import}__")
}

/// Takes a list of tables.
pub(super) fn tables<'a>(top: &mut Table<'a>, name: &str, report: &mut Report<'_>) -> Vec<Node<'a>> {
    match top.take(name) {
        None => Vec::new(),
        Some(entry) => {
            let kind = entry.value.kind();
            let span = entry.value.span.clone();
            match entry.value.data {
                Data::List(items) => items,
                _ => {
                    let message = format!("must be a list of tables, found {kind}");
                    let help = match &entry.value.data {
                        Data::Table(_) if top.path.is_empty() => {
                            Some(format!("write [[{name}]] once for each"))
                        }
                        Data::Table(_) => Some(format!("write {name} = [{{ … }}]")),
                        Data::String(_) if name == "after" => document::as_list(name, &entry.value),
                        _ => None,
                    };
                    report.at(span, Problem::new(top.path_to(name), message).help_from(help));
                    Vec::new()
                }
            }
        }
    }
}
