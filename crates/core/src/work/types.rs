//! The types of ports: what a producer gives and a consumer takes, as far as it matters for fitting them
//! together.

use std::fmt;

use serde::Serialize;

/// A type as a port has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortType {
    /// Fits everything.
    Any,
    /// A boolean.
    Boolean,
    /// A whole number of any width.
    Integer,
    /// A number with a fraction.
    Float,
    /// A text.
    Text,
    /// Nothing but its presence.
    Unit,
    /// A value or none.
    Optional(Box<Self>),
    /// A list.
    List(Box<Self>),
    /// Several values in order.
    Tuple(Vec<Self>),
    /// A type of the user's, by its path.
    Named(String),
    /// One of several.
    OneOf(Vec<Self>),
}

impl PortType {
    /// Returns the port type of a Rust type.
    #[must_use]
    pub fn of<T>() -> Self {
        Self::of_name(std::any::type_name::<T>())
    }

    /// Reads the name that the compiler gives a type.
    pub(crate) fn of_name(name: &str) -> Self {
        let name = name.trim().trim_start_matches('&').trim_start_matches("mut ");
        match name {
            "bool" => return Self::Boolean,
            "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128"
            | "usize" => {
                return Self::Integer;
            }
            "f32" | "f64" => return Self::Float,
            "str" | "char" | "alloc::string::String" => return Self::Text,
            "()" => return Self::Unit,
            "serde_json::value::Value" => return Self::Any,
            _ => {}
        }
        if let Some(inner) = generic(name, "alloc::vec::Vec<") {
            return Self::List(Box::new(Self::of_name(inner)));
        }
        if let Some(inner) = generic(name, "core::option::Option<") {
            return Self::Optional(Box::new(Self::of_name(inner)));
        }
        if let Some(inner) =
            name.strip_prefix("core::result::Result<").and_then(|rest| rest.strip_suffix('>'))
        {
            return split(inner).first().map_or(Self::Any, |value| Self::of_name(value));
        }
        if let Some(inner) = name.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            return Self::Tuple(split(inner).into_iter().map(Self::of_name).collect());
        }
        Self::Named(name.to_owned())
    }

    /// Tells whether what this port gives can be taken by `consumer`.
    #[must_use]
    pub fn fits(&self, consumer: &Self) -> bool {
        match (self, consumer) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::OneOf(some), other) => some.iter().any(|one| one.fits(other)),
            (one, Self::OneOf(some)) => some.iter().any(|other| one.fits(other)),
            (Self::Integer, Self::Float) => true,
            (Self::Optional(one), Self::Optional(other)) | (Self::List(one), Self::List(other)) => {
                one.fits(other)
            }
            (one, Self::Optional(other)) => one.fits(other),
            (Self::List(one), Self::Tuple(others)) => others.iter().all(|other| one.fits(other)),
            (Self::Tuple(ones), Self::List(other)) => ones.iter().all(|one| one.fits(other)),
            (Self::Tuple(ones), Self::Tuple(others)) => {
                ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| one.fits(other))
            }
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, types: &[Self], separator: &str| {
            for (index, one) in types.iter().enumerate() {
                let before = if index == 0 { "" } else { separator };
                write!(f, "{before}{one}")?;
            }
            Ok(())
        };
        match self {
            Self::Any => f.write_str("any"),
            Self::Boolean => f.write_str("boolean"),
            Self::Integer => f.write_str("integer"),
            Self::Float => f.write_str("float"),
            Self::Text => f.write_str("text"),
            Self::Unit => f.write_str("unit"),
            Self::Optional(inner) => write!(f, "optional<{inner}>"),
            Self::List(inner) => write!(f, "list<{inner}>"),
            Self::Tuple(types) => {
                f.write_str("(")?;
                list(f, types, ", ")?;
                f.write_str(")")
            }
            Self::Named(name) => f.write_str(name),
            Self::OneOf(types) => list(f, types, " or "),
        }
    }
}

impl Serialize for PortType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns what stands between the brackets of a generic type with one argument.
fn generic<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let inner = name.strip_prefix(prefix)?.strip_suffix('>')?;
    split(inner).first().copied()
}

/// Splits a list of types at its own commas, not at those of types inside.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Order;

    #[test]
    fn rust_types_become_port_types() {
        assert_eq!(PortType::of::<u8>(), PortType::Integer);
        assert_eq!(PortType::of::<Vec<Vec<String>>>().to_string(), "list<list<text>>");
        assert_eq!(PortType::of::<(i32, Option<f64>)>().to_string(), "(integer, optional<float>)");
        assert_eq!(PortType::of::<Result<bool, String>>(), PortType::Boolean);
        assert_eq!(PortType::of::<serde_json::Value>(), PortType::Any);
        assert!(PortType::of::<Order>().to_string().ends_with("::Order"));
        assert_eq!(
            PortType::of::<std::collections::BTreeMap<String, i32>>().to_string(),
            "alloc::collections::btree::map::BTreeMap<alloc::string::String, i32>"
        );
    }

    #[test]
    fn types_fit_or_do_not() {
        use PortType::{Any, Float, Integer, OneOf, Text};
        let list = |inner: PortType| PortType::List(Box::new(inner));
        for (producer, consumer, fits) in [
            (Integer, Text, false),
            (Integer, Integer, true),
            (Integer, Float, true),
            (Float, Integer, false),
            (Any, Text, true),
            (list(Integer), list(Text), false),
            (list(Integer), list(Any), true),
            (OneOf(vec![Integer, Text]), OneOf(vec![Text, Float]), true),
            (OneOf(vec![Integer]), OneOf(vec![Text]), false),
            (list(Integer), PortType::Tuple(vec![Integer, Integer]), true),
            (PortType::Tuple(vec![Integer, Text]), list(Integer), false),
        ] {
            assert_eq!(producer.fits(&consumer), fits, "{producer} -> {consumer}");
        }
    }
}
