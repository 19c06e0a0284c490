//! Signed results: the statement that a worker signs, and its verification.
//!
//! A worker has a key pair of its own (Ed25519, RFC 8032) besides its certificate. With a sync it
//! presents the public key, and proves that it has the private one; the certificate identifies it
//! in that call. From then on the campaign accepts only results that are signed with this key. The
//! coordinator therefore cannot invent a result of a worker, and the worker cannot deny one, which
//! matters to those who audit a published count (`docs/auditing.md`).

use std::fmt;

use data_encoding::BASE64;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::UnitId;
use super::assignment::SubRangeSet;

/// A SHA-256 over the sums of sub-ranges.
pub type Commitment = [u8; 32];

/// The public key with which the results of a worker are verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ResultKey([u8; 32]);

impl ResultKey {
    /// Creates the key with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns whether `signature` is one of `message` with this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// Returns whether `signature` is one of `statement` with this key.
    pub fn has_signed(&self, statement: &Statement<'_>, signature: &ResultSignature) -> bool {
        statement.commitment == signature.commitment
            && self.verifies(&statement.to_bytes(), &signature.signature)
    }
}

impl fmt::Display for ResultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for ResultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResultKey({self})")
    }
}

impl From<ResultKey> for String {
    fn from(key: ResultKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for ResultKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        decode(&text).map(Self).ok_or("a key has 32 bytes in base64")
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Returns the message by whose signature a worker proves that it has the private key.
pub fn possession_message(worker: &str) -> Vec<u8> {
    [b"nqueens result key v1\n", worker.as_bytes()].concat()
}

/// Returns the commitment to the sums of sub-ranges, in thirds of a solution.
pub fn commitment(sub_sums: &[u128]) -> Commitment {
    let mut digest = Sha256::new();
    sub_sums.iter().for_each(|sum| digest.update(sum.to_be_bytes()));
    digest.finalize().into()
}

/// A worker's claim about a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The unit.
    pub unit: UnitId,
    /// True if its mirror image was counted, which makes the result a recount.
    pub mirrored: bool,
    /// The sub-ranges that were counted; empty for the whole unit.
    pub sub_ranges: SubRangeSet,
    /// Their sum, in thirds of a solution.
    pub thirds: u128,
    /// The commitment to the sum of each sub-range.
    pub commitment: Commitment,
    /// The kernel.
    pub kernel: &'a str,
}

impl Statement<'_> {
    /// Returns the bytes that are signed: the name of the format and a line feed, the hash of the
    /// job (16 bytes), the unit (8), 1 for a mirror image and 0 otherwise (1), one bit for each
    /// sub-range from the lowest (4), the sum (16), the commitment (32), and the kernel (the rest).
    /// All numbers are big-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { unit, mirrored, sub_ranges, thirds, commitment, kernel } = self;
        let fields: [&[u8]; 8] = [
            b"nqueens result v1\n",
            &unit.job.to_bytes(),
            &unit.unit.to_be_bytes(),
            &[u8::from(*mirrored)],
            &sub_ranges.bits().to_be_bytes(),
            &thirds.to_be_bytes(),
            commitment,
            kernel.as_bytes(),
        ];
        fields.concat()
    }
}

/// The signature of a result. In a ledger it is the base64 of the commitment (32 bytes) followed by
/// the signature (64 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ResultSignature {
    /// The commitment to the sums of sub-ranges, which are not stored for most results.
    pub commitment: Commitment,
    /// The signature of the [`Statement`].
    pub signature: [u8; 64],
}

impl From<ResultSignature> for String {
    fn from(ResultSignature { commitment, signature }: ResultSignature) -> Self {
        BASE64.encode(&[&commitment[..], &signature].concat())
    }
}

impl TryFrom<String> for ResultSignature {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes: [u8; 96] =
            decode(&text).ok_or("a commitment and a signature have 96 bytes in base64")?;
        let mut parsed = Self { commitment: [0; 32], signature: [0; 64] };
        parsed.commitment.copy_from_slice(&bytes[..32]);
        parsed.signature.copy_from_slice(&bytes[32..]);
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;
    use crate::decomposition::JobHash;

    fn statement(kernel: &str) -> Statement<'_> {
        Statement {
            unit: UnitId { job: JobHash::from_bytes([7; 16]), unit: 3 },
            mirrored: false,
            sub_ranges: SubRangeSet::default(),
            thirds: 276,
            commitment: commitment(&[200, 76]),
            kernel,
        }
    }

    fn key_pair() -> (Ed25519KeyPair, ResultKey) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).expect("32 bytes");
        let key = pair.public_key().as_ref().try_into().expect("32 bytes");
        (pair, ResultKey::from_bytes(key))
    }

    fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> [u8; 64] {
        pair.sign(message).as_ref().try_into().expect("64 bytes")
    }

    #[test]
    fn a_signature_holds_for_one_statement_and_one_key() {
        let (pair, key) = key_pair();
        let made = statement("scalar");
        let signature = sign(&pair, &made.to_bytes());
        assert!(key.verifies(&made.to_bytes(), &signature));
        let job = JobHash::from_bytes([8; 16]);
        let others = [
            Statement { unit: UnitId { job, ..made.unit }, ..made },
            Statement { unit: UnitId { unit: 4, ..made.unit }, ..made },
            Statement { mirrored: true, ..made },
            Statement { sub_ranges: SubRangeSet::from_bits(1), ..made },
            Statement { thirds: 277, ..made },
            Statement { commitment: commitment(&[76, 200]), ..made },
            Statement { kernel: "avx2", ..made },
        ];
        for other in others {
            assert!(!key.verifies(&other.to_bytes(), &signature), "{other:?}");
        }
        assert!(!ResultKey::from_bytes([1; 32]).verifies(&made.to_bytes(), &signature));
        let mut flipped = signature;
        flipped[40] ^= 1;
        assert!(!key.verifies(&made.to_bytes(), &flipped));
    }

    /// Signatures that are out there must stay valid, so these bytes never change.
    #[test]
    fn the_signed_bytes_are_stable() {
        let bytes = statement("sets-avx2").to_bytes();
        let expected = [
            &b"nqueens result v1\n"[..],
            &[7; 16],
            &[0, 0, 0, 0, 0, 0, 0, 3],
            &[0],
            &[0; 4],
            &[[0; 14].as_slice(), &[1, 20]].concat(),
            &commitment(&[200, 76]),
            b"sets-avx2",
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(possession_message("w"), b"nqueens result key v1\nw");
    }

    #[test]
    fn keys_and_signatures_round_trip_as_text() {
        let (pair, key) = key_pair();
        assert_eq!(ResultKey::try_from(key.to_string()), Ok(key));
        let signature = ResultSignature {
            commitment: commitment(&[]),
            signature: sign(&pair, &statement("scalar").to_bytes()),
        };
        assert_eq!(ResultSignature::try_from(String::from(signature)), Ok(signature));
        for text in ["", "AAAA", "not base64"] {
            ResultKey::try_from(text.to_owned()).expect_err("too short");
            ResultSignature::try_from(text.to_owned()).expect_err("too short");
        }
    }
}
