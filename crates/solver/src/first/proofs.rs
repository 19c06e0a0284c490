//! Proofs of earlier queries, for later ones.

use std::sync::Arc;

use super::known_multipliers::RecentMultipliers;
use super::probing::Eliminations;
use super::width::Width;

/// Proofs of earlier queries that several solvers share. No code that locks them can panic half-way
/// through a change.
pub(super) struct Proofs<W: Width> {
    pub(super) multipliers: RecentMultipliers,
    /// Cells eliminated for these prefixes, most recent last.
    eliminated: Vec<(Vec<usize>, Arc<Eliminations<W>>)>,
}

impl<W: Width> Default for Proofs<W> {
    fn default() -> Self {
        Self { multipliers: RecentMultipliers::default(), eliminated: Vec::new() }
    }
}

impl<W: Width> Proofs<W> {
    /// Returns the longest part of this prefix for which cells were eliminated, with these cells.
    pub(super) fn eliminated(
        &self,
        prefix: &[usize],
    ) -> Option<(Vec<usize>, Arc<Eliminations<W>>)> {
        let parts = self.eliminated.iter().filter(|(other, _)| prefix.starts_with(other));
        parts.max_by_key(|(other, _)| other.len()).cloned()
    }

    /// Adds the cells eliminated for a prefix. Of those for prefixes that are no part of this one,
    /// only the `others` most recent are kept.
    pub(super) fn add_eliminated(
        &mut self,
        prefix: &[usize],
        cells: Eliminations<W>,
        others: usize,
    ) {
        self.eliminated.retain(|(other, _)| other != prefix);
        let is_other = |other: &[usize]| !prefix.starts_with(other);
        let number = self.eliminated.iter().filter(|(other, _)| is_other(other)).count();
        let mut excess = number.saturating_sub(others);
        self.eliminated.retain(|(other, _)| {
            let is_excess = excess > 0 && is_other(other);
            excess -= usize::from(is_excess);
            !is_excess
        });
        self.eliminated.push((prefix.to_vec(), Arc::new(cells)));
    }
}
