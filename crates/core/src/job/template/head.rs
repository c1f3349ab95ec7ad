//! What a file of a template says about itself, before any parameter has a value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::document::{Data, Node, Problem, Report, Table};
use crate::job::NodeId;

/// What a file says about itself.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) version: String,
    /// Parameters with what they are where nobody says.
    pub(super) params: BTreeMap<String, String>,
    pub(super) cli: Cli,
    pub(super) imports: Vec<Import>,
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

/// Reads the head. What is left of the table is for later.
pub(super) fn read(node: Node<'_>, report: &mut Report<'_>) -> Option<Head> {
    let mut top = report.table("", node)?;
    let before = report.len();
    let id = top.required("id", report, |table, name, report| word(table, name, report));
    let version = top.required("version", report, |table, name, report| word(table, name, report));
    let params = params(&mut top, report);
    let cli = cli(&mut top, &params, report);
    let imports = imports(&mut top, report);
    if report.len() > before {
        return None;
    }
    Some(Head { id: id?, version: version?, params, cli, imports })
}

/// Reads a word that stands in messages, records and file names of people.
fn word(table: &mut Table<'_>, name: &str, report: &mut Report<'_>) -> Option<String> {
    const LONGEST: usize = 120;
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

fn params(top: &mut Table<'_>, report: &mut Report<'_>) -> BTreeMap<String, String> {
    let mut params = BTreeMap::new();
    let Some(table) = top.table("params", report) else { return params };
    for entry in &table.entries {
        let path = table.path_to(&entry.key);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if entry.key.is_empty() || !entry.key.chars().all(is_plain) {
            let message = "must be named with letters, digits, `_`, `-` and `.` only";
            report.at(entry.key_span.clone(), Problem::new(path, message));
        } else if let Some(text) = scalar(&entry.value) {
            params.insert(entry.key.to_string(), text);
        } else {
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

fn cli(top: &mut Table<'_>, params: &BTreeMap<String, String>, report: &mut Report<'_>) -> Cli {
    let mut cli = Cli::default();
    let Some(mut table) = top.table("cli", report) else { return cli };
    let known = |name: &str| {
        let unknown = || format!("names `{name}`, which is no parameter");
        if params.contains_key(name) { Ok(()) } else { Err(unknown()) }
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

fn imports(top: &mut Table<'_>, report: &mut Report<'_>) -> Vec<Import> {
    let mut imports: Vec<Import> = Vec::new();
    for (index, item) in tables(top, "imports", report).into_iter().enumerate() {
        let Some(mut table) = report.table(&format!("imports[{index}]"), item) else { continue };
        let name = table.required("name", report, Table::string).map(Cow::into_owned);
        let path = table.required("path", report, Table::string).map(Cow::into_owned);
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
        table.finish(report, &["name", "path", "params"]);
        if let (Some(name), Some(path)) = (name, path) {
            imports.push(Import { name, path, file: 0, params, place });
        }
    }
    imports
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
                    report.at(span, Problem::new(top.path_to(name), message));
                    Vec::new()
                }
            }
        }
    }
}
