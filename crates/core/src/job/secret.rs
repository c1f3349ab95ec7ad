//! Values that nobody is to read: found in whatever is kept or shown, also across the pieces of a stream, and hidden.
//! Where they come from is for others to say.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What stands for a value that is hidden. It is shorter than any value, so that nothing in it is hidden again.
pub const HIDDEN: &str = "***";

/// A value with fewer bytes stands in too many texts by chance.
pub const LEAST_SECRET: usize = 4;
/// A value with more bytes is no secret that anybody types, and would be held back for too long.
pub const MOST_SECRET: usize = 64 * 1024;

/// Values that nobody is to read. Without any, nothing is looked at.
///
/// ```
/// use tidewheel_core::job::Secrets;
///
/// let (secrets, _) = Secrets::new([("API_TOKEN".to_owned(), b"s3cr3t".to_vec())]);
/// assert_eq!(secrets.hide("token=s3cr3t."), "token=***.");
/// ```
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<[Secret]>>);

/// One value, with how far back a text has to be looked at where it stops being the value.
struct Secret {
    name: String,
    value: Vec<u8>,
    /// For each length of a beginning of the value, that of the longest shorter one that it ends with.
    fallback: Vec<usize>,
}

/// A value that cannot be hidden, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value of secret `{name}` is not hidden: {reason}")]
pub struct SecretRefused {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Where a value was taken out of a text, so that whoever knows it can put it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The byte at which it stood, in the text with what hides it.
    pub at: usize,
    /// Its name.
    pub name: String,
}

impl Secrets {
    /// Takes values by their names, and returns those that cannot be hidden. Blanks around a value do not count, and
    /// neither does a value that is empty.
    pub fn new(given: impl IntoIterator<Item = (String, Vec<u8>)>) -> (Self, Vec<SecretRefused>) {
        let mut refused = Vec::new();
        let mut secrets: Vec<Secret> = Vec::new();
        for (name, value) in given {
            let value = value.trim_ascii();
            let reason = if value.is_empty() {
                "it is empty".to_owned()
            } else if value.len() < LEAST_SECRET {
                let length = value.len();
                format!(
                    "it has {length} bytes, and one with fewer than {LEAST_SECRET} would be found everywhere"
                )
            } else if value.len() > MOST_SECRET {
                format!("it has more than {MOST_SECRET} bytes")
            } else {
                if secrets.iter().all(|known| known.value != value) {
                    secrets.push(Secret::new(name, value.to_vec()));
                }
                continue;
            };
            refused.push(SecretRefused { name, reason });
        }
        (Self((!secrets.is_empty()).then(|| secrets.into())), refused)
    }

    /// Tells whether there is nothing to hide.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Hides the values in a text.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(hiding) = self.in_stream() else { return Cow::Borrowed(text) };
        let hidden = hiding.whole(text.as_bytes());
        if hidden == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(String::from_utf8_lossy(&hidden).into_owned())
    }

    /// Hides the values in a text that is kept.
    pub fn hide_in(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hide(text) {
            *text = hidden;
        }
    }

    /// Hides the values in every text and every key of a document.
    pub fn hide_in_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => self.hide_in(text),
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => {
                    self.hide_in_keys(fields);
                    open.extend(fields.values_mut());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn hide_in_keys(&self, fields: &mut Map<String, Value>) {
        let keys: Vec<String> =
            fields.keys().filter(|key| self.hide(key).as_ref() != key.as_str()).cloned().collect();
        for key in keys {
            if let Some(value) = fields.remove(&key) {
                fields.insert(self.hide(&key).into_owned(), value);
            }
        }
    }

    /// Returns what hides the values in a stream; `None` if there are none.
    #[must_use]
    pub fn in_stream(&self) -> Option<Hiding> {
        let secrets = self.0.clone()?;
        let states = vec![0; secrets.len()];
        Some(Hiding { secrets, states, held: Vec::new(), base: 0, found: Vec::new(), hidden_until: 0 })
    }

    /// Takes the values out of every text of a document, and notes by the way to each text what stood where.
    ///
    /// # Errors
    /// Two of them overlap, so that it cannot be said what stood there.
    pub fn cut(
        &self,
        value: &mut Value,
        way: &str,
        cuts: &mut BTreeMap<String, Vec<Cut>>,
    ) -> Result<(), OverlapError> {
        let mut open = vec![(way.to_owned(), value)];
        while let Some((way, value)) = open.pop() {
            match value {
                Value::String(text) => {
                    let found = self.cut_text(text).map_err(|()| OverlapError { way: way.clone() })?;
                    if !found.is_empty() {
                        cuts.insert(way, found);
                    }
                }
                Value::Array(items) => {
                    let items = items.iter_mut().enumerate();
                    open.extend(items.map(|(index, item)| (format!("{way}/{index}"), item)));
                }
                Value::Object(fields) => {
                    let step = |key: &str| key.replace('~', "~0").replace('/', "~1");
                    open.extend(
                        fields.iter_mut().map(|(key, field)| (format!("{way}/{}", step(key)), field)),
                    );
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(())
    }

    fn cut_text(&self, text: &mut String) -> Result<Vec<Cut>, ()> {
        let Some(mut hiding) = self.in_stream() else { return Ok(Vec::new()) };
        hiding.look(text.as_bytes());
        let (mut cuts, mut left, mut from) = (Vec::new(), String::new(), 0);
        for (start, end) in hiding.runs() {
            let secret = hiding.secrets.iter().find(|secret| secret.value == text.as_bytes()[start..end]);
            let (Some(secret), Some(before)) = (secret, text.get(from..start)) else { return Err(()) };
            left.push_str(before);
            cuts.push(Cut { at: left.len(), name: secret.name.clone() });
            left.push_str(HIDDEN);
            from = end;
        }
        if !cuts.is_empty() {
            left.push_str(text.get(from..).ok_or(())?);
            *text = left;
        }
        Ok(cuts)
    }

    /// Puts values back where they were taken out.
    ///
    /// # Errors
    /// One of them is not known here.
    pub fn put_back(&self, text: &str, cuts: &[Cut]) -> Result<String, MissingSecret> {
        let (mut whole, mut from) = (String::with_capacity(text.len()), 0);
        for cut in cuts {
            let known = self.0.as_deref().into_iter().flatten();
            let secret = known.into_iter().find(|secret| secret.name == cut.name);
            let value = secret.and_then(|secret| std::str::from_utf8(&secret.value).ok());
            let before = text.get(from..cut.at);
            let is_there = text.get(cut.at..).is_some_and(|rest| rest.starts_with(HIDDEN));
            let (Some(value), Some(before), true) = (value, before, is_there) else {
                return Err(MissingSecret { name: cut.name.clone() });
            };
            whole.push_str(before);
            whole.push_str(value);
            from = cut.at + HIDDEN.len();
        }
        whole.push_str(&text[from..]);
        Ok(whole)
    }
}

/// Two values that overlap in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the values of secrets overlap in {way}")]
pub struct OverlapError {
    /// The way to the text.
    pub way: String,
}

/// A value that was taken out of a text, and is not known any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("secret `{name}` is not in the environment")]
pub struct MissingSecret {
    /// Its name.
    pub name: String,
}

/// The values are not shown.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.as_deref().into_iter().flatten().map(|secret| &secret.name);
        f.debug_tuple("Secrets").field(&names.collect::<Vec<_>>()).finish()
    }
}

impl Secret {
    fn new(name: String, value: Vec<u8>) -> Self {
        let mut fallback = vec![0; value.len() + 1];
        let mut length = 0;
        for at in 1..value.len() {
            while length > 0 && value[length] != value[at] {
                length = fallback[length];
            }
            length += usize::from(value[length] == value[at]);
            fallback[at + 1] = length;
        }
        Self { name, value, fallback }
    }

    /// Goes on in a text, from how much of the value the text ended with so far, and tells where the value ends.
    fn look(&self, mut state: usize, text: &[u8], mut ends_at: impl FnMut(usize)) -> usize {
        let mut at = 0;
        while at < text.len() {
            if state == 0 {
                // Most of a text does not even begin like the value.
                let Some(next) = text[at..].iter().position(|byte| *byte == self.value[0]) else { return 0 };
                at += next;
            }
            while state > 0 && self.value[state] != text[at] {
                state = self.fallback[state];
            }
            state += usize::from(self.value[state] == text[at]);
            at += 1;
            if state == self.value.len() {
                ends_at(at);
                state = self.fallback[state];
            }
        }
        state
    }
}

/// Hides values in a stream. All that any of them covers is hidden, also where they overlap. What may become one of
/// them is held back, and nothing else is: a stream that does not end like the beginning of a value is let through
/// at once.
pub struct Hiding {
    secrets: Arc<[Secret]>,
    /// How much of each value the stream ends with.
    states: Vec<usize>,
    /// What is not let through yet, and where in the stream it begins.
    held: Vec<u8>,
    base: usize,
    /// Where values stand that are not dealt with yet: from, to.
    found: Vec<(usize, usize)>,
    /// What is before this was hidden.
    hidden_until: usize,
}

impl Hiding {
    /// Takes a piece, and adds to the output what may be let through.
    pub fn push(&mut self, piece: &[u8], output: &mut Vec<u8>) {
        self.look(piece);
        let open = self.states.iter().copied().max().unwrap_or(0);
        let end = self.base + self.held.len();
        self.let_through(end - open, output);
    }

    /// Lets through what is left: nothing more comes.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        self.states.fill(0);
        self.let_through(self.base + self.held.len(), output);
    }

    /// Hides the values in a text that is all there is.
    #[must_use]
    pub fn whole(mut self, text: &[u8]) -> Vec<u8> {
        let mut output = Vec::with_capacity(text.len());
        self.push(text, &mut output);
        self.finish(&mut output);
        output
    }

    /// Adds a piece to what is held, and finds the values that end in it.
    fn look(&mut self, piece: &[u8]) {
        let begin = self.base + self.held.len();
        self.held.extend_from_slice(piece);
        let found = &mut self.found;
        for (secret, state) in self.secrets.iter().zip(&mut self.states) {
            let length = secret.value.len();
            *state = secret.look(*state, piece, |end| found.push((begin + end - length, begin + end)));
        }
        found.sort_unstable();
    }

    /// Returns all that is found, what overlaps as one.
    fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (start, end) in &self.found {
            match runs.last_mut() {
                Some(last) if *start < last.1 => last.1 = last.1.max(*end),
                _ => runs.push((*start, *end)),
            }
        }
        runs
    }

    /// Lets through everything before a place. A value that begins there or later may still be a part of a longer one.
    fn let_through(&mut self, until: usize, output: &mut Vec<u8>) {
        let decided = self.found.partition_point(|(start, _)| *start < until);
        let mut at = self.base;
        for (start, end) in self.found.drain(..decided) {
            if start >= self.hidden_until {
                output
                    .extend_from_slice(&self.held[at.max(self.hidden_until) - self.base..start - self.base]);
                output.extend_from_slice(HIDDEN.as_bytes());
                at = start;
            }
            self.hidden_until = self.hidden_until.max(end);
        }
        let at = at.max(self.hidden_until);
        if at < until {
            output.extend_from_slice(&self.held[at - self.base..until - self.base]);
        }
        self.held.drain(..until - self.base);
        self.base = until;
    }
}

impl fmt::Debug for Hiding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hiding").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(values: &[&str]) -> Secrets {
        let given =
            values.iter().enumerate().map(|(at, value)| (format!("S{at}"), value.as_bytes().to_vec()));
        Secrets::new(given).0
    }

    /// Hides the whole text at once, in the plainest way: what stands at a place is compared with every value.
    fn naive(values: &[&str], text: &[u8]) -> Vec<u8> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for start in 0..text.len() {
            for value in values {
                if text[start..].starts_with(value.as_bytes()) {
                    let end = start + value.len();
                    match runs.last_mut() {
                        Some(last) if start < last.1 => last.1 = last.1.max(end),
                        _ => runs.push((start, end)),
                    }
                }
            }
        }
        let (mut hidden, mut from) = (Vec::new(), 0);
        for (start, end) in runs {
            hidden.extend_from_slice(&text[from..start]);
            hidden.extend_from_slice(b"***");
            from = end;
        }
        hidden.extend_from_slice(&text[from..]);
        hidden
    }

    proptest! {
        #[test]
        fn a_stream_in_any_pieces_is_hidden_like_the_whole_text(
            values in proptest::collection::vec("[ab]{4,7}", 1..4),
            text in "[abc]{0,80}",
            sizes in proptest::collection::vec(1usize..9, 1..40),
        ) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let secrets = secrets(&values);
            let longest = values.iter().map(|value| value.len()).max().unwrap();
            let mut hiding = secrets.in_stream().unwrap();
            let (mut output, mut rest) = (Vec::new(), text.as_bytes());
            let mut sizes = sizes.into_iter().cycle();
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                hiding.push(piece, &mut output);
                prop_assert!(hiding.held.len() < longest);
                rest = later;
            }
            hiding.finish(&mut output);
            prop_assert_eq!(String::from_utf8(output), String::from_utf8(naive(&values, text.as_bytes())));
        }

        #[test]
        fn what_is_cut_out_can_be_put_back(text in "(s3cr3t|other-one|[a-z*/\"]{0,9}){0,8}") {
            let secrets = secrets(&["s3cr3t", "other-one"]);
            let mut value = serde_json::json!({ "a": [text], "b/c": text });
            let (whole, mut cuts) = (value.clone(), BTreeMap::new());
            secrets.cut(&mut value, "", &mut cuts).unwrap();
            prop_assert!(!value.to_string().contains("s3cr3t") && !value.to_string().contains("other-one"));
            for (way, cuts) in &cuts {
                let place = value.pointer_mut(way).unwrap();
                *place = secrets.put_back(place.as_str().unwrap(), cuts).unwrap().into();
            }
            prop_assert_eq!(value, whole);
        }
    }

    #[test]
    fn what_does_not_begin_like_a_value_is_let_through_at_once() {
        let mut hiding = secrets(&["s3cr3t"]).in_stream().unwrap();
        let mut output = Vec::new();
        hiding.push(b"Continue? [y/N] ", &mut output);
        assert_eq!(output, b"Continue? [y/N] ");
        hiding.push(b"s3c", &mut output);
        assert_eq!(output.len(), 16, "the beginning of a value is held back");
        hiding.push(b"r3", &mut output);
        hiding.push(b"t!", &mut output);
        assert_eq!(output, b"Continue? [y/N] ***!");
    }

    #[test]
    fn overlapping_values_leave_nothing_of_each_other() {
        assert_eq!(secrets(&["abcd", "bcdefghij"]).hide("xabcdefghijx"), "x***x");
        assert_eq!(secrets(&["abcd", "abcdefgh"]).hide("abcdefgh abcdefg"), "*** ***efg");
        assert_eq!(secrets(&["abab"]).hide("ababab abab"), "*** ***");
    }

    #[test]
    fn a_value_that_stands_everywhere_is_refused() {
        let given = [("A", ""), ("B", "abc"), ("C", " \n"), ("D", "abcd\n")];
        let given = given.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let (secrets, refused) = Secrets::new(given);
        let names: Vec<&str> = refused.iter().map(|refused| refused.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C"]);
        assert!(refused[1].to_string().contains("fewer than 4"), "{}", refused[1]);
        assert_eq!(secrets.hide("abcd"), "***");
        assert_eq!(format!("{secrets:?}"), "Secrets([\"D\"])");
    }

    #[test]
    fn without_values_nothing_is_touched() {
        let secrets = Secrets::default();
        assert!(secrets.in_stream().is_none());
        assert!(matches!(secrets.hide("text"), Cow::Borrowed("text")));
        let mut value = serde_json::json!({ "a": "b" });
        secrets.hide_in_value(&mut value);
        assert_eq!(value, serde_json::json!({ "a": "b" }));
    }

    #[test]
    fn keys_and_texts_of_a_document_are_hidden() {
        let mut value = serde_json::json!({ "x-s3cr3t": ["s3cr3t", 1, { "a": "no" }] });
        secrets(&["s3cr3t"]).hide_in_value(&mut value);
        assert_eq!(value, serde_json::json!({ "x-***": ["***", 1, { "a": "no" }] }));
    }

    #[test]
    fn values_that_overlap_cannot_be_cut_out() {
        let mut value = serde_json::json!("abcdefghij");
        assert!(secrets(&["abcd", "bcdefghij"]).cut(&mut value, "/args", &mut BTreeMap::new()).is_err());
        let cuts = [Cut { at: 0, name: "gone".to_owned() }];
        assert_eq!(secrets(&["abcd"]).put_back("***", &cuts).unwrap_err().name, "gone");
    }
}
