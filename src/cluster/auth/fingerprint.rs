//! SHA-256 fingerprints, as shown to people and stored in files.

use std::fmt;

use data_encoding::BASE32_NOPAD_NOCASE;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::text::{base32_text, string_conversions};

/// The SHA-256 of a certificate, a key or a secret. Its text form has 52 letters of base 32 (a-z,
/// 2-7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The error for a text that is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 52 letters of a-z and 2-7")]
pub struct FingerprintError;

/// Encodes bytes in base 32, in lower case.
pub(super) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD_NOCASE.encode(bytes).to_ascii_lowercase()
}

/// Decodes `N` bytes from base 32, in either case.
pub(super) fn from_base32<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE32_NOPAD_NOCASE.decode(text.as_bytes()).ok()?.try_into().ok()
}

base32_text!(Fingerprint, FingerprintError);
string_conversions!(Fingerprint, FingerprintError);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
