//! Identities: 128 bits each, made by hashing what a thing comes from, so that equal causes have equal ids in
//! every process.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Defines an id of 128 bits that is shown as its prefix and 32 hexadecimal digits.
macro_rules! id_type {
    ($(#[$meta:meta])* pub $Name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(u128);

        impl $Name {
            pub(crate) fn hashed(parts: &[&[u8]]) -> Self {
                Self(first_bits(&hash_of(parts)))
            }

            /// Returns the bytes.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_le_bytes()
            }

            /// Reads what is shown.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let digits = text.strip_prefix(concat!($prefix, "_"))?;
                if digits.len() != 32 {
                    return None;
                }
                u128::from_str_radix(digits, 16).ok().map(Self)
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{:032x}"), self.0)
            }
        }

        impl fmt::Debug for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no id")))
            }
        }
    };
}

id_type! {
    /// One fact: an event, not a value, so equal values are two facts.
    pub FactId, "fact"
}

id_type! {
    /// One node of a definition: its kind, name, version and ports.
    pub NodeId, "node"
}

id_type! {
    /// One piece of work: a node and the fact that woke it, in a run. Equal over attempts and restarts.
    pub RunnableId, "work"
}

impl FactId {
    /// Returns the id of an input of a run, which are counted from zero.
    pub(crate) fn of_input(run: &RunId, sequence: u32) -> Self {
        Self::hashed(&[b"input\0", run.as_str().as_bytes(), b"\0", &sequence.to_le_bytes()])
    }

    /// Returns the id of what a node made of a fact. It fits into one block of the hash, which is what most of
    /// a run's time would go into otherwise.
    pub(crate) fn of_parts(node: [u8; 16], parent: [u8; 16], emission: u32) -> Self {
        let mut block = [0; 36];
        block[..16].copy_from_slice(&node);
        block[16..32].copy_from_slice(&parent);
        block[32..].copy_from_slice(&emission.to_le_bytes());
        Self(first_bits(&blake3::hash(&block)))
    }
}

/// Returns the hash of parts one after the other. Few bytes are hashed at once, which gives the same and
/// takes a fraction of the time.
fn hash_of(parts: &[&[u8]]) -> blake3::Hash {
    let mut block = [0; 128];
    let mut filled = 0;
    for part in parts {
        let Some(place) = block.get_mut(filled..filled + part.len()) else {
            let mut hasher = blake3::Hasher::new();
            for part in parts {
                hasher.update(part);
            }
            return hasher.finalize();
        };
        place.copy_from_slice(part);
        filled += part.len();
    }
    blake3::hash(&block[..filled])
}

fn first_bits(hash: &blake3::Hash) -> u128 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_le_bytes(bytes)
}

/// One run, by the name that its starter chose.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// Names a run.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for RunId {
    fn from(id: String) -> Self {
        Self::new(&id)
    }
}

impl From<&str> for RunId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_bytes_and_not_on_how_many_they_are() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in [0, 1, 2, 64, 127, 128, 129, 256] {
            for cut in [0, len / 3, len] {
                let parts = [&bytes[..cut], &bytes[cut..len]];
                assert_eq!(hash_of(&parts), blake3::hash(&bytes[..len]), "{len} bytes, cut at {cut}");
            }
        }
    }
}
