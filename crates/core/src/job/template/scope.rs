//! Parameters, and what becomes of `${…}` in a text. `$${` stands for a `${` that is meant as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::document::{self, Problem};

/// As much as all texts of a template together may grow to.
pub(super) const MOST_EXPANDED: usize = 16 * 1024 * 1024;

/// The parameters of a file, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Params {
    pub(super) values: BTreeMap<String, String>,
    /// Those whose values are not known, because somebody else has yet to say or mend them. What is made with them
    /// cannot be looked at, and is no mistake.
    pub(super) open: BTreeSet<String>,
    /// Whether there may be others of any name.
    pub(super) has_more: bool,
}

impl Params {
    pub(super) fn find(&self, name: &str) -> Found<'_> {
        match self.values.get(name) {
            _ if self.open.contains(name) => Found::Open,
            Some(value) => Found::Value(value),
            None if self.has_more => Found::Open,
            None => Found::Unknown,
        }
    }
}

/// What is known of a name.
pub(super) enum Found<'p> {
    Value(&'p str),
    /// It is a parameter whose value is not known.
    Open,
    Unknown,
}

/// Why a text has no value: everything that is wrong with it. Nothing is, where only a value is not known.
#[derive(Debug, Default)]
pub(super) struct Unfilled(pub(super) Vec<Wrong>);

/// One thing that is wrong with a text.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) problem: Problem,
    /// The part that is wrong, as it is written.
    pub(super) part: String,
}

/// The parameters of a file, with what is left for its texts to grow into.
pub(super) struct Scope<'a> {
    pub(super) params: &'a Params,
    pub(super) left: &'a mut usize,
}

impl Scope<'_> {
    /// Puts parameters into a text.
    ///
    /// The path names the field in the message of what goes wrong.
    pub(super) fn fill(&mut self, text: &str, path: &str) -> Result<String, Unfilled> {
        let params = self.params;
        let filled =
            Filler { path, most: *self.left, known: &params.values }.fill(text, |name| params.find(name))?;
        *self.left = self.left.saturating_sub(filled.len());
        Ok(filled)
    }

    /// Puts parameters into every text of a value. A document is never nested deep, so neither is this.
    pub(super) fn fill_value(&mut self, value: Value, path: &str) -> Result<Value, Unfilled> {
        match value {
            Value::String(text) => self.fill(&text, path).map(Value::String),
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                let filled = items.map(|(index, item)| self.fill_value(item, &format!("{path}[{index}]")));
                all(filled).map(Value::Array)
            }
            Value::Object(fields) => {
                let filled = fields.into_iter().map(|(key, value)| {
                    let value = self.fill_value(value, &format!("{path}.{key}"))?;
                    Ok((key, value))
                });
                all(filled).map(|fields| Value::Object(fields.into_iter().collect()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value),
        }
    }
}

/// Returns all values, or what is wrong with any.
fn all<T>(filled: impl Iterator<Item = Result<T, Unfilled>>) -> Result<Vec<T>, Unfilled> {
    let (mut values, mut unfilled) = (Vec::new(), None);
    for one in filled {
        match one {
            Ok(value) => values.push(value),
            Err(found) => unfilled.get_or_insert_with(Unfilled::default).0.extend(found.0),
        }
    }
    unfilled.map_or(Ok(values), Err)
}

/// As many mistakes as are told of one text.
const MOST_TOLD: usize = 20;

/// What is needed to fill a text.
pub(super) struct Filler<'a> {
    /// The field, as messages name it.
    pub(super) path: &'a str,
    /// The length that the text may grow to.
    pub(super) most: usize,
    /// The names that somebody may have meant.
    pub(super) known: &'a BTreeMap<String, String>,
}

impl Filler<'_> {
    /// Puts into a text what a function knows of the names in it.
    pub(super) fn fill<'p>(&self, text: &str, find: impl Fn(&str) -> Found<'p>) -> Result<String, Unfilled> {
        let mut filled = String::with_capacity(text.len());
        let mut unfilled: Option<Unfilled> = None;
        let mut told: BTreeSet<&str> = BTreeSet::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                filled.push_str(&rest[..at]);
                filled.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            filled.push_str(&rest[..at]);
            rest = &rest[at + 2..];
            let Some(end) = rest.find('}') else {
                let message = format!("unclosed parameter placeholder in {}", self.path);
                let help = "close it with `}`; for a `${` that is meant as it is write `$${`";
                let wrong =
                    Wrong { problem: Problem::new("", message).help(help), part: format!("${{{rest}") };
                unfilled.get_or_insert_default().0.push(wrong);
                rest = "";
                break;
            };
            let name = &rest[..end];
            match find(name) {
                Found::Value(value) => filled.push_str(value),
                Found::Open => drop(unfilled.get_or_insert_default()),
                Found::Unknown => {
                    let wrong = &mut unfilled.get_or_insert_default().0;
                    if told.insert(name) && wrong.len() < MOST_TOLD {
                        wrong.push(self.unknown(name));
                    }
                }
            }
            rest = &rest[end + 1..];
            if filled.len() > self.most {
                break;
            }
        }
        filled.push_str(rest);
        match unfilled {
            Some(unfilled) => Err(unfilled),
            None if filled.len() > self.most => {
                let problem = Problem::new("", format!("expansion is too large at {}", self.path));
                Err(Unfilled(vec![Wrong { problem, part: String::new() }]))
            }
            None => Ok(filled),
        }
    }

    fn unknown(&self, name: &str) -> Wrong {
        const LONGEST: usize = 60;
        let shown = match name.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.to_owned(),
        };
        let message = format!("unresolved parameter `{shown}` in {}", self.path);
        let problem = Problem::new("", message).help(self.help(&shown, name));
        Wrong { problem, part: format!("${{{name}}}") }
    }

    /// Says what to write instead of a name that is no parameter.
    fn help(&self, shown: &str, name: &str) -> String {
        let known: Vec<&str> = self.known.keys().map(String::as_str).collect();
        let near = document::nearest(name, &known).map(|near| format!("did you mean `${{{near}}}`?"));
        let declare = || format!("a parameter is declared under [params]: {shown} = \"…\"");
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_variable = !name.is_empty() && name.chars().all(is_word);
        if name.trim().is_empty() {
            return "write the name of a parameter between the braces".to_owned();
        }
        if self.is_for_the_shell() {
            let plain = if is_variable { format!("`${shown}` or ") } else { String::new() };
            let shell = format!("for a variable of the shell write {plain}`$${{{shown}}}`");
            return match near {
                Some(near) => format!("{near} {shell}"),
                None if is_variable => format!("{shell}; {}", declare()),
                None => shell,
            };
        }
        match near {
            Some(near) => near,
            None if is_variable => declare(),
            None => "for a `${` that is meant as it is write `$${`".to_owned(),
        }
    }

    /// Tells whether the text is one that a shell reads.
    fn is_for_the_shell(&self) -> bool {
        let field = self.path.rsplit('.').next().unwrap_or_default();
        field.ends_with("script") || field.ends_with("command")
    }
}

/// Reads a text as yes or no.
pub(super) fn boolean(text: &str, path: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("invalid bool value `{text}` for {path}")),
    }
}

/// Reads a text as a number.
pub(super) fn number(text: &str, path: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("invalid u32 value `{text}` for {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Params {
        let values =
            [("a", "${b}"), ("name", "ann")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        Params { values: values.into(), open: ["later".to_owned()].into(), has_more: false }
    }

    fn fill(text: &str, path: &str) -> Result<String, Vec<String>> {
        let (params, mut left) = (params(), 100);
        let filled = Scope { params: &params, left: &mut left }.fill(text, path);
        filled.map_err(|unfilled| unfilled.0.iter().map(|wrong| wrong.problem.to_string()).collect())
    }

    fn wrong(text: &str) -> Vec<String> {
        let (params, mut left) = (params(), 100);
        let unfilled = Scope { params: &params, left: &mut left }.fill(text, "p").unwrap_err();
        unfilled.0.into_iter().map(|wrong| wrong.problem.message).collect()
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        assert_eq!(fill("x${a}y", "p").unwrap(), "x${b}y");
        assert_eq!(fill("$${a} $$${a}", "p").unwrap(), "${a} $${a}");
        assert_eq!(fill("$a {a} $", "p").unwrap(), "$a {a} $");
        assert_eq!(wrong("${a"), ["unclosed parameter placeholder in p"]);
        assert_eq!(wrong("${}"), ["unresolved parameter `` in p"]);
        assert_eq!(wrong(&"${a}".repeat(30)), ["expansion is too large at p"]);
    }

    #[test]
    fn every_name_that_is_unknown_is_told_once() {
        let expected = [
            "unresolved parameter `x` in p",
            "unresolved parameter `y` in p",
            "unclosed parameter placeholder in p",
        ];
        assert_eq!(wrong("${x} ${a} ${y} ${x} $${z} ${zz"), expected);
        let many: String = (0..1_000).map(|number| format!("${{x{number}}}")).collect();
        assert_eq!(wrong(&many).len(), MOST_TOLD);
    }

    #[test]
    fn a_value_that_is_not_known_yet_is_no_mistake() {
        assert_eq!(wrong("${later} and ${a}"), [] as [&str; 0]);
        assert_eq!(wrong("${later} and ${x}"), ["unresolved parameter `x` in p"]);
    }

    #[test]
    fn a_script_is_told_how_variables_of_the_shell_are_written() {
        assert_eq!(
            fill("${HOME} ${X:-1} ${nam}", "nodes[n].args.script").unwrap_err(),
            [
                "unresolved parameter `HOME` in nodes[n].args.script (for a variable of the shell write `$HOME` or `$${HOME}`; a parameter is declared under [params]: HOME = \"…\")",
                "unresolved parameter `X:-1` in nodes[n].args.script (for a variable of the shell write `$${X:-1}`)",
                "unresolved parameter `nam` in nodes[n].args.script (did you mean `${name}`? for a variable of the shell write `$nam` or `$${nam}`)",
            ]
        );
        assert_eq!(
            fill("${HOME} ${nam}", "nodes[n].name").unwrap_err(),
            [
                "unresolved parameter `HOME` in nodes[n].name (a parameter is declared under [params]: HOME = \"…\")",
                "unresolved parameter `nam` in nodes[n].name (did you mean `${name}`?)",
            ]
        );
    }
}
