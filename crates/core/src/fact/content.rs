//! A value handed from one type to the other in memory, with all that serde knows of it: numbers of any width and kind,
//! `Some(None)`, keys of any type. Unlike JSON it changes nothing.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::checked::RAW_VALUE;

type Error = serde_json::Error;

/// A value as a tree.
#[derive(Debug)]
pub(super) enum Content {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    SignedLong(i128),
    UnsignedLong(u128),
    Float(f32),
    Double(f64),
    Char(char),
    Text(String),
    /// The name of a field or a variant.
    Name(&'static str),
    Bytes(Vec<u8>),
    Nothing,
    Some(Box<Self>),
    Unit,
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Variant(&'static str, Box<Self>),
}

/// Returns a value as a tree.
pub(super) fn content_of<T: Serialize + ?Sized>(value: &T) -> Result<Content, Error> {
    value.serialize(Writer)
}

struct Writer;

/// A list, map or variant that is being written.
struct Filling<C> {
    parts: Vec<C>,
    variant: Option<&'static str>,
    key: Option<Content>,
}

impl<C> Filling<C> {
    fn new(len: usize, variant: Option<&'static str>) -> Self {
        // A type may say anything of its length.
        Self { parts: Vec::with_capacity(len.min(4096)), variant, key: None }
    }

    fn filled(self, whole: impl FnOnce(Vec<C>) -> Content) -> Content {
        let content = whole(self.parts);
        match self.variant {
            None => content,
            Some(variant) => Content::Variant(variant, Box::new(content)),
        }
    }
}

type Listed = Filling<Content>;
type Mapped = Filling<(Content, Content)>;

macro_rules! written {
    ($($name:ident($value:ident: $Type:ty) $content:expr),* $(,)?) => {
        $(fn $name(self, $value: $Type) -> Result<Content, Error> {
            Ok($content)
        })*
    };
}

impl Serializer for Writer {
    type Ok = Content;
    type Error = Error;
    type SerializeSeq = Listed;
    type SerializeTuple = Listed;
    type SerializeTupleStruct = Listed;
    type SerializeTupleVariant = Listed;
    type SerializeMap = Mapped;
    type SerializeStruct = Mapped;
    type SerializeStructVariant = Mapped;

    written! {
        serialize_bool(value: bool) Content::Bool(value),
        serialize_i8(value: i8) Content::Signed(value.into()),
        serialize_i16(value: i16) Content::Signed(value.into()),
        serialize_i32(value: i32) Content::Signed(value.into()),
        serialize_i64(value: i64) Content::Signed(value),
        serialize_i128(value: i128) i64::try_from(value).map_or(Content::SignedLong(value), Content::Signed),
        serialize_u8(value: u8) Content::Unsigned(value.into()),
        serialize_u16(value: u16) Content::Unsigned(value.into()),
        serialize_u32(value: u32) Content::Unsigned(value.into()),
        serialize_u64(value: u64) Content::Unsigned(value),
        serialize_u128(value: u128) u64::try_from(value).map_or(Content::UnsignedLong(value), Content::Unsigned),
        serialize_f32(value: f32) Content::Float(value),
        serialize_f64(value: f64) Content::Double(value),
        serialize_char(value: char) Content::Char(value),
        serialize_str(value: &str) Content::Text(value.to_owned()),
        serialize_bytes(value: &[u8]) Content::Bytes(value.to_vec()),
    }

    fn serialize_none(self) -> Result<Content, Error> {
        Ok(Content::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Content, Error> {
        Ok(Content::Some(Box::new(value.serialize(Self)?)))
    }

    fn serialize_unit(self) -> Result<Content, Error> {
        Ok(Content::Unit)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Content, Error> {
        Ok(Content::Unit)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Content, Error> {
        Ok(Content::Name(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Content, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Content, Error> {
        Ok(Content::Variant(variant, Box::new(value.serialize(self)?)))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Listed, Error> {
        Ok(Filling::new(len.unwrap_or(0), None))
    }

    fn serialize_tuple(self, len: usize) -> Result<Listed, Error> {
        Ok(Filling::new(len, None))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Listed, Error> {
        Ok(Filling::new(len, None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Listed, Error> {
        Ok(Filling::new(len, Some(variant)))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Mapped, Error> {
        Ok(Filling::new(len.unwrap_or(0), None))
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Mapped, Error> {
        Ok(Filling::new(len, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Mapped, Error> {
        Ok(Filling::new(len, Some(variant)))
    }
}

macro_rules! listed {
    ($($Trait:ident $name:ident),* $(,)?) => {
        $(impl $Trait for Listed {
            type Ok = Content;
            type Error = Error;

            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.parts.push(value.serialize(Writer)?);
                Ok(())
            }

            fn end(self) -> Result<Content, Error> {
                Ok(self.filled(Content::List))
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

macro_rules! named {
    ($($Trait:ident),* $(,)?) => {
        $(impl $Trait for Mapped {
            type Ok = Content;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.parts.push((Content::Name(name), value.serialize(Writer)?));
                Ok(())
            }

            fn end(self) -> Result<Content, Error> {
                Ok(self.filled(Content::Map))
            }
        })*
    };
}

named!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Mapped {
    type Ok = Content;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(key.serialize(Writer)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key =
            self.key.take().ok_or_else(|| <Error as serde::ser::Error>::custom("a value without a key"))?;
        self.parts.push((key, value.serialize(Writer)?));
        Ok(())
    }

    fn end(self) -> Result<Content, Error> {
        Ok(self.filled(Content::Map))
    }
}

impl IntoDeserializer<'_, Error> for Content {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Content {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::SignedLong(value) => visitor.visit_i128(value),
            Self::UnsignedLong(value) => visitor.visit_u128(value),
            Self::Float(value) => visitor.visit_f32(value),
            Self::Double(value) => visitor.visit_f64(value),
            Self::Char(value) => visitor.visit_char(value),
            Self::Text(value) => visitor.visit_string(value),
            Self::Name(value) => visitor.visit_borrowed_str(value),
            Self::Bytes(value) => visitor.visit_byte_buf(value),
            Self::Nothing => visitor.visit_none(),
            Self::Some(value) => visitor.visit_some(*value),
            Self::Unit => visitor.visit_unit(),
            Self::List(values) => {
                let mut list = SeqDeserializer::new(values.into_iter());
                let value = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(value)
            }
            Self::Map(entries) => {
                let mut map = MapDeserializer::new(entries.into_iter());
                let value = visitor.visit_map(&mut map)?;
                map.end()?;
                Ok(value)
            }
            Self::Variant(name, value) => {
                visitor.visit_map(MapDeserializer::new(std::iter::once((Self::Name(name), *value))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Nothing | Self::Some(_) => self.deserialize_any(visitor),
            Self::Unit => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.into_iter())),
            value => value.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW_VALUE { self.deserialize_any(visitor) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Variant(name, value) => visitor.visit_enum(Chosen { name, value: *value }),
            Self::Name(name) => visitor.visit_enum(name.into_deserializer()),
            Self::Text(name) => visitor.visit_enum(name.into_deserializer()),
            value => value.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A variant with what stands in it.
struct Chosen {
    name: &'static str,
    value: Content,
}

impl<'de> EnumAccess<'de> for Chosen {
    type Error = Error;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.value))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        <()>::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
}
