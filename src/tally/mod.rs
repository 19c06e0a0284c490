//! Exact 128-bit sums with checked additions, each accompanied by residues that are accumulated
//! independently.

pub(crate) mod decimal;
#[cfg(feature = "cluster")]
pub(crate) mod decimals;
mod parts;
mod residues;

use serde::{Deserialize, Serialize};

pub use parts::{Parts, WeightPart};
pub use residues::{MODULI, Residues};

/// The weight of one completion, in thirds of a solution (see [`crate::decomposition`]): 3 is one
/// solution, 24 is an orbit of 8.
pub type Thirds = u32;

/// The exact result of a set of subproblems.
///
/// The sum and the residues are fed from different counters (a kernel with vector lanes feeds the
/// sum from population counts and the residues from its lane counters), so a counter that wraps or
/// a bit that flips on one of the two paths is detected as a disagreement in [`Tally::solutions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Σ weight × completions, in thirds of a solution.
    #[serde(with = "decimal")]
    thirds: u128,
    /// The same sum modulo [`MODULI`], accumulated independently.
    residues: Residues,
    /// The number of placements that the kernel made. It depends on the look-ahead of the kernel,
    /// so it is comparable only between equal kernels.
    #[serde(with = "decimal")]
    nodes: u128,
}

/// The error returned when a tally is invalid or an operation on it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TallyError {
    /// The sum exceeds 128 bits; no board that this program counts can do that.
    #[error("the sum exceeds 128 bits")]
    Overflow,
    /// The tally to be subtracted is larger than the sum.
    #[error("the tally to subtract is larger than the sum")]
    NotContained,
    /// The sum and its residues disagree: a counter wrapped or memory is faulty.
    #[error(
        "the sum {thirds} (in thirds) disagrees with its residues {residues}: a counter wrapped or memory is faulty"
    )]
    Residues {
        /// The sum.
        thirds: u128,
        /// The residues.
        residues: Residues,
    },
    /// The total is not a multiple of 3: a subproblem is missing or was counted twice.
    #[error(
        "the sum {0} (in thirds) is not a multiple of 3: a subproblem is missing or was counted twice"
    )]
    Thirds(u128),
    /// A subproblem was counted by two methods with different results.
    #[error(
        "a column set has {first} placements by the first count and {second} by the second: the processor or memory is faulty"
    )]
    CountedTwice {
        /// The first count.
        first: u128,
        /// The second one.
        second: u128,
    },
}

impl Tally {
    /// Adds `completions` found under prefixes of weight `weight`, and `nodes` visited for them.
    /// `shadow` holds the residues of `completions`, accumulated by the kernel independently.
    ///
    /// # Errors
    /// The sum exceeds 128 bits; the tally is then unchanged.
    pub fn add(
        &mut self,
        weight: Thirds,
        completions: impl Into<u128>,
        shadow: Residues,
        nodes: u128,
    ) -> Result<(), TallyError> {
        let thirds = completions.into().checked_mul(weight.into()).ok_or(TallyError::Overflow)?;
        self.merge(&Self { thirds, residues: shadow.times(weight), nodes })
    }

    /// Adds another tally to this one.
    ///
    /// # Errors
    /// The sum exceeds 128 bits; the tally is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), TallyError> {
        let thirds = self.thirds.checked_add(other.thirds).ok_or(TallyError::Overflow)?;
        let nodes = self.nodes.checked_add(other.nodes).ok_or(TallyError::Overflow)?;
        *self = Self { thirds, residues: self.residues.plus(other.residues), nodes };
        Ok(())
    }

    /// Subtracts a tally that was merged before.
    ///
    /// # Errors
    /// The other tally is larger than this one, so it was never merged; the tally is then
    /// unchanged.
    pub fn subtract(&mut self, other: &Self) -> Result<(), TallyError> {
        let thirds = self.thirds.checked_sub(other.thirds).ok_or(TallyError::NotContained)?;
        let nodes = self.nodes.checked_sub(other.nodes).ok_or(TallyError::NotContained)?;
        *self = Self { thirds, residues: self.residues.minus(other.residues), nodes };
        Ok(())
    }

    /// Creates a tally from stored or transmitted parts, without validation: see [`Self::verify`].
    pub const fn from_parts(thirds: u128, residues: Residues, nodes: u128) -> Self {
        Self { thirds, residues, nodes }
    }

    /// Compares the sum with its residues.
    ///
    /// # Errors
    /// They disagree.
    pub fn verify(&self) -> Result<(), TallyError> {
        if Residues::of(self.thirds) == self.residues {
            Ok(())
        } else {
            Err(TallyError::Residues { thirds: self.thirds, residues: self.residues })
        }
    }

    /// Returns the number of solutions, if this tally is that of a whole job.
    ///
    /// # Errors
    /// The residues disagree, or the sum of thirds is not a multiple of 3.
    pub fn solutions(&self) -> Result<u128, TallyError> {
        self.verify()?;
        if self.thirds.is_multiple_of(3) {
            Ok(self.thirds / 3)
        } else {
            Err(TallyError::Thirds(self.thirds))
        }
    }

    /// Returns Σ weight × completions, in thirds of a solution.
    pub const fn thirds(&self) -> u128 {
        self.thirds
    }

    /// Returns the same sum modulo [`MODULI`], accumulated independently.
    pub const fn residues(&self) -> Residues {
        self.residues
    }

    /// Returns the number of placements that the kernel made.
    pub const fn nodes(&self) -> u128 {
        self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(weight: Thirds, completions: u64) -> Tally {
        let mut tally = Tally::default();
        tally.add(weight, completions, Residues::of(completions.into()), 1).expect("fits");
        tally
    }

    #[test]
    fn a_tally_is_the_weighted_sum_in_thirds() {
        let mut sum = tally(24, 5);
        sum.merge(&tally(12, 3)).expect("fits");
        assert_eq!((sum.thirds(), sum.nodes()), (156, 2));
        assert_eq!(sum.solutions(), Ok(52));
    }

    #[test]
    fn a_sum_over_128_bits_is_an_error_and_changes_nothing() {
        let mut sum =
            Tally { thirds: u128::MAX - 2, residues: Residues::of(u128::MAX - 2), nodes: 0 };
        let before = sum;
        assert_eq!(sum.merge(&tally(3, 1)), Err(TallyError::Overflow));
        assert_eq!(sum.add(3, u128::MAX / 2, Residues::default(), 1), Err(TallyError::Overflow));
        assert_eq!(sum, before);
        sum.merge(&tally(1, 2)).expect("exactly the last number");
        assert_eq!(sum.thirds(), u128::MAX);
        assert_eq!(sum.verify(), Ok(()));
    }

    #[test]
    fn only_merged_tallies_can_be_subtracted() {
        let mut sum = tally(24, 5);
        sum.merge(&tally(12, 1 << 40)).expect("fits");
        sum.subtract(&tally(24, 5)).expect("was merged");
        assert_eq!(sum, tally(12, 1 << 40));
        assert_eq!(sum.subtract(&tally(12, 1 << 41)), Err(TallyError::NotContained));
        assert_eq!(sum, tally(12, 1 << 40));
        assert_eq!(Tally::from_parts(sum.thirds(), sum.residues(), sum.nodes()), sum);
    }

    #[test]
    fn a_wrapped_counter_is_detected_by_the_residues() {
        // A 32-bit counter that wrapped at 2^32 + 92, with the residues of the true value.
        let mut sum = Tally::default();
        sum.add(3, 92u32, Residues::of((1 << 32) + 92), 0).expect("fits");
        assert!(matches!(sum.solutions(), Err(TallyError::Residues { .. })));
        // The same for 64 bits.
        let mut sum = Tally::default();
        sum.add(3, 92u32, Residues::of((1 << 64) + 92), 0).expect("fits");
        assert!(matches!(sum.solutions(), Err(TallyError::Residues { .. })));
    }

    #[test]
    fn a_total_that_is_not_a_whole_number_is_refused() {
        assert_eq!(tally(8, 1).solutions(), Err(TallyError::Thirds(8)));
    }

    #[test]
    fn json_keeps_every_digit() {
        let sum = Tally { thirds: u128::MAX, residues: Residues::of(u128::MAX), nodes: 1 << 90 };
        let text = serde_json::to_string(&sum).expect("serialises");
        assert!(text.contains("\"340282366920938463463374607431768211455\""), "{text}");
        assert_eq!(serde_json::from_str::<Tally>(&text).expect("reads back"), sum);
    }
}
