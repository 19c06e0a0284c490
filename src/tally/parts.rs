//! The result of a unit, itemised by weight.

use super::{Residues, Tally, TallyError, Thirds};

/// The result under prefixes of one weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightPart {
    /// The weight of each completion, in thirds of a solution.
    pub weight: Thirds,
    /// The number of completions.
    pub completions: u128,
    /// The residues of the completions, accumulated independently.
    pub residues: Residues,
    /// The number of placements that the kernel made for them.
    pub nodes: u128,
}

/// The result of a set of subproblems, itemised by weight, so that the receiver can recompute the
/// sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<WeightPart>);

impl Parts {
    /// Adds `completions` found under prefixes of weight `weight`, and `nodes` visited for them.
    /// `shadow` holds the residues of `completions`, accumulated by the kernel independently.
    ///
    /// # Errors
    /// A sum exceeds 128 bits; nothing is changed then.
    pub fn add(
        &mut self,
        weight: Thirds,
        completions: impl Into<u128>,
        shadow: Residues,
        nodes: impl Into<u128>,
    ) -> Result<(), TallyError> {
        let new = WeightPart {
            weight,
            completions: completions.into(),
            residues: shadow,
            nodes: nodes.into(),
        };
        // There are only a handful of weights.
        let Some(part) = self.0.iter_mut().find(|part| part.weight == weight) else {
            self.0.push(new);
            return Ok(());
        };
        let completions =
            part.completions.checked_add(new.completions).ok_or(TallyError::Overflow)?;
        let nodes = part.nodes.checked_add(new.nodes).ok_or(TallyError::Overflow)?;
        *part =
            WeightPart { weight, completions, residues: part.residues.plus(new.residues), nodes };
        Ok(())
    }

    /// Adds all parts of `other`.
    ///
    /// # Errors
    /// A sum exceeds 128 bits.
    pub fn merge(&mut self, other: &Self) -> Result<(), TallyError> {
        other
            .iter()
            .try_for_each(|part| self.add(part.weight, part.completions, part.residues, part.nodes))
    }

    /// Returns the parts, one for each weight.
    pub fn iter(&self) -> impl Iterator<Item = &WeightPart> {
        self.0.iter()
    }

    /// Verifies every part against its residues and returns the sum.
    ///
    /// # Errors
    /// A part disagrees with its residues, or the sum exceeds 128 bits.
    pub fn total(&self) -> Result<Tally, TallyError> {
        let mut total = Tally::default();
        for part in &self.0 {
            Tally::from_parts(part.completions, part.residues, part.nodes).verify()?;
            total.add(part.weight, part.completions, part.residues, part.nodes)?;
        }
        // The residues of a product are the product of the residues, unless the sum overflowed
        // unnoticed.
        total.verify()?;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_tally_of_the_same_input() {
        let mut parts = Parts::default();
        let mut tally = Tally::default();
        for (weight, completions, nodes) in
            [(24, 7u64, 9u64), (12, 1, 2), (24, u64::MAX, 1), (8, 0, 5)]
        {
            let shadow = Residues::of(completions.into());
            parts.add(weight, completions, shadow, nodes).expect("small");
            tally.add(weight, completions, shadow, nodes.into()).expect("small");
        }
        assert_eq!(parts.total(), Ok(tally));
        assert_eq!(parts.iter().count(), 3);
        let mut twice = parts.clone();
        twice.merge(&parts).expect("small");
        assert_eq!(twice.total().map(|t| t.thirds()), Ok(2 * tally.thirds()));
    }

    #[test]
    fn a_part_that_disagrees_with_its_residues_is_refused() {
        let mut parts = Parts::default();
        parts.add(24, 7u64, Residues::of(7), 1u64).expect("small");
        parts.add(12, 1u64 << 32, Residues::of(0), 1u64).expect("small");
        assert!(matches!(parts.total(), Err(TallyError::Residues { .. })));
        // Errors in two parts that would cancel out in the sum are detected as well.
        let mut parts = Parts::default();
        parts.add(2, 7u64, Residues::of(8), 0u64).expect("small");
        parts.add(1, 9u64, Residues::of(7), 0u64).expect("small");
        assert!(matches!(parts.total(), Err(TallyError::Residues { .. })));
    }

    #[test]
    fn a_sum_over_128_bits_is_refused() {
        let mut parts = Parts::default();
        parts.add(24, u128::MAX, Residues::of(u128::MAX), 0u64).expect("fits");
        assert_eq!(parts.total(), Err(TallyError::Overflow));
        assert_eq!(parts.add(24, 1u64, Residues::of(1), 0u64), Err(TallyError::Overflow));
    }
}
