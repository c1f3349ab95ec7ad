//! The values that fields have in all files: words, spans, texts. Knows no field.

use serde_json::{Map, Value, json};

use crate::time::Span;

/// What a node may be called.
pub(super) const NODE_ID: &str = "^[A-Za-z0-9_./:-]{1,120}$";
/// What a span looks like; which units there are is the parser's to say.
const SPAN: &str = r"^\s*(\+?[Pp].+|\+?[0-9].*[A-Za-zµμ].*)$";
const LIMIT: &str = r"^\s*(infinity|\+?[Pp].+|\+?[0-9].*[A-Za-zµμ].*)$";

/// Returns a whole schema.
pub(super) fn document(title: &str, about: &str, body: Value) -> Value {
    let mut whole = Map::new();
    whole.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    whole.insert("title".to_owned(), json!(title));
    whole.insert("description".to_owned(), json!(about));
    if let Value::Object(body) = body {
        whole.extend(body.into_iter().filter(|(key, _)| key != "description"));
    }
    Value::Object(whole)
}

/// Returns a table that has these fields and no others.
pub(super) fn table(about: &str, required: &[&str], fields: Vec<(&str, Value)>) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let mut table = json!({
        "type": "object",
        "description": about,
        "properties": fields,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// Returns a table whose keys people choose.
pub(super) fn map(about: &str, of: Value) -> Value {
    json!({ "type": "object", "description": about, "additionalProperties": of })
}

pub(super) fn list(about: &str, of: Value) -> Value {
    json!({ "type": "array", "description": about, "items": of })
}

pub(super) fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

pub(super) fn filled(about: &str) -> Value {
    json!({ "type": "string", "description": about, "minLength": 1 })
}

pub(super) fn boolean(about: &str, usual: bool) -> Value {
    json!({ "type": "boolean", "description": about, "default": usual })
}

pub(super) fn number(about: &str, least: u32) -> Value {
    json!({ "type": "integer", "description": about, "minimum": least, "maximum": u32::MAX })
}

/// Returns a choice of words.
pub(super) fn words<'w>(about: &str, words: impl IntoIterator<Item = &'w str>) -> Value {
    json!({ "type": "string", "description": about, "enum": words.into_iter().collect::<Vec<_>>() })
}

/// Adds what a field is where nobody says.
pub(super) fn usual(mut field: Value, usual: impl Into<Value>) -> Value {
    field["default"] = usual.into();
    field
}

/// Returns the two spellings of a span: as a text, and in milliseconds.
pub(super) fn span(name: &'static str, in_millis: &'static str, about: &str) -> [(&'static str, Value); 2] {
    let millis = format!("{about} In milliseconds.");
    [
        (name, json!({ "type": "string", "description": about, "pattern": SPAN, "examples": ["30s"] })),
        (in_millis, millis_of(&millis)),
    ]
}

/// Returns the two spellings of a span that may be `infinity`.
pub(super) fn limit(name: &'static str, in_millis: &'static str, about: &str) -> [(&'static str, Value); 2] {
    let millis = format!("{about} In milliseconds, or `infinity`.");
    let in_text = json!({ "type": "string", "description": about, "pattern": LIMIT, "examples": ["10m"] });
    let no_limit = json!({ "const": "infinity" });
    [(name, in_text), (in_millis, json!({ "description": millis, "anyOf": [millis_of(&millis), no_limit] }))]
}

pub(super) fn millis_of(about: &str) -> Value {
    json!({ "type": "integer", "description": about, "minimum": 0, "maximum": Span::LONGEST.as_millis() })
}

/// Returns a value that may also be written as a text, plain or with parameters.
pub(super) fn or_params(field: Value, plain: &str) -> Value {
    let about = field["description"].clone();
    let usual = field.get("default").cloned();
    let pattern = if plain.is_empty() { r"\$\{".to_owned() } else { format!(r"^\s*({plain})\s*$|\$\{{") };
    let mut either =
        json!({ "description": about, "anyOf": [field, { "type": "string", "pattern": pattern }] });
    if let Some(usual) = usual {
        either["default"] = usual;
    }
    either
}

/// Returns a table with exactly one of its fields.
pub(super) fn one_of_fields(about: &str, fields: Vec<(&str, Value)>) -> Value {
    let mut one = table(about, &[], fields);
    one["minProperties"] = json!(1);
    one["maxProperties"] = json!(1);
    one
}
