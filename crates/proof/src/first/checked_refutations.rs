//! Refutations that were checked before the certificate is made.

use std::collections::HashMap;

use super::{Refutation, check_refutation_within};
use crate::{Meter, ProofError};

/// A refutation that has passed its check.
#[derive(Clone, Debug)]
pub struct CheckedRefutation {
    n: usize,
    prefix: Vec<usize>,
    refutation: Refutation,
    work: u64,
}

impl CheckedRefutation {
    /// Checks a refutation like [`check_refutation_within`], with at most `limit` work: 1 for each
    /// placed queen, 500 for each dual bound.
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
pub struct CheckedRefutationSet {
    n: usize,
    /// By prefix: the refutation and its work.
    by_prefix: HashMap<Vec<usize>, (Refutation, u64)>,
}

impl CheckedRefutationSet {
    /// Creates an empty set for the board of size `n`.
    pub fn new(n: usize) -> Self {
        Self { n, by_prefix: HashMap::new() }
    }

    /// Adds a refutation and replaces one of the same prefix. Ignores those for other board sizes.
    pub fn insert(&mut self, checked: CheckedRefutation) {
        let CheckedRefutation { n, prefix, refutation, work } = checked;
        if n == self.n {
            self.by_prefix.insert(prefix, (refutation, work));
        }
    }

    /// Returns the number of refutations.
    pub fn len(&self) -> usize {
        self.by_prefix.len()
    }

    /// Returns the refutation of this prefix, or `None` if there is none.
    pub fn get(&self, prefix: &[usize]) -> Option<&Refutation> {
        self.by_prefix.get(prefix).map(|(refutation, _)| refutation)
    }

    /// Returns the prefixes and their refutations, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (&[usize], &Refutation)> {
        self.by_prefix.iter().map(|(prefix, (refutation, _))| (prefix.as_slice(), refutation))
    }

    /// Keeps the refutations of the prefixes for which `is_kept` returns true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&[usize]) -> bool) {
        self.by_prefix.retain(|prefix, _| is_kept(prefix));
    }

    /// Returns whether the set is empty.
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
