//! A value of any serialisable type, shared and never changed. In memory it keeps its type; nothing is
//! serialised between one piece of work and the next.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value of any type, cheap to clone.
///
/// ```
/// use tidewheel_core::fact::Value;
///
/// let order = Value::new(vec![1, 2, 3]);
/// assert_eq!(order.get::<Vec<i32>>()?, vec![1, 2, 3]);          // the same type: a clone
/// assert_eq!(order.get::<Vec<u8>>()?, vec![1, 2, 3]);           // another type: by way of JSON
/// assert_eq!(order.to_json()?, serde_json::json!([1, 2, 3]));
/// # Ok::<(), tidewheel_core::fact::ValueError>(())
/// ```
#[derive(Clone)]
pub struct Value(Arc<dyn Payload>);

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
        if let Some(value) = self.0.as_any().downcast_ref::<T>() {
            return Ok(value.clone());
        }
        let mismatch = |source| ValueError { held: self.0.held_type(), wanted: type_name::<T>(), source };
        serde_json::from_value(self.0.to_json().map_err(mismatch)?).map_err(mismatch)
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

trait Payload: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error>;
    fn held_type(&self) -> &'static str;
}

impl<T: Serialize + Send + Sync + 'static> Payload for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
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
