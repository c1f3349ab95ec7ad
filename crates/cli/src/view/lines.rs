//! Events as lines for people: what happened, to which component, and what matters of the rest. It reads the
//! stored form, so that it shows events that a later release writes, too.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Reads the events of a log one after the other, and remembers which work is which.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The component of each piece of work, in the order in which they were woken.
    works: Vec<String>,
}

/// An event.
#[derive(Debug)]
pub(crate) struct EventLine {
    /// What happened.
    pub(crate) kind: String,
    /// The rest of it, as it is stored.
    pub(crate) event: Value,
    /// What matters of it, as one line.
    pub(crate) said: String,
}

impl Reader {
    /// Reads the next event; `None` if the text is none.
    pub(crate) fn read(&mut self, text: &str) -> Option<EventLine> {
        let event: Value = serde_json::from_str(text).ok()?;
        let (kind, fields) = event.as_object()?.iter().next()?;
        let (kind, fields) = (kind.clone(), fields.as_object()?);
        if let (Some(node), Some(_)) = (fields.get("node"), fields.get("act")) {
            self.works.push(plain(node));
        }
        let said = self.said(&kind, fields);
        Some(EventLine { kind, said, event })
    }

    fn said(&self, kind: &str, fields: &Map<String, Value>) -> String {
        let mut words: Vec<String> = Vec::new();
        let act = fields.get("act").and_then(Value::as_u64).and_then(|act| usize::try_from(act).ok());
        let node = fields.get("node").filter(|node| !node.is_null()).map(plain);
        match (act.and_then(|act| self.works.get(act)), node) {
            (Some(work), _) => words.push(format!("{work} #{}", act.unwrap_or_default())),
            (None, Some(node)) => words.push(node),
            (None, None) if kind == "fact_produced" => words.push("input".to_owned()),
            (None, None) => {}
        }
        // What is long comes last, so that it is what is cut.
        let (mut failure, mut decision, mut last) = (None, None, None);
        for (name, value) in fields {
            match (name.as_str(), value) {
                // Instants have their own column, and places in the run tell people nothing.
                ("act" | "node" | "at" | "parent" | "fact" | "lineage", _) | (_, Value::Null) => {}
                ("failed" | "recovered", attempt) => {
                    failure = attempt.get("failure").and_then(failure_words);
                    decision = attempt.get("decided").and_then(decision_words);
                }
                ("failure", why) => failure = failure_words(why),
                ("decided", decided) => decision = decision_words(decided),
                ("value", value) => last = Some(value.to_string()),
                (name, value) => words.push(format!("{name}={}", plain(value))),
            }
        }
        words.extend(failure.into_iter().chain(decision).chain(last));
        words.join("  ")
    }
}

fn failure_words(failure: &Value) -> Option<String> {
    let message = failure.get("message")?.as_str()?;
    let mut words = String::new();
    if let Some(code) = failure.get("code").filter(|code| !code.is_null()) {
        let _ = write!(words, "[{}] ", plain(code));
    }
    words.push_str(message);
    Some(words)
}

fn decision_words(decided: &Value) -> Option<String> {
    let decision = decided.get("decision")?;
    let word = |name: &str| decision.get(name).map(plain);
    Some(format!("{} {}", word("action")?, word("reason_code")?))
}

/// Returns a value as people write it: a text without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_later_release_is_shown() {
        let mut reader = Reader::default();
        let woken = r#"{"runnable_activated":{"act":0,"node":"pay","fact":0,"lineage":0,"phase":"work"}}"#;
        assert_eq!(reader.read(woken).unwrap().said, "pay #0  phase=work");
        let held = r#"{"runnable_held":{"act":0,"why":"rate_limit","on":"stripe","until":5}}"#;
        assert_eq!(reader.read(held).unwrap().said, "pay #0  on=stripe  until=5  why=rate_limit");
        for text in ["", "1", "{}", r#"{"a":1}"#] {
            assert!(reader.read(text).is_none(), "{text}");
        }
    }
}
