//! The secret key of a campaign. With it, a coordinator recognises the leases that it granted, even
//! after a restart, and draws random numbers that no worker can predict.

use std::fmt;
use std::ops::Range;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::assignment::SubRangeSet;
use crate::decomposition::JobHash;

/// A 256-bit secret.
#[derive(Clone)]
pub struct CampaignKey([u8; 32]);

impl fmt::Debug for CampaignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CampaignKey(…)")
    }
}

/// The scope of a lease. It is sent to the worker as a sealed token ([`CampaignKey::seal`]): this
/// scope, followed by a message authentication code (the first 128 bits of an HMAC-SHA-256) over
/// the scope and everything else that the lease is bound to. The worker returns the token with its
/// result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) units: Range<u64>,
    pub(super) mirrored: bool,
    pub(super) sub_ranges: SubRangeSet,
}

/// The properties besides its scope that a grant is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grantee<'a> {
    pub(super) attempt: u64,
    pub(super) worker: &'a str,
    pub(super) owner: &'a str,
    pub(super) job: &'a JobHash,
    /// For a recount: the sum to be confirmed, in [thirds](crate::decomposition). A different
    /// result in its place requires a new lease.
    pub(super) thirds: Option<u128>,
}

impl CampaignKey {
    /// Creates a key from these bytes, which should be random.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Creates a key for simulations.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self(std::array::from_fn(|_| random.u8(..)))
    }

    /// Returns the authentication code of `fields` for a purpose; each field is prefixed by its
    /// length.
    pub(in crate::cluster) fn mac(&self, purpose: &str, fields: &[&[u8]]) -> [u8; 32] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for field in [purpose.as_bytes()].iter().chain(fields) {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }

    /// Returns a pseudorandom number that cannot be predicted without the key and is the same for
    /// the same fields.
    pub(super) fn draw_bits(&self, purpose: &str, fields: &[&[u8]]) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.mac(purpose, fields);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Returns such a number in [0, 1).
    pub(super) fn draw(&self, purpose: &str, fields: &[&[u8]]) -> f64 {
        // A double holds 53 bits.
        (self.draw_bits(purpose, fields) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn code(&self, range: &[u8], grantee: &Grantee<'_>) -> [u8; 16] {
        let thirds = grantee.thirds.map(u128::to_be_bytes);
        let mac = self.mac(
            "grant",
            &[
                range,
                &grantee.attempt.to_be_bytes(),
                grantee.worker.as_bytes(),
                grantee.owner.as_bytes(),
                &grantee.job.to_bytes(),
                thirds.as_ref().map_or(&[], |bytes| &bytes[..]),
            ],
        );
        std::array::from_fn(|i| mac[i])
    }

    /// Returns a grant as a sealed token: its bytes with their authentication code.
    pub(super) fn seal(&self, grant: &Grant, grantee: &Grantee<'_>) -> Vec<u8> {
        let Grant { units, mirrored, sub_ranges } = grant;
        let mut bytes = Vec::with_capacity(RANGE_BYTES + 16);
        bytes.extend(units.start.to_be_bytes());
        bytes.extend(units.end.to_be_bytes());
        bytes.push(u8::from(*mirrored));
        bytes.extend(sub_ranges.bits().to_be_bytes());
        let code = self.code(&bytes, grantee);
        bytes.extend(code);
        bytes
    }

    /// Parses a sealed token. Returns `None` unless this key sealed it for this grantee.
    pub(super) fn open(&self, bytes: &[u8], grantee: &Grantee<'_>) -> Option<Grant> {
        let (range, code) = bytes.split_at_checked(RANGE_BYTES)?;
        // Constant time is unnecessary: each guess takes a call, and 2^127 calls are infeasible.
        if code != self.code(range, grantee) {
            return None;
        }
        let (start, rest) = range.split_first_chunk::<8>()?;
        let (end, rest) = rest.split_first_chunk::<8>()?;
        let (mirrored, bits) = rest.split_first()?;
        Some(Grant {
            units: u64::from_be_bytes(*start)..u64::from_be_bytes(*end),
            mirrored: *mirrored == 1,
            sub_ranges: SubRangeSet::from_bits(u32::from_be_bytes(bits.try_into().ok()?)),
        })
    }
}

/// A sequence of pseudorandom numbers.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    /// Distinguishes this sequence from those of other runs.
    epoch: u64,
    count: u64,
}

impl Draws {
    pub(super) const fn new(epoch: u64) -> Self {
        Self { epoch, count: 0 }
    }

    fn bits(&mut self, key: &CampaignKey) -> u64 {
        self.count += 1;
        key.draw_bits("next", &[&self.epoch.to_be_bytes(), &self.count.to_be_bytes()])
    }

    /// Returns the next number, in [0, 1).
    pub(super) fn draw(&mut self, key: &CampaignKey) -> f64 {
        (self.bits(key) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws `some` distinct numbers below `all`, which is at most 32.
    pub(super) fn sample(&mut self, key: &CampaignKey, all: u32, some: u32) -> SubRangeSet {
        let mut random = fastrand::Rng::with_seed(self.bits(key));
        let chosen = random.choose_multiple(0..all.min(u32::BITS), some as usize);
        SubRangeSet::from_numbers(chosen).unwrap_or_default()
    }
}

/// Bytes of a grant without its code: first unit, end, kind, sub-ranges.
const RANGE_BYTES: usize = 8 + 8 + 1 + 4;

#[cfg(test)]
mod tests;
