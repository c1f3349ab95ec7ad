//! Texts that nodes make: the payloads of their artifacts, held against what their contracts say.

use serde_json::{Value, json};
use tidewheel_core::job::{Artifact, NodeOutcome, misfit};
use tidewheel_store::jobs::Payload;

use super::node::Node;

/// A text with more bytes is no payload.
pub(super) const MOST_TEXT: usize = 16 << 20;

/// The type of artifacts that are prompts.
pub(super) const PROMPT: &str = "prompt_text";

/// Returns the payloads of all that a node makes when it ends like that: the text, in each of its artifacts. Where the
/// contract of one has a schema, what it says has to be in the text.
///
/// # Errors
/// The text does not fit a contract; what and where is in the message.
pub(super) fn payloads(node: &Node<'_>, outcome: NodeOutcome, text: &str) -> Result<Vec<Payload>, String> {
    let mut payloads = Vec::new();
    for made in node.node.produces.get(&outcome).into_iter().flatten() {
        let Artifact::Custom { type_id, key } = made else { continue };
        let written_at = node.around.now().to_string();
        let mut value = json!({ "type_id": type_id, "key": key, "text": text, "written_at": written_at });
        if let Some(schema) = node.node.schemas.get(type_id) {
            let wrong = |why: String| format!("the payload of `{made}` does not fit its contract: {why}");
            let said = read(schema, text).map_err(wrong)?;
            if let Some(why) = misfit(schema, &said) {
                return Err(wrong(why));
            }
            value["value"] = said;
        }
        let (job_id, type_id, key) = (node.record.id.clone(), type_id.clone(), key.clone());
        payloads.push(Payload { job_id, type_id, key, value });
    }
    Ok(payloads)
}

/// Reads what a text says: the text itself where that is wanted, and JSON otherwise.
fn read(schema: &Value, text: &str) -> Result<Value, String> {
    if schema.get("type").and_then(Value::as_str) == Some("string") {
        return Ok(text.into());
    }
    serde_json::from_str(text).map_err(|error| format!("$: is no JSON: {error}"))
}

/// Returns the text of a payload, also of one that a fallback stands for.
pub(super) fn text_of(payload: &Value) -> Option<&str> {
    payload.get("text").unwrap_or(payload).as_str()
}
