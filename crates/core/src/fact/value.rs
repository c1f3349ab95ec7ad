//! A value of any serialisable type, shared and never changed. In memory it keeps its type; nothing is
//! serialised between one piece of work and the next.

use std::any::{Any, type_name};
use std::borrow::Cow;
use std::fmt;
use std::mem::needs_drop;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::checked::{Checked, check_raw};
use super::succeeded::Succeeded;
use crate::policy::Failure;
use crate::work::call_user;

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
        if needs_drop::<T>() { Self(Arc::new(Guarded(Some(value)))) } else { Self(Arc::new(Plain(value))) }
    }

    /// Returns the value as a type: a clone of the original when it has that type, read from its JSON
    /// otherwise.
    ///
    /// # Errors
    /// The value does not have the shape of the type, or an implementation of either type panicked.
    pub fn get<T: DeserializeOwned + Clone + 'static>(&self) -> Result<T, ValueError> {
        self.guarded(type_name::<T>(), || self.read())
    }

    /// Does the same as [`Value::get`] where panics are caught already, and mean something of their own.
    pub(crate) fn read<T: DeserializeOwned + Clone + 'static>(&self) -> Result<T, ValueError> {
        if let Some(value) = self.held::<T>() {
            return Ok(value.clone());
        }
        if let Some(value) = self.held::<Succeeded>().and_then(Succeeded::get) {
            return Ok(value);
        }
        let mismatch = |source| ValueError { held: self.held_type(), wanted: type_name::<T>(), source };
        // By way of text, as after a restart: a conversion gives the same before and after it.
        match self.held::<Stored>() {
            Some(stored) => serde_json::from_str(stored.0.get()).map_err(mismatch),
            None => serde_json::from_str(self.write()?.get()).map_err(mismatch),
        }
    }

    /// Keeps a `Result` that is `Ok` as what stands in it.
    pub(crate) fn succeeded<T: Serialize + Send + Sync + 'static>(result: T) -> Self {
        Self::new(Succeeded::new(result))
    }

    /// Keeps several values in order, each with its own type.
    pub(crate) fn several(values: Vec<Self>) -> Self {
        Self::new(Several(values))
    }

    /// Keeps the text of a value that was stored; it is read when somebody wants it.
    #[must_use]
    pub fn stored(text: Box<RawValue>) -> Self {
        Self(Arc::new(Plain(Stored(text))))
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
        let whole = self.0.as_any();
        whole.downcast_ref::<T>().or_else(|| whole.downcast_ref::<Succeeded>()?.held::<T>())
    }

    fn held_type(&self) -> &'static str {
        match (self.held::<Stored>(), self.held::<Succeeded>()) {
            (Some(stored), _) => stored.kind(),
            (_, Some(succeeded)) => succeeded.held_type(),
            (None, None) => self.0.held_type(),
        }
    }

    /// Returns the value as JSON text; a stored one is not read for it.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::fact::Value;
    ///
    /// assert_eq!(Value::new(Some(0.5)).to_text()?.get(), "0.5");
    /// assert!(Value::new(f64::NAN).to_text().is_err()); // JSON has no such number
    /// assert!(Value::new(Some(None::<u8>)).to_text().is_err()); // would be read back as `None`
    /// # Ok::<(), tidewheel::fact::ValueError>(())
    /// ```
    ///
    /// # Errors
    /// JSON cannot carry the value: it has a number that is not finite, a `Some` around something that is written as
    /// null, a map whose keys are no text, or is nested deeper than the reader goes. Or its `Serialize` panicked.
    pub fn to_text(&self) -> Result<Box<RawValue>, ValueError> {
        self.guarded("JSON", || self.write())
    }

    fn write(&self) -> Result<Box<RawValue>, ValueError> {
        let fail = |source| ValueError { held: self.held_type(), wanted: "JSON", source };
        if let Some(stored) = self.held::<Stored>() {
            check_raw(stored.0.get()).map_err(fail)?;
            return Ok(stored.0.clone());
        }
        match self.held::<Several>() {
            // Each part is checked by itself; the list around them may be one level more.
            Some(several) => to_raw_value(several).map_err(fail),
            None => self.0.to_text().map_err(fail),
        }
    }

    /// Returns the value as JSON.
    ///
    /// # Errors
    /// As of [`Value::to_text`].
    pub fn to_json(&self) -> Result<serde_json::Value, ValueError> {
        let fail = |source| ValueError { held: self.held_type(), wanted: "JSON", source };
        serde_json::from_str(self.to_text()?.get()).map_err(fail)
    }

    /// Returns why the value cannot be stored, as the failure of the work that gave it. A panic of its `Serialize` is
    /// one, too.
    #[must_use]
    pub fn unserialisable(&self) -> Option<Failure> {
        let check = || match self.held::<Stored>() {
            Some(stored) => check_raw(stored.0.get()),
            None => self.0.check(),
        };
        let failure = match call_user(check) {
            Ok(Ok(())) => return None,
            Ok(Err(source)) => Failure::of(&ValueError { held: self.held_type(), wanted: "JSON", source }),
            Err(panic) => panic,
        };
        Some(failure.code("unserialisable").non_retryable())
    }

    /// Calls what the types of the user do here. A panic is an error.
    fn guarded<T>(
        &self,
        wanted: &'static str,
        call: impl FnOnce() -> Result<T, ValueError>,
    ) -> Result<T, ValueError> {
        call_user(call).unwrap_or_else(|panic| {
            let source = serde::ser::Error::custom(format_args!("it panicked: {}", panic.message));
            Err(ValueError { held: self.held_type(), wanted, source })
        })
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
    fn to_text(&self) -> Result<Box<RawValue>, serde_json::Error>;
    /// Does what [`Held::to_text`] does, and keeps nothing.
    fn check(&self) -> Result<(), serde_json::Error>;
    fn held_type(&self) -> &'static str;
}

/// A value whose type does nothing when it is dropped, or nothing that could panic.
struct Plain<T>(T);

/// A value whose type does something when it is dropped. Values are dropped wherever the last owner lets go of them, also
/// under locks and in tasks of all runs, so that a panic ends here.
struct Guarded<T>(Option<T>);

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        drop(call_user(|| drop(value)));
    }
}

impl<T: Serialize + Send + Sync + 'static> Held for Plain<T> {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn to_text(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&Checked::new(&self.0))
    }

    fn check(&self) -> Result<(), serde_json::Error> {
        serde_json::to_writer(std::io::sink(), &Checked::new(&self.0))
    }

    fn held_type(&self) -> &'static str {
        type_name::<T>()
    }
}

impl<T: Serialize + Send + Sync + 'static> Held for Guarded<T> {
    fn as_any(&self) -> &dyn Any {
        match &self.0 {
            Some(value) => value,
            None => &(),
        }
    }

    fn to_text(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match &self.0 {
            Some(value) => to_raw_value(&Checked::new(value)),
            None => to_raw_value(&()),
        }
    }

    fn check(&self) -> Result<(), serde_json::Error> {
        match &self.0 {
            Some(value) => serde_json::to_writer(std::io::sink(), &Checked::new(value)),
            None => Ok(()),
        }
    }

    fn held_type(&self) -> &'static str {
        type_name::<T>()
    }
}

/// Returns something as JSON that reads back as it is.
///
/// # Errors
/// As of [`Value::to_text`].
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> Result<serde_json::Value, serde_json::Error> {
    serde_json::from_str(to_raw_value(&Checked::new(value))?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_shape_is_an_error_that_names_both_types() {
        let error = Value::new("text").get::<u32>().unwrap_err();
        assert_eq!(error.to_string(), "a value of type &str cannot be read as u32");
    }

    /// Panics wherever a type can.
    #[derive(Debug)]
    struct Sore;

    impl Clone for Sore {
        fn clone(&self) -> Self {
            panic!("cloned");
        }
    }

    impl Serialize for Sore {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("written");
        }
    }

    impl<'de> serde::Deserialize<'de> for Sore {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("read");
        }
    }

    impl Drop for Sore {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_type_that_panics_is_an_error_wherever_its_value_is_used_and_ends_nothing_when_it_is_dropped() {
        let sore = Value::new(Sore);
        let texts = [
            sore.get::<Sore>().unwrap_err().source.to_string(),
            sore.to_text().unwrap_err().source.to_string(),
            sore.to_json().unwrap_err().source.to_string(),
            Value::new(1_u8).get::<Sore>().unwrap_err().source.to_string(),
        ];
        let expected = ["cloned", "written", "written", "read"].map(|text| format!("it panicked: {text}"));
        assert_eq!(texts, expected);
        assert_eq!(sore.unserialisable().unwrap().message, "written");
        drop(sore);
    }

    fn refusal<T: Payload>(value: T) -> String {
        let value = Value::new(value);
        let failure = value.unserialisable().expect("it cannot be stored");
        assert_eq!(failure.code, Some("unserialisable".into()));
        assert!(failure.non_retryable);
        assert!(value.to_json().is_err());
        value.to_text().unwrap_err().source.to_string()
    }

    /// Stores a value and reads it, as a restart does.
    fn again<T: Payload>(value: &T) -> T {
        let value = Value::new(value.clone());
        assert!(value.unserialisable().is_none());
        Value::stored(value.to_text().unwrap()).get().unwrap()
    }

    #[test]
    fn what_json_would_change_is_refused_where_it_is_written() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(refusal(map).contains("key must be a string"));
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(refusal(vec![Some(number)]).contains("is not finite"));
        }
        assert!(refusal(f32::NAN).contains("is not finite"));
        let nothing = "would be read back as `None`";
        assert!(refusal(Some(None::<u8>)).contains(nothing));
        assert!(refusal(Some(())).contains(nothing));
        assert!(refusal((1, Some(serde_json::Value::Null))).contains(nothing));
        assert!(refusal(vec![Some(Some(None::<String>))]).contains(nothing));
        #[derive(Clone, serde::Serialize, serde::Deserialize)]
        struct Named(Option<u8>);
        assert!(refusal(Some(Named(None))).contains(nothing));
        let raw = RawValue::from_string(" null ".to_owned()).unwrap();
        assert!(refusal(Some(raw)).contains(nothing));
        let magic = std::collections::BTreeMap::from([(super::super::checked::RAW_VALUE.to_owned(), 1)]);
        assert!(refusal(magic).contains("means something to the reader"));
    }

    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    enum Tree {
        Leaf,
        Branch(Box<Self>),
        Pair(Box<Self>, u8),
        Named { inner: Box<Self> },
    }

    fn nested(levels: usize, wrap: impl Fn(serde_json::Value) -> serde_json::Value) -> serde_json::Value {
        (0..levels).fold(serde_json::Value::Null, |inner, _| wrap(inner))
    }

    #[test]
    fn a_value_is_nested_as_deep_as_it_can_be_read_and_no_deeper() {
        let most = usize::from(super::super::checked::MAX_NESTING);
        let list = |levels| nested(levels, |inner| serde_json::json!([inner]));
        assert_eq!(again(&list(most)), list(most));
        assert!(refusal(list(most + 1)).contains("nested deeper"));
        let map = |levels| nested(levels, |inner| serde_json::json!({ "a": inner }));
        assert_eq!(again(&map(most)), map(most));
        assert!(refusal(map(most + 1)).contains("nested deeper"));
        type Wrap = fn(Tree) -> Tree;
        let wraps: [(usize, Wrap); 3] = [
            (1, |inner| Tree::Branch(Box::new(inner))),
            (2, |inner| Tree::Pair(Box::new(inner), 1)),
            (2, |inner| Tree::Named { inner: Box::new(inner) }),
        ];
        for (levels, wrap) in wraps {
            let tree = |count| (0..count).fold(Tree::Leaf, |inner, _| wrap(inner));
            assert_eq!(again(&tree(most / levels)), tree(most / levels));
            assert!(refusal(tree(most / levels + 1)).contains("nested deeper"));
        }
    }

    #[test]
    fn the_nesting_of_text_that_is_json_already_counts() {
        let raw = |levels: usize| {
            let text = format!("{}\"]\\\"[[\"{}", "[".repeat(levels), "]".repeat(levels));
            RawValue::from_string(text).unwrap()
        };
        let most = usize::from(super::super::checked::MAX_NESTING);
        assert!(Value::stored(raw(most)).unserialisable().is_none());
        assert!(Value::stored(raw(most + 1)).unserialisable().is_some());
        assert!(Value::new(vec![raw(most - 1)]).unserialisable().is_none());
        assert!(Value::new(vec![raw(most)]).unserialisable().is_some());
    }

    #[test]
    fn a_join_of_values_as_deep_as_they_may_be_is_stored_and_read() {
        let most = usize::from(super::super::checked::MAX_NESTING);
        let deep = nested(most, |inner| serde_json::json!([inner]));
        let joined = Value::several(vec![Value::new(deep.clone()), Value::new(1)]);
        let stored = Value::stored(joined.to_text().unwrap());
        assert_eq!(stored.parts().unwrap()[0].get::<serde_json::Value>().unwrap(), deep);
        assert_eq!(stored.get::<(serde_json::Value, u8)>().unwrap(), (deep, 1));
    }

    #[test]
    fn numbers_of_every_width_read_back_as_they_were() {
        assert_eq!(again(&[u128::MAX, 0, 1 << 64]), [u128::MAX, 0, 1 << 64]);
        assert_eq!(again(&(i128::MIN, i64::MIN, u64::MAX)), (i128::MIN, i64::MIN, u64::MAX));
        let keys = std::collections::BTreeMap::from([(u128::MAX, 'x'), (7, '"')]);
        assert_eq!(again(&keys), keys);
        let keys = std::collections::BTreeMap::from([(true, ()), (false, ())]);
        assert_eq!(again(&keys), keys);
        assert!(again(&-0.0_f64).is_sign_negative());
        // A generator of bits: every finite number of 64 and 32 bits comes back bit by bit.
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            let number = f64::from_bits(bits);
            if number.is_finite() {
                assert_eq!(again(&number).to_bits(), bits);
            }
            let half = (bits >> 32) as u32;
            let number = f32::from_bits(half);
            if number.is_finite() {
                assert_eq!(again(&number).to_bits(), half);
            }
        }
    }

    #[test]
    fn a_conversion_gives_the_same_before_and_after_a_restart() {
        let live = Value::new(1.1_f32);
        let stored = Value::stored(live.to_text().unwrap());
        assert_eq!(live.get::<f64>().unwrap().to_bits(), stored.get::<f64>().unwrap().to_bits());
        assert_eq!(live.to_json().unwrap(), stored.to_json().unwrap());
        let long = Value::new(u128::from(u64::MAX) + 1);
        assert_eq!(long.get::<i128>().unwrap(), i128::from(u64::MAX) + 1);
    }
}
