//! A `Result` whose error is a serde type, such as a `String`. Rust has no bound that tells it from other serde types, so
//! it is kept whole, and what stands in its `Ok` is found by the calls that its `Serialize` makes. No JSON is made of it
//! in memory.

use std::any::{Any, type_name};
use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde::ser::{Error, Impossible, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::checked::Checked;
use super::content::{Content, content_of};
use super::value::Value;
use crate::policy::Failure;

/// A `Result` that is `Ok`, as what stands in it.
pub(super) struct Succeeded {
    whole: Box<dyn Any + Send + Sync>,
    held_type: &'static str,
    text: fn(&dyn Any) -> Result<Box<RawValue>, serde_json::Error>,
    content: fn(&dyn Any, &'static str) -> Option<Content>,
}

impl Succeeded {
    pub(super) fn new<T: Serialize + Send + Sync + 'static>(result: T) -> Self {
        Self {
            whole: Box::new(result),
            held_type: type_name::<T>(),
            text: |whole| picked::<T, _>(whole, AsText),
            content: |whole, wanted| picked::<T, _>(whole, AsContent { wanted }).ok().flatten(),
        }
    }

    pub(super) const fn held_type(&self) -> &'static str {
        self.held_type
    }

    /// Returns what stands in the `Ok`, where the type of the error is one that can be named here.
    pub(super) fn held<T: 'static>(&self) -> Option<&T> {
        self.whole.downcast_ref::<Result<T, String>>().and_then(|result| result.as_ref().ok())
    }

    /// Returns what stands in the `Ok`, if it has that type.
    pub(super) fn get<T: DeserializeOwned>(&self) -> Option<T> {
        (self.content)(self.whole.as_ref(), type_name::<T>()).and_then(|content| T::deserialize(content).ok())
    }
}

impl Serialize for Succeeded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.text)(self.whole.as_ref()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

fn picked<T: Serialize + 'static, P: Pick>(whole: &dyn Any, pick: P) -> Result<P::Picked, serde_json::Error> {
    let whole = whole.downcast_ref::<T>().expect("invariant: it was made of this type");
    whole.serialize(Picking(pick))
}

/// Makes a `Result` whose error is a serde type a value or a failure.
pub(crate) fn split_result<T: Serialize + Send + Sync + 'static>(result: T) -> Result<Value, Failure> {
    match result.serialize(Picking(IsOk)) {
        Ok(true) => Ok(Value::succeeded(result)),
        Ok(false) => Err(result.serialize(Picking(AsFailure)).unwrap_or_else(|error| {
            Failure::new(format!("it failed with a {} that cannot be shown: {error}", type_name::<T>()))
        })),
        // Not the one of the standard library, for all its name.
        Err(_) => Ok(Value::new(result)),
    }
}

/// What is done with what stands in an `Ok` or `Err`.
trait Pick {
    type Picked;

    fn pick<V: Serialize + ?Sized>(self, variant: &str, value: &V)
    -> Result<Self::Picked, serde_json::Error>;
}

struct IsOk;

impl Pick for IsOk {
    type Picked = bool;

    fn pick<V: Serialize + ?Sized>(self, variant: &str, _: &V) -> Result<bool, serde_json::Error> {
        match variant {
            "Ok" => Ok(true),
            "Err" => Ok(false),
            _ => Err(no_result()),
        }
    }
}

struct AsText;

impl Pick for AsText {
    type Picked = Box<RawValue>;

    fn pick<V: Serialize + ?Sized>(self, _: &str, value: &V) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&Checked::new(value))
    }
}

/// Gives the value on to a reader of the type of that name; `None` if it has another one, which is read from JSON as after
/// a restart.
struct AsContent {
    wanted: &'static str,
}

impl Pick for AsContent {
    type Picked = Option<Content>;

    fn pick<V: Serialize + ?Sized>(self, _: &str, value: &V) -> Result<Option<Content>, serde_json::Error> {
        if type_name::<V>() == self.wanted { content_of(value).map(Some) } else { Ok(None) }
    }
}

struct AsFailure;

impl Pick for AsFailure {
    type Picked = Failure;

    fn pick<V: Serialize + ?Sized>(self, _: &str, error: &V) -> Result<Failure, serde_json::Error> {
        Ok(Failure::new(match serde_json::to_value(error)? {
            serde_json::Value::String(message) => message,
            other => other.to_string(),
        }))
    }
}

/// A serializer that takes what stands in a variant, and nothing else.
struct Picking<P>(P);

fn no_result() -> serde_json::Error {
    serde_json::Error::custom("it is no `Result`")
}

/// What a `Result` is not.
macro_rules! refused {
    ($($name:ident($($Type:ty),*) -> $Ok:ty),* $(,)?) => {
        $(fn $name(self, $(_: $Type),*) -> Result<$Ok, serde_json::Error> {
            Err(no_result())
        })*
    };
}

type Never<P> = Impossible<P, serde_json::Error>;

impl<P: Pick> Serializer for Picking<P> {
    type Ok = P::Picked;
    type Error = serde_json::Error;
    type SerializeSeq = Never<P::Picked>;
    type SerializeTuple = Never<P::Picked>;
    type SerializeTupleStruct = Never<P::Picked>;
    type SerializeTupleVariant = Never<P::Picked>;
    type SerializeMap = Never<P::Picked>;
    type SerializeStruct = Never<P::Picked>;
    type SerializeStructVariant = Never<P::Picked>;

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<P::Picked, serde_json::Error> {
        self.0.pick(variant, value)
    }

    refused! {
        serialize_bool(bool) -> P::Picked,
        serialize_i8(i8) -> P::Picked,
        serialize_i16(i16) -> P::Picked,
        serialize_i32(i32) -> P::Picked,
        serialize_i64(i64) -> P::Picked,
        serialize_u8(u8) -> P::Picked,
        serialize_u16(u16) -> P::Picked,
        serialize_u32(u32) -> P::Picked,
        serialize_u64(u64) -> P::Picked,
        serialize_f32(f32) -> P::Picked,
        serialize_f64(f64) -> P::Picked,
        serialize_char(char) -> P::Picked,
        serialize_str(&str) -> P::Picked,
        serialize_bytes(&[u8]) -> P::Picked,
        serialize_none() -> P::Picked,
        serialize_unit() -> P::Picked,
        serialize_unit_struct(&'static str) -> P::Picked,
        serialize_unit_variant(&'static str, u32, &'static str) -> P::Picked,
        serialize_seq(Option<usize>) -> Never<P::Picked>,
        serialize_tuple(usize) -> Never<P::Picked>,
        serialize_tuple_struct(&'static str, usize) -> Never<P::Picked>,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never<P::Picked>,
        serialize_map(Option<usize>) -> Never<P::Picked>,
        serialize_struct(&'static str, usize) -> Never<P::Picked>,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never<P::Picked>,
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<P::Picked, serde_json::Error> {
        Err(no_result())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<P::Picked, serde_json::Error> {
        Err(no_result())
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<P::Picked, serde_json::Error> {
        Err(no_result())
    }
}
