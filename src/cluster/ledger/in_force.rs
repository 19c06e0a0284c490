//! The results of a job that are in force.

use crate::cluster::storage::Record;

/// The number of the entry with the result in force, and whether a recount confirmed it. Packed
/// into one word, since there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InForce(u64);

impl InForce {
    pub(super) const fn new(entry: u64, verified: bool) -> Self {
        Self(entry << 1 | verified as u64)
    }

    pub(super) const fn entry(self) -> u64 {
        self.0 >> 1
    }

    pub(super) const fn verified(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Record for InForce {
    const BYTES: usize = 8;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }
}
