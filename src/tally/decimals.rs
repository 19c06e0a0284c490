//! 128-bit numbers as decimal strings, for serde.

use serde::{Deserialize as _, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(numbers: &[u128], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(numbers.iter().map(u128::to_string))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u128>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}
