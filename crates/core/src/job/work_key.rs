//! The key under which jobs share their work: one text of template, node and key, or of a scope and key.
//!
//! People see it, and processes get it as `TIDEWHEEL_IDEMPOTENCY_KEY`, so it stays readable. What would end a part early
//! is written as in an address, so that two different lists of parts never give one text.

/// Returns the key that jobs of one node of one template share.
pub(super) fn of_node(template: &str, node: &str, key: &str) -> String {
    format!("{}/{}:{key}", escaped(template), escaped(node))
}

/// Returns the key that all jobs share whose policies name a scope. No part of a template's key begins with `@`.
pub(super) fn of_scope(scope: &str, key: &str) -> String {
    format!("@{}:{key}", escaped(scope))
}

/// A key as releases wrote it that put the parts together as they were, so that different nodes could meet in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainKey {
    /// The text.
    pub text: String,
    /// The template whose jobs may count as those that did the work.
    pub template: String,
    /// The node of that template.
    pub node: String,
}

impl PlainKey {
    /// Returns what a key was in those releases; `None` where it was the same or did not exist.
    #[must_use]
    pub fn before(key: &str) -> Option<Self> {
        if key.starts_with('@') {
            return None;
        }
        let (template, rest) = key.split_once('/')?;
        let (node, rest) = rest.split_once(':')?;
        let (template, node) = (plain(template), plain(node));
        let text = format!("{template}/{node}:{rest}");
        (text != key).then_some(Self { text, template, node })
    }
}

const ESCAPES: [(char, &str); 4] = [('/', "%2F"), (':', "%3A"), ('@', "%40"), ('%', "%25")];

fn escaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for letter in part.chars() {
        match ESCAPES.iter().find(|(escape, _)| *escape == letter) {
            Some((_, code)) => text.push_str(code),
            None => text.push(letter),
        }
    }
    text
}

fn plain(part: &str) -> String {
    // The percent sign comes last: what it stands before is no escape.
    ESCAPES
        .iter()
        .fold(part.to_owned(), |text, (letter, code)| text.replace(code, letter.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_different_lists_of_parts_never_give_one_text() {
        let parts = ["A", "A/x", "x/c", "c", "c:1", "1:2", "@s", "s", "%2F", "/", ":", "%", "A%2Fx", "%252F"];
        let mut seen = std::collections::BTreeMap::new();
        for first in parts {
            for key in parts {
                assert_eq!(seen.insert(of_scope(first, key), vec![first, key]), None);
                for node in parts {
                    let text = of_node(first, node, key);
                    assert_eq!(seen.insert(text.clone(), vec![first, node, key]), None, "{text}");
                    let before = PlainKey::before(&text);
                    let same = format!("{first}/{node}:{key}");
                    let expected = (same != text).then(|| PlainKey {
                        text: same,
                        template: first.to_owned(),
                        node: node.to_owned(),
                    });
                    assert_eq!(before, expected, "{text}");
                }
            }
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(
            of_node("template.release", "draft__persist", "order-5"),
            "template.release/draft__persist:order-5"
        );
        assert_eq!(of_scope("payments", "a/b:c"), "@payments:a/b:c");
    }
}
