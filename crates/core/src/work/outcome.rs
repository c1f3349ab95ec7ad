//! What a function may return: a value, or a `Result` of one. Panics are failures too.

use std::any::{Any, type_name};
use std::borrow::Cow;

use serde::Serialize;

use crate::fact::{Payload, Value};
use crate::policy::Failure;

/// A return type that becomes a value or a failure. The marker tells the compiler which of the two it is;
/// nobody writes it.
pub trait IntoOutcome<Marker> {
    /// The type of the value.
    type Value: 'static;

    /// Returns the value or the failure.
    ///
    /// # Errors
    /// The function failed.
    fn into_outcome(self) -> Result<Value, Failure>;
}

/// Marks a return type that is the value itself.
#[derive(Debug)]
pub enum Plain {}

/// Marks a `Result` whose error is a Rust error.
#[derive(Debug)]
pub enum Fallible {}

impl<T: Payload> IntoOutcome<Plain> for T {
    type Value = T;

    fn into_outcome(self) -> Result<Value, Failure> {
        // A `Result` whose error is itself a serde type, such as a `String`, fits here as well; the compiler
        // cannot tell it apart, so it is told apart by its name.
        if is_result::<T>() { split_result(&self) } else { Ok(Value::new(self)) }
    }
}

impl<T, E> IntoOutcome<Fallible> for Result<T, E>
where
    T: Serialize + Send + Sync + 'static,
    E: std::error::Error,
{
    type Value = T;

    fn into_outcome(self) -> Result<Value, Failure> {
        self.map(Value::new).map_err(|error| Failure::of(&error))
    }
}

/// Marks a `Result` whose error is a boxed error.
#[derive(Debug)]
pub enum Boxed {}

impl<T: Serialize + Send + Sync + 'static> IntoOutcome<Boxed>
    for Result<T, Box<dyn std::error::Error + Send + Sync>>
{
    type Value = T;

    fn into_outcome(self) -> Result<Value, Failure> {
        self.map(Value::new).map_err(|error| Failure::chain(error.as_ref()))
    }
}

/// Marks a `Result` whose error says all that a policy may ask.
#[derive(Debug)]
pub enum Told {}

impl<T: Serialize + Send + Sync + 'static> IntoOutcome<Told> for Result<T, Failure> {
    type Value = T;

    fn into_outcome(self) -> Result<Value, Failure> {
        self.map(Value::new)
    }
}

fn is_result<T>() -> bool {
    type_name::<T>().starts_with("core::result::Result<")
}

/// Takes a serialisable `Result` apart by way of JSON.
fn split_result<T: Serialize>(result: &T) -> Result<Value, Failure> {
    match serde_json::to_value(result) {
        Ok(serde_json::Value::Object(mut object)) => match (object.remove("Ok"), object.remove("Err")) {
            (Some(value), _) => Ok(Value::new(value)),
            (_, Some(serde_json::Value::String(message))) => Err(Failure::new(message)),
            (_, error) => Err(Failure::new(error.unwrap_or_default().to_string())),
        },
        Ok(other) => Err(Failure::new(other.to_string())),
        Err(error) => Err(Failure::of(&error)),
    }
}

/// Returns the failure of a panic.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let message = payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked".to_owned());
    Failure {
        code: Some("panic".into()),
        type_name: Some(Cow::Borrowed("panic")),
        message,
        ..Failure::default()
    }
}
