//! Refutations that were checked before they are part of a certificate.

use std::collections::HashMap;

use super::{Refutation, check_refutation_within};
use crate::{Meter, ProofError};

/// A refutation that was checked.
#[derive(Clone, Debug)]
pub struct CheckedRefutation {
    n: usize,
    prefix: Vec<usize>,
    refutation: Refutation,
    work: u64,
}

impl CheckedRefutation {
    /// Checks a refutation like [`check_refutation_within`].
    ///
    /// # Errors
    /// As for [`check_refutation_within`].
    pub fn new(
        n: usize,
        prefix: &[usize],
        refutation: Refutation,
        limit: u64,
        meter: &mut Meter<'_>,
    ) -> Result<Self, ProofError> {
        let work = check_refutation_within(n, prefix, &refutation, limit, meter)?;
        Ok(Self { n, prefix: prefix.to_vec(), refutation, work })
    }
}

/// Checked refutations of boards of one size, at most one of each prefix.
#[derive(Clone, Debug)]
pub struct CheckedRefutations {
    n: usize,
    /// By prefix: the refutation and its work.
    by_prefix: HashMap<Vec<usize>, (Refutation, u64)>,
}

impl CheckedRefutations {
    /// Creates an empty set for the board of size `n`.
    pub fn new(n: usize) -> Self {
        Self { n, by_prefix: HashMap::new() }
    }

    /// Adds a refutation, which replaces that of the same prefix. One of a board of another size is
    /// ignored.
    pub fn insert(&mut self, checked: CheckedRefutation) {
        let CheckedRefutation { n, prefix, refutation, work } = checked;
        if n == self.n {
            self.by_prefix.insert(prefix, (refutation, work));
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// Returns the work for checking `tree` as the refutation of this prefix on the board of size
    /// `n`, if it was checked.
    pub(super) fn work(&self, n: usize, prefix: &[usize], tree: &[u8]) -> Option<u64> {
        let (refutation, work) = self.by_prefix.get(prefix).filter(|_| n == self.n)?;
        (refutation.as_bytes() == tree).then_some(*work)
    }
}
