//! Values on their way to JSON, checked while they are written: what would be read back as something else is an error
//! where it is written, and not a surprise after a restart.
//!
//! It wraps whatever serializer writes the value, so it builds nothing of its own and costs a few comparisons.

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// How deep a value may be nested. The JSON reader goes 127 levels deep; the rest is for what stands around a value: an
/// event, a join, a dead letter.
pub(super) const MAX_NESTING: u8 = 120;

/// The name under which `serde_json` hands over text that is JSON already.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A value that is checked while it is written.
pub(super) struct Checked<'v, T: ?Sized> {
    value: &'v T,
    place: Place,
}

/// Where in the text a value stands.
#[derive(Clone, Copy)]
struct Place {
    levels_left: u8,
    /// It stands in a `Some`, which is read back as `None` if the value is written as `null`.
    is_in_some: bool,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    /// A text that is JSON already.
    Raw,
    /// The key of a map.
    Key,
}

impl<'v, T: ?Sized> Checked<'v, T> {
    pub(super) const fn new(value: &'v T) -> Self {
        Self { value, place: Place { levels_left: MAX_NESTING, is_in_some: false, role: Role::Value } }
    }
}

impl<T: Serialize + ?Sized> Serialize for Checked<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Checking { inner: serializer, place: self.place })
    }
}

/// Checks a text that is JSON already.
pub(super) fn check_raw<E: Error>(text: &str) -> Result<(), E> {
    check_nesting(text, MAX_NESTING)
}

fn check_nesting<E: Error>(text: &str, levels: u8) -> Result<(), E> {
    let (mut depth, mut is_in_text, mut is_escaped) = (0_u32, false, false);
    for byte in text.bytes() {
        if is_in_text {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_in_text = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > u32::from(levels) {
                    return Err(too_deep());
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

impl Place {
    fn deeper<E: Error>(self, levels: u8) -> Result<Self, E> {
        let levels_left = self.levels_left.checked_sub(levels).ok_or_else(too_deep)?;
        Ok(Self { levels_left, is_in_some: false, role: Role::Value })
    }

    fn check_null<E: Error>(self) -> Result<(), E> {
        if self.is_in_some {
            return Err(E::custom(
                "`Some` around `None`, `()` or null cannot be stored: it would be read back as `None`",
            ));
        }
        Ok(())
    }
}

fn too_deep<E: Error>() -> E {
    E::custom(format!("it cannot be stored: it is nested deeper than {MAX_NESTING} levels"))
}

/// A serializer that checks what it passes on.
struct Checking<S> {
    inner: S,
    place: Place,
}

/// A list, map or struct that is being written; the place is that of what stands in it.
struct Nested<C> {
    inner: C,
    place: Place,
}

impl<C> Nested<C> {
    const fn child<'v, T: ?Sized>(&self, value: &'v T) -> Checked<'v, T> {
        Checked { value, place: self.place }
    }

    const fn key<'v, T: ?Sized>(&self, value: &'v T) -> Checked<'v, T> {
        Checked { value, place: Place { role: Role::Key, ..self.place } }
    }
}

/// Passes what JSON carries as it is.
macro_rules! passed {
    ($($name:ident: $Type:ty),* $(,)?) => {
        $(fn $name(self, value: $Type) -> Result<S::Ok, S::Error> {
            self.inner.$name(value)
        })*
    };
}

/// Passes numbers, if they are some.
macro_rules! finite {
    ($($name:ident: $Type:ty),* $(,)?) => {
        $(fn $name(self, value: $Type) -> Result<S::Ok, S::Error> {
            if !value.is_finite() {
                return Err(S::Error::custom(format!("the number {value} cannot be stored: it is not finite")));
            }
            self.inner.$name(value)
        })*
    };
}

impl<S: Serializer> Serializer for Checking<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Nested<S::SerializeSeq>;
    type SerializeTuple = Nested<S::SerializeTuple>;
    type SerializeTupleStruct = Nested<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Nested<S::SerializeTupleVariant>;
    type SerializeMap = Nested<S::SerializeMap>;
    type SerializeStruct = Nested<S::SerializeStruct>;
    type SerializeStructVariant = Nested<S::SerializeStructVariant>;

    passed! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_char: char,
    }

    finite! {
        serialize_f32: f32,
        serialize_f64: f64,
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        match self.place.role {
            Role::Value => {}
            Role::Raw => {
                check_nesting(text, self.place.levels_left)?;
                if text.trim_ascii() == "null" {
                    self.place.check_null()?;
                }
            }
            Role::Key if text == RAW_VALUE => {
                return Err(S::Error::custom(format!(
                    "the key `{text}` cannot be stored: it means something to the reader"
                )));
            }
            Role::Key => {}
        }
        self.inner.serialize_str(text)
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<S::Ok, S::Error> {
        self.place.deeper::<S::Error>(1)?;
        self.inner.serialize_bytes(bytes)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.place.check_null()?;
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&Checked { value, place: Place { is_in_some: true, ..self.place } })
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.place.check_null()?;
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.place.check_null()?;
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_struct(name, &Checked { value, place: self.place })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let place = self.place.deeper::<S::Error>(1)?;
        self.inner.serialize_newtype_variant(name, index, variant, &Checked { value, place })
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(Nested { place: self.place.deeper::<S::Error>(1)?, inner: self.inner.serialize_seq(len)? })
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(Nested { place: self.place.deeper::<S::Error>(1)?, inner: self.inner.serialize_tuple(len)? })
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let place = self.place.deeper::<S::Error>(1)?;
        Ok(Nested { place, inner: self.inner.serialize_tuple_struct(name, len)? })
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let place = self.place.deeper::<S::Error>(2)?;
        Ok(Nested { place, inner: self.inner.serialize_tuple_variant(name, index, variant, len)? })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(Nested { place: self.place.deeper::<S::Error>(1)?, inner: self.inner.serialize_map(len)? })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        let place = if name == RAW_VALUE {
            Place { role: Role::Raw, ..self.place }
        } else {
            self.place.deeper::<S::Error>(1)?
        };
        Ok(Nested { place, inner: self.inner.serialize_struct(name, len)? })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let place = self.place.deeper::<S::Error>(2)?;
        Ok(Nested { place, inner: self.inner.serialize_struct_variant(name, index, variant, len)? })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// What is written one after the other.
macro_rules! listed {
    ($($Trait:ident $name:ident),* $(,)?) => {
        $(impl<C: $Trait> $Trait for Nested<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                let child = self.child(value);
                self.inner.$name(&child)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        })*
    };
}

listed! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

/// What is written by its names.
macro_rules! named {
    ($($Trait:ident),* $(,)?) => {
        $(impl<C: $Trait> $Trait for Nested<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), C::Error> {
                let child = self.child(value);
                self.inner.serialize_field(name, &child)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
                self.inner.skip_field(name)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        })*
    };
}

named!(SerializeStruct, SerializeStructVariant);

// Which types may be keys is checked by the serializer of JSON itself: texts, and what is written as one and read back
// from it.
impl<C: SerializeMap> SerializeMap for Nested<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        let key = self.key(key);
        self.inner.serialize_key(&key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let child = self.child(value);
        self.inner.serialize_value(&child)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), C::Error> {
        let (key, child) = (self.key(key), self.child(value));
        self.inner.serialize_entry(&key, &child)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}
