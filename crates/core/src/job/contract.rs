//! What the payload of an artifact has to look like: a small part of JSON schema. What is not in it is refused when a
//! template is read, so that nothing that somebody wrote is passed over when a payload is checked.

use regex::Regex;
use serde_json::Value;

use crate::document::{self, Data, Entry, Node, Problem, Report};

/// Every word that a schema may have; the last ones are for people.
const WORDS: [&str; 18] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "title",
    "description",
    "default",
    "examples",
];

/// The types of JSON.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Checks a schema as somebody wrote it. Everything that is wrong is reported at its place.
pub(super) fn check(node: &Node<'_>, path: &str, report: &mut Report<'_>) {
    // A document is never nested deep, so neither is what is waiting here.
    let mut open = vec![(node, path.to_owned())];
    while let Some((node, path)) = open.pop() {
        let Data::Table(entries) = &node.data else {
            let message = format!("must be a schema, which is a table, found {}", node.kind());
            report.at(node.span.clone(), Problem::new(path, message));
            continue;
        };
        for Entry { key, key_span, value } in entries {
            let path = format!("{path}.{key}");
            let problem = match key.as_ref() {
                "properties" => match &value.data {
                    Data::Table(fields) => {
                        open.extend(
                            fields.iter().map(|field| (&field.value, format!("{path}.{}", field.key))),
                        );
                        None
                    }
                    _ => Some("must be a table with a schema for each field".to_owned()),
                },
                "items" => {
                    open.push((value, path.clone()));
                    None
                }
                "additionalProperties" if matches!(value.data, Data::Boolean(_)) => None,
                "additionalProperties" => {
                    open.push((value, path.clone()));
                    None
                }
                word if WORDS.contains(&word) => wrong_word(word, value),
                word => {
                    let mut problem = Problem::new(path, "is no word of a schema that is checked here");
                    problem = match document::nearest(word, &WORDS) {
                        Some(near) => problem.help(format!("did you mean `{near}`?")),
                        None => problem.help(format!("known are {}", WORDS.join(", "))),
                    };
                    report.at(key_span.clone(), problem);
                    continue;
                }
            };
            if let Some(message) = problem {
                report.at(value.span.clone(), Problem::new(path, message));
            }
        }
    }
}

/// Says what is wrong with what a word says.
fn wrong_word(word: &str, value: &Node<'_>) -> Option<String> {
    let is_type =
        |node: &Node<'_>| matches!(&node.data, Data::String(name) if TYPES.contains(&name.as_ref()));
    let is_text = |node: &Node<'_>| matches!(node.data, Data::String(_));
    let fits = match word {
        "type" => match &value.data {
            Data::List(types) => !types.is_empty() && types.iter().all(is_type),
            _ => is_type(value),
        },
        "enum" => matches!(&value.data, Data::List(values) if !values.is_empty()),
        "required" => matches!(&value.data, Data::List(names) if names.iter().all(is_text)),
        "minItems" | "maxItems" | "minLength" | "maxLength" => {
            matches!(value.data, Data::Integer(number) if number >= 0)
        }
        "minimum" | "maximum" => matches!(value.data, Data::Integer(_) | Data::Float(_)),
        "pattern" => match &value.data {
            Data::String(pattern) => match Regex::new(pattern) {
                Ok(_) => true,
                Err(error) => {
                    let reason = error.to_string();
                    let reason = reason.lines().last().unwrap_or("it cannot be read");
                    return Some(format!("must be a regular expression: {reason}"));
                }
            },
            _ => false,
        },
        _ => true,
    };
    let expected = match word {
        "type" => format!("must be one of {}, or a list of them", TYPES.join(", ")),
        "enum" => "must be a list of values".to_owned(),
        "required" => "must be a list of names of fields".to_owned(),
        "minimum" | "maximum" => "must be a number".to_owned(),
        "pattern" => "must be a regular expression".to_owned(),
        _ => "must be a number that is not negative".to_owned(),
    };
    (!fits).then_some(expected)
}

/// Says what does not fit a schema, and where; `None` if all of it does.
///
/// ```
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
/// assert_eq!(tidewheel_core::job::misfit(&schema, &json!({ "n": 1 })), None);
/// let wrong = tidewheel_core::job::misfit(&schema, &json!({ "n": "1" }));
/// assert_eq!(wrong.unwrap(), "$.n: must be of type integer, found a string");
/// ```
#[must_use]
pub fn misfit(schema: &Value, value: &Value) -> Option<String> {
    // The deepest way is as long as the schema is deep.
    let mut open = vec![(schema, value, "$".to_owned())];
    while let Some((schema, value, path)) = open.pop() {
        let Some(words) = schema.as_object() else { continue };
        for (word, said) in words {
            if let Some(message) = broken(word, said, value) {
                return Some(format!("{path}: {message}"));
            }
        }
        if let (Some(items), Some(schema)) = (value.as_array(), words.get("items")) {
            let items = items.iter().enumerate().rev();
            open.extend(items.map(|(index, item)| (schema, item, format!("{path}[{index}]"))));
        }
        let Some(fields) = value.as_object() else { continue };
        for (name, field) in fields.iter().rev() {
            let path = format!("{path}.{name}");
            match (
                words.get("properties").and_then(|known| known.get(name)),
                words.get("additionalProperties"),
            ) {
                (Some(schema), _) => open.push((schema, field, path)),
                (None, Some(Value::Bool(false))) => {
                    return Some(format!("{path}: is not a field of the schema"));
                }
                (None, Some(schema)) => open.push((schema, field, path)),
                (None, None) => {}
            }
        }
    }
    None
}

/// Says what a word of a schema has against a value, its parts not counted.
fn broken(word: &str, said: &Value, value: &Value) -> Option<String> {
    let count = |least: bool, length: Option<usize>, what: &str| {
        let bound = said.as_u64().and_then(|bound| usize::try_from(bound).ok())?;
        let length = length?;
        let fits = if least { length >= bound } else { length <= bound };
        let word = if least { "least" } else { "most" };
        (!fits).then(|| format!("must have at {word} {bound} {what}, and has {length}"))
    };
    let items = value.as_array().map(Vec::len);
    let letters = value.as_str().map(|text| text.chars().count());
    match word {
        "type" => {
            let types = said.as_array().map_or_else(|| vec![said], |types| types.iter().collect());
            let names: Vec<&str> = types.into_iter().filter_map(Value::as_str).collect();
            let fits = names.iter().any(|name| is_of_type(value, name));
            (!fits).then(|| format!("must be of type {}, found {}", names.join(" or "), kind(value)))
        }
        "enum" => {
            let fits = said.as_array().is_some_and(|values| values.contains(value));
            (!fits).then(|| format!("must be one of {said}"))
        }
        "const" => (said != value).then(|| format!("must be {said}")),
        "required" => {
            let fields = value.as_object()?;
            let missing = said.as_array()?.iter().filter_map(Value::as_str);
            let missing = missing.into_iter().find(|name| !fields.contains_key(*name))?;
            Some(format!("has no field `{missing}`"))
        }
        "minItems" => count(true, items, "items"),
        "maxItems" => count(false, items, "items"),
        "minLength" => count(true, letters, "characters"),
        "maxLength" => count(false, letters, "characters"),
        "pattern" => {
            let (pattern, text) = (said.as_str()?, value.as_str()?);
            let fits = Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
            (!fits).then(|| format!("must match `{pattern}`"))
        }
        "minimum" => (value.as_f64()? < said.as_f64()?).then(|| format!("must be at least {said}")),
        "maximum" => (value.as_f64()? > said.as_f64()?).then(|| format!("must be at most {said}")),
        _ => None,
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        // What is written `2.0` is a whole number, too.
        Value::Number(number) => {
            let is_whole = number.is_i64() || number.is_u64();
            let is_whole = is_whole || number.as_f64().is_some_and(|number| number.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Format, read};
    use serde_json::json;

    fn problems(schema: &str) -> Vec<String> {
        let node = read(schema, Format::Toml).unwrap();
        let mut report = Report::new(schema);
        check(&node, "schema", &mut report);
        report.into_problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_word_that_is_taken_is_checked() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$" },
                "size": { "type": ["integer", "null"], "minimum": 1, "maximum": 9 },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "minItems": 1, "maxItems": 2 },
                "kind": { "const": "x" },
            },
            "required": ["name"],
            "additionalProperties": false,
        });
        let fits = json!({ "name": "abc", "size": 3.0, "tags": ["a"], "kind": "x" });
        assert_eq!(misfit(&schema, &fits), None);
        for (value, message) in [
            (json!(1), "$: must be of type object, found a number"),
            (json!({}), "$: has no field `name`"),
            (json!({ "name": "abc", "more": 1 }), "$.more: is not a field of the schema"),
            (json!({ "name": "a" }), "$.name: must have at least 2 characters, and has 1"),
            (json!({ "name": "abcde" }), "$.name: must have at most 4 characters, and has 5"),
            (json!({ "name": "AB" }), "$.name: must match `^[a-z]+$`"),
            (json!({ "name": "ab", "size": 1.5 }), "$.size: must be of type integer or null, found a number"),
            (json!({ "name": "ab", "size": 0 }), "$.size: must be at least 1"),
            (json!({ "name": "ab", "size": 10 }), "$.size: must be at most 9"),
            (json!({ "name": "ab", "tags": [] }), "$.tags: must have at least 1 items, and has 0"),
            (json!({ "name": "ab", "tags": ["a", "c"] }), "$.tags[1]: must be one of [\"a\",\"b\"]"),
            (
                json!({ "name": "ab", "tags": ["a", "b", "a"] }),
                "$.tags: must have at most 2 items, and has 3",
            ),
            (json!({ "name": "ab", "kind": "y" }), "$.kind: must be \"x\""),
        ] {
            assert_eq!(misfit(&schema, &value).as_deref(), Some(message), "{value}");
        }
    }

    #[test]
    fn a_schema_that_says_more_than_is_checked_is_refused() {
        assert_eq!(problems("type = 'object'\n[properties.a.items]\ntype = 'string'"), [""; 0]);
        for (schema, message) in [
            (
                "typ = 'object'",
                "line 1, column 1: schema.typ: is no word of a schema that is checked here (did you mean `type`?)",
            ),
            (
                "type = 'text'",
                "line 1, column 8: schema.type: must be one of string, number, integer, boolean, object, array, null, or a list of them",
            ),
            (
                "[properties.a]\nminLength = -1",
                "line 2, column 13: schema.properties.a.minLength: must be a number that is not negative",
            ),
            (
                "items = 'a'",
                "line 1, column 9: schema.items: must be a schema, which is a table, found a string",
            ),
            ("enum = []", "line 1, column 8: schema.enum: must be a list of values"),
            (
                "properties = 1",
                "line 1, column 14: schema.properties: must be a table with a schema for each field",
            ),
        ] {
            assert_eq!(problems(schema), [message], "{schema}");
        }
        let found = problems("pattern = '('");
        assert!(found[0].contains("schema.pattern: must be a regular expression"), "{found:?}");
        assert!(problems("oneOf = []")[0].contains("known are type, enum"), "{:?}", problems("oneOf = []"));
    }
}
