//! JSON read field by field: exact integers, no silent conversions, no recursion, no copies.
//!
//! Serde's derived readers answer "invalid type at line 1"; people need the name of the field that is wrong,
//! checked in a fixed order, and integers beyond 2^53 kept exactly. So an object is split into raw fields
//! first, and each is read when its turn comes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One field as it was given. Reading a field consumes it, so that what nobody asked for can be refused.
#[derive(Debug)]
pub(crate) enum Field<T> {
    Given(T),
    /// Absent or null.
    Missing,
    /// There, but not of its type; says what it must be. Boxed, because it is rare and fields are moved often.
    Wrong(Box<Cow<'static, str>>),
}

/// The fields of one object, in the order of the text.
pub(crate) struct Fields<'a> {
    entries: Vec<(Cow<'a, str>, Option<&'a RawValue>)>,
    repeated: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> {
    /// Splits the text of an object; `None` when the text is some other JSON value.
    pub(crate) fn split(raw: &'a RawValue) -> Option<Self> {
        if !raw.get().starts_with('{') {
            return None;
        }
        // Invariant: a raw value is valid JSON, and this one is an object.
        serde_json::from_str(raw.get()).ok()
    }

    /// Takes the raw value of a field; null counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let entry = self.entries.iter_mut().find(|(key, value)| value.is_some() && key == name)?;
        entry.1.take().filter(|raw| raw.get() != "null")
    }

    /// Tells whether the object has the field at all, null or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, _)| key == name)
    }

    /// Returns the names that were given twice, or that nobody took, and why they are refused.
    pub(crate) fn surplus(self) -> impl Iterator<Item = (Cow<'a, str>, &'static str)> {
        let twice = self.repeated;
        let left = self.entries.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name);
        let unknown = {
            let twice = twice.clone();
            left.filter(move |name| twice.as_ref() != Some(name)).map(|name| (name, "is not a known field"))
        };
        twice.map(|name| (name, "is given twice")).into_iter().chain(unknown)
    }

    /// Returns the fields as they stand, for readers of whole trees, or the key that is there twice.
    pub(crate) fn into_entries(
        self,
    ) -> Result<impl Iterator<Item = (Cow<'a, str>, &'a RawValue)>, Cow<'a, str>> {
        match self.repeated {
            Some(key) => Err(key),
            None => Ok(self.entries.into_iter().filter_map(|(key, value)| Some((key, value?)))),
        }
    }

    pub(crate) fn u128(&mut self, name: &str) -> Field<u128> {
        self.read(name, |raw| {
            let text = raw.get();
            let digits = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
            whole_number(digits).ok_or(Cow::Borrowed(
                "must be an integer or a decimal string from 1 to 340282366920938463463374607431768211455",
            ))
        })
    }

    /// Reads an unsigned integer of a narrower type.
    pub(crate) fn uint<T: TryFrom<u128>>(&mut self, name: &str, wanted: &'static str) -> Field<T> {
        self.read(name, |raw| uint(raw, wanted))
    }

    /// Reads a list of unsigned integers of a narrower type.
    pub(crate) fn uints<T: TryFrom<u128>>(&mut self, name: &str, wanted: &'static str) -> Field<Vec<T>> {
        self.read(name, |raw| {
            let items = items(raw).ok_or_else(|| mismatch("must be a list", raw))?;
            items.into_iter().map(|item| uint(item, wanted)).collect()
        })
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Field<bool> {
        self.read(name, |raw| match raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(mismatch("must be true or false", raw)),
        })
    }

    pub(crate) fn string(&mut self, name: &str) -> Field<Cow<'a, str>> {
        self.read(name, |raw| match string(raw) {
            Some(text) => Ok(text),
            None if raw.get().starts_with('"') => Err(Cow::Borrowed(BAD_ESCAPE)),
            None => Err(mismatch("must be a string", raw)),
        })
    }

    pub(crate) fn object(&mut self, name: &str) -> Field<Self> {
        self.read(name, |raw| Fields::split(raw).ok_or_else(|| mismatch(MUST_BE_AN_OBJECT, raw)))
    }

    fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, Cow<'static, str>>,
    ) -> Field<T> {
        match self.take(name).map(read) {
            None => Field::Missing,
            Some(Ok(value)) => Field::Given(value),
            Some(Err(reason)) => Field::Wrong(Box::new(reason)),
        }
    }
}

/// Returns the text of a string value, borrowed unless it has escapes; `None` when it is no string.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Returns the items of a list; `None` when it is no list.
pub(crate) fn items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str::<Items<'_>>(raw.get()).ok().map(|items| items.0)
}

/// What is said of a string such as `"\ud800"`.
pub(crate) const BAD_ESCAPE: &str = "has an escape sequence that stands for no text";
pub(crate) const MUST_BE_AN_OBJECT: &str = "must be an object";

/// Says what a value must be and what it is instead.
pub(crate) fn mismatch(wanted: &str, raw: &RawValue) -> Cow<'static, str> {
    let text = raw.get();
    let found = match text.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'-') => "a negative number",
        _ if text.bytes().all(|b| b.is_ascii_digit()) => "an integer",
        _ => "a number with a fraction or exponent",
    };
    if found == "an object" && wanted == MUST_BE_AN_OBJECT {
        // It is one, but it could not be split.
        return Cow::Borrowed("has a key with an escape sequence that stands for no text");
    }
    Cow::Owned(format!("{wanted}, found {found}"))
}

fn uint<T: TryFrom<u128>>(raw: &RawValue, wanted: &'static str) -> Result<T, Cow<'static, str>> {
    if !raw.get().bytes().all(|b| b.is_ascii_digit()) {
        return Err(mismatch(wanted, raw));
    }
    whole_number(raw.get()).and_then(|n| T::try_from(n).ok()).ok_or(Cow::Borrowed(wanted))
}

/// Reads digits and nothing else.
fn whole_number(text: &str) -> Option<u128> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields { entries: Vec::with_capacity(16), repeated: None };
                while let Some(Key(key)) = map.next_key()? {
                    let value: &'de RawValue = map.next_value()?;
                    fields.entries.push((key, Some(value)));
                }
                fields.repeated = first_repeated(&fields.entries);
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Returns a key that stands there twice, without costing the square of a large object.
fn first_repeated<'a, V>(entries: &[(Cow<'a, str>, V)]) -> Option<Cow<'a, str>> {
    const SMALL: usize = 32;
    if entries.len() <= SMALL {
        let twice =
            |(index, (key, _)): &(usize, &(Cow<'a, str>, V))| entries[..*index].iter().any(|(k, _)| k == key);
        return entries.iter().enumerate().find(twice).map(|(_, (key, _))| key.clone());
    }
    let mut keys: Vec<&Cow<'a, str>> = entries.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// A key that is borrowed from the text unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor;
        impl<'de> Visitor<'de> for ItemsVisitor {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<&'de RawValue>()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(ItemsVisitor)
    }
}
