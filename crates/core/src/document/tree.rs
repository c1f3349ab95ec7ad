//! Documents that people write, TOML or JSON, as one tree that knows where each part stands, so that every
//! problem can be shown at its place. Nothing here knows what the documents mean.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::syntax;
use crate::json::{self, Fields};

/// Deeper than any document of ours; a bound keeps reading from being a recursion on the user's data.
const MAX_DEPTH: usize = 32;

/// One thing that is wrong with what somebody wrote.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::Policy;
///
/// let problems = Policy::from_toml("max_retries = 3\ntimeout = 'soon'").unwrap_err();
/// let problem = &problems.all()[0];
/// assert_eq!(problem.path, "timeout");
/// let place = problem.location.as_ref().expect("it stands in a file");
/// assert_eq!((place.line, place.column), (2, 11));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, with the way to it: `policies[2].timeout`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Where it stands in the text, if it came from a text.
    pub location: Option<Location>,
    /// The file of the text, where several of them are read together.
    pub file: Option<String>,
}

impl Problem {
    /// Says what is wrong at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: None, location: None, file: None }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what to do about it, if there is something to say.
    pub(crate) fn help_from(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            let separator = if self.location.is_some() { ", " } else { ": " };
            write!(f, "{file}{separator}")?;
        }
        if let Some(location) = &self.location {
            write!(f, "line {}, column {}: ", location.line, location.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// A place in a text.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::policy::Policy;
///
/// let source = "max_retries = 'many'";
/// let problems = Policy::from_toml(source).unwrap_err();
/// let place = problems.all()[0].location.as_ref().expect("it stands in a file");
/// assert_eq!(&source[place.span.clone()], "'many'");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The line, counted from one.
    pub line: usize,
    /// The column in characters, counted from one.
    pub column: usize,
    /// The bytes.
    pub span: Range<usize>,
}

impl Location {
    /// Finds line and column of a span of bytes.
    fn of(source: &str, span: Range<usize>) -> Self {
        let floor =
            |at: usize| (0..=at.min(source.len())).rev().find(|i| source.is_char_boundary(*i)).unwrap_or(0);
        let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
        let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: source[..line_start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            span: start..end,
        }
    }
}

/// All that is wrong, at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Returns the value when nothing is wrong.
    ///
    /// # Errors
    /// Something is wrong.
    pub fn check<T>(problems: Vec<Problem>, value: T) -> Result<T, Self> {
        if problems.is_empty() { Ok(value) } else { Err(Self(problems)) }
    }

    /// Returns them in the order in which they were found.
    #[must_use]
    pub fn all(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Json,
}

/// One part of a document.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) span: Range<usize>,
    pub(crate) data: Data<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum Data<'a> {
    Null,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    String(Cow<'a, str>),
    Datetime(String),
    List(Vec<Node<'a>>),
    Table(Vec<Entry<'a>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node<'a>,
}

impl Node<'_> {
    /// Returns what it is, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "null",
            Data::Boolean(_) => "a boolean",
            Data::Integer(_) => "an integer",
            Data::Float(value) if value.abs() >= 1e18 => "a number too large",
            Data::Float(_) => "a number with a fraction",
            Data::String(_) => "a string",
            Data::Datetime(_) => "a date or time",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// Returns the part as JSON, with numbers that JSON has no word for as `None`.
    pub(crate) fn to_json(&self) -> Option<serde_json::Value> {
        Some(match &self.data {
            Data::Null => serde_json::Value::Null,
            Data::Boolean(value) => (*value).into(),
            Data::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => return None,
            },
            Data::Float(value) => serde_json::Number::from_f64(*value)?.into(),
            Data::String(value) => value.clone().into_owned().into(),
            Data::Datetime(value) => value.clone().into(),
            Data::List(items) => items.iter().map(Self::to_json).collect::<Option<Vec<_>>>()?.into(),
            Data::Table(entries) => entries
                .iter()
                .map(|entry| Some((entry.key.clone().into_owned(), entry.value.to_json()?)))
                .collect::<Option<serde_json::Map<_, _>>>()?
                .into(),
        })
    }
}

/// Reads a whole document, which is a table.
pub(crate) fn read(source: &str, format: Format) -> Result<Node<'_>, Problems> {
    match format {
        Format::Toml => read_toml(source).map_err(Problems),
        Format::Json => read_json(source).map_err(|problem| Problems(vec![*problem])),
    }
}

/// Puts places into problems that know only their span so far.
pub(crate) fn locate(source: &str, problem: Problem, span: Range<usize>) -> Problem {
    Problem { location: Some(Location::of(source, span)), ..problem }
}

fn read_toml(source: &str) -> Result<Node<'_>, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(source);
    if !errors.is_empty() {
        let error = |error: &toml::de::Error| {
            let message = error.message().trim_end().replace('\n', ", ");
            (message, error.span().unwrap_or(0..0))
        };
        return Err(syntax::problems(source, errors.iter().map(error)));
    }
    let too_deep = |span| vec![locate(source, Problem::new("", "is nested too deep"), span)];
    let entries = toml_table(table.get_ref(), MAX_DEPTH).map_err(too_deep)?;
    Ok(Node { span: table.span(), data: Data::Table(entries) })
}

fn toml_table<'a>(table: &DeTable<'a>, depth: usize) -> Result<Vec<Entry<'a>>, Range<usize>> {
    table
        .iter()
        .map(|(key, value)| {
            let (key, key_span) = (key.get_ref().clone(), key.span());
            Ok(Entry { key, key_span, value: toml_node(value, depth)? })
        })
        .collect()
}

fn toml_node<'a>(value: &Spanned<DeValue<'a>>, depth: usize) -> Result<Node<'a>, Range<usize>> {
    let span = value.span();
    let Some(depth) = depth.checked_sub(1) else { return Err(span) };
    let data = match value.get_ref() {
        DeValue::String(text) => Data::String(text.clone()),
        DeValue::Integer(digits) => match i128::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Data::Integer(number),
            // Beyond any number of ours; a float is refused wherever an integer is wanted.
            Err(_) => Data::Float(f64::INFINITY),
        },
        DeValue::Float(digits) => Data::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Data::Boolean(*value),
        DeValue::Datetime(value) => Data::Datetime(value.to_string()),
        DeValue::Array(items) => {
            Data::List(items.iter().map(|item| toml_node(item, depth)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Data::Table(toml_table(table, depth)?),
    };
    Ok(Node { span, data })
}

fn read_json(source: &str) -> Result<Node<'_>, Box<Problem>> {
    let raw: &RawValue = serde_json::from_str(source).map_err(|error| {
        let line_start =
            source.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let at = (line_start + error.column().saturating_sub(1)).min(source.len());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Box::new(locate(source, Problem::new("", message), at..at + 1))
    })?;
    json_node(source, raw, MAX_DEPTH)
        .map_err(|(message, span)| Box::new(locate(source, Problem::new("", message), span)))
}

fn json_node<'a>(
    source: &str,
    raw: &'a RawValue,
    depth: usize,
) -> Result<Node<'a>, (Cow<'static, str>, Range<usize>)> {
    let span = span_in(source, raw.get());
    let Some(depth) = depth.checked_sub(1) else { return Err((Cow::Borrowed("is nested too deep"), span)) };
    let text = raw.get();
    let data = match text.as_bytes().first() {
        Some(b'{') => {
            let fields = Fields::split(raw)
                .ok_or_else(|| (json::mismatch(json::MUST_BE_AN_OBJECT, raw), span.clone()))?;
            let fields = fields
                .into_entries()
                .map_err(|key| (Cow::Owned(format!("has the key `{key}` twice")), span.clone()))?;
            let entry = |(key, value)| {
                let value = json_node(source, value, depth)?;
                Ok(Entry { key, key_span: key_before(source, &value.span), value })
            };
            Data::Table(fields.map(entry).collect::<Result<_, _>>()?)
        }
        Some(b'[') => {
            let items = json::items(raw).ok_or_else(|| (Cow::Borrowed("is no list"), span.clone()))?;
            Data::List(
                items.into_iter().map(|item| json_node(source, item, depth)).collect::<Result<_, _>>()?,
            )
        }
        Some(b'"') => {
            Data::String(json::string(raw).ok_or_else(|| (Cow::Borrowed(json::BAD_ESCAPE), span.clone()))?)
        }
        Some(b't') => Data::Boolean(true),
        Some(b'f') => Data::Boolean(false),
        Some(b'n') => Data::Null,
        _ => match text.parse() {
            Ok(number) => Data::Integer(number),
            Err(_) => Data::Float(text.parse().unwrap_or(f64::NAN)),
        },
    };
    Ok(Node { span, data })
}

/// Returns where the key of a value stands: right before it, between its quotes.
fn key_before(source: &str, value: &Range<usize>) -> Range<usize> {
    let before = source[..value.start].trim_end().strip_suffix(':').map(str::trim_end);
    let quotes = before.and_then(|text| Some((text.strip_suffix('"')?.rfind('"')?, text.len())));
    quotes.map_or_else(|| value.clone(), |(start, end)| start..end)
}

/// Returns where a part of a text stands in it. Invariant: the part is borrowed from the text.
fn span_in(source: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize).min(source.len());
    start..(start + part.len()).min(source.len())
}
