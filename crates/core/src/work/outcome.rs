//! What a function may return: a value, or a `Result` of one. Panics are failures too.

use std::any::type_name;

use serde::Serialize;

use crate::fact::{Payload, Value, split_result};
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
        // A `Result` whose error is itself a serde type, such as a `String`, fits here as well: a bound cannot exclude
        // it, so its name does.
        if is_result::<T>() { split_result(self) } else { Ok(Value::new(self)) }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Refused {
        Declined { code: u16 },
        Broken,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Part {
        Empty,
        One(u128),
        Two(f32, char),
        Named { bytes: Vec<u8>, maybe: Option<Option<()>> },
    }

    fn given<T: Payload>(result: Result<T, Refused>) -> Value {
        result.into_outcome().unwrap()
    }

    #[test]
    fn a_result_with_a_serde_error_gives_its_value_as_it_is() {
        assert_eq!(given(Ok(u128::MAX)).get::<u128>().unwrap(), u128::MAX);
        assert!(given(Ok(f64::NAN)).get::<f64>().unwrap().is_nan());
        assert_eq!(given(Ok(Some(None::<u8>))).get::<Option<Option<u8>>>().unwrap(), Some(None));
        let pairs = BTreeMap::from([((1_u8, 'a'), i128::MIN), ((2, 'b'), 5)]);
        assert_eq!(given(Ok(pairs.clone())).get::<BTreeMap<(u8, char), i128>>().unwrap(), pairs);
        let parts = vec![
            Part::Empty,
            Part::One(u128::MAX),
            Part::Two(1.1, 'x'),
            Part::Named { bytes: vec![0, 255], maybe: Some(Some(())) },
            Part::Named { bytes: Vec::new(), maybe: Some(None) },
            Part::Named { bytes: Vec::new(), maybe: None },
        ];
        assert_eq!(given(Ok(parts.clone())).get::<Vec<Part>>().unwrap(), parts);
        let raw = serde_json::value::RawValue::from_string("[1, 2]".to_owned()).unwrap();
        assert_eq!(given(Ok(raw)).get::<Box<serde_json::value::RawValue>>().unwrap().get(), "[1, 2]");
        let nested: Result<Result<u8, String>, Refused> = Ok(Err("kept".to_owned()));
        assert_eq!(given(nested).get::<Result<u8, String>>().unwrap(), Err("kept".to_owned()));
    }

    #[test]
    fn the_value_of_such_a_result_is_stored_as_the_value_alone() {
        assert_eq!(given(Ok(vec![1_u8])).to_text().unwrap().get(), "[1]");
        assert_eq!(given(Ok(1.1_f32)).get::<f64>().unwrap().to_bits(), 1.1_f64.to_bits());
        assert!(given(Ok(f64::NAN)).unserialisable().is_some());
        assert!(given(Ok(Some(()))).unserialisable().is_some());
    }

    #[test]
    fn a_result_with_a_text_as_its_error_lends_its_value_to_those_who_only_look() {
        let big: Result<Vec<u8>, String> = Ok(vec![7; 1_000]);
        let value = big.into_outcome().unwrap();
        assert_eq!(value.held::<Vec<u8>>().unwrap().len(), 1_000);
    }

    #[test]
    fn such_an_error_is_the_failure_and_its_value_is_not_looked_at() {
        let failure = |error| Result::<u8, Refused>::Err(error).into_outcome().unwrap_err().message;
        assert_eq!(failure(Refused::Declined { code: 51 }), r#"{"Declined":{"code":51}}"#);
        assert_eq!(failure(Refused::Broken), "Broken");
        let odd: Result<u8, BTreeMap<(u8, u8), u8>> = Err(BTreeMap::from([((1, 2), 3)]));
        assert!(odd.into_outcome().unwrap_err().message.contains("cannot be shown"));
    }
}
