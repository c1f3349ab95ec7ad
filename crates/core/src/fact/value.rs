//! A value of any serialisable type, shared and never changed. In memory it keeps its type; nothing is
//! serialised between one piece of work and the next.

use std::any::{Any, type_name};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A value of any type, cheap to clone.
///
/// ```
/// # use tidewheel_core as tidewheel;
/// use tidewheel::fact::Value;
///
/// let order = Value::new(vec![1, 2, 3]);
/// assert_eq!(order.get::<Vec<i32>>()?, vec![1, 2, 3]);          // the same type: a clone
/// assert_eq!(order.get::<Vec<u8>>()?, vec![1, 2, 3]);           // another type: by way of JSON
/// assert_eq!(order.to_json()?, serde_json::json!([1, 2, 3]));
/// # Ok::<(), tidewheel::fact::ValueError>(())
/// ```
#[derive(Clone)]
pub struct Value(Arc<dyn Held>);

impl Value {
    /// Keeps a value of any serialisable type.
    pub fn new<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the value as a type: a clone of the original when it has that type, read from its JSON
    /// otherwise.
    ///
    /// # Errors
    /// The value does not have the shape of the type.
    pub fn get<T: DeserializeOwned + Clone + 'static>(&self) -> Result<T, ValueError> {
        if let Some(value) = self.held::<T>() {
            return Ok(value.clone());
        }
        if let Some(stored) = self.held::<Stored>() {
            let mismatch = |source| ValueError { held: stored.kind(), wanted: type_name::<T>(), source };
            return serde_json::from_str(stored.0.get()).map_err(mismatch);
        }
        let mismatch = |source| ValueError { held: self.0.held_type(), wanted: type_name::<T>(), source };
        serde_json::from_value(self.0.to_json().map_err(mismatch)?).map_err(mismatch)
    }

    /// Keeps several values in order, each with its own type.
    pub(crate) fn several(values: Vec<Self>) -> Self {
        Self(Arc::new(Several(values)))
    }

    /// Keeps the text of a value that was stored; it is read when somebody wants it.
    #[must_use]
    pub fn stored(text: Box<RawValue>) -> Self {
        Self(Arc::new(Stored(text)))
    }

    /// Returns the parts of [`Value::several`], also when it was stored in between.
    pub(crate) fn parts(&self) -> Option<Cow<'_, [Self]>> {
        if let Some(several) = self.held::<Several>() {
            return Some(Cow::Borrowed(&several.0));
        }
        let stored = self.held::<Stored>()?;
        let parts: Vec<Box<RawValue>> = serde_json::from_str(stored.0.get()).ok()?;
        Some(Cow::Owned(parts.into_iter().map(Self::stored).collect()))
    }

    /// Returns the value itself when it has that very type.
    pub(crate) fn held<T: 'static>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref::<T>()
    }

    /// Returns the value as JSON text; a stored one is not read for it.
    ///
    /// # Errors
    /// The type cannot be written as JSON.
    pub fn to_text(&self) -> Result<Box<RawValue>, ValueError> {
        if let Some(stored) = self.held::<Stored>() {
            return Ok(stored.0.clone());
        }
        let fail = |source| ValueError { held: self.0.held_type(), wanted: "JSON", source };
        self.0.to_text().map_err(fail)
    }

    /// Returns the value as JSON.
    ///
    /// # Errors
    /// The type cannot be written as JSON: a map whose keys are no strings, for one.
    pub fn to_json(&self) -> Result<serde_json::Value, ValueError> {
        let fail = |source| ValueError { held: self.0.held_type(), wanted: "JSON", source };
        self.0.to_json().map_err(fail)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.0.held_type())
    }
}

/// What may flow through a workflow: any serde type that can be cloned and sent.
pub trait Payload: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> Payload for T {}

/// Several values in order, each with its own type: what a join gives.
struct Several(Vec<Value>);

impl Serialize for Several {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items = self.0.iter().map(|value| value.to_text().map_err(serde::ser::Error::custom));
        serializer.collect_seq(items.collect::<Result<Vec<_>, _>>()?)
    }
}

/// The text of a value that was stored.
struct Stored(Box<RawValue>);

impl Stored {
    fn kind(&self) -> &'static str {
        match self.0.get().as_bytes().first() {
            Some(b'{') => "stored object",
            Some(b'[') => "stored list",
            Some(b'"') => "stored text",
            Some(b't' | b'f') => "stored boolean",
            Some(b'n') => "stored null",
            _ => "stored number",
        }
    }
}

impl Serialize for Stored {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Why a value is not what was wanted.
#[derive(Debug, thiserror::Error)]
#[error("a value of type {held} cannot be read as {wanted}")]
pub struct ValueError {
    /// The type that is there.
    pub held: &'static str,
    /// The type that was wanted.
    pub wanted: &'static str,
    /// What went wrong in between.
    #[source]
    pub source: serde_json::Error,
}

trait Held: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error>;
    fn to_text(&self) -> Result<Box<RawValue>, serde_json::Error>;
    fn held_type(&self) -> &'static str;
}

impl<T: Serialize + Send + Sync + 'static> Held for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn to_text(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(self)
    }

    fn held_type(&self) -> &'static str {
        type_name::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_shape_is_an_error_that_names_both_types() {
        let error = Value::new("text").get::<u32>().unwrap_err();
        assert_eq!(error.to_string(), "a value of type &str cannot be read as u32");
    }

    #[test]
    fn a_type_that_json_cannot_hold_is_an_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(Value::new(map).to_json().is_err());
    }
}
