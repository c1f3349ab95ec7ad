//! Instants as RFC 3339 in the files of jobs.

use serde::{Deserialize as _, Deserializer, Serializer};

use crate::time::Timestamp;

pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    Timestamp::parse(&text).map_err(serde::de::Error::custom)
}

/// The same for an instant that may be missing.
pub(super) mod option {
    use super::{Deserializer, Serializer, Timestamp};
    use serde::Deserialize as _;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(in crate::job) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.collect_str(at),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::job) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.map(|text| Timestamp::parse(&text).map_err(serde::de::Error::custom)).transpose()
    }
}
