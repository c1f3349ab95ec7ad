//! Parameters, and what becomes of `${…}` in a text. `$${` stands for a `${` that is meant as it is.

use std::collections::BTreeMap;

use serde_json::Value;

/// As much as all texts of a template together may grow to.
pub(super) const MOST_EXPANDED: usize = 16 * 1024 * 1024;

/// The parameters of a file, with what is left for its texts to grow into.
pub(super) struct Scope<'a> {
    pub(super) params: &'a BTreeMap<String, String>,
    pub(super) left: &'a mut usize,
}

impl Scope<'_> {
    /// Puts parameters into a text.
    ///
    /// The path names the field in the message of what goes wrong.
    pub(super) fn fill(&mut self, text: &str, path: &str) -> Result<String, String> {
        let params = self.params;
        let filled = fill(text, path, *self.left, |name| params.get(name).map(String::as_str))?;
        *self.left = self.left.saturating_sub(filled.len());
        Ok(filled)
    }

    /// Puts parameters into every text of a value. A document is never nested deep, so neither is this.
    pub(super) fn fill_value(&mut self, value: Value, path: &str) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill(&text, path)?),
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                let filled = items.map(|(index, item)| self.fill_value(item, &format!("{path}[{index}]")));
                Value::Array(filled.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let filled = fields.into_iter().map(|(key, value)| {
                    let value = self.fill_value(value, &format!("{path}.{key}"))?;
                    Ok::<_, String>((key, value))
                });
                Value::Object(filled.collect::<Result<_, _>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        })
    }
}

/// Puts into a text what a function knows of the names in it.
pub(super) fn fill<'p>(
    text: &str,
    path: &str,
    most: usize,
    param: impl Fn(&str) -> Option<&'p str>,
) -> Result<String, String> {
    let too_large = || format!("expansion is too large at {path}");
    let mut filled = String::with_capacity(text.len());
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
            return Err(format!("unclosed parameter placeholder in {path}"));
        };
        let name = &rest[..end];
        let value = param(name).ok_or_else(|| format!("unresolved parameter `{name}` in {path}"))?;
        filled.push_str(value);
        rest = &rest[end + 1..];
        if filled.len() > most {
            return Err(too_large());
        }
    }
    filled.push_str(rest);
    if filled.len() > most { Err(too_large()) } else { Ok(filled) }
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

    fn filled(text: &str) -> Result<String, String> {
        fill(text, "p", 100, |name| (name == "a").then_some("${b}"))
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        assert_eq!(filled("x${a}y").unwrap(), "x${b}y");
        assert_eq!(filled("$${a} $$${a}").unwrap(), "${a} $${a}");
        assert_eq!(filled("$a {a} $").unwrap(), "$a {a} $");
        assert_eq!(filled("${a").unwrap_err(), "unclosed parameter placeholder in p");
        assert_eq!(filled("${}").unwrap_err(), "unresolved parameter `` in p");
        assert_eq!(filled(&"${a}".repeat(30)).unwrap_err(), "expansion is too large at p");
    }
}
