//! Events that are stored together: one array of JSON, readable by anybody, and how many they are.

use serde_json::value::RawValue;

/// Some events in order, as one array of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    body: Vec<u8>,
    len: u32,
}

/// As much room a batch begins with, in bytes.
const ROOM: usize = 1_024;

/// Why a text is no batch of events.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// It is no array of JSON.
    #[error("the stored events are no array of JSON")]
    Malformed(#[source] serde_json::Error),
    /// It has another number of events than it should.
    #[error("the stored batch has {found} events, and {expected} were written")]
    Count {
        /// How many were written.
        expected: u32,
        /// How many there are.
        found: usize,
    },
}

impl Batch {
    /// Returns a batch without events.
    #[must_use]
    pub const fn new() -> Self {
        Self { body: Vec::new(), len: 0 }
    }

    /// Takes a batch as it was stored.
    #[must_use]
    pub fn stored(body: String, len: u32) -> Self {
        Self { body: body.into_bytes(), len }
    }

    /// Adds an event: one value of JSON.
    pub fn push(&mut self, event: &str) {
        let written: Result<(), std::convert::Infallible> = self.push_with(|body| {
            body.extend_from_slice(event.as_bytes());
            Ok(())
        });
        let Ok(()) = written;
    }

    /// Adds an event that a function writes, as one value of JSON, to the end of what it is given.
    ///
    /// # Errors
    /// The function failed; the batch is as it was.
    ///
    /// # Panics
    /// The function took something away.
    pub fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let before = self.body.len();
        if self.len == 0 {
            // A cycle of a run is a few hundred bytes; growing bit by bit would cost more than writing.
            self.body.reserve(ROOM);
            self.body.push(b'[');
        } else {
            self.body.pop();
            self.body.extend_from_slice(b",\n");
        }
        let written = write(&mut self.body);
        if written.is_err() {
            self.body.truncate(before.saturating_sub(1));
        }
        if written.is_ok() || self.len > 0 {
            self.body.push(b']');
        }
        if written.is_ok() {
            self.len += 1;
        } else if self.len == 0 {
            self.body.clear();
        }
        written
    }

    /// Returns how many events it has.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Tells whether it has no events.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the array of JSON.
    #[must_use]
    pub fn body(&self) -> &str {
        if self.len == 0 {
            return "[]";
        }
        std::str::from_utf8(&self.body).expect("invariant: JSON is written as UTF-8")
    }

    /// Returns the events one by one.
    ///
    /// # Errors
    /// The text is not the array that was written.
    pub fn events(&self) -> Result<Vec<&str>, BatchError> {
        let events: Vec<&RawValue> = serde_json::from_str(self.body()).map_err(BatchError::Malformed)?;
        if events.len() != self.len as usize {
            return Err(BatchError::Count { expected: self.len, found: events.len() });
        }
        Ok(events.into_iter().map(RawValue::get).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_what_was_put_in() {
        let mut batch = Batch::new();
        assert_eq!((batch.body(), batch.events().unwrap()), ("[]", Vec::new()));
        batch.push(r#"{"a":1}"#);
        batch.push(r#"{"b":[2]}"#);
        assert_eq!(batch.events().unwrap(), [r#"{"a":1}"#, r#"{"b":[2]}"#]);
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn an_event_that_cannot_be_written_leaves_the_batch_as_it_was() {
        let mut batch = Batch::new();
        let fail = |body: &mut Vec<u8>| {
            body.extend_from_slice(b"{half");
            Err("no")
        };
        assert!(batch.push_with(fail).is_err() && batch.is_empty() && batch.body() == "[]");
        batch.push("1");
        assert!(batch.push_with(fail).is_err());
        batch.push("2");
        assert_eq!(batch.events().unwrap(), ["1", "2"]);
    }

    #[test]
    fn a_batch_that_lost_an_event_is_noticed() {
        assert!(matches!(Batch::stored("[1]".into(), 2).events(), Err(BatchError::Count { .. })));
        assert!(matches!(Batch::stored("[1".into(), 1).events(), Err(BatchError::Malformed(_))));
    }
}
