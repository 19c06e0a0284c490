//! Bytes for serde as one string of bytes instead of a list of numbers.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(in crate::cluster) fn serialize_bytes<S: Serializer>(
    bytes: &[u8],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

pub(in crate::cluster) fn deserialize_bytes<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<u8>, D::Error> {
    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string of bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }

    from.deserialize_byte_buf(Bytes)
}
