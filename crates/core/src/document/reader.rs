//! Reads tables that people wrote: what is taken is known, what is left is refused, and every problem is reported at
//! once with its place. Nothing here knows what the tables mean.

use std::borrow::Cow;
use std::ops::Range;

use super::tree::{self as document, Data, Entry, Node, Problem, Problems};
use crate::policy::Limit;
use crate::time::{IntoSpan, Span};

/// More problems than anybody reads at once. Finding the place of each costs a walk through the text.
const MOST_PROBLEMS: usize = 200;

/// Problems as they are found, with their places.
pub(crate) struct Report<'s> {
    source: &'s str,
    file: Option<&'s str>,
    problems: Vec<Problem>,
    omitted: usize,
}

impl<'s> Report<'s> {
    pub(crate) const fn new(source: &'s str) -> Self {
        Self { source, file: None, problems: Vec::new(), omitted: 0 }
    }

    /// Reports what is wrong with one of several files.
    pub(crate) const fn of_file(source: &'s str, file: &'s str) -> Self {
        Self { source, file: Some(file), problems: Vec::new(), omitted: 0 }
    }

    pub(crate) fn at(&mut self, span: Range<usize>, problem: Problem) {
        // Two who look at the same field for different reasons tell of the same once.
        let is_same = |told: &Problem| told.path == problem.path && told.message == problem.message;
        if !problem.path.is_empty() && self.problems.iter().any(is_same) {
            return;
        }
        if self.problems.len() < MOST_PROBLEMS {
            let problem = Problem { file: self.file.map(str::to_owned), ..problem };
            self.problems.push(document::locate(self.source, problem, span));
        } else {
            self.omitted += 1;
        }
    }

    /// Returns where a part of a text stands, or the whole text if it is written in another way. What has a `$` before
    /// it is meant as it is.
    pub(crate) fn place_in(&self, span: Range<usize>, part: &str) -> Range<usize> {
        let text = self.source.get(span.clone()).unwrap_or_default();
        let mut found = text.match_indices(part).filter(|(at, _)| !text[..*at].ends_with('$'));
        match found.next() {
            Some((at, _)) if !part.is_empty() => span.start + at..span.start + at + part.len(),
            Some(_) | None => span,
        }
    }

    /// Opens a table.
    pub(crate) fn table<'a>(&mut self, path: &str, node: Node<'a>) -> Option<Table<'a>> {
        let span = node.span.clone();
        match node.data {
            Data::Table(entries) => {
                Some(Table { path: path.to_owned(), span, total: entries.len(), entries, places: Vec::new() })
            }
            _ => {
                self.at(span, Problem::new(path, format!("must be a table, found {}", node.kind())));
                None
            }
        }
    }

    /// Returns how many problems there are.
    pub(crate) const fn len(&self) -> usize {
        self.problems.len() + self.omitted
    }

    pub(crate) fn problems_in(&self, span: &Range<usize>) -> usize {
        let inside = |problem: &&Problem| {
            problem
                .location
                .as_ref()
                .is_some_and(|place| span.start <= place.span.start && place.span.end <= span.end)
        };
        self.problems.iter().filter(inside).count()
    }

    /// Returns every problem in the order of the text.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.location.as_ref().map_or(0, |place| place.span.start));
        if self.omitted > 0 {
            let end = self.source.len();
            let message = format!("and {} more problems like these", self.omitted);
            let problem = Problem { file: self.file.map(str::to_owned), ..Problem::new("", message) };
            self.problems.push(document::locate(self.source, problem, end..end));
        }
        self.problems
    }

    /// Returns the value, or every problem in the order of the text.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Problems> {
        Problems::check(self.into_problems(), ())?;
        Ok(value.expect("invariant: what has no value has a problem"))
    }
}

/// A table that is being read: what is taken is known, what is left is refused.
pub(crate) struct Table<'a> {
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    total: usize,
    pub(crate) entries: Vec<Entry<'a>>,
    /// Where the fields stood that were taken.
    places: Vec<(String, Range<usize>)>,
}

impl<'a> Table<'a> {
    pub(crate) fn path_to(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Returns where a field stands, or the part of it that a path names, as near as is known.
    pub(crate) fn place_of(&self, path: &str) -> Range<usize> {
        let head = path.split('.').next().unwrap_or(path);
        let place = self.places.iter().find(|(name, _)| name == path || name == head);
        place.map_or_else(|| self.span.clone(), |(_, span)| span.clone())
    }

    pub(crate) fn was_given(&self, name: &str) -> bool {
        self.places.iter().any(|(given, _)| given == name)
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.places.is_empty() && self.total == 0
    }

    /// Takes a field; in JSON, null is as good as leaving it out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Entry<'a>> {
        let entry = self.take_any(name)?;
        if let Data::Null = entry.value.data {
            self.places.pop();
            return None;
        }
        Some(entry)
    }

    /// Takes a field of which null is a value like any other.
    pub(crate) fn take_any(&mut self, name: &str) -> Option<Entry<'a>> {
        let index = self.entries.iter().position(|entry| entry.key == name)?;
        let entry = self.entries.remove(index);
        self.places.push((name.to_owned(), entry.value.span.clone()));
        Some(entry)
    }

    pub(crate) fn peek(&self, name: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// Reports a problem of a field that was taken.
    pub(crate) fn fail(&self, name: &str, message: String, report: &mut Report<'_>) {
        report.at(self.place_of(name), Problem::new(self.path_to(name), message));
    }

    /// Reads a field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        report: &mut Report<'_>,
        read: impl FnOnce(&mut Self, &str, &mut Report<'_>) -> Option<T>,
    ) -> Option<T> {
        let before = report.len();
        let value = read(self, name, report);
        if value.is_none() && report.len() == before {
            report.at(self.span.clone(), Problem::new(self.path_to(name), "is missing"));
        }
        value
    }

    /// Tells whether a field that is not there may be one that is there and misspelt; that is told by [`Table::finish`].
    pub(crate) fn is_misspelt(&self, name: &str, known: &[&str]) -> bool {
        let is_it = |entry: &Entry<'_>| {
            !known.contains(&entry.key.as_ref()) && nearest(&entry.key, known) == Some(name)
        };
        self.peek(name).is_none() && self.entries.iter().any(is_it)
    }

    /// Reads a text that must be there, unless it is there and misspelt.
    pub(crate) fn required_string(
        &mut self,
        name: &str,
        known: &[&str],
        report: &mut Report<'_>,
    ) -> Option<Cow<'a, str>> {
        if self.is_misspelt(name, known) { None } else { self.required(name, report, Self::string) }
    }

    pub(crate) fn string(&mut self, name: &str, report: &mut Report<'_>) -> Option<Cow<'a, str>> {
        let entry = self.take(name)?;
        match entry.value.data {
            Data::String(text) => Some(text),
            _ => {
                self.fail(name, format!("must be a string, found {}", entry.value.kind()), report);
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, name: &str, report: &mut Report<'_>) -> Option<bool> {
        let entry = self.take(name)?;
        match entry.value.data {
            Data::Boolean(value) => Some(value),
            _ => {
                self.fail(name, format!("must be true or false, found {}", entry.value.kind()), report);
                None
            }
        }
    }

    pub(crate) fn uint(&mut self, name: &str, report: &mut Report<'_>) -> Option<u32> {
        let entry = self.take(name)?;
        match entry.value.data {
            Data::Integer(number) => match u32::try_from(number) {
                Ok(number) => Some(number),
                Err(_) => {
                    self.fail(name, format!("must be within 0..={}, got {number}", u32::MAX), report);
                    None
                }
            },
            _ => {
                self.fail(name, format!("must be an integer, found {}", entry.value.kind()), report);
                None
            }
        }
    }

    /// Reads one word out of a list.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &str,
        report: &mut Report<'_>,
        all: &[T],
        word_of: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let given = self.string(name, report)?;
        let found = all.iter().copied().find(|value| word_of(*value) == given);
        if found.is_none() {
            let known: Vec<&str> = all.iter().map(|value| word_of(*value)).collect();
            self.fail_with_words(name, &known, &given, report);
        }
        found
    }

    /// Reports a word that is none of those it could be.
    pub(crate) fn fail_with_words(&self, name: &str, known: &[&str], given: &str, report: &mut Report<'_>) {
        let message = format!("must be one of {}, got `{given}`", known.join(", "));
        let mut problem = Problem::new(self.path_to(name), message);
        if let Some(near) = nearest(given, known) {
            problem = problem.help(format!("did you mean `{near}`?"));
        }
        report.at(self.place_of(name), problem);
    }

    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        report: &mut Report<'_>,
        read: impl Fn(&Node<'a>) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let entry = self.take(name)?;
        let Data::List(items) = &entry.value.data else {
            let problem =
                Problem::new(self.path_to(name), format!("must be a list, found {}", entry.value.kind()));
            report.at(self.place_of(name), problem.help_from(as_list(name, &entry.value)));
            return None;
        };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match read(item) {
                Ok(value) => values.push(value),
                Err(message) => report.at(item.span.clone(), Problem::new(self.path_to(name), message)),
            }
        }
        (values.len() == items.len()).then_some(values)
    }

    pub(crate) fn json_object(
        &mut self,
        name: &str,
        report: &mut Report<'_>,
    ) -> Option<serde_json::Map<String, serde_json::Value>> {
        let entry = self.take(name)?;
        match entry.value.to_json() {
            Some(serde_json::Value::Object(object)) => Some(object),
            Some(_) => {
                self.fail(name, format!("must be a table, found {}", entry.value.kind()), report);
                None
            }
            None => {
                self.fail(name, "has a number that JSON cannot hold".to_owned(), report);
                None
            }
        }
    }

    pub(crate) fn table(&mut self, name: &str, report: &mut Report<'_>) -> Option<Self> {
        let entry = self.take(name)?;
        report.table(&self.path_to(name), entry.value)
    }

    /// Reads a span with its unit: `name = "30s"`, or in milliseconds `name_ms = 30000`.
    pub(crate) fn span(&mut self, name: &str, report: &mut Report<'_>) -> Option<Span> {
        let span = self.limit(name, report)?;
        match span {
            Limit::After(span) => Some(span),
            Limit::Infinity => {
                self.fail(name, "must have an end".to_owned(), report);
                None
            }
        }
    }

    /// Reads a span that may be infinite.
    pub(crate) fn limit(&mut self, name: &str, report: &mut Report<'_>) -> Option<Limit> {
        let mut spellings = vec![format!("{name}_ms")];
        if name == "heartbeat" {
            spellings.push("heartbeat_interval_ms".to_owned());
        }
        let in_millis: Vec<String> =
            spellings.into_iter().filter(|spelling| self.peek(spelling).is_some()).collect();
        let written = self.take(name);
        if let [extra, ..] = &in_millis[usize::from(written.is_none()).min(in_millis.len())..] {
            let other = if written.is_some() { name } else { &in_millis[0] };
            let message = format!("is given twice, as {other} and as {extra}");
            let place = self.peek(extra).map_or_else(|| self.span.clone(), |entry| entry.key_span.clone());
            report.at(place, Problem::new(self.path_to(name), message).help("keep one of them"));
            for spelling in &in_millis {
                self.take(spelling);
            }
            return None;
        }
        if let Some(entry) = written {
            return self.written_limit(name, &entry.value, report);
        }
        let spelling = in_millis.first()?;
        let entry = self.take(spelling)?;
        // Contradictions speak of the field by its proper name.
        self.places.push((name.to_owned(), entry.value.span.clone()));
        match &entry.value.data {
            Data::Integer(millis) => {
                let span =
                    u64::try_from(*millis).ok().and_then(|millis| Span::from_millis(millis).into_span().ok());
                if span.is_none() {
                    let longest = Span::LONGEST.as_millis();
                    self.fail(spelling, format!("must be within 0..={longest}, got {millis}"), report);
                }
                span.map(Limit::After)
            }
            Data::String(word) if word == "infinity" => Some(Limit::Infinity),
            _ => {
                let message = format!("must be a whole number of milliseconds, found {}", entry.value.kind());
                self.fail(spelling, message, report);
                None
            }
        }
    }

    fn written_limit(&self, name: &str, value: &Node<'_>, report: &mut Report<'_>) -> Option<Limit> {
        match &value.data {
            Data::String(text) if text == "infinity" => Some(Limit::Infinity),
            Data::String(text) => Span::parse(text)
                .map(Limit::After)
                .map_err(|error| self.fail(name, error.to_string(), report))
                .ok(),
            Data::Integer(number) => {
                let problem = Problem::new(self.path_to(name), format!("{number} has no unit"));
                let help = format!("write {name} = \"{number}s\" or {name}_ms = {number}");
                report.at(value.span.clone(), problem.help(help));
                None
            }
            _ => {
                self.fail(name, format!("must be a span such as \"30s\", found {}", value.kind()), report);
                None
            }
        }
    }

    /// Refuses what is left.
    pub(crate) fn finish(self, report: &mut Report<'_>, known: &[&str]) {
        #[cfg(test)]
        noted::note(&self.path, known);
        for entry in &self.entries {
            let mut problem = Problem::new(self.path_to(&entry.key), "is not a known field");
            if let Some(near) = nearest(&entry.key, known) {
                problem = problem.help(format!("did you mean `{near}`?"));
            } else if known.len() <= SHORT_LIST {
                problem = problem.help(format!("known are {}", words(known.iter().copied())));
            }
            report.at(entry.key_span.clone(), problem);
        }
    }
}

/// Says how a text would be a list with one item.
pub(crate) fn as_list(name: &str, value: &Node<'_>) -> Option<String> {
    match &value.data {
        Data::String(text) if is_plain(text) => Some(format!("write {name} = [\"{text}\"]")),
        _ => None,
    }
}

/// Tells whether a text can be shown in a help as it would be written.
pub(crate) fn is_plain(text: &str) -> bool {
    const LONGEST: usize = 60;
    text.len() <= LONGEST && !text.contains(['"', '\\']) && !text.contains(char::is_control)
}

/// As many names as help; more of them would bury the message.
const SHORT_LIST: usize = 8;

pub(crate) fn words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the known word that a misspelt one is nearest to, if it is near at all.
///
/// ```
/// # use tidewheel_core::nearest;
/// assert_eq!(nearest("folow", &["check", "follow"]), Some("follow"));
/// assert_eq!(nearest("speed", &["check", "follow"]), None);
/// ```
#[must_use]
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // About one letter in three may be wrong. Only words of a similar length are compared, which also bounds the
    // work for a monstrous key.
    let near = |candidate: &str| candidate.len().max(word.len()).div_ceil(3);
    let candidates = known.iter().filter(|candidate| candidate.len().abs_diff(word.len()) <= near(candidate));
    let (distance, best) = candidates.map(|candidate| (distance(word, candidate), *candidate)).min()?;
    // A word that has no letter of the other is not near it, however short both are.
    (distance <= near(best) && distance < best.len().max(word.len())).then_some(best)
}

/// Counts the letters that must be changed, added or left out to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(a != *b)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[other.len()]
}

/// Which tables were read on this thread, with the fields that each knows: what describes the tables is held against
/// what reads them.
#[cfg(test)]
pub(crate) mod noted {
    use std::cell::RefCell;

    thread_local! {
        static READ: RefCell<Vec<(String, Vec<String>)>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note(path: &str, known: &[&str]) {
        let known = known.iter().map(|name| (*name).to_owned()).collect();
        READ.with_borrow_mut(|read| read.push((path.to_owned(), known)));
    }

    /// Returns what was read since the last time.
    pub(crate) fn take() -> Vec<(String, Vec<String>)> {
        READ.take()
    }
}
